"""Detection of another writer that reverts our writes, and the delay before the next write.

Two writers that insist on different values would write forever. After the same field of the same desired state was
reverted three times, each time within two minutes of the write, the next write is delayed: by one minute, then by twice
as long each time, up to one hour. A change that comes later is repaired at once.

A field counts once it has been reverted repeatedly. Its values and the name of the other writer do not matter. Edits of
different fields are not a fight. But all fields that are reverted repeatedly share one count, so that a writer gains
nothing from reverting several in turn. A write that restores a field for the first time is sent at once, also while
others wait.

Each object has a budget beside that, a token bucket, which bounds what any pattern of reverts costs: many fields in
turn, or one field in long intervals. Ten writes that restore something are sent at once, and then one each six minutes.

Our owner reference has a budget of its own, and no other delay. Without the reference, the garbage collector does not
delete the object with its owner, and an object that has lost it looks as one that was orphaned by request.

A deletion of what we create is such a revert if it comes within a minute, because users delete objects by hand to have
them made anew. The creation of what we delete is one, too. It makes no difference whether the other writer is a user,
another controller, or one of our own: another component, owner or operator, or another process of the same operator.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from datetime import timedelta
from typing import Final

from ocf.cluster import ApplyCache
from ocf.cluster.apply_cache import LastWrite, Reverts
from ocf.concepts.backoff import ExponentialBackoff
from ocf.objects import Manifest, ObjectKey, resource_versions
from ocf.objects.managed_fields import ManagedFields

__all__ = [
    "DELETED",
    "EXISTENCE",
    "OWNER_REFERENCE",
    "deletes_of",
    "is_fighting",
    "is_older",
    "next_write",
    "record_revert",
    "revert_message",
    "wait",
    "written",
]

DELETED: Final = b"deleted"
"""Digest of the desired state of an object that must not exist."""

# No path of a field has parentheses around it.
EXISTENCE: Final = "(existence)"
"""What is reverted by a deletion."""
OWNER_REFERENCE: Final = "(owner reference)"
"""What is reverted by the removal of our owner reference.

