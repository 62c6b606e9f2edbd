"""Objectives and requirements of a search, and which of two results is better."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import hypot, inf
from typing import Final

from ocf.errors import ConfigError
from ocf.simulation.measures.catalog import MEASURES
from ocf.simulation.measures.measuring import check_name
from ocf.simulation.scenario.objectives import Objectives

__all__ = ["Objective", "dominates", "front_of", "parse_objectives", "ranked", "scenario_requirements"]

_DIRECTIONS: Final = ("min", "max")
_DEFAULT: Final = ("overload_time", "pod_hours")


@dataclass(frozen=True, slots=True)
class Objective:
    """A measure to minimize or to maximize.

    Args:
        name: Name of the measure.
        is_minimized: Whether lower values are better.
    """

    name: str
    is_minimized: bool = True

    def loss(self, value: float) -> float:
        """Return a number that is lower if the value is better.

        Args:
            value: The value of the measure.
        """
        return value if self.is_minimized else -value


def parse_objectives(texts: Iterable[str]) -> tuple[Objective, ...]:
    """Parse objectives.

    Args:
        texts: Names of measures; `NAME:min` or `NAME:max` sets the direction. None at all: overload time and pod-hours.

    Raises:
        ConfigError: If a name is unknown or given twice, or a direction is missing or contradicts the measure.

    Example:
        >>> parse_objectives(["overload_time", "ready_mean:min"])
        (Objective(name='overload_time', is_minimized=True), Objective(name='ready_mean', is_minimized=True))
    """
    found: dict[str, Objective] = {}
    for text in tuple(texts) or _DEFAULT:
        name, _, direction = text.strip().partition(":")
        name, direction = check_name(name.strip()), direction.strip()
        if name in found:
            raise ConfigError(f"the objective {name} is given twice")
        found[name] = Objective(name, _is_minimized(name, direction))
    return tuple(found.values())


def _is_minimized(name: str, direction: str) -> bool:
    usual = MEASURES[name].lower_is_better
    if direction and direction not in _DIRECTIONS:
        raise ConfigError(f"objective {name}: the direction must be min or max, got {direction!r}")
    if not direction and usual is None:
        raise ConfigError(f"objective {name}: lower values are not always better: write {name}:min or {name}:max")
    is_minimized = usual if not direction else direction == "min"
    if usual is not None and is_minimized is not usual:
        best = "lower" if usual else "higher"
        raise ConfigError(f"objective {name}:{direction}: contradicts the measure, of which {best} values are better")
    return bool(is_minimized)


def scenario_requirements(objectives: Objectives, *, has_latencies: bool = True) -> tuple[str, ...]:
    """Return the bounds that a scenario sets as conditions over measures.

    Args:
        objectives: The objectives of the scenario.
        has_latencies: Whether its latencies mean something; otherwise a bound of them is left out.

    Example:
        >>> scenario_requirements(Objectives.model_validate({"overloadTime": 0.02, "latency": {"atMost": "2s"}}))
        ('overload_time <= 0.02', 'late_share <= 0.05')
    """
    bounds = [
        (name, getattr(objectives, name))
        for name in ("overload_time", "pod_hours", "cost")
        if getattr(objectives, name) is not None
    ]
    if objectives.latency is not None and has_latencies:
        # At most 5 % are later than the bound exactly if the 95th percentile is at most the bound.
        bounds.append(("late_share", round(1 - objectives.latency.percentile / 100, 9)))
    return tuple(f"{name} <= {bound:.12g}" for name, bound in bounds)


def dominates(one: Sequence[float], other: Sequence[float]) -> bool:
    """Return whether losses are better in one objective, and not worse in any.

    Example:
        >>> dominates([1, 2], [1, 3]), dominates([1, 3], [2, 2]), dominates([1, 2], [1, 2])
        (True, False, False)
    """
    return all(left <= right for left, right in zip(one, other, strict=True)) and tuple(one) != tuple(other)


def front_of(losses: Sequence[Sequence[float]]) -> list[int]:
    """Return the positions of the losses that no other ones dominate; of equal losses only the first.

    Example:
        >>> front_of([(2, 2), (1, 3), (3, 3), (2, 2)])
        [0, 1]
    """
    # In this order, losses can only be dominated by those before them.
    order = sorted(range(len(losses)), key=lambda at: (tuple(losses[at]), at))
    front: list[int] = []
    for at in order:
        if not any(
            dominates(losses[member], losses[at]) or tuple(losses[member]) == tuple(losses[at]) for member in front
        ):
            front.append(at)
    return sorted(front)


def ranked(losses: Sequence[Sequence[float]]) -> list[int]:
    """Return positions by distance from the ideal: the best value of each objective, all ranges alike.

    Example:
        >>> ranked([(0, 10), (2, 2), (10, 0)])
        [1, 0, 2]
    """
    best = [min(values) for values in zip(*losses, strict=True)]
    # An objective in which all are equal counts for nothing.
    spans = [(max(values) - min(values)) or inf for values in zip(*losses, strict=True)]
    distances = [
        hypot(*((value - least) / span for value, least, span in zip(row, best, spans, strict=True))) for row in losses
    ]
    return sorted(range(len(losses)), key=lambda at: (distances[at], at))
