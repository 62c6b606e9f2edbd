"""What is wrong with one object, as its status, its events and the objects that it names say: the causes."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from typing import Final

from ocf.errors import OcfError
from ocf.objects import Manifest
from ocf.objects.manifest import PREFIX, split_api_version
from ocf.objects.owner_references import controller_of
from ocf.ownership import values
from ocf.ownership.ranks import Finding, Rank
from ocf.ownership.references import backends, pod_references
from ocf.ownership.snapshot import EventFacts, SnapshotIndex
from ocf.ownership.status import Report, bad_conditions, failure_words, ready_since
from ocf.ownership.tree import State
from ocf.primitives.pod_causes import pod_problem, refusal_cause
from ocf.primitives.status import rollout_failure

__all__ = ["findings", "is_replaced", "is_specific", "named"]


_SPECIFIC: Final = re.compile(
    r"admission webhook|failed calling webhook|denied the request|is forbidden|cannot (get|list|watch|create|patch|"
    r"update|delete) resource|exceeded quota|no matches for kind|could not find the requested resource|has no kind|"
    r"already owned|already controlled|another controller|field manager|conflict|x509|unable to create new content|"
    r"violates PodSecurity|security context constraint|CustomResourceDefinition",
    re.IGNORECASE,
)
_ABSENT: Final = re.compile(r"not ?found|does ?n[o']t exist|references non-existent", re.IGNORECASE)
# The scheduler ends a message with a bare "not found" if no preemption helps; an object that is missing has a name.
_ABSENT_FOR_SCHEDULER: Final = re.compile(r"[\"'] not ?found|does ?n[o']t exist", re.IGNORECASE)
# What a program has written to the output of a probe may be a secret; these texts are those of the kubelet.
_PROBE: Final = re.compile(
    r"(Readiness|Liveness|Startup) probe (failed|errored)"
    r"(: HTTP probe failed with statuscode: \d+|.*(connection refused|deadline exceeded|i/o timeout|no route to host))?"
)
_NOUNS: Final = {("", "PersistentVolumeClaim"): "claim", ("", "Pod"): "pod", ("", "Namespace"): "namespace"}
# The time of a deletion is the end of the grace period; finalizers of healthy controllers take a while longer.
_ENDING: Final = timedelta(minutes=2)
# Controllers and kubelets try again more often than that, and each attempt that fails is an event.
_RETRIED: Final = timedelta(minutes=20)
# A status is written up to so long after the event of the same reconcile.
_TOGETHER: Final = timedelta(minutes=1)
_STARTS: Final = frozenset({"Created", "Pulled", "Pulling", "Started"})
_SUCCESS: Final = re.compile(r"success|succeed|reconciled|ready|complete|healthy|available|synced", re.IGNORECASE)
_NEGATED: Final = re.compile(r"\b(not|un)|Not|Un", re.ASCII)
_WAITS_FOR_POD: Final = frozenset({"WaitForFirstConsumer", "WaitForPodScheduled"})
_SELECTED_NODE: Final = "volume.kubernetes.io/selected-node"
_REPLACING: Final = frozenset({("", "ReplicationController"), ("apps", "ReplicaSet"), ("batch", "Job")})
_COMPLETION_INDEX: Final = "batch.kubernetes.io/job-completion-index"
_GATEWAYS: Final = "gateway.networking.k8s.io"
# The words of cluster-autoscaler and of Karpenter.
_NOT_SCALED_UP: Final = re.compile(r"(?:pod didn't trigger scale-up[^:]*:|Failed to schedule pod,) *(.+)")
_MOST_GROUPS: Final = 3
_NODE_GROUP: Final = (f"autoscaling.{PREFIX}", "NodeGroup")
_MOUNT_EVENTS: Final = ("FailedMount", "FailedAttachVolume", "FailedMapVolume", "FailedCreatePodSandBox")


def named(live: Manifest, namespace: str) -> str:
    """Return how a sentence names an object: with its namespace if that is another one than the owner's."""
    found = values.group_kind(live)
    noun = f"the {_NOUNS[found]}" if found in _NOUNS else found[1]
    own = values.text(live, "metadata", "namespace")
    return f"{noun} {f'{own}/' if own not in {'', namespace} else ''}{values.text(live, 'metadata', 'name')}"


def is_specific(message: str) -> bool:
    """Return whether a message of an operator names a cause that no object below its owner can show."""
    return _SPECIFIC.search(message) is not None


