"""Fields of a status that an API server does not store: which ones, and a status without them.

The schema of a definition may lack fields, and built-in kinds have fixed ones; the API server then drops the others
without an error. Everything here is a function of values.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, TypeAlias

from ocf.objects import Manifest

__all__ = ["StatusPath", "dropped_fields", "path_text", "without_fields"]

StatusPath: TypeAlias = tuple[str, ...]
"""Keys from the status on; `*` stands for every item of a list, and no key for the whole status."""

_ITEM: Final = "*"


def dropped_fields(sent: Manifest, stored: Manifest) -> frozenset[StatusPath]:
    """Return the fields of a status that were sent and are not stored at all.

    Args:
        sent: The status as it was sent.
        stored: The status as it is stored.

    Example:
        >>> sent = {"phase": "Up", "conditions": [{"type": "Ready", "observedGeneration": 3}], "size": 1}
        >>> sorted(dropped_fields(sent, {"phase": "Up", "conditions": [{"type": "Ready"}]}))
        [('conditions', '*', 'observedGeneration'), ('size',)]
    """
    return frozenset(_dropped(sent, stored, ()))


def _dropped(sent: Any, stored: Any, path: StatusPath) -> Iterator[StatusPath]:
    if isinstance(sent, dict) and isinstance(stored, dict):
        for key, value in sent.items():
            if key not in stored:
                yield (*path, key)
            else:
                yield from _dropped(value, stored[key], (*path, key))
    elif isinstance(sent, list) and isinstance(stored, list) and len(sent) == len(stored):
        for one, other in zip(sent, stored, strict=True):
            yield from _dropped(one, other, (*path, _ITEM))


def without_fields(status: Any, paths: frozenset[StatusPath]) -> Any:
    """Return a copy of a status without some fields.

    Args:
        status: The status; it is not changed.
        paths: The fields.

    Example:
        >>> without_fields({"conditions": [{"type": "Ready", "observedGeneration": 3}]}, frozenset({("conditions",)}))
        {}
    """
    return _without(status, paths, ())


def _without(value: Any, paths: frozenset[StatusPath], path: StatusPath) -> Any:
    if isinstance(value, dict):
        if path in paths:
            return {}
        kept = ((key, one) for key, one in value.items() if (*path, key) not in paths)
        return {key: _without(one, paths, (*path, key)) for key, one in kept}
    if isinstance(value, list):
        return [_without(one, paths, (*path, _ITEM)) for one in value]
    return value


def path_text(path: StatusPath) -> str:
    """Return a field as messages name it.

    Args:
        path: The field.

    Example:
        >>> path_text(("conditions", "*", "observedGeneration"))
        'status.conditions[*].observedGeneration'
    """
    return ".".join(("status", *path)).replace(f".{_ITEM}", f"[{_ITEM}]")
