"""`read_metric`: metric values, or the error message of the controller."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ocf.autoscaling.algorithm import Metric, MetricTarget, Sample, Unavailable
from ocf.controllers.metrics_client import RESTMetricsClient
from ocf.controllers.metrics_client.query import read_metric
from ocf.testing.fake_metrics import FakeMetricsClient
from tests.controllers.metrics_client.conftest import CUSTOM, Paths

USAGE = "/apis/metrics.k8s.io/v1beta1/namespaces/shop/pods"
HITS = "/apis/custom.metrics.k8s.io/v1beta2/namespaces/shop/pods/*/hits"
LOAD = "/apis/custom.metrics.k8s.io/v1beta2/namespaces/shop/metrics/load"
QUEUE = "/apis/external.metrics.k8s.io/v1beta1/namespaces/shop/queue"
CPU = Metric("Resource", "cpu", MetricTarget(utilization=50))
PODS = Metric("Pods", "hits", MetricTarget(average=1000))
OBJECT = Metric(
    "Object", "load", MetricTarget(type="Value", value=1000), described_object={"kind": "Namespace", "name": "shop"}
)
EXTERNAL = Metric("External", "queue", MetricTarget(average=1000))

AT = datetime(2026, 1, 31, 12, tzinfo=UTC)
TIME = "2026-01-31T12:00:00Z"
QUANTITIES = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"


def usage(cpu: Any = "250m", **changes: Any) -> dict[str, Any]:
    entry = {"metadata": {"name": "web-0", "labels": {"app": "web"}}, "timestamp": TIME, "window": "30s"}
    return {**entry, "containers": [{"name": "app", "usage": {"cpu": cpu}}], **changes}


def value(amount: Any = "12", **changes: Any) -> dict[str, Any]:
    return {"describedObject": {"kind": "Pod", "name": "web-0"}, "timestamp": TIME, "value": amount, **changes}


async def reading(metric: Metric, path: str, *entries: Any) -> Any:
    paths = Paths({"/apis/custom.metrics.k8s.io": CUSTOM})
    paths.holds(path, *entries)
    return await read_metric(RESTMetricsClient(paths), metric, namespace="shop", selector="app=web")


@pytest.mark.parametrize(
    ("metric", "path", "entry", "expected"),
    [
        pytest.param(CPU, USAGE, usage(), {"web-0": Sample(250, AT, timedelta(seconds=30))}, id="usage"),
        pytest.param(CPU, USAGE, usage("-5"), {"web-0": Sample(-5000, AT, timedelta(seconds=30))}, id="negative usage"),
        pytest.param(CPU, USAGE, usage(0.25), {"web-0": Sample(250, AT, timedelta(seconds=30))}, id="a number"),
        pytest.param(CPU, USAGE, usage(containers=[]), {}, id="no containers"),
        pytest.param(CPU, USAGE, usage(containers=None), {}, id="containers are null"),
        pytest.param(CPU, USAGE, usage(new={"field": 1}), {"web-0": Sample(250, AT, timedelta(seconds=30))}, id="new"),
        pytest.param(CPU, USAGE, usage(window=None), {"web-0": Sample(250, AT, timedelta())}, id="no window"),
        pytest.param(PODS, HITS, value(), {"web-0": Sample(12_000, AT, timedelta(minutes=1))}, id="pods"),
        pytest.param(PODS, HITS, value(windowSeconds=5), {"web-0": Sample(12_000, AT, timedelta(seconds=5))}, id="v2"),
        pytest.param(PODS, HITS, value(window=5), {"web-0": Sample(12_000, AT, timedelta(seconds=5))}, id="v1"),
        pytest.param(OBJECT, LOAD, value("1500m"), (1500,), id="object"),
        pytest.param(EXTERNAL, QUEUE, value("-3"), (-3000,), id="external"),
        pytest.param(EXTERNAL, QUEUE, value("9E"), (2**63 - 1,), id="more than 64 bits"),
    ],
)
async def test_a_response_becomes_metric_values(metric: Metric, path: str, entry: Any, expected: Any) -> None:
    assert await reading(metric, path, entry) == expected


async def test_a_value_without_a_timestamp_is_the_oldest() -> None:
    found = await reading(CPU, USAGE, usage(timestamp=None))
    assert found["web-0"].at < AT - timedelta(days=365 * 1000)


@pytest.mark.parametrize(
    ("metric", "path", "problem"),
    [
        pytest.param(CPU, USAGE, "no metrics returned from resource metrics API", id="usage"),
        pytest.param(PODS, HITS, "no metrics returned from custom metrics API", id="pods"),
        pytest.param(
            OBJECT,
            LOAD,
            "unable to fetch metrics from custom metrics API: "
            "the custom metrics API server returned 0 results when we asked for exactly one",
            id="object",
        ),
        pytest.param(EXTERNAL, QUEUE, "no metrics returned from external metrics API", id="external"),
    ],
)
async def test_an_empty_response_is_a_failure_and_not_zero(metric: Metric, path: str, problem: str) -> None:
    assert await reading(metric, path) == Unavailable(problem)


async def test_an_object_metric_needs_exactly_one_value() -> None:
    assert await reading(OBJECT, LOAD, value(), value()) == Unavailable(
        "unable to fetch metrics from custom metrics API: "
        "the custom metrics API server returned 2 results when we asked for exactly one"
    )


@pytest.mark.parametrize(
    ("metric", "path", "entry", "problem"),
    [
        pytest.param(CPU, USAGE, usage("NaN"), QUANTITIES, id="a text that is not a quantity"),
        pytest.param(CPU, USAGE, usage(float("nan")), QUANTITIES, id="no number"),
        pytest.param(CPU, USAGE, usage(float("inf")), QUANTITIES, id="without end"),
        pytest.param(CPU, USAGE, usage("5X"), QUANTITIES, id="an unknown letter"),
        pytest.param(CPU, USAGE, usage("1.2.3"), QUANTITIES, id="two points"),
        pytest.param(CPU, USAGE, usage("5mm"), "unable to parse quantity's suffix", id="an unknown suffix"),
        pytest.param(CPU, USAGE, usage([1]), QUANTITIES, id="a list in place of a quantity"),
        pytest.param(
            CPU, USAGE, usage(containers="app"), "PodMetrics web-0: containers: must be a list", id="no containers"
        ),
        pytest.param(CPU, USAGE, usage(containers=[7]), "containers[0]: must be a map, not 7", id="no container"),
        pytest.param(CPU, USAGE, usage(window="soon"), "window: must be a duration like 1m30s", id="no duration"),
        pytest.param(CPU, USAGE, usage(window="9" * 30 + "h"), "", id="a duration beyond all"),
        pytest.param(CPU, USAGE, usage(timestamp="today"), "timestamp: must be a time", id="no time"),
        pytest.param(CPU, USAGE, usage(timestamp=5), "timestamp: must be a time", id="a number for a time"),
        pytest.param(CPU, USAGE, usage(metadata=[]), "metadata: must be a map", id="no metadata"),
        pytest.param(CPU, USAGE, "web-0", "must be a map", id="no entry"),
        pytest.param(CPU, USAGE, None, "must be a map", id="null"),
        pytest.param(PODS, HITS, value(describedObject="web-0"), "describedObject: must be a map", id="no object"),
        pytest.param(PODS, HITS, value(windowSeconds=10**18), "", id="a window beyond all"),
        pytest.param(PODS, HITS, value(windowSeconds="5"), "windowSeconds: must be an integer", id="a text window"),
        pytest.param(PODS, HITS, value(None), "value: is required", id="no value"),
        pytest.param(OBJECT, LOAD, value("much"), QUANTITIES, id="object"),
        pytest.param(EXTERNAL, QUEUE, value("much"), QUANTITIES, id="external"),
        pytest.param(EXTERNAL, QUEUE, {"metricName": "queue"}, "value: is required", id="external without a value"),
    ],
)
async def test_an_invalid_entry_is_a_failure_with_a_reason(metric: Metric, path: str, entry: Any, problem: str) -> None:
    found = await reading(metric, path, entry)
    assert isinstance(found, Unavailable)
    assert found.message.startswith("unable to fetch metrics from ")
    assert problem in found.message


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
FIELDS = ["metadata", "timestamp", "window", "windowSeconds", "containers", "value", "describedObject", "metricLabels"]


@given(st.lists(JSON | st.dictionaries(st.sampled_from(FIELDS), JSON), max_size=3), st.sampled_from(range(4)))
async def test_no_response_raises_an_unexpected_error(entries: list[Any], which: int) -> None:
    metric, path = [(CPU, USAGE), (PODS, HITS), (OBJECT, LOAD), (EXTERNAL, QUEUE)][which]
    assert isinstance(await reading(metric, path, *entries), Unavailable | dict | tuple)


@pytest.mark.parametrize(
    "metric",
    [
        pytest.param(Metric("Unknown", "cpu"), id="of an unknown type"),
        pytest.param(
            Metric("Pods", "hits", MetricTarget(average=1), selector_error="no selector"), id="with a bad selector"
        ),
    ],
)
async def test_no_request_is_sent_for_a_metric_that_the_algorithm_rejects(metric: Metric) -> None:
    paths = Paths()
    found = await read_metric(RESTMetricsClient(paths), metric, namespace="shop", selector="app=web")

    assert isinstance(found, Unavailable)
    assert paths.asked == []


@pytest.mark.parametrize(
    ("selector", "text"),
    [
        pytest.param(None, "", id="none"),
        pytest.param({}, "", id="empty"),
        pytest.param({"matchLabels": {"name": "mail"}}, "name=mail", id="a label"),
        pytest.param(
            {"matchExpressions": [{"key": "name", "operator": "In", "values": ["post", "mail"]}]},
            "name in (mail,post)",
            id="an expression",
        ),
    ],
)
async def test_a_metrics_own_selector_is_sent(selector: Any, text: str) -> None:
    paths = Paths()
    paths.holds(QUEUE)
    metric = Metric("External", "queue", MetricTarget(average=1), selector=selector)
    await read_metric(RESTMetricsClient(paths), metric, namespace="shop", selector="app=web")

    assert paths.asked == [(QUEUE, {"labelSelector": text} if text else {})]


async def test_a_container_is_read_by_its_name() -> None:
    measured = FakeMetricsClient()
    measured.set_usage("shop", "web-0", {"app": {"cpu": "1"}, "proxy": {"cpu": "10m"}}, labels={"app": "web"}, at=AT)
    metric = Metric("ContainerResource", "cpu", MetricTarget(utilization=50), container="proxy")
    found = await read_metric(measured, metric, namespace="shop", selector="app=web")

    assert found == {"web-0": Sample(10, AT, timedelta(seconds=30))}
