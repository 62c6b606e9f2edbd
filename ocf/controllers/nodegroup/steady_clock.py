"""`SteadyClock`: the time of decisions, which does not jump when the clock of the system is set."""

import logging
from datetime import datetime, timedelta
from typing import Final

from ocf.cluster import Cluster
from ocf.concepts import Clock
from ocf.controllers.nodegroup.writes import FIELD_MANAGER
from ocf.errors import ForbiddenError, NotFoundError
from ocf.objects import parse_time

__all__ = ["SteadyClock", "server_time"]

_log: Final = logging.getLogger(__name__)
# A delay of 10 minutes takes 8 to 14 minutes while the clocks differ, and an hour is made up for within four hours.
_PER_CORRECTION: Final = 4
# The API server answers in seconds, and an answer takes its time.
_TOLERATED: Final = timedelta(seconds=10)
_REVIEW: Final = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview", "metadata": {}}


async def server_time(cluster: Cluster) -> datetime | None:
    """Return the time of the API server; None if it cannot be read without the right to create a review.

    A dry run of a SelfSubjectReview stores nothing, and its answer has the time.

    Raises:
        ApiError: If the API server does not answer.
    """
    try:
        answer = await cluster.create(dict(_REVIEW), field_manager=FIELD_MANAGER, dry_run=True)
    except (ForbiddenError, NotFoundError) as error:
        _log.warning("the time of the API server cannot be read, and the clock of this process is used: %s", error)
        return None
    text = answer["metadata"].get("creationTimestamp")
    return None if text is None else parse_time(text)


class SteadyClock:
    """A clock that follows another one without its jumps.

    After the other clock was set, this one runs a quarter faster or slower until both agree again, so that delays that
    have begun keep about their length. The same holds for time in which the system was suspended.

    Args:
        clock: The clock to follow.
        start: The time of the API server now, with which it starts if the other clock differs; None if it is not known.
    """

    def __init__(self, clock: Clock, start: datetime | None = None) -> None:
        self._clock = clock
        self._now = clock.now()
        if start is not None and abs(start - self._now) > _TOLERATED:
            _log.warning("the clock differs by %s from that of the API server", self._now - start)
            self._now = start
        self._elapsed = clock.elapsed()

    def now(self) -> datetime:
        """Return the current time in UTC; it never goes back."""
        target, elapsed = self._clock.now(), self._clock.elapsed()
        passed = elapsed - self._elapsed
        most = passed / _PER_CORRECTION
        self._now += passed + max(-most, min(target - self._now - passed, most))
        self._elapsed = elapsed
        return self._now
