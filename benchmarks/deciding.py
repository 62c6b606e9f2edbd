"""Decisions of the HPA algorithm.

A simulated day has thousands of syncs, and a sweep of settings has thousands of such days, so a sync must take
microseconds. The cases have the shape of an everyday workload: ten ready pods with one container each, cpu as the
metric, and twenty recommendations in the history.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Final

from benchmarks.figures import Case, Suite
from benchmarks.timer import each_call
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
    Sample,
    Scale,
    ScalingPolicy,
    ScalingRules,
    Snapshot,
    apply_behavior_limits,
    decide,
    stabilize_with_behavior,
)
from ocf.autoscaling.explain import explain

__all__ = ["suite"]

_ROUND_LIMIT: Final = 40_000
_LIMITS_LIMIT: Final = 2_000
_NOW: Final = datetime(2026, 1, 31, 12, tzinfo=UTC)
_PERIOD: Final = timedelta(seconds=15)
_PODS: Final = tuple(
    Pod(
        name=f"web-{number}",
        started=_NOW - timedelta(hours=1),
        ready=Readiness("True", _NOW - timedelta(minutes=59)),
        containers=(Container("app", {"cpu": 500}),),
    )
    for number in range(10)
)
_SAMPLES: Final = {pod.name: Sample(400, _NOW - _PERIOD, timedelta(seconds=30)) for pod in _PODS}
_BEHAVIOR: Final = Behavior(
    ScalingRules((ScalingPolicy("Pods", 4, _PERIOD), ScalingPolicy("Percent", 100, _PERIOD)), window=timedelta()),
    ScalingRules((ScalingPolicy("Percent", 100, _PERIOD),)),
)
_HISTORY: Final = History(tuple(Recommendation(10, _NOW - number * _PERIOD) for number in range(20, 0, -1)))


def _snapshot(target: int, behavior: Behavior | None) -> Snapshot:
    metric = Metric("Resource", "cpu", MetricTarget("Utilization", target))
    autoscaler = Autoscaler(
        namespace="shop", name="web", kind="Deployment", target="web", maximum=50, metrics=(metric,), behavior=behavior
    )
    return Snapshot(autoscaler=autoscaler, scale=Scale(10, 10, "app=web"), pods=_PODS, metric_values=(_SAMPLES,))


@contextmanager
def suite() -> Iterator[Suite]:
    """Give the cases."""
    quiet, growing = _snapshot(80, None), _snapshot(60, _BEHAVIOR)
    assert not decide(quiet, _HISTORY, now=_NOW).rescale
    assert decide(growing, _HISTORY, now=_NOW).desired == 14
    yield [
        Case(
            name="deciding.sync",
            what="a sync that changes nothing: 10 pods, cpu",
            measure=each_call(lambda: decide(quiet, _HISTORY, now=_NOW)),
            limit=_ROUND_LIMIT,
        ),
        Case(
            name="deciding.scaling",
            what="a sync that resizes, with behavior and events",
            measure=each_call(lambda: decide(growing, _HISTORY, now=_NOW)),
            against="deciding.sync",
        ),
        Case(
            name="deciding.explained",
            what="the first, and its trace in sentences",
            measure=each_call(lambda: list(decide(quiet, _HISTORY, now=_NOW).trace.render())),
            against="deciding.sync",
        ),
        Case(
            name="deciding.thresholds",
            what="the second, and what would have to change, as `ocf explain` finds it",
            measure=each_call(lambda: explain(growing, _HISTORY, now=_NOW)),
            against="deciding.scaling",
        ),
        Case(
            name="deciding.stabilization",
            what="the windows alone, 20 recommendations",
            measure=each_call(
                lambda: stabilize_with_behavior(
                    14, 10, _HISTORY.recommendations or (), up_window=_PERIOD, down_window=20 * _PERIOD, now=_NOW
                )
            ),
        ),
        Case(
            name="deciding.limits",
            what="the limits of a behavior alone, two policies",
            measure=each_call(
                lambda: apply_behavior_limits(
                    10, 30, minimum=2, maximum=50, behavior=_BEHAVIOR, history=_HISTORY, now=_NOW
                )
            ),
            limit=_LIMITS_LIMIT,
        ),
    ]
