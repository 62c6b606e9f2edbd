"""The stub is registered at a real API server and responds to its clients."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from ocf.controllers.metrics_client import RESTMetricsClient
from ocf.controllers.metrics_client.client import CUSTOM_METRICS, EXTERNAL_METRICS
from ocf.errors import ConfigError, NotFoundError, ServerError, TooManyRequestsError
from ocf.testing.metrics_stub import MetricsStub
from tests.support import eventually

if TYPE_CHECKING:
    from ocf.cluster.client import ApiServerCluster
    from ocf.testing.plugin import Envtest


async def test_the_api_server_returns_the_metrics_of_the_test(
    envtest: Envtest, envtest_cluster: ApiServerCluster
) -> None:
    home = envtest.namespace
    ingress = {"apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "name": "shop"}
    async with MetricsStub(envtest.plane) as stub:
        stub.metrics.set_usage(home, "web-0", {"app": {"cpu": "450m", "memory": "1Gi"}}, labels={"app": "web"})
        stub.metrics.set_usage(home, "db-0", {"app": {"cpu": "1"}}, labels={"app": "db"})
        stub.metrics.set_pods_metric(home, "hits", {"web-0": "7"}, labels={"app": "web"})
        stub.metrics.set_object_metric(home, ingress, "hits", "30")
        stub.metrics.set_object_metric(home, {"kind": "Namespace", "name": "any"}, "load", "4")
        stub.metrics.set_external(home, "queue", "12", labels={"name": "mail"})
        served = RESTMetricsClient(envtest_cluster)
        usage = await served.pod_metrics(home, "app=web")
        pods = await served.pods_metric(home, "hits", selector="app=web")
        one = await served.object_metric(home, {**ingress, "apiVersion": "networking.k8s.io/v0"}, "hits")
        whole = await served.object_metric(home, {"apiVersion": "v1", "kind": "Namespace", "name": "x"}, "load")
        queue = await served.external_metric(home, "queue", selector="name in (mail,post)")
        shown = await asyncio.to_thread(envtest.kubectl, "top", "pods", "--no-headers")

        assert [entry["containers"][0]["usage"]["cpu"] for entry in usage] == ["450m"]
        assert [[entry["value"] for entry in entries] for entries in (pods, one, whole, queue)] == [
            ["7"],
            ["30"],
            ["4"],
            ["12"],
        ]
        assert sorted(line.split() for line in shown.splitlines()) == [
            ["db-0", "1000m", "0Mi"],
            ["web-0", "450m", "1024Mi"],
        ]
        assert stub.queries[0].path == f"/apis/metrics.k8s.io/v1beta1/namespaces/{home}/pods"
        assert stub.queries[0].user == "admin"
        assert stub.queries[0].query == (("labelSelector", "app=web"),)


@pytest.mark.parametrize(
    ("error", "message"),
    [
        pytest.param(
            ServerError("overloaded", code=503),
            "the server is currently unable to handle the request (get queue.external.metrics.k8s.io)",
            id="a text",
        ),
        pytest.param(NotFoundError("no queue here", code=404, reason="NotFound"), "no queue here", id="a Status"),
        pytest.param(
            ServerError("broken", code=500),
            'an error on the server ("unknown") has prevented the request from succeeding '
            "(get queue.external.metrics.k8s.io)",
            id="500",
        ),
    ],
)
async def test_a_failure_has_the_message_of_the_controllers_client(
    envtest: Envtest, envtest_cluster: ApiServerCluster, error: ServerError, message: str
) -> None:
    async with MetricsStub(envtest.plane) as stub:
        stub.metrics.fail(EXTERNAL_METRICS, error)
        with pytest.raises(type(error)) as caught:
            await RESTMetricsClient(envtest_cluster).external_metric(envtest.namespace, "queue")

        assert caught.value.message == message


async def test_one_response_can_be_overridden(
    envtest: Envtest, envtest_cluster: ApiServerCluster, metrics_stub: MetricsStub
) -> None:
    served, home = RESTMetricsClient(envtest_cluster), envtest.namespace
    metrics_stub.metrics.set_external(home, "queue", "1")
    path = f"/apis/{EXTERNAL_METRICS}/v1beta1/namespaces/{home}/queue"
    metrics_stub.override(path, b'{"items": 7}')
    with pytest.raises(ServerError, match="the response is not of kind ExternalMetricValueList"):
        await served.external_metric(home, "queue")
    metrics_stub.override(path, b"later", status=429)
    with pytest.raises(TooManyRequestsError, match="too many requests and has asked us to try again later"):
        await served.external_metric(home, "queue")
    metrics_stub.override(path, None)

    assert len(await served.external_metric(home, "queue")) == 1
    assert len(metrics_stub.queries) == 3


async def test_a_response_that_is_too_long_is_an_error(
    envtest: Envtest, envtest_cluster: ApiServerCluster, metrics_stub: MetricsStub
) -> None:
    for number in range(50):
        metrics_stub.metrics.set_external(envtest.namespace, "queue", "1", labels={"series": str(number)})
    with pytest.raises(ServerError, match="the answer has more than 1000 bytes"):
        await RESTMetricsClient(envtest_cluster, most_bytes=1000).external_metric(envtest.namespace, "queue")


async def test_without_a_stub_there_are_no_metrics(envtest: Envtest, envtest_cluster: ApiServerCluster) -> None:
    async with MetricsStub(envtest.plane):
        pass
    served = RESTMetricsClient(envtest_cluster)

    async def removed() -> NotFoundError | None:
        try:
            await served.pod_metrics(envtest.namespace)
        except NotFoundError as error:
            return error
        return None

    # The API server forwards requests for a moment after the APIService is deleted.
    usage = await eventually(removed, ignore=(ServerError,))
    assert usage is not None
    with pytest.raises(NotFoundError) as custom:
        await served.pods_metric(envtest.namespace, "hits")

    assert usage.message == "the server could not find the requested resource (get pods.metrics.k8s.io)"
    assert custom.value.message == f"no custom metrics API ({CUSTOM_METRICS}) registered"


async def test_a_stub_that_is_not_running_has_no_queries(envtest: Envtest) -> None:
    with pytest.raises(ConfigError, match="not running"):
        _ = MetricsStub(envtest.plane).queries
