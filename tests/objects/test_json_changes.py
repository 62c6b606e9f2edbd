"""A change of the model is the same change of the object that the model was read from."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ocf.objects.json_changes import merge_changes

LEAVES = st.none() | st.booleans() | st.integers(-2, 2) | st.floats(-2, 2) | st.text("a~/", max_size=2)
VALUES = st.recursive(
    LEAVES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("ab~/", max_size=2), inner, max_size=3)
)
OBJECTS = st.dictionaries(st.sampled_from("abc"), VALUES, max_size=3)


def exact(value: Any) -> str:
    """Write a value so that equal texts are equal JSON: to Python, `True` is 1."""
    return json.dumps(value, sort_keys=True)


@given(OBJECTS, OBJECTS)
def test_what_the_view_shows_in_full_becomes_the_view(before: dict[str, Any], after: dict[str, Any]) -> None:
    assert exact(merge_changes(before, before, after)) == exact(after)


@given(OBJECTS, OBJECTS, OBJECTS)
def test_what_the_view_does_not_show_stays(
    hidden: dict[str, Any], before: dict[str, Any], after: dict[str, Any]
) -> None:
    unknown = {f"hidden-{key}": value for key, value in hidden.items()}
    assert exact(merge_changes(unknown | before, before, after)) == exact(unknown | after)


@given(OBJECTS, OBJECTS)
def test_a_view_that_did_not_change_changes_nothing(held: dict[str, Any], view: dict[str, Any]) -> None:
    assert merge_changes(held, view, view) is held


@pytest.mark.parametrize(
    ("held", "before", "after", "out"),
    [
        pytest.param(
            [{"name": "a", "x": 1}, {"name": "b", "x": 2}],
            [{"name": "a"}, {"name": "b"}],
            [{"name": "b", "port": 1}, {"name": "a"}, {"name": "c"}],
            [{"name": "b", "x": 2, "port": 1}, {"name": "a", "x": 1}, {"name": "c"}],
            id="entries that moved keep what the model does not know",
        ),
        pytest.param({"a": {"x": 1}}, {"a": {"b": 1}}, {}, {}, id="a part that was taken away is gone"),
        pytest.param({"a": None}, {}, {"a": 1}, {"a": 1}, id="null counts as absent"),
        pytest.param({}, {"a": {"b": 1, "c": 1}}, {"a": {"b": 2, "c": 1}}, {"a": {"b": 2}}, id="a part of the model's"),
        pytest.param({"a": "1m"}, {"a": {"b": 1}}, {"a": {"b": 2}}, {"a": {"b": 2}}, id="a value spelled otherwise"),
        pytest.param({"a": [1]}, {"a": [1, 2]}, {"a": [2]}, {"a": [2]}, id="a list that reads as another"),
        pytest.param({"a": 1}, {"a": 1}, {"a": True}, {"a": True}, id="true is not one"),
    ],
)
def test_what_is_carried(held: Any, before: Any, after: Any, out: Any) -> None:
    assert exact(merge_changes(held, before, after)) == exact(out)
