"""Logs of pods, and actions that need a running container."""

from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Any, Final
from urllib.parse import quote

import aiohttp
import pytest

from ocf.errors import ApiError
from ocf.objects import Manifest
from ocf_server import CustomKind, EmbeddedCluster
from ocf_server.http import serving
from ocf_server.http.pod_logs import LOG, LogOptions, log_of
from tests.ocf_server.http.conftest import Client

Kubectl = Callable[..., Awaitable[Any]]

NOW: Final = datetime(2026, 1, 31, 12, 0, 30, tzinfo=UTC)
STARTED: Final = "2026-01-31T12:00:00Z"
PATH: Final = "/api/v1/namespaces/shop/pods"


def pod(*names: str, log: str | None = "one\ntwo\nthrée\n", node: str = "node", started: bool = True) -> Manifest:
    annotations = {} if log is None else {LOG: log}
    state = {"running": {"startedAt": STARTED}} if started else {"waiting": {"reason": "ContainerCreating"}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "web", "namespace": "shop", "annotations": annotations},
        "spec": {"nodeName": node, "containers": [{"name": name, "image": "web:1"} for name in names]},
        "status": {"containerStatuses": [{"name": name, "state": state} for name in names]},
    }


def shown(manifest: Manifest, **query: str) -> Any:
    return log_of(manifest, LogOptions.read(query, "web", NOW)).body


@pytest.mark.parametrize(
    ("query", "text"),
    [
        pytest.param({}, "one\ntwo\nthrée\n", id="all"),
        pytest.param({"container": "app"}, "one\ntwo\nthrée\n", id="by name"),
        pytest.param({"tailLines": "2"}, "two\nthrée\n", id="last lines"),
        pytest.param({"tailLines": "0"}, "", id="no line"),
        pytest.param({"tailLines": "9"}, "one\ntwo\nthrée\n", id="more lines than there are"),
        pytest.param({"limitBytes": "5"}, "one\nt", id="first bytes"),
        pytest.param({"limitBytes": "12"}, "one\ntwo\nthr", id="not half of a character"),
        pytest.param({"sinceSeconds": "10"}, "", id="since the container started"),
        pytest.param({"sinceSeconds": "60"}, "one\ntwo\nthrée\n", id="since before"),
        pytest.param({"sinceTime": "2026-01-31T12:00:01Z"}, "", id="since a time"),
        pytest.param({"timestamps": "true", "tailLines": "1"}, f"{STARTED} thrée\n", id="with times"),
        pytest.param({"follow": "true"}, "one\ntwo\nthrée\n", id="followed"),
    ],
)
def test_the_log_is_the_annotation(query: dict[str, str], text: str) -> None:
    assert shown(pod("app"), **query) == text


def test_a_pod_without_a_node_has_no_log_yet() -> None:
    assert log_of(pod("app", node=""), LogOptions.read({}, "web", NOW)).code == 204


@pytest.mark.parametrize(
    ("manifest", "query", "code", "message"),
    [
        pytest.param(
            pod("app", log=None),
            {},
            501,
            "the log of pod web is not available: no container runs in the embedded cluster; "
            "the annotation ocf.dev/log of the pod sets its text",
            id="no annotation",
        ),
        pytest.param(pod("app"), {"container": "x"}, 400, "container x is not valid for pod web", id="container"),
        pytest.param(
            pod("app", "side"),
            {},
            400,
            "a container name must be specified for pod web, choose one of: [app side]",
            id="several containers",
        ),
        pytest.param(
            pod("app", started=False),
            {},
            400,
            'container "app" in pod "web" is waiting to start: ContainerCreating',
            id="not started",
        ),
        pytest.param(
            pod("app"),
            {"previous": "true"},
            400,
            'previous terminated container "app" in pod "web" not found',
            id="previous container",
        ),
    ],
)
def test_a_log_that_is_not_there_is_an_error(
    manifest: Manifest, query: dict[str, str], code: int, message: str
) -> None:
    with pytest.raises(ApiError) as caught:
        shown(manifest, **query)
    assert (caught.value.code, caught.value.message) == (code, message)


INVALID: Final = 'PodLogOptions "web" is invalid: '


