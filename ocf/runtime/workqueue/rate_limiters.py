"""How long a key waits after it failed."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Protocol

from ocf.errors import ConfigError

__all__ = ["FixedDelay", "RateLimiter"]


class RateLimiter(Protocol):
    """Says how long a key waits after it failed."""

    def after(self, failures: int) -> timedelta:
        """Return how long to wait.

        Args:
            failures: How often the key failed in a row, at least 1.
        """
        ...


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
