"""Write backoff for the status of an owner, for each condition and each other field of the status by itself.

The keys of a map count as fields, too, because several writers may each set some of them.

Two versions of an operator, or two operators, that insist on different values of one condition would write whenever the
other one has written. As for objects, a value that was reverted three times waits before it is written again.

* The time of the last transition does not count: it changes with each reversal.
* A new generation of the owner starts anew: what it results in is written at once.
* Another value of ours waits for a minute after our last write at most, however long the fight has lasted. Without any
  delay, two writers whose values always differ, such as times, would not be slowed down.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from hashlib import blake2b
from json import dumps
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

from ocf.component.model.ownership import status_of
from ocf.component.model.unstored_fields import dropped_fields, without_fields
from ocf.component.model.write_backoff import record_revert, wait, written
from ocf.objects.conditions import has_type, typed_conditions, with_condition
from ocf.objects.managed_fields import ManagedFields

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from ocf.cluster import ApplyCache
    from ocf.cluster.apply_cache import LastWrite
    from ocf.component.model.ownership import Owner
    from ocf.objects import Manifest

__all__ = ["HeldStatus", "hold_back", "note_status"]

_Path: TypeAlias = tuple[str, ...]

# How many fields a message names.
_NAMED: Final = 3
_NEW_VALUE: Final = timedelta(minutes=1)
_TIME: Final = "lastTransitionTime"


class HeldStatus(NamedTuple):
    """A status in which values that wait are those that are stored, and a message about reverts that are new."""

    status: Manifest
    problem: str = ""
    retry_after: timedelta | None = None


def hold_back(status: Manifest, live: Manifest, owner: Owner, cache: ApplyCache, elapsed: timedelta) -> HeldStatus:
    """Return the status that may be written now."""
    stored = status_of(live)
    held: dict[_Path, timedelta] = {}
    new: list[_Path] = []
    for path, (wanted, there) in sorted(_differences(status, stored).items()):
        last = cache.last_write(owner.key, _record(owner, path))
        if last is None or last.version != _generation(owner) or last.desired_hash == _digest(there):
            continue
        reverted = record_revert(last, last.desired_hash, elapsed) or last
        cache.note_write(owner.key, _record(owner, path), reverted)
        rest = wait(reverted, reverted.desired_hash, elapsed)
        if rest is not None and _is_new(wanted, reverted):
            rest = min(rest, reverted.at + _NEW_VALUE - elapsed)
        if rest is not None and rest > timedelta(0):
            held[path] = rest
            new += [] if last.noticed else [path]
    if not held:
        return HeldStatus(status)
    problem = f"{_text(new)} reverted repeatedly, {_other_writer(live, owner)}" if new else ""
    return HeldStatus(_with_stored(status, stored, held), problem, min(held.values()))


def _is_new(wanted: Any, last: LastWrite) -> bool:
    """Return whether a value is another one than was written last: as it was sent, or as it was stored."""
    return _digest(wanted) != last.desired_hash and _digest(without_fields(wanted, last.unstored)) != last.sent_hash


def note_status(
    stored: Manifest, live: Manifest, owner: Owner, cache: ApplyCache, elapsed: timedelta, *, sent: Manifest
) -> None:
    """Remember a write of the status.

    What the API server has stored is compared with what is stored later, and what was sent with what is to be sent: a
    field that it drops, a default that it adds, or a number that it writes otherwise is neither a revert nor another
    value of ours.
    """
    for path, (wanted, there) in _differences(stored, status_of(live)).items():
        last = cache.last_write(owner.key, _record(owner, path))
        digest, version = _digest(wanted), _generation(owner)
        goes_on = last is not None and last.version == version and last.desired_hash != _digest(there)
        # Another value of ours goes on with the same fight.
        before = replace(last, desired_hash=digest) if last is not None and goes_on else None
        value = _value_at(sent, path)
        unstored = dropped_fields(value, wanted)
        sent_hash = _digest(without_fields(value, unstored))
        record = replace(written(before, digest, elapsed, version), sent_hash=sent_hash, unstored=unstored)
        cache.note_write(owner.key, _record(owner, path), record)


def _differences(status: Manifest, stored: Manifest) -> dict[_Path, tuple[Any, Any]]:
    """Return the values that differ, None for one that is absent: of fields, keys of maps, and conditions."""
    found = dict(_differing_fields(_fields(status), _fields(stored), ()))
    ours, theirs = _conditions(status), _conditions(stored)
    for name in {**ours, **theirs}:
        if ours.get(name) != theirs.get(name):
            found["conditions", name] = ours.get(name), theirs.get(name)
    return found


def _differing_fields(ours: Manifest, theirs: Manifest, at: _Path) -> Iterator[tuple[_Path, tuple[Any, Any]]]:
    for name in {**ours, **theirs}:
        one, other = ours.get(name), theirs.get(name)
        if isinstance(one, dict) and isinstance(other, dict):
            yield from _differing_fields(one, other, (*at, name))
        elif one != other:
            yield (*at, name), (one, other)


def _fields(status: Manifest) -> Manifest:
    return {name: value for name, value in status.items() if name != "conditions"}


def _conditions(status: Manifest) -> dict[str, Any]:
    """Return what is compared of the conditions, by type."""
    found = typed_conditions(status.get("conditions"))
    return {one["type"]: {key: one[key] for key in one if key != _TIME} for one in found}


def _value_at(status: Manifest, path: _Path) -> Any:
    """Return what is compared of a status at a path; None if it is absent."""
    value: Any = {"conditions": _conditions(status)} if path[0] == "conditions" else status
    for key in path:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def _digest(value: Any) -> bytes:
    return blake2b(dumps(value, sort_keys=True, default=str).encode(), digest_size=16).digest()


def _record(owner: Owner, path: _Path) -> str:
    return f"{owner.field_manager('status')}#{_name(path)}"


def _generation(owner: Owner) -> str:
    return f"{owner.uid}/{owner.generation}"


def _with_stored(status: Manifest, stored: Manifest, held: Collection[_Path]) -> Manifest:
    """Return a status with the stored values of some paths."""
    result = status
    types = {path[1] for path in held if path[0] == "conditions"}
    for path in held:
        if path[0] != "conditions":
            result = _with_field(result, stored, path)
    if not types:
        return result
    before = {one["type"]: one for one in typed_conditions(stored.get("conditions")) if one["type"] in types}
    entries = status.get("conditions") or []
    kept = [one for one in entries if not any(has_type(one, name) for name in types - before.keys())]
    for one in before.values():
        kept = with_condition(kept, one)
    result = _fields(result)
    return {**result, "conditions": kept} if kept else result


def _with_field(status: Manifest, stored: Manifest, path: _Path) -> Manifest:
    name, *rest = path
    if rest:
        # Both are maps: otherwise the whole field would differ.
        return {**status, name: _with_field(status[name], stored[name], tuple(rest))}
    if name in stored:
        return {**status, name: stored[name]}
    return {key: value for key, value in status.items() if key != name}


def _name(path: _Path) -> str:
    return f'condition "{path[1]}"' if path[0] == "conditions" else ".".join(path)


def _text(paths: list[_Path]) -> str:
    shown = [*map(_name, paths[:_NAMED])]
    if len(paths) > _NAMED:
        shown.append(f"{len(paths) - _NAMED} more fields")
    return f"{' and '.join(shown)} of the status {'is' if len(paths) == 1 else 'are'}"


def _other_writer(live: Manifest, owner: Owner) -> str:
    ours, found = owner.field_manager("status"), ManagedFields.of(live).entries
    if not found:
        # The API server does not track an object that was created without a field, such as a Node with only a name.
        return "by a writer that the managedFields of the owner do not name"
    entries = [one for one in found if one.manager.subresource == "status" or one.owns(("status",))]
    others = [one for one in entries if one.manager.name != ours]
    last = max(others, key=lambda one: one.time, default=None)
    if last is None:
        return f'by another process with the same field manager "{ours}", or by a client that removes fields'
    return f'last changed by "{last.manager.name}", and not by "{ours}"'
