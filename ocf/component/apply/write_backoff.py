"""Detection of another writer that reverts our writes, and the delay before the next write.

Two writers that insist on different values would write forever. After the same desired state was reverted three times,
each time within two minutes of the write, the next write is delayed: by one minute, then by twice as long each time, up
to one hour. A change that comes later is repaired at once.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Final

from ocf.cluster import LastWrite
from ocf.concepts.backoff import ExponentialBackoff

__all__ = ["is_fighting", "is_older", "next_write", "record_revert", "written"]

_TOLERATED_REVERTS: Final = 3
_REVERT_WINDOW: Final = timedelta(minutes=2)
_BACKOFF: Final = ExponentialBackoff(timedelta(minutes=1), timedelta(hours=1), jitter=0)


def record_revert(last: LastWrite | None, desired_hash: bytes, elapsed: timedelta) -> LastWrite | None:
    """Record that an object differs from the last write.

    Args:
        last: The last write; None if it is not known.
        desired_hash: Digest of the desired state.
        elapsed: Time of the reconcile on the monotonic clock.

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
    soon = elapsed - last.at <= max(_REVERT_WINDOW, next_write(last) - last.at)
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


def is_older(version: str, last: LastWrite) -> bool:
    """Return whether a version of an object is older than our last write, because the read was stale.

    Versions are compared as numbers; a version that is not a number is never older.

    Args:
        version: The `resourceVersion` that was read.
        last: The last write.
    """
    numbers = version.isdecimal() and last.version.isdecimal()
    return numbers and int(version) < int(last.version)


def written(last: LastWrite | None, desired_hash: bytes, elapsed: timedelta, version: str = "") -> LastWrite:
    """Return the record of a write.

    Args:
        last: The write before it; None if it is not known.
        desired_hash: Digest of the desired state that was written.
        elapsed: Time of the reconcile on the monotonic clock.
        version: The object's `resourceVersion` after the write.
    """
    reverted = last.reverted if last is not None and last.desired_hash == desired_hash else 0
    return LastWrite(desired_hash, elapsed, version, reverted)
