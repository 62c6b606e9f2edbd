"""How long a lease lasts, and how often it is renewed."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from ocf.errors import ConfigError

__all__ = ["Timing"]

_JITTER: Final = 1.2  # client-go's JitterFactor: a candidate waits up to this much longer than the retry period


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """How long a lease lasts, and how often it is renewed; defaults are those of client-go.

    What separates the end of one leader's work from the beginning of the next one's is `lease` less
    `renew_deadline`. That is how long a write that was begun in time may take to arrive.

    Args:
        lease: How long others wait after the last renewal that they saw; whole seconds.
        renew_deadline: How long after its last renewal a leader stops.
        retry_period: How often a leader renews, and a candidate looks.
        jitter: How much longer a candidate may wait, as a part of the retry period, so that not all come at once.

    Raises:
        ConfigError: If one does not leave room for the next.

    Example:
        >>> Timing(lease=timedelta(seconds=8), renew_deadline=timedelta(seconds=9))
        Traceback (most recent call last):
        ocf.errors.ConfigError: need lease > renew_deadline > retry_period * (1 + jitter) > 0, got 8 s, 9 s, 2 s * 2.2
    """

    lease: timedelta = timedelta(seconds=15)
    renew_deadline: timedelta = timedelta(seconds=10)
    retry_period: timedelta = timedelta(seconds=2)
    jitter: float = _JITTER

    def __post_init__(self) -> None:
        longest = self.retry_period * (1 + self.jitter)
        if not (self.lease > self.renew_deadline > longest >= self.retry_period > timedelta(0)):
            lease, deadline, period = (
                each.total_seconds() for each in (self.lease, self.renew_deadline, self.retry_period)
            )
            raise ConfigError(
                "need lease > renew_deadline > retry_period * (1 + jitter) > 0, "
                f"got {lease:g} s, {deadline:g} s, {period:g} s * {1 + self.jitter:g}"
            )
        if self.lease % timedelta(seconds=1):
            raise ConfigError(f"the API counts a lease in whole seconds, got {self.lease.total_seconds():g} s")

    @property
    def attempt(self) -> timedelta:
        """How long one attempt may take, so that a silent connection leaves time for another one."""
        return self.renew_deadline / 2
