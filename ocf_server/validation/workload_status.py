"""Validation of the status of Deployments, ReplicaSets, StatefulSets and DaemonSets.

Source: `pkg/apis/apps/validation/validation.go` of Kubernetes.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from ocf.cluster.protocol import Subresource
from ocf.objects import Manifest
from ocf.objects.field_errors import FieldError, invalid
from ocf_server.validation.fields import nonnegative
from ocf_server.validation.metadata import metadata_update_errors
from ocf_server.validation.validation import UpdateRule

__all__ = ["STATUS_RULES"]


@dataclass(frozen=True, slots=True)
class _Counts:
    """The counts of a status.

    Args:
        names: Those that must not be negative, in the order of the errors.
        parts: Those that must not be greater than `replicas`.
        ready: The name of `readyReplicas` in the error of `availableReplicas`; empty if they are not compared.
        collisions: Whether `collisionCount` must not be decremented.
    """

    names: tuple[str, ...]
    parts: tuple[str, ...] = ()
    ready: str = ""
    collisions: bool = True


def _rule(counts: _Counts, *, metadata_first: bool = True) -> UpdateRule:
    def update(new: Manifest, live: Manifest) -> Iterator[FieldError]:
        if metadata_first:
            yield from metadata_update_errors(new["metadata"], live["metadata"])
        yield from _count_errors(new.get("status") or {}, counts)
        if not metadata_first:
            yield from metadata_update_errors(new["metadata"], live["metadata"])
        if counts.collisions:
            yield from _decremented(new.get("status") or {}, live.get("status") or {})

    return update


def _count_errors(status: Mapping[str, int], counts: _Counts) -> Iterator[FieldError]:
    for name in counts.names:
        yield from nonnegative(status.get(name), f"status.{name}")
    for name in counts.parts:
        if status.get(name, 0) > status.get("replicas", 0):
            yield invalid(f"status.{name}", status[name], "cannot be greater than status.replicas")
    if counts.ready and status.get("availableReplicas", 0) > status.get("readyReplicas", 0):
        detail = f"cannot be greater than {counts.ready}"
        yield invalid("status.availableReplicas", status["availableReplicas"], detail)


def _decremented(status: Mapping[str, int], before: Mapping[str, int]) -> Iterator[FieldError]:
    count = status.get("collisionCount", 0)
    if "collisionCount" in before and count < before["collisionCount"]:
        yield invalid("status.collisionCount", count, "cannot be decremented")


_DEPLOYMENT: Final = _Counts(
    (
        "observedGeneration",
        "replicas",
        "updatedReplicas",
        "readyReplicas",
        "availableReplicas",
        "unavailableReplicas",
        "terminatingReplicas",
        "collisionCount",
    ),
    ("updatedReplicas", "readyReplicas", "availableReplicas"),
    "readyReplicas",
)
_REPLICA_SET: Final = _Counts(
    (
        "replicas",
        "fullyLabeledReplicas",
        "readyReplicas",
        "availableReplicas",
        "observedGeneration",
        "terminatingReplicas",
    ),
    ("fullyLabeledReplicas", "readyReplicas", "availableReplicas"),
    "readyReplicas",
    collisions=False,
)
_STATEFUL_SET: Final = _Counts(
    (
        "replicas",
        "readyReplicas",
        "currentReplicas",
        "updatedReplicas",
        "availableReplicas",
        "observedGeneration",
        "collisionCount",
    ),
    ("readyReplicas", "currentReplicas", "updatedReplicas", "availableReplicas"),
    "status.readyReplicas",
)
_DAEMON_SET: Final = _Counts(
    (
        "currentNumberScheduled",
        "numberMisscheduled",
        "desiredNumberScheduled",
        "numberReady",
        "observedGeneration",
        "updatedNumberScheduled",
        "numberAvailable",
        "numberUnavailable",
        "collisionCount",
    )
)

STATUS_RULES: Final[Mapping[str, Mapping[Subresource, UpdateRule]]] = {
    "DaemonSet": {Subresource.STATUS: _rule(_DAEMON_SET)},
    "Deployment": {Subresource.STATUS: _rule(_DEPLOYMENT)},
    "ReplicaSet": {Subresource.STATUS: _rule(_REPLICA_SET)},
    "StatefulSet": {Subresource.STATUS: _rule(_STATEFUL_SET, metadata_first=False)},
}
"""The rules for updates of the status by kind."""
