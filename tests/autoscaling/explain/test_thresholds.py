"""The thresholds are exact: at each one the result changes, and a thousandth below it does not."""

from dataclasses import replace
from datetime import timedelta
from itertools import pairwise
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ocf.autoscaling.algorithm import (
    Autoscaler,
    Behavior,
    Container,
    History,
    Metric,
    MetricTarget,
    Pod,
    Readiness,
    Recommendation,
    Rule,
    Sample,
    Scale,
    ScalingPolicy,
    ScalingRules,
    Settings,
    Snapshot,
    Unavailable,
    decide,
)
from ocf.autoscaling.algorithm.history import ScaleEvent
from ocf.autoscaling.algorithm.snapshot import MetricValues
from ocf.autoscaling.explain.thresholds import MetricThresholds, metric_thresholds, with_total
from tests.autoscaling.explain.values import NOON

AGO: Final = st.integers(0, 400).map(lambda seconds: NOON - timedelta(seconds=seconds))
PODS: Final = st.lists(
    st.builds(
        Pod,
        name=st.just(""),
        phase=st.sampled_from(["Running", "Running", "Pending", "Failed"]),
        started=st.just(NOON - timedelta(hours=1)),
        ready=st.sampled_from(["True", "True", "False"]).map(lambda state: Readiness(state, NOON - timedelta(hours=1))),
        labels=st.just({"app": "web"}),
        containers=st.integers(1, 40).map(lambda cpu: (Container("app", {"cpu": cpu}),)),
    ),
    min_size=1,
    max_size=4,
)
TARGETS: Final = {
    "Resource": st.integers(1, 150).map(lambda percent: MetricTarget("Utilization", utilization=percent)),
    "Pods": st.integers(1, 40).map(lambda value: MetricTarget("AverageValue", average=value)),
    "Object": st.integers(1, 40).map(lambda value: MetricTarget("Value", value=value)),
    "External": st.integers(1, 40).map(lambda value: MetricTarget("AverageValue", average=value)),
}
RULES: Final = st.builds(
    ScalingRules,
    st.just((ScalingPolicy("Pods", 2, timedelta(seconds=60)),)),
    st.sampled_from(["Max", "Disabled"]),
    st.sampled_from([None, timedelta(seconds=60)]),
)


@st.composite
def snapshots(draw: st.DrawFn) -> tuple[Snapshot, History]:
    """Draw a small workload, so that all values of a metric can be tried."""
    pods = [replace(pod, name=f"web-{number}") for number, pod in enumerate(draw(PODS))]
    kinds = draw(st.lists(st.sampled_from(sorted(TARGETS)), min_size=1, max_size=2))
    metrics = tuple(Metric(kind, "cpu" if kind == "Resource" else "rps", draw(TARGETS[kind])) for kind in kinds)
    measured = [draw(_reading(kind, pods)) for kind in kinds]
    replicas = draw(st.integers(1, 6))
    autoscaler = Autoscaler(
        name="web",
        minimum=1,
        maximum=draw(st.integers(replicas, 8)),
        metrics=metrics,
        behavior=draw(st.none() | st.builds(Behavior, RULES, RULES)),
    )
    scale = Scale(replicas, draw(st.integers(1, 6)), "app=web")
    history = History(
        tuple(draw(st.lists(st.builds(Recommendation, st.integers(0, 9), AGO), max_size=2))),
        tuple(draw(st.lists(st.builds(ScaleEvent, st.integers(1, 3), AGO), max_size=1))),
    )
    return Snapshot(autoscaler=autoscaler, scale=scale, pods=pods, metric_values=measured), history


def _reading(kind: str, pods: list[Pod]) -> st.SearchStrategy[MetricValues]:
    if kind in {"Object", "External"}:
        return st.integers(0, 200).map(lambda value: (value,))
    names = [pod.name for pod in pods]
    present = st.lists(st.sampled_from(names), min_size=1, unique=True)
    return present.flatmap(
        lambda chosen: st.fixed_dictionaries(
            {name: st.integers(0, 80).map(lambda value: Sample(value, NOON)) for name in chosen}
        )
    )


def found(snapshot: Snapshot, history: History, settings: Settings) -> list[MetricThresholds]:
    decision = decide(snapshot, history, settings=settings, now=NOON)
    return list(metric_thresholds(snapshot, (history,), settings=settings, now=NOON, decision=decision))


@given(drawn=snapshots(), tolerance=st.sampled_from([0.0, 0.1, 0.3]))
def test_every_value_is_in_the_range_with_its_consequence(drawn: tuple[Snapshot, History], tolerance: float) -> None:
    """Run the algorithm for every value, and compare."""
    snapshot, history = drawn
    settings = Settings(tolerance=tolerance)
    current = snapshot.scale.replicas if isinstance(snapshot.scale, Scale) else 0
    for thresholds in found(snapshot, history, settings):
        end = min(thresholds.ranges[-1].high, 400)
        for total in range(end + 1):
            moved = with_total(snapshot, thresholds.position, thresholds.pods, total)
            desired = decide(moved, history, settings=settings, now=NOON).desired
            [values] = [each for each in thresholds.ranges if each.low <= total <= each.high]
            assert values.change == (desired > current) - (desired < current)
            if total in values[:2]:
                assert desired == (values.first if total == values.low else values.last)
        assert all(
            before.high + 1 == after.low and before.change != after.change
            for before, after in pairwise(thresholds.ranges)
        )


