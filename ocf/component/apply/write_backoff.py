"""Whether somebody undoes what we write, and how long to wait before we write it again.

Two writers that each insist on their value would go on for ever. Once the same wish was undone several times, each
time soon after it was written, the next write waits: a minute first, then twice as long each time, up to an hour. A
change that comes later than that is a change like any other, and is repaired at once.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Final

from ocf.cluster import LastWrite
from ocf.concepts.backoff import ExponentialBackoff

__all__ = ["is_fighting", "is_older", "next_write", "record_revert", "written"]

_TOLERATED: Final = 3
_SOON: Final = timedelta(minutes=2)
_BACKOFF: Final = ExponentialBackoff(timedelta(minutes=1), timedelta(hours=1), jitter=0)


def record_revert(last: LastWrite | None, wish: bytes, elapsed: timedelta) -> LastWrite | None:
    """Note that an object is not as it was last written.

    Args:
        last: What is remembered of the last write.
        wish: Digest of what is wanted now.
        elapsed: What the clock of the pass tells as elapsed.

    Returns:
        What is to be remembered from now on; None where the last write is not known or wanted something else.

    Example:
        >>> start = timedelta(hours=1)
        >>> last = record_revert(LastWrite(b"wish", start, reverted=2), b"wish", start + timedelta(seconds=5))
        >>> last.reverted, is_fighting(last), next_write(last) - start
        (3, True, datetime.timedelta(seconds=60))
    """
    if last is None or last.desired_hash != wish:
        return None
    if last.noticed:
        return last
    soon = elapsed - last.at <= max(_SOON, next_write(last) - last.at)
    return replace(last, reverted=last.reverted + 1 if soon else 1, noticed=True)


def is_fighting(last: LastWrite) -> bool:
    """Tell whether somebody insists on another value.

    Args:
        last: What is remembered of the last write.
    """
    return last.reverted >= _TOLERATED


def next_write(last: LastWrite) -> timedelta:
    """Return from when on the object may be written again, as elapsed time.

    Args:
        last: What is remembered of the last write.
    """
    if not is_fighting(last):
        return last.at
    return last.at + _BACKOFF.after(last.reverted - _TOLERATED + 1)


def is_older(version: str, last: LastWrite) -> bool:
    """Tell whether a version of an object is one from before our last write, so that a read was stale.

    Versions are told to compare by size; where they are no numbers, nothing is said about them.

    Args:
        version: The `resourceVersion` that was read.
        last: What is remembered of the last write.
    """
    numbers = version.isdecimal() and last.version.isdecimal()
    return numbers and int(version) < int(last.version)


def written(last: LastWrite | None, wish: bytes, elapsed: timedelta, version: str = "") -> LastWrite:
    """Note a write.

    Args:
        last: What was remembered before it.
        wish: Digest of what was written.
        elapsed: What the clock of the pass tells as elapsed.
        version: The object's `resourceVersion` after the write.
    """
    undone = last.reverted if last is not None and last.desired_hash == wish else 0
    return LastWrite(wish, elapsed, version, undone)
