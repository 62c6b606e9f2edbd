"""Node groups of a scenario as the simulation uses them, with their nodes at the start."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from ocf.nodegroups import Catalog, ClusterSnapshot, NodeGroup, decide, select_instance_type
from ocf.nodegroups.packing import NodeTemplate
from ocf.nodegroups.selection import Learned, templates
from ocf.nodegroups.snapshot import PodShape, SnapshotPod
from ocf.simulation.engine.clock import Clock
from ocf.simulation.engine.nodes.machines import NodeKind, kind_of
from ocf.simulation.engine.nodes.pool import NodePool
from ocf.simulation.engine.nodes.scheduler import Scheduler
from ocf.simulation.scenario import Scenario
from ocf.simulation.scenario.node_groups import NodeGroupSettings
from ocf.simulation.scenario.node_values import catalog_of, group_of, pod_shape

__all__ = ["NodeFleet"]


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeFleet:
    """The node groups of a simulation.

    Args:
        settings: The groups of the scenario by name.
        groups: The groups as `ocf.nodegroups` reads them.
        catalog: Their instance types.
        kinds: The kinds of nodes by group, type and zone.
        shapes: The shapes of the pods of each workload.
        scheduler: Binds pods to nodes.
        pool: The nodes.
    """

    settings: Mapping[str, NodeGroupSettings]
    groups: tuple[NodeGroup, ...]
    catalog: Catalog
    kinds: Mapping[tuple[str, str, str], NodeKind]
    shapes: tuple[PodShape, ...]
    scheduler: Scheduler
    pool: NodePool

    @classmethod
    def of(cls, scenarios: Sequence[Scenario], *, clock: Clock, replicas: Sequence[int]) -> "NodeFleet":
        """Return the groups of scenarios that share them, with their nodes at the start.

        Args:
            scenarios: The scenarios, one for each workload; the groups are those of the first one.
            replicas: Number of pods of each workload at the start.
        """
        scenario = scenarios[0]
        shapes = tuple(pod_shape(each.workload, number) for number, each in enumerate(scenarios))
        scheduler = Scheduler(len(scenarios))
        catalog = catalog_of(scenario.node_groups, scenario.objectives.prices.node_hour)
        groups = tuple(map(group_of, scenario.node_groups))
        most_allocated = scenario.nodes.scoring == "MostAllocated"
        fleet = cls(
            settings={group.name: group for group in scenario.node_groups},
            groups=groups,
            catalog=catalog,
            kinds={
                template.key: kind_of(position, template, shapes, most_allocated=most_allocated)
                for position, group in enumerate(groups)
                for template in _templates(group, catalog)
            },
            shapes=shapes,
            scheduler=scheduler,
            pool=NodePool(
                scenario.node_groups,
                scheduler,
                outages=scenario.nodes.zone_outages,
                clock=clock,
                seed=scenario.seed,
            ),
        )
        for kind in fleet._initial(clock, replicas):
            fleet.pool.start(kind)
        return fleet

    def _initial(self, clock: Clock, replicas: Sequence[int]) -> Iterator[NodeKind]:
        """Yield the kinds of the nodes at the start: as many as set, and those that the rest of the pods need."""
        given = [
            self.kinds[_templates(group, self.catalog)[0].key]
            for group in self.groups
            for _ in range(self.settings[group.name].initial_nodes or 0)
        ]
        yield from given
        nodes = [replace(kind.template.make(f"given-{number}"), in_flight=False) for number, kind in enumerate(given)]
        pods = [
            SnapshotPod(name=f"pod-{position}-{number}", shape=shape, phase="Pending")
            for position, (shape, count) in enumerate(zip(self.shapes, replicas, strict=True))
            for number in range(count)
        ]
        # At the start all nodes are there, however many a scale-up may add at once.
        groups = [
            replace(group, batch_size=0) for group in self.groups if self.settings[group.name].initial_nodes is None
        ]
        snapshot = ClusterSnapshot.from_values(nodes=nodes, pods=pods)
        decision = decide(snapshot, groups, catalog=self.catalog, now=clock.at(0))
        for added in decision.scale_up.groups:
            for new in added.add:
                yield self.kinds[new.template.key]


def _templates(group: NodeGroup, catalog: Catalog) -> tuple[NodeTemplate, ...]:
    return templates(group, select_instance_type(group, catalog), Learned(catalog=catalog))
