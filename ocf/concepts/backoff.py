"""Backoff: the delay before a retry, with exponential growth, a cap and jitter."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Final

from ocf.errors import ConfigError

__all__ = ["ExponentialBackoff", "with_jitter"]

# After this many doublings the delay exceeds every sensible cap; the limit prevents an overflow.
_MOST_DOUBLINGS: Final = 40


@dataclass(frozen=True, slots=True)
class ExponentialBackoff:
    """A delay that doubles with each failure.

    Source: `ItemExponentialFailureRateLimiter` of client-go, whose defaults are 5 ms and 1000 s. The defaults here send
    fewer requests to a failing cluster, and retry within minutes once the cause is fixed.

    Args:
        base: The first delay.
        cap: The longest delay.
        jitter: The largest fraction of a delay that is subtracted at random, so that not all keys are retried at once.
        random: Returns a random number from 0 up to 1.

    Raises:
        ConfigError: If base and cap are not 0 < base <= cap, or the jitter is not from 0 up to 1.

    Example:
        >>> backoff = ExponentialBackoff(timedelta(seconds=1), timedelta(seconds=5), jitter=0)
        >>> [backoff.after(failures).total_seconds() for failures in (1, 2, 3, 4, 1000)]
        [1.0, 2.0, 4.0, 5.0, 5.0]
    """

    base: timedelta = timedelta(seconds=1)
    cap: timedelta = timedelta(minutes=5)
    jitter: float = 0.1
    random: Callable[[], float] = field(default=random.random, repr=False)

    def __post_init__(self) -> None:
        if not timedelta(0) < self.base <= self.cap:
            raise ConfigError(f"need 0 < base <= cap, got {self.base} and {self.cap}")
        if not 0 <= self.jitter < 1:
            raise ConfigError(f"jitter must be from 0 up to 1, got {self.jitter:g}")

    def after(self, failures: int) -> timedelta:
        """Return the delay: at most the cap, less the jitter.

        Args:
            failures: The number of failures in a row, at least 1.
        """
        doublings = min(failures - 1, _MOST_DOUBLINGS)
        full = min(self.base.total_seconds() * 2**doublings, self.cap.total_seconds())
        return timedelta(seconds=full * (1 - self.jitter * self.random()))


def with_jitter(delay: timedelta, jitter: float, random: Callable[[], float] = random.random) -> timedelta:
    """Return a delay with a random extension, so that not all clients retry at once.

    Source: `wait.Jitter` of apimachinery.

    Args:
        delay: The shortest delay.
        jitter: The largest fraction of the delay that is added.
        random: Returns a random number from 0 up to 1.

    Example:
        >>> with_jitter(timedelta(seconds=10), 0.2, lambda: 0.5).total_seconds()
        11.0
    """
    return delay * (1 + jitter * random())
