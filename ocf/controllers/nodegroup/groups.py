"""Node groups as the algorithm sees them, from objects of kind NodeGroup, and their status in both directions.

What steers scaling is read from the status and written back to it in every reconcile, so that a restart or another
leader changes no decision.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta

from ocf.controllers.nodegroup.model import (
    InstanceTypeBackoff,
    NodeGroupSpec,
    NodeGroupStatus,
    TypeGapStatus,
    UnneededNode,
)
from ocf.controllers.nodegroup.objects import GroupObject
from ocf.nodegroups import NodeGroup
from ocf.nodegroups.model import (
    FIRST_BACKOFF,
    LONGEST_BACKOFF,
    MOST_FAILURES,
    GroupStatus,
    ScaleDownPolicy,
    TypeChoice,
    TypeGap,
    TypeRefusal,
    UtilizationSource,
)
from ocf.nodegroups.scale_up import Shortfall
from ocf.nodegroups.snapshot.node_selectors import Taint
from ocf.objects import Quantity
from ocf.objects.durations import parse_duration

__all__ = ["backoffs", "to_group", "to_group_status", "type_gaps", "unneeded"]


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
        startup_taints=frozenset(spec.scale_up_policy.startup_taints or ()),
        startup_resources=tuple(spec.scale_up_policy.startup_resources or ()),
        startup_limit=parse_duration(spec.scale_up_policy.boot_timeout),
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
            saving_threshold=down.saving_threshold,
            replace_after=parse_duration(down.replace_after),
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
        gaps=tuple(_gap(each, spec.datacenter_id) for each in stored.type_gaps or ()),
    )


def type_gaps(
    status: GroupStatus, stored: NodeGroupStatus, shortfalls: Iterable[Shortfall]
) -> list[TypeGapStatus] | None:
    """Return what nodes lack of what their types promise, for the stored status."""
    before = {each.instance_type: each.pod for each in stored.type_gaps or ()}
    waiting = {each.instance_type: each.pods for each in shortfalls}
    found = [
        TypeGapStatus(
            instance_type=each.instance_type,
            resources=_quantities(each.resources),
            labels=dict(sorted(each.labels.items())) or None,
            taints=[f"{taint.key}={taint.value}:{taint.effect}" for taint in each.taints] or None,
            overhead=_quantities(each.overhead),
            pod=_example(waiting.get(each.instance_type, ()), before.get(each.instance_type, "")),
            failures=each.failures,
            until=each.until,
        )
        for each in status.gaps
    ]
    return found or None


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
        failures=1 if before is None else min(before.failures + 1, MOST_FAILURES),
        message=messages.get(refusal.instance_type, ""),
    )


def _gap(stored: TypeGapStatus, zone: str) -> TypeGap:
    taints = []
    for text in stored.taints or ():
        left, _, effect = text.rpartition(":")
        key, _, value = left.partition("=")
        taints.append(Taint(key, value, effect))
    return TypeGap(
        instance_type=stored.instance_type,
        zone=zone,
        resources=_amounts(stored.resources),
        labels=dict(stored.labels or {}),
        taints=tuple(taints),
        overhead=_amounts(stored.overhead),
        failures=stored.failures,
        until=stored.until,
    )


def _example(pods: Sequence[str], before: str) -> str:
    """Return one of the pods, the same one as before if it still waits."""
    return before if before in pods else next(iter(pods), "")


def _quantities(amounts: Mapping[str, int]) -> dict[str, str] | None:
    return {name: f"{size}m" if name == "cpu" else str(size) for name, size in sorted(amounts.items())} or None


def _amounts(quantities: Mapping[str, str] | None) -> dict[str, int]:
    return {name: _in_units(name, Quantity.parse(text)) for name, text in (quantities or {}).items()}


def _in_units(resource: str, quantity: Quantity) -> int:
    return quantity.milli if resource == "cpu" else quantity.value


def _wait(failures: int) -> timedelta:
    """Return how long a type is left alone after so many refusals in a row."""
    # Limited before the multiplication, which overflows beyond some dozens of failures.
    doubled: timedelta = FIRST_BACKOFF * 2 ** min(max(failures - 1, 0), 10)
    return min(doubled, LONGEST_BACKOFF)
