"""Evictions of pods, which PodDisruptionBudgets may reject.

Source: pkg/registry/core/pod/storage/eviction.go of Kubernetes 1.36. The status of a budget is that of the disruption
controller; it is used as stored, and an eviction counts its `disruptionsAllowed` down.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from ocf.cluster.protocol import Preconditions, Propagation, Subresource
from ocf.errors import ApiError, ManifestError, StatusCause, api_error
from ocf.objects import Manifest, ObjectKey, copy_json
from ocf.objects.selectors import LabelSelector
from ocf.schema.builtin import ApiResource
from ocf_server.api.status_errors import forbidden
from ocf_server.api.write_options import WriteOptions
from ocf_server.registry import generic_store, verbs
from ocf_server.registry.pending_write import PendingWrite, run_without_admission
from ocf_server.registry.pod_conditions import with_condition
from ocf_server.registry.registry import Registry

__all__ = ["evict"]

_BUDGET: Final = ("policy", "PodDisruptionBudget")
# canIgnorePDB: such a pod serves nothing that a budget could protect.
_UNPROTECTED: Final = ("Succeeded", "Failed", "Pending")
# MaxDisruptedPodSize: beyond it, the disruption controller is not working, and the map would only grow.
_MOST_DISRUPTED: Final = 2000
_RETRY_SECONDS: Final = 10
_MANAGER: Final = "kube-apiserver"


def evict(
    registry: Registry, resource: ApiResource, key: ObjectKey, sent: Manifest, options: WriteOptions
) -> PendingWrite[None]:
    """Evict a pod: delete it, unless a PodDisruptionBudget does not allow that now.

    Raises:
        TooManyRequestsError: If a budget does not allow the eviction now.
        ServerError: If several budgets select the pod.
        ApiError: If the pod does not exist, or is not the one that the preconditions name.
    """
    wanted: Mapping[str, Any] = sent.get("deleteOptions") or {}
    options = replace(options, subresource=None, dry_run=options.dry_run or bool(wanted.get("dryRun")))
    live = registry.find(resource, key)
    if not _is_unprotected(live):
        yield from _require_budget(registry, live, options)
    _delete(registry, resource, key, wanted, options)


def _is_unprotected(pod: Manifest) -> bool:
    """Return whether a pod may be evicted without regard to budgets: it does not run, or is being deleted."""
    return pod["status"].get("phase") in _UNPROTECTED or "deletionTimestamp" in pod["metadata"]


def _require_budget(registry: Registry, pod: Manifest, options: WriteOptions) -> PendingWrite[None]:
    budgets = [budget for budget in _budgets(registry, pod) if _selects(budget, pod)]
    if len(budgets) > 1:
        message = "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."
        raise api_error(message, code=500)
    if not budgets or (not _is_ready(pod) and _ignores_unready(budgets[0])):
        return
    counted = _counted_down(registry, budgets[0], pod["metadata"]["name"])
    if not options.dry_run:
        writing = replace(options, field_manager=_MANAGER, subresource=Subresource.STATUS)
        yield from verbs.update(registry, counted, writing)


def _budgets(registry: Registry, pod: Manifest) -> list[Manifest]:
    resource = registry.resource("policy/v1", "PodDisruptionBudget")
    found = registry.store.objects(_BUDGET, pod["metadata"]["namespace"])
    return [registry.shown(budget, resource) for _, budget in found]


def _selects(budget: Manifest, pod: Manifest) -> bool:
    try:
        selector = LabelSelector.of(budget["spec"].get("selector"))
    except ManifestError:
        return False
    return selector.matches(pod["metadata"].get("labels") or {})


def _is_ready(pod: Manifest) -> bool:
    conditions = pod["status"].get("conditions") or ()
    return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)


def _ignores_unready(budget: Manifest) -> bool:
    """Return whether a budget lets pods that are not ready be evicted without counting them."""
    if budget["spec"].get("unhealthyPodEvictionPolicy") == "AlwaysAllow":
        return True
    status = budget["status"]
    return bool(status.get("currentHealthy", 0) >= status.get("desiredHealthy", 0) > 0)


def _counted_down(registry: Registry, budget: Manifest, pod: str) -> Manifest:
    """Return a budget with one disruption less.

    Raises:
        ApiError: If the budget allows none.
    """
    metadata, status = budget["metadata"], budget["status"]
    # The number is that of an earlier spec, so the answer asks to come back.
    if status.get("observedGeneration", 0) < metadata.get("generation", 0):
        text = f"The disruption budget {metadata['name']} is still being processed by the server."
        raise _rejected(text, retry_after=_RETRY_SECONDS)
    if len(status.get("disruptedPods") or {}) > _MOST_DISRUPTED:
        problem = "DisruptedPods map too big - too many evictions not confirmed by PDB controller"
        raise forbidden("poddisruptionbudget.policy", metadata["name"], problem)
    allowed = status.get("disruptionsAllowed", 0)
    if allowed == 0:
        raise _rejected(_exhausted(metadata["name"], status))
    new: Manifest = copy_json(budget)
    new["status"]["disruptionsAllowed"] = allowed - 1
    new["status"].setdefault("disruptedPods", {})[pod] = registry.timestamp()
    if allowed == 1:
        _set_exhausted(new["status"], registry.timestamp())
    return new


def _rejected(cause: str, *, retry_after: int | None = None) -> ApiError:
    return api_error(
        "Cannot evict pod as it would violate the pod's disruption budget.",
        code=429,
        reason="TooManyRequests",
        causes=[StatusCause("DisruptionBudget", cause)],
        retry_after=retry_after,
    )


def _exhausted(name: str, status: Mapping[str, Any]) -> str:
    """Return why a budget allows no disruption."""
    healthy, desired = status.get("currentHealthy", 0), status.get("desiredHealthy", 0)
    condition = _condition(status)
    reason, text = condition.get("reason"), condition.get("message") if condition.get("status") == "False" else ""
    if text and reason == "SyncFailed":
        return f"The disruption budget {name} does not allow evicting pods currently because it failed sync: {text}"
    if healthy <= desired:
        return f"The disruption budget {name} needs {desired} healthy pods and has {healthy} currently"
    if text:
        return f"The disruption budget {name} does not allow evicting pods currently ({reason}): {text}"
    return f"The disruption budget {name} does not allow evicting pods currently"


def _condition(status: Mapping[str, Any]) -> dict[str, Any]:
    conditions: list[dict[str, Any]] = status.get("conditions") or []
    return next((each for each in conditions if each["type"] == "DisruptionAllowed"), {})


def _set_exhausted(status: dict[str, Any], now: str) -> None:
    known = _condition(status)
    since = known.get("lastTransitionTime", now) if known.get("status") == "False" else now
    new = {"type": "DisruptionAllowed", "status": "False", "reason": "InsufficientPods", "message": ""}
    new |= {"lastTransitionTime": since, "observedGeneration": status.get("observedGeneration", 0)}
    others = status.get("conditions") or []
    status["conditions"] = [new if each is known else each for each in others] + ([] if known else [new])


def _delete(
    registry: Registry, resource: ApiResource, key: ObjectKey, wanted: Mapping[str, Any], options: WriteOptions
) -> None:
    """Mark a pod as evicted and delete it; the API server calls no admission webhooks for that."""
    live = registry.find(resource, key)
    given = wanted.get("preconditions") or {}
    preconditions = Preconditions(uid=given.get("uid"), resource_version=given.get("resourceVersion"))
    generic_store.require_preconditions(resource, live["metadata"], preconditions)
    if not options.dry_run:
        condition = {"reason": "EvictionByEvictionAPI", "message": "Eviction API: evicting"}
        marked = with_condition(live, registry.timestamp(), type="DisruptionTarget", status="True", **condition)
        marked["metadata"] = dict(live["metadata"])
        status = replace(options, subresource=Subresource.STATUS)
        # The condition first, in a write of its own (addConditionAndDeletePod): controllers of the pod see why it ends.
        update = generic_store.update(registry, resource, live, marked, status, reviewed=True)
        live = run_without_admission(update)
    propagation = wanted.get("propagationPolicy")
    run_without_admission(
        generic_store.delete(
            registry,
            resource,
            live,
            options,
            propagation=Propagation(propagation) if propagation else None,
            grace_period_seconds=wanted.get("gracePeriodSeconds"),
        )
    )
