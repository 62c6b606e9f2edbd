"""Disruption controller: the status of PodDisruptionBudgets.

Source: pkg/controller/disruption of Kubernetes 1.36.
"""

from datetime import datetime, timedelta
from typing import Final

from ocf.cluster.protocol import Subresource
from ocf.errors import NotFoundError
from ocf.objects import Manifest, parse_time
from ocf.objects.conditions import ConditionStatus, set_condition
from ocf.objects.owner_references import controller_of
from ocf.objects.selectors import LabelSelector
from ocf_server.controllers.actions import Event, Outcome, update_status
from ocf_server.controllers.ownership import (
    controller_among,
    controller_uid,
    is_controlled_by,
    is_deleted,
    reference_to,
)
from ocf_server.controllers.pods import is_finished, is_ready
from ocf_server.controllers.replicas import scaled_value
from ocf_server.controllers.view import ClusterView
from ocf_server.registry.scale import scale_of

__all__ = ["reconcile_budget"]

# DeletionTimeout: an eviction whose pod is still there after it counts as failed.
_TIMEOUT: Final = timedelta(minutes=2)


def reconcile_budget(view: ClusterView, budget: Manifest) -> Outcome:
    """Report how many pods may be disrupted."""
    selector = budget["spec"].get("selector")
    matcher = LabelSelector.of(selector) if selector is not None else None
    pods = [
        pod
        for pod in view.objects("Pod", budget["metadata"]["namespace"])
        if matcher is not None and matcher.matches(pod["metadata"].get("labels") or {}) and not is_finished(pod)
    ]
    events = _events(budget, pods)
    try:
        expected, desired = _numbers(view, budget, pods)
    except _UnknownScaleError as error:
        return Outcome(tuple(update_status(budget, _failed(view, budget, str(error)))))
    disrupted = _disrupted(view, budget, pods)
    # An evicted pod counts as gone from the eviction on, and not only when its delete is seen.
    healthy = sum(is_ready(pod) and not is_deleted(pod) and pod["metadata"]["name"] not in disrupted for pod in pods)
    allowed = max(0, healthy - desired) if expected > 0 else 0
    status = {
        **({"disruptedPods": disrupted} if disrupted else {}),
        "observedGeneration": budget["metadata"]["generation"],
        "disruptionsAllowed": allowed,
        "currentHealthy": healthy,
        "desiredHealthy": desired,
        "expectedPods": expected,
        "conditions": set_condition(
            budget["status"].get("conditions") or [],
            condition_type="DisruptionAllowed",
            status=ConditionStatus.of(allowed > 0),
            reason="SufficientPods" if allowed > 0 else "InsufficientPods",
            message="",
            observed_generation=budget["metadata"]["generation"],
            now=view.now,
        ),
    }
    written = tuple(update_status(budget, status))
    at = min((parse_time(since) + _TIMEOUT for since in disrupted.values()), default=None)
    return Outcome(written, at, events if written else ())


def _events(budget: Manifest, pods: list[Manifest]) -> tuple[Event, ...]:
    """Return the events about pods that the budget lacks, or that it cannot count."""
    if not pods:
        return (Event(budget, "NoPods", "No matching pods found"),)
    # A number of pods needs no workloads; a percentage and `maxUnavailable` are of the replicas that these ask for.
    counts_workloads = not isinstance(budget["spec"].get("minAvailable"), int)
    if not counts_workloads or all(map(controller_uid, pods)):
        return ()
    selector = _go_selector(budget["spec"]["selector"])
    message = (
        f"Pods selected by this PodDisruptionBudget (selector: {selector}) were found to be unmanaged. As a result, "
        "the status of the PDB cannot be calculated correctly, which may result in undefined behavior. To account for "
        'these pods please set ".spec.minAvailable" field of the PDB to an integer value.'
    )
    return (Event(budget, "UnmanagedPods", message, warning=True),)


def _go_selector(selector: Manifest) -> str:
    """Return a selector as Go prints it."""
    labels = "".join(f"{name}: {value}," for name, value in sorted((selector.get("matchLabels") or {}).items()))
    expressions = "".join(
        f"LabelSelectorRequirement{{Key:{each['key']},Operator:{each['operator']},"
        f"Values:[{' '.join(each.get('values') or ())}],}},"
        for each in selector.get("matchExpressions") or ()
    )
    return (
        f"&LabelSelector{{MatchLabels:map[string]string{{{labels}}},"
        f"MatchExpressions:[]LabelSelectorRequirement{{{expressions}}},}}"
    )


class _UnknownScaleError(Exception):
    """The number of pods of a workload is not known."""


def _numbers(view: ClusterView, budget: Manifest, pods: list[Manifest]) -> tuple[int, int]:
    """Return the number of pods that should exist, and how many of them have to be healthy."""
    spec = budget["spec"]
    least, most = spec.get("minAvailable"), spec.get("maxUnavailable")
    if most is not None:
        expected = _expected(view, pods)
        return expected, max(0, expected - scaled_value(most, expected, round_up=True))
    if isinstance(least, str):
        expected = _expected(view, pods)
        return expected, scaled_value(least, expected, round_up=True)
    return len(pods), least or 0


def _expected(view: ClusterView, pods: list[Manifest]) -> int:
    """Return the sum of the replicas of all workloads that control the pods."""
    return sum(dict(scale for scale in (_scale(view, pod) for pod in pods) if scale is not None).values())


def _scale(view: ClusterView, pod: Manifest) -> tuple[str, int] | None:
    """Return uid and replicas of the workload that controls a pod; None if the pod has no controller.

    The owner of a workload does not count, except for the Deployment of a ReplicaSet.
    """
    reference = controller_of(pod)
    if reference is None:
        return None
    try:
        resource = view.registry.resource(reference.api_version, reference.kind)
    except NotFoundError:
        raise _UnknownScaleError(
            f'no matches for kind "{reference.kind}" in version "{reference.api_version}"'
        ) from None
    if Subresource.SCALE not in resource.subresources:
        raise _UnknownScaleError(f"{resource.group_resource} does not implement the scale subresource")
    workload = view.registry.read(resource, (pod["metadata"]["namespace"], reference.name))
    if workload is None or not is_controlled_by(pod, workload):
        raise _UnknownScaleError(f'found no controllers for pod "{pod["metadata"]["name"]}"')
    if reference_to(pod, "ReplicaSet") is not None:
        workload = controller_among(view, workload, "Deployment") or workload
    return workload["metadata"]["uid"], scale_of(workload, resource)["spec"].get("replicas", 0)


def _disrupted(view: ClusterView, budget: Manifest, pods: list[Manifest]) -> dict[str, str]:
    """Return the evicted pods that are not deleted yet, for two minutes after their eviction."""
    present = {pod["metadata"]["name"] for pod in pods if not is_deleted(pod)}

    def is_recent(since: str) -> bool:
        instant: datetime = parse_time(since)
        return instant + _TIMEOUT > view.now

    noted: dict[str, str] = budget["status"].get("disruptedPods") or {}
    return {name: since for name, since in noted.items() if name in present and is_recent(since)}


def _failed(view: ClusterView, budget: Manifest, problem: str) -> Manifest:
    conditions = set_condition(
        budget["status"].get("conditions") or [],
        condition_type="DisruptionAllowed",
        status=ConditionStatus.FALSE,
        reason="SyncFailed",
        message=problem,
        observed_generation=budget["status"].get("observedGeneration", 0),
        now=view.now,
    )
    return {**budget["status"], "disruptionsAllowed": 0, "conditions": conditions}
