"""Findings about the target of an autoscaler, and about autoscalers that conflict."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from ocf.autoscaling.linter.findings import Code, Finding, Severity
from ocf.autoscaling.linter.handover import hand_over
from ocf.autoscaling.targets.targets import Reference, cannot_scale, key_of, scale_target_key
from ocf.errors import ConfigError
from ocf.objects import Manifest
from ocf.objects.paths import get_field
from ocf.objects.selectors import LabelSelector

__all__ = ["conflict_findings", "target_findings"]

_HPA: Final = "HorizontalPodAutoscaler"


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
    if target is not None and target.replicas is not None:
        yield _fixed_replicas(hpa, target, target.replicas)


def _fixed_replicas(hpa: Manifest, target: Reference, replicas: int) -> Finding:
    # With minReplicas 0, it depends on the release and on who set the 0 whether the controller scales the target up.
    if replicas == 0 and hpa["spec"].get("minReplicas") != 0:
        why = "at which the HPA controller does not scale it (ScalingDisabled)."
        fix = "Remove replicas, which starts the target at 1, or keep 0 as long as nothing is to run."
    else:
        why = (
            "so each client-side apply of it, and each upgrade by Helm 3, reverts the autoscaler; a server-side apply "
            "of it conflicts with the autoscaler."
        )
        fix = hand_over(target, replicas)
    explanation = f"{target} sets replicas to {replicas}, {why}"
    return Finding(Code.FIXED_REPLICAS, Severity.WARNING, "spec.scaleTargetRef", explanation, fix)


def conflict_findings(hpa: Manifest, target: Mapping[str, Any] | None, others: Iterable[Manifest]) -> Iterator[Finding]:
    """Find autoscalers that share a target, or whose targets select the same pods.

    Args:
        target: The manifest of its target; None if it is not known.
    """
    others = list(others)
    # Reversed, so that of an object that is given twice the first counts.
    targets = {key_of(other).unversioned: other for other in reversed(others)}
    for other in others:
        if other.get("kind") != _HPA or _full_name(other) == _full_name(hpa) or _namespace(other) != _namespace(hpa):
            continue
        named = f"{_HPA} {_full_name(other)}"
        if scale_target_key(other).same_object(scale_target_key(hpa)):
            yield Finding(
                Code.SHARED_TARGET,
                Severity.ERROR,
                "spec.scaleTargetRef",
                f"{named} scales the same target, so both select the same pods, and the controller scales neither by "
                f"its metrics (AmbiguousSelector).{_separate_bounds(hpa, other)}",
                "Put the metrics of both into one autoscaler; the one that wants the most replicas counts.",
            )
            continue
        other_target = targets.get(scale_target_key(other).unversioned)
        if target is not None and other_target is not None and _overlap(target, other_target):
            yield Finding(
                Code.OVERLAPPING_SELECTORS,
                Severity.ERROR,
                "spec.scaleTargetRef",
                f"The selector of one target matches pods of the other, which {named} scales; "
                "the controller then scales neither (AmbiguousSelector).",
                "Give the pods of each target a unique label, and select by it.",
            )


def _separate_bounds(hpa: Manifest, other: Manifest) -> str:
    """Return what happens in addition if no size is within the bounds of both; the bounds apply before the metrics."""
    (least, most), (other_least, other_most) = _bounds(hpa), _bounds(other)
    if max(least, other_least) <= min(most, other_most):
        return ""
    return (
        f" Its bounds are {other_least} to {other_most}, so the two move the target into their own bounds by turns, "
        "for ever."
    )


def _bounds(hpa: Manifest) -> tuple[int, int]:
    least, most = (get_field(hpa, ("spec", field)) for field in ("minReplicas", "maxReplicas"))
    least = least if isinstance(least, int) else 1
    return least, most if isinstance(most, int) else least


def _full_name(manifest: Manifest) -> str:
    name = str(get_field(manifest, ("metadata", "name")) or "")
    return f"{_namespace(manifest)}/{name}" if _namespace(manifest) else name


def _namespace(manifest: Mapping[str, Any]) -> str:
    return str(get_field(dict(manifest), ("metadata", "namespace")) or "")


def _overlap(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    return _selects(one, other) or _selects(other, one)


def _selects(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    labels = get_field(dict(other), ("spec", "template", "metadata", "labels"))
    try:
        selector = LabelSelector.of(get_field(dict(one), ("spec", "selector")))
    except ConfigError:
        return False
    return isinstance(labels, Mapping) and selector.matches(labels)
