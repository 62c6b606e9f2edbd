"""The last sync of another controller, as far as the status that it wrote shows it.

The reasons of the conditions name the rules that decided. So the sync can be repeated with a supposed history; one that
does not lead to the same status is not the controller's.
"""

from datetime import datetime
from typing import Final, NamedTuple

from ocf.autoscaling.algorithm import Autoscaler, History, Rule, Settings, Status, apply_behavior_limits, normalize

__all__ = ["MOST", "LastSync", "ReplicaRange", "last_sync_of"]

MOST: Final = 2**31 - 1
"""The largest number of replicas."""
_READY: Final = "ReadyForNewScale"
_RESCALED: Final = "SucceededRescale"
_WITHOUT_PROPOSAL: Final = ("SucceededGetScale", "FailedGetScale")
_STABILIZED: Final = {each.value: each for each in (Rule.SCALE_UP_STABILIZED, Rule.SCALE_DOWN_STABILIZED)}


class ReplicaRange(NamedTuple):
    """A range of replicas; both ends are possible.

    Args:
        least: The lower end.
        most: The upper end.
    """

    least: int
    most: int


class LastSync(NamedTuple):
    """What the status shows of the last sync.

    Args:
        before: The replicas that it found.
        able: The reason of the condition `AbleToScale`.
        limited: The reason of the condition `ScalingLimited`.
        held: The replicas after stabilization; None if the metrics did not decide, or if the status does not fit the
            spec, which has changed since then.
        most: The most replicas that a recommendation in the memory can have, but for the first of a controller.
    """

    before: int
    desired: int
    rescaled: bool
    able: str
    limited: str
    held: ReplicaRange | None
    most: int = MOST

    @property
    def change(self) -> int:
        """The replicas that it added; negative if it removed some."""
        return self.desired - self.before if self.rescaled else 0

    def has_stabilization(
        self, autoscaler: Autoscaler, history: History, wanted: int, *, settings: Settings, at: datetime
    ) -> bool:
        """Return whether a sync with a history stabilizes a proposal as the last one did."""
        step, _ = normalize(autoscaler, self.before, wanted, history, settings=settings, now=at)
        # After a rescale, `AbleToScale` has the reason SucceededRescale in place of that of the stabilization.
        fits = self.held is None or self.held.least <= step.replicas <= self.held.most
        return fits and (self.rescaled or step.rule == _STABILIZED.get(self.able))

    def has_limit(self, autoscaler: Autoscaler, history: History, *, at: datetime) -> bool:
        """Return whether the policies limit a sync with a history as they limited the last one.

        Args:
            autoscaler: The autoscaler; it has a `behavior`.
        """
        if self.held is None or autoscaler.behavior is None:
            return True
        limit = apply_behavior_limits(
            self.before,
            # The end that is nearest to the replicas before: what the policies allow then decides, as for all numbers
            # beyond it.
            self.held.least if self.held.least > self.before else self.held.most,
            minimum=autoscaler.minimum,
            maximum=autoscaler.maximum,
            behavior=autoscaler.behavior,
            history=history,
            now=at,
        )
        return (limit.replicas, limit.rule.value) == (self.desired, self.limited)


def last_sync_of(autoscaler: Autoscaler, status: Status) -> LastSync:
    """Return what a status shows of the sync that wrote it."""
    reasons = {each.type: each.reason for each in status.conditions}
    able, limited, before = reasons.get("AbleToScale", ""), reasons.get("ScalingLimited", ""), status.current_replicas
    rescaled = able == _RESCALED
    # A rescale into the range of minReplicas and maxReplicas clears `currentMetrics`, and begins out of the range. From
    # 0 replicas the result may have been raised to the minimum afterwards, which no condition shows.
    measured = bool(status.current_metrics) or autoscaler.minimum <= before <= autoscaler.maximum
    by_metrics = bool(before) and (able == _READY or able in _STABILIZED or (rescaled and measured))
    held = _held(autoscaler, status, limited) if by_metrics else None
    most = _most(autoscaler, status, limited) if able in _WITHOUT_PROPOSAL else MOST
    return LastSync(before, status.desired_replicas, rescaled, able, limited, held, most)


def _most(autoscaler: Autoscaler, status: Status, limited: str) -> int:
    """Return the most replicas that were recommended before a sync whose metrics or Scale could not be read.

    It adds no recommendation, and keeps `desiredReplicas` and the condition `ScalingLimited` of the last one that did.
    """
    # Without a `behavior` that sync took the highest of its window. At minReplicas it may have been one that brought
    # the target into range, which has no recommendation either.
    found = _held(autoscaler, status, limited)
    known = found is not None and autoscaler.behavior is None and status.desired_replicas > autoscaler.minimum
    return found.most if found is not None and known else MOST


def _held(autoscaler: Autoscaler, status: Status, limited: str) -> ReplicaRange | None:
    """Return the range of replicas after stabilization in the last sync, from how it was limited."""
    desired, minimum, maximum = status.desired_replicas, autoscaler.minimum, autoscaler.maximum
    if limited == Rule.WITHIN_RANGE and minimum <= desired <= maximum:
        return ReplicaRange(desired, desired)
    if limited == Rule.TOO_MANY and desired == maximum:
        return ReplicaRange(maximum + 1, MOST)
    if limited == Rule.TOO_FEW and desired == minimum:
        return ReplicaRange(0, minimum - 1)
    if limited == Rule.SCALE_UP_LIMIT:
        return ReplicaRange(desired + 1, MOST)
    if limited == Rule.SCALE_DOWN_LIMIT and desired:
        return ReplicaRange(0, desired - 1)
    return None
