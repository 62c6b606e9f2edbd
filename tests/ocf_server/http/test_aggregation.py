"""Aggregated API servers: registered, listed, checked, and given the requests for their groups."""

import asyncio
import base64
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

import pytest
import trustme
from aiohttp import web

from ocf_server.http.server import HttpServer
from tests.ocf_server.http.conftest import Client as HttpClient
from tests.ocf_server.http.conftest import Either
from tests.support import eventually, serving_locally

Client = Callable[..., Awaitable[Any]]
AUTHORITY = trustme.CA()
GROUP = "/apis/fruit.example.com"
SERVICES = "/apis/apiregistration.k8s.io/v1/apiservices"
NAME = "v1.fruit.example.com"
VERBS = ["get", "list"]
AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
APPLES = {"name": "apples", "singularName": "apple", "namespaced": True, "kind": "Apple", "verbs": VERBS}
PART = {"name": "apples/core", "singularName": "", "namespaced": True, "kind": "Core", "verbs": ["get"]}


@dataclass
class Orchard:
    """An API server for tests; it answers with what it was asked."""

    port: int
    asked: list[web.Request] = field(default_factory=list)
    watched: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(0))

    def service(self, namespace: str, **spec: Any) -> dict[str, Any]:
        place = {"namespace": namespace, "name": "orchard", "port": self.port}
        trust = {"caBundle": base64.b64encode(AUTHORITY.cert_pem.bytes()).decode()}
        wanted = {"group": "fruit.example.com", "version": "v1", "groupPriorityMinimum": 100, "versionPriority": 10}
        return {
            "apiVersion": "apiregistration.k8s.io/v1",
            "kind": "APIService",
            "metadata": {"name": NAME},
            "spec": {**wanted, "service": place, **(trust if "insecureSkipTLSVerify" not in spec else {}), **spec},
        }


