"""Comparators of a version constraint, and the interval of versions that each of them admits.

The operand of a comparator may be partial, and that changes its meaning: `>1.2` starts at 1.3.0, `<=1.2` includes
1.2.9, `=1.2` is any 1.2. The results are those of Go's Masterminds/semver 3.4, including its edge cases: `^*` admits
0.0.0 alone, and `<=*` ends before 0.1.0.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, TypeAlias

from ocf.feature.versions import Identifier, Order

__all__ = ["FIRST", "MINOR", "OPERATORS", "UNBOUNDED", "Comparator", "Operand"]

Interval: TypeAlias = tuple[Order, Order]
"""From the first bound (inclusive) to the second (exclusive)."""

FIRST: Final[Order] = (0, 0, 0, (), 0)
"""The lower bound of all versions."""

UNBOUNDED: Final[Order] = (math.inf, 0, 0, (), 0)
"""The upper bound of all versions."""

_MAJOR, MINOR, _PATCH = 1, 2, 3


@dataclass(frozen=True, slots=True)
class Operand:
    """The version an operator compares with.

    Args:
        order: The version; numbers that are left out or written as `x` are 0.
        places: Count of numbers that are given: 0 in `*`, 1 in `1.x`, 2 in `1.2`, 3 in `1.2.3`.
    """

    order: Order
    places: int

    @property
    def prerelease(self) -> tuple[Identifier, ...]:
        """The prerelease; `RELEASE` without one."""
        return self.order[3]

    @property
    def partial(self) -> bool:
        """Whether the operand stands for all patches of a minor or all minors of a major; false for `*`."""
        return self.places in {_MAJOR, MINOR}

    def just_after(self) -> Order:
        """Return the bound between this version and the next one."""
        return (*self.order[:4], 1)

    def end(self, places: int) -> Order:
        """Return the bound after all versions that share the first `places` numbers."""
        major, minor, patch, _, _ = self.order
        if places == _MAJOR:
            return (major + 1, 0, 0, (), 0)
        if places == MINOR:
            return (major, minor + 1, 0, (), 0)
        return (major, minor, patch + 1, (), 0)


@dataclass(frozen=True, slots=True)
class Comparator:
    """An operator with its operand.

    Args:
        operator: A key of `OPERATORS`, or `!=`.
        operand: The version to compare with.
    """

    operator: str
    operand: Operand


def _at_least(operand: Operand) -> Interval:
    return operand.order, UNBOUNDED


def _below(operand: Operand) -> Interval:
    return FIRST, operand.order


def _above(operand: Operand) -> Interval:
    return operand.end(operand.places) if operand.partial else operand.just_after(), UNBOUNDED


def _at_most(operand: Operand) -> Interval:
    if operand.places == _PATCH:
        return FIRST, operand.just_after()
    return FIRST, operand.end(operand.places or MINOR)


def _tilde(operand: Operand) -> Interval:
    if not operand.partial and operand.order[:3] == (0, 0, 0):
        return operand.order, UNBOUNDED
    return operand.order, operand.end(min(operand.places, MINOR))


def _equal(operand: Operand) -> Interval:
    if operand.places == _PATCH:
        return operand.order, operand.just_after()
    return _tilde(operand)


def _caret(operand: Operand) -> Interval:
    major, minor = operand.order[:2]
    if major > 0 or operand.places == _MAJOR:
        return operand.order, operand.end(_MAJOR)
    if minor > 0 or operand.places == MINOR:
        return operand.order, operand.end(MINOR)
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
"""The operators that admit one interval, which is every operator except `!=`."""
