"""Node groups as the algorithm sees them, from objects of kind NodeGroup, and their status in both directions.

What steers scaling is read from the status and written back to it in every reconcile, so that a restart or another
leader changes no decision.
"""

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta

from ocf.controllers.nodegroup.model import InstanceTypeBackoff, NodeGroupSpec, NodeGroupStatus, UnneededNode
from ocf.controllers.nodegroup.objects import GroupObject
from ocf.nodegroups import NodeGroup
from ocf.nodegroups.model import (
    FIRST_BACKOFF,
    LONGEST_BACKOFF,
    GroupStatus,
    ScaleDownPolicy,
    TypeChoice,
    TypeRefusal,
    UtilizationSource,
)
from ocf.nodegroups.snapshot.node_selectors import Taint
from ocf.objects.durations import parse_duration

__all__ = ["backoffs", "to_group", "to_group_status", "unneeded"]


def to_group(found: GroupObject, spec: NodeGroupSpec) -> NodeGroup:
    """Return a group for the algorithm."""
    down = spec.scale_down_policy
    return NodeGroup(
        name=found.name,
        min_nodes=spec.min_nodes,
        max_nodes=spec.max_nodes,
        instance_types=tuple(spec.offering_ids),
        preferred=spec.preferred_instance_type or "",
        zones=(spec.datacenter_id,),
        labels=dict(spec.labels or {}),
        taints=tuple(Taint(each.key, each.value, each.effect) for each in spec.taints or ()),
        member_labels=found.member_labels,
        choice=TypeChoice.CHEAPEST if spec.instance_selection == "Cheapest" else TypeChoice.PREFERRED,
        grows=spec.scale_up_policy.enabled,
        batch_size=spec.scale_up_batch_size,
        scale_up_cooldown=parse_duration(spec.scale_up_cooldown),
        scale_down=ScaleDownPolicy(
            enabled=down.enabled,
            cpu_threshold=down.cpu_threshold,
            memory_threshold=down.memory_threshold,
            source=UtilizationSource(down.utilization.lower()),
            duration=parse_duration(down.underutilized_for),
            cooldown=parse_duration(spec.scale_down_cooldown),
            most_empty=down.max_empty,
            most_with_pods=down.max_drained,
            consolidate=down.consolidate,
        ),
    )


def to_group_status(
    found: GroupObject, spec: NodeGroupSpec, draining: Iterable[str] = (), drained_at: datetime | None = None
) -> GroupStatus:
    """Return what steers the scaling of a group, from its stored status.

    Args:
        drained_at: When the last of their drains began, which a crash may have kept from the stored status.
    """
    stored = found.status
    times = [at for at in (stored.last_scale_down_time, drained_at) if at is not None]
    return GroupStatus(
        last_scale_up=stored.last_scale_up_time,
        last_scale_down=max(times, default=None),
        low_since={each.name: each.since for each in stored.unneeded or ()},
        refusals=tuple(
            # The status has the end of a refusal only; its beginning follows from the number of failures.
            TypeRefusal(each.instance_type, spec.datacenter_id, each.until - _wait(each.failures), each.until)
            for each in stored.backoffs or ()
        ),
        draining=frozenset(draining),
        replaced=frozenset(stored.replaced or ()),
    )


def unneeded(status: GroupStatus) -> list[UnneededNode] | None:
    """Return the underutilized nodes for the stored status."""
    return [UnneededNode(name=name, since=since) for name, since in sorted(status.low_since.items())] or None


def backoffs(
    status: GroupStatus, stored: NodeGroupStatus, messages: Mapping[str, str]
) -> list[InstanceTypeBackoff] | None:
    """Return the refused instance types for the stored status."""
    before = {each.instance_type: each for each in stored.backoffs or ()}
    found = [_backoff(each, before.get(each.instance_type), messages) for each in status.refusals]
    return sorted(found, key=lambda each: each.instance_type) or None


def _backoff(
    refusal: TypeRefusal, before: InstanceTypeBackoff | None, messages: Mapping[str, str]
) -> InstanceTypeBackoff:
    # No new failure: count and message are those of the last one.
    if before is not None and refusal.instance_type not in messages:
        return before.model_copy(update={"until": refusal.until})
    return InstanceTypeBackoff(
        instance_type=refusal.instance_type,
        until=refusal.until,
        failures=1 if before is None else before.failures + 1,
        message=messages.get(refusal.instance_type, ""),
    )


def _wait(failures: int) -> timedelta:
    """Return how long a type is left alone after so many refusals in a row."""
    # Limited before the multiplication, which overflows beyond some dozens of failures.
    doubled: timedelta = FIRST_BACKOFF * 2 ** min(max(failures - 1, 0), 10)
    return min(doubled, LONGEST_BACKOFF)
