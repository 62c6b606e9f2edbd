"""Pods of a workload: when they serve, and which of them leave first."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from ocf.simulation.engine.clock import SECOND, Clock
from ocf.simulation.engine.pods import Pods
from ocf.simulation.scenario.workload import Delay, Workload

MINUTE = 60 * SECOND


def pods_of(count: int, *, seed: int = 0, **workload: Any) -> Pods:
    read = Workload.model_validate({"capacity": 10, **workload})
    clock = Clock(datetime(2026, 1, 1, tzinfo=UTC))
    return Pods(read, count, name="web", container="app", clock=clock, seed=seed)


def names(pods: Pods) -> set[str]:
    return {pod.name for pod in (*pods.settled, *pods.unsettled)}


def test_pods_of_the_start_serve_at_once() -> None:
    pods = pods_of(3)
    assert (pods.count, pods.ready, pods.capacity) == (3, 3, 30)


def test_a_new_pod_serves_when_it_is_ready() -> None:
    pods = pods_of(1, startup={"mean": "3s"}, readiness={"mean": "7s"})
    pods.scale(2, 0)
    seen = []
    while pods.due <= MINUTE:
        now = pods.due
        pods.advance(now)
        [pod] = pods.unsettled
        seen.append((now // SECOND, pods.ready, pods.capacity, pod.seen.ready and pod.seen.ready.status))
    assert seen == [(3, 1, 10, "False"), (10, 2, 20, "True")]


def test_the_start_time_is_before_the_pull_of_the_image() -> None:
    """The kubelet sets it when it takes the pod, whose phase is Pending until its containers start."""
    pods = pods_of(1, startup={"mean": "3s"}, image_pull={"mean": "60s"}, readiness={"mean": "7s"})
    pods.scale(2, 0)
    seen = []
    while pods.due <= 2 * MINUTE:
        now = pods.due
        pods.advance(now)
        [pod] = pods.unsettled
        assert pod.seen.started == datetime(2026, 1, 1, 0, 0, 3, tzinfo=UTC)
        seen.append((now // SECOND, pod.seen.phase, pod.seen.ready and pod.seen.ready.status))
    assert seen == [(3, "Pending", "False"), (63, "Running", "False"), (70, "Running", "True")]


def test_a_pod_that_pulls_its_image_is_deleted_before_a_younger_one_that_runs() -> None:
    pods = pods_of(1, startup={"mean": "0s"}, readiness={"mean": "60s"})
    pods.revise(Delay(mean=timedelta(minutes=1)))
    pods.scale(2, 0)
    pods.revise(None)
    pods.scale(3, 30 * SECOND)
    pods.scale(2, 40 * SECOND)
    assert names(pods) == {"web-0", "web-2"}


def test_a_pod_is_settled_after_its_start_is_over() -> None:
    usage = {"cpu": {"busy": "1", "starting": "2", "starting_time": "30s"}}
    pods = pods_of(1, startup={"mean": "0s"}, readiness={"mean": "10s"}, usage=usage)
    pods.scale(2, 0)
    pods.advance(10 * SECOND)
    pods.settle(44 * SECOND, 15 * SECOND)
    assert len(pods.settled) == 1
    pods.settle(45 * SECOND, 15 * SECOND)
    assert len(pods.settled) == 2


def test_a_pod_warms_up_along_a_straight_line() -> None:
    """Ten steps add up to half of the full capacity during the warm-up."""
    pods = pods_of(0, startup={"mean": "0s"}, readiness={"mean": "0s"}, warm_up="100s")
    pods.scale(1, 0)
    served, now = 0.0, 0
    while now < 100 * SECOND:
        until = pods.due
        served += pods.capacity * (until - now) / SECOND
        now = until
        pods.advance(now)
    assert served == pytest.approx(100 * 10 / 2)
    assert pods.capacity == 10
    assert pods.due > 2**60


def test_pods_that_are_not_ready_are_deleted_first() -> None:
    pods = pods_of(2, startup={"mean": "1s"}, readiness={"mean": "30s"})
    pods.scale(3, 0)
    pods.advance(2 * SECOND)
    pods.scale(4, 2 * SECOND)
    pods.scale(3, 2 * SECOND)
    assert names(pods) == {"web-0", "web-1", "web-2"}, "the pod that has not started leaves before the started one"
    pods.scale(2, 2 * SECOND)
    assert names(pods) == {"web-0", "web-1"}


def test_younger_pods_are_deleted_before_older_ones() -> None:
    pods = pods_of(2, startup={"mean": "1s"}, readiness={"mean": "0s"})
    pods.scale(4, 0)
    pods.advance(MINUTE)
    pods.scale(2, MINUTE)
    assert names(pods) == {"web-0", "web-1"}


def test_pods_of_about_the_same_age_are_deleted_in_a_random_order() -> None:
    """The ReplicaSet controller compares the logarithms of the ages."""
    left = []
    for seed in range(20):
        pods = pods_of(4, seed=seed)
        pods.scale(3, 0)
        left.append(frozenset(names(pods)))
    assert len(set(left)) > 1


def test_a_deleted_pod_serves_nothing_until_it_is_gone() -> None:
    pods = pods_of(3, termination={"mean": "30s"})
    pods.scale(2, 0)
    assert (pods.capacity, len(pods.terminating), pods.ready_to_count()) == (20, 1, 3)
    pods.advance(30 * SECOND)
    assert not pods.terminating
    assert pods.ready_to_count() == 2


def test_failed_pods_are_the_oldest_and_are_replaced() -> None:
    pods = pods_of(2, startup={"mean": "1s"}, readiness={"mean": "1s"})
    pods.scale(3, 0)
    pods.advance(MINUTE)
    pods.fail(2, MINUTE)
    assert (pods.count, pods.ready) == (3, 1)
    assert names(pods) == {"web-2", "web-3", "web-4"}


def test_a_pod_is_settled_once_all_its_samples_are_those_of_a_ready_pod() -> None:
    pods = pods_of(1, startup={"mean": "0s"}, readiness={"mean": "10s"})
    pods.scale(2, 0)
    pods.advance(10 * SECOND)
    pods.settle(24 * SECOND, 15 * SECOND)
    assert len(pods.settled) == 1
    pods.settle(25 * SECOND, 15 * SECOND)
    assert len(pods.settled) == 2


def test_delays_differ_within_their_spread() -> None:
    pods = pods_of(0, startup={"mean": "10s", "spread": "4s"}, readiness={"mean": "1s", "spread": "5s"})
    pods.scale(50, 0)
    starts = [pod.started / SECOND for pod in pods.unsettled]
    readiness = [(pod.ready - pod.started) / SECOND for pod in pods.unsettled]
    assert 6 <= min(starts) < 7
    assert 13 < max(starts) <= 14
    assert min(readiness) >= 0, "a delay is never negative"
    assert len(set(starts)) > 40
