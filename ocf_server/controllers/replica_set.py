"""ReplicaSet controller.

Source: pkg/controller/replicaset of Kubernetes 1.36.
"""

from collections.abc import Iterable, Iterator
from typing import Any, Final

from ocf.objects import Manifest
from ocf.objects.conditions import find_condition
from ocf_server.controllers.actions import Action, Event, Outcome, create, delete, update_status
from ocf_server.controllers.ownership import claim, controlled, controller_uid, is_deleted
from ocf_server.controllers.pods import (
    deletion_order,
    is_active,
    is_available,
    is_finished,
    is_ready,
    next_available,
    pod_from_template,
)
from ocf_server.controllers.view import ClusterView

__all__ = ["reconcile_replica_set"]

# BurstReplicas: the rest follows in the next reconcile.
_BURST: Final = 500


def reconcile_replica_set(view: ClusterView, owner: Manifest) -> Outcome:
    """Create or delete pods until their number is that of the spec; report their number in the status."""
    pods, actions = claim(view, owner, "Pod")
    if actions:
        return Outcome(tuple(actions))
    active = [pod for pod in pods if is_active(pod)]
    scaling: Iterable[Action] = ()
    if not is_deleted(owner):
        difference = len(active) - owner["spec"].get("replicas", 1)
        if difference < 0:
            scaling = _creates(owner, min(-difference, _BURST))
        elif difference > 0:
            scaling = _deletes(view, owner, active, min(difference, _BURST))
    terminating = sum(is_deleted(pod) and not is_finished(pod) for pod in pods)
    status = _status(view, owner, active, terminating)
    seconds = owner["spec"].get("minReadySeconds", 0)
    # The status comes first: a failed creation must not keep it from being reported.
    return Outcome((*update_status(owner, status), *scaling), next_available(active, seconds, view.now))


def _creates(owner: Manifest, count: int) -> Iterator[Action]:
    done = Event(owner, "SuccessfulCreate", "Created pod: {name}")
    failed = Event(owner, "FailedCreate", "Error creating: {error}", warning=True)
    for _ in range(count):
        yield create(pod_from_template(owner, owner["spec"]["template"]), done, failed)


def _deletes(view: ClusterView, owner: Manifest, active: list[Manifest], count: int) -> Iterator[Action]:
    done = Event(owner, "SuccessfulDelete", "Deleted pod: {name}")
    for pod in deletion_order(active, _related(view, owner, active), view.now)[:count]:
        yield delete(pod, done)


def _related(view: ClusterView, owner: Manifest, active: list[Manifest]) -> list[Manifest]:
    """Return the active pods of all ReplicaSets with the same controller."""
    uid = controller_uid(owner)
    if not uid:
        return active
    siblings = [
        each for each in view.objects("ReplicaSet", owner["metadata"]["namespace"]) if controller_uid(each) == uid
    ]
    return [pod for each in siblings for pod in controlled(view, each, "Pod") if is_active(pod)]


def _status(view: ClusterView, owner: Manifest, active: list[Manifest], terminating: int) -> Manifest:
    template = owner["spec"]["template"].get("metadata") or {}
    wanted = (template.get("labels") or {}).items()
    seconds = owner["spec"].get("minReadySeconds", 0)
    counts = {
        "fullyLabeledReplicas": sum(wanted <= (pod["metadata"].get("labels") or {}).items() for pod in active),
        "readyReplicas": sum(map(is_ready, active)),
        "availableReplicas": sum(is_available(pod, seconds, view.now) for pod in active),
    }
    conditions = _conditions(view, owner, len(active))
    return {
        "replicas": len(active),
        **{name: count for name, count in counts.items() if count},
        "terminatingReplicas": terminating,
        "observedGeneration": owner["metadata"]["generation"],
        **({"conditions": conditions} if conditions else {}),
    }


def _conditions(view: ClusterView, owner: Manifest, found: int) -> list[dict[str, Any]]:
    """Return the conditions, with ReplicaFailure while pods cannot be created."""
    old = owner["status"].get("conditions") or []
    others = [each for each in old if each["type"] != "ReplicaFailure"]
    failure = view.failures.get(owner["metadata"]["uid"])
    if failure is None or found >= owner["spec"].get("replicas", 1):
        return others
    known = find_condition(old, "ReplicaFailure")
    # Even with another message: the real controller replaces the condition only after it was removed.
    if known is not None:
        return old
    new = {"type": "ReplicaFailure", "status": "True", "lastTransitionTime": view.timestamp}
    return [*others, {**new, "reason": "FailedCreate", "message": failure}]