def findings(live: Manifest, report: Report, index: SnapshotIndex) -> list[Finding]:
    """Return what is wrong with an object, the most specific cause first; empty if it is ready."""
    try:
        found = [*_deletion(live, index), *_of_kind(live, report, index)]
    except (OcfError, AttributeError, TypeError, ValueError):
        found = []
    if report.state not in {State.READY, State.UNKNOWN} and not found:
        found = [Finding(Rank.COUNTED, "is not ready", report.text, ready_since(live))]
    return sorted(found, key=lambda one: one.rank)


def _of_kind(live: Manifest, report: Report, index: SnapshotIndex) -> Iterator[Finding]:
    special = _SPECIAL.get(values.group_kind(live))
    if special is not None:
        yield from special(live, report, index)
    elif report.state not in {State.READY, State.UNKNOWN}:
        yield from _reported(live, report)
        yield from _warning(live, index)


def _deletion(live: Manifest, index: SnapshotIndex) -> Iterator[Finding]:
    since = values.time_of(live, "metadata", "deletionTimestamp")
    finalizers = values.field(live, "metadata", "finalizers")
    if since is None:
        return
    if index.now - since < _ENDING:
        yield Finding(Rank.FOLLOWS, "is being deleted")
    elif isinstance(finalizers, list) and finalizers:
        why = f"the finalizer {', '.join(map(str, finalizers))} remains"
        yield Finding(Rank.HELD, "is being deleted", why, since)
    elif values.group_kind(live) == ("", "Pod"):
        node = values.text(live, "spec", "nodeName")
        yield Finding(Rank.HELD, "is being deleted", f"the kubelet of node {node} has not ended it", since)


def _reported(live: Manifest, report: Report) -> Iterator[Finding]:
    """Yield what the conditions of an object report."""
    for one in bad_conditions(live):
        message = values.one_line(values.text(one, "message"))
        reason = values.one_line(values.text(one, "reason"))
        said = f"{reason}: {message}" if reason and message and not message.startswith(reason) else message or reason
        rank = Rank.REFUSED if is_specific(said) else Rank.REPORTED if failure_words(one) else Rank.WAITING
        yield Finding(rank, "is not ready", said, values.time_of(one, "lastTransitionTime"))
    if report.state is State.FAILING:
        yield Finding(Rank.REPORTED, "is not ready", report.text, ready_since(live))
    elif next(bad_conditions(live), None) is None:
        # Kinds without conditions have a phase, and a text that says why.
        texts = {name: values.text(live, "status", name) for name in ("reason", "message")}
        if any(texts.values()):
            rank = Rank.REPORTED if failure_words(texts) else Rank.WAITING
            yield Finding(rank, "is not ready", report.text, ready_since(live))


def _warning(live: Manifest, index: SnapshotIndex) -> Iterator[Finding]:
    """Yield the latest event of type Warning about an object, unless something newer contradicts it."""
    events = index.events(live)
    event = next((one for one in events if one.is_warning), None)
    if event is None or any(one.last > event.last and _is_success(one) for one in events):
        return
    changes = (values.time_of(one, "lastTransitionTime") for one in values.conditions(live))
    if any(one is not None and one > event.last + _TOGETHER for one in changes):
        return
    is_refused = is_specific(event.message) and index.now - event.last <= _RETRIED
    rank = Rank.REFUSED if is_refused else Rank.REPORTED
    yield Finding(rank, "is not ready", f"{event.reason}: {event.message}", event.first)


def _is_success(event: EventFacts) -> bool:
    is_named = _SUCCESS.search(event.reason) is not None and _NEGATED.search(event.reason) is None
    return not event.is_warning and is_named


# Pods.


