"""Choice of instance types."""

from collections import Counter
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ocf.nodegroups.instance_types import InstanceType, Offering
from ocf.nodegroups.model import Catalog
from ocf.nodegroups.packing import add_nodes, group_pods, pending_pods, prepare, reference_size
from ocf.nodegroups.selection import Learned, cheapest_packing, select_instance_type, templates
from ocf.nodegroups.snapshot import ClusterSnapshot, Resources
from ocf.objects import Quantity
from tests.nodegroups.groups import CATALOG, GI, group
from tests.nodegroups.manifests import pod

ALL = ("small", "medium", "large")
CPU = {"cpu": Quantity.parse(1)}
SOLD_OUT = Catalog.of(
    [
        InstanceType("small", CPU, offerings=(Offering("a", 0.1, available=False), Offering("b", 0.1))),
        InstanceType("medium", CPU, offerings=(Offering("a", 0.1), Offering("a", 0.05, available=False))),
        InstanceType("nowhere", CPU),
    ]
)


@pytest.mark.parametrize(
    ("parts", "catalog", "expected"),
    [
        pytest.param({}, CATALOG, ("small", "a"), id="the first"),
        pytest.param({"preferred": "large"}, CATALOG, ("large", "a"), id="the preferred one"),
        pytest.param({"preferred": "huge"}, CATALOG, ("small", "a"), id="not a preferred one that is not in the group"),
        pytest.param({"preferred": "small"}, SOLD_OUT, ("medium", "a"), id="the first that is available in the zone"),
        pytest.param({"zones": ("b",)}, SOLD_OUT, ("small", "b"), id="in another zone"),
        pytest.param(
            {"zones": ("a", "b"), "instance_types": ("small",)}, SOLD_OUT, ("small", "b"), id="zones in order"
        ),
        pytest.param({"instance_types": ("nowhere",), "zones": ()}, SOLD_OUT, None, id="none"),
    ],
)
def test_the_first_type(parts: dict[str, Any], catalog: Catalog, expected: tuple[str, str] | None) -> None:
    fields: dict[str, Any] = {"instance_types": ALL, **parts}
    first = select_instance_type(group(**fields), catalog).first
    assert (first and (first[0].name, first[1].zone)) == expected


def test_a_refused_type_is_not_tried_and_the_reason_is_given() -> None:
    selection = select_instance_type(group(instance_types=ALL), CATALOG, backed_off=frozenset({("small", "a")}))
    assert selection.first
    assert selection.first[0].name == "medium"
    assert selection.reasons == ("instance type small was refused in a and is tried again later",)


def price(pods: list[dict[str, Any]], types: tuple[str, ...] = ALL, catalog: Catalog = CATALOG) -> float:
    owner = group(instance_types=types, max_nodes=1000)
    snapshot = ClusterSnapshot.of(pods=pods)
    state = prepare(snapshot)
    offers = templates(owner, select_instance_type(owner, catalog), Learned(catalog=catalog))
    packing = cheapest_packing(state, group_pods(pending_pods(snapshot), reference_size(state, offers)), offers)
    assert not packing.unplaced
    for new in packing.new_nodes:
        shapes = [snapshot.pods[key].shape for key, name in packing.placements.items() if name == new.name]
        assert sum(shape.requests.cpu for shape in shapes) <= new.template.node.allocatable.cpu
        assert sum(shape.requests.memory for shape in shapes) <= new.template.node.allocatable.memory
    return round(packing.price, 2)


def many(count: int, **parts: Any) -> list[dict[str, Any]]:
    return [pod(f"{parts.get('cpu')}-{number}", **parts) for number in range(count)]


@pytest.mark.parametrize(
    ("pods", "expected"),
    [
        pytest.param(many(1, cpu="1"), 0.1, id="one small pod"),
        pytest.param(many(4, cpu="1"), 0.2, id="one medium node"),
        pytest.param(many(16, cpu="1"), 0.72, id="one large node"),
        pytest.param(many(17, cpu="1"), 0.82, id="a large and a small node"),
        pytest.param(many(2, cpu="3"), 0.4, id="two medium nodes instead of a large one"),
        pytest.param(many(1, cpu="10"), 0.72, id="only the large type takes it"),
        pytest.param(many(4, cpu="1", memory="15Gi"), 0.72, id="by memory"),
    ],
)
def test_the_cheapest_mix(pods: list[dict[str, Any]], expected: float) -> None:
    assert price(pods) == expected


@settings(max_examples=40)
@given(st.lists(st.tuples(st.integers(1, 32), st.integers(1, 32)), min_size=1, max_size=14))
def test_the_mix_costs_no_more_than_one_type_and_no_less_than_the_resources(sizes: list[tuple[int, int]]) -> None:
    pods = [pod(f"p{number}", cpu=f"{cpu * 250}m", memory=f"{mem}Gi") for number, (cpu, mem) in enumerate(sizes)]
    found = price(pods)
    cores, memory = sum(cpu for cpu, _ in sizes) / 4, sum(mem for _, mem in sizes)
    assert found >= round(max(cores / 16, memory / 64) * 0.72, 2) - 0.01
    assert found <= price(pods, ("large",))


def test_a_state_is_as_before_after_comparing_mixes() -> None:
    snapshot = ClusterSnapshot.of(pods=many(20, cpu="1"))
    state = prepare(snapshot)
    offers = templates(
        group(instance_types=ALL), select_instance_type(group(instance_types=ALL), CATALOG), Learned(catalog=CATALOG)
    )
    demands = group_pods(pending_pods(snapshot), Resources(cpu=1000, memory=GI))
    first = cheapest_packing(state, demands, offers)
    assert state.nodes == []
    assert cheapest_packing(state, demands, offers) == first
    assert add_nodes(state, demands, offers[:1]).price >= first.price


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        pytest.param("topology.kubernetes.io/zone", [2, 2], id="zones that have no node yet"),
        pytest.param("kubernetes.io/hostname", [1, 1, 1, 1], id="hosts that join later have no pods"),
    ],
)
def test_pods_spread_over_all_topologies_that_new_nodes_can_be_in(key: str, expected: list[int]) -> None:
    rule = {
        "topologyKey": key,
        "maxSkew": 1,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "web"}},
    }
    snapshot = ClusterSnapshot.of(pods=[pod(f"p{number}", topologySpreadConstraints=[rule]) for number in range(4)])
    owner = group(instance_types=ALL, zones=("a", "b"))
    state = prepare(snapshot)
    offers = templates(owner, select_instance_type(owner, CATALOG), Learned(catalog=CATALOG))
    demands = group_pods(pending_pods(snapshot), reference_size(state, offers))
    found = cheapest_packing(state, demands, offers)
    assert state.nodes == []
    assert not found.unplaced
    assert sorted(Counter(found.placements.values()).values()) == expected
    where = {new.name: new.template.zone for new in found.new_nodes}
    assert len(set(where.values())) == (2 if "zone" in key else 1)
