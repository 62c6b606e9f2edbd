"""The object that an autoscaler scales."""

from typing import Any

import pytest

from ocf.autoscaling.targets.targets import find_scale_target, scale_target_key
from ocf.objects import Manifest, ObjectKey


def autoscaler(**reference: Any) -> Manifest:
    given = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web", **reference}
    return {"metadata": {"namespace": "shop", "name": "web"}, "spec": {"scaleTargetRef": given}}


def workload(**changed: Any) -> Manifest:
    metadata = {"namespace": changed.pop("namespace", "shop"), "name": changed.pop("name", "web")}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, **changed}


def test_the_key_is_what_the_reference_names() -> None:
    assert scale_target_key(autoscaler()) == ObjectKey("apps/v1", "Deployment", "web", "shop")


@pytest.mark.parametrize(
    "incomplete", [{}, {"metadata": {}, "spec": {}}, {"metadata": None, "spec": {"scaleTargetRef": {"name": None}}}]
)
def test_what_is_not_named_is_empty(incomplete: Manifest) -> None:
    assert scale_target_key(incomplete) == ObjectKey("", "", "", "")


@pytest.mark.parametrize(
    ("other", "found"),
    [
        pytest.param(workload(), True, id="the same version"),
        pytest.param(workload(apiVersion="apps/v1beta1"), True, id="another version"),
        pytest.param(workload(apiVersion="extensions/v1"), False, id="another group"),
        pytest.param(workload(kind="StatefulSet"), False, id="another kind"),
        pytest.param(workload(name="db"), False, id="another name"),
        pytest.param(workload(namespace="default"), False, id="another namespace"),
        pytest.param({"kind": "Deployment", "metadata": None}, False, id="an incomplete object"),
    ],
)
def test_the_target_is_found_whatever_the_version(other: Manifest, found: bool) -> None:
    expected = other if found else None

    assert find_scale_target(autoscaler(), [workload(kind="Service"), other]) is expected
