"""The version matrix: what a product renders at every version it supports, in as few golden files as possible.

A product with twelve supported versions does not have twelve faces. Versions at which the same mutations fire form a
regime, and one golden per regime is enough; a manifest beside them says which versions each stands for, so that a
version that changes sides shows in a review. What goldens cannot say, because they only record, fixtures say: this
mutation must fire here, that one must not. And every registered mutation has to be accounted for, so that a new one
cannot stay untested by being forgotten.

All of it is plain functions of values; `cases` hands them to any test runner::

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

from ocf.concepts import Data, MutationInspector
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
        name: What it is called: a fixture, `manifest.yaml`, or `every mutation`.
        problems: Finds what is wrong; told to update, writes files instead of comparing them.
    """

    name: str
    problems: Callable[[bool], Iterator[str]] = field(repr=False)

    def __str__(self) -> str:
        return self.name

    def check(self, *, update: bool = False) -> None:
        """Run the test.

        Args:
            update: Write the files, and their folders, instead of comparing. Expectations are checked all the same.

        Raises:
            AssertionError: With everything that is wrong.
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
    """Versions times fixtures, and what is built from them.

    Args:
        directory: Where the goldens lie: `<fixture>/<representative>.yaml`, and `manifest.yaml`.
        versions: The supported versions; the first of a regime is its representative.
        fixtures: The configurations.
        build: Builds a resource, a component, or the components of one owner from a version and a fixture's spec.
        exclude: Mutations that no fixture requires, on purpose.
        data: What data cells hold while a case runs.

    Raises:
        BuildError: With everything that is wrong with these.
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
        """Return the tests: one per fixture, one of the manifest, one of completeness. Nothing is built yet."""
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
        """Group the versions by what fires at them.

        Args:
            fixture: With which configuration.

        Raises:
            ConfigError: If a gate cannot answer.
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
                yield f"golden file {path} belongs to no regime any more: remove it"

    def _manifest_problems(self, update: bool) -> Iterator[str]:  # noqa: FBT001 (called by a case)
        directory = Path(self.directory)
        fixtures = [{"name": fixture.name, "regimes": self._described(fixture)} for fixture in self.fixtures]
        yield from _golden_problems(directory / _MANIFEST, dump_document({"fixtures": fixtures}), update=update)
        known = {fixture.name for fixture in self.fixtures}
        for folder in sorted({path.parent for path in directory.glob("*/*.yaml")}):
            if folder.name not in known:
                yield f"folder {folder} belongs to no fixture any more: remove it"

    def _described(self, fixture: Fixture[SpecT]) -> list[dict[str, object]]:
        return [
            {
                "representative": regime.representative,
                "versions": list(regime.versions),
                "firing": list(regime.firing),
            }
            for regime in self.version_ranges(fixture)
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
                yield f"fixture {fixture.name}: {expected} names a version that is none of {', '.join(self.versions)}"


def _golden_problems(path: Path, text: str, *, update: bool) -> Iterator[str]:
    if update:
        refresh(path, text)
    elif problem := compared_with(path, text):
        yield problem


def _bad_names(what: str, names: Sequence[str]) -> Iterator[str]:
    """Check names that become the names of files."""
    for name in dict.fromkeys(names):
        if not name:
            yield f"{what} cannot be empty"
        elif name.startswith(".") or set(name) & set('/\\:*?"<>|\0'):
            yield f'{what} "{name}" cannot be used as the name of a file'
        if names.count(name) > 1:
            yield f'{what} "{name}" occurs {names.count(name)} times'
