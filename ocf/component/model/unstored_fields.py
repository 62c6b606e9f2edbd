"""Fields of a value that the API server does not store: it drops those that the schema of the kind does not have."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, TypeAlias

__all__ = ["ITEM", "ValuePath", "dropped_fields", "without_fields"]

ValuePath: TypeAlias = tuple[str, ...]
"""Keys from the value on; `ITEM` stands for every item of a list, and no key for the whole value."""

ITEM: Final = "*"
"""The key that stands for every item of a list."""


def dropped_fields(sent: Any, stored: Any) -> frozenset[ValuePath]:
    """Return the fields of a value that were sent and are not stored at all.

    The API server leaves out an empty value (`""`, 0, false) of many a field that it stores: the next value may be one
    that it does not leave out, so an empty one says nothing about the field.

    Example:
        >>> sent = {"phase": "Up", "conditions": [{"type": "Ready", "observedGeneration": 3}], "size": 1}
        >>> sorted(dropped_fields(sent, {"phase": "Up", "conditions": [{"type": "Ready"}]}))
        [('conditions', '*', 'observedGeneration'), ('size',)]
    """
    return frozenset(_dropped(sent, stored, ()))


def _dropped(sent: Any, stored: Any, path: ValuePath) -> Iterator[ValuePath]:
    if isinstance(sent, dict) and isinstance(stored, dict):
        for key, value in sent.items():
            if key not in stored:
                if value:
                    yield (*path, key)
            else:
                yield from _dropped(value, stored[key], (*path, key))
    elif isinstance(sent, list) and isinstance(stored, list) and len(sent) == len(stored):
        for one, other in zip(sent, stored, strict=True):
            yield from _dropped(one, other, (*path, ITEM))


def without_fields(value: Any, paths: frozenset[ValuePath]) -> Any:
    """Return a copy of a value without some fields.

    Example:
        >>> without_fields({"conditions": [{"type": "Ready", "observedGeneration": 3}]}, frozenset({("conditions",)}))
        {}
    """
    return _without(value, paths, ())


def _without(value: Any, paths: frozenset[ValuePath], path: ValuePath) -> Any:
    if isinstance(value, dict):
        if path in paths:
            return {}
        kept = ((key, one) for key, one in value.items() if (*path, key) not in paths)
        return {key: _without(one, paths, (*path, key)) for key, one in kept}
    if isinstance(value, list):
        return [_without(one, paths, (*path, ITEM)) for one in value]
    return value
