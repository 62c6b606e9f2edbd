"""Merge of applied values, removal of fields, and comparison of values."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ocf.objects.json_equality import equal_json
from ocf.schema.builtin import DEDUCED, EmptyValue, Field, ListType, Scalar, StructType, struct
from ocf_server.managedfields.compare import Changes, compare
from ocf_server.managedfields.fieldset import FieldSet
from ocf_server.managedfields.merge import merge, remove
from ocf_server.managedfields.typed import field_set

NAMES = st.sampled_from("abc")
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(0, 2) | NAMES,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=8,
)
OBJECTS = st.dictionaries(NAMES, JSON, max_size=3)
SET = ListType(Scalar.TEXT, ())
KEYED = ListType(struct("core.v1.EnvVar"), (("name", ""),))


@given(OBJECTS)
def test_a_merge_of_a_value_into_itself_changes_nothing(value: dict[str, Any]) -> None:
    assert merge(value, value, DEDUCED) is value


@given(OBJECTS, OBJECTS)
def test_a_merged_value_contains_the_applied_one(live: dict[str, Any], applied: dict[str, Any]) -> None:
    """A second merge of the same value changes nothing."""
    once = merge(live, applied, DEDUCED)

    assert merge(once, applied, DEDUCED) is once


@given(OBJECTS, OBJECTS)
def test_a_merge_does_not_change_its_arguments(live: dict[str, Any], applied: dict[str, Any]) -> None:
    before = repr((live, applied))
    merge(live, applied, DEDUCED)

    assert repr((live, applied)) == before


@given(OBJECTS)
def test_a_removal_of_all_fields_leaves_nothing(value: dict[str, Any]) -> None:
    assert not remove(value, field_set(value, DEDUCED), DEDUCED)


@given(OBJECTS, OBJECTS)
def test_changes_are_empty_only_for_equal_values(left: dict[str, Any], right: dict[str, Any]) -> None:
    changes = compare(left, right, DEDUCED)

    assert (not changes.removed and not changes.modified and not changes.added) is equal_json(left, right)


@given(OBJECTS, OBJECTS)
def test_a_reversed_comparison_swaps_added_and_removed(left: dict[str, Any], right: dict[str, Any]) -> None:
    there, back = compare(left, right, DEDUCED), compare(right, left, DEDUCED)

    assert (there.added, there.removed, there.modified) == (back.removed, back.added, back.modified)


@pytest.mark.parametrize(
    ("live", "applied", "merged"),
    [
        pytest.param("abc", "cx", "abcx", id="new items follow the live ones"),
        pytest.param("abc", "ca", "bca", id="shared items have the order of the applied list"),
        pytest.param("abc", "xbya", "xbcya", id="new items between shared ones"),
        pytest.param("", "ab", "ab", id="empty live list"),
        pytest.param("ab", "", "ab", id="an empty list removes nothing"),
        pytest.param("abcd", "dcba", "dcba", id="reversed"),
        pytest.param("abx", "acb", "acbx", id="one new item between shared ones"),
        pytest.param("aab", "acd", "acbd", id="duplicate live item"),
        pytest.param("axb", "ba", "xba", id="live-only item between shared ones"),
    ],
)
def test_the_order_of_a_merged_set(live: str, applied: str, merged: str) -> None:
    assert "".join(merge(list(live), list(applied), SET)) == merged


def test_items_of_a_keyed_list_merge_field_by_field() -> None:
    live = [{"name": "A", "value": "1"}, {"name": "B", "valueFrom": {"fieldRef": {"fieldPath": "x"}}}]

    merged = merge(live, [{"name": "B", "value": "2"}], KEYED)

    assert merged == [live[0], {"name": "B", "value": "2", "valueFrom": {"fieldRef": {"fieldPath": "x"}}}]
    assert merged[0] is live[0]


def test_duplicate_live_items_are_replaced_by_the_applied_item() -> None:
    live = [{"name": "A", "value": "1"}, {"name": "A", "value": "2"}]

    assert merge(live, [{"name": "A", "value": "3"}], KEYED) == [{"name": "A", "value": "3"}]


def test_duplicate_live_items_stay_if_no_item_with_their_key_is_applied() -> None:
    live = [{"name": "A", "value": "1"}, {"name": "A", "value": "2"}]

    assert merge(live, [{"name": "B"}], KEYED) == [*live, {"name": "B"}]


ITEM = 'k:{"name":"A"}'
WHOLE: FieldSet = {"f:env": {ITEM: {}}}
PARTS: FieldSet = {"f:env": {ITEM: {".": {}, "f:name": {}, "f:value": {}}}}


@pytest.mark.parametrize(
    ("left", "right", "changes"),
    [
        pytest.param("11", "1", Changes(removed=WHOLE, added=PARTS), id="two become one"),
        pytest.param("1", "11", Changes(removed=PARTS, added=WHOLE), id="one becomes two"),
        pytest.param("12", "21", Changes(modified=WHOLE), id="two items change"),
        pytest.param("12", "12", Changes(), id="the same two"),
        pytest.param("11", "", Changes(removed=WHOLE), id="two items are removed"),
        pytest.param("", "11", Changes(added=WHOLE), id="two items are added"),
    ],
)
def test_duplicate_items_are_compared_as_a_whole(left: str, right: str, changes: Changes) -> None:
    kind = StructType("Container", fields={"env": Field(KEYED, EmptyValue.DROP_EMPTY)})
    env = [{"env": [{"name": "A", "value": value} for value in side]} for side in (left, right)]

    assert compare(env[0], env[1], kind) == changes


@pytest.mark.parametrize(
    ("left", "right", "equal"),
    [
        pytest.param(True, 1, False, id="boolean and number"),
        pytest.param([{"a": False}], [{"a": 0}], False, id="nested boolean and number"),
        pytest.param(1, 1.0, True, id="integer and float"),
        pytest.param({"a": None}, {}, False, id="null and absent"),
        pytest.param({"a": [1, {"b": "c"}]}, {"a": [1, {"b": "c"}]}, True, id="deep"),
    ],
)
def test_equality_of_json(left: Any, right: Any, equal: bool) -> None:
    assert equal_json(left, right) is equal
