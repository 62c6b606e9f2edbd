"""What a request to a cluster is for: requests of one purpose do not wait for those of another one.

A client sends a limited number of requests at the same time. Reconciles may use up all of them where one part of the
API server does not respond, such as a webhook that it calls. What keeps the process at work must go on then: above all
its lease, which another process takes within seconds.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from enum import StrEnum
from typing import Final

__all__ = ["Purpose", "current_purpose", "requests_for"]


class Purpose(StrEnum):
    """What requests are for, as it follows "for" in messages."""

    RECONCILES = "reconciles"
    """Reconciles, and everything that names no other purpose."""
    LEASE = "the lease"
    CACHE = "lists of the cache"
    DISCOVERY = "discovery"
    """Its answers are shared by requests of all purposes."""
    EVENTS = "events"
    CERTIFICATES = "certificates of webhooks"


_CURRENT: Final[ContextVar[Purpose]] = ContextVar("ocf-request-purpose", default=Purpose.RECONCILES)


def current_purpose() -> Purpose:
    """Return what the requests of the present task are for."""
    return _CURRENT.get()


@contextmanager
def requests_for(purpose: Purpose) -> Iterator[None]:
    """Send the requests of the block, and of the tasks that it starts, for a purpose.

    Example:
        >>> with requests_for(Purpose.LEASE):
        ...     current_purpose().value
        'the lease'
        >>> current_purpose().value
        'reconciles'
    """
    token = _CURRENT.set(purpose)
    try:
        yield
    finally:
        _CURRENT.reset(token)
