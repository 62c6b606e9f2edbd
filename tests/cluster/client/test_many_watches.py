"""Watches take no connection away from requests, however many there are.

Each watch holds a connection by HTTP/1.1, so the limit of a pool decides how much of a cluster can be watched:
https://github.com/tomplus/kubernetes_asyncio/issues/74, https://github.com/fabric8io/kubernetes-client/pull/4678,
https://github.com/fabric8io/kubernetes-client/issues/914, https://github.com/kubernetes-client/python/issues/402. By
HTTP/2 the streams of a connection do: https://github.com/kubernetes/client-go/issues/456,
https://github.com/prometheus/prometheus/issues/4528, https://github.com/kubernetes-client/csharp/pull/1304,
https://github.com/kubernetes-sigs/agent-sandbox/pull/1240; behind an API server, too:
https://github.com/kubernetes/kubernetes/issues/60042.
"""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest
from aiohttp import web

from ocf.cluster import ListOptions, WatchOptions
from ocf.cluster.cache import CachedCluster
from ocf.cluster.client import ApiServerCluster, RestConfig
from ocf.cluster.client.connection import MAX_REQUESTS, Connection
from ocf.cluster.client.kubeconfig import load_config
from ocf.cluster.client.requests import HttpRequest
from ocf.errors import ApiError, ServerError
from ocf.objects import Manifest
from ocf_server import EmbeddedCluster
from ocf_server.http import serving, write_kubeconfig

if TYPE_CHECKING:
    from ocf.testing.envtest import ControlPlane
    from tests.cluster.client.conftest import Server

WATCHES: Final = 300
NAMESPACES: Final = 12
REQUESTS: Final = 120  # at the same time, more than may be sent
HELD: Final = HttpRequest("GET", "/held")


@pytest.fixture(params=["embedded", "envtest"])
def kubeconfig(request: pytest.FixtureRequest) -> Path | None:
    """Return the kubeconfig of a real API server; None to serve the embedded cluster."""
    if request.param == "embedded":
        return None
    plane: ControlPlane = request.getfixturevalue("envtest_plane")
    return plane.kubeconfig


@asynccontextmanager
async def _api(kubeconfig: Path | None, *, tls: bool = False) -> AsyncIterator[RestConfig]:
    """Serve the embedded cluster unless there is another API server, and yield how to connect."""
    if kubeconfig is not None:
        yield load_config(kubeconfig)
        return
    async with serving(EmbeddedCluster(), tls=tls) as server:
        yield _config_of(server.kubeconfig())


def _config_of(kubeconfig: dict[str, Any]) -> RestConfig:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "kubeconfig")
        write_kubeconfig(kubeconfig, path)
        return load_config(path)


async def _namespaces(cluster: ApiServerCluster, count: int) -> list[str]:
    home = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"generateName": "watched-"}}
    made = await asyncio.gather(*(cluster.create(home, field_manager="user") for _ in range(count)))
    return [each["metadata"]["name"] for each in made]


def _config_map(namespace: str, name: str) -> Manifest:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": namespace}}


