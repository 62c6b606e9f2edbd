"""Suspension handlers that several kinds share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ocf.concepts import StatusReport, SuspensionStatus

__all__ = ["always_suspended"]


def always_suspended(reason: str) -> Callable[[Any], StatusReport[SuspensionStatus]]:
    """Return the suspension handler of a kind for which suspending has nothing to wait for.

    Args:
        reason: Reason of its status.

    Example:
        >>> always_suspended("Ingress suspended (backend unavailable)")(None).status
        <SuspensionStatus.SUSPENDED: 'Suspended'>
    """
    report = StatusReport(SuspensionStatus.SUSPENDED, reason)

    def suspended(_live: object) -> StatusReport[SuspensionStatus]:
        """Return that the resource is suspended, whatever the live object."""
        return report

    return suspended
