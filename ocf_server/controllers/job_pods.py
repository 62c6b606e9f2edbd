"""Pods of Jobs: their creation, the finalizer that tracks them, and their completion indexes.

Source: pkg/controller/job of Kubernetes 1.36 (tracking_utils.go, indexed_job_utils.go).
"""

from datetime import datetime
from typing import Any, Final

from ocf.objects import Manifest, copy_json, parse_time
from ocf_server.controllers.actions import Action, Outcome, update
from ocf_server.controllers.ownership import controller_among, controller_uid, reference_to
from ocf_server.controllers.pods import pod_from_template
from ocf_server.controllers.view import ClusterView

__all__ = [
    "ended_at",
    "index_of",
    "is_tracked",
    "pod_of_job",
    "read_indexes",
    "reconcile_orphan_pod",
    "untracked",
    "write_indexes",
]

_TRACKING: Final = "batch.kubernetes.io/job-tracking"
_INDEX: Final = "batch.kubernetes.io/job-completion-index"


def is_tracked(pod: Manifest) -> bool:
    """Return whether a pod has the finalizer that keeps it until the Job has counted it."""
    return _TRACKING in (pod["metadata"].get("finalizers") or ())


def untracked(pod: Manifest) -> Action:
    """Return the update that removes this finalizer."""
    left = [each for each in pod["metadata"]["finalizers"] if each != _TRACKING]
    metadata = {key: value for key, value in pod["metadata"].items() if key != "finalizers"}
    return update({**pod, "metadata": {**metadata, **({"finalizers": left} if left else {})}})


def reconcile_orphan_pod(view: ClusterView, pod: Manifest) -> Outcome:
    """Remove the finalizer from a pod whose Job does not exist any more.

    Source: `syncOrphanPod` of the Job controller.
    """
    if not is_tracked(pod):
        return Outcome()
    is_foreign = bool(controller_uid(pod)) and reference_to(pod, "Job") is None
    if is_foreign or controller_among(view, pod, "Job") is not None:
        return Outcome()
    return Outcome((untracked(pod),))


def pod_of_job(job: Manifest, index: int | None) -> Manifest:
    """Return a new pod of a Job.

    Args:
        index: The completion index of the pod; None if the Job has none.
    """
    metadata = job["metadata"]
    name, uid = metadata["name"], metadata["uid"]
    labels = {
        "batch.kubernetes.io/controller-uid": uid,
        "batch.kubernetes.io/job-name": name,
        "controller-uid": uid,
        "job-name": name,
    }
    pod: dict[str, Any] = pod_from_template(job, copy_json(job["spec"]["template"]), labels)
    pod["metadata"]["finalizers"] = [*pod["metadata"].get("finalizers", ()), _TRACKING]
    if index is not None:
        pod["metadata"]["annotations"] = {**pod["metadata"].get("annotations", {}), _INDEX: str(index)}
        pod["metadata"]["labels"][_INDEX] = str(index)
        pod["metadata"]["generateName"] = f"{name}-{index}-"
        pod["spec"]["hostname"] = f"{name}-{index}"
        path = f"metadata.labels['{_INDEX}']"
        source = {"name": "JOB_COMPLETION_INDEX", "valueFrom": {"fieldRef": {"fieldPath": path}}}
        for container in (*pod["spec"].get("initContainers", ()), *pod["spec"]["containers"]):
            container["env"] = [*container.get("env", ()), source]
    return pod


def index_of(pod: Manifest) -> int:
    """Return the completion index of a pod; -1 without one."""
    return int((pod["metadata"].get("annotations") or {}).get(_INDEX, -1))


def read_indexes(text: str) -> set[int]:
    """Return the completion indexes in a text that `write_indexes` wrote.

    Example:
        >>> sorted(read_indexes("0,2-4"))
        [0, 2, 3, 4]
    """
    found: set[int] = set()
    for part in filter(None, text.split(",")):
        first, _, last = part.partition("-")
        found.update(range(int(first), int(last or first) + 1))
    return found


def ended_at(pod: Manifest) -> datetime:
    """Return when the last container of a pod ended; without one, when the pod was created."""
    ends = [
        each["state"]["terminated"]["finishedAt"]
        for each in pod["status"].get("containerStatuses") or ()
        if (each.get("state") or {}).get("terminated")
    ]
    return max(map(parse_time, ends), default=parse_time(pod["metadata"]["creationTimestamp"]))


def write_indexes(indexes: set[int]) -> str:
    """Return completion indexes as the API writes them.

    Example:
        >>> write_indexes({0, 2, 3, 4, 7, 8})
        '0,2-4,7,8'
    """
    parts: list[str] = []
    for index in sorted(indexes):
        if index - 1 not in indexes:
            parts.append(str(index))
        elif index + 1 not in indexes:
            # Two neighbours are listed, three and more are a range.
            first = parts.pop().partition("-")[0]
            parts += [f"{first}-{index}"] if index - int(first) > 1 else [first, str(index)]
    return ",".join(parts)
