"""Advice for an HPA that another object controls: its controller reverts changes of the HPA."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Final

from ocf.autoscaling.linter.findings import Code, Finding
from ocf.autoscaling.targets.scaled_objects import scaled_object_field
from ocf.autoscaling.targets.targets import key_of
from ocf.objects import Manifest
from ocf.objects.owner_references import controller_of

__all__ = ["advise_owner", "of_scaled_object"]

_KEDA: Final = "keda-hpa-"
# Their fixes are about the target or about other workloads, which the owner of the HPA does not change.
_ABOUT_OTHERS: Final = frozenset({Code.FIXED_REPLICAS, Code.INVALID_RESOURCES, Code.OVERLAPPING_SELECTORS})
_ALTERNATIVES: Final = {
    Code.MISSING_REQUEST: "Give every container of the target a request",
    Code.BLOCKED_EVICTIONS: "Use maxUnavailable 1 in the PodDisruptionBudget",
}


def advise_owner(hpa: Manifest, findings: Iterable[Finding]) -> Iterator[Finding]:
    """Yield findings whose fix is about the object that controls the HPA; those of any other HPA as they are."""
    owner = _owner(hpa)
    for finding in findings:
        if not owner or finding.code in _ABOUT_OTHERS:
            yield finding
            continue
        # A rollout that runs the pods of the target has no metrics: the owner has to scale another target.
        if finding.code is Code.SHARED_TARGET and not finding.fix.startswith("Scale the rollout"):
            yield replace(finding, fix=f"Put the metrics of both into {owner}, which controls this HPA.")
            continue
        field = finding.path.removeprefix("spec.").split(".")[0].partition("[")[0]
        place = scaled_object_field(f"spec.{field}") if owner.startswith("ScaledObject ") else f"what sets {field}"
        change = f"change {place} in {owner}, which controls this HPA and reverts changes of it."
        # The first remedy of a budget for a single pod is another size, not another budget.
        other = None if finding.fix.startswith("Raise minReplicas") else _ALTERNATIVES.get(finding.code)
        yield replace(finding, fix=f"{other}, or {change}" if other else change[0].upper() + change[1:])


def of_scaled_object(finding: Finding) -> Finding:
    """Return a finding of the HPA that KEDA makes of a ScaledObject as one of the ScaledObject."""
    path = scaled_object_field(finding.path)
    fix = finding.fix.replace(", which controls this HPA and reverts changes of it", "").replace(
        ", which controls this HPA", ""
    )
    place = "" if finding.code in _ABOUT_OTHERS else "In the HPA that KEDA makes of it: "
    return replace(finding, path=path, explanation=f"{place}{finding.explanation}", fix=fix)


def _owner(hpa: Manifest) -> str:
    """Return kind and name of the object that controls an HPA; empty without one."""
    found, name = controller_of(hpa), key_of(hpa).name
    if found is None and name.startswith(_KEDA):
        # An HPA that was exported without its owner references.
        return f"ScaledObject {name.removeprefix(_KEDA)}"
    return "" if found is None else str(found)
