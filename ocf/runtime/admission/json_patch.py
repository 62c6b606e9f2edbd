"""From what a function made of an object to the least change of the object.

A model does not hold all of an object: it passes over fields that it does not know, fills in its own defaults and
spells some values in its own way. So what it is written as is never sent. What counts is the difference between the
model before and after the function, and that is carried over to the object as it came.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from ocf.objects import aligned

__all__ = ["json_patch", "merge_changes"]


def merge_changes(given: Any, before: Any, after: Any) -> Any:
    """Do to a value what was done to another view of it.

    Args:
        given: The value as it came, JSON; left as it is. None where it has no such field.
        before: What the view showed of it.
        after: The view as it is now.

    Returns:
        The value with the same changes, and no others.

    Example:
        >>> merge_changes({"new": 1, "cpu": 2}, {"cpu": "2", "replicas": 1}, {"cpu": "2", "replicas": 3})
        {'new': 1, 'cpu': 2, 'replicas': 3}
    """
    if _same(before, after):
        return given
    if isinstance(before, dict) and isinstance(after, dict) and isinstance(given, dict | None):
        return _merge_map(given or {}, before, after)
    if isinstance(before, list) and isinstance(after, list) and isinstance(given, list) and len(given) == len(before):
        places = aligned(before, after)
        return [
            item if place is None else merge_changes(given[place], before[place], item)
            for item, place in zip(after, places, strict=True)
        ]
    return after


def _merge_map(given: dict[str, Any], before: dict[str, Any], after: dict[str, Any]) -> dict[str, Any]:
    out = {key: value for key, value in given.items() if key in after or key not in before}
    for key, value in after.items():
        if key not in before:
            out[key] = value
        elif not _same(before[key], value):
            out[key] = merge_changes(given.get(key), before[key], value)
    return out


def json_patch(before: Any, after: Any, path: str = "") -> Iterator[dict[str, Any]]:
    """Write a change as a JSON patch (RFC 6902), in its simplest form: each field that differs, once.

    Args:
        before: A JSON value.
        after: What it shall be.
        path: Where the value is, as a JSON pointer.

    Yields:
        Operations `add`, `remove` and `replace`.

    Example:
        >>> list(json_patch({"spec": {"a": 1}}, {"spec": {"a": 1, "b/c": [2]}}))
        [{'op': 'add', 'path': '/spec/b~1c', 'value': [2]}]
    """
    if _same(before, after):
        return
    if isinstance(before, dict) and isinstance(after, dict):
        yield from ({"op": "remove", "path": _below(path, key)} for key in before if key not in after)
        for key, value in after.items():
            if key in before:
                yield from json_patch(before[key], value, _below(path, key))
            else:
                yield {"op": "add", "path": _below(path, key), "value": value}
    elif isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        for position, (old, new) in enumerate(zip(before, after, strict=True)):
            yield from json_patch(old, new, _below(path, position))
    else:
        yield {"op": "replace", "path": path, "value": after}


def _same(one: Any, other: Any) -> bool:
    """Tell whether two values are the same JSON; to Python, `True` is 1."""
    return one == other and json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)


def _below(path: str, key: str | int) -> str:
    return f"{path}/{str(key).replace('~', '~0').replace('/', '~1')}"