It counts apart, also from a revert of all fields, and only its budget delays its repair.
"""
_WHOLE: Final = ("",)
_TOLERATED_REVERTS: Final = 3
_REVERT_WINDOW: Final = timedelta(minutes=2)
_DELETION_WINDOW: Final = timedelta(minutes=1)
_BACKOFF: Final = ExponentialBackoff(timedelta(minutes=1), timedelta(hours=1), jitter=0)
# As many as a fight over one field costs in its first hour, so that such a fight leaves writes for other fields.
_BUDGET: Final = 10
_BUDGET_PERIOD: Final = timedelta(minutes=6)
_NEVER: Final = timedelta.min / 2


def deletes_of(manager: str) -> str:
    """Return the name under which the deletes of a field manager are remembered, apart from what it applies."""
    return f"{manager}/deleted"


def record_revert(
    last: LastWrite | None, desired_hash: bytes, elapsed: timedelta, fields: Collection[str] = _WHOLE
) -> LastWrite | None:
    """Record that an object differs from the last write.

    Args:
        last: The last write; None if it is not known.
        desired_hash: Digest of the desired state.
        elapsed: Time of the reconcile on the monotonic clock.
        fields: The paths that differ; by default the written value as a whole.

    Returns:
        The updated last write; None if it is not known, or had another desired state.

    Example:
        >>> start = timedelta(hours=1)
        >>> before = LastWrite(b"digest", start, reverts={"spec.replicas": Reverts(2, start)})
        >>> last = record_revert(before, b"digest", start + timedelta(seconds=5), ["spec.replicas"])
        >>> last.reverts["spec.replicas"].times, is_fighting(last, ["spec.replicas"])
        (3, True)
        >>> next_write(last, "spec.replicas") - start
        datetime.timedelta(seconds=60)
    """
    if last is None or last.desired_hash != desired_hash:
        return None
    new = [name for name in fields if name not in last.noticed]
    if not new:
        return last
    reverts = {name: _reverted_again(last, name, elapsed) for name in new}
    return replace(last, reverts={**last.reverts, **reverts}, noticed=last.noticed.union(new))


def _reverted_again(last: LastWrite, name: str, elapsed: timedelta) -> Reverts:
    before = last.reverts.get(name)
    if before is None or not _is_soon(last, name, elapsed):
        return Reverts(1, last.at)
    times = 1 + _times(last, name)
    # The second edit of a field beside a long fight over others does not wait as long as these.
    return Reverts(times if before.times > 1 else min(times, _TOLERATED_REVERTS), before.at)


def _times(last: LastWrite, name: str) -> int:
    """Return how often the fields were reverted that count together with this one."""
    if name == OWNER_REFERENCE:
        return last.reverts[name].times
    return max(one.times for other, one in last.reverts.items() if other != OWNER_REFERENCE)


def _is_soon(last: LastWrite, name: str, elapsed: timedelta) -> bool:
    """Return whether a revert at this time continues those before it."""
    one, window = last.reverts[name], _window(name)
    if elapsed - one.at <= max(window, _delay(name, one.times)):
        return True
    # A writer that reverts several fields in turn reacts to our last write, whatever that was sent for.
    return elapsed - last.at <= window and _may_continue(last, name, elapsed)


def _may_continue(last: LastWrite, name: str, elapsed: timedelta) -> bool:
    """Return whether a revert after a write at this time could continue those before it."""
    # Of fields that are reverted in turn, each waits for the writes of the others. The delay doubles, so all delays
    # before the last one are as long together as that one.
    return elapsed - last.reverts[name].at <= _window(name) + 2 * _delay(name, _times(last, name))


def _window(name: str) -> timedelta:
    return _DELETION_WINDOW if name == EXISTENCE else _REVERT_WINDOW


def _delay(name: str, times: int) -> timedelta:
    tolerated = times < _TOLERATED_REVERTS or name == OWNER_REFERENCE
    return timedelta(0) if tolerated else _BACKOFF.after(times - _TOLERATED_REVERTS + 1)


def is_fighting(last: LastWrite, fields: Collection[str] = _WHOLE) -> bool:
    """Return whether another writer keeps reverting one of these fields, or had left no write in the budget."""
    return any(
        last.reverts[name].times >= _TOLERATED_REVERTS or _affordable(last, name) > last.at
        for name in fields
        if name in last.reverts
    )


def next_write(last: LastWrite, name: str = "") -> timedelta:
    """Return the time of the next allowed write of a field, on the monotonic clock."""
    reverts = last.reverts.get(name)
    delay = timedelta(0) if reverts is None else _delay(name, reverts.times)
    return max(last.at + delay, _affordable(last, name))


def _affordable(last: LastWrite, name: str) -> timedelta:
    """Return when the budget allows the next write that restores a field."""
    full = last.budgets.get(_budget_of(name))
    return _NEVER if full is None else full - (_BUDGET - 1) * _BUDGET_PERIOD


def _budget_of(name: str) -> str:
    return OWNER_REFERENCE if name == OWNER_REFERENCE else ""


def _spent(last: LastWrite, elapsed: timedelta) -> dict[str, timedelta]:
    """Return the budgets after a write that restores what was noticed, each as the time at which it is full again."""
    budgets = dict(last.budgets)
    for name in {_budget_of(name) for name in last.noticed}:
        full = max(budgets.get(name, elapsed), elapsed) + _BUDGET_PERIOD
        # A write that another budget allows restores everything, and must not leave a debt.
        budgets[name] = min(full, elapsed + _BUDGET * _BUDGET_PERIOD)
    return budgets


def wait(
    last: LastWrite | None, desired_hash: bytes, elapsed: timedelta, fields: Collection[str] = _WHOLE
) -> timedelta | None:
    """Return how long a write is still held back; None if it may be sent.

    Args:
        last: The last write; None if it is not known.
        desired_hash: Digest of the desired state.
        elapsed: Time of the reconcile on the monotonic clock.
        fields: The paths that the write would restore.

    Example:
        >>> last = LastWrite(b"digest", timedelta(0), reverts={"spec.replicas": Reverts(3, timedelta(0))})
        >>> now = timedelta(seconds=20)
        >>> wait(last, b"digest", now, ["spec.replicas"]), wait(last, b"another", now, ["spec.replicas"])
        (datetime.timedelta(seconds=40), None)
        >>> wait(last, b"digest", now, ["spec.replicas", "metadata.labels"])
    """
    if last is None or last.desired_hash != desired_hash:
        return None
    rest = min(next_write(last, name) for name in fields) - elapsed
    return rest if rest > timedelta(0) else None


def revert_message(live: Manifest, manager: str, owner: ObjectKey, cache: ApplyCache) -> str:
    """Describe the revert, with the field manager that changed the object last, and the owners of both.

    Args:
        live: The live object.
        manager: Our field manager.
        owner: Our owner.
        cache: Knows the owners of other field managers of this process.
    """
    entries = [entry for entry in ManagedFields.of(live).entries if entry.manager.subresource != "status"]
    others = [entry for entry in entries if entry.manager.name != manager]
    latest = max(others, key=lambda entry: entry.time, default=None)
    text = "what was applied is reverted repeatedly"
    if latest is None:
        return (
            f'{text}, by another process with the same field manager "{manager}", or by a client that removes fields'
            if entries
            else text
        )
    other = latest.manager.name
    text = f'{text}, last changed by "{other}"'
    if "/" not in other:
        return text
    last = cache.last_write(ObjectKey.of(live), other)
    theirs = last.owner if last is not None else None
    # Owners of two groups may have the same kind and name.
    is_alike = theirs is not None and theirs.unversioned != owner.unversioned and _name(theirs) == _name(owner)
    known = f" for {_name(theirs, group=is_alike)}" if theirs is not None else ""
    return f'{text}{known}, and not by "{manager}" for {_name(owner, group=is_alike)}'


def _name(owner: ObjectKey, *, group: bool = False) -> str:
    kind = f"{owner.kind}.{owner.group}".rstrip(".") if group else owner.kind
    return " ".join((kind, "/".join(filter(None, (owner.namespace, owner.name)))))


def is_older(version: str, last: LastWrite) -> bool:
    """Return whether a version of an object is older than our last write, because the read was stale.

    Versions are compared as numbers; a version that is not a number is never older.

    Args:
        version: The `resourceVersion` that was read.
        last: The last write.
    """
    return resource_versions.is_older(version, last.version)


def written(
    last: LastWrite | None,
    desired_hash: bytes,
    elapsed: timedelta,
    version: str = "",
    owner: ObjectKey | None = None,
) -> LastWrite:
    """Return the record of a write.

    Args:
        last: The write before it; None if it is not known.
        desired_hash: Digest of the desired state that was written.
        elapsed: Time of the reconcile on the monotonic clock.
        version: The object's `resourceVersion` after the write.
        owner: The owner that it was written for.
    """
    reverts: dict[str, Reverts] = {}
    budgets: dict[str, timedelta] = {}
    if last is not None and last.desired_hash == desired_hash:
        budgets = _spent(last, elapsed)
        for name, one in last.reverts.items():
            if name in last.noticed:
                reverts[name] = one._replace(at=elapsed)
            elif _may_continue(last, name, elapsed):
                reverts[name] = one
    return LastWrite(desired_hash, elapsed, version, reverts, budgets=budgets, owner=owner)
