"""Node groups and pods of a scenario as values of `ocf.nodegroups`."""

from collections.abc import Mapping, Sequence
from typing import Final

from ocf.errors import FieldProblem, ManifestError
from ocf.nodegroups import Catalog, ClusterSnapshot, InstanceType, Node, NodeGroup, Offering, Resources, fits
from ocf.nodegroups.model import ScaleDownPolicy, TypeChoice
from ocf.nodegroups.predicates import Misfit
from ocf.nodegroups.snapshot import PodShape, SnapshotPod
from ocf.nodegroups.snapshot.fields import Fields
from ocf.nodegroups.snapshot.resources import pod_requests, to_resources
from ocf.objects import Manifest, Quantity
from ocf.simulation.scenario.node_groups import InstanceTypeSettings, NodeGroupSettings
from ocf.simulation.scenario.workload import Workload

__all__ = [
    "GROUP_LABEL",
    "catalog_of",
    "group_of",
    "has_room",
    "misfit",
    "pod_shape",
    "scheduled_requests",
    "type_name",
]

GROUP_LABEL: Final = "node-group"
"""The label by which nodes belong to a group."""
_WORKLOAD_LABEL: Final = "workload"
_NANO_PER_MILLI: Final = 10**6


def pod_shape(workload: Workload, position: int = 0) -> PodShape:
    """Return what the scheduler reads of a pod of the workload.

    Args:
        position: The position of the workload, which is in a label if a disruption budget selects the pods.

    Example:
        >>> pod_shape(Workload(capacity=1, requests={"cpu": "250m", "memory": "1Mi"})).requests
        Resources(cpu=250, memory=1048576, storage=0, pods=1, scalars=())
    """
    amounts = {name: milli * _NANO_PER_MILLI for name, milli in workload.requests.items()}
    labels = () if workload.disruption_budget is None else ((_WORKLOAD_LABEL, str(position)),)
    return PodShape(requests=to_resources(amounts, pods=1), labels=labels)


def scheduled_requests(pod_spec: Manifest) -> dict[str, str]:
    """Return what the scheduler reserves for a pod, as the requests of a workload.

    Args:
        pod_spec: The `spec` of the pod, or of a pod template.

    Example:
        >>> scheduled_requests({"containers": [{"name": "app", "resources": {"requests": {"cpu": "250m"}}}]})
        {'cpu': '250m'}
    """
    problems: list[FieldProblem] = []
    found = pod_requests(Fields(pod_spec, "spec", problems))
    if problems:
        raise ManifestError("pod template", problems)
    amounts = {"cpu": f"{found.cpu}m" if found.cpu else "", "memory": str(found.memory or "")}
    amounts |= {name: str(amount) for name, amount in found.scalars}
    return {name: amount for name, amount in amounts.items() if amount}


def type_name(group: NodeGroupSettings, instance_type: InstanceTypeSettings) -> str:
    """Return the name of a type among those of all groups, which may use a name for other prices or sizes."""
    return f"{group.name}/{instance_type.name}"


def catalog_of(groups: Sequence[NodeGroupSettings], node_hour: float) -> Catalog:
    """Return the instance types of all groups."""
    return Catalog.of(
        InstanceType(
            type_name(group, each),
            _amounts(each),
            offerings=(
                Offering(
                    group.zone or "", node_hour if each.price is None else each.price, spot=group.spot is not None
                ),
            ),
        )
        for group in groups
        for each in group.instance_types
    )


def group_of(settings: NodeGroupSettings) -> NodeGroup:
    """Return a group as `ocf.nodegroups.decide` reads it."""
    down = settings.scale_down
    return NodeGroup(
        name=settings.name,
        min_nodes=settings.min_nodes,
        max_nodes=settings.max_nodes,
        instance_types=tuple(type_name(settings, each) for each in settings.instance_types),
        zones=(settings.zone,) if settings.zone else (),
        member_labels={GROUP_LABEL: settings.name},
        choice=TypeChoice(settings.choice),
        batch_size=settings.batch_size,
        scale_up_cooldown=settings.scale_up_cooldown,
        scale_down=ScaleDownPolicy(
            enabled=down.enabled,
            cpu_threshold=down.cpu_threshold,
            memory_threshold=down.memory_threshold,
            duration=down.duration,
            cooldown=down.cooldown,
            most_empty=down.max_empty,
            most_with_pods=down.max_drained,
            consolidate=down.consolidate,
            saving_threshold=down.saving_threshold,
            replace_after=down.replace_after,
        ),
        priority=settings.priority,
    )


def misfit(workload: Workload, instance_type: InstanceTypeSettings) -> Misfit | None:
    """Return why an empty node does not take a pod of the workload; None if it does.

    Example:
        >>> small = InstanceTypeSettings(name="small", cpu="2", memory="8Gi")
        >>> str(misfit(Workload(capacity=1, requests={"cpu": "4"}), small).details[0])
        'cpu: 4000m requested, 2000m free of 2000m'
    """
    node = Node(name="empty", allocatable=_allocatable(instance_type))
    pod = SnapshotPod(name="pod", shape=pod_shape(workload), phase="Pending")
    return fits(pod, node.name, ClusterSnapshot.from_values(nodes=[node], pods=[pod]))


def has_room(shapes: Sequence[PodShape], counts: Sequence[int], allocatable: Resources, *, more: int) -> bool:
    """Return whether a node holds pods, of which one of a shape came last.

    A resource that this pod does not request does not keep it away, as with the plugin NodeResourcesFit.

    Args:
        shapes: The shapes of the pods.
        counts: How many pods there are of each shape, with the last one.
        more: The position of the shape of the last one.

    Example:
        >>> shape = PodShape(requests=Resources(cpu=300, pods=1))
        >>> [has_room([shape], [count], Resources(cpu=1000, memory=2**30, pods=110), more=0) for count in (3, 4)]
        [True, False]
    """
    have = {**allocatable._asdict(), **dict(allocatable.scalars)}
    amounts = [{**each.requests._asdict(), **dict(each.requests.scalars)} for each in shapes]
    return all(
        sum(count * each.get(name, 0) for count, each in zip(counts, amounts, strict=True)) <= have.get(name, 0)
        for name, amount in amounts[more].items()
        if name != "scalars" and amount
    )


def _allocatable(instance_type: InstanceTypeSettings) -> Resources:
    return to_resources({name: amount.nano for name, amount in _amounts(instance_type).items()})


def _amounts(instance_type: InstanceTypeSettings) -> Mapping[str, Quantity]:
    amounts = {"cpu": instance_type.cpu, "memory": instance_type.memory, **instance_type.extended}
    found = {name: Quantity.parse(f"{milli}m") for name, milli in amounts.items()}
    return {**found, "pods": Quantity.parse(instance_type.pods)}
