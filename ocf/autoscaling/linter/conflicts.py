"""Findings about other objects that act on the target of an autoscaler, or on its pods."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from ocf.autoscaling.linter.findings import Code, Finding, Severity
from ocf.autoscaling.targets.scaled_objects import hpa_name_of, is_scaled_object, target_of
from ocf.autoscaling.targets.targets import key_of, scale_target_key
from ocf.autoscaling.targets.workloads import pod_labels, referenced_workload
from ocf.errors import ConfigError
from ocf.objects import Manifest, ObjectKey
from ocf.objects.paths import get_field
from ocf.objects.selectors import LabelSelector

__all__ = ["conflict_findings", "selector_of"]

_HPA: Final = "HorizontalPodAutoscaler"
_PATH: Final = "spec.scaleTargetRef"
_HOOK: Final = "helm.sh/hook"
_TRANSFER: Final = "scaledobject.keda.sh/transfer-hpa-ownership"


def conflict_findings(hpa: Manifest, target: Mapping[str, Any] | None, others: Iterable[Manifest]) -> Iterator[Finding]:
    """Find autoscalers that share a target, and workloads whose pods are counted as those of the target.

    Args:
        target: The manifest of its target; None if it is not known.
        others: The other objects of the namespace.
    """
    others = list(others)
    objects: dict[tuple[str, str, str, str], Manifest] = {}
    for other in others:
        # Of an object that is given twice the first counts, which is the nearest.
        objects.setdefault(_folded(key_of(other)), other)
    scaled = set()
    for other in others:
        if other.get("kind") == _HPA and _full_name(other) != _full_name(hpa):
            scaled.add(_folded(scale_target_key(other)))
            yield from _other_hpa(hpa, other, target, objects)
        elif is_scaled_object(other):
            scaled.add(_folded(target_of(other)))
            yield from _scaled_object(hpa, other)
    yield from _rollouts(hpa, others)
    if target is not None:
        yield from _foreign_pods(dict(target), _folded(scale_target_key(hpa)), objects, scaled)


def _other_hpa(
    hpa: Manifest, other: Manifest, target: Mapping[str, Any] | None, objects: Mapping[Any, Manifest]
) -> Iterator[Finding]:
    named = f"{_HPA} {_full_name(other)}"
    if _folded(scale_target_key(other)) == _folded(scale_target_key(hpa)):
        yield Finding(
            Code.SHARED_TARGET,
            Severity.ERROR,
            _PATH,
            f"{named} scales the same target, so both select the same pods, and the controller scales neither by "
            f"its metrics (AmbiguousSelector).{_separate_bounds(hpa, other)}",
            "Put the metrics of both into one autoscaler; the one that wants the most replicas counts.",
        )
        return
    other_target = objects.get(_folded(scale_target_key(other)))
    if target is not None and other_target is not None and _overlap(dict(target), other_target):
        yield Finding(
            Code.OVERLAPPING_SELECTORS,
            Severity.ERROR,
            _PATH,
            f"The selector of one target matches pods of the other, which {named} scales; "
            "the controller then scales neither (AmbiguousSelector).",
            "Selectors are immutable: replace one of the targets by one with a label of its own in selector and pods.",
        )


def _scaled_object(hpa: Manifest, other: Manifest) -> Iterator[Finding]:
    """Find a ScaledObject for the same target; KEDA makes another HPA for it, unless this one is the ScaledObject's."""
    if _folded(target_of(other)) != _folded(scale_target_key(hpa)):
        return
    created, name = hpa_name_of(other), get_field(hpa, ("metadata", "name"))
    owners = get_field(hpa, ("metadata", "ownerReferences"))
    owner_names = [get_field(each, ("name",)) for each in (owners if isinstance(owners, list) else ())]
    is_transferred = str(get_field(other, ("metadata", "annotations", _TRANSFER))).lower() == "true"
    is_created = str(created).startswith("keda-hpa-") or is_transferred
    if key_of(other).name in owner_names or (created == name and is_created):
        return
    yield Finding(
        Code.SHARED_TARGET,
        Severity.ERROR,
        _PATH,
        f"ScaledObject {_full_name(other)} scales the same target by an HPA of its own, {created}, so the controller "
        "scales neither by its metrics (AmbiguousSelector), unless the webhook of KEDA rejects the ScaledObject.",
        "Add the metrics of this HPA to the triggers of the ScaledObject, and let KEDA take this HPA over: annotation "
        f'{_TRANSFER}: "true", and its name in advanced.horizontalPodAutoscalerConfig.name.',
    )


