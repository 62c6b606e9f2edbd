"""`RESTMetricsClient`: the path of each request, and its error messages."""

from __future__ import annotations

from typing import Any

import pytest

from ocf.controllers.metrics_client import RESTMetricsClient
from ocf.errors import ApiError, BadRequestError, NotFoundError, ServerError, api_error
from tests.controllers.metrics_client.conftest import CUSTOM, Paths

CUSTOM_HOME = "/apis/custom.metrics.k8s.io/v1beta2/namespaces/shop"
USAGE = "/apis/metrics.k8s.io/v1beta1/namespaces/shop/pods"
QUEUE = "/apis/external.metrics.k8s.io/v1beta1/namespaces/shop/queue"
INGRESSES = {"resources": [{"name": "ingresses", "kind": "Ingress", "namespaced": True}]}
NETWORKING = {
    "preferredVersion": {"groupVersion": "networking.k8s.io/v1"},
    "versions": [{"groupVersion": "networking.k8s.io/v1beta1"}, {"groupVersion": "networking.k8s.io/v1"}],
}
INGRESS = {"apiVersion": "networking.k8s.io/v1beta1", "kind": "Ingress", "name": "front"}


async def test_usage_is_requested_by_namespace_and_selector(paths: Paths, served: RESTMetricsClient) -> None:
    paths.holds(USAGE, "entry")
    assert await served.pod_metrics("shop", "app=web") == ["entry"]
    assert paths.asked == [(USAGE, {"labelSelector": "app=web"})]


async def test_usage_of_nodes_is_requested_for_all_nodes(paths: Paths, served: RESTMetricsClient) -> None:
    path = "/apis/metrics.k8s.io/v1beta1/nodes"
    paths.content[path] = {"kind": "NodeMetricsList", "items": [{"metadata": {"name": "n1"}}]}
    assert await served.node_metrics() == [{"metadata": {"name": "n1"}}]
    assert paths.asked == [(path, {})]


async def test_a_selector_that_selects_all_is_not_sent(paths: Paths, served: RESTMetricsClient) -> None:
    paths.holds(QUEUE)
    await served.external_metric("shop", "queue")
    assert paths.asked == [(QUEUE, {})]


async def test_pod_metrics_are_requested_for_all_pods_of_a_selector(paths: Paths, served: RESTMetricsClient) -> None:
    path = f"{CUSTOM_HOME}/pods/*/hits"
    paths.holds(path, "entry")
    assert await served.pods_metric("shop", "hits", selector="app=web", metric_selector="verb=get") == ["entry"]
    assert paths.asked[-1] == (path, {"labelSelector": "app=web", "metricLabelSelector": "verb=get"})


@pytest.mark.parametrize(
    ("described", "place"),
    [
        pytest.param(INGRESS, "ingresses.networking.k8s.io/front/hits", id="of a group"),
        pytest.param({"kind": "Service", "name": "front"}, "services/front/hits", id="of the core"),
        pytest.param({"apiVersion": "v1", "kind": "Namespace", "name": "elsewhere"}, "metrics/hits", id="namespace"),
        pytest.param({"kind": "Node", "name": "front"}, "nodes/front/hits", id="of no namespace"),
    ],
)
async def test_an_object_is_found_by_its_kind(
    paths: Paths, served: RESTMetricsClient, described: dict[str, str], place: str
) -> None:
    """Its version does not count, and no other namespace is read."""
    paths.content["/apis/networking.k8s.io"] = NETWORKING
    paths.content["/apis/networking.k8s.io/v1"] = INGRESSES
    core = [{"name": "services", "kind": "Service", "namespaced": True}, {"name": "nodes", "kind": "Node"}]
    paths.content["/api/v1"] = {"resources": core}
    paths.holds(f"{CUSTOM_HOME}/{place}", "entry")

    assert await served.object_metric("shop", described, "hits") == ["entry"]


async def test_discovery_results_are_cached(paths: Paths, served: RESTMetricsClient) -> None:
    paths.content["/apis/networking.k8s.io"] = NETWORKING
    paths.content["/apis/networking.k8s.io/v1"] = INGRESSES
    paths.holds(f"{CUSTOM_HOME}/ingresses.networking.k8s.io/front/hits", "entry")
    await served.object_metric("shop", INGRESS, "hits")
    before = len(paths.asked)
    await served.object_metric("shop", INGRESS, "hits")

    assert len(paths.asked) == before + 1


async def test_an_unknown_kind_has_the_message_of_the_built_in_controller(
    paths: Paths, served: RESTMetricsClient
) -> None:
    paths.content["/apis/networking.k8s.io"] = NETWORKING
    paths.content["/apis/networking.k8s.io/v1"] = {"resources": []}
    with pytest.raises(NotFoundError) as caught:
        await served.object_metric("shop", INGRESS, "hits")

    assert caught.value.message == (
        "unable to map kind Ingress.networking.k8s.io to resource: "
        'no matches for kind "Ingress" in group "networking.k8s.io"'
    )


