"""How often the cluster is asked: the only place where the cache meets time and chance."""

import asyncio
import random
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Final

from ocf.concepts.backoff import ExponentialBackoff
from ocf.errors import ConfigError

__all__ = ["CacheTiming"]

# How much of a delay is left to chance, so that the operators of a cluster do not all come back at once.
_JITTER: Final = 0.25


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheTiming:
    """How patient a cache is with its cluster, and by which clock.

    A server sends a bookmark about once a minute; a watch that is silent for longer may have lost its connection
    without anybody noticing.

    Args:
        first_delay: Seconds to wait after the first failure; they double with each further one.
        longest_delay: Seconds that are never exceeded, unless the server asks for more.
        idle_timeout: Seconds without an event after which a watch is opened anew.
        relist_every: Seconds after which everything is listed anew, in case the cluster did not tell something.
        page_size: Objects per page of a list.
        sleep: Waits; seconds.
        monotonic: A clock that never goes back; seconds.
        chance: Draws a number from 0 up to 1.

    Raises:
        ConfigError: If a number is not positive, or the first delay exceeds the longest.

    Example:
        >>> pace = CacheTiming(random=lambda: 0.0)
        >>> [pace.delay(failures) for failures in (1, 2, 3, 1000)]
        [0.5, 1.0, 2.0, 45.0]
    """

    first_delay: float = 0.5
    longest_delay: float = 45.0
    idle_timeout: float = 70.0
    relist_every: float = 3600.0
    page_size: int = 500
    sleep: Callable[[float], Awaitable[None]] = field(default=asyncio.sleep, repr=False)
    monotonic: Callable[[], float] = field(default=time.monotonic, repr=False)
    random: Callable[[], float] = field(default=random.random, repr=False)

    def __post_init__(self) -> None:
        for name in ("first_delay", "longest_delay", "idle_timeout", "relist_every", "page_size"):
            value = getattr(self, name)
            if not value > 0:
                raise ConfigError(f"{name} must be more than 0, not {value}")
        if self.first_delay > self.longest_delay:
            raise ConfigError(f"first_delay {self.first_delay} must not exceed longest_delay {self.longest_delay}")

    def delay(self, failures: int, at_least: float | None = None) -> float:
        """Return how long to wait.

        Args:
            failures: Failures in a row, at least 1.
            at_least: Seconds that the server asks for, or None.

        Returns:
            Seconds.
        """
        base, cap = timedelta(seconds=self.first_delay), timedelta(seconds=self.longest_delay)
        backoff = ExponentialBackoff(base, cap, jitter=_JITTER, random=self.random)
        return max(backoff.after(failures).total_seconds(), at_least or 0.0)