@pytest.mark.parametrize(
    ("query", "message"),
    [
        pytest.param(
            {"tailLines": "-1"},
            f"{INVALID}tailLines: Invalid value: -1: must be greater than or equal to 0",
            id="lines",
        ),
        pytest.param({"tailLines": "x"}, 'strconv.ParseInt: parsing "x": invalid syntax', id="not a number"),
        pytest.param({"limitBytes": "0"}, f"{INVALID}limitBytes: Invalid value: 0: must be greater than 0", id="bytes"),
        pytest.param(
            {"sinceSeconds": "0"}, f"{INVALID}sinceSeconds: Invalid value: 0: must be greater than 0", id="seconds"
        ),
        pytest.param(
            {"sinceSeconds": "1", "sinceTime": STARTED},
            f"{INVALID}[]: Forbidden: at most one of `sinceTime` or `sinceSeconds` may be specified",
            id="two instants",
        ),
        pytest.param(
            {"sinceTime": "x"},
            'parsing time "x" as "2006-01-02T15:04:05Z07:00": cannot parse "x" as "2006"',
            id="not a time",
        ),
        pytest.param({"stream": "Stdout"}, f"{INVALID}stream: Forbidden: may not be specified", id="stream"),
    ],
)
def test_invalid_options_are_rejected_as_by_a_real_api_server(query: dict[str, str], message: str) -> None:
    with pytest.raises(ApiError) as caught:
        LogOptions.read(query, "web", NOW)
    assert caught.value.message == message


async def created(ask: Client) -> None:
    manifest = pod("app")
    assert (await ask("POST", PATH, {**manifest, "status": {}})).status == 201
    assert (await ask("PATCH", f"{PATH}/web/status", manifest, kind="application/merge-patch+json")).status == 200


async def test_the_log_is_read_over_http(ask: Client) -> None:
    await created(ask)
    reply = await ask("GET", f"{PATH}/web/log?tailLines=1")
    assert (reply.status, reply.headers["Content-Type"], reply.text) == (200, "text/plain; charset=utf-8", "thrée\n")
    assert (await ask("GET", f"{PATH}/none/log")).json["message"] == 'pods "none" not found'
    assert (await ask("POST", f"{PATH}/web/log")).status == 405


@pytest.mark.parametrize("action", ["attach", "exec", "portforward", "proxy"])
async def test_an_action_on_a_container_is_not_implemented(ask: Client, action: str) -> None:
    await created(ask)
    assert (await ask("POST", f"{PATH}/web/{action}?command=ls")).json["message"] == (
        f"{action} of pod web is not supported: no container runs in the embedded cluster; "
        "use a cluster with nodes for it"
    )
    assert (await ask("POST", f"{PATH}/none/{action}")).status == 404


async def test_kubectl_prints_the_log_and_the_reason_of_a_rejected_action(ask: Client, kubectl: Kubectl) -> None:
    await created(ask)
    assert (await kubectl("logs", "web", "-n", "shop", "--tail=2")).out == "two\nthrée\n"
    rejected = await kubectl("exec", "web", "-n", "shop", "--", "ls", code=1)
    assert "exec of pod web is not supported: no container runs in the embedded cluster" in rejected.err


async def test_a_kind_of_another_group_that_is_named_like_pods_has_none_of_their_subresources() -> None:
    async with (
        serving(EmbeddedCluster(kinds=[CustomKind("example.com", "v1", "Pod")], namespaces=["shop"])) as server,
        aiohttp.ClientSession() as session,
    ):
        ask, path = Client(server.url, session), "/apis/example.com/v1/namespaces/shop/pods"
        made = {"apiVersion": "example.com/v1", "kind": "Pod", "metadata": {"name": "web"}}
        assert (await ask("POST", path, made)).status == 201
        reply = await ask("GET", f"{path}/web/log")
        assert (reply.status, reply.json["message"]) == (404, "the server could not find the requested resource")


@pytest.mark.parametrize("name", ["a=b,c", "a b", "(", "web,!x"])
async def test_a_proxied_service_is_found_by_its_name_whatever_that_is(ask: Client, name: str) -> None:
    labels = {"kubernetes.io/service-name": "web"}
    slices = {"metadata": {"name": "web-1", "labels": labels}, "addressType": "IPv4", "endpoints": []}
    await ask("POST", "/apis/discovery.k8s.io/v1/namespaces/shop/endpointslices", slices)
    services = "/api/v1/namespaces/shop/services"
    reply = await ask("GET", f"{services}/{quote(name)}/proxy/")
    assert (reply.status, reply.json["message"]) == (404, f'services "{name}" not found')
    assert (await ask("GET", f"{services}/web/proxy/")).status == 503
