"""Amounts that cannot be true never shrink a workload, whatever metric they come from."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ocf.autoscaling.algorithm import (
    Autoscaler,
    Container,
    Decision,
    Metric,
    MetricTarget,
    Pod,
    Readiness,
    Sample,
    Scale,
    Snapshot,
    Unavailable,
    decide,
    read_external,
    read_object,
    read_pods,
    read_resource,
)
from ocf.autoscaling.algorithm.snapshot import MetricValues

NOON: Final = datetime(2026, 1, 31, 12, tzinfo=UTC)
REPLICAS: Final = 4
TARGET: Final = 500
UTILIZATION: Final = MetricTarget("Utilization", utilization=50)
AVERAGE: Final = MetricTarget("AverageValue", average=TARGET)
VALUE: Final = MetricTarget("Value", value=TARGET * REPLICAS)
NAMES: Final = tuple(f"web-{number}" for number in range(REPLICAS))
PODS: Final = tuple(
    Pod(
        name=name,
        started=NOON - timedelta(hours=1),
        ready=Readiness("True", NOON - timedelta(minutes=59)),
        containers=(Container("app", {"cpu": 1000, "memory": 1000}),),
    )
    for name in NAMES
)


def resource(amounts: tuple[str, ...]) -> MetricValues:
    items = [
        {"metadata": {"name": name}, "containers": [{"name": "app", "usage": {"cpu": amount, "memory": amount}}]}
        for name, amount in zip(NAMES, amounts, strict=True)
    ]
    return read_resource([{**item, "timestamp": "2026-01-31T12:00:00Z"} for item in items], "cpu")


def by_pod(amounts: tuple[str, ...]) -> MetricValues:
    return read_pods(
        [{"describedObject": {"name": name}, "value": each} for name, each in zip(NAMES, amounts, strict=True)]
    )


def of_object(amounts: tuple[str, ...]) -> MetricValues:
    return read_object([{"value": amounts[0]}])


def external(amounts: tuple[str, ...]) -> MetricValues:
    return read_external([{"value": each} for each in amounts])


Read = Callable[[tuple[str, ...]], MetricValues]
SOURCES: Final = [
    pytest.param(Metric("Resource", "cpu", UTILIZATION), resource, id="Resource, Utilization"),
    pytest.param(Metric("Resource", "cpu", AVERAGE), resource, id="Resource, AverageValue"),
    pytest.param(Metric("Resource", "memory", AVERAGE), resource, id="Resource memory, AverageValue"),
    pytest.param(Metric("ContainerResource", "cpu", UTILIZATION, "app"), resource, id="ContainerResource, Utilization"),
    pytest.param(Metric("ContainerResource", "cpu", AVERAGE, "app"), resource, id="ContainerResource, AverageValue"),
    pytest.param(Metric("Pods", "qps", AVERAGE), by_pod, id="Pods"),
    pytest.param(Metric("Object", "hits", VALUE), of_object, id="Object, Value"),
    pytest.param(Metric("Object", "hits", AVERAGE), of_object, id="Object, AverageValue"),
    pytest.param(Metric("External", "queue", VALUE), external, id="External, Value"),
    pytest.param(Metric("External", "queue", AVERAGE), external, id="External, AverageValue"),
]
PER_POD: Final = SOURCES[:6]

HIGH: Final = st.integers(TARGET * REPLICAS, 2**80).map(lambda milli: f"{milli}m") | st.sampled_from(["9E", "1e900"])
TOO_LOW: Final = st.sampled_from(["-9E", "-1e900", "-9223372036854775808m"])
NEGATIVE: Final = st.integers(1, 2**80).map(lambda milli: f"-{milli}m")


def decided(metric: Metric, values: MetricValues) -> Decision:
    autoscaler = Autoscaler(name="web", maximum=100, metrics=(metric,))
    scale = Scale(REPLICAS, REPLICAS, "app=web")
    return decide(Snapshot(autoscaler=autoscaler, scale=scale, pods=PODS, metric_values=(values,)), now=NOON)


def several(amounts: st.SearchStrategy[str]) -> st.SearchStrategy[tuple[str, ...]]:
    return st.tuples(*[amounts] * REPLICAS)


@pytest.mark.parametrize(("metric", "read"), SOURCES)
@given(amounts=several(HIGH | TOO_LOW))
def test_amounts_beyond_64_bits_never_shrink(metric: Metric, read: Read, amounts: tuple[str, ...]) -> None:
    decision = decided(metric, read(amounts))

    assert decision.desired >= REPLICAS or decision.error is not None
    assert not decision.rescale or decision.desired > REPLICAS


@pytest.mark.parametrize(("metric", "read"), PER_POD)
@given(amounts=several(HIGH | NEGATIVE))
def test_negative_amounts_of_pods_never_shrink(metric: Metric, read: Read, amounts: tuple[str, ...]) -> None:
    decision = decided(metric, read(amounts))

    assert not decision.rescale or decision.desired > REPLICAS


@pytest.mark.parametrize(("metric", "read"), PER_POD)
@given(amounts=several(st.integers(0, 3000).map(lambda milli: f"{milli}m")), wrong=TOO_LOW | NEGATIVE | st.just("9E"))
def test_an_impossible_sample_counts_as_a_missing_one(
    metric: Metric, read: Read, amounts: tuple[str, ...], wrong: str
) -> None:
    with_it = read((wrong, *amounts[1:]))
    without = {name: sample for name, sample in samples(read(amounts)).items() if name != NAMES[0]}
    ours, expected = decided(metric, with_it), decided(metric, without)

    assert (ours.desired, ours.status, ours.events) == (expected.desired, expected.status, expected.events)


def samples(values: MetricValues) -> dict[str, Sample]:
    assert isinstance(values, dict)
    return values


@pytest.mark.parametrize(
    ("amounts", "desired"),
    [
        pytest.param(("9E", "1", "1", "1"), 6, id="one beyond 64 bits: three pods at twice the target"),
        pytest.param(("9E",) * 4, None, id="all beyond 64 bits: no measurement"),
        pytest.param(("-1", "1", "1", "1"), 6, id="one below zero: three pods at twice the target"),
        pytest.param(("4e15",) * 4, 8, id="a sum beyond 64 bits: as fast as the limits allow"),
    ],
)
def test_usage_beyond_64_bits(amounts: tuple[str, ...], desired: int | None) -> None:
    decision = decided(Metric("Resource", "cpu", AVERAGE), resource(amounts))

    assert (decision.desired if decision.rescale else None) == desired
    if desired is None:
        assert decision.status.conditions[-1].reason == "FailedGetResourceMetric"
        assert decision.status.to_manifest()["currentMetrics"] == [{"type": ""}]


def test_a_container_below_zero_is_not_hidden_by_another_one() -> None:
    containers = [{"name": "app", "usage": {"cpu": "-1"}}, {"name": "side", "usage": {"cpu": "5"}}]
    found = read_resource([{"metadata": {"name": "web-0"}, "containers": containers}], "cpu")

    assert not isinstance(found, Unavailable)
    assert found["web-0"].value < 0


def test_requests_beyond_64_bits_are_the_largest_number() -> None:
    """Their sum would wrap around, and the utilization become negative."""
    huge = [Pod(**{**fields(pod), "containers": (Container("app", {"cpu": 2**63 - 1}),)}) for pod in PODS]
    metric = Metric("Resource", "cpu", UTILIZATION)
    autoscaler = Autoscaler(name="web", maximum=100, metrics=(metric,))
    values = {name: Sample(2**62, NOON) for name in NAMES}
    seen = Snapshot(
        autoscaler=autoscaler, scale=Scale(REPLICAS, REPLICAS, "app=web"), pods=huge, metric_values=(values,)
    )

    status = decide(seen, now=NOON).status.current_metrics[0]
    assert getattr(status, "utilization", None) == 100


def fields(pod: Pod) -> dict[str, Any]:
    return {"name": pod.name, "started": pod.started, "ready": pod.ready}
