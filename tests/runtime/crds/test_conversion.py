"""Conversion between versions: nothing is lost, changes are carried over, and metadata stays."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, ConfigDict

from ocf.errors import ManifestError
from ocf.objects import Manifest
from ocf.objects.json_changes import same_json
from ocf.runtime.crds import Conversion, CRDVersion, VersionedResource
from ocf.runtime.crds.conversion import ANNOTATION_PREFIX

from .shop_versions import GROUP, SHOPS

WORDS = st.sampled_from(["", "a", "b", "xyz"])
SMALL = st.integers(0, 3)
V1_STATUS = st.fixed_dictionaries({"count": SMALL})
STATUS = st.fixed_dictionaries({"count": SMALL, "ready": st.booleans()})


def objects(version: str, spec: st.SearchStrategy[Manifest], status: st.SearchStrategy[Manifest]) -> Any:
    head = {"apiVersion": f"{GROUP}/{version}", "kind": "Shop", "metadata": {"name": "a", "uid": "1"}}
    return st.fixed_dictionaries({"spec": spec}, optional={"status": status}).map(lambda content: {**head, **content})


ADDRESSES = st.fixed_dictionaries(
    {"address": st.tuples(WORDS, WORDS).map(", ".join), "memoryGi": SMALL}, optional={"motto": WORDS}
)
STREETS = st.fixed_dictionaries(
    {
        "street": WORDS,
        "city": WORDS,
        "memoryMi": st.integers(0, 5000),
        "color": st.none() | WORDS,
        "tags": st.sets(WORDS, max_size=3).map(sorted),
        "ports": st.dictionaries(WORDS, SMALL, max_size=2),
    }
)
PORTS = st.fixed_dictionaries({"name": WORDS, "number": SMALL, "tls": st.booleans()})
PLACES = st.fixed_dictionaries(
    {
        "place": st.fixed_dictionaries({"street": WORDS, "city": WORDS, "floor": SMALL}),
        "memoryMi": st.integers(0, 5000),
        "color": st.none() | WORDS,
        "ports": st.lists(PORTS, max_size=2),
    }
)
KNOWN = {
    "v1": objects("v1", ADDRESSES, V1_STATUS),
    "v2": objects("v2", STREETS, STATUS),
    "v3": objects("v3", PLACES, STATUS),
}
PAIRS = [pytest.param(one, other, id=f"{one} to {other}") for one in KNOWN for other in KNOWN if one != other]


def shop(version: str, **spec: Any) -> Manifest:
    return {
        "apiVersion": f"{GROUP}/{version}",
        "kind": "Shop",
        "metadata": {"name": "corner", "namespace": "north"},
        "spec": spec,
    }


@pytest.mark.parametrize(("source", "target"), PAIRS)
@given(data=st.data())
def test_a_round_trip_returns_the_same_object(source: str, target: str, data: st.DataObject) -> None:
    given_object = data.draw(KNOWN[source])
    there = SHOPS.convert(given_object, target)
    assert there["apiVersion"] == f"{GROUP}/{target}"
    assert same_json(SHOPS.convert(there, source), given_object)


@given(data=st.data())
def test_a_walk_over_the_versions_ends_with_the_same_object(data: st.DataObject) -> None:
    source = data.draw(st.sampled_from(sorted(KNOWN)))
    given_object = data.draw(KNOWN[source])
    there = given_object
    for version in data.draw(st.lists(st.sampled_from(sorted(KNOWN)), max_size=5)):
        there = SHOPS.convert(there, version)
    assert same_json(SHOPS.convert(there, source), given_object)


@given(new=KNOWN["v3"], old=KNOWN["v1"])
def test_a_change_in_an_older_version_is_carried_over(new: Manifest, old: Manifest) -> None:
    seen = SHOPS.convert(new, "v1")
    changed = {**seen, "spec": old["spec"]}
    assert same_json(SHOPS.convert(SHOPS.convert(changed, "v3"), "v1")["spec"], old["spec"])


NEW = shop(
    "v3",
    place={"street": "a", "city": "b", "floor": 3},
    memoryMi=1536,
    color="blue",
    ports=[{"name": "x", "number": 1, "tls": True}, {"name": "y", "number": 2, "tls": False}],
)


def test_fields_that_an_older_client_does_not_know_survive_its_change() -> None:
    seen = SHOPS.convert(NEW, "v1")
    assert seen["spec"] == {"address": "a, b", "memoryGi": 1}
    moved = {**seen, "spec": {**seen["spec"], "address": "c, b"}}
    expected = {**NEW["spec"], "place": {"street": "c", "city": "b", "floor": 3}}
    assert SHOPS.convert(moved, "v3")["spec"] == expected


def test_a_value_that_an_older_client_changed_is_not_restored() -> None:
    seen = SHOPS.convert(NEW, "v1")
    grown = {**seen, "spec": {**seen["spec"], "memoryGi": 4}}
    assert SHOPS.convert(grown, "v3")["spec"]["memoryMi"] == 4096


def test_an_entry_of_a_list_keeps_its_fields_when_another_is_removed() -> None:
    seen = SHOPS.convert(NEW, "v2")
    fewer = {**seen, "spec": {**seen["spec"], "ports": {"x": 1, "z": 3}}}
    assert SHOPS.convert(fewer, "v3")["spec"]["ports"] == [
        {"name": "x", "number": 1, "tls": True},
        {"name": "z", "number": 3, "tls": False},
    ]


def test_an_object_that_both_versions_express_gets_no_annotation() -> None:
    seen = SHOPS.convert(shop("v2", street="a", city="b"), "v3")
    assert "annotations" not in seen["metadata"]
    assert seen["spec"] == {
        "place": {"street": "a", "city": "b", "floor": 0},
        "memoryMi": 1024,
        "color": "red",
        "ports": [],
    }


def test_null_that_is_a_value_stays_null() -> None:
    assert SHOPS.convert(shop("v2", street="a", city="b", color=None), "v3")["spec"]["color"] is None


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("{", id="no JSON"),
        pytest.param("[]", id="no object"),
        pytest.param('{"spec": {"place": 1}}', id="invalid content"),
        pytest.param(json.dumps({"spec": {**NEW["spec"], "memoryMi": 10**9}}), id="out of bounds"),
    ],
)
def test_kept_content_that_is_invalid_is_not_used(text: str) -> None:
    plain = shop("v2", street="a", city="b", tags=[], ports={}, memoryMi=1024, color="red")
    metadata = {**plain["metadata"], "annotations": {f"{ANNOTATION_PREFIX}v3": text, "mine": "x"}}
    there = SHOPS.convert({**plain, "metadata": metadata}, "v3")
    assert there["spec"] == SHOPS.convert(plain, "v3")["spec"]
    assert there["metadata"]["annotations"] == {"mine": "x"}


def test_kept_content_larger_than_annotations_may_be_is_an_error() -> None:
    big = shop("v2", street="a", city="b", tags=["x" * 300_000])
    with pytest.raises(ManifestError, match=r"in v2: metadata.annotations: must have at most 262144 bytes"):
        SHOPS.convert(big, "v3")


@pytest.mark.parametrize(
    ("given_object", "target", "message"),
    [
        pytest.param(
            shop("v1", address=5),
            "v2",
            "Shop north/corner in v1: spec.address: must be a valid string, got 5",
            id="an object that its model cannot read",
        ),
        pytest.param(
            shop("v1", address="nowhere"),
            "v2",
            "Shop north/corner in v1: spec.address: "
            "String should match pattern '^[a-z]{0,3}, [a-z]{0,3}$', got 'nowhere'",
            id="a value out of bounds",
        ),
        pytest.param(
            shop("v2", street="bad", city="b"),
            "v3",
            "Shop north/corner in v2: spec.street: is not a street",
            id="an error of the function",
        ),
        pytest.param(
            shop("v2", street="bug", city="b"),
            "v3",
            "Shop north/corner in v2: v2_to_v3 failed: KeyError, see the operator's log",
            id="a defect of the function",
        ),
    ],
)
def test_a_failure_names_the_object_and_the_field(given_object: Manifest, target: str, message: str) -> None:
    with pytest.raises(ManifestError) as caught:
        SHOPS.convert(given_object, target)
    assert str(caught.value) == message


class Metadata(BaseModel):
    name: str = ""
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}


class Old(BaseModel):
    metadata: Metadata = Metadata()
    color: str = ""


class New(BaseModel):
    model_config = ConfigDict(extra="forbid")

    kind: str = ""
    apiVersion: str = ""  # noqa: N815 (the name of the field)
    metadata: Metadata = Metadata()


def changing(metadata: Callable[[Any], Any]) -> VersionedResource:
    """Return a resource whose conversion to v2 returns the metadata that a function makes of the given one."""

    def up(old: Old) -> Any:
        return metadata(old)

    conversion = Conversion[Any, Any](Old, New, up=up, down=lambda new: Old(metadata=new.metadata))
    return VersionedResource(
        "x.example.com", [CRDVersion("v1", Old), CRDVersion("v2", New, stored=True)], [conversion], kind="Thing"
    )


def thing(**metadata: Any) -> Manifest:
    return {"apiVersion": "x.example.com/v1", "kind": "Thing", "metadata": {"name": "a", "uid": "1", **metadata}}


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        pytest.param(lambda _: New(), {"labels": {"a": "b"}}, id="metadata that is not given is kept"),
        pytest.param(
            lambda old: New(metadata=old.metadata.model_copy(update={"labels": {"c": "d"}})),
            {"labels": {"c": "d"}},
            id="labels are replaced",
        ),
        pytest.param(lambda _: New(metadata=Metadata()), {}, id="labels are removed"),
    ],
)
def test_labels_and_annotations_may_change(function: Any, expected: Manifest) -> None:
    found = changing(function).convert(thing(labels={"a": "b"}), "v2")["metadata"]
    assert found == {"name": "a", "uid": "1", **expected}


def test_other_metadata_must_not_change() -> None:
    resource = changing(lambda old: New(metadata=old.metadata.model_copy(update={"name": "b"})))
    with pytest.raises(ManifestError) as caught:
        resource.convert(thing(), "v2")
    assert str(caught.value) == (
        "Thing a in v1: metadata.name: changing.<locals>.up must not change it, was 'a', got 'b'"
    )


def test_a_function_must_return_the_model_of_the_other_version() -> None:
    with pytest.raises(ManifestError, match=r"changing.<locals>.up must return New, got Old$"):
        changing(lambda old: old).convert(thing(), "v2")


def test_a_target_that_the_model_refuses_names_its_field() -> None:
    with pytest.raises(ManifestError, match=r"up failed: New.size: "):
        changing(lambda _: New.model_validate({"size": 1})).convert(thing(), "v2")