def _pod(pod: Manifest, report: Report, index: SnapshotIndex) -> Iterator[Finding]:
    if report.state is State.READY or values.field(pod, "metadata", "deletionTimestamp") is not None:
        return
    since = values.time_of(values.condition(pod, "Ready") or {}, "lastTransitionTime") or values.created(pod)
    scheduled = values.condition(pod, "PodScheduled") or {}
    problem = pod_problem(pod)
    event = _mount_event(pod, index)
    missing = next(_missing_references(pod, index), "")
    if is_replaced(pod, index):
        yield Finding(Rank.FOLLOWS, "has ended", problem)
    elif scheduled.get("status") == "False":
        since = values.time_of(scheduled, "lastTransitionTime") or since
        message = values.one_line(values.text(scheduled, "message"))
        if values.text(scheduled, "reason") == "SchedulingGated":
            gates = ", ".join(values.text(one, "name") for one in values.members(pod, "spec", "schedulingGates"))
            message = f"the scheduling gates {gates} have not been removed"
        elif why := _no_node_added(pod, message, index):
            message = f"{message.partition(' preemption:')[0].rstrip('. ')}; no node is added: {why}"
        what = "is not scheduled" if "Gated" in values.text(scheduled, "reason") else "cannot be scheduled"
        # Its claims say why they are not bound, if that is known.
        other = Rank.FAILED if "unbound immediate" in message else Rank.NOT_STARTED
        yield Finding(Rank.MISSING if _ABSENT_FOR_SCHEDULER.search(message) else other, what, message, since)
    elif event is not None and (not problem or "has not started" in problem):
        rank = Rank.MISSING if _ABSENT.search(event.message) else Rank.NOT_STARTED
        yield Finding(rank, "cannot start", f"{event.reason}: {event.message}", since)
    elif missing and (not problem or "has not started" in problem):
        yield Finding(Rank.MISSING, "cannot start", missing, since)
    elif problem:
        yield _of_problem(pod, problem, index, since)
    else:
        yield Finding(Rank.COUNTED, f"is {values.text(pod, 'status', 'phase') or 'Pending'}", _phase(pod), since)


def _no_node_added(pod: Manifest, message: str, index: SnapshotIndex) -> str:
    """Return why no node is added for a pod, by the event or the status of an autoscaler of nodes; empty if unknown."""
    for event in index.events(pod):
        if found := _NOT_SCALED_UP.match(event.message):
            return found[1]
    groups = index.of_kind(*_NODE_GROUP) if "Insufficient" in message else []
    said = [_no_node_in(group) for group in groups]
    # While one of them may still grow, the others are not why the pod waits.
    return "; ".join(said[:_MOST_GROUPS]) if all(said) else ""


def _no_node_in(group: Manifest) -> str:
    """Return why a NodeGroup gets no node; empty if nothing keeps it from one."""
    name = f"NodeGroup {values.text(group, 'metadata', 'name')}"
    error, at_most = (values.condition(group, each) or {} for each in ("Error", "AtMaxCapacity"))
    if error.get("status") == "True":
        return f"{name}: {values.one_line(values.text(error, 'message'))}"
    is_full = at_most.get("status") == "True"
    return f"{name} has its most nodes, {values.field(group, 'spec', 'maxNodes')}" if is_full else ""


def _mount_event(pod: Manifest, index: SnapshotIndex) -> EventFacts | None:
    """Return the latest event that keeps the containers of a pod from starting, unless it has got further since."""
    events = index.events(pod)
    found = next((one for one in events if one.reason in _MOUNT_EVENTS), None)
    if found is None or index.now - found.last > _RETRIED:
        return None
    later = {one.reason for one in events if one.last > found.last}
    if not later.isdisjoint(_STARTS):
        return None
    return None if found.reason == "FailedAttachVolume" and "SuccessfulAttachVolume" in later else found


def is_replaced(pod: Manifest, index: SnapshotIndex) -> bool:
    """Return whether a pod has failed, and its controller has made a younger one in its place."""
    controller, own = controller_of(pod), values.created(pod)
    if values.text(pod, "status", "phase") != "Failed" or controller is None or own is None:
        return False
    group = split_api_version(controller.api_version)[0]
    if (group, controller.kind) not in _REPLACING:
        return False
    place = values.text(pod, "metadata", "annotations", _COMPLETION_INDEX)
    for other in index.owned.get(controller.uid, []):
        made = values.created(other) if values.group_kind(other) == ("", "Pod") else None
        has_place = values.text(other, "metadata", "annotations", _COMPLETION_INDEX) == place
        if made is not None and made > own and has_place and values.text(other, "status", "phase") != "Succeeded":
            return True
    return False


def _phase(pod: Manifest) -> str:
    node = values.text(pod, "spec", "nodeName")
    if node and values.text(pod, "status", "phase") in {"", "Pending"}:
        return f"the kubelet of node {node} has not started it"
    return "" if node else "no scheduler has assigned it to a node"


