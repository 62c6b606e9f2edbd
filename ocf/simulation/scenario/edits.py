"""Checks of the edits of an HPA: each one is an HPA that the API server accepts, for the same target."""

from collections.abc import Iterator
from datetime import timedelta

from ocf.autoscaling.algorithm import Autoscaler
from ocf.errors import FieldProblem
from ocf.objects import Manifest
from ocf.objects.durations import format_duration
from ocf.objects.paths import format_path
from ocf.schema.kubernetes import FeatureGates
from ocf.simulation.scenario.autoscaler_file import checked_hpa
from ocf.simulation.scenario.checks import missing_inputs
from ocf.simulation.scenario.scenario import HpaEdit, Scenario

__all__ = ["checked_edits"]


def checked_edits(
    scenario: Scenario, hpa: Manifest, autoscaler: Autoscaler, gates: FeatureGates
) -> tuple[tuple[HpaEdit, ...], list[FieldProblem]]:
    """Return the edits of a scenario, as autoscaling/v2 with the defaults of the API server, and their problems.

    Args:
        hpa: Its HPA as it is written; edits are of the same version of the API.
    """
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
    for location, detail in missing_inputs(scenario, after):
        yield FieldProblem(format_path(location), f"{detail} (in {path})")
