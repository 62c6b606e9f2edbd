"""Simulated kubelet: pods on nodes start, become ready, finish and stop after configurable delays.

Nothing runs. The status of a pod is what a kubelet reports for containers that start without problems and whose probes
succeed; annotations of the pod choose other courses. It acts for all nodes, also for those that another program made.
"""

import zlib
from collections.abc import Mapping
from datetime import timedelta
from typing import Any, Final

from ocf.errors import ManifestError
from ocf.objects import Manifest, parse_time
from ocf.objects.durations import parse_duration
from ocf.objects.manifest import PREFIX
from ocf_server.controllers.actions import Outcome, delete, update_status
from ocf_server.controllers.ownership import is_deleted, reference_to
from ocf_server.controllers.pods import is_finished, is_ready
from ocf_server.controllers.view import ClusterView

__all__ = ["EXIT_CODE", "FINISH_AFTER", "NEVER", "READY_AFTER", "reconcile_pod"]

READY_AFTER: Final = f"{PREFIX}/ready-after"
"""Annotation of a pod: delay until it is ready, such as `30s`; `never` if it is not, also if it was ready before."""
FINISH_AFTER: Final = f"{PREFIX}/finish-after"
"""Annotation of a pod: delay until its containers exit."""
EXIT_CODE: Final = f"{PREFIX}/exit-code"
"""Annotation of a pod: exit code of its containers."""
NEVER: Final = "never"
"""The value of `READY_AFTER` for a pod that does not become ready."""

_READY_TYPES: Final = ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled")
# initialCrashLoopBackOff and MaxContainerBackOff of the kubelet.
_FIRST_BACKOFF: Final = timedelta(seconds=10)
_LONGEST_BACKOFF: Final = timedelta(minutes=5)


def reconcile_pod(view: ClusterView, pod: Manifest) -> Outcome:
    """Report the next step in the life of a pod on a node."""
    if not pod["spec"].get("nodeName"):
        return Outcome()
    began = view.started.get(pod["metadata"]["uid"], view.now)
    if is_deleted(pod):
        return _stopped(view, pod)
    if is_finished(pod):
        return Outcome()
    ready, finish = _ready_delay(view, pod), _finish_delay(view, pod)
    if finish is not None and began + finish <= view.now:
        return _exited(view, pod)
    running = ready is not None and began + ready <= view.now
    ends = [began + delay for delay in (None if running else ready, finish) if delay is not None]
    if running and not is_ready(pod):
        status = _started(view, pod, ready=True)
    elif ready is None and is_ready(pod):
        status = _unready(view, pod)
    elif not pod["status"].get("startTime"):
        status = _started(view, pod, ready=False)
    else:
        status = pod["status"]
    return Outcome(tuple(update_status(pod, status)), min(ends, default=None))


def _stopped(view: ClusterView, pod: Manifest) -> Outcome:
    metadata = pod["metadata"]
    grace = timedelta(seconds=metadata.get("deletionGracePeriodSeconds") or 0)
    if not grace:
        return Outcome()  # only its finalizers keep it
    # The deletionTimestamp is the end of the grace period, not the time of the delete.
    at = parse_time(metadata["deletionTimestamp"]) - grace + min(grace, view.settings.stop_after)
    return Outcome((delete(pod, force=True),)) if at <= view.now else Outcome(at=at)


def _exited(view: ClusterView, pod: Manifest) -> Outcome:
    code, policy = _exit_code(pod), pod["spec"].get("restartPolicy", "Always")
    if policy == "Always" or (policy == "OnFailure" and code):
        return Outcome(tuple(update_status(pod, _restarted(view, pod, code))))
    status = pod["status"]
    conditions = [
        {**each, "status": "False", "reason": "PodCompleted" if not code else "PodFailed"}
        | {"lastTransitionTime": view.timestamp}
        if each["type"] in ("Ready", "ContainersReady")
        else each
        for each in status.get("conditions") or ()
    ]
    ended = {"exitCode": code, "reason": "Error" if code else "Completed", "finishedAt": view.timestamp}
    started = status.get("startTime", view.timestamp)
    containers = [
        {**each, "ready": False, "started": False, "state": {"terminated": {**ended, "startedAt": started}}}
        for each in _containers(pod, started)
    ]
    phase = "Failed" if code else "Succeeded"
    changed = {**status, "phase": phase, "conditions": conditions, "containerStatuses": containers}
    return Outcome(tuple(update_status(pod, changed)))


def _restarted(view: ClusterView, pod: Manifest, code: int) -> Manifest:
    """Return the status after the kubelet has restarted the containers."""
    ended = {"exitCode": code, "reason": "Error" if code else "Completed", "finishedAt": view.timestamp}
    containers = [
        {
            **each,
            "restartCount": each["restartCount"] + 1,
            "lastState": {"terminated": {**ended, "startedAt": each["state"]["running"]["startedAt"]}},
            "state": {"running": {"startedAt": view.timestamp}},
        }
        for each in _containers(pod, view.timestamp)
    ]
    return {**pod["status"], "containerStatuses": containers}


