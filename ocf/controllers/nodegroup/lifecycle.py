"""Life of a node: from the request of its machine to the machine's deletion, one step per reconcile.

`advance` is a pure function of what is stored and what is observed. Its result is stored before its action is taken, so
that a crash between the two repeats an action and never forgets one: a request that may have been sent is sent again
with `MachineRequest.retried`, and the deletion of a machine is repeated until the provider does not list it any more.
Where machines have no names, a request is sent once: each repetition could be one more machine. One that was given up
without its machine is kept, as the machine may be listed late (see `may_be_late`).
The exception is `Action.CONFIGURE`, which is only asked for by a change of the status: it can be repeated at will, and
is taken before the result is stored.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import Enum
from typing import Any, Final

from ocf.controllers.nodegroup.node_model import VPSieNodeStatus
from ocf.nodegroups import Machine, MachineState
from ocf.objects.durations import format_duration

__all__ = ["Action", "NodeState", "Observation", "Step", "accepted", "advance", "failed", "is_lost", "may_be_late"]

# Longer than a request and the first list with its machine may take (30 s and 100 s at VPSie).
_LOST_ANSWER: Final = timedelta(minutes=3)
# How long the machine of a request without a name may be listed late.
_LATEST: Final = timedelta(minutes=30)
# One list may be empty, old or partial: a machine is lost only if it is missing for as long.
_UNLISTED: Final = timedelta(minutes=1)
_UNKNOWN_READY: Final = ("Pending", "Provisioning", "Joining", "Failed")
_GONE: Final = "the machine was deleted, but not by this controller"


class Action(Enum):
    """What to do after the new status is stored."""

    NONE = "none"
    CREATE = "create the machine"
    FIND = "look for the machine"
    CONFIGURE = "set labels and taints of the Node"
    DELETE_MACHINE = "delete the machine"
    REMOVE = "remove the finalizer"


class NodeState(Enum):
    """State of the Node object of a machine."""

    ABSENT = "absent"
    NOT_READY = "not ready"
    READY = "ready"


@dataclass(frozen=True, slots=True)
class Observation:
    """What is known of a node at one instant.

    Args:
        machine: Its machine, as the provider reports it; None if the provider does not.
        node_name: Name of the Node; empty if there is none.
        machines: Ids of all machines that the provider lists.
        keeps_names: Whether the provider lists a machine by the name of its request at once, so that a machine that is
            not listed does not exist.
        repair: Whether a node that has not been ready for long may be replaced now.
    """

    machine: Machine | None
    node: NodeState = NodeState.ABSENT
    node_name: str = ""
    ending: bool = False
    machines: frozenset[str] = frozenset()
    keeps_names: bool = True
    repair: bool = True


@dataclass(frozen=True, slots=True)
class Step:
    """One step in the life of a node."""

    status: VPSieNodeStatus
    action: Action = Action.NONE


def advance(
    status: VPSieNodeStatus, observed: Observation, now: datetime, *, boot_timeout: timedelta = timedelta(minutes=15)
) -> Step:
    """Return the next step of a node.

    A drain happens before: the object of a node is deleted when its pods are gone, or its machine failed.

    Args:
        boot_timeout: The time from the request of a machine until its node has to be ready, and how long a node that
            was ready may be missing or not ready.

    Example:
        >>> from datetime import UTC
        >>> step = advance(VPSieNodeStatus(), Observation(None), datetime(2026, 1, 1, tzinfo=UTC))
        >>> step.status.phase, step.action
        ('Provisioning', <Action.CREATE: 'create the machine'>)
    """
    status = _replaced(_listed(status, observed, now), observed, now)
    if observed.ending:
        return _terminate(status, observed, now)
    match status.phase:
        case "Pending":
            return _request(status, observed, now)
        case "Provisioning" | "Joining":
            return _boot(status, observed, now, boot_timeout)
        case "Ready" | "Draining":
            return _run(status, observed, now, boot_timeout)
        case "Failed" if may_be_late(status, now):
            return Step(status, Action.FIND)
        case _:
            return Step(status)


def accepted(status: VPSieNodeStatus, machine: Machine, now: datetime) -> VPSieNodeStatus:
    """Return the status after the provider has answered a request."""
    known = _with(
        status, accepted_at=status.accepted_at or now, machine_id=machine.id or status.machine_id, last_error=""
    )
    # Its machine came late: from now on it boots like any other.
    return _with(known, phase="Provisioning", requested_at=now, failed_at=None) if status.phase == "Failed" else known


def failed(status: VPSieNodeStatus, problem: str, now: datetime) -> VPSieNodeStatus:
    """Return the status of a node that failed; its object is deleted afterwards."""
    return _with(status, phase="Failed", last_error=problem, failed_at=now)


def may_be_late(status: VPSieNodeStatus, now: datetime) -> bool:
    """Return whether the machine of a request that was given up may be listed yet, though it has no name.

    Only the object of the request knows that such a machine is not a user's.
    """
    # Of a request that was refused, no machine can come, and its time is cleared.
    if status.excluded_machines is None or status.machine_id or status.requested_at is None:
        return False
    return now - status.requested_at < _LATEST


def _listed(status: VPSieNodeStatus, observed: Observation, now: datetime) -> VPSieNodeStatus:
    """Return the status with the time since when a known machine is not listed."""
    if observed.machine is not None:
        return status if status.unlisted_since is None else _with(status, unlisted_since=None)
    known = status.machine_id or status.running_at is not None or status.ready_at is not None
    # Its name is known, and a machine may have it that the list lacks.
    known = known or (observed.ending and observed.keeps_names and status.requested_at is not None)
    return _with(status, unlisted_since=now) if known and status.unlisted_since is None else status


def _replaced(status: VPSieNodeStatus, observed: Observation, now: datetime) -> VPSieNodeStatus:
    """Return the status of a node whose machine the provider replaces: it boots again, as the same request."""
    machine = observed.machine
    if machine is None or status.phase in ("Pending", "Terminating", "Failed"):
        return status
    if not status.machine_id and status.ready_at is not None:
        return _with(status, machine_id=machine.id)
    if not status.machine_id:
        return status
    replaced = machine.id != status.machine_id
    if not replaced and (machine.state is not MachineState.REPLACING or status.phase == "Provisioning"):
        return status
    # The old Node is the only one as long as there is no other machine.
    changes = {"machine_id": machine.id, "requested_at": now, "node_name": ""} if replaced else {}
    what = f"was replaced by {machine.id}" if replaced and machine.id else "is being replaced"
    times = dict.fromkeys(("running_at", "joined_at", "ready_at", "unready_since", "drain"))
    return _with(status, phase="Provisioning", last_error=f"machine {status.machine_id} {what}", **times, **changes)


def is_lost(status: VPSieNodeStatus, now: datetime) -> bool:
    """Return whether a known machine has not been listed for so long that the list is hardly wrong."""
    return status.unlisted_since is not None and now - status.unlisted_since >= _UNLISTED


def _request(status: VPSieNodeStatus, observed: Observation, now: datetime) -> Step:
    # Where machines have no names, a new one is found as the one that did not exist before.
    existing = None if observed.keeps_names else sorted(observed.machines)
    return Step(_with(status, phase="Provisioning", requested_at=now, excluded_machines=existing), Action.CREATE)


def _boot(status: VPSieNodeStatus, observed: Observation, now: datetime, boot_timeout: timedelta) -> Step:
    # Before readiness: a machine that failed or is being deleted may still have a Node that is ready.
    if problem := _boot_problem(status, observed, now, boot_timeout):
        return Step(failed(status, problem, now))
    machine = observed.machine
    if machine is None or machine.state is MachineState.REPLACING:
        return Step(status, _missing(status, observed))
    if _is_ready(observed):
        joined, found = status.joined_at or now, machine.id or status.machine_id
        # With its id: a machine may be ready when it is first listed, and only its id shows that it was replaced.
        ready = _with(status, phase="Ready", joined_at=joined, ready_at=now, machine_id=found)
        return Step(_with(ready, node_name=observed.node_name, last_error=""), Action.CONFIGURE)
    if status.phase == "Joining":
        return _joining(status, observed, now)
    known = _with(status, machine_id=machine.id or status.machine_id, accepted_at=status.accepted_at or now)
    if machine.state is MachineState.RUNNING:
        return Step(_with(known, phase="Joining", running_at=now, node_name=machine.node_name))
    return Step(known)


def _boot_problem(status: VPSieNodeStatus, observed: Observation, now: datetime, boot_timeout: timedelta) -> str:
    """Return why a node will not become ready; empty if it may."""
    machine = observed.machine
    if machine is not None and machine.state is MachineState.FAILED:
        return machine.problem or "the machine failed"
    if machine is not None and machine.state is MachineState.DELETING:
        return "the machine was deleted while it booted"
    # Its deletion waits for its pods; the time of the new machine begins when there is one.
    if machine is not None and machine.state is MachineState.REPLACING:
        return ""
    # While its kubelet reports, the machine exists, whatever the list says.
    if observed.node is NodeState.READY:
        return ""
    # One that never ran may just not be listed yet; one that did is gone.
    if machine is None and status.running_at is not None and is_lost(status, now):
        return "the provider does not list the machine any more"
    return _overdue(status, observed, now, boot_timeout)


def _overdue(status: VPSieNodeStatus, observed: Observation, now: datetime, boot_timeout: timedelta) -> str:
    """Return that a node has booted for too long, and the last failure where its machine is not known."""
    waited = now - (status.requested_at or now)
    unknown = observed.machine is None and status.accepted_at is None
    if waited >= boot_timeout:
        text = f"the node was not ready within {format_duration(boot_timeout)} after its request"
    elif unknown and not observed.keeps_names and waited >= _LOST_ANSWER:
        text = f"no machine was listed within {format_duration(_LOST_ANSWER)} after its request"
    else:
        return ""
    return f"{text}: {status.last_error}" if unknown and status.last_error else text


def _missing(status: VPSieNodeStatus, observed: Observation) -> Action:
    """Return what to do while the machine of a node that boots is not listed, or is being replaced."""
    # One that ran is not requested again: the list may be wrong for a moment.
    if status.running_at is not None or observed.machine is not None:
        return Action.NONE
    return Action.CREATE if observed.keeps_names else Action.FIND


def _is_ready(observed: Observation) -> bool:
    """Return whether a machine has become a ready node; a Node without a machine is an earlier one of that name."""
    return observed.node is NodeState.READY and observed.machine is not None


def _joining(status: VPSieNodeStatus, observed: Observation, now: datetime) -> Step:
    if observed.node is NodeState.NOT_READY and status.joined_at is None:
        return Step(_with(status, joined_at=now, node_name=observed.node_name), Action.CONFIGURE)
    return Step(status)


def _run(status: VPSieNodeStatus, observed: Observation, now: datetime, timeout: timedelta) -> Step:
    if problem := _machine_problem(status, observed, now):
        return Step(failed(status, problem, now))
    if observed.node is NodeState.READY:
        return Step(status if status.unready_since is None else _with(status, unready_since=None))
    if status.unready_since is None:
        return Step(_with(status, unready_since=now))
    if observed.repair and now - status.unready_since >= timeout:
        problem = f"the node has been {'missing' if observed.node is NodeState.ABSENT else 'not ready'} for "
        return Step(failed(status, problem + format_duration(timeout), now))
    return Step(status)


def _machine_problem(status: VPSieNodeStatus, observed: Observation, now: datetime) -> str:
    machine = observed.machine
    # Only here, where no deletion was requested, does a missing machine mean a loss; not while its kubelet reports.
    if machine is None:
        return _GONE if _is_away(status, observed, now) and is_lost(status, now) and observed.repair else ""
    if machine.state is MachineState.DELETING:
        return _GONE
    if machine.state is MachineState.FAILED:
        return machine.problem or "the machine failed"
    return ""


def _is_away(status: VPSieNodeStatus, observed: Observation, now: datetime) -> bool:
    """Return whether a node is missing, or has not been ready for so long that its pods were looked at."""
    if observed.node is NodeState.NOT_READY:
        return status.unready_since is not None and now - status.unready_since >= _UNLISTED
    return observed.node is NodeState.ABSENT


def _terminate(status: VPSieNodeStatus, observed: Observation, now: datetime) -> Step:
    # The finalizer goes last: as long as a machine may exist, only this object knows of it and of its cost.
    terminating = _with(status, phase="Terminating", terminating_at=status.terminating_at or now)
    if observed.machine is not None:
        # A machine that was replaced, or became ready just now, may have pods: they leave first.
        if observed.machine.state is MachineState.RUNNING and _is_ready(observed) and status.phase in _UNKNOWN_READY:
            return Step(_with(status, phase="Ready", ready_at=now, node_name=observed.node_name, drain=None))
        found = _with(terminating, machine_id=observed.machine.id or status.machine_id)
        deleting = observed.machine.state is MachineState.DELETING
        return Step(found, Action.NONE if deleting else Action.DELETE_MACHINE)
    if may_be_late(status, now):
        return Step(terminating, Action.FIND)
    named = observed.keeps_names and status.requested_at is not None
    if status.terminating_at is None and (status.machine_id or named):
        # By its id or name, whatever the list says. The object is kept until the list has said so for a while, and as
        # long as a kubelet reports.
        gone = is_lost(status, now) and observed.node is not NodeState.READY
        return Step(terminating if gone else status, Action.DELETE_MACHINE)
    return Step(status, Action.REMOVE)


def _with(status: VPSieNodeStatus, **changes: Any) -> VPSieNodeStatus:
    return status.model_copy(update=changes)
