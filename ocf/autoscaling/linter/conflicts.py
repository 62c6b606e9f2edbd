"""Findings about other objects that act on the target of an autoscaler, or on its pods."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from ocf.autoscaling.api.kinds import HPA_KIND
from ocf.autoscaling.linter.findings import Code, Finding, Severity
from ocf.autoscaling.linter.namespace_index import FoldedKey, NamespaceIndex, folded, selector_of
from ocf.autoscaling.targets.scaled_objects import hpa_name_of
from ocf.autoscaling.targets.targets import key_of, scale_target_key
from ocf.autoscaling.targets.workloads import pod_labels, referenced_workload
from ocf.objects import Manifest
from ocf.objects.owner_references import controller_of
from ocf.objects.paths import get_field

__all__ = ["conflict_findings"]

_PATH: Final = "spec.scaleTargetRef"
_HOOK: Final = "helm.sh/hook"
_TRANSFER: Final = "scaledobject.keda.sh/transfer-hpa-ownership"


def conflict_findings(hpa: Manifest, target: Mapping[str, Any] | None, index: NamespaceIndex) -> Iterator[Finding]:
    """Find autoscalers that share a target, and workloads whose pods are counted as those of the target.

    Args:
        target: The manifest of its target; None if it is not known.
        index: The objects of the namespace.
    """
    own = folded(scale_target_key(hpa))
    found = [(position, _shared_target(hpa, other)) for position, other in index.scalers.get(own, ())]
    if target is not None:
        for key in _overlapping(dict(target), index):
            scalers = index.scalers.get(key, ()) if key != own else ()
            found += [(position, _overlap(other)) for position, other in scalers if _is_other_scaler(hpa, other)]
    for _, findings in sorted(found, key=lambda each: each[0]):
        yield from findings
    yield from _rollouts(index.rollouts.get(own, ()))
    if target is not None:
        yield from _foreign_pods(hpa, dict(target), own, index)


def _is_other_hpa(hpa: Manifest, other: Manifest) -> bool:
    return other.get("kind") == HPA_KIND and _full_name(other) != _full_name(hpa)


def _is_other_scaler(hpa: Manifest, other: Manifest) -> bool:
    """Return whether an HPA or a ScaledObject stands for another HPA than this one."""
    if other.get("kind") == HPA_KIND:
        return _full_name(other) != _full_name(hpa)
    return not _makes(other, hpa)


def _overlapping(target: Manifest, index: NamespaceIndex) -> Iterator[FoldedKey]:
    """Yield the targets of autoscalers whose selector matches the pods of this one, or the other way round."""
    selector, labels = selector_of(target), pod_labels(target)
    ours = () if selector is None else (key for key, _ in index.with_pods_of(selector))
    theirs = () if labels is None else (key for key, _ in index.scaled_that_select(labels))
    yield from dict.fromkeys((*ours, *theirs))


def _shared_target(hpa: Manifest, other: Manifest) -> Iterator[Finding]:
    if other.get("kind") != HPA_KIND:
        yield from _scaled_object(hpa, other)
    elif _is_other_hpa(hpa, other):
        # What another object controls comes back when it is deleted.
        owner = controller_of(other)
        kept = "one autoscaler" if owner is None else f"{owner}, which controls {HPA_KIND} {_full_name(other)}"
        yield Finding(
            Code.SHARED_TARGET,
            Severity.ERROR,
            _PATH,
            f"{HPA_KIND} {_full_name(other)} scales the same target, so both select the same pods, and the controller "
            f"scales neither by its metrics (AmbiguousSelector).{_separate_bounds(hpa, other)}",
            f"Put the metrics of both into {kept}, of which the one that wants the most replicas counts, and then "
            f"delete {'the other' if owner is None else 'this'} autoscaler.",
        )


def _overlap(other: Manifest) -> Iterator[Finding]:
    yield Finding(
        Code.OVERLAPPING_SELECTORS,
        Severity.ERROR,
        _PATH,
        f"The selector of one target matches pods of the other, which {other.get('kind')} {_full_name(other)} scales; "
        "the controller then scales neither (AmbiguousSelector).",
        "Selectors are immutable: create one of the targets anew under another name, with another value, in selector "
        "and pods, of a label that the selector of the other requires (a label more does not help), scale it to the "
        "size of the old one, let its autoscaler scale it, and delete the old one once the new pods are ready.",
    )


def _scaled_object(hpa: Manifest, other: Manifest) -> Iterator[Finding]:
    """Find a ScaledObject for the same target; KEDA makes another HPA for it, unless this one is the ScaledObject's."""
    if _makes(other, hpa):
        return
    yield Finding(
        Code.SHARED_TARGET,
        Severity.ERROR,
        _PATH,
        f"ScaledObject {_full_name(other)} scales the same target by an HPA of its own, {hpa_name_of(other)}, so the "
        "controller scales neither by its metrics (AmbiguousSelector), unless the webhook of KEDA rejects the "
        "ScaledObject.",
        "Add the metrics of this HPA to the triggers of the ScaledObject, remove it from the files, and let KEDA take "
        f'it over: annotation {_TRANSFER}: "true", and its name in advanced.horizontalPodAutoscalerConfig.name.',
    )


