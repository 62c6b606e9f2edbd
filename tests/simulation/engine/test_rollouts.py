"""Rollouts: what the Deployment controller creates and deletes next."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ocf.simulation.engine.clock import SECOND, Clock
from ocf.simulation.engine.pods import Pods
from ocf.simulation.engine.rollouts import Rollouts, bounds_of, proportional, rolled
from ocf.simulation.scenario.workload import Rollout, Workload
from tests.simulation.engine.scenarios import hpa_of, rows_of, run, scenario_of

shares = st.integers(0, 12) | st.integers(0, 100).map("{}%".format)
strategies = st.builds(Rollout, at=st.just(timedelta()), max_surge=shares, max_unavailable=shares)
revisions = st.lists(st.tuples(st.integers(0, 20), st.integers(0, 20)), min_size=1, max_size=4).map(
    lambda found: {number: (count, min(ready, count)) for number, (count, ready) in enumerate(found) if count}
)


def strategy_of(surge: int | str, unavailable: int | str) -> Rollout:
    return Rollout(at=timedelta(), max_surge=surge, max_unavailable=unavailable)


@pytest.mark.parametrize(
    ("surge", "unavailable", "desired", "bounds"),
    [
        pytest.param("25%", "25%", 10, (3, 2), id="up and down"),
        pytest.param("25%", "25%", 1, (1, 0), id="one pod"),
        pytest.param(0, "25%", 3, (0, 1), id="neither"),
        pytest.param(2, 5, 3, (2, 3), id="at most all"),
        pytest.param("25%", "25%", 0, (0, 0), id="no pods"),
        pytest.param("200%", 0, 3, (6, 0), id="more than all"),
    ],
)
def test_percentages_round_so_that_a_rollout_can_go_on(
    surge: int | str, unavailable: int | str, desired: int, bounds: tuple[int, int]
) -> None:
    assert bounds_of(strategy_of(surge, unavailable), desired) == bounds


@pytest.mark.parametrize(
    ("sizes", "wanted"),
    [
        pytest.param({0: (10, 10)}, {1: 3}, id="the surge first"),
        pytest.param({0: (10, 10), 1: (3, 0)}, {0: 8}, id="then old ones, as many as may be unavailable"),
        pytest.param({0: (8, 8), 1: (3, 0)}, {1: 5}, id="and new ones in their place"),
        pytest.param({0: (8, 8), 1: (5, 0)}, {}, id="then it waits"),
        pytest.param({0: (8, 8), 1: (5, 1)}, {0: 7}, id="for each that is ready"),
        pytest.param({0: (8, 5), 1: (5, 0)}, {}, id="old ones that are not ready count, too"),
        pytest.param({0: (10, 5), 1: (3, 3)}, {0: 5}, id="old ones that are not ready go first"),
        pytest.param({0: (3, 3), 1: (10, 9)}, {0: 0}, id="the last old ones"),
        pytest.param({1: (10, 9)}, {}, id="the end"),
        pytest.param({0: (2, 2), 1: (12, 12)}, {1: 10}, id="fewer are desired"),
        pytest.param({-1: (4, 4), 0: (6, 6), 1: (3, 3)}, {-1: 0, 0: 5}, id="the oldest revision first"),
    ],
)
def test_ten_pods_are_replaced_by_three_more_and_two_less(
    sizes: dict[int, tuple[int, int]], wanted: dict[int, int]
) -> None:
    assert rolled(sizes, 10, 1, strategy_of("25%", "25%")) == wanted


@pytest.mark.parametrize(
    ("sizes", "before", "after", "wanted"),
    [
        pytest.param({0: 8, 1: 5}, 10, 15, {0: 11, 1: 7}, id="the example of the documentation of Kubernetes"),
        pytest.param({0: 8, 1: 5}, 10, 5, {0: 5, 1: 3}, id="down"),
        pytest.param({0: 5, 1: 5}, 10, 11, {0: 5, 1: 9}, id="of equal ones the new one takes the rest"),
        pytest.param({0: 6, 1: 6}, 10, 9, {0: 6, 1: 6}, id="within the surge nothing changes"),
        pytest.param({0: 10}, 10, 15, {0: 15}, id="only old ones"),
        pytest.param({0: 8, 1: 5}, 10, 0, {0: 0, 1: 0}, id="to nothing"),
    ],
)
def test_a_scale_during_a_rollout_is_shared(
    sizes: dict[int, int], before: int, after: int, wanted: dict[int, int]
) -> None:
    assert proportional(sizes, before=before, after=after, strategy=strategy_of(3, 2)) == wanted


@given(revisions, st.integers(0, 20), strategies)
def test_no_step_leaves_the_bounds_further(sizes: dict[int, tuple[int, int]], desired: int, strategy: Rollout) -> None:
    newest = max(sizes, default=0)
    surge, unavailable = bounds_of(strategy, desired)
    wanted = rolled(sizes, desired, newest, strategy)
    counts = {revision: count for revision, (count, _) in sizes.items()}
    before, after = sum(counts.values()), sum({**counts, **wanted}.values())
    ready = sum(found for _, found in sizes.values())
    # Old pods that are ready go only as far as enough others are; new ones are those that are desired.
    lost = sum(max(0, sizes[old][1] - wanted.get(old, sizes[old][0])) for old in sizes if old != newest)
    assert after <= max(before, desired + surge)
    assert lost <= max(0, ready - (desired - unavailable))


def pods_of(count: int, **workload: Any) -> Pods:
    read = Workload.model_validate({"capacity": 10, **workload})
    return Pods(read, count, name="web", container="app", clock=Clock(datetime(2026, 1, 1, tzinfo=UTC)), seed=0)


@given(st.integers(0, 12), strategies, st.lists(st.tuples(st.integers(0, 200), st.integers(0, 12)), max_size=4))
def test_a_rollout_ends_with_new_pods_only(count: int, strategy: Rollout, scales: list[tuple[int, int]]) -> None:
    pods = pods_of(count, startup={"mean": "3s"}, readiness={"mean": "20s", "spread": "9s"})
    rollouts = Rollouts([strategy], pods)
    rollouts.advance(0, count)
    for at, replicas in sorted((at * SECOND, replicas) for at, replicas in scales):
        while pods.due <= at:
            now = pods.due
            pods.advance(now)
            rollouts.advance(now, count)
        count = replicas
        if rollouts.is_active:
            rollouts.scale(count, at)
        else:
            pods.scale(count, at)
    while pods.due < 2**60:
        now = pods.due
        pods.advance(now)
        rollouts.advance(now, count)
    assert not rollouts.is_active
    assert pods.revisions() == ({1: (count, count)} if count else {})
    assert pods.count == count


def test_the_pods_of_a_rollout_pull_its_image() -> None:
    workload = {"startup": {"mean": "1s"}, "image_pull": {"mean": "5s"}, "readiness": {"mean": "1s"}}
    pods = pods_of(2, **workload)
    pulled = Rollout.model_validate(
        {"at": "0s", "max_surge": "100%", "max_unavailable": 0, "image_pull": {"mean": "60s"}}
    )
    rollouts = Rollouts([pulled], pods)
    rollouts.advance(0, 2)
    assert [pod.begun // SECOND for pod in pods.unsettled] == [61, 61]
    pods.advance(62 * SECOND)
    rollouts.advance(62 * SECOND, 2)
    assert not rollouts.is_active
    pods.scale(3, 70 * SECOND)
    assert [pod.begun // SECOND for pod in pods.unsettled] == [61, 61, 76]


def test_a_failed_pod_is_replaced_by_one_of_its_revision() -> None:
    pods = pods_of(4, startup={"mean": "1s"}, readiness={"mean": "60s"})
    rollouts = Rollouts([strategy_of(1, 0)], pods)
    rollouts.advance(0, 4)
    pods.fail(2, 5 * SECOND)
    assert {revision: count for revision, (count, _) in pods.revisions().items()} == {0: 4, 1: 1}


def test_a_total_per_replica_is_divided_by_all_pods() -> None:
    """`status.replicas` of the scale counts the surge."""
    target = {"type": "AverageValue", "averageValue": "10"}
    metric = {"type": "External", "external": {"metric": {"name": "rps"}, "target": target}}
    workload = {
        "replicas": 4,
        "signals": {"rps": {}},
        "rollouts": [{"at": "60s", "max_surge": "100%", "max_unavailable": 0}],
        "readiness": {"mean": "20s"},
    }
    result = run(scenario_of(hpa_of(metric), workload=workload, duration="3m"), (0, 40))
    found = {row["time"]: (row["utilization"], row["ready"] + row["starting"]) for row in rows_of(result)}
    assert found[45] == (1.0, 4)
    assert found[75] == (0.5, 8)
    assert found[105] == (1.0, 4)