def _of_problem(pod: Manifest, problem: str, index: SnapshotIndex, since: datetime | None) -> Finding:
    if "is running, but not ready" in problem:
        probe = next((one for one in index.events(pod) if one.reason == "Unhealthy"), None)
        shown = _PROBE.match(probe.message) if probe is not None else None
        return Finding(Rank.NOT_READY, "is not ready", f"{problem}{f' ({shown[0]})' if shown else ''}", since)
    if "has not ended" in problem or problem.startswith(("ReadinessGatesNotReady", "its condition Ready")):
        return Finding(Rank.NOT_READY, "is not ready", problem, since)
    if "has not started" in problem:
        return Finding(Rank.WAITING, "is starting", problem, since)
    if problem.startswith("CrashLoopBackOff") or "exit code" in problem or "ended" in problem:
        return Finding(Rank.ENDED, "is not ready", problem, since)
    what = "is not ready" if values.text(pod, "status", "phase") == "Failed" else "cannot start"
    if what == "is not ready":
        return Finding(Rank.ENDED, what, problem, since)
    return Finding(Rank.MISSING if _ABSENT.search(problem) else Rank.NOT_STARTED, what, problem, since)


def _missing_references(pod: Manifest, index: SnapshotIndex) -> Iterator[str]:
    """Yield the Secrets, ConfigMaps and claims that a pod needs and that do not exist."""
    namespace, spec = values.text(pod, "metadata", "namespace"), values.mapping(pod, "spec")
    for kind, name, is_optional in pod_references(spec):
        if name and not is_optional and index.is_missing("", kind, namespace, name):
            yield f'{kind} "{name}" does not exist'


# Workloads.


def _workload(live: Manifest, report: Report, index: SnapshotIndex) -> Iterator[Finding]:
    if report.state is State.READY:
        return
    since = ready_since(live)
    refused = refusal_cause(index.raw_events(live), index.now) if _lacks_pods(live) else ""
    failure = values.one_line(rollout_failure(live))
    if refused:
        # Its subject is not the pod, which has no name yet, but the one that the API server refused.
        yield Finding(_refusal(refused), "cannot create pods", refused, since)
    elif failure.startswith("FailedCreate"):
        yield Finding(_refusal(failure), "cannot create pods", failure, since)
    if values.field(live, "spec", "paused") is True:
        yield Finding(Rank.SUSPENDED, "is paused", "spec.paused is true", since)
    ready, desired = _pods_of(live)
    counts = f"has {ready} of {desired} pods ready"
    if failure and not failure.startswith("FailedCreate"):
        yield Finding(Rank.NOT_READY, counts, failure, since)
    elif "observe latest spec" in report.text:
        yield Finding(Rank.WAITING, "is not up to date", report.text, None)
    elif ready < desired:
        # The Deployment of a ReplicaSet says the same.
        follows = controller_of(live) is not None and values.group_kind(live) == ("apps", "ReplicaSet")
        yield Finding(Rank.FOLLOWS if follows else Rank.COUNTED, counts, "", since)
    else:
        yield Finding(Rank.COUNTED, "is not up to date", report.text, None)


def _lacks_pods(live: Manifest) -> bool:
    """Return whether a workload has fewer pods than it should have: only then some are refused."""
    status = values.mapping(live, "status")
    if values.group_kind(live) == ("apps", "DaemonSet"):
        wanted, made = values.count(status, "desiredNumberScheduled"), values.count(status, "currentNumberScheduled")
    elif values.group_kind(live) == ("batch", "Job"):
        wanted, made = values.count(live, "spec", "parallelism"), values.count(status, "active")
    else:
        wanted, made = values.count(live, "spec", "replicas"), values.count(status, "replicas")
    return (made or 0) < (1 if wanted is None else wanted)


def _refusal(message: str) -> Rank:
    return Rank.MISSING if _ABSENT.search(message) else Rank.REFUSED


def _pods_of(live: Manifest) -> tuple[int, int]:
    status = values.mapping(live, "status")
    if values.group_kind(live) == ("apps", "DaemonSet"):
        return values.count(status, "numberReady") or 0, values.count(status, "desiredNumberScheduled") or 0
    desired = values.count(live, "spec", "replicas")
    return values.count(status, "readyReplicas") or 0, 1 if desired is None else desired


