"""Minimal JSON patches for the changes that a defaulter made.

A model does not represent an object exactly: it ignores unknown fields, adds its own defaults and formats some values
differently. So the serialized model is never sent. Instead the difference between the model before and after the
defaulter is applied to the object of the request.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from ocf.objects import aligned

__all__ = ["json_patch", "merge_changes"]


def merge_changes(given: Any, before: Any, after: Any) -> Any:
    """Apply the difference between two states of a model to the value that the model was read from.

    Args:
        given: The original JSON value; not changed. None if the field is absent.
        before: The serialized model before the change.
        after: The serialized model after the change.

    Returns:
        The original value with the same changes, and no others.

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
    """Yield a change as a JSON patch (RFC 6902) with one operation per changed field.

    Args:
        before: A JSON value.
        after: The new value.
        path: The path of the value, as a JSON pointer.

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
    """Return whether two values are the same JSON; in Python, `True == 1`."""
    return one == other and json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)


def _below(path: str, key: str | int) -> str:
    return f"{path}/{str(key).replace('~', '~0').replace('/', '~1')}"
