"""Changes between two JSON values, applied to a third."""

from __future__ import annotations

import json
from typing import Any

from ocf.objects.list_alignment import aligned

__all__ = ["merge_changes", "same_json"]


def merge_changes(given: Any, before: Any, after: Any) -> Any:
    """Apply the difference between two states of a model to the value that the model was read from.

    Example:
        >>> merge_changes({"new": 1, "cpu": 2}, {"cpu": "2", "replicas": 1}, {"cpu": "2", "replicas": 3})
        {'new': 1, 'cpu': 2, 'replicas': 3}
    """
    if same_json(before, after):
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
        elif not same_json(before[key], value):
            out[key] = merge_changes(given.get(key), before[key], value)
    return out


def same_json(one: Any, other: Any) -> bool:
    """Return whether two values are the same JSON; in Python, `True == 1`.

    Example:
        >>> same_json({"a": 1, "b": 2}, {"b": 2, "a": 1}), same_json(1, True)
        (True, False)
    """
    return one == other and json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)
