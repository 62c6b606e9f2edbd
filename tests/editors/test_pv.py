"""PVSpecEditor: each method sets its field and no other, and None unsets it."""

from collections.abc import Callable
from typing import Any

import pytest
from kubernetes.client import V1NodeSelector, V1PersistentVolumeSpec, V1VolumeNodeAffinity

from ocf.editors import PVSpecEditor as Editor
from ocf.errors import ConfigError, QuantityError
from ocf.objects import write_model

AFFINITY = V1VolumeNodeAffinity(required=V1NodeSelector(node_selector_terms=[]))


@pytest.mark.parametrize(
    ("setter", "value", "written"),
    [
        pytest.param(Editor.set_storage_capacity, "2Gi", {"capacity": {"storage": "2Gi"}}, id="capacity"),
        pytest.param(Editor.set_access_modes, ["ReadWriteMany"], {"accessModes": ["ReadWriteMany"]}, id="modes"),
        pytest.param(
            Editor.set_persistent_volume_reclaim_policy,
            "Delete",
            {"persistentVolumeReclaimPolicy": "Delete"},
            id="reclaim policy",
        ),
        pytest.param(Editor.set_storage_class_name, "fast", {"storageClassName": "fast"}, id="class"),
        pytest.param(Editor.set_mount_options, ["hard"], {"mountOptions": ["hard"]}, id="mount options"),
        pytest.param(Editor.set_volume_mode, "Block", {"volumeMode": "Block"}, id="volume mode"),
        pytest.param(
            Editor.set_node_affinity, AFFINITY, {"nodeAffinity": {"required": {"nodeSelectorTerms": []}}}, id="affinity"
        ),
    ],
)
def test_sets_its_field_and_none_unsets_it(setter: Callable[[Editor, Any], None], value: object, written: Any) -> None:
    editor = Editor(V1PersistentVolumeSpec())
    setter(editor, value)
    assert write_model(editor.raw) == written
    setter(editor, None)
    assert write_model(editor.raw) == {}


def test_only_the_storage_entry_of_the_capacity_is_changed() -> None:
    editor = Editor(V1PersistentVolumeSpec(capacity={"iops": "100"}))
    editor.set_storage_capacity(5)
    assert editor.raw.capacity == {"iops": "100", "storage": "5"}
    editor.set_storage_capacity(None)
    assert editor.raw.capacity == {"iops": "100"}


def test_wrong_values_are_rejected_with_their_field() -> None:
    editor = Editor(V1PersistentVolumeSpec())
    with pytest.raises(QuantityError, match=r"capacity\[storage\]: "):
        editor.set_storage_capacity("1 GB")
    with pytest.raises(ConfigError, match="nodeAffinity: must be a kubernetes"):
        editor.set_node_affinity({})  # type: ignore[arg-type]  # the point of the test
    assert write_model(editor.raw) == {}
