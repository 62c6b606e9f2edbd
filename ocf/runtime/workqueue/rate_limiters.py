"""How long a key waits after it failed."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Final, Protocol

from ocf.errors import ConfigError

__all__ = ["ExponentialBackoff", "FixedDelay", "RateLimiter"]

# Beyond this the doubling has passed every sensible cap, and no number overflows.
_MOST_DOUBLINGS: Final = 40


class RateLimiter(Protocol):
    """Says how long a key waits after it failed."""

    def after(self, failures: int) -> timedelta:
        """Return how long to wait.

        Args:
            failures: How often the key failed in a row, at least 1.
        """
        ...


@dataclass(frozen=True, slots=True)
class ExponentialBackoff:
    """Waits twice as long after each failure.

    Source: `ItemExponentialFailureRateLimiter` of client-go, whose numbers are 5 ms and 1000 s. Ours spare a cluster
    that is in trouble, and a person who has just mended something does not wait for a quarter of an hour.

    Args:
        base: The first delay.
        cap: The longest delay.
        jitter: The part of a delay that is left to chance, so that not all keys come back at once.
        chance: Draws a number from 0 up to 1.

    Raises:
        ConfigError: If base and cap are not 0 < base <= cap, or the jitter is not from 0 up to 1.

    Example:
        >>> delays = ExponentialBackoff(timedelta(seconds=1), timedelta(seconds=5), jitter=0)
        >>> [delays.after(failures).total_seconds() for failures in (1, 2, 3, 4, 1000)]
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
        """Return how long to wait: at most the cap, less what chance takes off.

        Args:
            failures: How often the key failed in a row, at least 1.
        """
        doublings = min(failures - 1, _MOST_DOUBLINGS)
        full = min(self.base.total_seconds() * 2**doublings, self.cap.total_seconds())
        return timedelta(seconds=full * (1 - self.jitter * self.random()))


@dataclass(frozen=True, slots=True)
class FixedDelay:
    """Waits equally long each time; what a controller uses that looks at everything once per period.

    Source: `FixedItemIntervalRateLimiter` of the HorizontalPodAutoscaler's controller.

    Args:
        delay: How long.

    Raises:
        ConfigError: If it is not positive.
    """

    delay: timedelta

    def __post_init__(self) -> None:
        if self.delay <= timedelta(0):
            raise ConfigError(f"a delay must be positive, got {self.delay}")

    def after(self, failures: int) -> timedelta:
        """Return how long to wait.

        Args:
            failures: Makes no difference.
        """
        del failures
        return self.delay
