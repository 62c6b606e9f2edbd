"""The headline names what decided: the metrics that failed, and the pods whose values are assumed."""

from datetime import datetime, timedelta
from typing import Final

import pytest

from ocf.autoscaling.algorithm import (
    Autoscaler,
    Container,
    Metric,
    MetricTarget,
    Pod,
    Readiness,
    Sample,
    Scale,
    Settings,
    Snapshot,
    Unavailable,
    decide,
)
from ocf.autoscaling.algorithm.snapshot import MetricValues
from ocf.autoscaling.explain import explain, render
from ocf.autoscaling.explain.reasons import reason_of
from tests.autoscaling.explain.values import NOON, QUEUE

LONG_AGO: Final = NOON - timedelta(hours=1)
CPU: Final = Metric("Resource", "cpu", MetricTarget("Utilization", utilization=50))
GONE: Final = Unavailable("gone")


def reason(*measured: tuple[Metric, MetricValues], pods: tuple[Pod, ...] = (), selector: str = "app=web") -> str:
    metrics, values = tuple(each for each, _ in measured), tuple(each for _, each in measured)
    web = Autoscaler(name="web", minimum=1, maximum=10, metrics=metrics)
    snapshot = Snapshot(autoscaler=web, scale=Scale(4, 4, selector), pods=pods, metric_values=values)
    return reason_of(decide(snapshot, now=NOON), Settings())


def pod(name: str, *, ready: str = "True", started: datetime = LONG_AGO) -> Pod:
    containers = (Container("app", {"cpu": 100}),)
    return Pod(name=name, started=started, ready=Readiness(ready, started), containers=containers)


def samples(value: int, *names: str) -> dict[str, Sample]:
    return {name: Sample(value, NOON) for name in names}


@pytest.mark.parametrize(
    ("measured", "expected"),
    [
        pytest.param(
            [(QUEUE, (2000,)), (CPU, GONE)],
            "one of the metrics failed, and without all of them nothing is scaled down to 2: cpu: failed to get cpu"
            " utilization: unable to get metrics for resource cpu: gone",
            id="one-of-two-failed-and-the-other-wants-fewer",
        ),
        pytest.param(
            [(QUEUE, (5000,)), (CPU, GONE)],
            "of the metrics, queue wants the most: queue is at 1250m per replica, target 1 per pod: the total divided"
            " by the target, rounded up, is 5",
            id="one-of-two-failed-and-the-other-wants-more",
        ),
        pytest.param(
            [(QUEUE, GONE), (CPU, GONE)],
            "no metric could be evaluated, so nothing is changed: queue: unable to get external metric"
            " default/queue/nil: gone; cpu: failed to get cpu utilization: unable to get metrics for resource cpu:"
            " gone",
            id="all-failed",
        ),
    ],
)
def test_a_failed_metric_is_named(measured: list[tuple[Metric, MetricValues]], expected: str) -> None:
    assert reason(*measured) == expected


def test_before_there_are_replicas_no_value_per_replica_is_written() -> None:
    """The controller divides by `status.replicas`, which is 0 just after a target is created."""
    web = Autoscaler(name="web", minimum=1, maximum=10, metrics=(QUEUE,))
    snapshot = Snapshot(autoscaler=web, scale=Scale(3, 0, "app=web"), metric_values=((45_000,),))
    explanation = explain(snapshot, now=NOON)
    text = " ".join(line for section in render(explanation) for line in section.lines)
    assert "queue is compared per replica, but the target has none yet, target 1 per pod" in text
    assert "9223372036854775808" not in text


def test_without_a_selector_the_pods_are_not_known() -> None:
    assert reason((QUEUE, (2000,)), selector="") == (
        "the pods that count are not known, so nothing is changed: selector is required"
    )


OLD: Final = (pod("a"), pod("b"), pod("c"))
YOUNG: Final = pod("d", ready="False", started=NOON - timedelta(seconds=20))


@pytest.mark.parametrize(
    ("unmeasured", "target", "expected"),
    [
        pytest.param(1, 50, "1 pod without a sample (c) counts as using all of its requests", id="one"),
        pytest.param(2, 50, "2 pods without a sample (b, c) count as using all of their requests", id="two"),
        pytest.param(1, 120, "1 pod without a sample (c) counts as using 120% of its requests", id="high-target"),
    ],
)
def test_what_unmeasured_pods_are_assumed_to_use_is_said(unmeasured: int, target: int, expected: str) -> None:
    metric = Metric("Resource", "cpu", MetricTarget("Utilization", utilization=target))
    names = [each.name for each in OLD][: len(OLD) - unmeasured]
    assert expected in reason((metric, samples(1, *names)), pods=OLD)


@pytest.mark.parametrize(
    ("pods", "values", "expected"),
    [
        pytest.param(
            (*OLD, YOUNG), samples(90, "a", "b", "c", "d"), "1 pod that is not ready (d)", id="measured-but-unready"
        ),
        pytest.param((*OLD, pod("d")), samples(90, "a", "b", "c"), "1 pod without a sample (d)", id="unmeasured"),
        pytest.param(
            (*OLD, pod("e"), YOUNG),
            samples(110, "a", "b", "c", "d"),
            "1 pod without a sample (e) and 1 pod that is not ready (d)",
            id="both",
        ),
        pytest.param(
            (*OLD, pod("d"), YOUNG), samples(10, "a", "b", "c"), "2 pods without a sample (d, d)", id="shrinking"
        ),
    ],
)
def test_the_pods_with_assumed_values_are_named(
    pods: tuple[Pod, ...], values: dict[str, Sample], expected: str
) -> None:
    assert f", but {expected} count" in reason((CPU, values), pods=pods)
