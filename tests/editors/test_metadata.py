"""ObjectMetaEditor: labels and annotations."""

from collections.abc import Callable
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kubernetes.client import V1ObjectMeta

from ocf.editors import ObjectMetaEditor
from ocf.errors import ConfigError
from ocf.objects import write_model


class Map(NamedTuple):
    """One of the two maps, and its two methods."""

    field: str
    ensure: Callable[[ObjectMetaEditor, str, str], None]
    remove: Callable[[ObjectMetaEditor, str], None]

    def meta(self, present: dict[str, str] | None) -> V1ObjectMeta:
        return V1ObjectMeta.model_validate({"name": "web", self.field: present})


@pytest.mark.parametrize(
    "a_map",
    [
        Map("labels", ObjectMetaEditor.ensure_label, ObjectMetaEditor.remove_label),
        Map("annotations", ObjectMetaEditor.ensure_annotation, ObjectMetaEditor.remove_annotation),
    ],
    ids=lambda a_map: a_map.field,
)
class TestMaps:
    def test_ensure_makes_the_map_where_it_is_absent(self, a_map: Map) -> None:
        meta = a_map.meta(None)

        a_map.ensure(ObjectMetaEditor(meta), "a", "1")

        assert write_model(meta) == {"name": "web", a_map.field: {"a": "1"}}

    def test_ensure_overwrites(self, a_map: Map) -> None:
        meta = a_map.meta({"a": "1", "b": "2"})

        a_map.ensure(ObjectMetaEditor(meta), "a", "3")

        assert write_model(meta)[a_map.field] == {"a": "3", "b": "2"}

    @pytest.mark.parametrize("present", [None, {}, {"b": "2"}], ids=["no map", "empty map", "other key"])
    def test_removing_what_is_not_there_changes_nothing(self, a_map: Map, present: dict[str, str] | None) -> None:
        """An empty map that the user wrote stays an empty map."""
        meta = a_map.meta(present)

        a_map.remove(ObjectMetaEditor(meta), "a")

        assert getattr(meta, a_map.field) == present

    def test_removing_the_last_key_unsets_the_map(self, a_map: Map) -> None:
        meta = a_map.meta({"a": "1"})

        a_map.remove(ObjectMetaEditor(meta), "a")

        assert write_model(meta) == {"name": "web"}

    def test_edits_reach_a_map_taken_from_raw(self, a_map: Map) -> None:
        editor = ObjectMetaEditor(a_map.meta({"a": "1"}))
        held = getattr(editor.raw, a_map.field)

        a_map.ensure(editor, "b", "2")

        assert held == {"a": "1", "b": "2"}

    @pytest.mark.parametrize("value", [None, 1, True, {"a": 1}, b"x"], ids=repr)
    def test_a_value_that_is_not_a_string_is_rejected(self, a_map: Map, value: str) -> None:
        """The model would not see it, because the map is changed in place."""
        meta = a_map.meta({"a": "1"})
        editor = ObjectMetaEditor(meta)
        seen = rf"(1|True|of type {type(value).__name__})"

        with pytest.raises(ConfigError, match=rf"{a_map.field}\[b\]: must be a text, not {seen}$"):
            a_map.ensure(editor, "b", value)
        with pytest.raises(ConfigError, match=rf"key of {a_map.field}: must be a text"):
            a_map.ensure(editor, value, "b")
        with pytest.raises(ConfigError, match=rf"key of {a_map.field}: must be a text"):
            a_map.remove(editor, value)

        assert getattr(meta, a_map.field) == {"a": "1"}

    @given(data=st.data())
    def test_laws(self, a_map: Map, data: st.DataObject) -> None:
        """Ensuring twice is ensuring once; removing then leaves the other keys, in their order, and no empty map."""
        texts = st.text(max_size=3)
        present = data.draw(st.none() | st.dictionaries(texts, texts, min_size=1, max_size=4))
        key, value = data.draw(texts), data.draw(texts)
        meta = a_map.meta(present)
        editor = ObjectMetaEditor(meta)

        a_map.ensure(editor, key, value)
        once = write_model(meta)
        a_map.ensure(editor, key, value)

        assert once == write_model(meta)

        a_map.remove(editor, key)

        others = [(k, v) for k, v in (present or {}).items() if k != key]
        left = getattr(meta, a_map.field)
        assert others == list((left or {}).items())
        assert left != {}


def test_raw_is_the_live_metadata() -> None:
    meta = V1ObjectMeta()

    ObjectMetaEditor(meta).raw.name = "web"

    assert meta.name == "web"
