"""One version constraint: read once, checked as often as gates are asked.

Go operators and Helm charts state their version ranges in the language of Masterminds/semver, so the same text means
the same here. The languages that Python knows (`packaging`, npm's, Poetry's) look alike and answer differently
wherever it matters: prereleases, partial versions, commas.
"""

from dataclasses import dataclass, field

from semver import Version

from ocf.feature.constraint_parser import parse_constraint
from ocf.feature.version_ranges import Range
from ocf.feature.versions import Order, parse_version, version_order

__all__ = ["Constraint"]


@dataclass(frozen=True, slots=True)
class Constraint:
    """A version constraint, as Go's Masterminds/semver 3.4 reads it.

    ========================  =============================================================================
    text                      admits
    ========================  =============================================================================
    `>=1.2.3`, `>`, `<`       as written; also `=>`, `<=`, `=<`
    `=1.2.3` or `1.2.3`       that version, whatever its build; there is no `==`
    `!=1.2.3`, `!=1.2`        everything but that version, everything but 1.2
    `>=1.2, <2` `>=1.2 <2`    what both admit
    `^1.2 || ^3`              what either admits; `||` binds weaker than comma and space
    `1.2`, `1.2.x`, `1.2.*`   any 1.2; `*` is any release
    `>1.2`, `<=1.2`           from 1.3.0, up to the last 1.2: a partial version stands for all it begins
    `^1.2.3`, `^0.2.3`        from it up to 2.0.0, up to 0.3.0: the first number that is not 0 stays
    `~1.2.3`, `~>1.2.3`       from it up to 1.3.0; `~1` up to 2.0.0
    `1.2 - 1.4`               `>=1.2, <=1.4`
    ========================  =============================================================================

    Versions may have a `v` in front. A prerelease is admitted only by an alternative in which some comparator names a
    prerelease, and then it has to lie in the range like any other version: `>=1.2.0-0` is the usual way to say "from
    1.2.0, prereleases too". Builds (`+k3s1`) count for nothing.

    Constraints are compared by text, not by meaning: `>=1` and `>= 1` differ.

    Args:
        text: The constraint, at most 512 characters and 32 alternatives.
        include_prerelease: Admit prereleases that lie in the range although no comparator names one.

    Raises:
        ConstraintError: If the text is no constraint; it names the part that is wrong.

    Example:
        >>> supported = Constraint(">=1.2, <2 || ^3")
        >>> supported.check("v1.9.0"), supported.check("2.5"), supported.check("3.0.0-rc.1")
        (True, False, False)
    """

    text: str
    include_prerelease: bool = field(default=False, kw_only=True)
    _alternatives: tuple[Range, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        alternatives = tuple(
            Range.where_all_hold(group, include_prerelease=self.include_prerelease)
            for group in parse_constraint(self.text)
        )
        object.__setattr__(self, "_alternatives", alternatives)

    def __str__(self) -> str:
        return self.text

    def check(self, version: str | Version) -> bool:
        """Tell whether the constraint admits a version.

        Args:
            version: The version; as text it may be short (`1.5`) and have a `v` in front.

        Returns:
            The answer.

        Raises:
            FeatureGateError: If the text is no version.

        Example:
            >>> Constraint("~1.31").check("1.31.4+k3s1")
            True
        """
        read = version if isinstance(version, Version) else parse_version(version)
        return self.admits(version_order(read))

    def admits(self, order: Order) -> bool:
        """Tell whether the constraint admits a version that was turned into its order before.

        Args:
            order: What `ocf.feature.versions.version_order` returned.

        Returns:
            The answer.
        """
        # A loop, because any() over a generator would take half of the microsecond that a check may cost.
        for alternative in self._alternatives:  # noqa: SIM110 - see above
            if alternative.holds(order):
                return True
        return False