@given(drawn=snapshots())
def test_the_measured_total_gives_the_actual_decision(drawn: tuple[Snapshot, History]) -> None:
    """The same total gives the same decision, however it is distributed over the pods."""
    snapshot, history = drawn
    now = decide(snapshot, history, now=NOON)
    for thresholds in found(snapshot, history, Settings()):
        moved = with_total(snapshot, thresholds.position, thresholds.pods, thresholds.total)
        assert decide(moved, history, now=NOON).desired == now.desired


def web(value: int, replicas: int = 3, **autoscaler: object) -> Snapshot:
    queue = Metric("External", "queue", MetricTarget("AverageValue", average=1000))
    fields: dict[str, object] = {"name": "web", "minimum": 1, "maximum": 10, "metrics": (queue,)} | autoscaler
    return Snapshot(
        autoscaler=Autoscaler(**fields),  # type: ignore[arg-type]
        scale=Scale(replicas, replicas, "app=web"),
        metric_values=((value,),),
    )


def test_a_total_per_pod() -> None:
    """Three pods at 1 each: 2 are enough for 2, and more than 10 percent above is not tolerated."""
    [thresholds] = found(web(3000), History(()), Settings())

    assert [(values.change, values.low, values.high) for values in thresholds.ranges[:2]] == [
        (-1, 0, 2000),
        (0, 2001, 3300),
    ]
    assert thresholds.more is not None
    assert (thresholds.more.low, thresholds.more.first) == (3301, 4)
    assert (thresholds.cannot_grow, thresholds.cannot_shrink) == (None, None)


@pytest.mark.parametrize(
    ("replicas", "ready", "expected"),
    [
        pytest.param(3, 4, [(-1, 203), (0, 303), (1, 359), (0, 443), (1, None)], id="a-pod-more-than-replicas"),
        pytest.param(5, 2, [(-1, 179), (0, 221), (-1, 401), (0, 501), (1, None)], id="fewer-pods-than-replicas"),
        pytest.param(1, 20, [(0, 119), (1, 1799), (0, 2219), (1, None)], id="more-than-the-maximum-below-the-target"),
    ],
)
def test_with_other_pods_than_replicas_the_direction_can_reverse(
    replicas: int, ready: int, expected: list[tuple[int, int | None]]
) -> None:
    """The ratio is multiplied by the ready pods: with 4 of them for 3 replicas, 0.8 gives 4."""
    rps = Metric("Pods", "rps", MetricTarget("AverageValue", average=100))
    pods = [Pod(name=f"web-{number}", started=NOON, ready=Readiness("True", NOON)) for number in range(ready)]
    snapshot = Snapshot(
        autoscaler=Autoscaler(name="web", minimum=1, maximum=10, metrics=(rps,)),
        scale=Scale(replicas, replicas, "app=web"),
        pods=pods,
        metric_values=({pod.name: Sample(10 if ready > 10 else 100, NOON) for pod in pods},),
    )
    [thresholds] = found(snapshot, History(()), Settings())

    assert [
        (values.change, None if values is thresholds.ranges[-1] else values.high) for values in thresholds.ranges
    ] == expected


def test_a_blocker_is_reported_with_its_release() -> None:
    """At the maximum no value gives more; a recommendation in the window prevents fewer until its hold ends."""
    remembered = History((Recommendation(3, NOON - timedelta(minutes=1)),))
    [thresholds] = found(web(3000, maximum=3), remembered, Settings())

    assert thresholds.cannot_grow is not None
    assert thresholds.cannot_shrink is not None
    assert thresholds.cannot_grow.decision.trace.decided_by == Rule.TOO_MANY
    assert thresholds.cannot_shrink.decision.trace.decided_by == Rule.SCALE_DOWN_STABILIZED
    assert thresholds.cannot_shrink.release is not None
    assert thresholds.cannot_shrink.release == (NOON + timedelta(minutes=5, seconds=15), 1)


def test_a_failed_metric_has_no_thresholds() -> None:
    queue = Metric("External", "queue", MetricTarget("AverageValue", average=1000))
    both = web(3000, metrics=(queue, queue))
    snapshot = Snapshot(autoscaler=both.autoscaler, scale=both.scale, metric_values=((3000,), Unavailable("gone")))
    [thresholds] = found(snapshot, History(()), Settings())

    assert thresholds.position == 0
    assert thresholds.cannot_shrink is not None
    assert thresholds.cannot_shrink.decision.trace.decided_by == Rule.FAILED
