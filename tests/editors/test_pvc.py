"""PVCSpecEditor: each method sets its field and no other, and None unsets it."""

from collections.abc import Callable
from typing import Any

import pytest
from kubernetes.client import V1PersistentVolumeClaimSpec, V1VolumeResourceRequirements

from ocf.editors import PVCSpecEditor as Editor
from ocf.errors import QuantityError
from ocf.objects import write_model


@pytest.mark.parametrize(
    ("setter", "value", "written"),
    [
        pytest.param(
            Editor.set_storage_request, "2Gi", {"resources": {"requests": {"storage": "2Gi"}}}, id="storage request"
        ),
        pytest.param(
            Editor.set_storage_request, 1024, {"resources": {"requests": {"storage": "1024"}}}, id="number of bytes"
        ),
        pytest.param(Editor.set_access_modes, ["ReadWriteMany"], {"accessModes": ["ReadWriteMany"]}, id="modes"),
        pytest.param(Editor.set_storage_class_name, "", {"storageClassName": ""}, id="class, an empty text is a value"),
        pytest.param(Editor.set_volume_mode, "Block", {"volumeMode": "Block"}, id="volume mode"),
        pytest.param(Editor.set_volume_name, "pv-1", {"volumeName": "pv-1"}, id="volume name"),
    ],
)
def test_sets_its_field_and_none_unsets_it(setter: Callable[[Editor, Any], None], value: object, written: Any) -> None:
    editor = Editor(V1PersistentVolumeClaimSpec())
    setter(editor, value)
    assert write_model(editor.raw) == written
    setter(editor, None)
    assert write_model(editor.raw) == {}


def test_other_resources_stay() -> None:
    limits = V1VolumeResourceRequirements(limits={"storage": "9Gi"}, requests={"other": "1"})
    editor = Editor(V1PersistentVolumeClaimSpec(resources=limits))
    editor.set_storage_request("1Gi")
    assert editor.raw.resources is not None
    assert editor.raw.resources.requests == {"other": "1", "storage": "1Gi"}
    editor.set_storage_request(None)
    assert write_model(editor.raw) == {"resources": {"limits": {"storage": "9Gi"}, "requests": {"other": "1"}}}


def test_a_wrong_quantity_is_rejected_with_its_field() -> None:
    with pytest.raises(QuantityError, match=r"resources\.requests\[storage\]: "):
        Editor(V1PersistentVolumeClaimSpec()).set_storage_request("1 GB")
