"""Load over long connections: which pods get it, and what waits."""

from datetime import UTC, datetime
from itertools import pairwise
from operator import mul
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ocf.simulation.engine.clock import SECOND, Clock
from ocf.simulation.engine.connections import ConnectionQueues
from ocf.simulation.engine.pods import Pods
from ocf.simulation.scenario.workload import Workload
from tests.simulation.engine.scenarios import CPU, hpa_of, rows_of, run, scenario_of

CAPACITY = 10.0
QUICK: dict[str, Any] = {"startup": {"mean": "0s"}, "readiness": {"mean": "0s"}, "termination": {"mean": "0s"}}


def queues_of(count: int, *, lifetime: int = 100, limit: float | None = None) -> tuple[Pods, ConnectionQueues]:
    workload = {"capacity": CAPACITY, "connections": {"lifetime": f"{lifetime}s"}, **QUICK}
    clock = Clock(datetime(2026, 1, 1, tzinfo=UTC))
    pods = Pods(Workload.model_validate(workload), count, name="web", container="app", clock=clock, seed=0)
    return pods, ConnectionQueues(limit, lifetime=lifetime * SECOND, pods=pods, pod_capacity=CAPACITY)


def change(pods: Pods, queues: ConnectionQueues, now: int, rate: float) -> None:
    queues.advance(now)
    queues.change(now, rate=rate, capacity=pods.capacity)


def shares_of(queues: ConnectionQueues) -> list[float]:
    return [load.share for load in queues.loads.values()]


def run_to(pods: Pods, queues: ConnectionQueues, end: int, rate: float) -> None:
    """Let time pass, with the changes of the queues themselves."""
    while queues.due <= end:
        change(pods, queues, queues.due, rate)
    change(pods, queues, end, rate)


def test_a_new_pod_gets_the_connections_that_have_ended() -> None:
    """In each twentieth of the lifetime a twentieth of the connections are opened anew, half of them to the new pod."""
    pods, queues = queues_of(1)
    change(pods, queues, 0, 8)
    pods.scale(2, 0)
    change(pods, queues, 0, 8)
    seen = [shares_of(queues)[1]]
    for _ in range(2):
        change(pods, queues, queues.due, 8)
        seen.append(shares_of(queues)[1])
    assert seen == pytest.approx([0, 0.5 / 20, 0.5 / 20 + (0.5 - 0.5 / 20) / 20])
    run_to(pods, queues, 2000 * SECOND, 8)
    assert shares_of(queues) == [0.5, 0.5]
    assert queues.due > 2**60, "nothing changes once all pods have as many"


def test_the_connections_of_a_pod_that_leaves_are_spread_evenly() -> None:
    pods, queues = queues_of(1)
    change(pods, queues, 0, 8)
    pods.scale(3, 0)
    change(pods, queues, 0, 8)
    [oldest, *_] = pods.unsettled
    pods.lose([oldest], 0)
    change(pods, queues, 0, 8)
    assert shares_of(queues) == pytest.approx([1 / 3, 1 / 3, 1 / 3])


def test_an_old_pod_is_overloaded_while_a_new_one_has_nothing() -> None:
    pods, queues = queues_of(1, lifetime=10**6)
    change(pods, queues, 0, 15)
    pods.scale(2, 0)
    change(pods, queues, 0, 15)
    run_to(pods, queues, 10 * SECOND, 15)
    assert (queues.served, queues.capacity, queues.length) == (10, 10, 50)
    assert [load.queue.utilization for load in queues.loads.values()] == [1, 0]


def test_load_waits_while_no_pod_is_ready() -> None:
    pods, queues = queues_of(0, limit=100)
    change(pods, queues, 0, 15)
    run_to(pods, queues, 4 * SECOND, 15)
    assert (queues.served, queues.length, queues.capacity) == (0, 60, 0)
    run_to(pods, queues, 10 * SECOND, 15)
    assert (queues.dropped, queues.length) == (15, 100)
    pods.scale(4, 10 * SECOND)
    change(pods, queues, 10 * SECOND, 15)
    assert (queues.served, queues.length) == (40, 100)
    assert shares_of(queues) == [0.25] * 4


@given(
    st.lists(st.tuples(st.integers(0, 60), st.integers(0, 6), st.integers(0, 70)), min_size=1, max_size=12),
    st.sampled_from([5, 100, 10**6]),
)
def test_all_load_is_served_dropped_or_waits(changes: list[tuple[int, int, int]], lifetime: int) -> None:
    pods, queues = queues_of(2, lifetime=lifetime)
    now, rate, done, offered = 0, 20.0, 0.0, 0.0
    change(pods, queues, 0, rate)
    for later, count, following in changes:
        end = now + later * SECOND
        while now < end:
            until = min(queues.due, end)
            done += queues.served * (until - now) / SECOND
            offered += rate * (until - now) / SECOND
            now = until
            change(pods, queues, now, rate)
            assert sum(shares_of(queues)) == pytest.approx(1 if pods.ready else 0)
            assert queues.served <= pods.capacity + 1e-9
            assert queues.capacity <= pods.capacity + 1e-9
            # Up to its capacity, load is served by the pods that have its connections.
            assert queues.length or rate > queues.capacity or queues.served == pytest.approx(rate)
        pods.scale(count, now)
        rate = float(following)
        change(pods, queues, now, rate)
    assert done + queues.length == pytest.approx(offered, abs=1e-3)


