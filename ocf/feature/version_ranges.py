"""What the comparators of a constraint mean, as ranges of version orders.

Every comparator except `!=` admits exactly the versions from one bound up to another, so a group of comparators that
must all hold is one range and perhaps some gaps, worked out when the constraint is built. A check is then two
comparisons of tuples, whatever was written.

The operand of a comparator may be partial, and that changes its meaning: `>1.2` starts at 1.3.0, `<=1.2` includes
1.2.9, `=1.2` is any 1.2. The answers are those of Go's Masterminds/semver 3.4, the odd ones included: `^*` is 0.0.0
alone, and `<=*` ends before 0.1.0.
"""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final, TypeAlias

from ocf.feature.versions import RELEASE, Identifier, Order

__all__ = ["OPERATORS", "Comparator", "Gap", "Operand", "Range"]

Interval: TypeAlias = tuple[Order, Order]
"""From the first bound, included, to the second, excluded."""

_FIRST: Final[Order] = (0, 0, 0, (), 0)
_BEYOND: Final[Order] = (math.inf, 0, 0, (), 0)
_MAJOR, _MINOR, _PATCH = 1, 2, 3


@dataclass(frozen=True, slots=True)
class Operand:
    """The version behind an operator.

    Args:
        order: The version, numbers that were left out or written `x` being 0.
        places: How many numbers count: 0 of `*`, 1 of `1.x`, 2 of `1.2`, 3 of `1.2.3`.
    """

    order: Order
    places: int

    @property
    def prerelease(self) -> tuple[Identifier, ...]:
        """The prerelease, `RELEASE` where none was written."""
        return self.order[3]

    @property
    def partial(self) -> bool:
        """Whether the operand stands for all patches of a minor, or all minors of a major; `*` does not."""
        return self.places in {_MAJOR, _MINOR}

    def just_after(self) -> Order:
        """The bound that parts this very version from the next one."""
        return (*self.order[:4], 1)

    def end(self, places: int) -> Order:
        """The bound behind all versions that share the first `places` numbers."""
        major, minor, patch, _, _ = self.order
        if places == _MAJOR:
            return (major + 1, 0, 0, (), 0)
        if places == _MINOR:
            return (major, minor + 1, 0, (), 0)
        return (major, minor, patch + 1, (), 0)


@dataclass(frozen=True, slots=True)
class Comparator:
    """One operator with its operand.

    Args:
        operator: A key of `OPERATORS`, or `!=`.
        operand: The version it compares with.
    """

    operator: str
    operand: Operand


@dataclass(frozen=True, slots=True)
class Gap:
    """What a `!=` takes out.

    Args:
        low: First bound, included.
        high: Second bound, excluded.
        prerelease: If given, only versions with this very prerelease are taken out.
    """

    low: Order
    high: Order
    prerelease: tuple[Identifier, ...] | None = None

    def holds(self, order: Order) -> bool:
        """Tell whether a version lies in the gap."""
        return self.low <= order < self.high and self.prerelease in (None, order[3])

    @classmethod
    def beside(cls, operand: Operand) -> "Gap":
        """Build the gap that `!=` leaves around its operand."""
        if not operand.partial:
            return cls(operand.order, operand.just_after())
        low = (*operand.order[:3], (), 0)
        # `!=1.2` leaves 1.2.5-rc.1 in, and `!=1.2-rc.1` takes out the -rc.1 of every patch, but no release.
        prerelease = operand.prerelease if operand.places == _MINOR else None
        return cls(low, operand.end(operand.places), prerelease)


@dataclass(frozen=True, slots=True)
class Range:
    """What a group of comparators admits that all have to hold.

    Args:
        low: First bound, included.
        high: Second bound, excluded.
        gaps: What lies between them and is not admitted all the same.
        prereleases: Whether prereleases are admitted at all.
    """

    low: Order
    high: Order
    gaps: tuple[Gap, ...]
    prereleases: bool

    @classmethod
    def where_all_hold(cls, comparators: Iterable[Comparator], *, include_prerelease: bool) -> "Range":
        """Build the range of a group.

        Args:
            comparators: The members of the group.
            include_prerelease: Admit prereleases although no member names one; where a member does, they are anyway.

        Returns:
            What they admit together.
        """
        members = tuple(comparators)
        gaps = tuple(Gap.beside(each.operand) for each in members if each.operator == "!=")
        intervals = [OPERATORS[each.operator](each.operand) for each in members if each.operator != "!="]
        return cls(
            low=max((low for low, _ in intervals), default=_FIRST),
            high=min((high for _, high in intervals), default=_BEYOND),
            gaps=gaps,
            prereleases=include_prerelease or any(each.operand.prerelease != RELEASE for each in members),
        )

    def holds(self, order: Order) -> bool:
        """Tell whether a version is admitted."""
        if not self.low <= order < self.high:
            return False
        if not self.prereleases and order[3] != RELEASE:
            return False
        return not (self.gaps and any(gap.holds(order) for gap in self.gaps))


def _at_least(operand: Operand) -> Interval:
    return operand.order, _BEYOND


def _below(operand: Operand) -> Interval:
    return _FIRST, operand.order


def _above(operand: Operand) -> Interval:
    return operand.end(operand.places) if operand.partial else operand.just_after(), _BEYOND


def _at_most(operand: Operand) -> Interval:
    if operand.places == _PATCH:
        return _FIRST, operand.just_after()
    return _FIRST, operand.end(operand.places or _MINOR)


def _tilde(operand: Operand) -> Interval:
    if not operand.partial and operand.order[:3] == (0, 0, 0):
        return operand.order, _BEYOND
    return operand.order, operand.end(min(operand.places, _MINOR))


def _equal(operand: Operand) -> Interval:
    if operand.places == _PATCH:
        return operand.order, operand.just_after()
    return _tilde(operand)


def _caret(operand: Operand) -> Interval:
    major, minor = operand.order[:2]
    if major > 0 or operand.places == _MAJOR:
        return operand.order, operand.end(_MAJOR)
    if minor > 0 or operand.places == _MINOR:
        return operand.order, operand.end(_MINOR)
    return operand.order, operand.end(_PATCH)


OPERATORS: Final[dict[str, Callable[[Operand], Interval]]] = {
    "": _equal,
    "=": _equal,
    ">": _above,
    "<": _below,
    ">=": _at_least,
    "=>": _at_least,
    "<=": _at_most,
    "=<": _at_most,
    "~": _tilde,
    "~>": _tilde,
    "^": _caret,
}
"""The operators whose comparators are one interval; `!=` is the one that is not."""
