"""Provenance trace: every difference after a step is attributed to that step."""

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ocf.concepts.provenance import FieldOrigin, Provenance, Source, SourceKind
from ocf.concepts.provenance_trace import ProvenanceTrace
from ocf.errors import ConfigError
from ocf.objects import Manifest

BASE = Source(SourceKind.BASE)


def by(name: str) -> Source:
    return Source(SourceKind.MUTATION, name)


def traced(*manifests: Manifest) -> Provenance:
    """Trace an object: the first state is the base, the others are made by mutations m1, m2, ..."""
    trace = ProvenanceTrace()
    for number, manifest in enumerate(manifests):
        trace.step(manifest, by(f"m{number}") if number else BASE)
    return Provenance("a", trace.fields, trace.removed)


def histories(origins: tuple[FieldOrigin, ...]) -> dict[str, list[tuple[str, Any]]]:
    """Return the sources and values of each path; "-" for a removal."""
    return {
        origin.path: [
            (setting.source.mutation or "base", "-" if setting.removed else setting.value)
            for setting in origin.settings
        ]
        for origin in origins
    }


@pytest.mark.parametrize(
    ("manifests", "fields", "removed"),
    [
        pytest.param(
            [{"a": {"b": 1, "c": 2}}, {"a": {"b": 3, "c": 2}}],
            {"a.b": [("base", 1), ("m1", 3)], "a.c": [("base", 2)]},
            {},
            id="a value changed",
        ),
        pytest.param([{"a": 1}, {"a": 2}, {"a": 2}], {"a": [("base", 1), ("m1", 2)]}, {}, id="set to what it was"),
        pytest.param([{"a": 1}, {"a": True}], {"a": [("base", 1), ("m1", True)]}, {}, id="one is not true"),
        pytest.param([{"a": 1, "b": 2}, {"b": 2}], {"b": [("base", 2)]}, {"a": [("base", 1), ("m1", "-")]}, id="gone"),
        pytest.param(
            [{"a": 1}, {}, {"a": 2}],
            {"a": [("base", 1), ("m1", "-"), ("m2", 2)]},
            {},
            id="gone, and back: the history goes on",
        ),
        pytest.param([{"a": {}}, {"a": {"b": 1}}], {"a.b": [("m1", 1)]}, {}, id="an empty map is filled, not lost"),
        pytest.param(
            [{"a": {"b": 1}}, {"a": {}}], {"a": [("m1", {})]}, {"a.b": [("base", 1), ("m1", "-")]}, id="emptied"
        ),
        pytest.param(
            [{"a": {"b": 1}}, {"a": 2}], {"a": [("m1", 2)]}, {"a.b": [("base", 1), ("m1", "-")]}, id="another shape"
        ),
        pytest.param([{"a": 1}, {"a": {"b": 2}}], {"a.b": [("m1", 2)]}, {"a": [("base", 1), ("m1", "-")]}, id="grown"),
        pytest.param(
            [{"l": [{"name": "x", "v": 1}]}, {"l": [{"name": "new"}, {"name": "x", "v": 1}]}],
            {"l[0].name": [("m1", "new")], "l[1].name": [("base", "x")], "l[1].v": [("base", 1)]},
            {},
            id="an entry in front takes no credit",
        ),
        pytest.param(
            [{"l": [{"name": "x", "v": 1}]}, {"l": [{"name": "y", "v": 1}]}],
            {"l[0].name": [("base", "x"), ("m1", "y")], "l[0].v": [("base", 1)]},
            {},
            id="renamed: only the name is new",
        ),
        pytest.param(
            [{"l": [{"name": "x", "v": {"w": [1]}}, {"name": "y"}]}, {"l": [{"name": "y"}]}],
            {"l[0].name": [("base", "y")]},
            {
                "l[name=x].name": [("base", "x"), ("m1", "-")],
                "l[name=x].v.w[0]": [("base", 1), ("m1", "-")],
            },
            id="an entry is removed whole, and named by its key",
        ),
        pytest.param(
            [{"l": ["-a"]}, {"l": ["-new", "-a"]}], {"l[0]": [("m1", "-new")], "l[1]": [("base", "-a")]}, {}, id="texts"
        ),
    ],
)
def test_who_set_what(manifests: list[Manifest], fields: dict[str, Any], removed: dict[str, Any]) -> None:
    found = traced(*manifests)
    assert histories(found.fields) == fields
    assert histories(found.removed) == removed


def test_a_step_says_whether_it_changed_anything() -> None:
    trace = ProvenanceTrace()
    assert [trace.step(each, BASE) for each in ({"a": [1]}, {"a": [1]}, {"a": [2]})] == [True, False, True]


def test_another_order_is_a_change_of_no_field() -> None:
    trace = ProvenanceTrace()
    trace.step({"l": [{"name": "x"}, {"name": "y"}]}, BASE)
    assert trace.step({"l": [{"name": "y"}, {"name": "x"}]}, by("m1"))
    assert histories(trace.fields) == {"l[0].name": [("base", "y")], "l[1].name": [("base", "x")]}


def test_no_secret_is_kept_but_its_change_shows() -> None:
    secret = {"apiVersion": "v1", "kind": "Secret"}
    found = traced({**secret, "stringData": {"a": "hunter2"}}, {**secret, "stringData": {"a": "hunter3"}})
    assert "hunter" not in repr(found)
    assert [setting.source.mutation for setting in found.field("stringData.a").settings] == ["", "m1"]


def test_an_unknown_field_is_rejected() -> None:
    with pytest.raises(ConfigError, match='a has no field "spec"; a field is a single value'):
        traced({"spec": {"size": 1}}).field("spec")


VALUES = st.recursive(
    st.one_of(st.integers(0, 3), st.booleans(), st.sampled_from(["x", "y"]), st.none()),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(st.sampled_from(["name", "type", "a"]), inner, max_size=3),
    ),
    max_leaves=8,
)
MANIFESTS = st.dictionaries(st.sampled_from(["spec", "a"]), VALUES, max_size=2)


def flat(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict) and value:
        for key, item in value.items():
            yield from flat(item, f"{path}.{key}")
    elif isinstance(value, list) and value:
        for position, item in enumerate(value):
            yield from flat(item, f"{path}[{position}]")
    else:
        yield path.removeprefix("."), value


@given(st.lists(MANIFESTS, min_size=1, max_size=4))
def test_the_fields_are_the_object(manifests: list[Manifest]) -> None:
    """Whatever happens on the way, the fields at the end are those of the object, with its values."""
    found = traced(*manifests)
    last = dict(flat(manifests[-1])) if manifests[-1] else {}
    assert {origin.path: repr(origin.value) for origin in found.fields} == {path: repr(v) for path, v in last.items()}
    assert all(origin.settings[-1].removed for origin in found.removed)
    assert not any(origin.settings[-1].removed for origin in found.fields)


@given(MANIFESTS, MANIFESTS)
def test_what_stays_keeps_its_source(before: Manifest, after: Manifest) -> None:
    """A step takes no credit for a value that was there before at the same place outside of lists."""
    found = traced(before, after)
    old = {path: value for path, value in flat(before) if "[" not in path}
    for origin in found.fields:
        same = origin.path in old and repr(old[origin.path]) == repr(origin.value)
        if same:
            assert origin.source == BASE
