"""`ocf explain KIND/NAME --watch`: reads an owner again and again until it is ready, and shows what changes."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Sequence
from datetime import timedelta
from enum import StrEnum
from typing import Final

from ocf.cli.explain.owner_answer import OwnerAnswer
from ocf.concepts import Clock
from ocf.errors import ApiError, ConfigError, ForbiddenError, NotFoundError
from ocf.ownership import State

__all__ = ["FollowEnd", "follow"]

_SHORTEST_PAUSE: Final = timedelta(seconds=2)
_LONGEST_PAUSE: Final = timedelta(seconds=30)
# Reading takes a list for each kind: a large cluster is read less often.
_PAUSE_FACTOR: Final = 5
# Such as while a control plane of one machine is upgraded.
_LONGEST_OUTAGE: Final = timedelta(minutes=1)
_DURATION: Final = re.compile(r" (for|since) \d+ (second|minute|hour|day)s?\b")


class FollowEnd(StrEnum):
    """Why following has ended."""

    READY = ""
    FAILED = "has failed for good: its controller does not try again before it is changed"
    DELETED = "was deleted; this was its last state"
    TIMEOUT = "is not ready in time"


async def follow(
    read: Callable[[], Awaitable[OwnerAnswer]],
    show: Callable[[str], None],
    *,
    clock: Clock,
    limit: timedelta | None = None,
) -> tuple[FollowEnd, OwnerAnswer]:
    """Read an owner, or all of a kind, until each is ready.

    A state that may end by itself or by a change is waited for, also a failing one: its cause is shown, and may be
    mended meanwhile. An API server that does not answer is waited for as well, for a minute.

    Args:
        show: Called with each line that differs from the last one in more than a duration.
        limit: For how long; None for no limit.

    Returns:
        Why it has ended, and the last answer.

    Raises:
        ConfigError: If there is no owner at the start.
        ApiError: If the API server does not answer, at the start or for a minute.
    """
    started = answered = began = clock.elapsed()
    answer = await read()
    shown = _show_changes(answer, [], show)
    while (end := _end(answer)) is None:
        pause = min(max(_PAUSE_FACTOR * (clock.elapsed() - began), _SHORTEST_PAUSE), _LONGEST_PAUSE)
        remaining = pause if limit is None else started + limit - clock.elapsed()
        if remaining <= timedelta():
            return FollowEnd.TIMEOUT, answer
        await asyncio.sleep(min(pause, remaining).total_seconds())
        began = clock.elapsed()
        try:
            answer = await read()
        except ConfigError as error:
            if isinstance(error.__cause__, NotFoundError):
                return FollowEnd.DELETED, answer
            raise
        except ForbiddenError:
            raise
        except ApiError:
            if began - answered > _LONGEST_OUTAGE:
                raise
            continue
        answered = began
        shown = _show_changes(answer, shown, show)
    return end, answer


def _end(answer: OwnerAnswer) -> FollowEnd | None:
    """Return why following ends with an answer; None if it goes on."""
    if any(one.has_given_up for one in answer.found):
        return FollowEnd.FAILED
    # Of a kind without an owner, one is waited for.
    are_ready = bool(answer.found) and all(one.root.state is State.READY for one in answer.found)
    return FollowEnd.READY if are_ready else None


def _show_changes(answer: OwnerAnswer, shown: Sequence[str], show: Callable[[str], None]) -> list[str]:
    """Show the lines that are new, and return all of them without their durations."""
    lines = answer.headlines()
    plain = [_DURATION.sub("", one) for one in lines]
    for line, without in zip(lines, plain, strict=True):
        if without not in shown:
            show(line)
    return plain
