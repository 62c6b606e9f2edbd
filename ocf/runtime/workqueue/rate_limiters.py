"""Rate limiters: the delay before a failed key is retried."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Protocol

from ocf.errors import ConfigError

__all__ = ["FixedDelay", "RateLimiter"]


class RateLimiter(Protocol):
    """Computes the delay before a failed key is retried."""

    def after(self, failures: int) -> timedelta:
        """Return the delay.

        Args:
            failures: Number of failures in a row, at least 1.
        """
        ...


@dataclass(frozen=True, slots=True)
class FixedDelay:
    """A rate limiter with a constant delay, for controllers that process everything once per period.

    Source: `FixedItemIntervalRateLimiter` of the HorizontalPodAutoscaler's controller.

    Args:
        delay: The delay.

    Raises:
        ConfigError: If it is not positive.
    """

    delay: timedelta

    def __post_init__(self) -> None:
        if self.delay <= timedelta(0):
            raise ConfigError(f"a delay must be positive, got {self.delay}")

    def after(self, failures: int) -> timedelta:
        """Return the delay.

        Args:
            failures: Number of failures in a row; ignored.
        """
        del failures
        return self.delay