@asynccontextmanager
async def orchard(host: str) -> AsyncIterator[Orchard]:
    found = Orchard(0)

    async def handle(request: web.Request) -> web.Response:
        if request.path == f"{GROUP}/v1":
            head = {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": "fruit.example.com/v1"}
            return web.json_response({**head, "resources": [APPLES, PART]})
        if "watch" in request.query:
            answer = web.StreamResponse()
            await answer.prepare(request)
            await answer.write(b"{}\n")
            found.watched.release()
            await asyncio.Event().wait()
        found.asked.append(request)
        body = await request.text()
        headers = {"X-Fruit": "ripe", "Warning": '299 - "sour"'}
        seen = {"path": request.path_qs, "method": request.method, "body": body}
        return web.json_response(seen, status=418, headers=headers)

    app = web.Application()
    app.router.add_route("*", "/{path:.*}", handle)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    AUTHORITY.issue_cert(host).configure_cert(context)
    async with serving_locally(app, tls=context) as address:
        found.port = int(address.rpartition(":")[2])
        yield found


@asynccontextmanager
async def registered(either: Either, **spec: Any) -> AsyncIterator[Orchard]:
    """Register an API server, behind a Service that names this machine."""
    namespace = either.path.rpartition("/")[2]
    async with orchard(f"orchard.{namespace}.svc") as served:
        local = {"type": "ExternalName", "externalName": "localhost"}
        made = await either.ask("POST", f"{either.path}/services", {"metadata": {"name": "orchard"}, "spec": local})
        assert made.status == 201, made.text
        made = await either.ask("POST", SERVICES, served.service(namespace, **spec))
        assert made.status == 201, made.text
        try:
            yield served
        finally:
            await either.ask("DELETE", f"{SERVICES}/{NAME}")


async def available(ask: Client, status: str) -> dict[str, Any]:
    """Wait until the condition has a status; return it."""

    async def read() -> dict[str, Any]:
        found = (await ask("GET", f"{SERVICES}/{NAME}")).json
        condition: dict[str, Any] = next(iter(found["status"].get("conditions", ())), {})
        return condition

    return await eventually(read, lambda condition: condition.get("status") == status)


async def listed(ask: Client, group: dict[str, Any]) -> bool:
    return group in (await ask("GET", "/apis")).json["groups"]


async def unknown(ask: Client) -> bool:
    status: int = (await ask("GET", f"{GROUP}/v1/namespaces/shop/apples")).status
    return status == 404


async def test_a_server_gets_the_requests_for_its_group(either: Either) -> None:
    async with registered(either) as served:
        condition = await available(either.ask, "True")
        assert (condition["type"], condition["reason"]) == ("Available", "Passed")
        assert condition["message"] == "all checks passed"
        path, body = f"{GROUP}/v1/namespaces/shop/apples?a=b&c=%20", {"x": 1}
        # A real API server forwards requests a moment after the condition.
        reply = await eventually(
            lambda: either.ask("POST", path, body, X_Remote_User="eve"), lambda reply: reply.status != 503
        )
        assert (reply.status, reply.headers["X-Fruit"], reply.warnings) == (418, "ripe", ('299 - "sour"',))
        assert reply.json["method"] == "POST"
        assert reply.json["body"] == '{"x": 1}'
        headers = served.asked[-1].headers
        assert headers["X-Remote-User"] != "eve"
        assert "system:masters" in headers.getall("X-Remote-Group")
        assert "Authorization" not in headers


async def test_watches_take_no_connection_from_requests(either: Either) -> None:
    """As reported of an API server with HTTP/2: https://github.com/kubernetes/kubernetes/issues/60042."""
    path = f"{GROUP}/v1/namespaces/shop/apples"
    async with registered(either) as served:
        await available(either.ask, "True")
        await eventually(lambda: either.ask("GET", path), lambda reply: reply.status != 503)
        async with asyncio.timeout(600):
            watches = [asyncio.create_task(either.ask("GET", f"{path}?watch=true")) for _ in range(120)]
            for _ in watches:
                await served.watched.acquire()
            assert (await either.ask("GET", path)).status == 418
        for watch in watches:
            watch.cancel()
        await asyncio.gather(*watches, return_exceptions=True)


async def test_a_watch_ends_with_a_client_that_closes_its_side(server: HttpServer, ask: HttpClient) -> None:
    either = Either(ask, "/api/v1/namespaces/shop", lambda _: ask)
    place = urlsplit(server.url)
    async with registered(either) as served:
        await available(either.ask, "True")
        reader, writer = await asyncio.open_connection(place.hostname, place.port)
        writer.write(f"GET {GROUP}/v1/namespaces/shop/apples?watch=true HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode())
        await served.watched.acquire()
        writer.write_eof()
        assert (await reader.read()).endswith(b"{}\n\r\n0\r\n\r\n")
        writer.close()
        await writer.wait_closed()


async def test_its_version_is_discovered(either: Either) -> None:
    async with registered(either):
        await available(either.ask, "True")
        group = {
            "name": "fruit.example.com",
            "versions": [{"groupVersion": "fruit.example.com/v1", "version": "v1"}],
            "preferredVersion": {"groupVersion": "fruit.example.com/v1", "version": "v1"},
        }
        # A real API server serves the group some time after the condition.
        await eventually(lambda: listed(either.ask, group))
        assert (await either.ask("GET", GROUP)).json == {"kind": "APIGroup", "apiVersion": "v1", **group}
        assert (await either.ask("GET", f"{GROUP}/v1")).json["resources"] == [APPLES, PART]


async def test_aggregated_discovery_lists_its_resources(either: Either) -> None:
    async with registered(either):
        await available(either.ask, "True")

        async def read() -> dict[str, Any]:
            items = (await either.ask("GET", "/apis", Accept=AGGREGATED)).json["items"]
            return {item["metadata"]["name"]: item for item in items}

        def is_current(groups: dict[str, Any]) -> bool:
            fruit = groups.get("fruit.example.com")
            return fruit is not None and fruit["versions"][0]["freshness"] == "Current"

        found = (await eventually(read, is_current))["fruit.example.com"]
    kind = {"group": "", "version": "", "kind": "Core"}
    resource = found["versions"][0]["resources"][0]
    assert (resource["resource"], resource["scope"], resource["verbs"]) == ("apples", "Namespaced", VERBS)
    assert resource["responseKind"]["kind"] == "Apple"
    assert [(part["subresource"], part["verbs"]) for part in resource["subresources"]] == [("core", ["get"])]
    assert resource["subresources"][0]["responseKind"]["kind"] == kind["kind"]


async def test_a_certificate_of_another_authority_is_rejected(either: Either) -> None:
    other = base64.b64encode(trustme.CA().cert_pem.bytes()).decode()
    async with registered(either, caBundle=other):
        assert (await available(either.ask, "False"))["reason"] == "FailedDiscoveryCheck"
        reply = await either.ask("GET", f"{GROUP}/v1/namespaces/shop/apples")
        assert (reply.status, reply.text) == (503, "service unavailable\n")


async def test_any_certificate_may_be_accepted(either: Either) -> None:
    async with registered(either, insecureSkipTLSVerify=True):
        assert (await available(either.ask, "True"))["reason"] == "Passed"


async def test_a_missing_service_is_named(either: Either) -> None:
    namespace = either.path.rpartition("/")[2]
    manifest = Orchard(443).service(namespace, insecureSkipTLSVerify=True)
    assert (await either.ask("POST", SERVICES, manifest)).status == 201
    try:
        condition = await available(either.ask, "False")
        message = f'service/orchard in "{namespace}" is not present'
        assert (condition["reason"], condition["message"]) == ("ServiceNotFound", message)
        reply = await either.ask("GET", f"{GROUP}/v1/namespaces/shop/apples")
        assert (reply.status, reply.text) == (503, "service unavailable\n")
    finally:
        await either.ask("DELETE", f"{SERVICES}/{NAME}")
    await eventually(lambda: unknown(either.ask))


@pytest.mark.parametrize(
    ("spec", "problem"),
    [
        pytest.param({"group": "x y"}, "spec.group: Invalid value", id="group"),
        pytest.param({"versionPriority": 1001}, "must be positive and less than 1000", id="priority"),
        pytest.param({"service": {"name": "a"}}, "spec.service.namespace: Required value", id="namespace"),
        pytest.param({"caBundle": "YQ==", "insecureSkipTLSVerify": True}, "may not be true if caBundle", id="trusts"),
        pytest.param({"service": None}, "local APIServices may not have a caBundle", id="local"),
    ],
)
async def test_an_invalid_registration_is_rejected(spec: dict[str, Any], problem: str, either: Either) -> None:
    reply = await either.ask("POST", SERVICES, Orchard(443).service("shop", **{"caBundle": "YQ==", **spec}))
    assert reply.status == 422
    assert problem in reply.json["message"]


async def test_its_row_has_the_service_and_whether_it_is_available(either: Either) -> None:
    async with registered(either):
        await available(either.ask, "True")
        table = await either.ask("GET", f"{SERVICES}/{NAME}", Accept="application/json;as=Table;g=meta.k8s.io;v=v1")
    namespace = either.path.rpartition("/")[2]
    assert table.json["rows"][0]["cells"][:3] == [NAME, f"{namespace}/orchard", "True"]
