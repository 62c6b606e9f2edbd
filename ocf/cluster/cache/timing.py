"""Timing settings of the cache: retries, idle timeout, relist interval, jitter."""

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

# The random share of a delay, so that the operators of a cluster do not all retry at the same time.
_JITTER: Final = 0.25


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheTiming:
    """Timing settings of the informers of a cache.

    A server sends a bookmark about once a minute; a watch that is idle for longer may have lost its connection without
    an error.

    Args:
        first_delay: Seconds to wait after the first failure; they double with each further failure.
        longest_delay: The maximum delay in seconds, unless the server requests more.
        idle_timeout: Seconds without an event after which a watch is restarted.
        relist_every: Seconds after which all objects are listed again, in case the watch missed an event.
        page_size: Objects per page of a list.
        sleep: Waits for a number of seconds.
        monotonic: A monotonic clock, in seconds.
        random: Returns a random number from 0 up to, but not including, 1.

    Raises:
        ConfigError: If a number is not positive, or the first delay exceeds the longest.

    Example:
        >>> timing = CacheTiming(random=lambda: 0.0)
        >>> [timing.delay(failures) for failures in (1, 2, 3, 1000)]
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
        """Return the delay before the next attempt.

        Args:
            failures: Failures in a row, at least 1.
            at_least: Seconds that the server requests (`Retry-After`); None if it does not.

        Returns:
            Seconds.
        """
        base, cap = timedelta(seconds=self.first_delay), timedelta(seconds=self.longest_delay)
        backoff = ExponentialBackoff(base, cap, jitter=_JITTER, random=self.random)
        return max(backoff.after(failures).total_seconds(), at_least or 0.0)
