"""Averages and highest values of a quantity over a window of time."""

from bisect import bisect_right
from collections import deque
from operator import itemgetter

from ocf.simulation.engine.clock import NEVER

__all__ = ["Gauge", "Peak"]

_END = itemgetter(0)


class Gauge:
    """A quantity that is constant between two changes, and its averages over the recent past.

    Args:
        value: The value at the start and, as the simulation starts in a steady state, at all times before.

    Example:
        >>> gauge = Gauge(1.0)
        >>> gauge.set(10, 3.0)
        >>> gauge.mean(5, 15), gauge.mean(10, 15)
        (2.0, 3.0)
    """

    __slots__ = ("_changes", "value")

    def __init__(self, value: float) -> None:
        self.value = value
        self._changes: deque[tuple[int, float]] = deque([(-NEVER, value)])

    def set(self, now: int, value: float) -> None:
        """Change the value.

        Args:
            now: The instant, in microseconds; not before the last change.
        """
        if value != self.value:
            self.value = value
            self._changes.append((now, value))

    def restart(self, value: float) -> None:
        """Forget the changes.

        Args:
            value: The value at all times until the next change.
        """
        self.value = value
        self._changes.clear()
        self._changes.append((-NEVER, value))

    def window(self, begin: int, end: int) -> float:
        """Return the average over a window, and forget what is before it.

        Args:
            begin: Its begin, in microseconds; not before that of the last window.
            end: Its end, after the begin and not before the last change.
        """
        changes = self._changes
        if changes[-1][0] <= begin:
            while len(changes) > 1:
                changes.popleft()
            return self.value
        while changes[1][0] <= begin:
            changes.popleft()
        if len(changes) == 2:  # noqa: PLR2004 (the usual case in a third of the time)
            (_, first), (since, last) = changes
            return (last * (end - since) + first * (since - begin)) / (end - begin)
        return self.mean(begin, end)

    def mean(self, begin: int, end: int) -> float:
        """Return the average over a part of the last window.

        Args:
            begin: Its begin, in microseconds; not before that of the last window.
            end: Its end, after the begin and not before the last change.
        """
        changes = self._changes
        since, value = changes[-1]
        if since <= begin:
            return value
        total, right = 0.0, end
        for since, value in reversed(changes):
            if since <= begin:
                total += value * (right - begin)
                break
            total += value * (right - since)
            right = since
        return total / (end - begin)


class Peak:
    """A quantity that is constant between two changes, and its highest values over the recent past.

    Args:
        value: The value at the start and at all times before.
        kept: The longest time back from now that is asked for, in microseconds.

    Example:
        >>> peak = Peak(1.0, kept=60)
        >>> peak.set(10, 3.0)
        >>> peak.set(20, 2.0)
        >>> peak.highest(15), peak.highest(20)
        (3.0, 2.0)
    """

    __slots__ = ("_falls", "_kept", "value")

    def __init__(self, value: float, *, kept: int) -> None:
        self.value = value
        self._kept = kept
        # The end of each value that is higher than all later ones, and the value.
        self._falls: list[tuple[int, float]] = []

    def set(self, now: int, value: float) -> None:
        """Change the value.

        Args:
            now: The instant, in microseconds; not before the last change.
        """
        falls, before = self._falls, self.value
        self.value = value
        if value < before:
            del falls[: bisect_right(falls, now - self._kept, key=_END)]
            falls.append((now, before))
        else:
            while falls and falls[-1][1] <= value:
                falls.pop()

    def highest(self, begin: int) -> float:
        """Return the highest value since an instant, in microseconds."""
        falls = self._falls
        first = bisect_right(falls, begin, key=_END)
        return falls[first][1] if first < len(falls) else self.value
