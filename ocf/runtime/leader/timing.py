"""Durations of leader election."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from ocf.errors import ConfigError

__all__ = ["Timing"]

_JITTER: Final = 1.2  # client-go's JitterFactor: a candidate waits up to this much longer than the retry period


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """The duration of a lease and of its renewals; defaults are those of client-go.

    Between the end of one leader's term and the start of the next there are at least `lease - renew_deadline`. A write
    that the old leader sent in time may take this long to arrive.

    Args:
        lease: How long candidates wait after the last renewal that they saw; whole seconds.
        renew_deadline: How long after its last renewal a leader stops.
        retry_period: How often a leader renews, and a candidate tries.
        jitter: How much longer a candidate may wait, as a fraction of the retry period, so that candidates do not all
            try at once.

    Raises:
        ConfigError: If the durations do not decrease as required.

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
            raise ConfigError(f"lease must be whole seconds, as in the API, got {self.lease.total_seconds():g} s")

    @property
    def attempt(self) -> timedelta:
        """The time limit of one attempt, so that a connection without a response leaves time for another attempt."""
        return self.renew_deadline / 2