def _job(live: Manifest, report: Report, index: SnapshotIndex) -> Iterator[Finding]:
    if report.state is State.READY:
        return
    since = values.time_of(values.condition(live, "Failed") or {}, "lastTransitionTime") or values.created(live)
    refused = refusal_cause(index.raw_events(live), index.now) if _lacks_pods(live) else ""
    if report.state is State.FAILING:
        yield Finding(Rank.FAILED, "has failed", report.text.removeprefix("Job failed: "), since)
    elif refused:
        yield Finding(_refusal(refused), "cannot create pods", refused, since)
    elif values.field(live, "spec", "suspend") is True:
        yield Finding(Rank.SUSPENDED, "is suspended", "spec.suspend is true", since)
    else:
        yield Finding(Rank.COUNTED, "has not completed", report.text, since)


# Volumes and networks.


def _claim(live: Manifest, report: Report, index: SnapshotIndex) -> Iterator[Finding]:
    if report.state is State.READY:
        return
    since = values.created(live)
    name = values.text(live, "spec", "storageClassName")
    events = index.events(live)
    failed = next((one for one in events if one.reason in {"ProvisioningFailed", "FailedBinding"}), None)
    storage_class = index.find("storage.k8s.io", "StorageClass", "", name)
    if storage_class is not None and failed is not None and "storageclass" in failed.message.lower():
        # It did not exist then.
        failed = None if _ABSENT.search(failed.message) else failed
    if report.state is State.FAILING:
        yield Finding(Rank.VOLUME, "is Lost", report.text, since)
    elif values.text(live, "status", "phase") == "Bound":
        yield Finding(Rank.WAITING, "is not ready", report.text, None)
    elif name and index.is_missing("storage.k8s.io", "StorageClass", "", name):
        yield Finding(Rank.MISSING, "is Pending", f"no StorageClass named {name}", since)
    elif failed is not None:
        rank = Rank.MISSING if _ABSENT.search(failed.message) else Rank.VOLUME
        yield Finding(rank, "is Pending", f"{failed.reason}: {failed.message}", since)
    else:
        latest = next(iter(events), None)
        late = values.text(storage_class, "volumeBindingMode") == "WaitForFirstConsumer"
        is_unused = late and not values.text(live, "metadata", "annotations", _SELECTED_NODE)
        waits = latest.reason in _WAITS_FOR_POD if latest is not None else is_unused
        why = f"{latest.reason}: {latest.message}" if latest is not None else ""
        rank = Rank.VOLUME if why else Rank.UNBOUND
        yield Finding(Rank.FOLLOWS if waits else rank, "is Pending", why, since)


def _service(live: Manifest, report: Report, index: SnapshotIndex) -> Iterator[Finding]:
    namespace, name = (values.text(live, "metadata", one) for one in ("namespace", "name"))
    selector = values.mapping(live, "spec", "selector")
    if selector and index.is_complete("", "Pod", namespace):
        if not index.labelled("", "Pod", namespace, selector):
            shown = ", ".join(f"{key}={value}" for key, value in sorted(selector.items()))
            yield Finding(Rank.UNUSED, "has no endpoints", f"no pod has the labels {shown} of its selector")
        elif not _has_endpoints(name, namespace, index):
            yield Finding(Rank.FOLLOWS, "has no ready endpoints")
    if report.state is not State.READY:
        failed = next((one for one in index.events(live) if one.is_warning), None)
        why = f"{failed.reason}: {failed.message}" if failed is not None else report.text
        rank = Rank.FAILED if failed is not None or ": " in report.text else Rank.WAITING
        yield Finding(rank, "has no address", why, values.created(live))


def _has_endpoints(name: str, namespace: str, index: SnapshotIndex) -> bool:
    """Return whether a Service has a ready endpoint; also if that is not known."""
    if not index.is_complete("discovery.k8s.io", "EndpointSlice", namespace):
        return True
    own = index.labelled("discovery.k8s.io", "EndpointSlice", namespace, {"kubernetes.io/service-name": name})
    return any(
        values.field(endpoint, "conditions", "ready") is not False
        for one in own
        for endpoint in values.members(one, "endpoints")
    )


