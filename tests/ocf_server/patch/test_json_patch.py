"""JSON patch and JSON merge patch."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ocf_server.patch.json_patch import PatchError, json_patch, merge_patch

NAMES = st.sampled_from(["a", "b", "c", "d/e", "f~g"])
JSON = st.recursive(
    st.booleans() | st.integers(0, 3) | NAMES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=6,
)
OBJECTS = st.dictionaries(NAMES, JSON, max_size=3)


@pytest.mark.parametrize(
    ("document", "patch", "patched"),
    [
        pytest.param({"a": "b"}, {"a": "c"}, {"a": "c"}, id="replace"),
        pytest.param({"a": "b"}, {"b": "c"}, {"a": "b", "b": "c"}, id="add"),
        pytest.param({"a": "b", "b": "c"}, {"a": None}, {"b": "c"}, id="remove"),
        pytest.param({"a": ["b"]}, {"a": "c"}, {"a": "c"}, id="another type"),
        pytest.param({"a": {"b": "c"}}, {"a": {"b": "d", "c": None}}, {"a": {"b": "d"}}, id="nested"),
        pytest.param({"a": [{"b": "c"}]}, {"a": [1]}, {"a": [1]}, id="a list is replaced"),
        pytest.param({"a": "b"}, {"c": {"d": None, "e": 1}}, {"a": "b", "c": {"e": 1}}, id="nulls in a new object"),
        pytest.param({}, {"a": [{"b": None, "c": 1}, None]}, {"a": [{"c": 1}, None]}, id="nulls in a new list"),
        pytest.param(
            {"a": {"b": 1}},
            {"a": [{"b": None}]},
            {"a": [{"b": None}]},
            id="a list that replaces an object keeps its nulls",
        ),
    ],
)
def test_merge_patch(document: Any, patch: Any, patched: Any) -> None:
    assert merge_patch(document, patch) == patched


@given(OBJECTS, OBJECTS)
def test_a_repeated_merge_patch_changes_nothing(document: dict[str, Any], patch: dict[str, Any]) -> None:
    once = merge_patch(document, patch)

    assert merge_patch(once, patch) == once


@pytest.mark.parametrize(
    ("document", "operations", "patched"),
    [
        pytest.param({"a": 1}, [{"op": "add", "path": "/b", "value": 2}], {"a": 1, "b": 2}, id="add a member"),
        pytest.param({"a": [1, 3]}, [{"op": "add", "path": "/a/1", "value": 2}], {"a": [1, 2, 3]}, id="insert"),
        pytest.param({"a": [1]}, [{"op": "add", "path": "/a/-", "value": 2}], {"a": [1, 2]}, id="append"),
        pytest.param({"a": [1]}, [{"op": "add", "path": "/a/1", "value": 2}], {"a": [1, 2]}, id="add at the end"),
        pytest.param({"a": 1}, [{"op": "remove", "path": "/a"}], {}, id="remove a member"),
        pytest.param({"a": [1, 2]}, [{"op": "remove", "path": "/a/0"}], {"a": [2]}, id="remove an item"),
        pytest.param({"a": [1]}, [{"op": "replace", "path": "/a/0", "value": 2}], {"a": [2]}, id="replace an item"),
        pytest.param({"a": 1}, [{"op": "replace", "path": "", "value": {"b": 2}}], {"b": 2}, id="replace all"),
        pytest.param({"a": 1}, [{"op": "move", "from": "/a", "path": "/b"}], {"b": 1}, id="move"),
        pytest.param({"a": [1, 2]}, [{"op": "move", "from": "/a/0", "path": "/a/1"}], {"a": [2, 1]}, id="move an item"),
        pytest.param({"a": [1]}, [{"op": "copy", "from": "/a", "path": "/b"}], {"a": [1], "b": [1]}, id="copy"),
        pytest.param(
            {"a/b": {"c~d": 1}},
            [{"op": "replace", "path": "/a~1b/c~0d", "value": 2}],
            {"a/b": {"c~d": 2}},
            id="escapes",
        ),
        pytest.param({"a": 1.5}, [{"op": "test", "path": "/a", "value": 1.5}], {"a": 1.5}, id="test of a number"),
        pytest.param(
            {"a": [1, 2]}, [{"op": "add", "path": "/a/-1", "value": 3}], {"a": [1, 2, 3]}, id="add at the end"
        ),
        pytest.param({"a": [1, 2]}, [{"op": "add", "path": "/a/-3", "value": 3}], {"a": [3, 1, 2]}, id="add as first"),
        pytest.param({"a": [1, 2]}, [{"op": "remove", "path": "/a/-1"}], {"a": [1]}, id="remove from the end"),
        pytest.param({"a": [1, 2]}, [{"op": "replace", "path": "/a/-2", "value": 3}], {"a": [3, 2]}, id="from the end"),
        pytest.param({"a": [1, 2]}, [{"op": "replace", "path": "/a/01", "value": 3}], {"a": [1, 3]}, id="leading zero"),
        pytest.param({"a": [1, 2]}, [{"op": "move", "from": "/a/+1", "path": "/a/0"}], {"a": [2, 1]}, id="a sign"),
        pytest.param({"a": 1}, [{"op": "add", "path": "/a"}], {"a": None}, id="no value is null"),
        pytest.param({"a": 1}, [{"op": "test", "path": "/b", "value": None}], {"a": 1}, id="a missing member is null"),
        pytest.param({"": 1}, [{"op": "replace", "path": "/", "value": 2}], {"": 2}, id="the empty member"),
    ],
)
def test_json_patch(document: Any, operations: list[Any], patched: Any) -> None:
    assert json_patch(document, operations) == patched


@pytest.mark.parametrize(
    "operation",
    [
        pytest.param({"op": "add", "path": "/a/5", "value": 1}, id="beyond the end"),
        pytest.param({"op": "add", "path": "/x/y", "value": 1}, id="no parent"),
        pytest.param({"op": "add", "path": "a", "value": 1}, id="malformed pointer"),
        pytest.param({"op": "add", "value": 1}, id="no path"),
        pytest.param({"op": "add", "path": "/a/1.0", "value": 1}, id="a fraction"),
        pytest.param({"op": "add", "path": "/a/ 1", "value": 1}, id="a blank"),
        pytest.param({"op": "add", "path": "", "value": {}}, id="add the whole document"),
        pytest.param({"op": "remove", "path": "/a/-9"}, id="before the start"),
        pytest.param({"op": "remove", "path": "/x"}, id="remove a missing member"),
        pytest.param({"op": "remove", "path": "/a/-"}, id="remove behind the last item"),
        pytest.param({"op": "replace", "path": "/x/y", "value": 1}, id="replace in a missing member"),
        pytest.param({"op": "move", "from": "/x", "path": "/y"}, id="move a missing member"),
        pytest.param({"op": "move", "from": "/o", "path": "/o/p"}, id="move into itself"),
        pytest.param({"op": "copy", "from": "/a/2", "path": "/y"}, id="copy a missing item"),
        pytest.param({"op": "test", "path": "/a/0", "value": True}, id="test of a number with a boolean"),
        pytest.param({"op": "test", "path": "/a/0", "value": 1.0}, id="test of a number that is written otherwise"),
        pytest.param({"op": "test", "path": "/b/c", "value": 1}, id="path into a string"),
        pytest.param({"op": "sing", "path": "/a"}, id="unknown operation"),
        pytest.param("add", id="operation is not an object"),
    ],
)
def test_an_inapplicable_json_patch_raises_an_error(operation: Any) -> None:
    document = {"a": [1, 2], "b": "text", "o": {"p": 1}}
    with pytest.raises(PatchError):
        json_patch(document, [operation])

    assert document == {"a": [1, 2], "b": "text", "o": {"p": 1}}


@given(OBJECTS, OBJECTS)
def test_a_patch_changes_neither_document_nor_patch(document: dict[str, Any], patch: dict[str, Any]) -> None:
    before = repr((document, patch))
    patched = merge_patch(document, patch)
    patched["new"] = 1
    json_patch(document, [{"op": "add", "path": "/new", "value": patch}])["new"]["deep"] = 1

    assert repr((document, patch)) == before


def test_a_missing_member_is_copied_as_null() -> None:
    """The RFC demands an existing member; a real API server does not."""
    assert json_patch({"a": 1}, [{"op": "copy", "from": "/x", "path": "/y"}]) == {"a": 1, "y": None}
