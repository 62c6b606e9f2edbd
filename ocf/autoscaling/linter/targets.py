"""Findings about the target of an autoscaler."""

from collections.abc import Iterator
from typing import Final

from ocf.autoscaling.linter.findings import Code, Finding, Severity
from ocf.autoscaling.linter.handover import hand_over
from ocf.autoscaling.linter.namespace_index import NamespaceIndex
from ocf.autoscaling.targets.targets import Reference, cannot_scale, scale_target_key
from ocf.objects import Manifest, ObjectKey
from ocf.objects.manifest import split_api_version
from ocf.objects.suggestions import nearest
from ocf.schema.builtin import builtin_kinds, is_builtin_group

# The group that served Deployments until Kubernetes 1.15.
_REMOVED_GROUP: Final = "extensions"
_SCALABLE: Final = (
    ("apps/v1", "Deployment"),
    ("apps/v1", "StatefulSet"),
    ("apps/v1", "ReplicaSet"),
    ("v1", "ReplicationController"),
    ("apps.openshift.io/v1", "DeploymentConfig"),
    ("argoproj.io/v1alpha1", "Rollout"),
)
_WORKLOADS: Final = frozenset((split_api_version(version)[0], kind) for version, kind in _SCALABLE)

__all__ = ["missing_target", "target_findings"]


def target_findings(hpa: Manifest, target: Reference | None) -> Iterator[Finding]:
    """Find targets that cannot be scaled, or that the API server rejects, or that set their own replicas.

    Args:
        target: Its target; None if it is not known.
    """
    reference = hpa["spec"].get("scaleTargetRef", {})
    kind = reference.get("kind", "")
    if cannot_scale(reference.get("apiVersion", ""), kind):
        yield Finding(
            Code.CANNOT_SCALE,
            Severity.ERROR,
            "spec.scaleTargetRef.kind",
            f"A {kind} has no scale subresource, so the controller can never read its size.",
            "Use the owner of the pods: a Deployment, a StatefulSet, or a custom resource with a scale subresource.",
        )
    invalid = [] if target is None or target.pods is None else list(target.pods.invalid_amounts())
    if invalid:
        yield Finding(
            Code.INVALID_RESOURCES,
            Severity.ERROR,
            "spec.scaleTargetRef",
            f"The API server rejects {target}, because resources of it are not quantities: {', '.join(invalid)}.",
            "Write quantities such as 500m, 2 or 1Gi.",
        )
    excessive = [] if target is None or target.pods is None else list(target.pods.requests_above_limits())
    if excessive:
        yield Finding(
            Code.INVALID_RESOURCES,
            Severity.ERROR,
            "spec.scaleTargetRef",
            f"The API server rejects the pods of {target}, because a request exceeds the limit of the same container, "
            f"which may be the default of a LimitRange: {', '.join(excessive)}.",
            "Set a limit of at least the request, or lower the request.",
        )
    if target is not None and target.replicas is not None:
        yield _fixed_replicas(hpa, target, target.replicas)


def _fixed_replicas(hpa: Manifest, target: Reference, replicas: int) -> Finding:
    # With minReplicas 0, it depends on the release and on who set the 0 whether the controller scales the target up.
    if replicas == 0 and hpa["spec"].get("minReplicas") != 0:
        why = "at which the HPA controller does not scale it (ScalingDisabled)."
        fix = "Remove replicas, which starts the target at 1, or keep 0 as long as nothing is to run."
    else:
        why = (
            "so each client-side apply of it (kubectl, Argo CD), and each upgrade by Helm 3, reverts the autoscaler; a "
            "server-side apply of it conflicts with the autoscaler, and reverts it where conflicts are forced (Flux)."
        )
        fix = hand_over(target, replicas)
    explanation = f"{target} sets replicas to {replicas}, {why}"
    return Finding(Code.FIXED_REPLICAS, Severity.WARNING, "spec.scaleTargetRef", explanation, fix)


def missing_target(hpa: Manifest, index: NamespaceIndex) -> Iterator[Finding]:
    """Find a target that no API serves, or that is not among the workloads of its namespace.

    Args:
        index: The objects of the namespace; without a workload nothing is known about a name.
    """
    wanted = scale_target_key(hpa)
    reports = "so the controller cannot read its size (FailedGetScale)."
    if _is_unknown_kind(wanted):
        meant = nearest(wanted.kind, [kind for _, kind in _SCALABLE]) or wanted.kind
        known = [f"apiVersion {version}, kind {kind}" for version, kind in _SCALABLE if kind == meant]
        group = f"the group {wanted.group}" if wanted.group else "the core group, to which v1 belongs"
        yield Finding(
            Code.MISSING_TARGET,
            Severity.ERROR,
            "spec.scaleTargetRef",
            f"Kubernetes serves no kind {wanted.kind or 'without a name'} in {group}, {reports}",
            f"Did you mean {known[0]}?" if known else "Write the apiVersion and the kind of the workload.",
        )
        return
    same_kind = index.by_kind.get(wanted.group_kind, [])
    workloads = [key for kind in sorted({*_WORKLOADS, wanted.group_kind}) for key in index.by_kind.get(kind, ())]
    if not workloads or (wanted.group_kind not in _WORKLOADS and not same_kind):
        return
    same_name = next((key for key in workloads if key.name == wanted.name), None)
    names = [key.name for key in same_kind]
    near = nearest(wanted.name, names)
    place = f" in the namespace {wanted.namespace}" if wanted.namespace else ""
    if same_name is not None:
        fix = f"Did you mean apiVersion {same_name.api_version}, kind {same_name.kind}?"
    elif near:
        fix = f"Did you mean the name {near}?"
    else:
        fix = "Name a workload that exists, or pass its file, too."
    yield Finding(
        Code.MISSING_TARGET,
        Severity.WARNING if same_name is None else Severity.ERROR,
        f"spec.scaleTargetRef.{'name' if same_name is None else 'kind'}",
        f"There is no {wanted.kind} {wanted.name} among the given workloads{place}; without it the controller cannot "
        "read its size (FailedGetScale).",
        fix,
    )


def _is_unknown_kind(key: ObjectKey) -> bool:
    """Return whether Kubernetes serves no kind of this name, in any version; the controller ignores the version."""
    if key.group != _REMOVED_GROUP and not is_builtin_group(key.group):
        return False
    served = {kind for _, _, kind in builtin_kinds(key.group)}
    return key.kind not in served | {kind.lower() for kind in served}