@pytest.mark.parametrize(
    ("group", "version"),
    [
        pytest.param(CUSTOM, "v1beta2", id="the preferred one"),
        pytest.param({**CUSTOM, "preferredVersion": CUSTOM["versions"][1]}, "v1beta1", id="an older one"),
        pytest.param(
            {
                "preferredVersion": {"groupVersion": "custom.metrics.k8s.io/v9"},
                "versions": [
                    {"groupVersion": "custom.metrics.k8s.io/v9"},
                    {"groupVersion": "custom.metrics.k8s.io/v1beta1"},
                ],
            },
            "v1beta1",
            id="one that is known",
        ),
        pytest.param({"preferredVersion": "?", "versions": [7, CUSTOM["versions"][0]]}, "v1beta2", id="among nonsense"),
    ],
)
async def test_the_server_chooses_the_version_of_custom_metrics(
    paths: Paths, served: RESTMetricsClient, group: dict[str, Any], version: str
) -> None:
    paths.content["/apis/custom.metrics.k8s.io"] = group
    path = f"/apis/custom.metrics.k8s.io/{version}/namespaces/shop/pods/*/hits"
    paths.holds(path, "entry")

    assert await served.pods_metric("shop", "hits") == ["entry"]


@pytest.mark.parametrize(
    ("group", "message"),
    [
        pytest.param(None, "no custom metrics API (custom.metrics.k8s.io) registered", id="no group"),
        pytest.param({"versions": []}, "no known available metric versions found", id="no version"),
    ],
)
async def test_an_api_server_without_custom_metrics_is_an_error(
    paths: Paths, served: RESTMetricsClient, group: dict[str, Any] | None, message: str
) -> None:
    paths.content.pop("/apis/custom.metrics.k8s.io")
    if group is not None:
        paths.content["/apis/custom.metrics.k8s.io"] = group
    with pytest.raises(NotFoundError) as caught:
        await served.pods_metric("shop", "hits")

    assert caught.value.message == message


async def test_a_removed_version_is_looked_up_again(paths: Paths, served: RESTMetricsClient) -> None:
    paths.holds(f"{CUSTOM_HOME}/pods/*/hits", "old")
    await served.pods_metric("shop", "hits")
    del paths.content[f"{CUSTOM_HOME}/pods/*/hits"]
    paths.content["/apis/custom.metrics.k8s.io"] = {**CUSTOM, "preferredVersion": CUSTOM["versions"][1]}
    paths.holds("/apis/custom.metrics.k8s.io/v1beta1/namespaces/shop/pods/*/hits", "new")
    with pytest.raises(NotFoundError):
        await served.pods_metric("shop", "hits")

    assert await served.pods_metric("shop", "hits") == ["new"]


@pytest.mark.parametrize(
    ("error", "message"),
    [
        pytest.param(None, "the server could not find the requested resource (get pods.metrics.k8s.io)", id="no path"),
        pytest.param(
            api_error(f"GET {USAGE}: HTTP 503 without a Status that gives the reason", code=503),
            "the server is currently unable to handle the request (get pods.metrics.k8s.io)",
            id="a proxy",
        ),
        pytest.param(
            api_error(f"GET {USAGE}: HTTP 418 without a Status that gives the reason", code=418),
            "the server responded with the status code 418 but did not return more information "
            "(get pods.metrics.k8s.io)",
            id="a code without a sentence",
        ),
        pytest.param(
            api_error(f"GET {USAGE}: nothing here", code=404, reason="NotFound"), "nothing here", id="a Status"
        ),
        pytest.param(api_error("nothing here", code=500), "nothing here", id="a Status without a reason"),
        pytest.param(
            api_error(f"GET {USAGE}: no answer: time is up"), f"GET {USAGE}: no answer: time is up", id="no answer"
        ),
    ],
)
async def test_an_error_has_the_message_of_the_controllers_client(
    paths: Paths, served: RESTMetricsClient, error: ApiError | None, message: str
) -> None:
    if error is not None:
        paths.content[USAGE] = error
    with pytest.raises(ApiError) as caught:
        await served.pod_metrics("shop")

    assert caught.value.message == message


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        pytest.param({"items": {}}, "the response is not of kind PodMetricsList", id="no list"),
        pytest.param(
            {"kind": "ConfigMapList", "items": []}, "the response is not of kind PodMetricsList", id="of another kind"
        ),
        pytest.param({"metadata": "?", "items": []}, "the response is not of kind PodMetricsList", id="no metadata"),
        pytest.param(
            {"metadata": {"continue": "more"}, "items": []},
            "the response is only a part of the PodMetricsList",
            id="cut",
        ),
    ],
)
async def test_a_response_that_is_not_a_complete_list_is_an_error(
    paths: Paths, served: RESTMetricsClient, answer: dict[str, Any], message: str
) -> None:
    paths.content[USAGE] = answer
    with pytest.raises(ServerError, match=message):
        await served.pod_metrics("shop")


@pytest.mark.parametrize("items", [None, []])
async def test_a_list_may_be_empty(paths: Paths, served: RESTMetricsClient, items: list[Any] | None) -> None:
    paths.content[USAGE] = {"items": items}
    assert list(await served.pod_metrics("shop")) == []


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "a%2fb"])
async def test_a_name_cannot_change_the_path(paths: Paths, served: RESTMetricsClient, name: str) -> None:
    with pytest.raises(BadRequestError, match="invalid metric"):
        await served.external_metric("shop", name)
    assert paths.asked == []


async def test_a_name_is_escaped(paths: Paths, served: RESTMetricsClient) -> None:
    path = "/apis/external.metrics.k8s.io/v1beta1/namespaces/shop/sqs%20len%3Fa%3Db"
    paths.holds(path, "entry")
    assert await served.external_metric("shop", "sqs len?a=b") == ["entry"]
