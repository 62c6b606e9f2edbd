"""Version constraints in the syntax of Go's Masterminds/semver.

Go operators and Helm charts state their version ranges in this syntax, so the same text has the same meaning here. The
syntaxes known in Python (`packaging`, npm, Poetry) look alike but differ for prereleases, partial versions and commas.

A constraint is parsed once and checked often. Every comparator except `!=` admits one interval of versions, so a group
of comparators that must all hold is one range, possibly with gaps. A check then only compares tuples.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

from semver import Version

from ocf.feature.comparators import FIRST, MINOR, OPERATORS, UNBOUNDED, Comparator, Operand
from ocf.feature.constraint_parser import parse_constraint
from ocf.feature.versions import RELEASE, Identifier, Order, parse_version, version_order

__all__ = ["Constraint"]


@dataclass(frozen=True, slots=True)
class _Gap:
    """The versions that one `!=` excludes.

    Args:
        low: Lower bound, inclusive.
        high: Upper bound, exclusive.
        prerelease: If given, only versions with exactly this prerelease are excluded.
    """

    low: Order
    high: Order
    prerelease: tuple[Identifier, ...] | None = None

    def holds(self, order: Order) -> bool:
        """Return whether the gap excludes a version."""
        return self.low <= order < self.high and self.prerelease in (None, order[3])

    @classmethod
    def of(cls, operand: Operand) -> "_Gap":
        """Return the gap of a `!=` with an operand."""
        if not operand.partial:
            return cls(operand.order, operand.just_after())
        low = (*operand.order[:3], (), 0)
        # `!=1.2` admits 1.2.5-rc.1, and `!=1.2-rc.1` excludes the -rc.1 of every patch, but not the releases.
        prerelease = operand.prerelease if operand.places == MINOR else None
        return cls(low, operand.end(operand.places), prerelease)


@dataclass(frozen=True, slots=True)
class _Range:
    """The versions admitted by a group of comparators that must all hold.

    Args:
        low: Lower bound, inclusive.
        high: Upper bound, exclusive.
        gaps: Versions between the bounds that are not admitted.
        prereleases: Whether prereleases are admitted.
    """

    low: Order
    high: Order
    gaps: tuple[_Gap, ...]
    prereleases: bool

    @classmethod
    def of(cls, comparators: Iterable[Comparator], *, include_prerelease: bool) -> "_Range":
        """Return the range of a group.

        Args:
            comparators: The comparators of the group.
            include_prerelease: Admit prereleases even if no comparator names one.
        """
        members = tuple(comparators)
        gaps = tuple(_Gap.of(each.operand) for each in members if each.operator == "!=")
        intervals = [OPERATORS[each.operator](each.operand) for each in members if each.operator != "!="]
        return cls(
            low=max((low for low, _ in intervals), default=FIRST),
            high=min((high for _, high in intervals), default=UNBOUNDED),
            gaps=gaps,
            prereleases=include_prerelease or any(each.operand.prerelease != RELEASE for each in members),
        )

    def holds(self, order: Order) -> bool:
        """Return whether the range admits a version."""
        if not self.low <= order < self.high:
            return False
        if not self.prereleases and order[3] != RELEASE:
            return False
        return not (self.gaps and any(gap.holds(order) for gap in self.gaps))


@dataclass(frozen=True, slots=True)
class Constraint:
    """A version constraint, as Go's Masterminds/semver 3.4 reads it.

    ========================  =============================================================================
    text                      admits
    ========================  =============================================================================
    `>=1.2.3`, `>`, `<`       as written; also `=>`, `<=`, `=<`
    `=1.2.3` or `1.2.3`       that version, whatever its build; there is no `==`
    `!=1.2.3`, `!=1.2`        everything but that version, everything but 1.2
    `>=1.2, <2` `>=1.2 <2`    versions that both admit
    `^1.2 || ^3`              versions that either admits; `||` binds weaker than comma and space
    `1.2`, `1.2.x`, `1.2.*`   any 1.2; `*` is any release
    `>1.2`, `<=1.2`           from 1.3.0, up to the last 1.2: a partial version stands for all it begins
    `^1.2.3`, `^0.2.3`        from it up to 2.0.0, up to 0.3.0: the first number that is not 0 stays
    `~1.2.3`, `~>1.2.3`       from it up to 1.3.0; `~1` up to 2.0.0
    `1.2 - 1.4`               `>=1.2, <=1.4`
    ========================  =============================================================================

    Versions may start with `v`. A prerelease is admitted only by an alternative in which some comparator names a
    prerelease, and it must lie in the range like any other version: `>=1.2.0-0` is the usual spelling of "from 1.2.0,
    including prereleases". Build metadata (`+k3s1`) is ignored.

    Constraints are compared by text, not by meaning: `>=1` and `>= 1` differ.

    Args:
        text: The constraint, at most 512 characters and 32 alternatives.
        include_prerelease: Admit prereleases that lie in the range even if no comparator names one.

    Raises:
        ConstraintError: If the text is not a constraint; the message names the invalid part.

    Example:
        >>> supported = Constraint(">=1.2, <2 || ^3")
        >>> supported.check("v1.9.0"), supported.check("2.5"), supported.check("3.0.0-rc.1")
        (True, False, False)
    """

    text: str
    include_prerelease: bool = field(default=False, kw_only=True)
    _alternatives: tuple[_Range, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        alternatives = tuple(
            _Range.of(group, include_prerelease=self.include_prerelease) for group in parse_constraint(self.text)
        )
        object.__setattr__(self, "_alternatives", alternatives)

    def __str__(self) -> str:
        return self.text

    def check(self, version: str | Version) -> bool:
        """Return whether the constraint admits a version.

        Args:
            version: The version; as text it may be short (`1.5`) and start with `v`.

        Raises:
            FeatureGateError: If the text is not a version.

        Example:
            >>> Constraint("~1.31").check("1.31.4+k3s1")
            True
        """
        read = version if isinstance(version, Version) else parse_version(version)
        return self.admits(version_order(read))

    def admits(self, order: Order) -> bool:
        """Return whether the constraint admits a version, given as its order.

        Args:
            order: Result of `ocf.feature.versions.version_order`.
        """
        # A loop, because any() over a generator would take half of the microsecond that a check may cost.
        for alternative in self._alternatives:  # noqa: SIM110 - see above
            if alternative.holds(order):
                return True
        return False
