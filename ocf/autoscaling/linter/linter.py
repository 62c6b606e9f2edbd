"""Linter of an HPA, with its target and other objects."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from ocf.autoscaling.algorithm import Autoscaler, Settings
from ocf.autoscaling.algorithm.decide import tolerances_of
from ocf.autoscaling.api.decoding import decode
from ocf.autoscaling.linter.behavior import behavior_findings, dropped_tolerances
from ocf.autoscaling.linter.findings import Finding
from ocf.autoscaling.linter.metrics import metric_findings
from ocf.autoscaling.linter.targets import conflict_findings, target_findings
from ocf.autoscaling.targets.targets import Scalable, TargetSource, manifest_of, read_target
from ocf.autoscaling.validation.validation import admitted, validate
from ocf.lazy_types.pydantic import BaseModel
from ocf.objects import Manifest, ObjectKey
from ocf.schema.kubernetes import FeatureGates

__all__ = ["lint"]

_CURRENT: Final = FeatureGates()


def lint(
    hpa: Manifest | BaseModel,
    target: TargetSource | None = None,
    others: Iterable[Manifest | BaseModel] = (),
    *,
    gates: FeatureGates = _CURRENT,
) -> tuple[Finding, ...]:
    """Find settings that the API server accepts and that cause problems in production.

    Args:
        hpa: A manifest of autoscaling/v2, or a model of the client.
        target: The target, as for `autoscale`. Fewer problems can be found if it is None.
        others: Other objects of the cluster: HPAs and their targets. Objects of other kinds are ignored.
        gates: The feature gates of the cluster; by default those of Kubernetes 1.36.

    Returns:
        The findings in the order of the fields; empty if there are none. An HPA that the API server would reject has no
        findings; use `validate` to check that.

    Raises:
        ManifestError: If the HPA cannot be decoded.
        ConfigError: If the target has no kind or no name.

    Example:
        >>> reference = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
        >>> spec = {"scaleTargetRef": reference, "minReplicas": 3, "maxReplicas": 3}
        >>> for finding in lint({"metadata": {"name": "web"}, "spec": spec}):
        ...     print(finding.severity, finding.code, finding.path)
        info default-metric spec.metrics
        info unknown-requests spec.metrics[0]
        warning constant-size spec.maxReplicas
    """
    decoded = decode(hpa, tolerance_known=gates.tolerance_known)
    # Metadata matters to no finding, and a template may get its name later.
    if any(not error.path.startswith("metadata.") for error in validate(decoded, gates=gates)):
        return ()
    return tuple(_findings(decoded, target, [manifest_of(each) for each in others], gates))


def _findings(
    decoded: Manifest, source: TargetSource | None, others: list[Manifest], gates: FeatureGates
) -> Iterator[Finding]:
    # Read before the defaults, which have metrics.
    explicit = bool(decoded.get("spec", {}).get("metrics"))
    hpa = admitted(decoded, gates=gates)
    tolerances = tolerances_of(Autoscaler.of(hpa), Settings(features=gates))
    target = None if source is None else read_target(source)
    yield from target_findings(hpa, target)
    yield from conflict_findings(hpa, _target_manifest(source), others)
    pods = None if target is None else target.pods
    yield from metric_findings(hpa["spec"], pods, tolerances, explicit=explicit)
    yield from dropped_tolerances(decoded["spec"], hpa["spec"])
    yield from behavior_findings(hpa["spec"], tolerances)


def _target_manifest(source: TargetSource | None) -> Manifest | None:
    known = source is not None and not isinstance(source, ObjectKey | Scalable)
    return manifest_of(source) if known else None
