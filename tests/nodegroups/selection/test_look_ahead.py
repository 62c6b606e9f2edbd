"""Packing that chooses each node for the value of all pods that it takes."""

from typing import Any

from ocf.nodegroups.instance_types import InstanceType, Offering
from ocf.nodegroups.model import Catalog
from ocf.nodegroups.packing import NodeTemplate, Packing, group_pods, pending_pods, prepare
from ocf.nodegroups.selection import (
    Learned,
    cheapest_packing,
    select_instance_type,
    templates,
    total_requests,
    unit_prices,
)
from ocf.nodegroups.selection.look_ahead import look_ahead
from ocf.nodegroups.snapshot import ClusterSnapshot
from ocf.objects import Quantity
from tests.nodegroups.groups import group
from tests.nodegroups.manifests import pod

GPU = "example.com/gpu"


def kind(name: str, price: float, **resources: str) -> InstanceType:
    amounts = {"pods": "110", **{GPU if key == "gpu" else key: amount for key, amount in resources.items()}}
    size = {key: Quantity.parse(amount) for key, amount in amounts.items()}
    return InstanceType(name, size, offerings=(Offering("a", price), Offering("b", price)))


TYPES = (kind("compute", 1.0, cpu="8", memory="16Gi"), kind("memory", 1.5, cpu="8", memory="64Gi"))
GPUS = kind("gpu", 4.0, cpu="8", memory="32Gi", gpu="1")


def packed(pods: list[dict[str, Any]], *types: InstanceType, most: int = 100, budget: int = 10_000) -> Packing | None:
    owner, catalog = group(instance_types=tuple(each.name for each in types), zones=()), Catalog.of(types)
    snapshot = ClusterSnapshot.of(pods=pods)
    state = prepare(snapshot)
    offers: list[NodeTemplate] = list(templates(owner, select_instance_type(owner, catalog), Learned(catalog=catalog)))
    demands = group_pods(pending_pods(snapshot), offers[0].node.allocatable)
    prices = unit_prices(offers, total_requests(demands))
    found = look_ahead(state, demands, offers, prices, limits={owner.name: most}, budget=budget)
    again = cheapest_packing(prepare(snapshot), demands, offers, limits={owner.name: most})
    assert found is None or again.unplaced or round(again.price, 9) <= round(found.price, 9)
    return found


def kinds(packing: Packing | None) -> list[str]:
    assert packing is not None
    return sorted(new.template.instance_type for new in packing.new_nodes)


def pods(prefix: str, count: int, **parts: Any) -> list[dict[str, Any]]:
    return [pod(f"{prefix}-{number}", labels={"app": prefix}, **parts) for number in range(count)]


def test_pods_that_complement_each_other_share_a_node() -> None:
    """Apart, they would fill one node of each type and a third one."""
    together = [*pods("cpu", 6, cpu="2", memory="1Gi"), *pods("memory", 4, cpu="1", memory="15Gi")]
    assert kinds(packed(together, *TYPES)) == ["compute", "memory"]


def test_room_on_a_node_that_is_needed_anyway_is_used() -> None:
    some = [pod("train", cpu="4", memory="8Gi"), *pods("web", 4, cpu="1", memory="1Gi")]
    some[0]["spec"]["containers"][0]["resources"]["requests"][GPU] = "1"
    assert kinds(packed(some, *TYPES, GPUS)) == ["gpu"]


def test_equal_loads_are_repeated() -> None:
    found = packed(pods("web", 40, cpu="2", memory="1Gi"), *TYPES, budget=60)
    assert kinds(found) == ["compute"] * 10


def test_it_gives_up_beyond_the_limit_of_nodes_and_the_budget() -> None:
    many = pods("web", 40, cpu="2", memory="1Gi")
    assert packed(many, *TYPES, most=9) is None
    assert packed(many, *TYPES, budget=1) is None
    assert packed(pods("huge", 1, cpu="9"), *TYPES) is None


def test_pods_that_need_two_zones_get_a_node_in_each() -> None:
    selector = {"matchLabels": {"app": "web"}}
    rule = {
        "topologyKey": "topology.kubernetes.io/zone",
        "maxSkew": 1,
        "minDomains": 2,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": selector,
    }
    found = packed(pods("web", 8, cpu="2", memory="1Gi", topologySpreadConstraints=[rule]), *TYPES)
    assert found is not None
    assert sorted(new.template.zone for new in found.new_nodes) == ["a", "b"]
    assert len(found.placements) == 8
