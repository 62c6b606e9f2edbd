"""The problem of a search: traces and settings, and the scenario that a candidate makes of them."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from pydantic import ValidationError

from ocf.autoscaling import default
from ocf.autoscaling.algorithm import Autoscaler
from ocf.errors import ConfigError
from ocf.objects import Manifest, copy_json
from ocf.objects.paths import FieldPath, format_path, get_field, with_field
from ocf.schema.kubernetes import FeatureGates
from ocf.simulation.load import LoadSeries
from ocf.simulation.model_problems import model_problems
from ocf.simulation.scenario import Scenario
from ocf.simulation.scenario.autoscaler_file import checked_hpa
from ocf.simulation.scenario.reading import scenario_problems
from ocf.simulation.tuning.settings import TunedSetting

__all__ = ["Candidate", "InvalidCandidate", "LoadTrace", "Problem", "with_value"]

Candidate: TypeAlias = tuple[int, ...] | None
"""The position of the value of each setting; None for the settings as they are."""
_BEHAVIOR: Final = ("spec", "behavior")


class InvalidCandidate(Exception):  # noqa: N818 (a combination that cannot be run is not an error of a caller)
    """A combination of settings that cannot be run."""

    def __init__(self, problems: Sequence[str]) -> None:
        self.problems = tuple(problems)
        super().__init__("; ".join(self.problems))


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadTrace:
    """A scenario and its load.

    Args:
        name: Name in reports.
        scenario: The scenario, as `read_scenario` returns it.
        load: Its load, as `load_series` returns it.
        neighbors: The load of each neighbor of the scenario, in their order. Measures are those of the scenario alone.
    """

    name: str
    scenario: Scenario
    load: LoadSeries
    neighbors: tuple[LoadSeries, ...] = ()

    @property
    def hpa(self) -> Manifest:
        """The HPA.

        Raises:
            ConfigError: If the scenario only names its file.
        """
        if isinstance(self.scenario.hpa, str):
            raise ConfigError(f"the HPA is in the file {self.scenario.hpa}: read the scenario with `read_scenario`")
        return self.scenario.hpa

    @property
    def duration(self) -> float:
        """Length of the simulation in seconds.

        Raises:
            ConfigError: If it has no end.
        """
        if self.scenario.duration is not None:
            return self.scenario.duration.total_seconds()
        if self.load.end is None:
            raise ConfigError(f"{self.name}: the simulation has no end: the load does not end, so set `duration`")
        return self.load.end

    def digest(self) -> str:
        """Return a hash of everything that decides the result."""
        found = hashlib.sha256(self.scenario.model_dump_json(by_alias=True).encode())
        found.update(self.load.times.tobytes())
        found.update(self.load.rates.tobytes())
        return found.hexdigest()


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """Traces and the settings that are varied.

    Args:
        traces: The traces, at least one; all have the same HPA.
        settings: The settings, at least one.

    Raises:
        ConfigError: If the HPAs differ, a field is given twice, or a setting has no valid value.
    """

    traces: tuple[LoadTrace, ...]
    settings: tuple[TunedSetting, ...]

    def __post_init__(self) -> None:
        if not self.traces or not self.settings:
            raise ConfigError("nothing to search: give at least one scenario and one setting")
        paths = [each.path for each in self.settings]
        for path in paths:
            if paths.count(path) > 1:
                raise ConfigError(f"{path}: is searched twice")
            if any(other.startswith((f"{path}.", f"{path}[")) for other in paths):
                raise ConfigError(f"{path}: one of its own fields is searched, too")
        first = self.traces[0]
        for trace in self.traces[1:]:
            if trace.hpa.get("spec") != first.hpa.get("spec"):
                raise ConfigError(
                    f"{trace.name}: its HPA differs from that of {first.name}: all scenarios have to tune the same one,"
                    " so name one file as `hpa` in all of them"
                )

    def check(self) -> None:
        """Check that each setting has a value that is valid while the others are as they are now.

        Raises:
            ConfigError: If all values of a setting are invalid, with the reason.
        """
        for at, setting in enumerate(self.settings):
            reasons: dict[str, None] = {}
            for value in setting.values:
                try:
                    self._scenario(self.traces[0], [(setting, value)])
                except InvalidCandidate as error:
                    reasons[str(error)] = None
                else:
                    break
            else:
                if not self._is_repaired_by_others(at):
                    raise ConfigError(f"{setting.path}: no value is valid: {next(iter(reasons))}")

    def _is_repaired_by_others(self, at: int) -> bool:
        """Return whether other settings may make a setting valid, at their first or last values."""
        ends = ([each.values[end] for each in self.settings] for end in (0, -1))
        mixed = [each.values[0 if number == at else -1] for number, each in enumerate(self.settings)]
        for values in (*ends, mixed):
            try:
                self._scenario(self.traces[0], list(zip(self.settings, values, strict=True)))
            except InvalidCandidate:
                continue
            return True
        return False

    @property
    def size(self) -> int:
        """Number of combinations."""
        found = 1
        for each in self.settings:
            found *= len(each.values)
        return found

    def values(self, candidate: Candidate) -> dict[str, Any]:
        """Return the values of a candidate by field; those of the first trace for the settings as they are.

        Args:
            candidate: The candidate.
        """
        if candidate is not None:
            return {each.path: each.values[at] for each, at in zip(self.settings, candidate, strict=True)}
        trace = self.traces[0]
        scenario = trace.scenario.model_dump(by_alias=True, mode="json", exclude={"hpa", "load"})
        return {each.path: get_field(trace.hpa if each.is_of_hpa else scenario, each.steps) for each in self.settings}

    def scenario(self, trace: LoadTrace, candidate: Candidate) -> Scenario:
        """Return the scenario of a candidate, whose `hpa` is the manifest.

        Args:
            trace: The trace.
            candidate: The candidate.

        Raises:
            InvalidCandidate: If the API server would reject the HPA, or the scenario is invalid.
        """
        if candidate is None:
            return trace.scenario
        chosen = [(each, each.values[at]) for each, at in zip(self.settings, candidate, strict=True)]
        return self._scenario(trace, chosen)

    def hpa(self, candidate: Candidate) -> Manifest:
        """Return the HPA of a candidate.

        Args:
            candidate: The candidate.

        Raises:
            InvalidCandidate: If the API server would reject it.
        """
        found = self.scenario(self.traces[0], candidate).hpa
        assert not isinstance(found, str)  # noqa: S101 (`LoadTrace.hpa` rejects it)
        return found

    def _scenario(self, trace: LoadTrace, chosen: Sequence[tuple[TunedSetting, Any]]) -> Scenario:
        scenario = trace.scenario
        of_scenario = [(each, value) for each, value in chosen if not each.is_of_hpa]
        if of_scenario:
            scenario = _changed_scenario(scenario, of_scenario)
        hpa = _changed_hpa(trace.hpa, [(each, value) for each, value in chosen if each.is_of_hpa])
        release = scenario.controller.kubernetes
        gates = FeatureGates() if release is None else FeatureGates.for_release(release)
        hpa, problems = checked_hpa(hpa, gates)
        if problems:
            raise InvalidCandidate([f"{each.path}: {each.detail}" for each in problems])
        autoscaler = Autoscaler.of(hpa)
        found = list(scenario_problems(scenario, autoscaler))
        if found:
            raise InvalidCandidate([f"{format_path(location)}: {detail}" for location, detail in found])
        # Settings that are searched hold throughout the run.
        return scenario.model_copy(update={"hpa": hpa, "hpa_edits": ()})


def _changed_hpa(hpa: Manifest, chosen: Sequence[tuple[TunedSetting, Any]]) -> Manifest:
    if any(each.steps[:2] == _BEHAVIOR for each, _ in chosen):
        # The rules that apply as long as the HPA has none, so that a path can name a policy of them.
        rules = {name: get_field(hpa, (*_BEHAVIOR, name)) or {} for name in ("scaleUp", "scaleDown")}
        hpa = default(with_field(hpa, _BEHAVIOR, rules))
    for each, value in chosen:
        hpa = with_value(hpa, each.steps, value)
    return hpa


def _changed_scenario(scenario: Scenario, chosen: Sequence[tuple[TunedSetting, Any]]) -> Scenario:
    # The load does not change, and may be long.
    unset = set() if scenario.is_dated else {"start"}
    document = scenario.model_dump(by_alias=True, mode="json", exclude={"load", *unset})
    document["load"] = []
    for each, value in chosen:
        document = with_value(document, each.steps, value)
    try:
        found = Scenario.model_validate({**document, "load": {"type": "Steady", "rate": 0}}, by_alias=True)
    except ValidationError as error:
        problems = model_problems(error.errors(), document, Scenario)
        raise InvalidCandidate([f"{each.path}: {each.detail}" for each in problems]) from None
    return found.model_copy(update={"load": scenario.load})


def with_value(document: Manifest, path: FieldPath, value: Any) -> Manifest:
    """Return a document with a field set, or removed; missing maps are created.

    Args:
        document: The document; it is not changed.
        value: The new value; None removes the field.

    Example:
        >>> with_value({"spec": {"ports": [{"port": 80}]}}, ("spec", "ports", 0, "port"), 443)
        {'spec': {'ports': [{'port': 443}]}}
    """
    changed: Manifest = copy_json(document)
    place: Any = changed
    for depth, step in enumerate(path[:-1]):
        if isinstance(step, str) and isinstance(place, dict):
            # A field without a value is written as null.
            if place.get(step) is None:
                place[step] = [] if isinstance(path[depth + 1], int) else {}
            place = place[step]
        else:
            place = _item(place, step, path[: depth + 1])
    last = path[-1]
    if isinstance(last, int) or not isinstance(place, dict):
        _item(place, last, path)
        place[last] = value
    elif value is None:
        place.pop(last, None)
    else:
        place[last] = value
    return changed


def _item(place: Any, step: str | int, path: FieldPath) -> Any:
    if not isinstance(step, int) or not isinstance(place, list):
        raise InvalidCandidate([f"{format_path(path)}: {format_path(path[:-1])} has no such field"])
    if step >= len(place):
        raise InvalidCandidate(
            [f"{format_path(path)}: {format_path(path[:-1])} has {len(place)} items: add one to the manifest first"]
        )
    return place[step]
