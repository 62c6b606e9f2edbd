"""Reading of scenarios: all problems at once, each with file, line and field."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Final

from pydantic import ValidationError

from ocf.autoscaling.algorithm import Autoscaler
from ocf.errors import ConfigError, FieldProblem, ManifestError
from ocf.objects import Manifest, load_document
from ocf.objects.durations import format_duration
from ocf.objects.manifest_stream import documents_in
from ocf.objects.paths import format_path
from ocf.objects.yaml_places import YamlNode, split_path
from ocf.schema.kubernetes import FeatureGates
from ocf.simulation.input_errors import InputError, InputProblem
from ocf.simulation.load.files import FileLoad
from ocf.simulation.load.text_files import read_bounded
from ocf.simulation.load.trace import first_instant
from ocf.simulation.model_problems import model_problems, written_path
from ocf.simulation.recording.format import is_recording
from ocf.simulation.scenario.autoscaler_file import HPA_KIND, checked_hpa, hpa_of_file, text_problems
from ocf.simulation.scenario.checks import (
    ScenarioProblem,
    activator_problems,
    contradictions,
    missing_inputs,
    neighbor_problems,
)
from ocf.simulation.scenario.recorded import recorded_scenario
from ocf.simulation.scenario.scaled_objects import SCALED_OBJECT_KIND
from ocf.simulation.scenario.scenario import HpaEdit, Neighbor, Scenario

__all__ = ["parse_scenario", "read_scenario", "scenario_problems"]

_UNNAMED: Final = "scenario"
_OWN: Final = frozenset(info.alias or name for name, info in Neighbor.model_fields.items())
"""The fields of a neighbor; the others of a scenario are checked once."""
Location = tuple[str | int, ...]
"""A location in the models of a scenario."""


def read_scenario(path: str | Path) -> Scenario:
    """Read the file of a scenario, and that of its HPA; or return the scenario that replays a recording.

    Args:
        path: A YAML or JSON file, or a recording of `ocf record`.

    Returns:
        The scenario. Its `hpa` is the manifest, of autoscaling/v2 and with the defaults of the API server.

    Raises:
        InputError: If a file cannot be read, or the scenario is invalid; it has all problems.
    """
    file = Path(path)
    if is_recording(file):
        replayed = recorded_scenario(file)
        return parse_scenario(replayed.model_dump_json(by_alias=True), file=str(file), directory=file.parent)
    return parse_scenario(read_bounded(file), file=str(file), directory=file.parent)


def parse_scenario(text: str, *, file: str = _UNNAMED, directory: str | Path = ".") -> Scenario:
    r"""Return the scenario of a text.

    Args:
        text: YAML or JSON.
        file: Name of the text in errors.
        directory: The folder that paths of the scenario are relative to.

    Returns:
        The scenario, as `read_scenario` returns it.

    Raises:
        InputError: If the scenario is invalid, or the file of its HPA cannot be read; it has all problems.

    Example:
        >>> try:
        ...     parse_scenario("workload: {capacity: -3}\nload: {type: Steady}\nhpa: hpa.yaml")
        ... except InputError as error:
        ...     print(error)
        scenario:1: workload.capacity: must be greater than 0, got -3
        scenario:2: load.rate: required value
    """
    try:
        manifest = load_document(text)
    except ManifestError as error:
        raise InputError(_of_manifests(text, file) or text_problems(error, file)) from None
    return _Reader(manifest, text, file, Path(directory)).read()


def _of_manifests(text: str, file: str) -> list[InputProblem]:
    """Return the problem of a text that has an autoscaler among several manifests; none for another text."""
    documents = documents_in(file, text.encode())
    kinds = [str(each.manifest.get("kind")) for each in documents if each.manifest is not None]
    if not {HPA_KIND, SCALED_OBJECT_KIND} & set(kinds):
        return []
    detail = f"must hold one Scenario, got {', '.join(kinds)}: `ocf simulate --init` writes a scenario for them"
    return [InputProblem(file, detail)]


class _Reader:
    """Reads one scenario."""

    def __init__(self, manifest: Manifest, text: str, file: str, directory: Path) -> None:
        self._manifest = manifest
        self._text = text
        self._file = file
        self._directory = directory

    def read(self) -> Scenario:
        """Return the scenario."""
        kind = self._manifest.get("kind")
        if kind in (HPA_KIND, SCALED_OBJECT_KIND):
            detail = f"must be 'Scenario', got {kind!r}: `ocf simulate --init` writes a scenario for it"
            raise InputError([self._placed(FieldProblem("kind", detail))])
        try:
            scenario = Scenario.model_validate(self._manifest, by_alias=True, by_name=False)
        except ValidationError as error:
            found = model_problems(error.errors(), self._manifest, Scenario)
            raise InputError(map(self._placed, found)) from None
        problems: list[InputProblem] = []
        try:
            gates = _gates(scenario)
        except ConfigError as error:
            problems.append(self._placed(FieldProblem("controller.kubernetes", str(error))))
            # All other problems are found with the default.
            gates = FeatureGates()
        problems += [self._at((), *each) for each in neighbor_problems(scenario)]
        checked: list[dict[str, Any]] = []
        for position, service in enumerate(scenario.services()):
            fields, more = self._checked(service, ("neighbors", position - 1) if position else (), gates)
            problems += more
            checked.append(fields)
        if problems:
            raise InputError(sorted(problems, key=lambda each: (each.file != self._file, each.line or 0)))
        if (start := self._recorded_start(scenario)) is not None:
            scenario = scenario.model_copy(update={"start": start})
        first, *others = checked
        neighbors = tuple(each.model_copy(update=found) for each, found in zip(scenario.neighbors, others, strict=True))
        return scenario.model_copy(update={**first, "neighbors": neighbors})

    def _recorded_start(self, scenario: Scenario) -> datetime | None:
        """Return the start that lets the first load with instants begin when it was recorded; None if it is set."""
        if "start" in scenario.model_fields_set:
            return None
        files = [load for load in scenario.load if isinstance(load, FileLoad)]
        starts = ((first_instant(load, self._directory), load.at) for load in files)
        return next((begin - at for begin, at in starts if begin is not None), None)

    def _checked(
        self, service: Scenario, base: Location, gates: FeatureGates
    ) -> tuple[dict[str, Any], list[InputProblem]]:
        """Return the HPA of a workload and its edits with the defaults of the API server, and all problems.

        Args:
            base: The location of its fields.
        """
        problems = [self._at(base, location, detail) for location, detail in self._missing_files(service)]
        hpa, found_in_hpa = self._hpa(service, base, gates)
        problems += found_in_hpa
        if found_in_hpa:
            return {}, problems
        autoscaler = Autoscaler.of(hpa)
        of_service = (each for each in scenario_problems(service, autoscaler) if not base or each.location[0] in _OWN)
        problems += [self._at(base, *each) for each in of_service]
        # The HPA is taken as it is written, so that edits are of the same version of the API.
        written = hpa if isinstance(service.hpa, str) else service.hpa
        edits, found = _checked_edits(service, written, autoscaler, gates)
        problems += [self._placed(FieldProblem(self._path(base, each.path), each.detail)) for each in found]
        return {"hpa": hpa, "hpa_edits": edits}, problems

    def _hpa(self, service: Scenario, base: Location, gates: FeatureGates) -> tuple[Manifest, list[InputProblem]]:
        if isinstance(service.hpa, str):
            try:
                return hpa_of_file(self._directory / service.hpa, gates), []
            except InputError as error:
                return {}, list(error.problems)
        hpa, found = checked_hpa(service.hpa, gates)
        return hpa, [self._placed(FieldProblem(self._path(base, f"hpa.{each.path}"), each.detail)) for each in found]

    def _missing_files(self, service: Scenario) -> Iterator[ScenarioProblem]:
        for position, load in enumerate(service.load):
            if isinstance(load, FileLoad) and _is_missing(self._directory / load.path):
                yield ScenarioProblem(("load", position, "path"), f"there is no file {self._directory / load.path}")

    def _path(self, base: Location, path: str) -> str:
        """Return the path in the file of one within a workload."""
        return f"{format_path(base)}.{path}" if base else path

    def _at(self, base: Location, location: Location, detail: str) -> InputProblem:
        """Return a problem at a location within a workload."""
        path = written_path((*base, *location), self._manifest)
        return self._placed(FieldProblem(format_path(path), detail))

    def _placed(self, problem: FieldProblem) -> InputProblem:
        root = YamlNode.root(self._text)
        line = None if root is None else root.descend(split_path(problem.path)).line
        return InputProblem(self._file, problem.detail, line, problem.path)


def _is_missing(file: Path) -> bool:
    try:
        return not file.exists()
    except OSError:
        return False  # reading the file reports the error


def scenario_problems(scenario: Scenario, autoscaler: Autoscaler) -> Iterator[ScenarioProblem]:
    """Yield the problems of a scenario as a whole, each with its location in the models."""
    yield from missing_inputs(scenario, autoscaler)
    yield from activator_problems(scenario, autoscaler)
    yield from contradictions(scenario, autoscaler)
    if scenario.node_groups:
        # The algorithm of node groups is only loaded where there are some.
        from ocf.simulation.scenario.checks import node_group_problems

        yield from node_group_problems(scenario)


def _gates(scenario: Scenario) -> FeatureGates:
    release = scenario.controller.kubernetes
    return FeatureGates() if release is None else FeatureGates.for_release(release)


def _checked_edits(
    scenario: Scenario, hpa: Manifest, autoscaler: Autoscaler, gates: FeatureGates
) -> tuple[tuple[HpaEdit, ...], list[FieldProblem]]:
    """Return the edits of a scenario, as autoscaling/v2 with the defaults of the API server, and their problems."""
    edits: list[HpaEdit] = []
    problems: list[FieldProblem] = []
    before: timedelta | None = None
    for position, each in enumerate(scenario.hpa_edits):
        path = f"hpaEdits[{position}]"
        if before is not None and each.at <= before:
            detail = f"must be later than that of the edit before, {format_duration(before)}"
            problems.append(FieldProblem(f"{path}.at", f"{detail}, got {format_duration(each.at)}"))
        before = each.at
        edited, found = checked_hpa({**hpa, "spec": each.spec}, gates)
        problems += [FieldProblem(f"{path}.{problem.path}", problem.detail) for problem in found]
        if not found:
            edits.append(each.model_copy(update={"spec": edited["spec"]}))
            problems += _of_autoscaler(path, scenario, autoscaler, Autoscaler.of(edited))
    return tuple(edits), problems


def _of_autoscaler(path: str, scenario: Scenario, before: Autoscaler, after: Autoscaler) -> Iterator[FieldProblem]:
    if (after.kind, after.target) != (before.kind, before.target):
        detail = f"must be that of the HPA, {before.kind} {before.target}, got {after.kind} {after.target}"
        yield FieldProblem(f"{path}.spec.scaleTargetRef", f"{detail}: a scenario has one workload")
    for location, detail in (*missing_inputs(scenario, after), *activator_problems(scenario, after)):
        yield FieldProblem(format_path(location), f"{detail} (in {path})")
