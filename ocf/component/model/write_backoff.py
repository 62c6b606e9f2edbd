"""Detection of another writer that reverts our writes, and the delay before the next write.

Two writers that insist on different values would write forever. After the same desired state was reverted three times,
each time within two minutes of the write, the next write is delayed: by one minute, then by twice as long each time, up
to one hour. A change that comes later is repaired at once.

A deletion of what we create is such a revert if it comes within a minute, because users delete objects by hand to have
them made anew. The creation of what we delete is one, too. It makes no difference whether
the other writer is a user, another controller, or one of our own: another component, another owner, another operator,
or another process of the same operator.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Final

from ocf.cluster import ApplyCache, LastWrite
from ocf.concepts.backoff import ExponentialBackoff
from ocf.objects import Manifest, ObjectKey
from ocf.objects.managed_fields import ManagedFields

__all__ = [
    "DELETED",
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


def deletes_of(manager: str) -> str:
    """Return the name under which the deletes of a field manager are remembered, apart from what it applies.

    Args:
        manager: Name of the field manager.
    """
    return f"{manager}/deleted"


_TOLERATED_REVERTS: Final = 3
_REVERT_WINDOW: Final = timedelta(minutes=2)
_DELETION_WINDOW: Final = timedelta(minutes=1)
_BACKOFF: Final = ExponentialBackoff(timedelta(minutes=1), timedelta(hours=1), jitter=0)


def record_revert(
    last: LastWrite | None, desired_hash: bytes, elapsed: timedelta, *, deleted: bool = False
) -> LastWrite | None:
    """Record that an object differs from the last write.

    Args:
        last: The last write; None if it is not known.
        desired_hash: Digest of the desired state.
        elapsed: Time of the reconcile on the monotonic clock.
        deleted: Whether the object was written and is gone.

    Returns:
        The updated last write; None if it is not known, or had another desired state.

    Example:
        >>> start = timedelta(hours=1)
        >>> last = record_revert(LastWrite(b"digest", start, reverted=2), b"digest", start + timedelta(seconds=5))
        >>> last.reverted, is_fighting(last), next_write(last) - start
        (3, True, datetime.timedelta(seconds=60))
    """
    if last is None or last.desired_hash != desired_hash:
        return None
    if last.noticed:
        return last
    soon = elapsed - last.at <= max(_DELETION_WINDOW if deleted else _REVERT_WINDOW, next_write(last) - last.at)
    return replace(last, reverted=last.reverted + 1 if soon else 1, noticed=True)


def is_fighting(last: LastWrite) -> bool:
    """Return whether another writer keeps reverting our writes.

    Args:
        last: The last write.
    """
    return last.reverted >= _TOLERATED_REVERTS


def next_write(last: LastWrite) -> timedelta:
    """Return the time of the next allowed write, on the monotonic clock.

    Args:
        last: The last write.
    """
    if not is_fighting(last):
        return last.at
    return last.at + _BACKOFF.after(last.reverted - _TOLERATED_REVERTS + 1)


def wait(last: LastWrite | None, desired_hash: bytes, elapsed: timedelta) -> timedelta | None:
    """Return how long a write is still held back; None if it may be sent.

    Args:
        last: The last write; None if it is not known.
        desired_hash: Digest of the desired state.
        elapsed: Time of the reconcile on the monotonic clock.

    Example:
        >>> last = LastWrite(b"digest", timedelta(0), reverted=3)
        >>> wait(last, b"digest", timedelta(seconds=20)), wait(last, b"another", timedelta(seconds=20))
        (datetime.timedelta(seconds=40), None)
    """
    if last is None or last.desired_hash != desired_hash or not is_fighting(last):
        return None
    rest = next_write(last) - elapsed
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
    known = f" for {last.owner}" if last is not None and last.owner else ""
    return f'{text}{known}, and not by "{manager}" for {_name(owner)}'


def _name(owner: ObjectKey) -> str:
    return " ".join((owner.kind, "/".join(filter(None, (owner.namespace, owner.name)))))


def is_older(version: str, last: LastWrite) -> bool:
    """Return whether a version of an object is older than our last write, because the read was stale.

    Versions are compared as numbers; a version that is not a number is never older.

    Args:
        version: The `resourceVersion` that was read.
        last: The last write.
    """
    numbers = version.isdecimal() and last.version.isdecimal()
    return numbers and int(version) < int(last.version)


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
    reverted = last.reverted if last is not None and last.desired_hash == desired_hash else 0
    return LastWrite(desired_hash, elapsed, version, reverted, owner=_name(owner) if owner is not None else "")
