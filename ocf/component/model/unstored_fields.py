"""What the API server does not store as it is sent: it drops fields that the schema of the kind does not have.

A status is compared in parts: each of its fields, and each condition. What was sent of a part that is stored otherwise
is kept in the memory of the process. It is the condition that was observed last, and it is not sent again as long as
the same is stored.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from ocf.objects import Manifest, copy_json
from ocf.objects.conditions import with_condition

if TYPE_CHECKING:
    from ocf.cluster.apply_cache import Rewrites

__all__ = [
    "ITEM",
    "ValuePath",
    "dropped_fields",
    "is_stored",
    "recalled",
    "rewritten_parts",
    "without_conditions",
    "without_fields",
]

ValuePath: TypeAlias = tuple[str, ...]
"""Keys from the value on; `ITEM` stands for every item of a list, and no key for the whole value."""

ITEM: Final = "*"
"""The key that stands for every item of a list."""
_CONDITIONS: Final = "conditions"
_CONDITION: Final = f"{_CONDITIONS}/"


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


def recalled(stored: Manifest, rewrites: Rewrites) -> Manifest:
    """Return a stored status with the conditions that were sent in place of those that the API server has stored.

    A condition that another writer has changed since then stays as it is stored.

    Example:
        >>> sent = {"type": "Ready", "status": "True", "observedGeneration": 3}
        >>> known = {"conditions/Ready": (sent, {"type": "Ready", "status": "True"})}
        >>> recalled({"conditions": [{"type": "Ready", "status": "True"}]}, known)
        {'conditions': [{'type': 'Ready', 'status': 'True', 'observedGeneration': 3}]}
        >>> recalled({"conditions": [{"type": "Ready", "status": "False"}]}, known)
        {'conditions': [{'type': 'Ready', 'status': 'False'}]}
    """
    conditions = stored.get(_CONDITIONS) or []
    if not rewrites or not isinstance(conditions, list):
        return stored
    parts = _parts(stored)
    for name, (sent, there) in rewrites.items():
        if name.startswith(_CONDITION) and sent is not None and parts.get(name) == there:
            conditions = with_condition(conditions, sent)
    return {**stored, _CONDITIONS: conditions} if conditions else stored


def is_stored(status: Manifest, stored: Manifest, rewrites: Rewrites) -> bool:
    """Return whether a status is stored as far as the API server stores it: a write would change nothing.

    Of a condition, another status or generation is sent although it was dropped before, because the definition may be
    complete by now. Whatever else differs only in what was dropped, such as the time of the reconcile, is not.
    """
    if status == stored:
        return True
    ours, theirs = _parts(status), _parts(stored)
    return all(_is_known(ours.get(name), theirs.get(name), rewrites.get(name)) for name in {**ours, **theirs})


def _is_known(ours: Any, theirs: Any, rewrite: tuple[Any, Any] | None) -> bool:
    """Return whether a part is stored as it is to be, or as a former one that differs only in what was dropped."""
    if ours == theirs or rewrite is None or rewrite[1] != theirs:
        return bool(ours == theirs)
    sent = rewrite[0]
    if ours == sent or not ours or not sent:
        return bool(ours == sent)
    if theirs is None:
        return _probes(ours) == _probes(sent)
    dropped = dropped_fields(sent, theirs)
    return without_fields(ours, dropped) == without_fields(sent, dropped) and _probes(ours) == _probes(sent)


def _probes(part: Any) -> tuple[Any, Any] | None:
    """Return what of a condition is sent although it may be dropped."""
    return (part.get("status"), part.get("observedGeneration")) if isinstance(part, dict) and "type" in part else None


def rewritten_parts(status: Manifest, stored: Manifest, before: Rewrites) -> Rewrites:
    """Return the parts of a status that are stored otherwise than they were sent.

    Args:
        before: Those of an earlier status. A field stays known while it is not sent, because some authors set it in
            some reconciles only; a condition that is not sent was removed.
    """
    if status == stored and not before:
        return before
    ours, theirs = _parts(status), _parts(stored)
    unsent = {name for name in before if not name.startswith(_CONDITION) and name not in ours and name not in theirs}
    found = {name: (copy_json(ours.get(name)), theirs.get(name)) for name in {**ours, **theirs}}
    return {name: before[name] for name in before if name in unsent} | {
        name: pair for name, pair in found.items() if pair[0] != pair[1]
    }


def without_conditions(status: Manifest, types: Collection[str]) -> Manifest:
    """Return a status without the conditions of some types."""
    conditions = status.get(_CONDITIONS)
    if not types or not isinstance(conditions, list):
        return status
    # Another client may have stored a type that is no text, and cannot be looked up in a set.
    listed = list(types)
    kept = [one for one in conditions if not (isinstance(one, dict) and one.get("type") in listed)]
    rest = {name: value for name, value in status.items() if name != _CONDITIONS}
    return {**rest, _CONDITIONS: kept} if kept else rest


def _parts(status: Manifest) -> dict[str, Any]:
    """Return the parts of a status by name; entries of the conditions that have no type of their own are one part."""
    parts = {name: value for name, value in status.items() if name != _CONDITIONS}
    conditions = status.get(_CONDITIONS)
    if not isinstance(conditions, list):
        return parts if conditions is None else {**parts, _CONDITIONS: conditions}
    others = []
    for one in conditions:
        kind = one.get("type") if isinstance(one, dict) else None
        name = f"{_CONDITION}{kind}"
        if isinstance(kind, str) and kind and name not in parts:
            parts[name] = one
        else:
            others.append(one)
    return {**parts, _CONDITIONS: others} if others else parts