async def _watch_and_request(cluster: ApiServerCluster, watches: int) -> None:
    """Open watches, send requests at the same time, and wait until each watch has its events."""
    homes = await _namespaces(cluster, NAMESPACES)
    versions = {
        home: (await cluster.list("v1", "ConfigMap", ListOptions(namespace=home))).resource_version for home in homes
    }
    wanted = {f"made-{number}" for number in range(REQUESTS // NAMESPACES)}
    opened = asyncio.Barrier(watches + 1)

    async def follow(home: str) -> None:
        marker, missing = f"open-{home}", set(wanted)
        options = WatchOptions(namespace=home, resource_version=versions[home])
        async with aclosing(cluster.watch("v1", "ConfigMap", options)) as events:
            async for event in events:
                name = event.object["metadata"].get("name")  # a bookmark has none
                if name == marker:
                    await opened.wait()
                missing.discard(name)
                if not missing:
                    return

    async with asyncio.TaskGroup() as tasks:
        for number in range(watches):
            tasks.create_task(follow(homes[number % NAMESPACES]))
        # Each watch has received an event, so all are open, before anything else is requested.
        await asyncio.gather(
            *(cluster.create(_config_map(home, f"open-{home}"), field_manager="user") for home in homes)
        )
        await opened.wait()
        creating = [
            cluster.create(_config_map(home, name), field_manager="user") for home in homes for name in sorted(wanted)
        ]
        made = await asyncio.gather(*creating)
        assert len(made) == REQUESTS


@pytest.mark.promise("watches-unlimited", runs="300 watches over HTTP/1.1, with 120 requests at the same time")
async def test_300_watches_receive_events_while_requests_go_on(kubeconfig: Path | None) -> None:
    async with _api(kubeconfig) as config, ApiServerCluster(config) as cluster:
        await _watch_and_request(cluster, WATCHES)


KINDS: Final = (
    ("v1", "ConfigMap"),
    ("v1", "Secret"),
    ("v1", "Service"),
    ("v1", "ServiceAccount"),
    ("v1", "Pod"),
    ("v1", "PersistentVolumeClaim"),
    ("apps/v1", "Deployment"),
    ("apps/v1", "StatefulSet"),
    ("batch/v1", "Job"),
    ("networking.k8s.io/v1", "Ingress"),
    ("rbac.authorization.k8s.io/v1", "Role"),
    ("autoscaling/v2", "HorizontalPodAutoscaler"),
)


@pytest.mark.promise("watches-unlimited", runs="caches of 12 kinds in 12 namespaces")
async def test_a_cache_of_12_kinds_in_12_namespaces_follows_and_writes_go_on(kubeconfig: Path | None) -> None:
    async with _api(kubeconfig) as config, ApiServerCluster(config) as cluster, CachedCluster(cluster) as cached:
        homes = await _namespaces(cluster, NAMESPACES)
        await asyncio.gather(
            *(cached.cache(version, kind, namespace=home) for version, kind in KINDS for home in homes)
        )
        for home in homes:
            await cached.apply(_config_map(home, "settings"), field_manager="us", force=True)

        assert (len(cached.informers), cached.problems) == (NAMESPACES * len(KINDS), ())


@asynccontextmanager
async def _connect_proxy() -> AsyncIterator[tuple[str, list[str]]]:
    """Run an HTTP proxy for CONNECT; yields its address, and the first line of each request."""
    asked: list[str] = []
    open_pipes: set[asyncio.Task[None]] = set()
    writers: list[asyncio.StreamWriter] = []

    async def copy(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
        try:
            while data := await source.read(2**16):
                target.write(data)
                await target.drain()
        except OSError:
            pass
        finally:
            target.transport.abort()

    async def relay(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        asked.append(head.partition("\r\n")[0])
        host, _, port = head.split()[1].rpartition(":")
        far_reader, far_writer = await asyncio.open_connection(host, int(port))
        writers.extend((writer, far_writer))
        writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
        for pipe in (copy(reader, far_writer), copy(far_reader, writer)):
            task = asyncio.create_task(pipe)
            open_pipes.add(task)
            task.add_done_callback(open_pipes.discard)

    server = await asyncio.start_server(relay, "127.0.0.1", 0, backlog=WATCHES)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", asked
    finally:
        server.close()
        for pipe in list(open_pipes):
            pipe.cancel()
        await asyncio.gather(*open_pipes, return_exceptions=True)
        for writer in writers:  # a task that was cancelled before its first step has aborted nothing
            writer.transport.abort()
        await asyncio.sleep(0)  # lets the loop close the aborted connections


async def test_watches_through_a_proxy_take_no_connection_from_requests(kubeconfig: Path | None) -> None:
    async with (
        _api(kubeconfig, tls=True) as config,
        _connect_proxy() as (address, asked),
        ApiServerCluster(replace(config, proxy_url=address)) as cluster,
    ):
        await _watch_and_request(cluster, MAX_REQUESTS + NAMESPACES)

    assert {line.split()[0] for line in asked} == {"CONNECT"}
    assert len(asked) > MAX_REQUESTS + NAMESPACES


class _Gate:
    """A handler that answers when it is opened, and counts the requests that wait."""

    def __init__(self) -> None:
        self.opened = asyncio.Event()
        self.full = asyncio.Event()
        self.waiting = self.most = 0

    async def __call__(self, _: web.Request) -> web.StreamResponse:
        self.waiting += 1
        self.most = max(self.most, self.waiting)
        if self.waiting == MAX_REQUESTS:
            self.full.set()
        await self.opened.wait()
        self.waiting -= 1
        return web.json_response({})


async def test_requests_beyond_the_limit_wait_for_another_one_to_end(server: Server, config: RestConfig) -> None:
    """A watch does not wait."""
    gate = _Gate()
    server.handle("GET", "/held", gate)
    server.answer("GET", "/watch", {})
    connection = Connection(config, timeout=600, idle_timeout=600)
    async with asyncio.TaskGroup() as tasks:
        sent = [tasks.create_task(connection.send(HELD)) for _ in range(MAX_REQUESTS + 20)]
        await gate.full.wait()
        (await connection.stream(HttpRequest("GET", "/watch"))).close()
        cancelled = sent.pop()
        cancelled.cancel()
        gate.opened.set()
    await connection.close()

    assert [task.result() for task in sent] == [{}] * (MAX_REQUESTS + 19)
    assert (gate.most, cancelled.cancelled()) == (MAX_REQUESTS, True)


async def test_a_request_that_waits_too_long_is_not_sent_and_the_error_says_why(
    server: Server, config: RestConfig
) -> None:
    gate = _Gate()
    server.handle("GET", "/held", gate)
    connection = Connection(config, timeout=600, idle_timeout=600)
    async with asyncio.TaskGroup() as tasks:
        held = [tasks.create_task(connection.send(HELD)) for _ in range(MAX_REQUESTS)]
        await gate.full.wait()
        connection._timeout = 0.05
        with pytest.raises(ServerError) as caught:
            await connection.send(HttpRequest("POST", "/waits"))
        gate.opened.set()
    await connection.close()

    advice = "100 other requests of this client for reconciles had no answer yet, see whether the API server is slow"
    assert str(caught.value) == f"POST /waits: not sent: time is up; {advice}"
    assert (caught.value.code, server.asked("/waits"), len(held)) == (0, [], MAX_REQUESTS)


async def test_a_request_that_fails_lets_another_one_go(server: Server, config: RestConfig) -> None:
    """Whatever the answer is; otherwise an operator would stop after a hundred errors."""
    server.answer("GET", "/refused", "no", status=500)
    server.answer("GET", "/text", "not JSON")
    server.answer("GET", "/x", {"ok": True})
    connection = Connection(config, timeout=600, idle_timeout=600)
    for path in ("/refused", "/text", "/missing"):
        for _ in range(MAX_REQUESTS):
            with pytest.raises(ApiError):
                await connection.send(HttpRequest("GET", path))

    assert await connection.send(HttpRequest("GET", "/x")) == {"ok": True}
    await connection.close()