FAILURE = st.builds(lambda at, pods: {"at": f"{at}s", "pods": pods}, st.integers(0, 500), st.integers(1, 4))
ROLLOUT = st.builds(
    lambda at, share: {"at": f"{at}s", "maxSurge": share[0], "maxUnavailable": share[1]},
    st.integers(0, 200),
    st.sampled_from([(1, 0), (0, "50%"), ("25%", "25%"), (3, 2)]),
)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 550), st.integers(0, 160)), min_size=1, max_size=5),
    st.lists(FAILURE, max_size=3),
    st.lists(ROLLOUT, max_size=2),
    st.fixed_dictionaries(
        {
            "replicas": st.integers(0, 8),
            "queue": st.sampled_from([{}, {"length": 0}, {"length": 5}, {"length": 300}]),
            "warmUp": st.sampled_from(["0s", "30s"]),
            "readiness": st.sampled_from([{"mean": "0s"}, {"mean": "15s", "spread": "8s"}]),
        },
        optional={"connections": st.sampled_from([{"lifetime": "10s"}, {"lifetime": "2h"}])},
    ),
    st.booleans(),
)
def test_all_load_of_a_run_is_served_dropped_or_waits(
    steps: list[tuple[int, int]],
    failures: list[dict[str, Any]],
    rollouts: list[dict[str, Any]],
    workload: dict[str, Any],
    is_activated: bool,
) -> None:
    metric = {"metric": {"name": "jobs"}, "target": {"type": "AverageValue", "averageValue": "10"}}
    more = {"activator": {"cooldownPeriod": "1m"}} if is_activated else {}
    scenario = scenario_of(
        hpa_of(CPU, {"type": "External", "external": metric}, maxReplicas=12),
        workload={**workload, "failures": failures, "rollouts": rollouts, "signals": {"jobs": {"source": "queue"}}},
        **more,
    )
    load = {0.0: 20.0, **{float(at): float(rate) for at, rate in sorted(steps)}}
    columns = run(scenario, *load.items()).columns
    lengths = [after - before for before, after in pairwise((*columns.time, 600.0))]
    offered, served, dropped = (
        sum(map(mul, lengths, each)) for each in (columns.load, columns.served, columns.dropped)
    )
    # What waits at the end follows from the last row.
    grown = columns.load[-1] - columns.served[-1] - columns.dropped[-1]
    waiting = columns.queue[-1] + grown * lengths[-1]
    assert served + dropped + waiting == pytest.approx(offered, abs=1e-3)


def test_what_waits_stays_when_a_new_pod_makes_the_part_of_each_smaller() -> None:
    pods, queues = queues_of(1, lifetime=10**6, limit=100)
    change(pods, queues, 0, 15)
    run_to(pods, queues, 20 * SECOND, 15)
    pods.scale(2, 20 * SECOND)
    change(pods, queues, 20 * SECOND, 15)
    assert (queues.length, queues.dropped) == (100, 5)
    change(pods, queues, 20 * SECOND, 0)
    run_to(pods, queues, 24 * SECOND, 0)
    assert (queues.length, queues.dropped) == (60, 0)


def test_what_finds_no_room_when_a_pod_leaves_is_dropped_in_a_second() -> None:
    """Of the 50 units of the pod that leaves, half goes to the one that stays, whose queue is full."""
    pods, queues = queues_of(2, lifetime=10**6, limit=100)
    change(pods, queues, 0, 40)
    run_to(pods, queues, 20 * SECOND, 40)
    assert queues.length == 100
    pods.lose(pods.unsettled[:1], 20 * SECOND)
    change(pods, queues, 20 * SECOND, 20)
    # The connections of the pod that has left are spread over both, so that the other one has 15 per second.
    assert (queues.served, queues.length, queues.dropped) == (20, 100, 30)
    run_to(pods, queues, 21 * SECOND, 20)
    assert (queues.served, queues.length, queues.dropped) == (20, 70, 5)


def test_evenly_spread_connections_are_like_none() -> None:
    """Without a change of the pods, all have as many."""
    hpa = hpa_of(minReplicas=4, maxReplicas=4)
    steps = [(0.0, 20.0), (60.0, 70.0), (120.0, 5.0), (200.0, 30.0)]
    plain, spread = (
        rows_of(run(scenario_of(hpa, workload={"replicas": 4, **more}), *steps))
        for more in ({}, {"connections": {"lifetime": "1m"}})
    )
    assert [list(row) for row in plain] == [list(row) for row in spread]
    for one, other in zip(plain, spread, strict=True):
        assert list(other.values()) == pytest.approx(list(one.values()), nan_ok=True)


@pytest.mark.parametrize(
    ("lifetime", "kept"),
    [pytest.param("24h", 2, id="long connections"), pytest.param("1s", 3, id="short ones")],
)
def test_the_mean_of_a_hot_and_an_idle_pod_is_below_the_target(lifetime: str, kept: int) -> None:
    target = {"type": "Utilization", "averageUtilization": 60}
    hpa = hpa_of({**CPU, "resource": {"name": "cpu", "target": target}})
    workload = {"replicas": 1, "connections": {"lifetime": lifetime}, **QUICK}
    result = run(scenario_of(hpa, workload=workload, duration="5m"), (0, 5), (60, 15))
    assert max(result.columns.replicas) == kept


def test_a_metric_of_pods_is_that_of_the_connections_of_each() -> None:
    target = {"type": "AverageValue", "averageValue": "1"}
    metric = {"type": "Pods", "pods": {"metric": {"name": "rps"}, "target": target}}
    workload = {"replicas": 2, "signals": {"rps": {}}, "connections": {"lifetime": "24h"}, **QUICK}
    scenario = scenario_of(
        hpa_of(metric, minReplicas=2, maxReplicas=4),
        workload=workload,
        duration="46s",
    )
    found = {row["time"]: row["utilization"] for row in rows_of(run(scenario, (0, 8)))}
    # The two new pods have none of the load.
    assert [found[time] for time in (0, 15, 30, 45)] == [4, 2, 2, 2]
