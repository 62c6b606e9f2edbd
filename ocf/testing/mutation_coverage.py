"""Coverage of mutations by versions: version ranges, expectations, and mutations that no fixture requires.

Versions are opaque strings here: nothing parses them or evaluates a constraint. Versions at which the same mutations
fire form one version range, whatever their names are.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeAlias, TypeVar

__all__ = [
    "Firing",
    "FiringSets",
    "Fixture",
    "VersionRange",
    "accounting_problems",
    "expectation_problems",
    "version_ranges",
]

SpecT = TypeVar("SpecT")

FiringSets: TypeAlias = Mapping[str, Sequence[str]]
"""The names of the mutations that fire, by version, in the order in which the versions were listed."""


@dataclass(frozen=True, slots=True)
class Firing:
    """The expectation that a mutation fires.

    Args:
        mutation: Name of the mutation.
        at: The version; empty for any.
    """

    mutation: str
    at: str = ""

    def __str__(self) -> str:
        return f"{self.mutation} at {self.at}" if self.at else self.mutation


# Not slotted: calling an alias such as `Fixture[Spec]` would fail on Python 3.11, where `typing` sets an attribute.
@dataclass(frozen=True, kw_only=True)
class Fixture(Generic[SpecT]):
    """One configuration of the product, and the expected mutations.

    Args:
        name: Name of the fixture and of the folder of its golden files.
        spec: The spec for `build`.
        requires: Mutations that must fire: a name at one version at least, a `Firing` at its version.
        forbids: Mutations that must not fire: a name at any version, a `Firing` at its version.
    """

    name: str
    spec: SpecT
    requires: Sequence[str | Firing] = ()
    forbids: Sequence[str | Firing] = ()

    @property
    def required(self) -> tuple[Firing, ...]:
        """The mutations that must fire."""
        return tuple(map(_firing, self.requires))

    @property
    def forbidden(self) -> tuple[Firing, ...]:
        """The mutations that must not fire."""
        return tuple(map(_firing, self.forbids))


@dataclass(frozen=True, slots=True)
class VersionRange:
    """Versions at which the same mutations fire.

    Args:
        representative: The first version, which represents all.
        versions: All versions, in the order in which they were listed.
        firing: The mutations, in order of registration.
    """

    representative: str
    versions: tuple[str, ...]
    firing: tuple[str, ...]


def version_ranges(firing: FiringSets) -> tuple[VersionRange, ...]:
    """Group versions by the mutations that fire at them.

    Returns:
        The version ranges, in the order of their representatives.

    Example:
        >>> for one in version_ranges({"1.8": ["port"], "1.9": ["port"], "2.0": []}):
        ...     print(one.representative, one.versions, one.firing)
        1.8 ('1.8', '1.9') ('port',)
        2.0 ('2.0',) ()
    """
    groups: dict[frozenset[str], list[str]] = {}
    for version, names in firing.items():
        groups.setdefault(frozenset(names), []).append(version)
    return tuple(VersionRange(versions[0], tuple(versions), tuple(firing[versions[0]])) for versions in groups.values())


def expectation_problems(fixture: Fixture[SpecT], firing: FiringSets) -> Iterator[str]:
    """Check the expectations of a fixture.

    Example:
        >>> fixture = Fixture(name="small", spec=None, requires=["tls"], forbids=[Firing("port", at="2.0")])
        >>> for problem in expectation_problems(fixture, {"1.9": ["port"], "2.0": ["port"]}):
        ...     print(problem)
        small: "tls" must fire at some version, and fires at none of 1.9, 2.0
        small: "port" must not fire at 2.0, and does
    """
    for wanted in fixture.required:
        if wanted.at and wanted.mutation not in firing[wanted.at]:
            fires = ", ".join(firing[wanted.at]) or "nothing"
            yield f'{fixture.name}: "{wanted.mutation}" must fire at {wanted.at}, where {fires} fires'
        if not wanted.at and not _versions_of(wanted.mutation, firing):
            yield (
                f'{fixture.name}: "{wanted.mutation}" must fire at some version, and fires at none of '
                f"{', '.join(firing)}"
            )
    for unwanted in fixture.forbidden:
        if unwanted.at and unwanted.mutation in firing[unwanted.at]:
            yield f'{fixture.name}: "{unwanted.mutation}" must not fire at {unwanted.at}, and does'
        if not unwanted.at and (versions := _versions_of(unwanted.mutation, firing)):
            yield f'{fixture.name}: "{unwanted.mutation}" must fire at no version, and fires at {", ".join(versions)}'


def accounting_problems(
    registered: Collection[str],
    *,
    required: Collection[str],
    forbidden: Collection[str] = (),
    excluded: Collection[str] = (),
) -> Iterator[str]:
    """Check that every mutation is either required by a fixture or excluded, and that every listed name exists.

    Args:
        forbidden: The names that fixtures forbid; they must exist, but must still be required or excluded.

    Example:
        >>> for problem in accounting_problems(["tls", "port"], required=["tls"], excluded=["old"]):
        ...     print(problem)
        mutation "port" is neither required by a fixture nor excluded: nothing shows that it ever fires
        "old" is excluded, but no mutation of that name is registered
    """
    known = set(registered)
    for name in _unique(registered):
        if not name:
            yield "a mutation without a name is registered"
        elif name not in required and name not in excluded:
            yield f'mutation "{name}" is neither required by a fixture nor excluded: nothing shows that it ever fires'
    for what, names in (("required", required), ("forbidden", forbidden), ("excluded", excluded)):
        for name in _unique(names):
            if name not in known:
                yield f'"{name}" is {what}, but no mutation of that name is registered'
    for name in _unique(excluded):
        if name in required:
            yield f'"{name}" is excluded, although a fixture requires it'


def _firing(expectation: str | Firing) -> Firing:
    return expectation if isinstance(expectation, Firing) else Firing(expectation)


def _versions_of(mutation: str, firing: FiringSets) -> list[str]:
    return [version for version, names in firing.items() if mutation in names]


def _unique(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(names))
