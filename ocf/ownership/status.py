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
from ocf.ownership.tree import State
from ocf.primitives.kind import OnManifest

__all__ = ["Report", "bad_conditions", "failure_words", "has_rules", "observed_generation", "ready_since", "report"]

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
_READY: Final = frozenset({AliveStatus.HEALTHY, OperationalStatus.OPERATIONAL, CompletionStatus.COMPLETED})
_FAILING: Final = frozenset({AliveStatus.FAILING, OperationalStatus.FAILING, CompletionStatus.FAILING})
# Conditions that are True while an object is ready, the most general one first.
_GOOD: Final = ("Ready", "Available", "Healthy", "Succeeded", "Synced", "Reconciled", "ReconcileSuccess", "Established")
# Conditions that are True while something is wrong.
_BAD: Final = frozenset({"Stalled", "Degraded", "Failed", "Failing", "Error", "ReconcileError", "ReplicaFailure"})
_UNDER_WAY: Final = frozenset({"Reconciling", "Progressing", "Creating", "Updating", "Upgrading"})
_GOOD_PHASES: Final = frozenset(
    [
        "active",
        "available",
        "bound",
        "complete",
        "completed",
        "deployed",
        "established",
        "healthy",
        "installed",
        "online",
        "ok",
        "ready",
        "reconciled",
        "running",
        "succeeded",
        "synced",
        "up",
        "green",
    ]
)
_BAD_PHASES: Final = frozenset(
    ["down", "error", "failed", "failing", "failure", "invalid", "lost", "degraded", "red", "unhealthy"]
)
_STATUSES: Final = frozenset({"True", "False", "Unknown"})
_PHASES: Final = ("phase", "state", "health", "status")
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
        return _of_kind(module, live) if module else _by_conditions(live)
    except (OcfError, AttributeError, TypeError, ValueError):
        return Report(State.UNKNOWN, "its status cannot be read")


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


def _by_conditions(live: Manifest) -> Report:
    observed = observed_generation(live)
    if observed is not None and observed < values.generation(live):
        return Report(State.PROGRESSING, f"its controller has observed generation {observed} of its spec, not the last")
    bad = next(bad_conditions(live), None)
    if bad is not None:
        is_failing = bad["type"] in _BAD or failure_words(bad)
        return Report(State.FAILING if is_failing else State.PROGRESSING, _text(bad))
    if any(one.get("status") == "True" for one in values.conditions(live) if _is_good(one["type"])):
        return Report(State.READY)
    return _by_phase(live)


def bad_conditions(live: Manifest) -> Iterator[Manifest]:
    """Yield the conditions that say that an object is not ready: the failing ones first."""
    found = [one for one in values.conditions(live) if values.text(one, "status") in _STATUSES]
    yield from (one for one in found if one["type"] in _BAD and one["status"] == "True")
    not_good = [one for one in found if _is_good(one["type"]) and one["status"] != "True"]
    under_way = [one for one in found if one["type"] == "Reconciling" and one["status"] == "True"]
    yield from sorted(not_good, key=lambda one: (not failure_words(one), one["type"] not in _GOOD))
    yield from under_way


def _is_good(kind: str) -> bool:
    # Components of ocf, and many other operators, have one condition for each part: WebReady, DatabaseReady. A domain
    # or the name of the operator may come first: shops/Reconciled.
    name = kind.rpartition("/")[2]
    return name in _GOOD or name.endswith(("Ready", "Available", "Healthy"))


def failure_words(condition: Manifest) -> bool:
    """Return whether a condition reports an error, and not only that something has not happened yet."""
    return _FAILURE.search(f"{values.text(condition, 'reason')} {values.text(condition, 'message')}") is not None


def _by_phase(live: Manifest) -> Report:
    status = values.mapping(live, "status")
    for name in _PHASES:
        phase = values.text(status, name)
        if phase:
            message = values.one_line(values.text(status, "message") or values.text(status, "reason"))
            shown = f"status.{name} is {values.one_line(phase)}{f': {message}' if message else ''}"
            if phase.lower() in _GOOD_PHASES:
                return Report(State.READY)
            return Report(State.FAILING if phase.lower() in _BAD_PHASES else State.PROGRESSING, shown)
    if isinstance(ready := status.get("ready"), bool):
        return Report(State.READY) if ready else Report(State.PROGRESSING, "status.ready is false")
    if any(one["type"] in _UNDER_WAY and one.get("status") == "True" for one in values.conditions(live)):
        return Report(State.PROGRESSING)
    return Report(State.READY)


def _text(condition: Manifest) -> str:
    """Return what a condition says."""
    kind, status = condition["type"], values.text(condition, "status")
    reason, message = (values.one_line(values.text(condition, name)) for name in ("reason", "message"))
    said = message if message.startswith(reason) or not reason else f"{reason}: {message}" if message else reason
    return f"{values.one_line(kind)} is {status}{f' ({said})' if said else ''}"


def observed_generation(live: Manifest) -> int | None:
    """Return the newest generation that a controller has observed; None if the status does not say it."""
    status = values.mapping(live, "status")
    of_conditions = [values.count(one, "observedGeneration") for one in values.conditions(live)]
    found = [one for one in (values.count(status, "observedGeneration"), *of_conditions) if one is not None]
    return max(found, default=None)


def ready_since(live: Manifest) -> datetime | None:
    """Return since when an object is ready or not: the transition of its condition, else its creation."""
    found = values.condition(live, "Failed", *_GOOD, "Complete", "Progressing")
    own = next((one for one in values.conditions(live) if _is_good(one["type"])), None)
    return values.time_of(found or own or {}, "lastTransitionTime") or values.created(live)
