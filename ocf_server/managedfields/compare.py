"""Comparison of two states of an object, with the differences as field sets.

The manager of an update or patch owns the changed fields afterwards; the managers that applied them lose them.
"""

from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

from ocf.objects.json_equality import equal_json
from ocf.objects.quantity import Quantity
from ocf.schema.builtin import DEDUCED, MISSING, Anything, ListType, MapType, Scalar, StructType, Type
from ocf_server.managedfields.fieldset import FieldSet, insert, recursive_difference, union
from ocf_server.managedfields.typed import deduce, is_granular, item_element

__all__ = ["Changes", "compare", "encoded_lists"]

_Path: TypeAlias = tuple[str, ...]


@dataclass(slots=True)
class Changes:
    """The fields in which two states differ.

    Args:
        removed: Fields of the first state only.
        modified: Fields of both states, with different values.
        added: Fields of the second state only.
    """

    removed: FieldSet = field(default_factory=dict)
    modified: FieldSet = field(default_factory=dict)
    added: FieldSet = field(default_factory=dict)

    @property
    def touched(self) -> FieldSet:
        """The added and modified fields."""
        return union(self.modified, self.added)

    def without(self, fields: FieldSet) -> "Changes":
        """Return the changes without some fields and all fields below them."""
        return Changes(
            removed=recursive_difference(self.removed, fields),
            modified=recursive_difference(self.modified, fields),
            added=recursive_difference(self.added, fields),
        )


def compare(left: Any, right: Any, kind: Type) -> Changes:
    """Compare two states of a value.

    Returns:
        The differences, in the smallest fields that can have owners.

    Example:
        >>> from ocf.schema.builtin import struct
        >>> compare({"spec": {"replicas": 1}}, {"spec": {"replicas": 2, "paused": True}}, struct("apps.v1.Deployment"))
        Changes(removed={}, modified={'f:spec': {'f:replicas': {}}}, added={'f:spec': {'f:paused': {}}})
    """
    changes = Changes()
    _compare(left, right, kind, (), changes)
    return changes


def _compare(left: Any, right: Any, kind: Type, path: _Path, out: Changes) -> None:
    # Unchanged parts are shared between two states, so most of an object ends here.
    if left is right:
        return
    if kind.__class__ is Scalar:
        _compare_leaf(left, right, path, out)
        return
    leaf = False
    for chosen in _types(left, right, kind):
        leaf = _compare_as(left, right, chosen, path, out)
    if not leaf:
        if left is MISSING:
            insert(out.added, path)
        elif right is MISSING:
            insert(out.removed, path)


def _types(left: Any, right: Any, kind: Type) -> tuple[Type, ...]:
    if not isinstance(kind, Anything):
        return (kind,)
    if right is MISSING:
        return (deduce(left, kind),)
    second = deduce(right, kind)
    if left is MISSING or left is None:
        return (second,)
    first = deduce(left, kind)
    if right is None:
        return (first,)
    # A value without a declared type may change its shape; then it is compared as each of them.
    return (second,) if first is second else (first, second)


def _compare_as(left: Any, right: Any, kind: Type, path: _Path, out: Changes) -> bool:
    """Compare two values as one type; return whether they were compared as one leaf."""
    # A null, or a value of another shape, counts as empty: structured-merge-diff reports the fields of the other side.
    first, second = _parts(left, kind), _parts(right, kind)
    if not is_granular(kind) or not (first or second):
        _compare_leaf(left, right, path, out)
        return True
    if isinstance(kind, ListType):
        _compare_lists(first, second, kind, path, out)
        return False
    for name in {**first, **second}:
        before, after = first.get(name, MISSING), second.get(name, MISSING)
        if before is not after:
            _compare(before, after, _type_of(kind, name), (*path, f"f:{name}"), out)
    return False


def _parts(value: Any, kind: Type) -> Any:
    """Return the fields or items of a value; empty if it is absent, null or of another type."""
    if isinstance(kind, ListType):
        return value if isinstance(value, list) else []
    return value if isinstance(value, dict) else {}


def _type_of(kind: Type, name: str) -> Type:
    if isinstance(kind, StructType):
        known = kind.fields.get(name)
        return known.type if known else kind.extra or DEDUCED
    return kind.value if isinstance(kind, MapType) else DEDUCED


def _compare_leaf(left: Any, right: Any, path: _Path, out: Changes) -> None:
    if left is MISSING:
        insert(out.added, path)
    elif right is MISSING:
        insert(out.removed, path)
    elif not equal_json(left, right):
        insert(out.modified, path)


def _compare_lists(left: list[Any], right: list[Any], kind: ListType, path: _Path, out: Changes) -> None:
    first, second = _by_element(left, kind), _by_element(right, kind)
    for element in {**first, **second}:
        _compare_items(first.get(element, []), second.get(element, []), kind.item, (*path, element), out)


def _by_element(items: list[Any], kind: ListType) -> dict[str, list[Any]]:
    out: dict[str, list[Any]] = {}
    for item in items:
        out.setdefault(item_element(kind, item), []).append(item)
    return out


def _compare_items(left: list[Any], right: list[Any], kind: Type, path: _Path, out: Changes) -> None:
    """Compare the items with one path element; several items with the same element are one leaf."""
    if len(left) <= 1 and len(right) <= 1:
        _compare(left[0] if left else MISSING, right[0] if right else MISSING, kind, path, out)
    elif len(left) > 1 and len(right) > 1:
        if not equal_json(left, right):
            insert(out.modified, path)
    elif len(left) > 1:
        if right:
            _compare(MISSING, right[0], kind, path, out)
        insert(out.removed, path)
    else:
        if left:
            _compare(left[0], MISSING, kind, path, out)
        insert(out.added, path)


_LISTS: Final = {"HorizontalPodAutoscaler": (("spec", "metrics"), ("status", "currentMetrics"))}
"""The atomic lists of quantities. In others these are in maps, which hold copies, or have a text that is kept."""


def encoded_lists(live: Any, new: Any, kind: StructType) -> FieldSet:
    """Return the lists of a new object that an update of a real API server takes for modified, even if they are equal.

    It compares the values of atomic lists as Go does (`listReflect` in structured-merge-diff). A quantity contains its
    text only if it was read or encoded as such, and the stored object has been encoded, the new one has not.

    Example:
        >>> from ocf.schema.builtin import struct
        >>> target = {"type": "AverageValue", "averageValue": "512Mi"}
        >>> metrics = [{"type": "Resource", "resource": {"name": "memory", "target": target}}]
        >>> autoscaler = {"spec": {"metrics": metrics}}
        >>> encoded_lists(autoscaler, autoscaler, struct("autoscaling.v2.HorizontalPodAutoscaler"))
        {'f:spec': {'f:metrics': {}}}
    """
    found: FieldSet = {}
    for part, name in _LISTS.get(kind.name, ()):
        before, after = ((each.get(part) or {}).get(name) for each in (live, new))
        below = kind.fields[part].type
        listed = below.fields.get(name) if isinstance(below, StructType) else None
        if before and after and listed and _has_computed_text(after, listed.type):
            insert(found, (f"f:{part}", f"f:{name}"))
    return found


def _has_computed_text(value: Any, kind: Type) -> bool:
    if kind is Scalar.QUANTITY:
        return not Quantity.parse(value).is_as_written
    if isinstance(kind, ListType):
        return any(_has_computed_text(item, kind.item) for item in value)
    if not isinstance(kind, StructType):
        return False
    return any(name in kind.fields and _has_computed_text(item, kind.fields[name].type) for name, item in value.items())
