"""Validation of updates of custom resources: invalid values that do not change are allowed."""

from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ocf.objects.json_equality import equal_json
from ocf_server.apiextensions import custom_update_problems, schema_faults
from ocf_server.apiextensions.object_validation import SchemaViolation, duplicate_faults, value_faults

TAG: Final = {"type": "string", "minLength": 2}
SCHEMA: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {
        "tag": TAG,
        "tags": {"type": "array", "x-kubernetes-list-type": "set", "items": TAG},
        "plain": {"type": "array", "items": TAG},
        "map": {"type": "object", "additionalProperties": TAG},
        "items": {
            "type": "array",
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["name", "port"],
            "items": {"type": "object", "properties": {"name": {}, "port": {}, "tag": TAG}},
        },
    },
}
WHOLE: Final[dict[str, Any]] = {"type": "object", "properties": {"spec": SCHEMA, "status": SCHEMA}}
X: Final = {"name": "x", "port": 1, "tag": "a"}


@pytest.mark.parametrize("part", ["spec", "status"])
@pytest.mark.parametrize(
    ("before", "after", "fields"),
    [
        pytest.param({"tag": "a"}, {"tag": "a", "map": {}}, [], id="unchanged"),
        pytest.param({"tag": "a"}, {"tag": "b"}, ["tag"], id="changed"),
        pytest.param({}, {"tag": "a"}, ["tag"], id="new"),
        pytest.param({"map": {"x": "a"}}, {"map": {"x": "a", "y": "b"}}, ["map.y"], id="entry of a map"),
        pytest.param({"plain": ["a"]}, {"plain": ["a"], "map": {}}, [], id="unchanged list"),
        pytest.param({"plain": ["a"]}, {"plain": ["a", "bb"]}, ["plain[0]"], id="changed list"),
        pytest.param({"tags": ["a"]}, {"tags": ["a", "bb"]}, ["tags[0]"], id="changed set"),
        pytest.param({"items": [X]}, {"items": [{"name": "y", "port": 1}, X]}, [], id="moved item"),
        pytest.param({"items": [X]}, {"items": [{**X, "port": 2}]}, ["items[0].tag"], id="item with another key"),
        pytest.param({"items": [X]}, {"items": [{**X, "tag": "b"}]}, ["items[0].tag"], id="changed item"),
        pytest.param(
            {"items": [{"name": "x", "tag": "a"}]},
            {"items": [{"name": "x", "tag": "a"}, X | {"tag": "bb"}]},
            ["items[0].tag"],
            id="item without a key",
        ),
        pytest.param({"tags": ["aa"]}, {"tags": ["bb", "bb"]}, ["tags[1]"], id="new duplicate"),
        pytest.param({"tags": ["aa", "aa"]}, {"tags": ["bb", "bb"]}, [], id="another duplicate"),
    ],
)
def test_only_values_that_change_are_validated(
    part: str, before: dict[str, Any], after: dict[str, Any], fields: list[str]
) -> None:
    subresource = "status" if part == "status" else None
    problems = custom_update_problems({part: after}, {part: before}, WHOLE, subresource)
    assert [problem.path for problem in problems] == [f"{part}.{field}" for field in fields]


def test_a_duplicate_in_the_spec_hides_one_in_the_status() -> None:
    live = {"spec": {"tags": ["aa", "aa"]}}
    assert custom_update_problems({**live, "status": {"tags": ["bb", "bb"]}}, live, WHOLE, "status") == []


def _contents(tags: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    item = st.fixed_dictionaries({"name": st.sampled_from("xy"), "port": st.integers(1, 2)}, optional={"tag": tags})
    lists = st.lists(tags, max_size=3)
    fields = {"tag": tags, "tags": lists, "plain": lists, "map": st.dictionaries(st.sampled_from("xy"), tags)}
    return st.fixed_dictionaries({}, optional={**fields, "items": st.lists(item, max_size=3)})


TAGS: Final = st.sampled_from(["a", "b", "aa", "bb", 1, True, None])
WHOLES: Final = st.fixed_dictionaries({}, optional={"spec": _contents(TAGS), "status": _contents(TAGS)})


@given(WHOLES, WHOLES)
def test_fields_that_equal_their_previous_value_are_passed_over(before: dict[str, Any], after: dict[str, Any]) -> None:
    every = schema_faults(after, WHOLE)
    assert [*value_faults(after, WHOLE), *duplicate_faults(after, WHOLE)] == every

    some = [*value_faults(after, WHOLE, before=before), *duplicate_faults(after, WHOLE, before=before)]
    assert some == [fault for fault in every if not _is_in_equal_field(fault, before, after)]


def _is_in_equal_field(fault: SchemaViolation, before: Any, after: Any) -> bool:
    """Return whether a field on the way to a fault, outside of any list, equals its previous value."""
    for step in fault.place:
        if not isinstance(step, str) or not isinstance(before, dict) or step not in before or step not in after:
            return False
        before, after = before[step], after[step]
        if equal_json(before, after):
            return True
    return False
