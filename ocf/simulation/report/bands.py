"""Conditions over time as the bands of a chart, with a bounded number of changes."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise
from operator import attrgetter, itemgetter
from typing import Final

from ocf.simulation.result import ConditionChange

__all__ = ["MOST_CHANGES", "Band", "bands", "shortened"]

MOST_CHANGES: Final = 4_000
"""Changes of a band; where there are more, each part of the time has the state that holds longest in it."""

_GOOD: Final = {"AbleToScale": "True", "ScalingActive": "True", "ScalingLimited": "False"}

Changes = tuple[tuple[float, str, str], ...]
"""Begin in seconds, class of the colour, and text of each state."""


@dataclass(frozen=True, slots=True)
class Band:
    """A condition over time.

    Args:
        changes: Begin in seconds, class of the colour, and text of each state.
    """

    name: str
    changes: Changes


def bands(changes: Sequence[ConditionChange], duration: float, *, most: int = MOST_CHANGES) -> Iterator[Band]:
    """Yield a band for each type of condition.

    Args:
        duration: Length of the run in seconds.

    Example:
        >>> limited = {"type": "ScalingLimited", "status": "True", "reason": "TooFewReplicas", "message": ""}
        >>> [band] = bands([ConditionChange(time=0, **limited), ConditionChange(time=9, **limited)], 60)
        >>> band.name, band.changes
        ('ScalingLimited', ((0, 'warn', 'True: TooFewReplicas'),))
    """
    by_type = attrgetter("type")
    for name, several in groupby(sorted(changes, key=by_type), key=by_type):
        found = _merged([(each.time, _style(each), f"{each.status}: {each.reason}") for each in several])
        yield Band(name, shortened(found, duration, most))


def shortened(changes: Changes, duration: float, most: int) -> Changes:
    """Return changes of a band; where there are too many, each part of the time has the state that holds longest in it.

    Args:
        duration: Length of the run in seconds.
    """
    return changes if len(changes) <= most else _merged(_longest(changes, duration, most))


def _merged(changes: Sequence[tuple[float, str, str]]) -> Changes:
    """Leave out changes to the state that holds already."""
    return tuple(next(several) for _, several in groupby(changes, key=lambda each: each[1:]))


def _longest(changes: Changes, duration: float, parts: int) -> list[tuple[float, str, str]]:
    """Return for each part of the time the state that holds longest in it."""
    length = duration / parts
    totals: list[dict[tuple[str, str], float]] = [{} for _ in range(parts)]
    for (begin, style, text), (end, *_) in pairwise((*changes, (duration, "", ""))):
        for part in range(min(parts - 1, int(begin / length)), min(parts - 1, int(end / length)) + 1):
            inside = min(end, (part + 1) * length) - max(begin, part * length)
            totals[part][style, text] = totals[part].get((style, text), 0.0) + inside
    winners = [max(states.items(), key=itemgetter(1), default=None) for states in totals]
    return [(part * length, *winner[0]) for part, winner in enumerate(winners) if winner is not None]


def _style(change: ConditionChange) -> str:
    good = change.status == _GOOD.get(change.type, "True")
    if change.type == "ScalingLimited":
        return "off" if good else "warn"
    return "good" if good else "bad"
