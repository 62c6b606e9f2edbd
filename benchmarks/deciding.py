"""Decisions of the HPA algorithm.

A simulated day has thousands of syncs, and a sweep of settings has thousands of such days, so a sync must take
microseconds. The cases have the shape of an everyday workload: ten ready pods with one container each, cpu as the
metric, and twenty recommendations in the history.

A controller also has to find out whether the status is to be written. Nearly always it is not, so `deciding.step` does
both on a status that has converged, and is compared with the same step of the real controller, where that was built.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from benchmarks.figures import Case, Count, Suite
from benchmarks.go_controller import go_controller
from benchmarks.timer import Measure, each_call, on_one_core
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
    Status,
    Unavailable,
    apply_behavior_limits,
    decide,
    read_resource,
    stabilize_with_behavior,
)
from ocf.autoscaling.explain import explain

__all__ = ["suite"]

_ROUND_LIMIT: Final = 40_000
_STEP_LIMIT: Final = 50_000
_SHARE_OF_GO: Final = 0.8
_TURNS: Final = 5
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


_HPA: Final[dict[str, Any]] = {
    "apiVersion": "autoscaling/v2",
    "kind": "HorizontalPodAutoscaler",
    "metadata": {"name": "web", "namespace": "shop"},
    "spec": {
        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
        "minReplicas": 1,
        "maxReplicas": 50,
        "metrics": [
            {
                "type": "Resource",
                "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 80}},
            }
        ],
    },
}
_SCALE: Final = {
    "metadata": {"name": "web", "namespace": "shop"},
    "spec": {"replicas": 10},
    "status": {"replicas": 10, "selector": "app=web"},
}
_POD_MANIFESTS: Final[list[dict[str, Any]]] = [
    {
        "metadata": {"name": pod.name, "namespace": "shop", "labels": {"app": "web"}},
        "spec": {"containers": [{"name": "app", "resources": {"requests": {"cpu": "500m"}}}]},
        "status": {
            "phase": "Running",
            "startTime": "2026-01-31T11:00:00Z",
            "conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-31T11:01:00Z"}],
        },
    }
    for pod in _PODS
]
_USAGE: Final[list[dict[str, Any]]] = [
    {
        "metadata": {"name": pod.name},
        "timestamp": "2026-01-31T11:59:45Z",
        "window": "30s",
        "containers": [{"name": "app", "usage": {"cpu": "400m"}}],
    }
    for pod in _PODS
]


def _go_case() -> dict[str, Any]:
    """Return the same snapshot, history and settings as the program of the real controller reads them."""
    now = int(_NOW.timestamp() * 1000)
    samples = {pod.name: [400, now - 15_000, 30_000] for pod in _PODS}
    recommendations = [[10, int(each.at.timestamp() * 1000)] for each in _HISTORY.recommendations or ()]
    return {
        "hpa": {**_HPA, "status": {"currentReplicas": 10, "desiredReplicas": 10}},
        "scale": _SCALE,
        "pods": _POD_MANIFESTS,
        "readings": {"Resource/cpu": {"samples": samples}},
        "recs": recommendations,
        "now": now,
        "tolerance": 0.1,
        "downscale": 300_000,
        "cpuInit": 300_000,
        "readiness": 30_000,
        "factor": 2.0,
        "minimum": 4.0,
    }


class _Steps:
    """Steps of one autoscaler, each a sync period after the one before, as the program of the real controller does."""

    def __init__(self) -> None:
        self._now, self._history = _NOW, _HISTORY

    def from_values(self, snapshot: Snapshot) -> None:
        self._now += _PERIOD
        decision = decide(snapshot, self._history, now=self._now)
        assert not decision.status_changed
        self._history = decision.history

    def from_manifests(self, hpa: dict[str, Any]) -> None:
        usage = read_resource(_USAGE, "cpu")
        assert not isinstance(usage, Unavailable)
        self.from_values(Snapshot.of(hpa, scale=_SCALE, pods=_POD_MANIFESTS, metric_values=(usage,)))


def _step_cases(quiet: Snapshot, go: Measure | None) -> Iterator[Case]:
    """Yield the whole step: decide, and find out that the status stays as it is."""
    status = decide(quiet, _HISTORY, now=_NOW).status.to_manifest()
    converged, manifest = replace(quiet, status=Status.of(status)), {**_HPA, "status": status}
    if go is not None:
        yield Case(
            name="deciding.go", what="the step of the real controller, in its own process", measure=go, turns=_TURNS
        )
    steps, parsing = _Steps(), _Steps()
    own = each_call(lambda: steps.from_values(converged))

    def step(calls: int) -> int:
        with on_one_core():
            return own(calls)

    yield Case(
        name="deciding.step",
        what="the first, and that its status is not to be written",
        measure=step,
        limit=_STEP_LIMIT if go is None else None,
        against="deciding.go" if go is not None else "deciding.sync",
        share=_SHARE_OF_GO if go is not None else None,
        turns=_TURNS if go is not None else 1,
    )
    yield Case(
        name="deciding.manifests",
        what="the same, reading HPA, pods and usage from manifests",
        measure=each_call(lambda: parsing.from_manifests(manifest)),
        against="deciding.step",
        turns=_TURNS if go is not None else 1,
    )


@contextmanager
def suite() -> Iterator[Suite]:
    """Give the cases."""
    with go_controller(_go_case()) as go:
        yield _cases(go)


def _cases(go: Measure | None) -> list[Case | Count]:
    quiet, growing = _snapshot(80, None), _snapshot(60, _BEHAVIOR)
    assert not decide(quiet, _HISTORY, now=_NOW).rescale
    assert decide(growing, _HISTORY, now=_NOW).desired == 14
    return [
        *_step_cases(quiet, go),
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
