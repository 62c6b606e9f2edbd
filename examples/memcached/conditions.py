"""What a cache reports of itself: four conditions, from what was seen of it. Pure functions.

Reasons and sentences are what users of the operator grep for, so they are spelt out here and nowhere else.
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
"""In the order in which they are written."""

_WAITING: Final = "Waiting for deployment to be created"


@dataclass(frozen=True, slots=True, kw_only=True)
class Pods:
    """What a Deployment reports of its pods.

    Args:
        total: How many there are.
        updated: How many of them are made from the newest template.
        ready: How many serve.
    """

    total: int = 0
    updated: int = 0
    ready: int = 0

    @classmethod
    def of(cls, deployment: Manifest) -> Pods:
        """Read the status of a Deployment; a count that is absent is zero.

        Until its controller has looked at the newest spec, nobody knows of an updated pod.

        Args:
            deployment: As read from the cluster.
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
    """All that the conditions are about.

    Args:
        pods: What the Deployment reports; None while there is none.
        desired: How many pods there should be.
        scaled: Whether an autoscaler says so.
        missing: Names of the Secrets that the pods need and that are not there.
        failure: Why the pass failed; empty if it did not.
    """

    pods: Pods | None
    desired: int
    scaled: bool = False
    missing: Sequence[str] = ()
    failure: str = ""


class Sentence(NamedTuple):
    """A condition without its type: whether it holds (`True`, `False`), one word, and a sentence."""

    status: str
    reason: str
    message: str


def view(cache: Memcached, deployment: Manifest | None, *, missing: Sequence[str] = (), failure: str = "") -> View:
    """Look at a cache.

    While an autoscaler sets the count, what is desired is what the Deployment has: so a count that was raised this very
    moment is seen once the first of its pods is there. A cache that is asleep desires nothing, and nobody scales it.

    Args:
        cache: The owner.
        deployment: Its Deployment, None while there is none.
        missing: Names of Secrets that are not there.
        failure: Why the pass failed.
    """
    pods = None if deployment is None else Pods.of(deployment)
    asleep = cache.spec.suspended
    scaled = cache.autoscaled and not asleep
    desired = 0 if asleep else pods.total if scaled and pods is not None else cache.replicas
    return View(pods=pods, desired=desired, scaled=scaled, missing=missing, failure=failure)


def conditions(seen: View) -> Mapping[str, Sentence]:
    """Say how a cache is.

    Args:
        seen: What is known of it.

    Returns:
        Type of each condition to what it says, in the order of `TYPES`.

    Example:
        >>> found = conditions(View(pods=Pods(total=5, updated=5, ready=3), desired=5, scaled=True))
        >>> found["Available"].message, found["Degraded"].message
        ('3/5 replicas are ready (HPA-managed)', 'Only 3/5 replicas are ready')
    """
    told = (_available(seen), _progressing(seen), _degraded(seen), _ready(seen))
    return dict(zip(TYPES, told, strict=True))


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
