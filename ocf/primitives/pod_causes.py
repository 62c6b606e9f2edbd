"""Why the pods of a workload do not start, or are not ready: functions of their statuses.

The texts are stable while the cause is: they have neither counts of restarts nor delays, and a container that the
kubelet starts again and again has the same text in each state that it passes through. Nothing that a program has
written is in them, because a termination message may be a secret.

Source: the API reference, `PodStatus`; `kuberuntime` and `images` of the kubelet for the reasons and their messages.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from ocf.objects import Manifest
from ocf.objects.conditions import time_problem
from ocf.objects.selectors import LabelSelector
from ocf.objects.timestamps import parse_time
from ocf.primitives.status import conditions_of, live_field

if TYPE_CHECKING:
    from ocf.lazy_types.pydantic import BaseModel

__all__ = ["lacks_pods", "pod_cause", "pod_problem", "pod_selector", "refusal_cause"]

_STARTING: Final = frozenset({"", "ContainerCreating", "PodInitializing"})
# Without these, the kubelet and its runtime could not start the program at all, and the message is theirs.
_NOT_STARTED: Final = frozenset({"ContainerCannotRun", "StartError"})
_PULL: Final = "ErrImagePull"
_PULLING: Final = frozenset({_PULL, "ImagePullBackOff"})
# The message of a lifecycle hook has the output of its program.
_HOOK: Final = "HookError"
_LONGEST: Final = 200
# What differs in each attempt, or may be a signature: the query of a URL, and the local end of a connection.
_VARYING: Final = re.compile(r"\?[^\s\"']+|\S+:\d+->")
_NAMED_POD: Final = re.compile(r'pods "[^"]*"')
# Controllers try to create refused pods again at least each 1000 seconds.
_RECENT: Final = timedelta(minutes=20)


class _Rank:
    """Which problem is named first: what only a change of the object or of the cluster ends."""

    NOT_STARTED = 0
    UNSCHEDULABLE = 1
    ENDED = 2
    NOT_READY = 3
    STARTING = 4


class _Problem(NamedTuple):
    rank: int
    text: str


def pod_selector(live: Manifest) -> str:
    """Return the selector of the pods of a workload, in its text form; empty for an object that has none.

    Example:
        >>> pod_selector({"spec": {"selector": {"matchLabels": {"app": "web"}}, "template": {}}})
        'app=web'
    """
    selector, template = (live_field(live, "spec", name) for name in ("selector", "template"))
    return str(LabelSelector.of(selector)) if isinstance(selector, dict) and isinstance(template, dict) else ""


def lacks_pods(live: Manifest, pods: Sequence[Manifest]) -> bool:
    """Return whether a workload has fewer pods than it should have, so that some may be refused."""
    paths = (("spec", "replicas"), ("status", "desiredNumberScheduled"), ("spec", "parallelism"))
    wanted = next((count for path in paths if isinstance(count := live_field(live, *path), int)), 1)
    return sum(1 for pod in pods if _counts(pod)) < wanted


def pod_cause(pods: Sequence[Manifest | BaseModel]) -> str:
    """Return the most severe problem of pods, with the names of those that have it; empty if there is none.

    Pods that have succeeded or are being deleted do not count. Of equally severe problems, the one of most pods comes
    first.

    Example:
        >>> pending = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/3 nodes"}
        >>> pod = {"metadata": {"name": "web-1"}, "status": {"phase": "Pending", "conditions": [pending]}}
        >>> pod_cause([pod, {**pod, "metadata": {"name": "web-0"}}])
        'Unschedulable: 0/3 nodes (pod web-0 and 1 more)'
    """
    found: dict[_Problem, list[str]] = {}
    for pod in pods:
        problem = min(_problems(pod), default=None) if _counts(pod) else None
        if problem is not None:
            found.setdefault(problem, []).append(str(live_field(pod, "metadata", "name")))
    if not found:
        return ""
    worst = min(found, key=lambda problem: (problem.rank, -len(found[problem]), problem.text))
    first, *others = sorted(found[worst])
    return f"{worst.text} (pod {first}{f' and {len(others)} more' if others else ''})"


def pod_problem(pod: Manifest | BaseModel) -> str:
    """Return the most severe problem of one pod; empty if there is none."""
    worst = min(_problems(pod), default=None) if _counts(pod) else None
    return worst.text if worst is not None else ""


def refusal_cause(events: Sequence[Manifest], now: datetime) -> str:
    """Return why the API server refuses the pods of a workload, as the events of its controller say; empty if unknown.

    Args:
        events: Events about the workload.
        now: The time of the reconcile; what was refused long ago may be accepted now.
    """
    refused = [event for event in events if event.get("reason") == "FailedCreate"]
    latest = max(refused, key=_time, default=None)
    if latest is None or not _time(latest) or now - parse_time(_time(latest)) > _RECENT:
        return ""
    # Most pods get a name that differs in each attempt.
    return f"FailedCreate: {_shortened(_NAMED_POD.sub('pods', str(latest.get('message') or '')))}"


def _time(event: Manifest) -> str:
    times = (event.get("lastTimestamp"), live_field(event, "series", "lastObservedTime"), event.get("eventTime"))
    return max((str(time) for time in times if not time_problem(time)), default="")


def _counts(pod: Manifest | BaseModel) -> bool:
    is_ending = live_field(pod, "metadata", "deletionTimestamp") is not None
    return not is_ending and live_field(pod, "status", "phase") != "Succeeded"


def _problems(pod: Manifest | BaseModel) -> Iterator[_Problem]:
    status = live_field(pod, "status")
    if live_field(status, "phase") == "Failed" and (reason := live_field(status, "reason")):
        yield _Problem(_Rank.ENDED, _sentence(reason, live_field(status, "message")))
    init, main = (live_field(status, name) or () for name in ("initContainerStatuses", "containerStatuses"))
    # Init containers that go on running beside the others; while others of them run, the phase is Pending.
    named = live_field(pod, "spec", "initContainers") or ()
    sidecars = {live_field(one, "name") for one in named if live_field(one, "restartPolicy") == "Always"}
    has_started = live_field(status, "phase") == "Running"
    for one in init:
        name = live_field(one, "name")
        yield from _of_container(one, f"init container {name}", ends=not has_started and name not in sidecars)
    for one in main:
        yield from _of_container(one, f"container {live_field(one, 'name')}", ends=False)
    for condition in conditions_of(status):
        if condition.type == "PodScheduled" and condition.status == "False":
            yield _Problem(_Rank.UNSCHEDULABLE, _sentence(condition.reason, condition.message))
        elif condition.type == "Ready" and condition.reason == "ReadinessGatesNotReady":
            yield _Problem(_Rank.NOT_READY, _sentence(condition.reason, condition.message))
        elif condition.type == "Ready" and condition.status == "False" and not condition.reason:
            # The kubelet always gives a reason; the node lifecycle controller, which gives none, writes in its place.
            node = live_field(pod, "spec", "nodeName")
            if main and all(live_field(one, "ready") for one in (*init, *main)):
                where = f": node {node} may be unreachable" if node else ""
                yield _Problem(
                    _Rank.NOT_READY, f"its condition Ready is False, although its containers are ready{where}"
                )


def _of_container(container: Any, name: str, *, ends: bool) -> Iterator[_Problem]:
    state = live_field(container, "state")
    waiting, running, ended = (live_field(state, one) for one in ("waiting", "running", "terminated"))
    last = ended or live_field(container, "lastState", "terminated")
    reason = str(live_field(waiting, "reason") or "")
    if live_field(container, "ready"):
        return
    if live_field(last, "reason") in _NOT_STARTED:
        why = _shortened(live_field(last, "message"))
        text = f"{name} cannot start{f': {why}' if why else ''}"
        yield _Problem(_Rank.NOT_STARTED, f"{live_field(last, 'reason')}: {text}")
    elif reason in _PULLING:
        yield _Problem(_Rank.NOT_STARTED, _pull_problem(container, name, reason, live_field(waiting, "message")))
    elif live_field(last, "exitCode"):
        again = reason == "CrashLoopBackOff" or bool(live_field(container, "restartCount"))
        exits = f"exit code {live_field(last, 'exitCode')} ({live_field(last, 'reason') or 'Error'})"
        yield _Problem(
            _Rank.ENDED, f"CrashLoopBackOff: {name} ends with {exits}" if again else f"{name} ended: {exits}"
        )
    elif reason == "CrashLoopBackOff":
        yield _Problem(_Rank.ENDED, f"CrashLoopBackOff: {name} ends again and again")
    elif reason.endswith(_HOOK):
        yield _Problem(_Rank.NOT_STARTED, f"{reason}: {name}: its lifecycle hook has failed")
    elif reason not in _STARTING:
        text = _shortened(live_field(waiting, "message"))
        yield _Problem(_Rank.NOT_STARTED, f"{reason}: {name}{f': {text}' if text else ''}")
    elif reason:
        yield _Problem(_Rank.STARTING, f"{reason}: {name} has not started")
    elif running is not None:
        yield _Problem(_Rank.NOT_READY, f"{name} {'has not ended' if ends else 'is running, but not ready'}")


def _pull_problem(container: Any, name: str, reason: str, message: Any) -> str:
    """Return the text for an image that cannot be pulled, the same between and during the attempts."""
    text = str(message or "")
    _, separator, detail = text.partition(f"{_PULL}: ")
    why = _shortened(detail if separator else text if reason == _PULL else "")
    text = f'ImagePullBackOff: image "{live_field(container, "image")}" of {name} cannot be pulled'
    return f"{text}: {why}" if why else text


def _sentence(reason: Any, message: Any) -> str:
    return ": ".join(filter(None, (str(reason or ""), _shortened(message))))


def _shortened(message: Any) -> str:
    text = " ".join(_VARYING.sub("", str(message or "")).split())
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"
