"""Linter of an HPA, with its target and other objects."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Final

from ocf.autoscaling.algorithm import Autoscaler, Settings
from ocf.autoscaling.algorithm.decide import tolerances_of
from ocf.autoscaling.api.decoding import decode
from ocf.autoscaling.linter.behavior import behavior_findings, dropped_tolerances
from ocf.autoscaling.linter.conflicts import conflict_findings
from ocf.autoscaling.linter.findings import Code, Finding, Severity
from ocf.autoscaling.linter.metrics import metric_findings
from ocf.autoscaling.linter.namespace_index import NamespaceIndex, folded
from ocf.autoscaling.linter.owners import advise_owner, of_scaled_object
from ocf.autoscaling.linter.pod_policies import policy_findings
from ocf.autoscaling.linter.targets import missing_target, target_findings
from ocf.autoscaling.targets.pod_resources import read_pods, with_limit_ranges
from ocf.autoscaling.targets.scaled_objects import hpa_of, is_scaled_object
from ocf.autoscaling.targets.targets import (
    Reference,
    Scalable,
    TargetSource,
    key_of,
    manifest_of,
    read_target,
    scale_target_key,
)
from ocf.autoscaling.targets.workloads import pod_labels, pod_template, referenced_workload
from ocf.autoscaling.validation.validation import admitted, validate
from ocf.errors import ManifestError
from ocf.lazy_types.pydantic import BaseModel
from ocf.objects import Manifest, ObjectKey
from ocf.schema.kubernetes import FeatureGates

__all__ = ["lint", "lint_among"]

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
        hpa: A manifest of autoscaling/v2, or a model of the client; or the manifest of a ScaledObject of KEDA, for the
            HPA that KEDA makes of it.
        target: The target, as for `autoscale`. Fewer problems can be found if it is None.
        others: Other objects of the cluster: HPAs, ScaledObjects, workloads, LimitRanges, VerticalPodAutoscalers and
            PodDisruptionBudgets. Those of other namespaces and of other kinds are ignored.
        gates: The feature gates of the cluster; by default those of Kubernetes 1.36.

    Returns:
        The findings in the order of the fields; empty if there are none. An HPA that the API server would reject has
        only those about its target and other objects; use `validate` for its errors. For a ScaledObject they are
        findings, too.

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
    manifests = [manifest_of(each) for each in others]
    namespace = key_of(manifest_of(hpa)).namespace
    index = NamespaceIndex(each for each in manifests if key_of(each).namespace == namespace)
    return lint_among(hpa, target, index, gates)


def lint_among(
    hpa: Manifest | BaseModel, target: TargetSource | None, index: NamespaceIndex, gates: FeatureGates
) -> tuple[Finding, ...]:
    """Find what `lint` finds, among the objects of the namespace of the autoscaler."""
    if isinstance(hpa, Mapping) and is_scaled_object(dict(hpa)):
        return tuple(map(of_scaled_object, _of_keda(hpa_of(dict(hpa)), target, index, gates)))
    decoded = decode(hpa, tolerance_known=gates.tolerance_known)
    # Metadata matters to no finding, and a template may get its name later.
    is_invalid = any(not error.path.startswith("metadata.") for error in validate(decoded, gates=gates))
    found = _about_target(decoded, target, index) if is_invalid else _findings(decoded, target, index, gates)
    # An object that is given twice has its findings once.
    return tuple(dict.fromkeys(advise_owner(decoded, found)))


def _of_keda(
    hpa: Manifest, target: TargetSource | None, index: NamespaceIndex, gates: FeatureGates
) -> tuple[Finding, ...]:
    """Find also why the API server rejects the HPA that KEDA makes, which no command validates before."""
    try:
        errors = [(each.path, each.message) for each in validate(hpa, gates=gates)]
        rest = lint_among(hpa, target, index, gates)
    except ManifestError as error:
        errors = [(each.path, each.detail) for each in error.problems]
        rest = tuple(dict.fromkeys(advise_owner(hpa, _about_target(hpa, target, index))))
    rejected = (
        Finding(Code.REJECTED_HPA, Severity.ERROR, path, f"The API server rejects it: {message}.", "")
        for path, message in errors
        if not path.startswith("metadata.")
    )
    return (*advise_owner(hpa, rejected), *rest)


def _about_target(hpa: Manifest, source: TargetSource | None, index: NamespaceIndex) -> Iterator[Finding]:
    """Find what depends on the target and on other objects only, and not on the metrics and the behavior."""
    target, manifest = _read(source, index)
    # Of a workload that a Rollout runs the replicas are to be 0, whatever its autoscaler.
    is_run = target is not None and folded(scale_target_key(hpa)) in index.rollouts
    yield from target_findings(hpa, replace(target, replicas=None) if target is not None and is_run else target)
    if target is None:
        yield from missing_target(hpa, index)
    yield from conflict_findings(hpa, manifest, index)


def _findings(
    decoded: Manifest, source: TargetSource | None, index: NamespaceIndex, gates: FeatureGates
) -> Iterator[Finding]:
    # Read before the defaults, which have metrics.
    explicit = bool(decoded.get("spec", {}).get("metrics"))
    hpa = admitted(decoded, gates=gates)
    tolerances = tolerances_of(Autoscaler.of(hpa), Settings(features=gates))
    target, manifest = _read(source, index)
    yield from _about_target(hpa, source, index)
    pods = None if target is None else target.pods
    labels = None if manifest is None else pod_labels(manifest)
    yield from policy_findings(hpa, pods, labels, index)
    yield from metric_findings(hpa["spec"], pods, tolerances, explicit=explicit)
    yield from dropped_tolerances(decoded["spec"], hpa["spec"])
    yield from behavior_findings(hpa["spec"], tolerances)


def _read(source: TargetSource | None, index: NamespaceIndex) -> tuple[Reference | None, Manifest | None]:
    target, manifest = None if source is None else read_target(source), _target_manifest(source)
    return (_with_pods(target, manifest, index) if target is not None and manifest is not None else target), manifest


def _with_pods(target: Reference, manifest: Manifest, index: NamespaceIndex) -> Reference:
    """Return a target with the pods of the workload that it refers to, and with the defaults of LimitRanges."""
    used = referenced_workload(manifest)
    template = pod_template(manifest if used is None else index.find(used) or {})
    pods = read_pods(template) if isinstance(template, Mapping) else target.pods
    return target if pods is None else replace(target, pods=with_limit_ranges(pods, index.limit_ranges))


def _target_manifest(source: TargetSource | None) -> Manifest | None:
    known = source is not None and not isinstance(source, ObjectKey | Scalable)
    return manifest_of(source) if known else None
