"""State of one object: by the status rules of the kinds, else by its conditions as kstatus reads them.

Source of the rules for other kinds: `sigs.k8s.io/cli-utils/pkg/kstatus`, and the API conventions, "Typical status
properties". Beside them count the conditions and phases that operators of other frameworks write.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime
from importlib import import_module
from typing import Any, Final, NamedTuple

from ocf.concepts import AliveStatus, ApplyOperation, CompletionStatus, OperationalStatus
from ocf.errors import OcfError
from ocf.objects import Manifest
from ocf.ownership import values
from ocf.ownership.runs import ends
from ocf.ownership.tree import State
from ocf.primitives.kind import OnManifest

__all__ = [
    "Report",
    "bad_conditions",
    "failure_words",
    "has_optional_status",
    "has_rules",
    "is_unreported",
    "observed_generation",
    "ready_since",
    "report",
]

# The module of each kind whose status has rules of its own.
_KINDS: Final = {
    ("", "PersistentVolume"): "pv",
    ("", "PersistentVolumeClaim"): "pvc",
    ("", "Pod"): "pod",
    ("", "Service"): "service",
    ("apps", "DaemonSet"): "daemonset",
    ("apps", "Deployment"): "deployment",
    ("apps", "ReplicaSet"): "replicaset",
    ("apps", "StatefulSet"): "statefulset",
    ("autoscaling", "HorizontalPodAutoscaler"): "hpa",
    ("batch", "CronJob"): "cronjob",
    ("batch", "Job"): "job",
    ("cert-manager.io", "Certificate"): "certificate",
    ("gateway.networking.k8s.io", "HTTPRoute"): "httproute",
    ("keda.sh", "ScaledObject"): "scaledobject",
    ("networking.k8s.io", "Ingress"): "ingress",
}
_GATEWAYS: Final = "gateway.networking.k8s.io"
_DEFAULT_TIME: Final = "1970-01-01T00:00:00Z"
# Istio writes the status of its configuration only where that is switched on, and then not each time.
_OPTIONAL: Final = frozenset(["extensions.istio.io", "networking.istio.io", "security.istio.io", "telemetry.istio.io"])
_READY: Final = frozenset({AliveStatus.HEALTHY, OperationalStatus.OPERATIONAL, CompletionStatus.COMPLETED})
_FAILING: Final = frozenset({AliveStatus.FAILING, OperationalStatus.FAILING, CompletionStatus.FAILING})
# Kinds of the API server itself: one without a rule is ready as soon as it exists, as kstatus has it.
_BUILT_IN: Final = frozenset(
    [
        "admissionregistration.k8s.io",
        "certificates.k8s.io",
        "coordination.k8s.io",
        "discovery.k8s.io",
        "events.k8s.io",
        "flowcontrol.apiserver.k8s.io",
        "networking.k8s.io",
        "node.k8s.io",
        "rbac.authorization.k8s.io",
        "resource.k8s.io",
        "scheduling.k8s.io",
        "storage.k8s.io",
    ]
)
# Conditions that are True while an object as a whole is ready, the most general one first.
_GOOD: Final = (
    "Ready",
    "Available",
    "Healthy",
    "Succeeded",
    "Programmed",
    "Accepted",
    "Admitted",
    "QuotaReserved",
    "Installed",
    "Synced",
    "Reconciled",
    "ReconcileSuccess",
    "Established",
)
# Conditions that say something only while they are True: operators of Ansible and Helm set them anew in each reconcile.
_DONE: Final = frozenset({"Deployed", "Successful"})
_PART: Final = re.compile(r"(Ready|Available|Healthy)$")
# Conditions that are False while an object, or a part of it, is ready.
_NEGATIVE: Final = re.compile(r"(Not(Ready|Available|Healthy)|Un([Rr]eady|[Aa]vailable|[Hh]ealthy))$")
# Conditions that are True while something is wrong.
_FAULT: Final = re.compile(r"(Degraded|Failed|Failing|Failure|Stalled|Error|Irreconcilable)$|^Invalid")
# Whether there is a newer version says nothing about the one that runs.
_OF_UPDATES: Final = re.compile(r"(Update|Upgrade|Version)s?Available$")
_UNDER_WAY: Final = frozenset({"Reconciling", "Progressing", "Creating", "Updating", "Upgrading"})
# An object with these conditions may be ready while they are not True.
_NEUTRAL: Final = _UNDER_WAY | {"Deleting", "Evicted", "Paused", "Preempted", "Suspended", "Terminating", "Upgradeable"}
_GOOD_WORDS: Final = frozenset(
    [
        "active",
        "approved",
        "atlatestknown",
        "available",
        "bound",
        "complete",
        "completed",
        "connected",
        "deployed",
        "enabled",
        "established",
        "green",
        "healthok",
        "healthy",
        "installed",
        "ok",
        "online",
        "processed",
        "provisioned",
        "ready",
        "reconciled",
        "running",
        "succeeded",
        "success",
        "successful",
        "synced",
        "up",
        "valid",
        "validated",
    ]
)
_BAD_WORDS: Final = frozenset(
    ["critical", "degraded", "down", "failing", "faulted", "healtherr", "invalid", "lost", "red", "unhealthy"]
)
_BAD_ENDS: Final = ("failed", "failure", "error", "errored")
_WAITING_WORDS: Final = frozenset(
    ["inprogress", "missing", "new", "notready", "outofsync", "pending", "queued", "submitted", "unknown", "unready"]
)
_FIRST_WORD: Final = re.compile(r"[A-Z]?[a-z]+|[A-Z]+")
# Where operators write one word about an object: the last ones are those of Zalando's PostgreSQL, RayJob,
# SparkApplication, Argo CD, Rook and Longhorn.
_WORDS: Final = (
    ("phase",),
    ("state",),
    ("health",),
    ("status",),
    ("PostgresClusterStatus",),
    ("jobStatus",),
    ("jobDeploymentStatus",),
    ("applicationState", "state"),
    ("health", "status"),
    ("operationState", "phase"),
    ("sync", "status"),
    ("ceph", "health"),
    ("robustness",),
)
_SILENT: Final = "its status does not say whether it is ready"
_FAILURE: Final = re.compile(
    r"error|fail|denied|forbidden|invalid|cannot|not found|conflict|exceed|refused|timed? ?out|stalled|crash|unable",
    re.IGNORECASE,
)


class Report(NamedTuple):
    """State of an object, and what its status says."""

    state: State
    text: str = ""


def report(live: Manifest) -> Report:
    """Return the state of an object; unknown if its status has a shape that no rule can read."""
    module = _KINDS.get(values.group_kind(live))
    try:
        if values.field(live, "metadata", "deletionTimestamp") is not None:
            return Report(State.PROGRESSING, "it is being deleted")
        if is_unreported(live):
            return Report(State.UNKNOWN, "no controller has reported a status")
        return _of_kind(module, live) if module else _by_status(live)
    except (OcfError, AttributeError, TypeError, ValueError):
        return Report(State.UNKNOWN, "its status cannot be read")


def is_unreported(live: Manifest) -> bool:
    """Return whether a status has only what its definition sets, so that a controller may not exist.

    The definitions of the Gateway API set conditions with a time long before any object. Some of its controllers report
    nothing of the routes that they serve.
    """
    group, kind = values.group_kind(live)
    if group == _GATEWAYS and kind.endswith("Route"):
        return not values.members(live, "status", "parents")
    listed = list(values.conditions(live))
    return bool(listed) and all(one.get("lastTransitionTime") == _DEFAULT_TIME for one in listed)


def has_optional_status(live: Manifest) -> bool:
    """Return whether the objects of a kind are in use without a status, and what it has may be out of date."""
    return values.group_kind(live)[0] in _OPTIONAL


def has_rules(live: Manifest) -> bool:
    """Return whether the kind of an object has status rules of its own."""
    return values.group_kind(live) in _KINDS


def _of_kind(module: str, live: Manifest) -> Report:
    builder: Any = import_module(f"ocf.primitives.{module}").Builder
    handler = builder.handlers.status
    if isinstance(handler, OnManifest):
        found = handler.handler(ApplyOperation.NONE, live)
    else:
        found = handler(ApplyOperation.NONE, builder.kind.read_live(live))
    state = State.READY if found.status in _READY else State.FAILING if found.status in _FAILING else State.PROGRESSING
    return Report(state, values.one_line(found.reason))


def _by_status(live: Manifest) -> Report:
    """Return the worst of what the conditions and the fields of a status say."""
    if has_optional_status(live):
        return next(_by_validation(live), Report(State.READY))
    observed = observed_generation(live)
    if observed is not None and observed < values.generation(live):
        return Report(State.PROGRESSING, f"its controller has observed generation {observed} of its spec, not the last")
    found = [*_by_conditions(live), *_by_words(live), *_by_flags(live), *_by_parents(live)]
    if found:
        return max(found, key=lambda one: one.state.trouble)
    if any(one["type"] in _UNDER_WAY and _is(one, "true") for one in values.conditions(live)):
        return Report(State.PROGRESSING)
    group = values.group_kind(live)[0]
    if not values.field(live, "status") or "." not in group or group in _BUILT_IN:
        return Report(State.READY)
    return Report(State.UNKNOWN, _SILENT)


def _by_validation(live: Manifest) -> Iterator[Report]:
    """Yield the errors that the analysis of Istio has found."""
    for one in values.members(live, "status", "validationMessages"):
        if str(one.get("level")).lower() == "error":
            named = values.text(one, "type", "name") or values.text(one, "type", "code") or "an error"
            yield Report(State.FAILING, values.one_line(f"its validation reports {named}"))


def _by_conditions(live: Manifest) -> Iterator[Report]:
    for bad in bad_conditions(live):
        is_failing = _FAULT.search(bad["type"]) is not None or failure_words(bad)
        yield Report(State.FAILING if is_failing else State.PROGRESSING, _text(bad))
    counted = [one for one in values.conditions(live) if not _is_remark(one)]
    good = [_name(one) for one in counted if _is_good(one) or (_name(one) in _DONE and _is(one, "true"))]
    # That each of its parts is ready says that an object is, unless it reports something else that is not True.
    others = [one for one in counted if not _of_readiness(_name(one)) and not _FAULT.search(one["type"])]
    is_open = any(not _is(one, "true") and _name(one) not in _NEUTRAL for one in others)
    if any(one in _GOOD or one in _DONE for one in good) or (good and not is_open):
        yield Report(State.READY)


def bad_conditions(live: Manifest) -> Iterator[Manifest]:
    """Yield the conditions that say that an object is not ready: the failing ones first."""
    found = [one for one in values.conditions(live) if not _is_remark(one)]
    # Argo CD lists an error as a condition without a status for as long as there is one.
    yield from (one for one in found if _FAULT.search(one["type"]) and (_is(one, "true") or _is_listed_error(one)))
    said = [one for one in found if one.get("status") is not None]
    # That a part is unknown says nothing about a whole that is ready, as of a NodePool of Karpenter without nodes.
    is_whole_good = any(_name(one) in _GOOD and _is_good(one) for one in said)
    counted = [one for one in said if not (is_whole_good and _is(one, "unknown") and _name(one) not in _GOOD)]
    not_good = [one for one in counted if _of_readiness(_name(one)) and not _is_good(one)]
    yield from sorted(not_good, key=lambda one: (not failure_words(one), one["type"] not in _GOOD))
    yield from (one for one in said if one["type"] == "Reconciling" and _is(one, "true"))


def _name(condition: Manifest) -> str:
    # A domain or the name of the operator may come first: shops/Reconciled.
    return str(condition["type"]).rpartition("/")[2]


def _of_readiness(name: str) -> bool:
    # Components of ocf, and many other operators, have one condition for each part: WebReady, DatabaseReady.
    return name in _GOOD or _PART.search(name) is not None or _NEGATIVE.search(name) is not None


def _is_good(condition: Manifest) -> bool:
    name = _name(condition)
    return _of_readiness(name) and _is(condition, "false" if _NEGATIVE.search(name) else "true")


def _is(condition: Manifest, status: str) -> bool:
    """Return whether a condition has a status; a definition without a schema lets a controller write a boolean."""
    return str(condition.get("status")).lower() == status


def _is_listed_error(condition: Manifest) -> bool:
    return "status" not in condition and _name(condition).endswith("Error")


def _is_remark(condition: Manifest) -> bool:
    # Knative marks so what does not count; for Cluster API it is how urgent it is that the whole is not ready.
    is_info = condition.get("severity") == "Info" and _name(condition) not in _GOOD
    return is_info or _OF_UPDATES.search(condition["type"]) is not None


def failure_words(condition: Manifest) -> bool:
    """Return whether a condition reports an error, and not only that something has not happened yet."""
    said = " ".join(values.text(condition, name) for name in ("status", "reason", "message"))
    return _FAILURE.search(said) is not None


def _by_words(live: Manifest) -> Iterator[Report]:
    status = values.mapping(live, "status")
    for path in _WORDS:
        word = values.text(status, *path)
        state = _of_word(word, values.group_kind(live)[1])
        if state is not None:
            beside = values.mapping(status, *path[:-1])
            said = next(filter(None, (values.text(beside, one) for one in ("message", "reason", "errorMessage"))), "")
            shown = f"status.{'.'.join(path)} is {values.one_line(word)}"
            yield Report(state, f"{shown}: {values.one_line(said)}" if said else shown)


def _of_word(word: str, kind: str) -> State | None:
    """Return the state that a word means; None for one that may mean anything."""
    plain = re.sub(r"[\s_-]", "", word).lower()
    if plain in _GOOD_WORDS:
        return State.PROGRESSING if plain == "running" and ends(kind) else State.READY
    found = _FIRST_WORD.search(word)
    first = found[0].lower() if found is not None else ""
    if plain in _BAD_WORDS or plain.endswith(_BAD_ENDS) or first in {*_BAD_ENDS, "invalid"}:
        return State.FAILING
    is_waiting = plain in _WAITING_WORDS or first in _WAITING_WORDS or (first.endswith("ing") and first != "running")
    return State.PROGRESSING if is_waiting else None


def _by_parents(live: Manifest) -> Iterator[Report]:
    """Yield what each parent of a route, or ancestor of a policy, of the Gateway API reports."""
    for name in ("parents", "ancestors"):
        for parent in values.members(live, "status", name):
            yield from _by_conditions({**live, "status": {"conditions": parent.get("conditions")}})


def _by_flags(live: Manifest) -> Iterator[Report]:
    status = values.mapping(live, "status")
    for name in ("ready", "readyToUse"):
        if status.get(name) is True:
            yield Report(State.READY)
        elif status.get(name) is False:
            error = values.one_line(values.text(status, "error", "message"))
            text = f"status.{name} is false"
            yield Report(State.FAILING, f"{text}: {error}") if error else Report(State.PROGRESSING, text)


def _text(condition: Manifest) -> str:
    """Return what a condition says."""
    kind, status = (values.one_line(str(condition.get(name, "reported"))) for name in ("type", "status"))
    reason, message = (values.one_line(values.text(condition, name)) for name in ("reason", "message"))
    said = message if message.startswith(reason) or not reason else f"{reason}: {message}" if message else reason
    return f"{kind} is {status}{f' ({said})' if said else ''}"


def observed_generation(live: Manifest) -> int | None:
    """Return the newest generation that a controller has observed; None if the status does not say it."""
    status = values.mapping(live, "status")
    of_conditions = [values.count(one, "observedGeneration") for one in values.conditions(live)]
    found = [one for one in (values.count(status, "observedGeneration"), *of_conditions) if one is not None]
    return max(found, default=None)


def ready_since(live: Manifest) -> datetime | None:
    """Return since when an object is ready or not: the transition of its condition, else its creation."""
    found = values.condition(live, "Failed", *_GOOD, "Complete", "Progressing")
    own = next((one for one in values.conditions(live) if _of_readiness(_name(one)) and not _is_remark(one)), None)
    return values.time_of(found or own or {}, "lastTransitionTime") or values.created(live)
