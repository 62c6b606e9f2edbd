"""Version matrix: golden files for every supported version of a product, with as few files as possible.

Versions at which the same mutations fire form a version range, and one golden file per range is enough. A manifest
beside the files lists the versions of each range, so that a version that moves to another range shows up in a review.
Golden files only record; fixtures state which mutations must and must not fire. Every registered mutation must be
required by a fixture or excluded, so that a new one cannot remain untested by accident.

All functions are pure; `cases` returns test cases for any test runner::

    @pytest.mark.parametrize("case", MATRIX.cases(), ids=str)
    def test_versions(case, update_goldens):
        case.check(update=update_goldens)
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any, Generic, TypeVar

from ocf.concepts import Data
from ocf.concepts.resource import MutationInspector
from ocf.errors import BuildError
from ocf.objects import dump_document
from ocf.testing.goldens import Subject, compared_with, parts_of, refresh, serialize
from ocf.testing.mutation_coverage import (
    Fixture,
    VersionRange,
    accounting_problems,
    expectation_problems,
    version_ranges,
)

__all__ = ["MatrixCase", "VersionMatrix"]

SpecT = TypeVar("SpecT")

_MANIFEST = "manifest.yaml"


@dataclass(frozen=True, slots=True)
class MatrixCase:
    """One test of a matrix.

    Args:
        name: Name of a fixture, `manifest.yaml`, or `every mutation`.
        problems: Yields the problems; called with True it writes the files instead of comparing them.
    """

    name: str
    problems: Callable[[bool], Iterator[str]] = field(repr=False)

    def __str__(self) -> str:
        return self.name

    def check(self, *, update: bool = False) -> None:
        """Run the test.

        Args:
            update: Write the files and their folders instead of comparing. Expectations are still checked.

        Raises:
            AssertionError: If there are problems; lists all of them.
        """
        __tracebackhide__ = True
        found = list(self.problems(update))
        if found:
            raise AssertionError("\n".join(found))


@dataclass(frozen=True, slots=True)
class _Built:
    version: str
    subject: Subject
    registered: tuple[str, ...]
    firing: tuple[str, ...]


# Not slotted: calling an alias such as `VersionMatrix[Spec]` would fail on Python 3.11, see `Fixture`.
@dataclass(frozen=True, kw_only=True)
class VersionMatrix(Generic[SpecT]):
    """The combinations of versions and fixtures, and what is built from each.

    Args:
        directory: Folder of the golden files: `<fixture>/<representative>.yaml`, and `manifest.yaml`.
        versions: The supported versions; the first of a version range is its representative.
        fixtures: The configurations.
        build: Builds a resource, a component, or the components of one owner from a version and a fixture's spec.
        exclude: Mutations that intentionally no fixture requires.
        data: Values of the data cells while a case runs.

    Raises:
        BuildError: If an argument is invalid; lists all problems.
    """

    directory: str | Path
    versions: Sequence[str]
    fixtures: Sequence[Fixture[SpecT]]
    build: Callable[[str, SpecT], Subject]
    exclude: Collection[str] = ()
    data: Mapping[Data[Any], Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        problems = list(self._mistakes())
        if problems:
            raise BuildError(problems)

    def cases(self) -> tuple[MatrixCase, ...]:
        """Return the test cases: one per fixture, the manifest, and completeness. Building happens when they run."""
        checks: dict[str, Callable[[bool], Iterator[str]]] = {
            **{fixture.name: self._checks(fixture) for fixture in self.fixtures},
            _MANIFEST: self._manifest_problems,
            "every mutation": lambda _: self._accounting(),
        }
        return tuple(MatrixCase(name, self._seeded(check)) for name, check in checks.items())

    def _seeded(self, check: Callable[[bool], Iterator[str]]) -> Callable[[bool], Iterator[str]]:
        def checked(update: bool) -> Iterator[str]:  # noqa: FBT001 (called by a case)
            with ExitStack() as stack:
                for cell, value in self.data.items():
                    stack.enter_context(cell.seeded(value))
                yield from check(update)

        return checked

    def version_ranges(self, fixture: Fixture[SpecT]) -> tuple[VersionRange, ...]:
        """Group the versions by the mutations that fire at them.

        Args:
            fixture: The configuration.

        Raises:
            ConfigError: If a gate cannot be evaluated.
        """
        return version_ranges({built.version: built.firing for built in self._built(fixture)})

    def _built(self, fixture: Fixture[SpecT]) -> list[_Built]:
        return [self._at(version, fixture) for version in self.versions]

    def _at(self, version: str, fixture: Fixture[SpecT]) -> _Built:
        try:
            subject = self.build(version, fixture.spec)
            inspectors = [part for part in parts_of(subject) if isinstance(part, MutationInspector)]
            registered = dict.fromkeys(chain.from_iterable(each.registered_mutations for each in inspectors))
            firing = dict.fromkeys(chain.from_iterable(each.firing_set() for each in inspectors))
            return _Built(version, subject, tuple(registered), tuple(firing))
        except Exception as error:
            error.add_note(f"while building fixture {fixture.name} at version {version}")
            raise

    def _checks(self, fixture: Fixture[SpecT]) -> Callable[[bool], Iterator[str]]:
        return lambda update: self._fixture_problems(fixture, update=update)

    def _fixture_problems(self, fixture: Fixture[SpecT], *, update: bool) -> Iterator[str]:
        built = {each.version: each for each in self._built(fixture)}
        firing = {version: each.firing for version, each in built.items()}
        yield from expectation_problems(fixture, firing)
        folder = Path(self.directory) / fixture.name
        files = {folder / f"{one.representative}.yaml": one.representative for one in version_ranges(firing)}
        for path, version in files.items():
            yield from _golden_problems(path, serialize(built[version].subject), update=update)
        for path in sorted(folder.glob("*.yaml")):
            if path not in files:
                yield f"golden file {path} does not belong to a version range any more: remove it"

    def _manifest_problems(self, update: bool) -> Iterator[str]:  # noqa: FBT001 (called by a case)
        directory = Path(self.directory)
        fixtures = [{"name": fixture.name, "regimes": self._described(fixture)} for fixture in self.fixtures]
        yield from _golden_problems(directory / _MANIFEST, dump_document({"fixtures": fixtures}), update=update)
        known = {fixture.name for fixture in self.fixtures}
        for folder in sorted({path.parent for path in directory.glob("*/*.yaml")}):
            if folder.name not in known:
                yield f"folder {folder} does not belong to a fixture any more: remove it"

    def _described(self, fixture: Fixture[SpecT]) -> list[dict[str, object]]:
        return [
            {
                "representative": one.representative,
                "versions": list(one.versions),
                "firing": list(one.firing),
            }
            for one in self.version_ranges(fixture)
        ]

    def _accounting(self) -> Iterator[str]:
        everything = chain.from_iterable(self._built(fixture) for fixture in self.fixtures)
        registered = dict.fromkeys(name for built in everything for name in built.registered)
        yield from accounting_problems(
            registered,
            required=[wanted.mutation for fixture in self.fixtures for wanted in fixture.required],
            forbidden=[unwanted.mutation for fixture in self.fixtures for unwanted in fixture.forbidden],
            excluded=self.exclude,
        )

    def _mistakes(self) -> Iterator[str]:
        if not str(self.directory):
            yield "directory cannot be empty"
        if not self.versions:
            yield "versions cannot be empty"
        if not self.fixtures:
            yield "fixtures cannot be empty"
        if not callable(self.build):
            yield f"build must be a function of a version and a spec, got {self.build!r}"
        yield from _bad_names("version", self.versions)
        yield from _bad_names("fixture name", [fixture.name for fixture in self.fixtures])
        if "" in self.exclude:
            yield "exclude: a mutation's name cannot be empty"
        for fixture in self.fixtures:
            yield from self._bad_expectations(fixture)

    def _bad_expectations(self, fixture: Fixture[SpecT]) -> Iterator[str]:
        for expected in (*fixture.required, *fixture.forbidden):
            if not expected.mutation:
                yield f"fixture {fixture.name}: a mutation's name cannot be empty"
            if expected.at and expected.at not in self.versions:
                yield f"fixture {fixture.name}: {expected}: the version must be one of {', '.join(self.versions)}"


def _golden_problems(path: Path, text: str, *, update: bool) -> Iterator[str]:
    if update:
        refresh(path, text)
    elif problem := compared_with(path, text):
        yield problem


def _bad_names(what: str, names: Sequence[str]) -> Iterator[str]:
    """Check names that are used as file names."""
    for name in dict.fromkeys(names):
        if not name:
            yield f"{what} cannot be empty"
        elif name.startswith(".") or set(name) & set('/\\:*?"<>|\0'):
            yield f'{what} "{name}" cannot be used as the name of a file'
        if names.count(name) > 1:
            yield f'{what} "{name}" occurs {names.count(name)} times'
