"""A workload for the tests of this folder."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any, Final

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
    Snapshot,
)

NOON: Final = datetime(2026, 1, 31, 12, tzinfo=UTC)


@pytest.fixture
def now() -> datetime:
    return NOON


@pytest.fixture
def pods() -> tuple[Pod, ...]:
    """Return three pods that have been ready for an hour, each requesting 1 cpu."""
    return tuple(
        Pod(
            name=f"web-{number}",
            started=NOON - timedelta(hours=1),
            ready=Readiness("True", NOON - timedelta(minutes=59)),
            labels={"app": "web"},
            containers=(Container("app", {"cpu": 1000}),),
        )
        for number in range(3)
    )


@pytest.fixture
def seen(pods: tuple[Pod, ...]) -> Callable[..., Snapshot]:
    """Return a factory of snapshots: three replicas, a target of 50 percent cpu, and the cpu usage of each pod."""

    def make(milli: int, *, replicas: int = 3, **autoscaler: Any) -> Snapshot:
        cpu = Metric("Resource", "cpu", MetricTarget("Utilization", 50))
        fields: dict[str, Any] = {
            "name": "web",
            "namespace": "shop",
            "minimum": 1,
            "maximum": 10,
            "metrics": (cpu,),
        } | autoscaler
        samples = {pod.name: Sample(milli, NOON) for pod in pods}
        return Snapshot(
            autoscaler=Autoscaler(**fields),
            scale=Scale(replicas, replicas, "app=web"),
            pods=pods,
            metric_values=[samples for _ in fields["metrics"]],
        )

    return make
