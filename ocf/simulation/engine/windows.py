"""Stabilization windows, evaluated without visiting every recommendation.

The highest and the lowest recommendation of a window change only when a new one arrives or an old one expires. So each
window keeps only the recommendations that can still become its extreme: a sync takes constant time on average, however
long the window is.
"""

from collections import deque
from collections.abc import Iterable
from typing import Final

from ocf.autoscaling.algorithm import Autoscaler, Settings
from ocf.autoscaling.algorithm.normalize import downscale_window
from ocf.simulation.engine.clock import microseconds

__all__ = ["KeptRecommendations", "Windows"]

# So few are never worth a clean-up.
_FEW: Final = 64
_Entries = deque[tuple[int, int]]


class Windows:
    """The recommendations of an HPA within its stabilization windows; times are microseconds since the start.

    Example:
        >>> windows = Windows(Autoscaler(name="web", maximum=9), Settings())
        >>> windows.add(0, 5)
        >>> windows.extremes(300_000_000, 2), windows.extremes(300_000_001, 2)
        ((2, 5), (2, 2))
    """

    __slots__ = ("_all", "_down", "_highest", "_longest", "_lowest", "_most", "_up")

    def __init__(self, autoscaler: Autoscaler, settings: Settings) -> None:
        behavior = autoscaler.behavior
        # Without a behavior, a recommendation that is exactly as old as the window still counts.
        self._down = microseconds(downscale_window(autoscaler, settings)) + (behavior is None)
        window = None if behavior is None else behavior.up.window
        self._up = 0 if window is None else microseconds(window)
        self._longest = max(self._down, self._up)
        self._all: _Entries = deque()
        self._most = _FEW
        self._highest: _Entries = deque()
        self._lowest: _Entries = deque()

    def add(self, now: int, replicas: int) -> None:
        """Add a recommendation.

        Args:
            now: Time of the sync, not before that of the last one.
        """
        entry = (now, replicas)
        highest, lowest = self._highest, self._lowest
        self._all.append(entry)
        # Only when their number has doubled, which is constant time on average.
        if len(self._all) >= self._most:
            self._forget()
        while highest and highest[-1][1] <= replicas:
            highest.pop()
        highest.append(entry)
        if self._up:
            while lowest and lowest[-1][1] >= replicas:
                lowest.pop()
            lowest.append(entry)

    def extremes(self, now: int, wanted: int) -> tuple[int, int]:
        """Return the lowest and the highest recommendation of the windows, with the one of this sync.

        Args:
            now: Time of the sync, not before that of the last one.
        """
        low = high = wanted
        highest, lowest = self._highest, self._lowest
        start = now - self._down
        while highest and highest[0][0] <= start:
            highest.popleft()
        if highest and highest[0][1] > high:
            high = highest[0][1]
        if self._up:
            start = now - self._up
            while lowest and lowest[0][0] <= start:
                lowest.popleft()
            if lowest and lowest[0][1] < low:
                low = lowest[0][1]
        return low, high

    def restore(self, recommendations: Iterable[tuple[int, int]]) -> None:
        """Continue with the recommendations of another controller."""
        for at, replicas in recommendations:
            self.add(at, replicas)

    def recommendations(self) -> tuple[tuple[int, int], ...]:
        """Return time and replicas of the recommendations that can still count."""
        self._forget()
        return tuple(self._all)

    def _forget(self) -> None:
        """Remove the recommendations that had expired at the last sync."""
        everything = self._all
        while len(everything) > 1 and everything[0][0] <= everything[-1][0] - self._longest:
            everything.popleft()
        self._most = 2 * len(everything) + _FEW


class KeptRecommendations(Windows):
    """The recommendations as the controller keeps them: each sync overwrites one that has expired, if there is one.

    So more than one may outlive the windows, and counts again when an edit of the HPA makes a window longer. A sync
    takes time in proportion to their number.

    Example:
        >>> kept = KeptRecommendations(Autoscaler(name="web", maximum=9), Settings())
        >>> for at, replicas in ((0, 5), (1, 4), (400_000_000, 3)):
        ...     kept.add(at, replicas)
        >>> kept.recommendations(), kept.extremes(400_000_000, 2)
        (((0, 5), (400000000, 3)), (2, 3))
    """

    __slots__ = ("_kept",)

    def __init__(self, autoscaler: Autoscaler, settings: Settings) -> None:
        super().__init__(autoscaler, settings)
        if autoscaler.behavior is None:
            # A slot is free when it is older than the window; `_down` has a microsecond more.
            self._longest = self._down - 1
        self._kept: list[tuple[int, int]] = []

    def add(self, now: int, replicas: int) -> None:
        """Add a recommendation.

        Args:
            now: Time of the sync, not before that of the last one.
        """
        expired = [slot for slot, (at, _) in enumerate(self._kept) if at < now - self._longest]
        if expired:
            # The last of them, as in the controller (stabilizeRecommendation).
            self._kept[expired[-1]] = (now, replicas)
        else:
            self._kept.append((now, replicas))

    def extremes(self, now: int, wanted: int) -> tuple[int, int]:
        """Return the lowest and the highest recommendation of the windows, with the one of this sync.

        Args:
            now: Time of the sync, not before that of the last one.
        """
        lows = (replicas for at, replicas in self._kept if at > now - self._up)
        highs = (replicas for at, replicas in self._kept if at > now - self._down)
        return min((wanted, *lows)) if self._up else wanted, max((wanted, *highs))

    def recommendations(self) -> tuple[tuple[int, int], ...]:
        """Return time and replicas of all recommendations, in the order in which the controller keeps them."""
        return tuple(self._kept)

    def restore(self, recommendations: Iterable[tuple[int, int]]) -> None:
        """Continue with the recommendations of another controller."""
        self._kept = list(recommendations)
