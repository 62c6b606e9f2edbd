"""Faults of a server over a real connection: what an error is there, the client has to make of it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from examples.memcached import monitor
from examples.memcached.model import Memcached
from examples.memcached.operator import memcached_operator
from examples.memcached.samples import AUTOSCALED
from ocf.cluster import Cluster, InterceptingCluster, Request, Verb, WatchOptions
from ocf.cluster.client import ApiServerCluster
from ocf.cluster.protocol import EventType
from ocf.errors import api_error
from ocf.objects import Manifest
from ocf.runtime.operator import ManagerOptions, running
from ocf_server import EmbeddedCluster
from ocf_server.http import serving, write_kubeconfig
from ocf_server.http.server import HttpServer
from tests.examples.memcached.env import Env, embedded_kubelet
from tests.examples.memcached.faults.env import HPA, KINDS, NAMESPACE

TIMEOUT: Final = 600.0
ASKED: Final = 1


async def new_env() -> Env:
    cluster = EmbeddedCluster(namespaces=[NAMESPACE])
    for one in (Memcached.definition(), monitor.DEFINITION):
        await cluster.create(one, field_manager="user")
    return Env(cluster, NAMESPACE, embedded_kubelet)


async def operate(stack: AsyncExitStack, server: HttpServer, path: Path) -> None:
    """Run the operator on a server until the end."""
    write_kubeconfig(server.kubeconfig(), path)
    client = await stack.enter_async_context(await ApiServerCluster.connect(path))
    operator = replace(memcached_operator, resync=None)
    await stack.enter_async_context(running(client, operator, options=ManagerOptions(listen=None, events=False)))


async def seen(env: Env, kind: str, holds: Callable[[Manifest], object]) -> Manifest:
    """Wait until an object is as it should be."""
    api_version = KINDS.get(kind, "memcached.c5c3.io/v1alpha1")
    async with asyncio.timeout(TIMEOUT):
        async for event in env.cluster.watch(
            api_version, kind, WatchOptions(resource_version="0", namespace=NAMESPACE)
        ):
            if event.type is not EventType.BOOKMARK and holds(event.object):
                return event.object
    raise AssertionError("a watch has ended")


class Slow(InterceptingCluster):
    """Refuses the first writes of Deployments, and asks for time; notes when each came."""

    def __init__(self, cluster: Cluster, refusals: int) -> None:
        super().__init__(cluster)
        self._left = refusals
        self.came: list[float] = []

    async def intercept(self, request: Request, send: Callable[[], Awaitable[Any]]) -> Any:
        if request.verb is Verb.APPLY and request.kind == "Deployment":
            self.came.append(asyncio.get_running_loop().time())
            if self._left:
                self._left -= 1
                raise api_error("slow down", code=429, reason="TooManyRequests", retry_after=ASKED)
        return await send()


async def test_the_header_retry_after_is_respected(tmp_path: Path) -> None:
    """No matter that the cache is edited meanwhile."""
    env, stack = await new_env(), AsyncExitStack()
    slow = Slow(env.cluster, 1)
    async with serving(cluster_of(env), wrap=lambda _: slow) as server, stack:
        await operate(stack, server, tmp_path / "kubeconfig")
        await env.create(AUTOSCALED)
        await seen(env, "Memcached", lambda live: live.get("status"))
        await env.change(image="memcached:1.6.30")
        await seen(env, "Deployment", lambda live: "memcached:1.6.30" in str(live["spec"]))
    first, second, *_ = slow.came
    assert second - first >= ASKED


async def test_a_server_restarts_with_an_older_state(tmp_path: Path) -> None:
    """Connections are refused; then versions have gone back, none of the old ones is remembered, and things changed."""
    env, stack = await new_env(), AsyncExitStack()
    async with stack:
        async with serving(cluster_of(env)) as server:
            await operate(stack, server, tmp_path / "kubeconfig")
            await env.create(AUTOSCALED)
            await seen(env, HPA, lambda live: live["spec"]["maxReplicas"] == 10)
            await seen(env, "Memcached", lambda live: live.get("status"))
            older = Env(cluster_of(env).clone(), NAMESPACE, embedded_kubelet)
            await env.change(image="memcached:1.6.30", autoscaling={"enabled": True, "maxReplicas": 7})
            await seen(env, HPA, lambda live: live["spec"]["maxReplicas"] == 7)
        await older.meddle(HPA, spec={"maxReplicas": 99})
        await older.cluster.delete(older.own("Service"))
        cluster_of(older).compact()
        async with serving(cluster_of(older), port=int(server.url.rpartition(":")[2])):
            await seen(older, "Service", lambda live: live["spec"]["type"] == "ClusterIP")
            await seen(older, HPA, lambda live: live["spec"]["maxReplicas"] == 10)
            await older.change(image="memcached:1.6.31")
            await seen(older, "Deployment", lambda live: "memcached:1.6.31" in str(live["spec"]))


def cluster_of(env: Env) -> EmbeddedCluster:
    assert isinstance(env.cluster, EmbeddedCluster)
    return env.cluster
