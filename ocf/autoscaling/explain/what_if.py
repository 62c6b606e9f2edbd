"""Decisions of the algorithm for other measurements, with one history or the extreme one of several."""

from collections.abc import Sequence
from datetime import datetime

from ocf.autoscaling.algorithm import Decision, History, Settings, Snapshot, decide, normalize

__all__ = ["WhatIf"]


class WhatIf:
    """Runs the algorithm on snapshots that differ in their measurements only.

    Args:
        histories: The history of the controller; several if it is not known which one it has.
        most: Use the history with the most replicas for each snapshot; otherwise the one with the fewest.
    """

    def __init__(
        self, snapshot: Snapshot, histories: Sequence[History], settings: Settings, now: datetime, *, most: bool
    ) -> None:
        self.snapshot, self.settings = snapshot, settings
        self.histories, self.now, self._most = tuple(dict.fromkeys(histories)), now, most

    def decide(self, snapshot: Snapshot) -> tuple[Decision, History]:
        """Decide on another snapshot."""
        first = self._decide(snapshot, self.histories[0])
        trace = first.trace
        if len(self.histories) == 1 or trace.stabilization is None or not trace.current:
            return first, self.histories[0]
        # Histories matter only after the metrics, so the metrics are evaluated once.
        wanted, current, sign = trace.stabilization.wanted, trace.current, 1 if self._most else -1

        def replicas(history: History) -> int:
            # As `decide` does before the metrics.
            started = history.with_first_recommendation(current, self.now)
            autoscaler, settings = snapshot.autoscaler, self.settings
            _, limit = normalize(autoscaler, current, wanted, started, settings=settings, now=self.now)
            return sign * limit.replicas

        extreme = max(self.histories, key=replicas)
        return self._decide(snapshot, extreme), extreme

    def actual(self, history: History) -> Decision:
        """Return the decision on the actual snapshot."""
        return self._decide(self.snapshot, history)

    def _decide(self, snapshot: Snapshot, history: History) -> Decision:
        return decide(snapshot, history, settings=self.settings, now=self.now)
