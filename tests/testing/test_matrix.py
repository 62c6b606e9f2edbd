"""Version matrix: one golden file per version range, expectations of fixtures, and no forgotten mutation."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ocf import component
from ocf.component import Component
from ocf.concepts import Data, Resource
from ocf.errors import BuildError
from ocf.feature import Gate, VersionGate
from ocf.objects import Manifest, load_document
from ocf.primitives import deployment
from ocf.testing import Firing, Fixture, VersionMatrix

VERSIONS = ["1.8.0", "1.9.0", "2.0.0", "2.1.0"]


def mutation(name: str, gate: Gate | None = None) -> deployment.Mutation:
    def mutate(m: deployment.Mutator) -> None:
        m.edit_object_metadata(lambda meta: meta.ensure_label(name, "on"))

    return deployment.Mutation(name, mutate, feature=gate)


@pytest.fixture
def build(web_base: Manifest) -> Callable[[str, bool], deployment.Resource]:
    """Build a Deployment; the spec states whether it has TLS."""

    def make(version: str, tls: bool) -> deployment.Resource:
        return (
            deployment.Builder(web_base)
            .with_mutation(mutation("legacy-port", VersionGate(version, "< 2.0.0")))
            .with_mutation(mutation("tls", VersionGate(version, ">= 1.9.0").when(tls)))
            .build()
        )

    return make


@pytest.fixture
def matrix(tmp_path: Path, build: Callable[[str, bool], deployment.Resource]) -> VersionMatrix[bool]:
    return VersionMatrix(
        directory=tmp_path / "goldens",
        versions=VERSIONS,
        fixtures=[
            Fixture(name="plain", spec=False, requires=["legacy-port"], forbids=["tls"]),
            Fixture(
                name="secure", spec=True, requires=[Firing("tls", at="2.0.0")], forbids=[Firing("tls", at="1.8.0")]
            ),
        ],
        build=build,
    )


def run(matrix: VersionMatrix[Any], *, update: bool = False) -> dict[str, list[str]]:
    """Run all cases and return the problems."""
    found = {}
    for case in matrix.cases():
        try:
            case.check(update=update)
        except AssertionError as error:
            found[str(case)] = str(error).splitlines()
    return found


class TestGoldens:
    def test_there_is_one_per_version_range_and_a_manifest(self, matrix: VersionMatrix[bool]) -> None:
        assert run(matrix, update=True) == {}
        root = Path(matrix.directory)
        assert sorted(str(path.relative_to(root)) for path in root.rglob("*.yaml")) == [
            "manifest.yaml",
            "plain/1.8.0.yaml",
            "plain/2.0.0.yaml",
            "secure/1.8.0.yaml",
            "secure/1.9.0.yaml",
            "secure/2.0.0.yaml",
        ]
        assert load_document((root / "manifest.yaml").read_text())["fixtures"][0] == {
            "name": "plain",
            "regimes": [
                {"representative": "1.8.0", "versions": ["1.8.0", "1.9.0"], "firing": ["legacy-port"]},
                {"representative": "2.0.0", "versions": ["2.0.0", "2.1.0"], "firing": []},
            ],
        }
        labels = load_document((root / "secure" / "1.9.0.yaml").read_text())["metadata"]["labels"]
        assert labels == {"legacy-port": "on", "tls": "on"}
        assert run(matrix) == {}

    def test_missing_files_are_reported(self, matrix: VersionMatrix[bool]) -> None:
        found = run(matrix)
        assert list(found) == ["plain", "secure", "manifest.yaml"]
        assert len(found["secure"]) == 3
        assert all("does not exist; create it with" in line for lines in found.values() for line in lines)

    def test_a_change_is_shown_in_its_fixture_only(self, matrix: VersionMatrix[bool]) -> None:
        run(matrix, update=True)
        golden = Path(matrix.directory) / "secure" / "2.0.0.yaml"
        golden.write_text(golden.read_text().replace("tls: 'on'", "tls: 'off'"))
        found = run(matrix)
        assert list(found) == ["secure"]
        assert "+    tls: 'on'" in found["secure"]

    def test_a_version_that_moves_to_another_range_shows_in_the_manifest(self, matrix: VersionMatrix[bool]) -> None:
        run(matrix, update=True)
        found = run(replace(matrix, versions=["1.8.0", "1.9.0", "1.9.5", "2.0.0", "2.1.0"]))
        assert list(found) == ["manifest.yaml"]
        assert "+    - 1.9.5" in found["manifest.yaml"]

    def test_files_without_version_range_or_fixture_are_reported(self, matrix: VersionMatrix[bool]) -> None:
        run(matrix, update=True)
        root = Path(matrix.directory)
        (root / "plain" / "0.9.0.yaml").touch()
        (root / "gone").mkdir()
        (root / "gone" / "1.0.0.yaml").touch()
        assert run(matrix, update=True) == {
            "plain": [f"golden file {root}/plain/0.9.0.yaml does not belong to a version range any more: remove it"],
            "manifest.yaml": [f"folder {root}/gone does not belong to a fixture any more: remove it"],
        }

    def test_a_component_is_serialized_as_a_whole(
        self, matrix: VersionMatrix[bool], build: Callable[[str, bool], deployment.Resource]
    ) -> None:
        def whole(version: str, tls: bool) -> Component:
            resource = build(version, tls)
            return component.Builder("web", condition_type="WebReady").with_resource(resource).build()

        run(matrix, update=True)
        assert run(replace(matrix, build=whole)) == {}

    def test_several_components_are_serialized_together(
        self, matrix: VersionMatrix[bool], build: Callable[[str, bool], deployment.Resource]
    ) -> None:
        """A mutation of any component of an owner separates the versions."""

        def both(version: str, tls: bool) -> list[Component]:
            builders = [component.Builder(name, condition_type=f"{name}Ready") for name in ("Front", "Back")]
            return [builder.with_resource(build(version, tls)).build() for builder in builders]

        several: VersionMatrix[bool] = replace(matrix, build=both)
        for case in several.cases():
            case.check(update=True)
        text = (Path(several.directory) / "plain" / "1.8.0.yaml").read_text(encoding="utf-8")
        assert text.count("kind: Deployment") == 2
        assert [regime.versions for regime in several.version_ranges(several.fixtures[0])] == [
            ("1.8.0", "1.9.0"),
            ("2.0.0", "2.1.0"),
        ]

    def test_data_is_seeded_only_while_a_case_runs(self, matrix: VersionMatrix[bool], web_base: Manifest) -> None:
        zone = Data[str]("zone")

        def zoned(version: str, tls: bool) -> deployment.Resource:
            def mutate(m: deployment.Mutator) -> None:
                m.edit_object_metadata(lambda meta: meta.ensure_label("zone", zone.require()))

            del version, tls
            return deployment.Builder(web_base).with_mutation(deployment.Mutation("zone", mutate)).build()

        fixtures = [Fixture(name="plain", spec=False, requires=["zone"])]
        seeded: VersionMatrix[bool] = replace(matrix, build=zoned, fixtures=fixtures, data={zone: "north"})
        for case in seeded.cases():
            case.check(update=True)
        assert "zone: north" in (Path(seeded.directory) / "plain" / "1.8.0.yaml").read_text(encoding="utf-8")
        assert not zone.is_set

    def test_a_resource_without_mutations_has_one_version_range(
        self, matrix: VersionMatrix[bool], web_base: Manifest
    ) -> None:
        class Fixed:
            """A resource that cannot be inspected."""

            def __init__(self, inner: Resource) -> None:
                self.key, self.identity, self.render = inner.key, inner.identity, inner.render

        def make(_version: str, _tls: bool) -> Fixed:
            return Fixed(deployment.Builder(web_base).build())

        fixed = replace(matrix, build=make, fixtures=[Fixture(name="only", spec=True)])
        assert [regime.versions for regime in fixed.version_ranges(fixed.fixtures[0])] == [tuple(VERSIONS)]
        assert run(fixed, update=True) == {}


class TestExpectations:
    def test_are_checked_although_files_are_updated(self, matrix: VersionMatrix[bool]) -> None:
        fixtures = [Fixture(name="plain", spec=False, requires=["tls"], forbids=["legacy-port"])]
        found = run(replace(matrix, fixtures=fixtures), update=True)
        assert found["plain"] == [
            'plain: "tls" must fire at some version, and fires at none of 1.8.0, 1.9.0, 2.0.0, 2.1.0',
            'plain: "legacy-port" must fire at no version, and fires at 1.8.0, 1.9.0',
        ]

    def test_every_mutation_is_required_or_excluded(self, matrix: VersionMatrix[bool]) -> None:
        fixtures = [Fixture(name="plain", spec=False, requires=["legacy-port"])]
        found = run(replace(matrix, fixtures=fixtures, exclude=["old"]), update=True)
        assert [line.split(":")[0] for line in found["every mutation"]] == [
            'mutation "tls" is neither required by a fixture nor excluded',
            '"old" is excluded, but no mutation of that name is registered',
        ]
        assert run(replace(matrix, fixtures=fixtures, exclude=["tls"])) == {}


def test_cases_have_names_and_build_nothing_yet(matrix: VersionMatrix[bool]) -> None:
    def explode(version: str, tls: bool) -> deployment.Resource:
        raise AssertionError(version, tls)

    names = list(map(str, replace(matrix, build=explode).cases()))
    assert names == ["plain", "secure", "manifest.yaml", "every mutation"]


def test_an_error_names_fixture_and_version(matrix: VersionMatrix[bool]) -> None:
    def explode(_version: str, _tls: bool) -> deployment.Resource:
        raise LookupError("oops")

    with pytest.raises(LookupError) as failed:
        replace(matrix, build=explode).cases()[0].check()
    assert failed.value.__notes__ == ["while building fixture plain at version 1.8.0"]


def test_all_invalid_arguments_are_reported_together(build: Callable[[str, bool], deployment.Resource]) -> None:
    with pytest.raises(BuildError) as refused:
        VersionMatrix(
            directory="",
            versions=["1.0.0", "1.0.0", "", "a/b", ".."],
            fixtures=[
                Fixture(name="", spec=True),
                Fixture(name="twice", spec=True, requires=["", Firing("tls", at="9.9.9")]),
                Fixture(name="twice", spec=True, forbids=[Firing("", at="1.0.0")]),
            ],
            build=build,
            exclude=[""],
        )
    assert refused.value.problems == (
        "directory cannot be empty",
        'version "1.0.0" occurs 2 times',
        "version cannot be empty",
        'version "a/b" cannot be used as the name of a file',
        'version ".." cannot be used as the name of a file',
        "fixture name cannot be empty",
        'fixture name "twice" occurs 2 times',
        "exclude: a mutation's name cannot be empty",
        "fixture twice: a mutation's name cannot be empty",
        "fixture twice: tls at 9.9.9: the version must be one of 1.0.0, 1.0.0, , a/b, ..",
        "fixture twice: a mutation's name cannot be empty",
    )


def test_an_empty_matrix_is_rejected() -> None:
    nothing: Any = None
    with pytest.raises(BuildError) as refused:
        VersionMatrix(directory="d", versions=[], fixtures=[], build=nothing)
    assert refused.value.problems == (
        "versions cannot be empty",
        "fixtures cannot be empty",
        "build must be a function of a version and a spec, got None",
    )
