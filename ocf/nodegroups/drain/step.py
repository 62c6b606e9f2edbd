"""Drain of a node as a state machine: one step per reconcile, without waiting.

The state is stored between reconciles; what is seen on the node decides the next step, so that a drain goes on after a
restart, and a step that is repeated does no harm.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from enum import StrEnum

from ocf.nodegroups.rules import Blocked, movable_pods
from ocf.nodegroups.snapshot.pods import SnapshotPod

__all__ = [
    "ActionKind",
    "Drain",
    "DrainAction",
    "DrainPhase",
    "DrainSettings",
    "DrainStep",
    "ObservedNode",
    "next_step",
]


class DrainPhase(StrEnum):
    """How far a drain is."""

    CORDON = "cordon"
    """The node is marked unschedulable."""
    EVICT = "evict"
    """Pods are evicted through the Eviction API; one that a disruption budget keeps is tried again later."""
    WAIT = "wait"
    """All evictions were accepted, and pods are shutting down."""
    DELETE = "delete"
    """The node is deleted; from here on there is no way back."""
    UNCORDON = "uncordon"
    """The drain was given up, and the node is made schedulable again."""
    DONE = "done"
    """The node is gone."""
    GAVE_UP = "gave_up"
    """The node stays, and takes pods again."""


class ActionKind(StrEnum):
    """What the controller does for a step."""

    CORDON = "cordon"
    EVICT = "evict"
    DELETE = "delete"
    UNCORDON = "uncordon"


@dataclass(frozen=True, slots=True)
class DrainAction:
    """An action of a step.

    Args:
        kind: What to do.
        pods: The keys of the pods to evict, in this order.
    """

    kind: ActionKind
    pods: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class DrainSettings:
    """Settings of drains.

    Args:
        deadline: How long a drain may take until all pods are gone.
    """

    deadline: timedelta = timedelta(minutes=10)


@dataclass(frozen=True, slots=True, kw_only=True)
class Drain:
    """The state of a drain.

    Args:
        node: The name of the node.
        started: When it began.
        phase: How far it is.
        message: Why it waits, or why it was given up.
        cordoned: Whether the drain has marked the node unschedulable. It takes back no mark of a user.
        pod: The key of a pod that it waits for; empty if it waits for none.
        waiting_since: Since when it waits for this pod; None if it waits for none.
    """

    node: str
    started: datetime
    phase: DrainPhase = DrainPhase.CORDON
    message: str = ""
    cordoned: bool = False
    pod: str = ""
    waiting_since: datetime | None = None

    @property
    def ended(self) -> bool:
        """Whether there is nothing more to do."""
        return self.phase in (DrainPhase.DONE, DrainPhase.GAVE_UP)


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservedNode:
    """What is seen of a node that is being drained.

    Args:
        exists: Whether the node is there.
        cordoned: Whether it is unschedulable.
        refused: The message of the API server by the key of each pod whose last eviction was refused (429).
        blocked: Why the node must not be removed any more; None if all safety rules still allow it.
    """

    exists: bool = True
    cordoned: bool = False
    pods: tuple[SnapshotPod, ...] = ()
    refused: Mapping[str, str] = field(default_factory=dict)
    blocked: Blocked | None = None


@dataclass(frozen=True, slots=True)
class DrainStep:
    """One step of a drain.

    Args:
        drain: The state after it.
        actions: What to do; none if there is only something to wait for.
    """

    drain: Drain
    actions: tuple[DrainAction, ...] = ()


def next_step(drain: Drain, observed: ObservedNode, now: datetime, settings: DrainSettings | None = None) -> DrainStep:
    """Return the next step of a drain.

    Args:
        drain: The state.
        observed: What is seen of the node.
        now: The time of the reconcile.
        settings: The settings.

    Example:
        >>> from datetime import UTC
        >>> now = datetime(2026, 1, 31, tzinfo=UTC)
        >>> step = next_step(Drain(node="n1", started=now), ObservedNode(), now)
        >>> step.drain.phase.value, step.actions[0].kind.value
        ('cordon', 'cordon')
        >>> next_step(step.drain, ObservedNode(cordoned=True), now).drain.phase.value
        'delete'
    """
    if drain.ended:
        return DrainStep(drain)
    # First of all: whatever the drain waits for went with the node.
    if not observed.exists:
        return DrainStep(replace(drain, phase=DrainPhase.DONE, message=""))
    # Its machine may be gone already, so neither the deadline nor a rule leads back.
    if drain.phase is DrainPhase.DELETE:
        return DrainStep(drain, (DrainAction(ActionKind.DELETE),))
    if drain.phase is DrainPhase.UNCORDON:
        return _uncordon(drain, observed)
    # After the clock was set back, a start in the future would put off the deadline.
    drain = replace(drain, started=min(drain.started, now))
    # Not the time of the deadline: a long duration would lead beyond the last year that there is.
    overdue = now - drain.started >= (settings or DrainSettings()).deadline
    why = _reason_to_give_up(observed, overdue=overdue)
    if why:
        return _uncordon(replace(drain, phase=DrainPhase.UNCORDON, message=why), observed)
    return _forward(drain, observed, now)


def _forward(drain: Drain, observed: ObservedNode, now: datetime) -> DrainStep:
    """Return the next step towards the deletion of the node."""
    if not observed.cordoned:
        # Noted before it is done: after a crash between the two, the mark of the node would look like that of a user.
        cordoning = replace(drain, phase=DrainPhase.CORDON, message="", cordoned=True)
        return DrainStep(cordoning, (DrainAction(ActionKind.CORDON),))
    moving, leaving = movable_pods(observed.pods), _leaving(observed)
    if moving:
        # Pods of low priority first: they make way for the others.
        keys = tuple(pod.key for pod in sorted(moving, key=lambda pod: (pod.priority, pod.key)))
        stuck = [pod.key for pod in moving if pod.key in observed.refused]
        waiting = _waiting(drain, moving, stuck, observed.refused, now)
        return DrainStep(replace(waiting, phase=DrainPhase.EVICT), (DrainAction(ActionKind.EVICT, keys),))
    if leaving:
        return DrainStep(
            replace(_waiting(drain, leaving, [pod.key for pod in leaving], {}, now), phase=DrainPhase.WAIT)
        )
    done = replace(drain, phase=DrainPhase.DELETE, message="", pod="", waiting_since=None)
    return DrainStep(done, (DrainAction(ActionKind.DELETE),))


def _waiting(
    drain: Drain, pods: tuple[SnapshotPod, ...], found: list[str], refused: Mapping[str, str], now: datetime
) -> Drain:
    """Return a drain that waits for pods, with one of them: the same one as before if it still waits for it.

    Args:
        found: The keys of pods that it is known to wait for: a first eviction may be all that they need.
    """
    keys = [pod.key for pod in pods]
    pod = drain.pod if drain.pod in (found or keys) else next(iter(found), "")
    since = (drain.waiting_since or now) if drain.pod == pod else now
    return replace(
        drain,
        message=_left(len(pods), pod or keys[0], refused),
        pod=pod,
        # After the clock was set back, it would wait since the future.
        waiting_since=min(since, now) if pod else None,
    )


def _reason_to_give_up(observed: ObservedNode, *, overdue: bool) -> str:
    moving, leaving = movable_pods(observed.pods), _leaving(observed)
    # Also without a pod to move: the node itself may be protected, or an object on it cannot be read.
    if observed.blocked is not None:
        return f"{observed.blocked.reason}: {observed.blocked.message}"
    if overdue and (moving or leaving):
        left = moving or leaving
        pod = next((each.key for each in left if each.key in observed.refused), left[0].key)
        return f"the deadline is over; {_left(len(left), pod, observed.refused)}"
    return ""


def _leaving(observed: ObservedNode) -> tuple[SnapshotPod, ...]:
    """Return the pods that are shutting down: they hold their data and their place until they are gone."""
    return tuple(pod for pod in observed.pods if pod.deleting and not (pod.of_daemon_set or pod.mirror))


def _uncordon(drain: Drain, observed: ObservedNode) -> DrainStep:
    if observed.cordoned and drain.cordoned:
        return DrainStep(drain, (DrainAction(ActionKind.UNCORDON),))
    return DrainStep(replace(drain, phase=DrainPhase.GAVE_UP))


def _left(count: int, pod: str, refused: Mapping[str, str]) -> str:
    """Return how many pods are left, one of them, and why the API server refused its eviction."""
    why = f": {refused[pod]}" if pod in refused else ""
    return f"{count} pods are left, among them {pod}{why}" if count > 1 else f"pod {pod} is left{why}"
