"""Status of Deployments: numbers of pods, and the conditions Available, Progressing and ReplicaFailure.

Sources: pkg/controller/deployment/progress.go and sync.go of Kubernetes 1.36.
"""

from datetime import datetime, timedelta
from typing import Any, Final

from ocf.objects import Manifest, parse_time
from ocf.objects.conditions import find_condition
from ocf_server.controllers.replica_sets import ReplicaSets, max_unavailable, spec_replicas
from ocf_server.controllers.view import ClusterView

__all__ = ["is_complete", "paused_conditions", "rollout_status", "scaling_status", "with_progress"]

_PROGRESSING: Final = "Progressing"
_DONE: Final = "NewReplicaSetAvailable"
_TIMED_OUT: Final = "ProgressDeadlineExceeded"
_NO_DEADLINE: Final = 2**31 - 1
_COUNTS: Final = ("updatedReplicas", "readyReplicas", "availableReplicas")


def is_complete(owner: Manifest, status: Manifest) -> bool:
    """Return whether all pods are updated and available, and no other pods exist.

    Args:
        status: Its status, or the one to be written.
    """
    desired = spec_replicas(owner)
    counts = [status.get(name, 0) for name in ("updatedReplicas", "replicas", "availableReplicas")]
    return counts == [desired] * 3 and status.get("observedGeneration", 0) >= owner["metadata"]["generation"]


def scaling_status(view: ClusterView, owner: Manifest, sets: ReplicaSets) -> Manifest:
    """Return the status of a Deployment that is scaled, paused or deleted: the progress stays as it is."""
    return _counted(view, owner, sets)


def rollout_status(view: ClusterView, owner: Manifest, sets: ReplicaSets) -> tuple[Manifest, datetime | None]:
    """Return the status of a Deployment that is rolled out, and when its progress deadline ends."""
    status = _counted(view, owner, sets)
    conditions: list[Manifest] = status["conditions"]
    known = find_condition(conditions, _PROGRESSING)
    deadline = _deadline(owner)
    if deadline is None:
        conditions = _without(conditions, _PROGRESSING)
    elif not (status.get("replicas", 0) == status.get("updatedReplicas", 0) and (known or {}).get("reason") == _DONE):
        conditions = _with_rollout_progress(view, owner, sets, status)
    failure = next(
        (found for each in sets.all if (found := find_condition(each["status"].get("conditions"), "ReplicaFailure"))),
        None,
    )
    conditions = _without(conditions, "ReplicaFailure") if failure is None else _set(view, conditions, failure)
    status["conditions"] = conditions
    return status, _stuck_at(view, owner, status)


def paused_conditions(view: ClusterView, owner: Manifest) -> list[Manifest] | None:
    """Return the conditions after a Deployment was paused or resumed; None if they are right already."""
    if _deadline(owner) is None:
        return None
    conditions = owner["status"].get("conditions") or []
    reason = (find_condition(conditions, _PROGRESSING) or {}).get("reason")
    if reason == _TIMED_OUT:
        return None
    paused = bool(owner["spec"].get("paused"))
    if paused == (reason == "DeploymentPaused"):
        return None
    reason, message = (
        ("DeploymentPaused", "Deployment is paused") if paused else ("DeploymentResumed", "Deployment is resumed")
    )
    return _set(view, conditions, _condition(_PROGRESSING, "Unknown", reason, message))


def with_progress(
    view: ClusterView, owner: Manifest, reason: str, message: str, *, always: bool = False
) -> Manifest | None:
    """Return the status with progress on the new ReplicaSet; None if the condition need not change.

    Args:
        always: Whether a condition that exists already is replaced.
    """
    conditions = owner["status"].get("conditions") or []
    if _deadline(owner) is None or (not always and find_condition(conditions, _PROGRESSING) is not None):
        return None
    condition = _condition(_PROGRESSING, "True", reason, message)
    return {**owner["status"], "conditions": _set(view, conditions, condition)}


