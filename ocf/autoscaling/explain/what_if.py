"""Asking the algorithm what it would decide on something else, with one history or the extreme one of several."""

from collections.abc import Sequence
from datetime import datetime

from ocf.autoscaling.algorithm import Decision, History, Settings, Snapshot, decide, normalize

__all__ = ["WhatIf"]


class WhatIf:
    """The algorithm, asked about snapshots that differ in what was measured.

    Args:
        snapshot: What was seen.
        histories: What is remembered; several if it is one of these, and nobody knows which.
        settings: The controller's settings.
        now: The instant of the round.
        most: Of several histories, the one with the most replicas counts, or else that with the fewest.
    """

    def __init__(
        self, snapshot: Snapshot, histories: Sequence[History], settings: Settings, now: datetime, *, most: bool
    ) -> None:
        self.snapshot, self.settings = snapshot, settings
        self._histories, self._now, self._most = tuple(dict.fromkeys(histories)), now, most

    def about(self, seen: Snapshot) -> tuple[Decision, History]:
        """Decide.

        Args:
            seen: What is seen instead.

        Returns:
            The extreme decision, and the history that leads to it.
        """
        first = self._decided(seen, self._histories[0])
        trace = first.trace
        if len(self._histories) == 1 or trace.stabilization is None or not trace.current:
            return first, self._histories[0]
        # Histories matter only after the metrics, so these are computed once.
        wanted, current, sign = trace.stabilization.wanted, trace.current, 1 if self._most else -1

        def reached(history: History) -> int:
            started = history.with_first_recommendation(current, self._now)
            autoscaler, settings = seen.autoscaler, self.settings
            held = normalize(autoscaler, current, wanted, started, settings=settings, now=self._now)
            return sign * held[1].replicas

        extreme = max(self._histories, key=reached)
        return self._decided(seen, extreme), extreme

    def _decided(self, seen: Snapshot, history: History) -> Decision:
        return decide(seen, history, settings=self.settings, now=self._now)
