"""Rules that a release of Kubernetes changed; `test_recorded` compares all of them with the controllers."""

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, Final

import pytest

from ocf.autoscaling import FeatureGates
from ocf.autoscaling.algorithm import (
    Autoscaler,
    Container,
    Decision,
    Metric,
    MetricTarget,
    Pod,
    Sample,
    Scale,
    Settings,
    Snapshot,
    Unavailable,
    decide,
)

BUSY: Final = Metric("ContainerResource", "cpu", MetricTarget("Utilization", 50), container="app")
QUEUE: Final = Metric("External", "queue", MetricTarget("AverageValue", average=1000))
HITS: Final = Metric(
    "Object",
    "hits",
    MetricTarget("AverageValue", average=1000),
    described_object={"kind": "Ingress", "name": "main"},
)
MEMORY: Final = Metric("Resource", "memory", MetricTarget("AverageValue", average=2**20 * 1000))
CHEESE: Final = Metric("Cheese", "")


@pytest.fixture
def four(pods: tuple[Pod, ...]) -> tuple[Pod, ...]:
    """Return three pods with the container `app`, and one without it."""
    return (*pods, replace(pods[0], name="web-3", containers=(Container("other", {"cpu": 1000}),)))


def decided(release: str, metric: Metric, values: Any, pods: tuple[Pod, ...], now: datetime) -> Decision:
    autoscaler = Autoscaler(namespace="shop", name="web", maximum=20, metrics=(metric,))
    scale = Scale(len(pods), len(pods), "app=web")
    seen = Snapshot(autoscaler=autoscaler, scale=scale, pods=pods, metric_values=[values])
    return decide(seen, settings=Settings(features=FeatureGates.for_release(release)), now=now)


@pytest.mark.parametrize(("release", "desired"), [("1.30", 8), ("1.34", 8), ("1.35", 4), ("1.37", 4)])
def test_a_pod_without_the_named_container_requests_nothing_before_1_35(
    four: tuple[Pod, ...], now: datetime, release: str, desired: int
) -> None:
    """Four pods use 100 percent of what three of them request."""
    usage = {pod.name: Sample(750, now - timedelta(seconds=15)) for pod in four}

    assert decided(release, BUSY, usage, four, now).desired == desired


def current_metrics(decision: Decision) -> Any:
    return decision.status.to_manifest()["currentMetrics"][0]


@pytest.mark.parametrize(("release", "written"), [("1.33", "1048576"), ("1.34", "1Mi")])
def test_memory_has_binary_suffixes_from_1_34(pods: tuple[Pod, ...], now: datetime, release: str, written: str) -> None:
    usage = {pod.name: Sample(2**20 * 1000, now) for pod in pods}

    assert current_metrics(decided(release, MEMORY, usage, pods, now))["resource"]["current"] == {
        "averageValue": written
    }


@pytest.mark.parametrize(("release", "name"), [("1.32", ""), ("1.33", "main")])
def test_an_average_of_an_object_names_the_object_from_1_33(
    pods: tuple[Pod, ...], now: datetime, release: str, name: str
) -> None:
    assert current_metrics(decided(release, HITS, [3000], pods, now))["object"]["describedObject"]["name"] == name


@pytest.mark.parametrize(("release", "desired"), [("1.33", 1), ("1.34", 6)])
def test_a_negative_sum_of_series_counts_as_too_large_from_1_34(
    pods: tuple[Pod, ...], now: datetime, release: str, desired: int
) -> None:
    autoscaler = Autoscaler(name="web", maximum=20, metrics=(QUEUE,))
    seen = Snapshot(autoscaler=autoscaler, scale=Scale(3, 3, "app=web"), pods=pods, metric_values=[[-5]])
    settings = Settings(downscale_stabilization=timedelta(milliseconds=1), features=FeatureGates.for_release(release))
    started = decide(seen, settings=settings, now=now)

    assert decide(seen, started.history, settings=settings, now=now + timedelta(minutes=1)).desired == desired


@pytest.mark.parametrize(("release", "desired"), [("1.32", 4), ("1.33", 3)])
def test_the_upper_end_of_a_tolerance_is_inside_from_1_33(
    pods: tuple[Pod, ...], now: datetime, release: str, desired: int
) -> None:
    """In doubles, 1.1 equals 1 + 0.1, but its distance from 1 is a little more than 0.1."""
    total = replace(QUEUE, target=MetricTarget("Value", value=1000))

    assert decided(release, total, [1100], pods, now).desired == desired


@pytest.mark.parametrize(
    ("release", "message"),
    [
        pytest.param("1.36", "unable to get metric hits: Ingress on shop main/gone", id="1.36"),
        pytest.param("1.37", "unable to get metric hits on Ingress shop/main: gone", id="1.37"),
    ],
)
def test_the_text_about_a_missing_object_is_in_order_from_1_37(
    pods: tuple[Pod, ...], now: datetime, release: str, message: str
) -> None:
    assert decided(release, HITS, Unavailable("gone"), pods, now).events[0].message == message


@pytest.mark.parametrize(("release", "kind"), [("1.36", "internal"), ("1.37", "spec")])
def test_an_unknown_type_is_an_error_of_the_spec_from_1_37(
    pods: tuple[Pod, ...], now: datetime, release: str, kind: str
) -> None:
    error = decided(release, CHEESE, {}, pods, now).error

    assert error is not None
    assert error.kind == kind
