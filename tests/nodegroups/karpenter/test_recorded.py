"""`cheapest` and `consolidate` against Karpenter: 49 recorded workloads, on the same instance types and prices.

`scripts/record/karpenter.py` describes the data.
"""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final, NamedTuple

import pytest

from ocf.nodegroups.predicates import ClusterState, explain
from ocf.nodegroups.snapshot import ClusterSnapshot
from tests.nodegroups.karpenter.replay import Cluster, Json, Outcome, rows
from tests.nodegroups.karpenter.workloads import MAKERS, make
from tests.once import once, run_folder

MOST: Final = 1.02
# Room on nodes that are there is filled before nodes are added, and what these make free under a spread is not used.
PAGE: Final = Path(__file__).parents[3] / "docs" / "nodes" / "nodegroups-comparison.md"
NAMES: Final = pytest.mark.parametrize("name", list(MAKERS))


def price(outcome: Json) -> float:
    return float(sum(each["price"] for each in outcome["nodes"]))


class Result(NamedTuple):
    """What a workload comes to.

    Args:
        waiting: The pods without a node.
        price: The price of all nodes per hour.
        misfits: The pods that do not fit where they are planned, with the reason.
    """

    waiting: list[str]
    price: float
    misfits: list[str]

    @classmethod
    def of(cls, outcome: Outcome, misfits: Iterable[str] = ()) -> "Result":
        return cls(sorted(outcome.waiting), outcome.price, list(misfits))


@pytest.fixture(scope="session")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder where the processes of a test run share results: each workload takes up to seconds."""
    return run_folder(tmp_path_factory) / "karpenter"


def grown(name: str, results: Path) -> Result:
    """Return what there is after the nodes for all pods are added."""

    def compute() -> Result:
        cluster = Cluster.of(rows()[name], rows()[name]["nodes"], kept=False)
        cluster.reconcile()
        return Result.of(cluster.outcome(), misfits(cluster.snapshot))

    return Result(*once(results / f"grown-{name}.json", compute))


def shrunk(name: str, results: Path) -> Result:
    """Return what is left of the nodes that Karpenter added, once the load has fallen and nothing is found any more."""

    def compute() -> Result:
        cluster = Cluster.of(rows()[name], rows()[name]["up"]["nodes"], kept=True)
        before = cluster.outcome().price
        cluster.settle()
        assert cluster.outcome().price <= before
        return Result.of(cluster.outcome())

    return Result(*once(results / f"shrunk-{name}.json", compute))


def misfits(snapshot: ClusterSnapshot) -> Iterator[str]:
    """Yield the pods that do not fit, as `fits` finds them, but without a state of its own for each pod."""
    state = ClusterState(snapshot)
    for pod in snapshot.pods.values():
        if pod.node_name:
            mark, index = state.mark(), state.index[pod.node_name]
            state.remove(pod.shape, index)
            misfit = explain(pod.shape, index, state)
            if misfit is not None:
                yield f"{pod.key}: {misfit}"
            state.rollback(mark)


@NAMES
def test_the_workloads_are_those_of_the_generator(name: str) -> None:
    row = rows()[name]
    fields = make(name)
    assert fields == {field: row[field] for field in fields}
    assert row["version"] == "v1.15.0"


@NAMES
def test_new_nodes_take_all_pods_that_karpenter_places_for_at_most_its_price(name: str, results: Path) -> None:
    ours, theirs = grown(name, results), rows()[name]["up"]
    assert set(ours.waiting) <= set(theirs["waiting"])
    assert ours.price <= price(theirs) * MOST


@NAMES
def test_each_pod_fits_where_it_is_planned(name: str, results: Path) -> None:
    assert grown(name, results).misfits == []


@NAMES
def test_nodes_that_are_left_after_the_load_has_fallen_cost_at_most_those_of_karpenter(
    name: str, results: Path
) -> None:
    ours, theirs = shrunk(name, results), rows()[name]["down"]
    assert set(ours.waiting) <= set(theirs["waiting"])
    assert ours.price <= price(theirs) * MOST


@pytest.mark.parametrize("phase", ["up", "down"])
def test_nodes_cost_less_in_total_as_the_page_says(phase: str, results: Path) -> None:
    ours = sum((grown if phase == "up" else shrunk)(name, results).price for name in MAKERS)
    theirs = sum(price(row[phase]) for row in rows().values())
    assert ours < theirs
    assert f"| {ours:.2f} | {theirs:.2f} | {ours / theirs:.3f} |" in PAGE.read_text(encoding="utf-8")
