"""What the controllers of workloads know about pods.

Sources: pkg/controller/controller_utils.go and pkg/api/v1/pod/util.go of Kubernetes 1.36.
"""

import math
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime, timedelta
from functools import cmp_to_key
from typing import Any, Final

from ocf.objects import Manifest, copy_json, parse_time
from ocf.objects.conditions import find_condition
from ocf_server.controllers.ownership import controller_reference, is_deleted

__all__ = [
    "deletion_order",
    "is_active",
    "is_available",
    "is_finished",
    "is_ready",
    "next_available",
    "pod_from_template",
]

# podPhaseToOrdinal: the lowest is deleted first.
_PHASES: Final = {"Pending": 0, "Unknown": 1, "Running": 2}
_COST: Final = "controller.kubernetes.io/pod-deletion-cost"


def is_finished(pod: Manifest) -> bool:
    """Return whether all containers of a pod have ended for good."""
    return pod["status"].get("phase") in ("Succeeded", "Failed")


def is_active(pod: Manifest) -> bool:
    """Return whether a pod is neither finished nor being deleted."""
    return not is_finished(pod) and not is_deleted(pod)


def is_ready(pod: Manifest) -> bool:
    """Return whether a pod has the condition Ready."""
    return _ready_condition(pod).get("status") == "True"


def _available_at(pod: Manifest, min_ready_seconds: int) -> datetime | None:
    """Return from when a pod counts as available; None if it is not ready.

    Args:
        min_ready_seconds: Seconds for which it has to be ready.
    """
    condition = _ready_condition(pod)
    since = condition.get("lastTransitionTime")
    if condition.get("status") != "True" or not since:
        return None
    return parse_time(since) + timedelta(seconds=min_ready_seconds)


def next_available(pods: Iterable[Manifest], min_ready_seconds: int, now: datetime) -> datetime | None:
    """Return when the next pod becomes available that is ready already; None if none is on its way.

    Args:
        min_ready_seconds: Seconds for which each has to be ready.
    """
    instants = (_available_at(pod, min_ready_seconds) for pod in pods)
    return min((at for at in instants if at is not None and at > now), default=None)


def is_available(pod: Manifest, min_ready_seconds: int, now: datetime) -> bool:
    """Return whether a pod has been ready for long enough."""
    at = _available_at(pod, min_ready_seconds)
    # Without a minimum, ready is enough (IsPodAvailable): the time is not compared.
    return at is not None and (min_ready_seconds == 0 or at <= now)


def pod_from_template(owner: Manifest, template: Manifest, labels: Mapping[str, str] | None = None) -> Manifest:
    """Return the pod of a template, with a generated name."""
    given = template.get("metadata") or {}
    metadata: dict[str, Any] = {
        "namespace": owner["metadata"]["namespace"],
        "generateName": f"{owner['metadata']['name']}-",
        "ownerReferences": [controller_reference(owner)],
    }
    for name, added in (("labels", labels or {}), ("annotations", {}), ("finalizers", None)):
        value = [*(given.get(name) or ())] if added is None else {**(given.get(name) or {}), **added}
        if value:
            metadata[name] = value
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": copy_json(template["spec"])}


def deletion_order(pods: Iterable[Manifest], related: Iterable[Manifest], now: datetime) -> list[Manifest]:
    """Return pods in the order in which a scale-down deletes them.

    Pods without a node come first, then those that are pending, not ready, of a lower deletion cost, on a node with
    more pods of the same workload, ready for a shorter time, restarted more often, and younger.

    Args:
        related: The active pods of the whole workload, for the number of pods on each node.

    Example:
        >>> now = parse_time("2026-01-02T00:00:00Z")
        >>> status = {"phase": "Pending"}
        >>> metadata = {"creationTimestamp": "2026-01-01T00:00:00Z"}
        >>> bound = {"metadata": {**metadata, "uid": "1"}, "spec": {"nodeName": "n"}, "status": status}
        >>> unbound = {"metadata": {**metadata, "uid": "2"}, "spec": {}, "status": status}
        >>> [pod["metadata"]["uid"] for pod in deletion_order([bound, unbound], (), now)]
        ['2', '1']
    """
    on_node: dict[str, int] = {}
    for each in related:
        node = each["spec"].get("nodeName") or ""
        on_node[node] = on_node.get(node, 0) + 1
    return sorted(pods, key=cmp_to_key(_comparison(on_node, now)))


def _comparison(on_node: Mapping[str, int], now: datetime) -> Callable[[Manifest, Manifest], int]:
    def compare(one: Manifest, other: Manifest) -> int:
        first, second = _rank(one, on_node), _rank(other, on_node)
        if first != second:
            return -1 if first < second else 1
        if is_ready(one):
            found = _compare_ages(_since_ready(one), _since_ready(other), one, other, now)
            if found:
                return found
        restarts = _restarts(other) - _restarts(one)
        if restarts:
            return restarts
        return _compare_ages(_created(one), _created(other), one, other, now)

    return compare


def _rank(pod: Manifest, on_node: Mapping[str, int]) -> tuple[int, ...]:
    node = pod["spec"].get("nodeName") or ""
    # A phase that is not known counts as Unknown.
    phase = _PHASES.get(pod["status"].get("phase") or "", 1)
    return (1 if node else 0, phase, 1 if is_ready(pod) else 0, _cost(pod), -on_node.get(node, 0))


def _cost(pod: Manifest) -> int:
    try:
        return int((pod["metadata"].get("annotations") or {}).get(_COST, 0))
    except ValueError:
        return 0


def _compare_ages(first: datetime, second: datetime, one: Manifest, other: Manifest, now: datetime) -> int:
    """Compare two instants by the logarithm of their age, so that pods of about the same age are picked by uid."""
    if first == second:
        return 0
    difference = _log_age(first, now) - _log_age(second, now)
    if difference:
        return difference
    return -1 if one["metadata"]["uid"] < other["metadata"]["uid"] else 1


def _log_age(instant: datetime, now: datetime) -> int:
    nanoseconds = (now - instant) // timedelta(microseconds=1) * 1000
    # In nanoseconds as in Go: the steps of the logarithm depend on the unit.
    return int(math.log2(nanoseconds)) if nanoseconds > 0 else -1


def _ready_condition(pod: Manifest) -> Manifest:
    return find_condition(pod["status"].get("conditions"), "Ready") or {}


def _since_ready(pod: Manifest) -> datetime:
    since = _ready_condition(pod).get("lastTransitionTime")
    return parse_time(since) if since else _created(pod)


def _created(pod: Manifest) -> datetime:
    return parse_time(pod["metadata"]["creationTimestamp"])


def _restarts(pod: Manifest) -> int:
    return max((each.get("restartCount", 0) for each in pod["status"].get("containerStatuses") or ()), default=0)
