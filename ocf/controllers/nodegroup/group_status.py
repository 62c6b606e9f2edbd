"""Status of node groups: numbers, conditions, the last decision in a line, and what steers scaling; all of it pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from ocf.controllers.nodegroup.group_decision import GroupDecision
from ocf.controllers.nodegroup.groups import backoffs, type_gaps, unneeded
from ocf.controllers.nodegroup.model import BlockedNode, Condition, NodeGroupSpec, NodeGroupStatus
from ocf.controllers.nodegroup.objects import GroupObject, NodeObject
from ocf.controllers.nodegroup.texts import shortened
from ocf.nodegroups.model import GroupStatus
from ocf.nodegroups.scale_up import Shortfall
from ocf.objects.conditions import transition_time

__all__ = [
    "GroupProgress",
    "count_refusals",
    "failed_status",
    "invalid_status",
    "next_status",
    "problem_of",
    "shortfall_text",
]

_True: Final = "True"


def count_refusals(
    status: GroupStatus, nodes: Sequence[NodeObject], now: datetime
) -> tuple[GroupStatus, dict[str, str]]:
    """Return the status after the failures of nodes: their instance types are left alone for a while.

    A failure is counted once, however often it is seen and however many nodes fail at the same time, and a node that
    became ready after a refusal ends it.
    """
    messages: dict[str, str] = {}
    for node in nodes:
        state, spec = node.status, node.spec
        if spec is None or state.phase == "Failed":
            continue
        known = _refused_at(status, spec.instance_type, spec.datacenter_id)
        # Readiness that is older than the refusal says nothing about the stock now.
        if known is not None and state.ready_at is not None and state.ready_at >= known:
            status = status.accepted(spec.instance_type, spec.datacenter_id)
    for node in nodes:
        state, spec = node.status, node.spec
        # One that was ready broke later; its type can be had.
        if spec is None or state.phase != "Failed" or state.failed_at is None or state.ready_at is not None:
            continue
        known = _refused_at(status, spec.instance_type, spec.datacenter_id)
        # The failed object stays until the status is stored, so it may be seen again.
        if known is None or known < state.failed_at:
            status = status.refused(spec.instance_type, spec.datacenter_id, now)
            messages[spec.instance_type] = shortened(state.last_error)
    return status, messages


def _refused_at(status: GroupStatus, instance_type: str, zone: str) -> datetime | None:
    found = (each.at for each in status.refusals if (each.instance_type, each.zone) == (instance_type, zone))
    return next(found, None)


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupProgress:
    """What was seen of a group apart from its decision.

    Args:
        ready: How many of its nodes are ready, and not on their way out.
        on_the_way: How many of its nodes have never been ready, or are not set up yet.
        waiting: Which pods its drains wait for, and since when; empty if they wait for none.
        problem: Reason and message of what went wrong; None if nothing did.
    """

    ready: int
    on_the_way: int = 0
    waiting: str = ""
    problem: tuple[str, str] | None = None


def next_status(
    group: GroupObject,
    spec: NodeGroupSpec,
    decided: GroupDecision,
    progress: GroupProgress,
    *,
    messages: Mapping[str, str],
    now: datetime,
) -> NodeGroupStatus:
    """Return the status of a group after a decision, before it is carried out.

    Args:
        messages: Why instance types were refused since the last reconcile, by type.
    """
    after, stored = decided.after, group.status
    current = decided.scale_up.current - len(decided.removals)
    desired = max(decided.scale_up.desired - len(decided.removals), 0)
    # The nodes that are replaced still count until they are gone, and the cheaper ones come in addition.
    if decided.replaced:
        desired += len(decided.add)
    base = stored.model_copy(
        update={
            "current_nodes": current,
            # Nodes above the maximum, which a user has lowered, are still there, and not desired.
            "desired_nodes": min(max(desired, spec.min_nodes), spec.max_nodes),
            "ready_nodes": progress.ready,
            "last_scale_up_time": after.last_scale_up,
            "last_scale_down_time": after.last_scale_down,
            "last_scale_time": after.last_scale,
            "last_decision": decided.text,
            "unneeded": unneeded(after),
            "replaced": sorted(after.replaced) or None,
            "blocked": [
                BlockedNode(name=each.node, reason=each.reason, message=each.message) for each in decided.blocked
            ]
            or None,
            "backoffs": backoffs(after, stored, messages),
            "type_gaps": type_gaps(after, stored, decided.scale_up.shortfalls),
            "observed_generation": group.generation,
        }
    )
    return _with_conditions(group, base, _conditions(base, spec, decided, progress, now), now)


def invalid_status(group: GroupObject, now: datetime) -> NodeGroupStatus:
    """Return the status of a group whose spec is not valid: it is left alone."""
    message = shortened("; ".join(map(str, group.problems)))
    return failed_status(group, "ValidationFailed", message, now, decision="the spec is not valid")


def failed_status(
    group: GroupObject, reason: str, message: str, now: datetime, *, decision: str | None = None
) -> NodeGroupStatus:
    """Return the status of a group about which nothing can be decided.

    Args:
        decision: The last decision in a line, of a group that is not ready; None leaves both.
    """
    changes: dict[str, object] = {"observed_generation": group.generation}
    if decision is not None:
        changes["last_decision"] = decision
    conditions = {"Error": (_True, reason, message)}
    if decision is not None:
        conditions["Ready"] = ("False", reason, message)
    return _with_conditions(group, group.status.model_copy(update=changes), conditions, now)


def _conditions(
    status: NodeGroupStatus,
    spec: NodeGroupSpec,
    decided: GroupDecision,
    progress: GroupProgress,
    now: datetime,
) -> dict[str, tuple[str, str, str]]:
    current, desired, ready = status.current_nodes, status.desired_nodes, status.ready_nodes
    counted = f"{ready} of {desired} nodes are ready"
    # All three: a group that is still shrinking is not done either.
    complete = current == desired == ready
    found = {
        "Ready": (_True, "ScalingComplete", counted) if complete else ("False", "Reconciling", counted),
        "Scaling": ("False", "ScalingComplete", ""),
        "Error": ("False", "NoError", ""),
        "AtMinCapacity": _bound(current <= spec.min_nodes, "AtMinimumCapacity", "AboveMinimumCapacity"),
        "AtMaxCapacity": _bound(current >= spec.max_nodes, "AtMaximumCapacity", "BelowMaximumCapacity"),
    }
    if decided.removals or decided.after.draining:
        found["Scaling"] = (_True, "ScalingDown", shortened(progress.waiting or "nodes are being removed"))
    # Nodes that were ready and are not any more are no nodes on their way.
    if decided.add or current < desired or progress.on_the_way:
        found["Scaling"] = (_True, "ScalingUp", counted)
    if progress.problem:
        reason, message = progress.problem
        found["Error"] = (_True, reason, shortened(message))
    elif decided.scale_up.problems:
        found["Error"] = (_True, "InstanceTypeInvalid", shortened("; ".join(decided.scale_up.problems)))
    elif refusals := [each for each in status.backoffs or () if now < each.until]:
        refused = "; ".join(f"{each.instance_type}: {each.message}" for each in refusals)
        found["Error"] = (_True, "NodeProvisioningFailed", shortened(refused))
    elif decided.scale_up.shortfalls:
        found["Error"] = (_True, "NodesNotAsPromised", shortened(shortfall_text(decided.scale_up.shortfalls)))
    return found


def problem_of(error: str, provider: str, held: str) -> tuple[str, str] | None:
    """Return reason and message of what went wrong in a group apart from its decision; None if nothing did.

    Args:
        error: The unexpected error of one of its steps; empty if there was none.
        provider: The error of the provider; empty if there was none.
        held: Which nodes are not ready and stay, and why; empty if none does.
    """
    if error:
        return "ReconcileFailed", error
    if provider:
        return "ProviderError", provider
    return ("NodesNotReady", held) if held else None


def shortfall_text(shortfalls: Sequence[Shortfall]) -> str:
    """Return which pods wait because nodes are not as their types promise."""
    return "; ".join(f"{each.text}; {_pods(each.pods)}" for each in shortfalls)


def _pods(keys: Sequence[str]) -> str:
    more = f" and {len(keys) - 1} more" if len(keys) > 1 else ""
    return f"no node of the type is added for pod {keys[0]}{more}"


def _bound(at: bool, reached: str, other: str) -> tuple[str, str, str]:  # noqa: FBT001 (the value is all there is)
    return (_True, reached, "") if at else ("False", other, "")


def _with_conditions(
    group: GroupObject, status: NodeGroupStatus, found: Mapping[str, tuple[str, str, str]], now: datetime
) -> NodeGroupStatus:
    """Return a status with conditions set; the others stay as they are."""
    stored = {each.type: each for each in group.status.conditions or ()}
    conditions = dict(stored)
    for kind, (value, reason, message) in found.items():
        known = stored.get(kind)
        conditions[kind] = Condition.model_validate(
            {
                "type": kind,
                "status": value,
                "reason": reason,
                "message": message,
                "lastTransitionTime": transition_time(
                    value, now, stored=None if known is None else (known.status, known.last_transition_time)
                ),
                "observedGeneration": group.generation,
            }
        )
    return status.model_copy(update={"conditions": list(conditions.values())})
