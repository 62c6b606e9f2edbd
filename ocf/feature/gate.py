"""Gates: when a mutation is applied.

A gate is a frozen value, so that one gate can serve many mutations and adding a condition for one of them does not
change the others.

A broken version is an error whatever else the gate holds. If a condition that happens to be false hid it, an owner with
`version: latest` would work until the day somebody switches the feature on.
"""

from collections.abc import Iterable
from copy import copy
from dataclasses import dataclass
from functools import lru_cache
from typing import Protocol, Self, cast

from ocf.errors import ConfigError, ConstraintError
from ocf.feature.constraint import Constraint
from ocf.feature.versions import Order, parse_version, release_of, shown, version_order

__all__ = ["BooleanGate", "Gate", "VersionGate"]


class Gate(Protocol):
    """Decides whether something is done; `VersionGate` and `BooleanGate` are the ones in the box."""

    def enabled(self) -> bool:
        """Answer, without side effects and the same each time.

        Returns:
            Whether the gate is open.

        Raises:
            FeatureGateError: If it cannot answer.
        """
        ...


@dataclass(frozen=True, slots=True)
class BooleanGate:
    """A gate that needs no version.

    Args:
        value: Whether the gate is open.

    Raises:
        ConfigError: If the value is not True or False.

    Example:
        >>> BooleanGate(True).when(False).enabled()
        False
    """

    value: bool

    def __post_init__(self) -> None:
        _require_bool("a boolean gate", self.value)

    def when(self, condition: bool) -> Self:  # noqa: FBT001 - `.when(enabled)` reads as the sentence it is
        """Give a new gate that is open only if this one is and the condition holds.

        Args:
            condition: One more thing that has to hold.

        Returns:
            The new gate; this one stays as it is.

        Raises:
            ConfigError: If the condition is not True or False.
        """
        _require_bool("when()", condition)
        return type(self)(self.value and condition)

    def enabled(self) -> bool:
        """Answer.

        Returns:
            Whether the gate is open.
        """
        return self.value


@dataclass(frozen=True, init=False)
class VersionGate:
    """A gate that is open for some versions.

    The constraints are the author's: a bad one fails here, when the gate is built. The version is the user's: it is
    read when the gate is asked, and a bad one is then an error, also behind a false condition and without constraints.

    Args:
        version: The version to judge, for example an owner's `spec.version`; it may be short (`1.5`) and have a `v` in
            front.
        *constraints: All of them have to admit the version. None stands for no constraint; without any, the gate is
            open for every version. See `Constraint` for the language.
        ignore_vendor_suffix: For versions of clusters. `1.31.4-gke.1234000` and `1.31.4-eks-1a2b3c` are releases, but
            the hyphen makes them prereleases of 1.31.4, which `>=1.31.4` does not admit. With this switch whatever
            stands between the hyphen and `+` is dropped before the check, unless it begins with `alpha`, `beta` or
            `rc`: Kubernetes names its own prereleases so, and they stay prereleases.

    Raises:
        ConstraintError: If a constraint is none; all that are wrong are named.

    Example:
        >>> gate = VersionGate("2.3.1", ">=2, <3")
        >>> gate.enabled(), gate.when(False).enabled()
        (True, False)
        >>> VersionGate("v1.31.4-gke.1234000", ">=1.31", ignore_vendor_suffix=True).enabled()
        True
    """

    version: str
    constraints: tuple[Constraint, ...]
    ignore_vendor_suffix: bool
    switched_on: bool
    """False as soon as one `when` got False."""

    def __init__(self, version: str, *constraints: str | Constraint | None, ignore_vendor_suffix: bool = False) -> None:
        _require_bool("ignore_vendor_suffix", ignore_vendor_suffix)
        object.__setattr__(self, "version", version)
        object.__setattr__(self, "constraints", _read_constraints(constraints))
        object.__setattr__(self, "ignore_vendor_suffix", ignore_vendor_suffix)
        object.__setattr__(self, "switched_on", True)

    def when(self, condition: bool) -> Self:  # noqa: FBT001 - `.when(enabled)` reads as the sentence it is
        """Give a new gate that is open only if this one is and the condition holds.

        Args:
            condition: One more thing that has to hold.

        Returns:
            The new gate; this one stays as it is.

        Raises:
            ConfigError: If the condition is not True or False.
        """
        _require_bool("when()", condition)
        gate = copy(self)
        object.__setattr__(gate, "switched_on", self.switched_on and condition)
        return gate

    def enabled(self) -> bool:
        """Answer.

        Returns:
            Whether all conditions are true and all constraints admit the version.

        Raises:
            FeatureGateError: If the version is not a version, whatever the conditions and the constraints are.
        """
        order = _order_of(self.version, ignore_vendor_suffix=self.ignore_vendor_suffix)
        # A loop, because all() over a generator would take a third of the time.
        for constraint in self.constraints:
            if not constraint.admits(order):
                return False
        return self.switched_on


# A gate is made anew in every pass, about the same few versions and with the same constraints.
@lru_cache(maxsize=256)
def _known_order(version: str, *, ignore_vendor_suffix: bool) -> Order:
    read = parse_version(version)
    return version_order(release_of(read) if ignore_vendor_suffix else read)


def _order_of(version: object, *, ignore_vendor_suffix: bool) -> Order:
    """Return the order of a version, which is the user's data and may be anything."""
    if not isinstance(version, str):
        return version_order(parse_version(version))
    return _known_order(version, ignore_vendor_suffix=ignore_vendor_suffix)


def _constraint(text: object) -> Constraint:
    # What is no text is refused by reading it as one.
    return _known_constraint(text) if isinstance(text, str) else Constraint(cast("str", text))


@lru_cache(maxsize=1024)
def _known_constraint(text: str) -> Constraint:
    return Constraint(text)


def _read_constraints(constraints: Iterable[str | Constraint | None]) -> tuple[Constraint, ...]:
    read: list[Constraint] = []
    problems: list[str] = []
    for each in constraints:
        if each is None:
            continue
        try:
            read.append(each if isinstance(each, Constraint) else _constraint(each))
        except ConstraintError as error:
            problems.append(str(error))
    if problems:
        raise ConstraintError("\n".join(problems))
    return tuple(read)


def _require_bool(where: str, value: object) -> None:
    # Anything else is a slip that would open the gate for good: a function that was not called, the text "false".
    if not isinstance(value, bool):
        raise ConfigError(f"{where} takes True or False, got {shown(value)}")
