"""Replay of recorded workloads: the node groups, the snapshots, and what `decide` makes of them."""

import json
import lzma
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any, Final

from ocf.nodegroups import Catalog, ClusterSnapshot, InstanceType, Node, NodeGroup, Offering, decide
from ocf.nodegroups.decide import Direction, ScalingDecision
from ocf.nodegroups.model import GroupStatus, ScaleDownPolicy, TypeChoice
from ocf.nodegroups.predicates.static import StaticFilter
from ocf.nodegroups.snapshot import SnapshotPod, Taint
from ocf.objects import Quantity

DATA: Final = Path(__file__).parents[1] / "data" / "karpenter.jsonl.xz"
NOW: Final = datetime(2026, 1, 31, 12, tzinfo=UTC)
STEP: Final = timedelta(minutes=1)
POOL: Final = "karpenter.sh/nodepool"
KWOK: Final = "karpenter.kwok.sh"
Json = dict[str, Any]


@cache
def rows() -> dict[str, Json]:
    """Return the recorded workloads by name."""
    with lzma.open(DATA, "rt", encoding="utf-8") as lines:
        return {row["name"]: row for row in map(json.loads, lines)}


@dataclass(frozen=True, slots=True)
class Outcome:
    """Nodes with their pods.

    Args:
        nodes: The pods of each node by the name of the node, as (type, zone, pool) and keys.
        waiting: The pods without a node.
        price: The price of all nodes per hour.
    """

    nodes: Mapping[str, tuple[str, ...]]
    waiting: frozenset[str]
    price: float


@dataclass(slots=True)
class Cluster:
    """A cluster that does at once what a decision asks for.

    Args:
        row: The workload.
        snapshot: What there is.
        now: The time.
        statuses: The status of each group by its name.
        decisions: The decisions so far.
    """

    row: Json
    snapshot: ClusterSnapshot
    now: datetime = NOW
    statuses: Mapping[str, GroupStatus] = field(default_factory=dict)
    decisions: list[ScalingDecision] = field(default_factory=list)

    @classmethod
    def of(cls, row: Json, placed: Iterable[Json], *, kept: bool) -> "Cluster":
        """Return a cluster with nodes and pods.

        Args:
            row: The workload.
            placed: The nodes with the names of their pods.
            kept: Whether the load has fallen.
        """
        placed = list(placed)
        where = {name: each["name"] for each in placed for name in each["pods"]}
        found = cls(row, ClusterSnapshot.of(daemon_sets=row["daemonSets"], budgets=row["budgets"]))
        for each in placed:
            found.add(each["name"], found.template(each), created=NOW - timedelta(days=1))
        pods = []
        for group in row["pods"]:
            for name in group["kept" if kept else "names"]:
                manifest = json.loads(json.dumps(group["pod"]))
                manifest["metadata"]["name"] = name
                if name in where:
                    # As Karpenter saw them; budgets do not count for the others.
                    manifest["status"] = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
                pods.append(SnapshotPod.of(manifest))
        for pod in pods:
            found.snapshot = found.snapshot.place(pod, where.get(pod.name, ""))
        return found

    def template(self, wanted: Json) -> Node:
        """Return the node of an instance type in a zone and a pool."""
        owner = next(each for each in groups(self.row) if each.name == wanted["pool"])
        made = catalog(self.row)
        labels = {
            **made.types[wanted["type"]].labels,
            "node.kubernetes.io/instance-type": wanted["type"],
            "topology.kubernetes.io/zone": wanted["zone"],
            **owner.labels,
            **owner.member_labels,
        }
        return Node(name="", labels=labels, taints=owner.taints, allocatable=made.allocatable(wanted["type"]))

    def add(self, name: str, made: Node, *, created: datetime) -> None:
        """Add a node that is ready, with the pods of its DaemonSets."""
        labels = {**made.labels, "kubernetes.io/hostname": name}
        made = replace(made, name=name, labels=labels, in_flight=False, ready=True, created=created)
        self.snapshot = self.snapshot.with_node(made)
        for each in self.row["daemonSets"]:
            template, owner = each["spec"]["template"], {"kind": "DaemonSet", "name": each["metadata"]["name"]}
            metadata = {
                **template["metadata"],
                "namespace": each["metadata"]["namespace"],
                "name": f"{owner['name']}-{name}",
                "ownerReferences": [owner | {"apiVersion": "apps/v1", "uid": owner["name"], "controller": True}],
            }
            pod = SnapshotPod.of({"metadata": metadata, "spec": template["spec"]})
            if StaticFilter(pod.shape, self.snapshot).check_node(made) is None:
                self.snapshot = self.snapshot.place(pod, name)

    def reconcile(self) -> ScalingDecision:
        """Decide, and carry the decision out."""
        decision = self.decide()
        self.carry_out(decision)
        return decision

    def decide(self) -> ScalingDecision:
        """Decide what to add and to remove."""
        return decide(self.snapshot, groups(self.row), catalog=catalog(self.row), now=self.now, statuses=self.statuses)

    def carry_out(self, decision: ScalingDecision) -> None:
        """Add and remove the nodes of a decision, with their pods."""
        names = {}
        new_nodes = [new for group in decision.scale_up.groups for new in group.add]
        new_nodes += [new for each in decision.replacements for new in each.new_nodes]
        for new in new_nodes:
            names[new.name] = f"made-{len(self.decisions)}-{new.name}"
            self.add(names[new.name], new.template.node, created=self.now)
        for key, name in decision.scale_up.placements.items():
            self.snapshot = self.snapshot.place(self.snapshot.pods[key], names.get(name, name))
        for removal in decision.scale_down.removals:
            for key, name in removal.placements.items():
                self.snapshot = self.snapshot.place(self.snapshot.pods[key], name)
        for removal in decision.scale_down.removals:
            for pod in self.snapshot.pods_on(removal.node):
                assert pod.of_daemon_set, f"{pod.key} has no place after {removal.node}"
                self.snapshot = self.snapshot.without_pod(pod.key)
            self.snapshot = self.snapshot.without_node(removal.node)
        self.statuses, self.now = decision.statuses, self.now + STEP
        self.decisions.append(decision)

    def settle(self, most: int = 100) -> None:
        """Reconcile until nothing is added or removed any more."""
        while self.reconcile().direction is not Direction.NONE:
            assert len(self.decisions) < most, f"nodes are still added or removed after {most} reconciles"

    def outcome(self) -> Outcome:
        """Return what there is."""
        made = catalog(self.row)
        price = 0.0
        for node in self.snapshot.nodes.values():
            labels = node.labels
            found = made.price(labels["node.kubernetes.io/instance-type"], labels["topology.kubernetes.io/zone"])
            assert found is not None
            price += found
        nodes = {name: tuple(pod.key for pod in self.snapshot.pods_on(name)) for name in self.snapshot.nodes}
        return Outcome(nodes, frozenset(pod.name for pod in self.snapshot.pods.values() if not pod.node_name), price)