def _counted(view: ClusterView, owner: Manifest, sets: ReplicaSets) -> Manifest:
    """Return the status with the numbers of pods and the condition Available."""
    new = sets.new
    totals = {name: sum(each["status"].get(name, 0) for each in sets.all) for name in ("replicas", *_COUNTS)}
    totals["updatedReplicas"] = new["status"].get("replicas", 0) if new is not None else 0
    available = totals["availableReplicas"]
    totals["unavailableReplicas"] = max(0, sum(map(spec_replicas, sets.all)) - available)
    collisions = owner["status"].get("collisionCount")
    if available >= spec_replicas(owner) - max_unavailable(owner):
        condition = _condition("Available", "True", "MinimumReplicasAvailable", "Deployment has minimum availability.")
    else:
        message = "Deployment does not have minimum availability."
        condition = _condition("Available", "False", "MinimumReplicasUnavailable", message)
    return {
        "observedGeneration": owner["metadata"]["generation"],
        **{name: count for name, count in totals.items() if count},
        "terminatingReplicas": sum(each["status"].get("terminatingReplicas", 0) for each in sets.all),
        **({"collisionCount": collisions} if collisions is not None else {}),
        "conditions": _set(view, owner["status"].get("conditions") or [], condition),
    }


def _with_rollout_progress(view: ClusterView, owner: Manifest, sets: ReplicaSets, status: Manifest) -> list[Manifest]:
    conditions: list[Manifest] = status["conditions"]
    subject = (
        f'ReplicaSet "{sets.new["metadata"]["name"]}"'
        if sets.new is not None
        else f'Deployment "{owner["metadata"]["name"]}"'
    )
    if is_complete(owner, status):
        message = f"{subject} has successfully progressed."
        return _set(view, conditions, _condition(_PROGRESSING, "True", _DONE, message))
    if _has_progressed(owner["status"], status):
        new = _condition(_PROGRESSING, "True", "ReplicaSetUpdated", f"{subject} is progressing.")
        known = find_condition(conditions, _PROGRESSING) or {}
        since = known["lastTransitionTime"] if known.get("status") == "True" else view.timestamp
        # The time of the last update moves even if nothing else does: the deadline counts from it.
        times = {"lastUpdateTime": view.timestamp, "lastTransitionTime": since}
        return [*_without(conditions, _PROGRESSING), {**new, **times}]
    if _is_timed_out(view, owner, status):
        message = f"{subject} has timed out progressing."
        return _set(view, conditions, _condition(_PROGRESSING, "False", _TIMED_OUT, message))
    return conditions


def _has_progressed(old: Manifest, new: Manifest) -> bool:
    def outdated(status: Manifest) -> int:
        count: int = status.get("replicas", 0) - status.get("updatedReplicas", 0)
        return count

    return outdated(new) < outdated(old) or any(new.get(name, 0) > old.get(name, 0) for name in _COUNTS)


def _is_timed_out(view: ClusterView, owner: Manifest, status: Manifest) -> bool:
    known = find_condition(status["conditions"], _PROGRESSING)
    # Pods that fail after the end of a rollout do not make it time out.
    if known is None or known["reason"] == _DONE:
        return False
    if known["reason"] == _TIMED_OUT:
        return True
    deadline = _deadline(owner)
    assert deadline is not None  # noqa: S101 (checked by the caller)
    return parse_time(known["lastUpdateTime"]) + deadline < view.now


def _stuck_at(view: ClusterView, owner: Manifest, status: Manifest) -> datetime | None:
    """Return when the progress deadline of a rollout ends, if it has not."""
    known = find_condition(status["conditions"], _PROGRESSING)
    deadline = _deadline(owner)
    if deadline is None or known is None or known["reason"] in (_TIMED_OUT, _DONE) or is_complete(owner, status):
        return None
    # One second later than the deadline, as the instants of conditions are whole seconds.
    return max(view.now, parse_time(known["lastUpdateTime"]) + deadline) + timedelta(seconds=1)


def _deadline(owner: Manifest) -> timedelta | None:
    seconds = owner["spec"].get("progressDeadlineSeconds")
    return None if seconds is None or seconds == _NO_DEADLINE else timedelta(seconds=seconds)


def _condition(condition_type: str, status: str, reason: str, message: str) -> dict[str, Any]:
    return {"type": condition_type, "status": status, "reason": reason, "message": message}


def _without(conditions: list[Manifest], condition_type: str) -> list[Manifest]:
    return [each for each in conditions if each["type"] != condition_type]


def _set(view: ClusterView, conditions: list[Manifest], new: Manifest) -> list[Manifest]:
    """Set a condition, unless one with the same status and reason exists."""
    known = find_condition(conditions, new["type"])
    if known is not None and (known["status"], known["reason"]) == (new["status"], new["reason"]):
        return conditions
    same = known is not None and known["status"] == new["status"]
    # The time of transition is that of the status, and a new reason alone does not move it.
    since = known["lastTransitionTime"] if same and known is not None else view.timestamp
    changed = {**new, "lastUpdateTime": view.timestamp, "lastTransitionTime": since}
    return [*_without(conditions, new["type"]), changed]
