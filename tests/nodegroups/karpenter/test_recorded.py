"""`cheapest` and `consolidate` against Karpenter: 25 recorded workloads, on the same instance types and prices.

`scripts/record_karpenter.py` describes the data.
"""

from functools import cache
from pathlib import Path
from typing import Final

import pytest

from ocf.nodegroups.predicates import ClusterState, explain
from tests.nodegroups.karpenter.replay import Cluster, Json, Outcome, rows
from tests.nodegroups.karpenter.workloads import MAKERS, make

MOST: Final = 1.02
PAGE: Final = Path(__file__).parents[3] / "docs" / "nodegroups-comparison.md"
NAMES: Final = pytest.mark.parametrize("name", list(MAKERS))


def price(outcome: Json) -> float:
    return float(sum(each["price"] for each in outcome["nodes"]))


@cache
def grown(name: str) -> Cluster:
    """Return the cluster after the nodes for all pods are added."""
    cluster = Cluster.of(rows()[name], rows()[name]["nodes"], kept=False)
    cluster.reconcile()
    return cluster


@cache
def shrunk(name: str) -> Outcome:
    """Return what is left of the nodes that Karpenter added, once the load has fallen and nothing is found any more."""
    cluster = Cluster.of(rows()[name], rows()[name]["up"]["nodes"], kept=True)
    before = cluster.outcome().price
    cluster.settle()
    assert cluster.outcome().price <= before
    return cluster.outcome()


@NAMES
def test_the_workloads_are_those_of_the_generator(name: str) -> None:
    row = rows()[name]
    fields = make(name)
    assert fields == {field: row[field] for field in fields}
    assert row["version"] == "v1.14.0"


@NAMES
def test_new_nodes_take_all_pods_that_karpenter_places_for_at_most_its_price(name: str) -> None:
    ours, theirs = grown(name).outcome(), rows()[name]["up"]
    assert ours.waiting <= set(theirs["waiting"])
    assert ours.price <= price(theirs) * MOST


@NAMES
def test_each_pod_fits_where_it_is_planned(name: str) -> None:
    snapshot = grown(name).snapshot
    state = ClusterState(snapshot)
    for pod in snapshot.pods.values():
        if pod.node_name:
            # As `fits` does, without a state of its own for each pod.
            mark, index = state.mark(), state.index[pod.node_name]
            state.remove(pod.shape, index)
            assert explain(pod.shape, index, state) is None, pod.key
            state.rollback(mark)


@NAMES
def test_nodes_that_are_left_after_the_load_has_fallen_cost_at_most_those_of_karpenter(name: str) -> None:
    ours, theirs = shrunk(name), rows()[name]["down"]
    assert ours.waiting <= set(theirs["waiting"])
    assert ours.price <= price(theirs) * MOST


def totals(phase: str) -> tuple[float, float]:
    """Return our price and that of Karpenter for all workloads."""
    ours = sum((grown(name).outcome() if phase == "up" else shrunk(name)).price for name in MAKERS)
    return ours, sum(price(row[phase]) for row in rows().values())


@pytest.mark.parametrize("phase", ["up", "down"])
def test_nodes_cost_less_in_total_as_the_page_says(phase: str) -> None:
    ours, theirs = totals(phase)
    assert ours < theirs
    assert f"| {ours:.2f} | {theirs:.2f} | {ours / theirs:.3f} |" in PAGE.read_text(encoding="utf-8")
