"""A patch of one object into another says exactly what differs."""

from __future__ import annotations

import json
from typing import Any

import jsonpatch
from hypothesis import given
from hypothesis import strategies as st

from ocf.runtime.admission.json_patch import json_patch

LEAVES = st.none() | st.booleans() | st.integers(-2, 2) | st.floats(-2, 2) | st.text("a~/", max_size=2)
VALUES = st.recursive(
    LEAVES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("ab~/", max_size=2), inner, max_size=3)
)
OBJECTS = st.dictionaries(st.sampled_from("abc"), VALUES, max_size=3)


def exact(value: Any) -> str:
    """Write a value so that equal texts are equal JSON: to Python, `True` is 1."""
    return json.dumps(value, sort_keys=True)


@given(OBJECTS, OBJECTS)
def test_a_patch_makes_one_of_the_other(before: dict[str, Any], after: dict[str, Any]) -> None:
    patch = list(json_patch(before, after))
    assert exact(jsonpatch.apply_patch(before, patch)) == exact(after)
    assert bool(patch) is (exact(before) != exact(after))
