"""The small form of an object."""

from enum import StrEnum
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from ocf.cluster.cache.serialization import pack, unpack
from ocf.objects import Manifest

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


class Phase(StrEnum):
    READY = "Ready"


def manifest(**fields: Any) -> Manifest:
    return {"metadata": {"name": "web", "resourceVersion": "7", "uid": "u1"}, **fields}


@given(spec=JSON)
def test_nothing_is_lost(spec: Any) -> None:
    assert unpack(pack(manifest(spec=spec))) == manifest(spec=spec)


def test_a_part_that_is_in_two_places_comes_back_as_two() -> None:
    shared = {"app": "web"}
    unpacked = unpack(pack(manifest(a=shared, b=shared)))
    unpacked["a"]["app"] = "changed"

    assert unpacked["b"] == {"app": "web"}


def test_what_only_looks_like_text_becomes_text() -> None:
    found = unpack(pack(manifest(status={"phase": Phase.READY})))["status"]["phase"]

    assert type(found) is str
    assert found == "Ready"


def test_labels_are_read_without_the_object() -> None:
    entry = pack({"metadata": {"name": "web", "labels": {"app": "web"}}})
    entry.packed = b""

    assert entry.labels == {"app": "web"}
    assert pack(manifest()).labels == {}


def test_what_identifies_it_is_kept_beside() -> None:
    entry = pack(manifest())
    assert (entry.uid, entry.version) == ("u1", "7")
    entry = pack({"metadata": {"name": "web"}})
    assert (entry.uid, entry.version) == ("", "")
