"""Serialization of cached objects."""

from enum import StrEnum
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from ocf.cluster.cache.serialization import pack, unpack
from ocf.objects import Manifest
from ocf.objects.owner_references import controller_of

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


class Phase(StrEnum):
    READY = "Ready"


def manifest(**fields: Any) -> Manifest:
    return {"metadata": {"name": "web", "resourceVersion": "7", "uid": "u1"}, **fields}


@given(spec=JSON)
def test_unpacking_returns_an_equal_object(spec: Any) -> None:
    assert unpack(pack(manifest(spec=spec))) == manifest(spec=spec)


def test_a_shared_value_is_unpacked_as_two_values() -> None:
    shared = {"app": "web"}
    unpacked = unpack(pack(manifest(a=shared, b=shared)))
    unpacked["a"]["app"] = "changed"

    assert unpacked["b"] == {"app": "web"}


def test_an_enum_is_unpacked_as_text() -> None:
    found = unpack(pack(manifest(status={"phase": Phase.READY})))["status"]["phase"]

    assert type(found) is str
    assert found == "Ready"


def test_labels_are_read_without_unpacking_the_object() -> None:
    entry = pack({"metadata": {"name": "web", "labels": {"app": "web"}}})
    entry.packed = b""

    assert entry.labels == {"app": "web"}
    assert pack(manifest()).labels == {}


def test_the_controller_is_read_without_unpacking_the_object() -> None:
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "u0", "controller": True}
    live: Manifest = {"metadata": {"name": "web", "ownerReferences": [{"name": "other"}, owner]}}

    assert pack(live).controller == controller_of(live) is not None
    assert pack(manifest()).controller is None


def test_uid_and_version_are_attributes_of_the_entry() -> None:
    entry = pack(manifest())
    assert (entry.uid, entry.version) == ("u1", "7")
    entry = pack({"metadata": {"name": "web"}})
    assert (entry.uid, entry.version) == ("", "")
