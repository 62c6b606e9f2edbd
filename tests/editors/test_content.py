"""UnstructuredContentEditor: fields by path, with maps created as needed and existing values preserved."""

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ocf.editors import UnstructuredContentEditor
from ocf.errors import ConfigError
from ocf.objects.paths import get_field

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@pytest.fixture
def content() -> UnstructuredContentEditor:
    return UnstructuredContentEditor({"spec": {"size": 3, "labels": {"a": "1"}, "list": [{"x": 1}], "null": None}})


class TestSetField:
    @given(value=JSON, path=st.lists(st.text(), min_size=1, max_size=4))
    def test_what_is_set_is_there_and_shares_nothing(self, value: Any, path: list[str]) -> None:
        content = UnstructuredContentEditor({})
        content.set_field(value, *path)
        stored = get_field(content.raw, path)
        assert stored == value
        assert stored is not value or not isinstance(value, dict | list)
        content.remove_field(*path)
        assert get_field(content.raw, path, "gone") == "gone"

    def test_siblings_stay(self, content: UnstructuredContentEditor) -> None:
        content.set_field(5, "spec", "size")
        content.set_field(True, "spec", "made", "on", "the way")
        assert content.raw["spec"]["size"] == 5
        assert content.raw["spec"]["labels"] == {"a": "1"}
        assert content.raw["spec"]["made"] == {"on": {"the way": True}}

    @pytest.mark.parametrize(
        ("path", "message"),
        [
            pytest.param(("spec", "size", "x"), r"spec\.size: must be a map, not of type int", id="number"),
            pytest.param(("spec", "list", "x"), r"spec\.list: must be a map, not of type list", id="list"),
            pytest.param(("spec", "null", "x"), r"spec\.null: must be a map, not of type NoneType", id="null"),
            pytest.param((), "a path needs at least one key", id="no path"),
            pytest.param(("spec", 0), "key of a path: must be a text, not 0", id="no key"),
        ],
    )
    def test_a_path_through_something_else_is_an_error_and_changes_nothing(
        self, content: UnstructuredContentEditor, path: tuple[Any, ...], message: str
    ) -> None:
        before = str(content.raw)
        with pytest.raises(ConfigError, match=message):
            content.set_field(1, *path)
        assert str(content.raw) == before

    @pytest.mark.parametrize(
        "wrong", [{1, 2}, object(), math.nan, math.inf, (1,), b"bytes"], ids=lambda one: type(one).__name__
    )
    def test_a_value_outside_json_is_rejected_with_its_path(
        self, content: UnstructuredContentEditor, wrong: object
    ) -> None:
        with pytest.raises(ConfigError, match=r"spec\.deep\.a\[1\]: must be a JSON value, not of type"):
            content.set_field({"a": [1, wrong]}, "spec", "deep")
        with pytest.raises(ConfigError, match=r"key in spec\.deep: must be a text, not 1"):
            content.set_field({1: "a"}, "spec", "deep")
        assert "deep" not in content.raw["spec"]


def test_removing_what_no_path_leads_to_is_passed_over(content: UnstructuredContentEditor) -> None:
    before = str(content.raw)
    for path in (("spec", "size", "x", "y"), ("spec", "never"), ("status", "x"), ("spec", "null", "x")):
        content.remove_field(*path)
    assert str(content.raw) == before
    with pytest.raises(ConfigError, match="a path needs at least one key"):
        content.remove_field()


class TestMapEntries:
    def test_an_entry_is_set_in_a_map_that_is_there_or_made(self, content: UnstructuredContentEditor) -> None:
        content.ensure_map_entry("a", "2", "spec", "labels")
        content.ensure_map_entry("b", "3", "spec", "selector", "matchLabels")
        assert content.raw["spec"]["labels"] == {"a": "2"}
        assert content.raw["spec"]["selector"] == {"matchLabels": {"b": "3"}}

    def test_the_map_goes_with_its_last_entry(self, content: UnstructuredContentEditor) -> None:
        content.remove_map_entry("never", "spec", "labels")
        assert content.raw["spec"]["labels"] == {"a": "1"}
        content.remove_map_entry("a", "spec", "labels")
        assert "labels" not in content.raw["spec"]

    def test_removing_from_a_map_that_is_not_there_makes_none(self, content: UnstructuredContentEditor) -> None:
        content.remove_map_entry("a", "spec", "selector", "matchLabels")
        assert "selector" not in content.raw["spec"]

    @pytest.mark.parametrize(
        ("path", "message"),
        [
            pytest.param(("spec",), r"spec\.size: must be a text in a map of texts", id="a map of other things"),
            pytest.param(("spec", "size"), r"spec\.size: must be a map", id="no map"),
            pytest.param(("spec", "list", "x"), r"spec\.list: must be a map", id="a list on the way"),
        ],
    )
    def test_anything_but_a_map_of_texts_is_an_error(
        self, content: UnstructuredContentEditor, path: tuple[str, ...], message: str
    ) -> None:
        before = str(content.raw)
        with pytest.raises(ConfigError, match=message):
            content.ensure_map_entry("a", "1", *path)
        with pytest.raises(ConfigError, match=message):
            content.remove_map_entry("a", *path)
        with pytest.raises(ConfigError, match=r"spec\.labels\[a\]: must be a text, not 1"):
            content.ensure_map_entry("a", 1, "spec", "labels")  # type: ignore[arg-type]  # the point of the test
        assert str(content.raw) == before
