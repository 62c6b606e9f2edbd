"""Merge of an applied manifest into an object, and removal of fields from an object.

Both return new values that share unchanged parts with their input; nothing is changed in place. Sharing also makes an
apply with few changes cheap: two identical Python objects are equal without a comparison.
"""

from typing import Any

from ocf.objects.json_equality import equal_json
from ocf.schema.builtin import DEDUCED, MISSING, Anything, ListType, MapType, Scalar, StructType, Type
from ocf_server.managedfields.fieldset import FieldSet, contains, subset
from ocf_server.managedfields.typed import deduce, is_granular, item_element

__all__ = ["merge", "remove"]


def merge(live: Any, applied: Any, kind: Type) -> Any:
    """Merge an applied value into the live one.

    Args:
        applied: The applied value; its fields replace those of the live value.

    Returns:
        The merged value; the live value itself if nothing changes.

    Example:
        >>> from ocf.schema.builtin import struct
        >>> merge({"labels": {"a": "1"}}, {"labels": {"b": "2"}}, struct("meta.v1.ObjectMeta"))
        {'labels': {'a': '1', 'b': '2'}}
    """
    if applied is MISSING or live is applied:
        return live
    if live is MISSING:
        return applied
    if kind.__class__ is Scalar:
        return live if equal_json(live, applied) else applied
    if isinstance(kind, Anything):
        # An applied null has no shape; that of the live value decides how it is merged.
        known = applied if applied is not None else live
        kind = deduce(known, kind)
    if not is_granular(kind):
        return live if equal_json(live, applied) else applied
    if isinstance(kind, ListType):
        return _merge_lists(live, applied, kind)
    return _merge_maps(live, applied, kind)


def _merge_maps(live: Any, applied: Any, kind: Type) -> Any:
    first = live if isinstance(live, dict) else {}
    second = applied if isinstance(applied, dict) else {}
    if not second:
        return first or (live if live == applied else applied)
    out: dict[str, Any] | None = None
    for name, value in second.items():
        known = first.get(name, MISSING)
        merged = merge(known, value, _type_of(kind, name))
        if merged is not known:
            if out is None:
                out = dict(first)
            out[name] = merged
    return live if out is None else out


def _type_of(kind: Type, name: str) -> Type:
    if isinstance(kind, StructType):
        known = kind.fields.get(name)
        return known.type if known else kind.extra or DEDUCED
    return kind.value if isinstance(kind, MapType) else DEDUCED


def _merge_lists(live: Any, applied: Any, kind: ListType) -> Any:
    first = live if isinstance(live, list) else []
    second = applied if isinstance(applied, list) else []
    if not second:
        return first or (live if live == applied else applied)
    left = [item_element(kind, item) for item in first]
    right = [item_element(kind, item) for item in second]
    out = _merge_items(first, second, left, right, kind)
    same = len(out) == len(first) and all(merged is known for merged, known in zip(out, first, strict=True))
    return live if same else out


class _ListMerger:
    """Order of a merged list: applied items in the applied order, live-only items at their live position among them."""

    def __init__(self, live: list[Any], left: list[str], right: list[str]) -> None:
        self.out: list[Any] = []
        self._live = live
        self._left = left
        self._position = 0
        self._applied = frozenset(right)
        self._shared = [element for element in right if element in frozenset(left)]
        self._done: set[str] = set()

    def add_live_items(self, stop: str | None) -> bool:
        """Append live-only items up to an applied item; return whether the live list is at that item."""
        while self._position < len(self._left):
            element = self._left[self._position]
            if element == stop:
                return True
            if element not in self._applied:
                self.out.append(self._live[self._position])
            elif stop is not None and (not self._shared or self._shared[0] == element):
                # An item that is already in the result is skipped; the applied item comes before the following items.
                self._position += element in self._done
                return False
            self._position += 1
        return False

    def add_applied_item(self, element: str, item: Any, *, at_live: bool) -> None:
        """Append an applied item."""
        self.out.append(item)
        self._done.add(element)
        self._position += at_live
        if self._shared and self._shared[0] == element:
            del self._shared[0]


def _merge_items(first: list[Any], second: list[Any], left: list[str], right: list[str], kind: ListType) -> list[Any]:
    known: dict[str, Any] = {}
    for element, item in zip(left, first, strict=True):
        # Duplicate live items are replaced by the applied item, not merged with it.
        known[element] = MISSING if element in known else item
    merger = _ListMerger(first, left, right)
    for element, item in zip(right, second, strict=True):
        at_live = merger.add_live_items(element)
        merger.add_applied_item(element, merge(known.get(element, MISSING), item, kind.item), at_live=at_live)
    merger.add_live_items(None)
    return merger.out


def remove(value: Any, fields: FieldSet, kind: Type) -> Any:
    """Return a value without some fields.

    Args:
        fields: The fields to remove, with paths that start at the value.

    Returns:
        The value without the fields. A map or list that becomes empty is null, as on a real API server.

    Example:
        >>> from ocf.schema.builtin import struct
        >>> remove({"labels": {"a": "1"}, "name": "x"}, {"f:labels": {"f:a": {}}}, struct("meta.v1.ObjectMeta"))
        {'labels': None, 'name': 'x'}
    """
    if isinstance(kind, Anything):
        kind = deduce(value, kind)
    if isinstance(kind, Scalar):
        return value
    # An atomic value goes as a whole: no field below it can have another owner.
    if not value or not is_granular(kind):
        return None
    out = _remove_items(value, fields, kind) if isinstance(kind, ListType) else _remove_fields(value, fields, kind)
    return out or None


def _remove_items(value: list[Any], fields: FieldSet, kind: ListType) -> list[Any]:
    out = []
    for item in value:
        element = item_element(kind, item)
        if contains(fields, [element]):
            continue
        below = subset(fields, element)
        out.append(remove(item, below, kind.item) if below else item)
    return out


def _remove_fields(value: dict[str, Any], fields: FieldSet, kind: Type) -> dict[str, Any]:
    out = {}
    for name, item in value.items():
        element = f"f:{name}"
        if element not in fields:
            out[name] = item
        elif not contains(fields, [element]):
            out[name] = remove(item, subset(fields, element), _type_of(kind, name))
    return out
