"""Node groups of a scenario: the nodes that pods wait for, and how they come and go."""

from datetime import timedelta
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from ocf.simulation.fields import Fraction, Milli, Model, Period, Positive, PositivePeriod, Rate
from ocf.simulation.scenario.workload import Delay

__all__ = [
    "BootFailures",
    "InstanceTypeSettings",
    "NodeGroupSettings",
    "NodeSettings",
    "ScaleDownSettings",
    "SpotSettings",
    "ZoneOutage",
]

Percent = Annotated[float, Field(ge=0, le=100, allow_inf_nan=False)]
"""A number between 0 and 100."""


class InstanceTypeSettings(Model):
    """A size of nodes.

    Args:
        name: Its name.
        cpu: What pods may request: the cpu of a node without that of the system and of DaemonSets, in thousandths.
        memory: The same for memory, in thousandths of bytes.
        pods: The number of pods of the workload that a node accepts.
        extended: The same for extended resources by name, such as `nvidia.com/gpu`, in thousandths.
        price: Price of a node for an hour, from the order until it is gone; None: `objectives.prices.nodeHour`.
    """

    name: Annotated[str, Field(min_length=1)]
    cpu: Annotated[Milli, Field(gt=0)]
    memory: Annotated[Milli, Field(gt=0)]
    pods: Annotated[int, Field(ge=1)] = 110
    extended: dict[str, Milli] = Field(default_factory=dict)
    price: Rate | None = None


class ScaleDownSettings(Model):
    """When nodes of a group are removed, and how.

    Args:
        enabled: Whether nodes are removed at all.
        cpu_threshold: Percent of the cpu of a node; a node is underutilized if less is requested.
        memory_threshold: The same for memory; both have to be low.
        duration: How long a node has to be underutilized without a break.
        cooldown: How long after any scaling of the group no node is removed.
        max_empty: Most nodes without pods that are removed at a time.
        max_drained: Most nodes with pods that are removed at a time.
        consolidate: Whether a node is replaced by a cheaper one where its pods fit; thresholds do not count then.
        saving_threshold: Percent of the price of nodes that cheaper ones have to save.
        replace_after: How old a node has to be before a cheaper one replaces it.
        drain_timeout: Time after which a drain is given up, and the node takes pods again.
    """

    enabled: bool = True
    cpu_threshold: Percent = 50.0
    memory_threshold: Percent = 50.0
    duration: Period = timedelta(minutes=10)
    cooldown: Period = timedelta(minutes=10)
    max_empty: Annotated[int, Field(ge=0)] = 10
    max_drained: Annotated[int, Field(ge=0)] = 1
    consolidate: bool = False
    saving_threshold: Annotated[float, Field(ge=1, le=100)] = 15.0
    replace_after: Period = timedelta(hours=1)
    drain_timeout: PositivePeriod = timedelta(minutes=10)


class SpotSettings(Model):
    """Interruptions by the provider, who takes nodes away at random.

    Args:
        interruptions_per_hour: Mean number of interruptions of a node per hour, the same at all of its ages.
        notice: Time from the notice, at which the node is cordoned and its pods are evicted, until it vanishes.
    """

    interruptions_per_hour: Positive
    notice: Period = timedelta(minutes=2)


class BootFailures(Model):
    """Nodes that never take pods; the controller gives them up after `bootTimeout`.

    Args:
        at: Time since the start; nodes that are ordered from then on are concerned.
        duration: How long it lasts; None: until the end of the simulation.
        share: Share of the nodes that fail, at random.
    """

    at: Period = timedelta()
    duration: PositivePeriod | None = None
    share: Annotated[Fraction, Field(gt=0)] = 1.0


class ZoneOutage(Model):
    """A zone in which the provider has no machines.

    Args:
        zone: The zone.
        at: Time since the start.
        duration: How long new nodes are refused; None: until the end of the simulation.
        nodes_lost: Whether the nodes of the zone vanish with their pods, in place of running on.
    """

    zone: Annotated[str, Field(min_length=1)]
    at: Period
    duration: PositivePeriod | None = None
    nodes_lost: bool = True


def _not_empty(types: tuple[InstanceTypeSettings, ...]) -> tuple[InstanceTypeSettings, ...]:
    # A bound of the length would be reported a second time for each invalid item.
    if not types:
        raise ValueError("must have at least one instance type")
    return types


class NodeGroupSettings(Model):
    """A group of nodes.

    Args:
        name: Its name.
        min_nodes: Fewest nodes; missing ones are ordered.
        max_nodes: Most nodes, with those that boot, drain and shut down.
        initial_nodes: Nodes at the start, of the first type; None: those that the pods at the start need.
        instance_types: Instance types of its nodes, in order of preference.
        choice: How the type of a new node is chosen: the first one in which the pods fit, or the cheapest mix of types.
        priority: A group with a higher priority gets pods first; then the one whose new nodes cost less.
        batch_size: Most nodes that are ordered at a time; 0 for no limit.
        scale_up_cooldown: How long after an order nothing is ordered.
        scale_down: When nodes are removed, and how.
        zone: The zone of its nodes; None: they are in none.
        boot: From the order of a node until it takes pods.
        boot_failures: When nodes do not boot.
        boot_timeout: Time after which a node that does not boot is given up, and its type left alone for a while.
        termination: From the deletion of a node, after its drain, until it is gone.
        spot: Interruptions by the provider; None: there are none.
    """

    name: Annotated[str, Field(min_length=1)]
    min_nodes: Annotated[int, Field(ge=0)] = 0
    max_nodes: Annotated[int, Field(ge=1)]
    initial_nodes: Annotated[int, Field(ge=0)] | None = None
    instance_types: Annotated[
        tuple[InstanceTypeSettings, ...], AfterValidator(_not_empty), Field(json_schema_extra={"minItems": 1})
    ]
    choice: Literal["preferred", "cheapest"] = "preferred"
    priority: int = 0
    batch_size: Annotated[int, Field(ge=0)] = 0
    scale_up_cooldown: Period = timedelta()
    scale_down: ScaleDownSettings = ScaleDownSettings()
    zone: Annotated[str, Field(min_length=1)] | None = None
    boot_failures: tuple[BootFailures, ...] = ()
    boot_timeout: PositivePeriod = timedelta(minutes=15)
    boot: Delay = Delay(mean=timedelta(seconds=90))
    termination: Delay = Delay(mean=timedelta(seconds=30))
    spot: SpotSettings | None = None


class NodeSettings(Model):
    """Settings of the scheduler and of the controller of node groups.

    Args:
        sync_period: Time between two decisions about node groups, and between two steps of a drain.
        scoring: Which node with room takes a pod: the one with the smallest or with the largest share of requests, as
            the scoring strategies of the scheduler.
        zone_outages: When zones have no machines.
    """

    sync_period: PositivePeriod = timedelta(seconds=10)
    scoring: Literal["LeastAllocated", "MostAllocated"] = "LeastAllocated"
    zone_outages: tuple[ZoneOutage, ...] = ()
