"""Write backoff for the status of an owner, for each condition and each other field of the status by itself.

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
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from ocf.component.model.write_backoff import record_revert, wait, written
from ocf.objects.managed_fields import ManagedFields

if TYPE_CHECKING:
    from ocf.cluster import ApplyCache
    from ocf.component.model.ownership import Owner
    from ocf.objects import Manifest

__all__ = ["HeldStatus", "hold_back", "note_status"]

_NEW_VALUE: Final = timedelta(minutes=1)
_TIME: Final = "lastTransitionTime"


class HeldStatus(NamedTuple):
    """A status without the values that wait.

    Args:
        status: The status to write; values that wait are those that are stored.
        problem: Message about reverts that were not reported before; empty if there are none.
        retry_after: Time until a value that waits is written; None if none does.
    """

    status: Manifest
    problem: str = ""
    retry_after: timedelta | None = None


def hold_back(status: Manifest, live: Manifest, owner: Owner, cache: ApplyCache, elapsed: timedelta) -> HeldStatus:
    """Return the status that may be written now.

    Args:
        status: The status that is wanted; it is not changed.
        live: The owner as read.
        owner: Its key, uid and generation.
        cache: Knows the last writes of this process.
        elapsed: Time of the reconcile on the monotonic clock.
    """
    stored = live.get("status") or {}
    wanted, there = _values(status), _values(stored)
    held: dict[str, timedelta] = {}
    new: list[str] = []
    for name in sorted(_differing(wanted, there)):
        last = cache.last_write(owner.key, _record(owner, name))
        if last is None or last.version != _generation(owner) or last.desired_hash == _digest(there.get(name)):
            continue
        reverted = record_revert(last, last.desired_hash, elapsed) or last
        cache.note_write(owner.key, _record(owner, name), reverted)
        rest = wait(reverted, reverted.desired_hash, elapsed)
        if rest is not None and reverted.desired_hash != _digest(wanted.get(name)):
            rest = min(rest, reverted.at + _NEW_VALUE - elapsed)
        if rest is not None and rest > timedelta(0):
            held[name] = rest
            new += [] if last.noticed else [name]
    if not held:
        return HeldStatus(status)
    problem = f"{_text(new)} reverted repeatedly, {_other_writer(live, owner)}" if new else ""
    return HeldStatus(_with_stored(status, stored, held.keys()), problem, min(held.values()))


def note_status(stored: Manifest, live: Manifest, owner: Owner, cache: ApplyCache, elapsed: timedelta) -> None:
    """Remember a write of the status.

    What the API server has stored is remembered, and not what was sent: a field that it drops, a default that it adds,
    or a number that it writes otherwise is not a revert.

    Args:
        stored: The status as the API server has stored it.
        live: The owner as read before.
        owner: Its key, uid and generation.
        cache: Remembers the write.
        elapsed: Time of the reconcile on the monotonic clock.
    """
    wanted, there = _values(stored), _values(live.get("status") or {})
    for name in _differing(wanted, there):
        last = cache.last_write(owner.key, _record(owner, name))
        digest, version = _digest(wanted.get(name)), _generation(owner)
        goes_on = last is not None and last.version == version and last.desired_hash != _digest(there.get(name))
        # Another value of ours goes on with the same fight.
        before = replace(last, desired_hash=digest) if last is not None and goes_on else None
        cache.note_write(owner.key, _record(owner, name), written(before, digest, elapsed, version))


def _values(status: Manifest) -> dict[str, Any]:
    """Return the values that are compared, by name: the fields, and `condition "WebReady"`."""
    fields = {name: value for name, value in status.items() if name != "conditions"}
    conditions = {_name(one): {key: one[key] for key in one if key != _TIME} for one in status.get("conditions") or []}
    return fields | conditions


def _name(condition: Manifest) -> str:
    return f'condition "{condition.get("type")}"'


def _differing(wanted: dict[str, Any], there: dict[str, Any]) -> list[str]:
    return [name for name in {**wanted, **there} if wanted.get(name) != there.get(name)]


def _digest(value: Any) -> bytes:
    return blake2b(dumps(value, sort_keys=True, default=str).encode(), digest_size=16).digest()


def _record(owner: Owner, name: str) -> str:
    return f"{owner.field_manager('status')}#{name}"


def _generation(owner: Owner) -> str:
    return f"{owner.uid}/{owner.generation}"


def _with_stored(status: Manifest, stored: Manifest, held: Any) -> Manifest:
    """Return a status with the stored values of some names."""
    result = {name: value for name, value in status.items() if name not in held}
    result |= {name: value for name, value in stored.items() if name in held}
    before = {_name(one): one for one in stored.get("conditions") or []}
    conditions = [one for one in status.get("conditions") or [] if _name(one) not in held or _name(one) in before]
    kept = [before[_name(one)] if _name(one) in held else one for one in conditions]
    kept += [one for name, one in before.items() if name in held and all(_name(each) != name for each in kept)]
    result.pop("conditions", None)
    return {**result, "conditions": kept} if kept else result


def _text(names: list[str]) -> str:
    return f"{' and '.join(names)} of the status {'is' if len(names) == 1 else 'are'}"


def _other_writer(live: Manifest, owner: Owner) -> str:
    ours = owner.field_manager("status")
    entries = [one for one in ManagedFields.of(live).entries if one.manager.subresource == "status"]
    others = [one for one in entries if one.manager.name != ours]
    last = max(others, key=lambda one: one.time, default=None)
    if last is None:
        return f'by another process with the same field manager "{ours}", or by a client that removes fields'
    return f'last changed by "{last.manager.name}", and not by "{ours}"'
