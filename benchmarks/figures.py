"""Figures from samples: spread, ratio, and whether a limit holds."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from statistics import median
from typing import Any

from benchmarks.timer import Measure

__all__ = ["Case", "Count", "Figure", "Suite", "Unit", "counted", "timed"]


class Unit(StrEnum):
    """What the numbers of a figure count."""

    NANOSECONDS = "ns"
    COUNT = "count"


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A piece of code whose time is taken.

    Args:
        name: What it is called, `rendering.full`; what stands before the dot is its suite.
        what: What it does, in a few words.
        measure: Makes the calls.
        limit: Nanoseconds that the median must stay below; None for a figure that is only informative.
        against: Name of the case of the same suite that the ratio is taken to.
        beyond: Whether only what it takes more than `against` counts; the ratio still compares the whole.
        share: The largest ratio that is allowed; None for a ratio that is only informative.
        turns: How often it is measured in a round, in turns with the other cases that are measured so often. Two
            processes are never disturbed alike, so their ratio needs more samples; `against` has as many.
    """

    name: str
    what: str
    measure: Measure
    limit: float | None = None
    against: str = ""
    beyond: bool = False
    share: float | None = None
    turns: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Count:
    """A number that does not depend on the machine, and so is judged in every run.

    Args:
        name: As for a case.
        what: What is counted.
        value: How many there were, or what finds that out; it is asked after all times were taken.
        limit: How many are allowed; None for a figure that is only informative.
        against: Name of the count of the same suite that the ratio is taken to.
        share: The largest ratio that is allowed; None for a ratio that is only informative.
    """

    name: str
    what: str
    value: int | Callable[[], int]
    limit: int | None = None
    against: str = ""
    share: float | None = None

    def found(self) -> int:
        """Return how many there were."""
        return self.value() if callable(self.value) else self.value


Suite = Sequence[Case | Count]
"""Cases whose ratios are taken to each other, and counts that go with them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """One row of the table.

    Args:
        name: Name of the case or count.
        what: What was measured.
        unit: What the numbers count.
        minimum: The smallest of the rounds.
        median: The middle of the rounds; the limit applies to it.
        maximum: The largest of the rounds.
        rounds: How many there were.
        limit: What the median has to hold.
        holds: Whether median and ratio do; None without a limit, or where it was not judged.
        against: What the ratio is taken to.
        ratio: Median of the ratios of each round.
        share: What the ratio has to hold.
    """

    name: str
    what: str
    unit: Unit
    minimum: float
    median: float
    maximum: float
    rounds: int
    limit: float | None
    holds: bool | None
    against: str
    ratio: float | None
    share: float | None = None

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON."""
        return asdict(self)


def timed(case: Case, samples: Mapping[str, Sequence[float]], *, judged: bool) -> Figure:
    """Sum up the samples of a case.

    Args:
        case: The case.
        samples: Nanoseconds per call, one per round and turn, of all cases of the suite.
        judged: Whether the limit is looked at.
    """
    own = samples[case.name]
    others = samples.get(case.against)
    spread = [mine - other for mine, other in zip(own, others, strict=True)] if case.beyond and others else own
    middle = median(spread)
    ratio = median(mine / other for mine, other in zip(own, others, strict=True)) if others else None
    verdicts = [middle < case.limit] if case.limit is not None else []
    if case.share is not None and ratio is not None:
        verdicts.append(ratio <= case.share)
    return Figure(
        name=case.name,
        what=case.what,
        unit=Unit.NANOSECONDS,
        minimum=min(spread),
        median=middle,
        maximum=max(spread),
        rounds=len(own),
        limit=case.limit,
        holds=all(verdicts) if judged and verdicts else None,
        against=case.against if others else "",
        ratio=ratio,
        share=case.share,
    )


def counted(count: Count, suite: Suite = ()) -> Figure:
    """Turn a count into a row.

    Args:
        count: The count.
        suite: Where the count is that its ratio is taken to.
    """
    value = count.found()
    other = next((each.found() for each in suite if isinstance(each, Count) and each.name == count.against), 0)
    ratio = value / other if other else None
    verdicts = [value <= count.limit] if count.limit is not None else []
    if count.share is not None and ratio is not None:
        verdicts.append(ratio <= count.share)
    return Figure(
        name=count.name,
        what=count.what,
        unit=Unit.COUNT,
        minimum=value,
        median=value,
        maximum=value,
        rounds=1,
        limit=count.limit,
        holds=all(verdicts) if verdicts else None,
        against=count.against if other else "",
        ratio=ratio,
        share=count.share,
    )