def _makes(scaled_object: Manifest, hpa: Manifest) -> bool:
    """Return whether an HPA is the one that KEDA makes of a ScaledObject."""
    created, name = hpa_name_of(scaled_object), get_field(hpa, ("metadata", "name"))
    owners = get_field(hpa, ("metadata", "ownerReferences"))
    owner_names = [get_field(each, ("name",)) for each in (owners if isinstance(owners, list) else ())]
    is_transferred = str(get_field(scaled_object, ("metadata", "annotations", _TRANSFER))).lower() == "true"
    is_created = str(created).startswith("keda-hpa-") or is_transferred
    return key_of(scaled_object).name in owner_names or (created == name and is_created)


def _rollouts(rollouts: Iterable[Manifest]) -> Iterator[Finding]:
    """Find a Rollout that runs the pods of the target by itself, and scales the target down."""
    for other in rollouts:
        rollout = key_of(other)
        yield Finding(
            Code.SHARED_TARGET,
            Severity.ERROR,
            _PATH,
            f"{rollout.kind} {_full_name(other)} runs the pods of this target (workloadRef) with its own replicas, so "
            "scaling the target adds pods beside those of the rollout.",
            f"Scale the rollout to the size of this target, let the autoscaler scale it: apiVersion "
            f"{rollout.api_version}, kind {rollout.kind}, name {rollout.name}, and "
            + (
                "leave it to the rollout to scale this target down."
                if _scales_down(other)
                else "once its pods are ready, scale this target to 0 and write that in its manifest."
            ),
        )


def _foreign_pods(hpa: Manifest, target: Manifest, own: FoldedKey, index: NamespaceIndex) -> Iterator[Finding]:
    """Find workloads without an autoscaler whose pods the selector of the target matches."""
    selector = selector_of(target)
    if selector is None:
        return
    reference = referenced_workload(target)
    used = None if reference is None else folded(reference)
    found = []
    for key, other in index.with_pods_of(selector):
        scalers = index.scalers.get(key, ())
        if key == own or any(_is_other_scaler(hpa, each) for _, each in scalers) or _makes_no_pods(other):
            continue
        # The pods of what has a controller are counted as those of the controller; a Helm test runs for a moment.
        if controller_of(other) is not None or str(get_field(other, ("metadata", "annotations", _HOOK))).startswith(
            "test"
        ):
            continue
        # Of a workload that a rollout runs only those pods count that it starts by itself.
        if key == used and _scales_down(target):
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
        else "Give these pods another value of a label that the selector requires; a label more does not help. "
        "Selectors are immutable: create a workload whose own selector requires the old value anew under another name, "
        "scale it to the size of the old one, and delete that one once the new pods are ready.",
    )


def _makes_no_pods(workload: Manifest) -> bool:
    """Return whether a workload is scaled to 0, or is a suspended Job or CronJob."""
    return get_field(workload, ("spec", "replicas")) == 0 or get_field(workload, ("spec", "suspend")) is True


def _scales_down(rollout: Manifest) -> bool:
    return get_field(rollout, ("spec", "workloadRef", "scaleDown")) in ("onsuccess", "progressively")


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
    key = key_of(manifest)
    return f"{key.namespace}/{key.name}" if key.namespace else key.name
