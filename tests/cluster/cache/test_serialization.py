"""Serialization of cached objects."""

from enum import StrEnum
from hashlib import sha512
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from ocf.cluster.cache.serialization import Packing, pack, unpack
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


@given(specs=st.lists(JSON, min_size=1))
def test_objects_of_one_store_are_unpacked_as_they_were(specs: list[Any]) -> None:
    """Alike or not, small or large, and whatever else the store has packed since."""
    packing = Packing()
    large = [
        manifest(spec=[spec] * 50, data="x" * 40_000 if number % 3 == 0 else "") for number, spec in enumerate(specs)
    ]
    given = [manifest(spec=spec) for spec in specs] + large
    entries = [packing.pack(one) for one in given]
    assert [unpack(entry) for entry in entries] == given
    assert [entry.version for entry in entries] == ["7"] * len(given)


def fields(number: int) -> Manifest:
    return manifest(number=number, managed={f"f:field-{index}": {"f:name": {}, "f:value": {}} for index in range(200)})


def test_objects_that_are_alike_take_a_tenth_of_their_bytes() -> None:
    packing = Packing()
    entries = [packing.pack(fields(number)) for number in range(50)]
    assert all(len(entry.packed) * 10 < len(pack(unpack(entry)).packed) for entry in entries[1:])


def test_the_samples_are_few_and_small() -> None:
    packing = Packing()
    texts = [[sha512(f"{number}-{part}".encode()).hexdigest() for part in range(40)] for number in range(50)]
    entries = [packing.pack(manifest(data=text)) for text in texts]
    samples = {entry.samples for entry in entries if entry.samples}
    assert 1 < len(samples) <= 8
    assert all(len(one) <= 16_384 for one in samples)


def test_a_text_is_found_whether_the_object_is_compressed_or_not() -> None:
    packing = Packing()
    for entry in (pack(fields(1)), *(packing.pack(fields(number)) for number in range(2))):
        assert entry.has_text("f:field-199")
        assert not entry.has_text("f:field-200")
