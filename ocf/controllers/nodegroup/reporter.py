"""Report of what happens to nodes: events, metrics, and log lines."""

import logging
from typing import Final, Literal

from ocf.concepts import Event, Recorder
from ocf.controllers.nodegroup.metrics import NodeGroupMonitor
from ocf.controllers.nodegroup.objects import GroupObject, NodeObject

__all__ = ["COMPONENT", "Reason", "Reporter"]

COMPONENT: Final = "ocf-nodegroup-controller"
"""The reporting component of events."""

Reason = Literal[
    "ScalingUp",
    "ScalingDown",
    "ScaleUpFailed",
    "ScaleDownBlocked",
    "OrphanedMachine",
    "ReconcileFailed",
    "ValidationFailed",
]
"""The reasons of events."""

_ACTIONS: Final[dict[Reason, str]] = {
    "ScalingUp": "ScaleUp",
    "ScalingDown": "ScaleDown",
    "ScaleUpFailed": "ScaleUp",
    "ScaleDownBlocked": "ScaleDown",
    "OrphanedMachine": "Delete",
    "ReconcileFailed": "Reconcile",
    "ValidationFailed": "Validate",
}
_NORMAL: Final = ("ScalingUp", "ScalingDown")

_log: Final = logging.getLogger(__name__)


class Reporter:
    """Posts events, counts, and logs.

    Args:
        events: The event recorder; None records no events.
    """

    def __init__(self, monitor: NodeGroupMonitor, events: Recorder | None) -> None:
        self.monitor: Final = monitor
        self._events = events

    def event(self, group: GroupObject | None, reason: Reason, note: str, *, node: NodeObject | None = None) -> None:
        """Post an event on a group, or on a node whose group does not exist."""
        regarding = group if group is not None else node
        normal = reason in _NORMAL
        where = group.name if group is not None else node.name if node is not None else ""
        _log.log(logging.INFO if normal else logging.WARNING, "%s: %s: %s", where, reason, note)
        if self._events is None or regarding is None:
            return
        self._events.happened(
            Event(
                owner=regarding.key,
                owner_uid=regarding.uid,
                resource=node.key if node is not None else regarding.key,
                reason=reason,
                action=_ACTIONS[reason],
                note=note,
                type="Normal" if normal else "Warning",
            )
        )
