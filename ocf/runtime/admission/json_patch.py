"""Changes of an object as a JSON patch (RFC 6902)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ocf.objects.json_changes import same_json

__all__ = ["json_patch"]


def json_patch(before: Any, after: Any, path: str = "") -> Iterator[dict[str, Any]]:
    """Yield a change as a JSON patch (RFC 6902) with one operation per changed field.

    Example:
        >>> list(json_patch({"spec": {"a": 1}}, {"spec": {"a": 1, "b/c": [2]}}))
        [{'op': 'add', 'path': '/spec/b~1c', 'value': [2]}]
    """
    if same_json(before, after):
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


def _below(path: str, key: str | int) -> str:
    return f"{path}/{str(key).replace('~', '~0').replace('/', '~1')}"