def _rollouts(hpa: Manifest, others: Iterable[Manifest]) -> Iterator[Finding]:
    """Find a Rollout that runs the pods of the target by itself, and scales the target down."""
    for other in others:
        used = referenced_workload(other)
        if used is None or _folded(used) != _folded(scale_target_key(hpa)):
            continue
        rollout = key_of(other)
        yield Finding(
            Code.SHARED_TARGET,
            Severity.ERROR,
            _PATH,
            f"{rollout.kind} {_full_name(other)} runs the pods of this target (workloadRef) with its own replicas, so "
            "scaling the target adds pods beside those of the rollout.",
            f"Scale the rollout: apiVersion {rollout.api_version}, kind {rollout.kind}, name {rollout.name}.",
        )


def _foreign_pods(
    target: Manifest, own: tuple[str, str, str, str], objects: Mapping[Any, Manifest], scaled: set[Any]
) -> Iterator[Finding]:
    """Find workloads without an autoscaler whose pods the selector of the target matches."""
    selector = selector_of(target)
    reference = referenced_workload(target)
    used = None if reference is None else _folded(reference)
    found = []
    for key, other in objects.items():
        labels = pod_labels(other)
        if selector is None or labels is None or key == own or key in scaled or not selector.matches(labels):
            continue
        # The pods of what has a controller are counted as those of the controller; a Helm test runs for a moment.
        if _is_controlled(other) or str(get_field(other, ("metadata", "annotations", _HOOK))).startswith("test"):
            continue
        # Of a workload that a rollout runs only those pods count that it starts by itself.
        if key == used and (get_field(other, ("spec", "replicas")) == 0 or _scales_down(target)):
            continue
        found.append((key, f"{other.get('kind')} {_full_name(other)}"))
    if not found:
        return
    named = ", ".join(name for _, name in found)
    yield Finding(
        Code.OVERLAPPING_SELECTORS,
        Severity.WARNING,
        _PATH,
        f"The selector {selector} of the target also matches the pods of {named}, so the controller counts and "
        "measures them as pods of the target.",
        f"{named} must have replicas 0 while the rollout runs its pods."
        if [key for key, _ in found] == [used]
        else "Give these pods other values of the labels; a workload whose selector has to change, too, is replaced, "
        "because selectors are immutable.",
    )


def _is_controlled(manifest: Manifest) -> bool:
    references = get_field(manifest, ("metadata", "ownerReferences"))
    listed = references if isinstance(references, list) else []
    return any(get_field(each, ("controller",)) is True for each in listed)


def _scales_down(rollout: Manifest) -> bool:
    return get_field(rollout, ("spec", "workloadRef", "scaleDown")) in {"onsuccess", "progressively"}


def _folded(key: ObjectKey) -> tuple[str, str, str, str]:
    """Return what distinguishes objects: the controller finds a kind by its name in lower case, too."""
    return key._replace(kind=key.kind.lower()).unversioned


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


def _overlap(one: Manifest, other: Manifest) -> bool:
    return _selects(one, other) or _selects(other, one)


def _selects(one: Manifest, other: Manifest) -> bool:
    labels = pod_labels(other)
    # Most workloads differ in a label; to parse a selector takes much longer than to see that.
    required = get_field(one, ("spec", "selector", "matchLabels"))
    if labels is None or (isinstance(required, dict) and not required.items() <= labels.items()):
        return False
    selector = selector_of(one)
    return selector is not None and selector.matches(labels)


def selector_of(manifest: Manifest) -> LabelSelector | None:
    """Return the selector of a workload; None if it has none that can be read."""
    try:
        found = LabelSelector.of(get_field(manifest, ("spec", "selector")))
    except ConfigError:
        return None
    return None if found.nothing or not found.requirements else found
