"""Gates: conditions that decide whether a mutation is applied.

Gates are frozen values, so several mutations can share a gate, and adding a condition for one of them does not affect
the others.

An invalid version is always an error, even if another condition is false. Otherwise an owner with `version: latest`
would work until the user enables the feature.
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
    """Decides whether a mutation is applied; `VersionGate` and `BooleanGate` are the built-in gates."""

    def enabled(self) -> bool:
        """Return whether the gate is open; it must be deterministic and have no side effects.

        Raises:
            FeatureGateError: If the gate cannot be evaluated.
        """
        ...


@dataclass(frozen=True, slots=True)
class BooleanGate:
    """A gate that does not depend on a version.

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

    def when(self, condition: bool) -> Self:  # noqa: FBT001 - `.when(enabled)` is readable
        """Return a new gate that is open only if this gate is open and a condition is true.

        Args:
            condition: The additional condition.

        Returns:
            The new gate; this gate is not changed.

        Raises:
            ConfigError: If the condition is not True or False.
        """
        _require_bool("when()", condition)
        return type(self)(self.value and condition)

    def enabled(self) -> bool:
        """Return whether the gate is open."""
        return self.value


@dataclass(frozen=True, init=False)
class VersionGate:
    """A gate that is open for some versions.

    Constraints are written by the author of the operator: an invalid one raises an error when the gate is built. The
    version comes from the user: it is parsed when the gate is evaluated, and an invalid one is then an error, even if
    another condition is false or there are no constraints.

    Args:
        version: The version to check, for example `spec.version` of an owner; it may be short (`1.5`) and start with
            `v`.
        *constraints: All of them must admit the version. None is ignored; without constraints the gate is open for
            every version. See `Constraint` for the syntax.
        ignore_vendor_suffix: For versions of clusters. `1.31.4-gke.1234000` and `1.31.4-eks-1a2b3c` are releases, but
            the hyphen makes them prereleases of 1.31.4, which `>=1.31.4` does not admit. This option removes the text
            between the hyphen and `+` before the check, unless it starts with `alpha`, `beta` or `rc`, which mark
            prereleases of Kubernetes itself.

    Raises:
        ConstraintError: If any constraint is invalid; the message contains all invalid ones.

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
    """False if any condition passed to `when` is False."""

    def __init__(self, version: str, *constraints: str | Constraint | None, ignore_vendor_suffix: bool = False) -> None:
        _require_bool("ignore_vendor_suffix", ignore_vendor_suffix)
        object.__setattr__(self, "version", version)
        object.__setattr__(self, "constraints", _read_constraints(constraints))
        object.__setattr__(self, "ignore_vendor_suffix", ignore_vendor_suffix)
        object.__setattr__(self, "switched_on", True)

    def when(self, condition: bool) -> Self:  # noqa: FBT001 - `.when(enabled)` is readable
        """Return a new gate that is open only if this gate is open and a condition is true.

        Args:
            condition: The additional condition.

        Returns:
            The new gate; this gate is not changed.

        Raises:
            ConfigError: If the condition is not True or False.
        """
        _require_bool("when()", condition)
        gate = copy(self)
        object.__setattr__(gate, "switched_on", self.switched_on and condition)
        return gate

    def enabled(self) -> bool:
        """Return whether all conditions are true and all constraints admit the version.

        Raises:
            FeatureGateError: If the version is invalid, regardless of conditions and constraints.
        """
        order = _order_of(self.version, ignore_vendor_suffix=self.ignore_vendor_suffix)
        # A loop, because all() over a generator would take a third of the time.
        for constraint in self.constraints:
            if not constraint.admits(order):
                return False
        return self.switched_on


# Every reconcile builds new gates, with few different versions and constraints.
@lru_cache(maxsize=256)
def _known_order(version: str, *, ignore_vendor_suffix: bool) -> Order:
    read = parse_version(version)
    return version_order(release_of(read) if ignore_vendor_suffix else read)


def _order_of(version: object, *, ignore_vendor_suffix: bool) -> Order:
    """Return the order of a version, which comes from the user and may have any type."""
    if not isinstance(version, str):
        return version_order(parse_version(version))
    return _known_order(version, ignore_vendor_suffix=ignore_vendor_suffix)


def _constraint(text: object) -> Constraint:
    # Constraint rejects a value that is not a string.
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
    # Any other value is a mistake that would always open the gate: a function that was not called, the text "false".
    if not isinstance(value, bool):
        raise ConfigError(f"{where} takes True or False, got {shown(value)}")