def _ingress(live: Manifest, report: Report, index: SnapshotIndex) -> Iterator[Finding]:
    namespace, since = values.text(live, "metadata", "namespace"), values.created(live)
    for backend in backends(live):
        if index.is_missing("", "Service", namespace, backend):
            yield Finding(Rank.MISSING, "has no backend", f'Service "{backend}" does not exist', since)
    if report.state is State.READY:
        return
    name = values.text(live, "spec", "ingressClassName")
    classes = index.of_kind("networking.k8s.io", "IngressClass")
    old = values.text(live, "metadata", "annotations", "kubernetes.io/ingress.class")
    failed = next((one for one in index.events(live) if one.is_warning), None)
    if name and index.is_missing("networking.k8s.io", "IngressClass", "", name):
        yield Finding(Rank.MISSING, "has no address", f"no IngressClass named {name}", since)
    elif failed is not None:
        yield Finding(Rank.FAILED, "has no address", f"{failed.reason}: {failed.message}", since)
    elif not name and not old and index.is_complete("networking.k8s.io", "IngressClass"):
        default = "ingressclass.kubernetes.io/is-default-class"
        if not any(values.text(one, "metadata", "annotations", default) == "true" for one in classes):
            why = "it names no IngressClass, and none is the default"
            yield Finding(Rank.FAILED, "has no address", why, since)
    yield Finding(Rank.WAITING, "has no address", report.text, since)


def _gateway(live: Manifest, report: Report, index: SnapshotIndex) -> Iterator[Finding]:
    name, since = values.text(live, "spec", "gatewayClassName"), values.created(live)
    found = index.find(_GATEWAYS, "GatewayClass", "", name)
    accepted = values.condition(found or {}, "Accepted")
    if name and index.is_missing(_GATEWAYS, "GatewayClass", "", name):
        yield Finding(Rank.MISSING, "has no controller", f"no GatewayClass named {name}", since)
    elif found is not None and values.text(accepted, "status") != "True" and report.state is not State.READY:
        said = values.one_line(values.text(accepted, "message")) or "no controller has accepted it"
        yield Finding(Rank.FAILED, "has no controller", f"GatewayClass {name}: {said}", since)
    if report.state not in {State.READY, State.UNKNOWN}:
        yield from _reported(live, report)
        yield from _warning(live, index)


def _route(live: Manifest, report: Report, index: SnapshotIndex) -> Iterator[Finding]:
    own = values.text(live, "metadata", "namespace")
    for parent in values.members(live, "spec", "parentRefs"):
        kind, group = parent.get("kind", "Gateway"), parent.get("group", _GATEWAYS)
        name, namespace = values.text(parent, "name"), values.text(parent, "namespace") or own
        if isinstance(kind, str) and name and index.is_missing(group, kind, namespace, name):
            yield Finding(Rank.MISSING, "has no parent", f'{kind} "{name}" does not exist', values.created(live))
    if report.state not in {State.READY, State.UNKNOWN}:
        rank = Rank.REPORTED if report.state is State.FAILING else Rank.WAITING
        yield Finding(rank, "is not ready", report.text, ready_since(live))
        yield from _warning(live, index)


def _autoscaler(live: Manifest, report: Report, index: SnapshotIndex) -> Iterator[Finding]:
    target = values.mapping(live, "spec", "scaleTargetRef")
    group = values.text(target, "apiVersion").rpartition("/")[0]
    name, kind = values.text(target, "name"), values.text(target, "kind")
    if name and index.is_missing(group, kind, values.text(live, "metadata", "namespace"), name):
        yield Finding(Rank.MISSING, "cannot scale", f'{kind} "{name}" does not exist')
        return
    for condition_type in ("AbleToScale", "ScalingActive"):
        found = values.condition(live, condition_type)
        if found is not None and found.get("status") == "False" and found.get("reason") != "ScalingDisabled":
            said = ": ".join(
                filter(None, (values.text(found, "reason"), values.one_line(values.text(found, "message"))))
            )
            yield Finding(Rank.FAILED, "cannot scale", said, values.time_of(found, "lastTransitionTime"))
            return
    if report.state is not State.READY:
        yield Finding(Rank.WAITING, "does not scale", report.text, None)


_Special = Callable[[Manifest, Report, SnapshotIndex], Iterator[Finding]]
_SPECIAL: Final[dict[tuple[str, str], _Special]] = {
    ("", "PersistentVolumeClaim"): _claim,
    ("", "Pod"): _pod,
    ("", "Service"): _service,
    ("apps", "DaemonSet"): _workload,
    ("apps", "Deployment"): _workload,
    ("apps", "ReplicaSet"): _workload,
    ("apps", "StatefulSet"): _workload,
    ("autoscaling", "HorizontalPodAutoscaler"): _autoscaler,
    ("batch", "Job"): _job,
    ("gateway.networking.k8s.io", "GRPCRoute"): _route,
    ("gateway.networking.k8s.io", "Gateway"): _gateway,
    ("gateway.networking.k8s.io", "HTTPRoute"): _route,
    ("networking.k8s.io", "Ingress"): _ingress,
}
