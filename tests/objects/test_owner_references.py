"""Owner references."""

from typing import Any

import pytest

from ocf.objects import Manifest
from ocf.objects.owner_references import ControllerReference, controller_of


def reference(name: str, **others: Any) -> Manifest:
    return {"apiVersion": "example.com/v1", "kind": "Shop", "name": name, "uid": f"uid-of-{name}", **others}


@pytest.mark.parametrize(
    "metadata",
    [
        pytest.param({}, id="no references"),
        pytest.param({"ownerReferences": None}, id="null"),
        pytest.param({"ownerReferences": [reference("a"), reference("b", controller=False)]}, id="no controller"),
    ],
)
def test_an_object_may_have_no_controller(metadata: Manifest) -> None:
    assert controller_of({"metadata": metadata}) is None


def test_the_controller_is_found_among_other_owners() -> None:
    found = controller_of({"metadata": {"ownerReferences": [reference("a"), reference("b", controller=True)]}})

    assert found == ControllerReference("example.com/v1", "Shop", "b", "uid-of-b")
    assert found is not None
    assert (found.group, str(found)) == ("example.com", "Shop b")


def test_a_controller_of_the_core_group_has_an_empty_group() -> None:
    found = controller_of({"metadata": {"ownerReferences": [reference("a", apiVersion="v1", controller=True)]}})

    assert found is not None
    assert found.group == ""
