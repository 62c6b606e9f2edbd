"""The four conditions of a cache, derived from its observed state by pure functions.

Users of the operator search for these reasons and messages, so all of them are written here and nowhere else.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from examples.memcached.model import Memcached
    from ocf.objects import Manifest

__all__ = ["TYPES", "Pods", "Sentence", "View", "conditions", "view"]

TYPES: Final = ("Available", "Progressing", "Degraded", "Ready")
"""Condition types, in the order in which they are written."""

_WAITING: Final = "Waiting for deployment to be created"


@dataclass(frozen=True, slots=True, kw_only=True)
class Pods:
    """Pod counts in the status of a Deployment.

    Args:
        total: Number of pods.
        updated: Number of pods with the newest template.
        ready: Number of ready pods.
    """

    total: int = 0
    updated: int = 0
    ready: int = 0

    @classmethod
    def of(cls, deployment: Manifest) -> Pods:
        """Read the counts from the status of a Deployment; an absent count is zero.

        Until its controller has observed the newest generation, the number of updated pods is unknown and counts as
        zero.

        Args:
            deployment: The manifest as read from the cluster.
        """
        status = deployment.get("status") or {}
        generation = deployment["metadata"].get("generation", 0)
        current = status.get("observedGeneration", generation) >= generation
        return cls(
            total=status.get("replicas") or 0,
            updated=(status.get("updatedReplicas") or 0) if current else 0,
            ready=status.get("readyReplicas") or 0,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """Observed state of a cache, from which its conditions are derived.

    Args:
        pods: Pod counts of the Deployment; None if it does not exist.
        desired: Desired number of pods.
        scaled: Whether an autoscaler sets the desired number.
        missing: Names of the Secrets that the pods need and that do not exist.
        failure: Error message of the reconcile; empty if it succeeded.
    """

    pods: Pods | None
    desired: int
    scaled: bool = False
    missing: Sequence[str] = ()
    failure: str = ""


class Sentence(NamedTuple):
    """Status (`True` or `False`), reason and message of a condition."""

    status: str
    reason: str
    message: str


def view(cache: Memcached, deployment: Manifest | None, *, missing: Sequence[str] = (), failure: str = "") -> View:
    """Return the observed state of a cache.

    While an autoscaler sets the count, the desired number is the number of pods in the status of the Deployment: an
    increased count becomes visible once the first new pod exists. A suspended cache desires no pods and is not scaled.

    Args:
        cache: The owner.
        deployment: Its Deployment; None if it does not exist.
        missing: Names of Secrets that do not exist.
        failure: Error message of the reconcile; empty if it succeeded.
    """
    pods = None if deployment is None else Pods.of(deployment)
    suspended = cache.spec.suspended
    scaled = cache.autoscaled and not suspended
    desired = 0 if suspended else pods.total if scaled and pods is not None else cache.replicas
    return View(pods=pods, desired=desired, scaled=scaled, missing=missing, failure=failure)


def conditions(seen: View) -> Mapping[str, Sentence]:
    """Return the conditions of a cache.

    Args:
        seen: The observed state.

    Returns:
        Condition type to status, reason and message, in the order of `TYPES`.

    Example:
        >>> found = conditions(View(pods=Pods(total=5, updated=5, ready=3), desired=5, scaled=True))
        >>> found["Available"].message, found["Degraded"].message
        ('3/5 replicas are ready (HPA-managed)', 'Only 3/5 replicas are ready')
    """
    found = (_available(seen), _progressing(seen), _degraded(seen), _ready(seen))
    return dict(zip(TYPES, found, strict=True))


def _available(seen: View) -> Sentence:
    managed = " (HPA-managed)" if seen.scaled else ""
    ready = _ready_count(seen)
    message = f"{_share(seen)} are ready{managed}"
    return Sentence("True", "Available", message) if ready > 0 else Sentence("False", "Unavailable", message)


def _progressing(seen: View) -> Sentence:
    pods, desired = seen.pods, seen.desired
    if pods is None:
        return Sentence("True", "Progressing", _WAITING)
    if pods.updated < desired or pods.total != desired:
        return Sentence("True", "Progressing", f"Rollout in progress: {pods.updated}/{desired} replicas updated")
    return Sentence("False", "ProgressingComplete", f"All {desired} replicas are updated")


def _degraded(seen: View) -> Sentence:
    if seen.failure:
        return Sentence("True", "Degraded", seen.failure)
    if seen.missing:
        return Sentence("True", "SecretNotFound", f"Referenced Secrets not found: {', '.join(sorted(seen.missing))}")
    if seen.desired > 0 and _ready_count(seen) < seen.desired:
        return Sentence("True", "Degraded", _WAITING if seen.pods is None else f"Only {_share(seen)} are ready")
    return Sentence("False", "NotDegraded", f"All {seen.desired} desired replicas are ready")


def _ready(seen: View) -> Sentence:
    if seen.desired == 0:
        return Sentence("False", "MemcachedNotReady", "Instance has zero desired replicas")
    if seen.pods is None:
        return Sentence("False", "MemcachedNotReady", _WAITING)
    if seen.pods.ready == seen.desired:
        return Sentence("True", "MemcachedReady", f"All {seen.desired} replicas are ready")
    return Sentence("False", "MemcachedNotReady", f"{_share(seen)} are ready")


def _ready_count(seen: View) -> int:
    return 0 if seen.pods is None else seen.pods.ready


def _share(seen: View) -> str:
    return f"{_ready_count(seen)}/{seen.desired} replicas"