def catalog(row: Json) -> Catalog:
    """Return the instance types of a workload, with what the kwok provider leaves of them for pods."""
    return Catalog.of(
        InstanceType(
            each["name"],
            {key: Quantity.parse(amount) for key, amount in each["resources"].items()},
            {key: Quantity.parse(amount) for key, amount in row["allocatable"][each["name"]].items()},
            tuple(Offering(zone, price) for zone, price in each["prices"].items()),
            {
                "kubernetes.io/arch": each["architecture"],
                "kubernetes.io/os": "linux",
                "karpenter.sh/capacity-type": "on-demand",
                f"{KWOK}/instance-family": each["name"].split("-")[0],
                f"{KWOK}/instance-cpu": each["resources"]["cpu"],
                f"{KWOK}/instance-memory": each["resources"]["memory"],
                f"{KWOK}/instance-size": each["resources"]["cpu"],
            },
        )
        for each in row["types"]
    )


def groups(row: Json) -> tuple[NodeGroup, ...]:
    """Return one group for each pool, which removes nodes as freely as a pool without disruption budgets."""
    policy = ScaleDownPolicy(
        duration=timedelta(0),
        cooldown=timedelta(0),
        most_empty=1000,
        most_with_pods=1000,
        consolidate=True,
        saving_threshold=1,
        replace_after=timedelta(0),
    )
    return tuple(
        NodeGroup(
            name=each["name"],
            max_nodes=1000,
            instance_types=tuple(kind["name"] for kind in row["types"]),
            labels=each["labels"],
            taints=tuple(Taint(taint["key"], taint["value"], taint["effect"]) for taint in each["taints"]),
            member_labels={POOL: each["name"]},
            choice=TypeChoice.CHEAPEST,
            scale_down=policy,
        )
        for each in row["pools"]
    )