def _started(view: ClusterView, pod: Manifest, *, ready: bool) -> Manifest:
    status, generation = pod["status"], pod["metadata"].get("generation")
    address = _address(pod["metadata"]["uid"])
    node = view.get("Node", "", pod["spec"]["nodeName"]) or {}
    host = next(
        (each["address"] for each in node.get("status", {}).get("addresses") or () if each["type"] == "InternalIP"), ""
    )
    if pod["spec"].get("hostNetwork") and host:
        address = host
    started = status.get("startTime") or view.timestamp
    return {
        **status,
        **({"observedGeneration": generation} if generation else {}),
        # The containers of a pod that never becomes ready run: otherwise it would look like one that cannot start.
        "phase": "Running" if ready or pod["metadata"].get("annotations", {}).get(READY_AFTER) == NEVER else "Pending",
        "startTime": started,
        **({"hostIP": host, "hostIPs": [{"ip": host}]} if host else {}),
        **({"podIP": address, "podIPs": [{"ip": address}]} if ready else {}),
        "conditions": _conditions(view, pod, ready=ready),
        "containerStatuses": _ready_containers(pod, view.timestamp) if ready else _waiting(pod),
    }


def _unready(view: ClusterView, pod: Manifest) -> Manifest:
    """Return the status of a pod whose containers run and whose readiness probes fail from now on."""
    found = {one["type"]: one for one in _conditions(view, pod, ready=False)}
    old = pod["status"].get("conditions") or ()
    conditions = [found[one["type"]] if one["type"] in ("Ready", "ContainersReady") else one for one in old]
    containers = [{**each, "ready": False} for each in _containers(pod, view.timestamp)]
    return {**pod["status"], "conditions": conditions, "containerStatuses": containers}


def _conditions(view: ClusterView, pod: Manifest, *, ready: bool) -> list[Manifest]:
    known = {each["type"]: each for each in pod["status"].get("conditions") or ()}
    names = ", ".join(each["name"] for each in pod["spec"]["containers"])
    waiting = {"reason": "ContainersNotReady", "message": f"containers with unready status: [{names}]"}
    gates = [each["conditionType"] for each in pod["spec"].get("readinessGates") or ()]
    conditions = []
    for name in (*_READY_TYPES, *gates):
        value = "True" if ready or name in ("Initialized", "PodScheduled") else "False"
        old = known.pop(name, {})
        since = old.get("lastTransitionTime") if old.get("status") == value else None
        shortage = waiting if value == "False" and name in ("Ready", "ContainersReady") else {}
        conditions.append({"type": name, "status": value, "lastTransitionTime": since or view.timestamp, **shortage})
    return [*conditions, *known.values()]


def _waiting(pod: Manifest) -> list[Manifest]:
    state = {"waiting": {"reason": "ContainerCreating"}}
    return [
        {**_container(each), "ready": False, "started": False, "state": state} for each in pod["spec"]["containers"]
    ]


def _containers(pod: Manifest, started: str) -> list[dict[str, Any]]:
    """Return the status of the running containers; those that run already keep theirs."""
    known: Mapping[str, Manifest] = {each["name"]: each for each in pod["status"].get("containerStatuses") or ()}
    found = []
    for each in pod["spec"]["containers"]:
        old = known.get(each["name"], {})
        if "running" in (old.get("state") or {}):
            found.append(dict(old))
        else:
            state = {"running": {"startedAt": started}}
            found.append({**_container(each), "ready": True, "started": True, "state": state})
    return found


def _ready_containers(pod: Manifest, started: str) -> list[dict[str, Any]]:
    return [{**each, "ready": True} for each in _containers(pod, started)]


def _container(container: Manifest) -> dict[str, Any]:
    return {"name": container["name"], "image": container.get("image", ""), "imageID": "", "restartCount": 0}


def _ready_delay(view: ClusterView, pod: Manifest) -> timedelta | None:
    text = (pod["metadata"].get("annotations") or {}).get(READY_AFTER)
    return None if text == NEVER else _delay(text, view.settings.ready_after)


def _finish_delay(view: ClusterView, pod: Manifest) -> timedelta | None:
    """Return the delay until the containers exit, counted from the start of the pod; None if they do not."""
    text = (pod["metadata"].get("annotations") or {}).get(FINISH_AFTER)
    if text is None and reference_to(pod, "Job") is None:
        return None
    ready = _ready_delay(view, pod)
    delay = (ready or timedelta(0)) + _delay(text, view.settings.finish_after)
    # Each restart has waited for its backoff, so the next exit is later by all of them.
    for count in range(_restarts(pod)):
        delay += min(_FIRST_BACKOFF * 2 ** min(count, 30), _LONGEST_BACKOFF)
    return delay


def _delay(text: str | None, default: timedelta) -> timedelta:
    """Return the delay of an annotation; one that cannot be read counts as missing."""
    if text is None:
        return default
    try:
        return max(parse_duration(text), timedelta(0))
    except (ManifestError, ValueError):
        return default


def _exit_code(pod: Manifest) -> int:
    text = (pod["metadata"].get("annotations") or {}).get(EXIT_CODE, "0")
    return int(text) if text.isdecimal() else 0


def _restarts(pod: Manifest) -> int:
    return max((each.get("restartCount", 0) for each in pod["status"].get("containerStatuses") or ()), default=0)


def _address(uid: str) -> str:
    # From the uid, so that an address stays the same without any state, and unlike addresses of nodes (10.32).
    number = zlib.crc32(uid.encode())
    return f"10.{64 + number % 64}.{number >> 8 & 255}.{number >> 16 & 255}"
