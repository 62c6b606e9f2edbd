"""The requests of reconciles may all wait for an answer: the lease is renewed, and the process goes on.

Public reports of leases that share a limit with the requests of reconciles:
https://github.com/kubernetes-sigs/controller-runtime/issues/3092, https://github.com/kubernetes-sigs/kueue/issues/15537,
https://github.com/kubernetes-sigs/karpenter/pull/2100, https://github.com/envoyproxy/gateway/issues/5805 (client-side
rate limits), https://github.com/kubernetes/client-go/issues/456 (the streams of one connection).
"""

from __future__ import annotations

import asyncio
import json
from contextlib import AbstractAsyncContextManager, nullcontext, suppress
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

import pytest

from ocf.cluster import Cluster, Request, Verb
from ocf.cluster.cache import CachedCluster
from ocf.cluster.client import ApiServerCluster, RestConfig
from ocf.cluster.client.connection import MAX_REQUESTS
from ocf.cluster.client.kubeconfig import load_config
from ocf.cluster.client.requests import HttpRequest
from ocf.cluster.request_purpose import Purpose, current_purpose
from ocf.concepts import Event
from ocf.errors import LeaseLostError, NotFoundError, ServerError
from ocf.objects import Manifest, ObjectKey
from ocf.runtime.admission import Service, Webhook, Webhooks
from ocf.runtime.admission.secret_certificates import SecretCertificates
from ocf.runtime.events.poster import broadcasting_events
from ocf.runtime.leader import Timing, lead
from ocf.testing import InterceptingCluster, LoopClock, run_in_virtual_time
from ocf_server import EmbeddedCluster
from tests.reverse_proxy import reverse_proxy
from tests.support import eventually

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from aiohttp import web

    from ocf.testing.envtest.fixtures import Envtest

HOUR: Final = 3600
LEASE: Final = ObjectKey("coordination.k8s.io/v1", "Lease", "shops", "default")
HELD: Final = ObjectKey("v1", "ConfigMap", "held", "default")


class Answer(nullcontext["Answer"]):
    """The answer to a request, read as one of the HTTP library."""

    status = 200

    def __init__(self, content: Manifest) -> None:
        super().__init__(self)
        self.content = content

    async def read(self) -> bytes:
        return json.dumps(self.content).encode()


class Server:
    """An API server in virtual time that answers requests for leases, and none for ConfigMaps."""

    def __init__(self) -> None:
        self.cluster = EmbeddedCluster(now=LoopClock().now)
        self.held = 0
        self.silent = "configmaps"

    async def open(self, request: HttpRequest, _: object) -> AbstractAsyncContextManager[Any]:
        if self.silent in request.path:
            self.held += 1
            try:
                await asyncio.get_running_loop().create_future()
            finally:
                self.held -= 1
        return Answer(await self._content(request))

    async def _content(self, request: HttpRequest) -> Manifest:
        lease = {"name": "leases", "kind": "Lease", "namespaced": True}
        settings = {"name": "configmaps", "kind": "ConfigMap", "namespaced": True}
        match request.method, request.path:
            case "GET", "/apis/coordination.k8s.io/v1":
                return {"resources": [lease]}
            case "GET", "/api/v1":
                return {"resources": [settings]}
            case "GET", _:
                return await self.cluster.get(LEASE)
            case "POST", _:
                return await self.cluster.create(request.body, field_manager="x")
            case _:
                return await self.cluster.update(request.body, field_manager="x")


async def keep_reading(cluster: Cluster) -> None:
    """Read what is never answered, again and again, as a reconcile does with backoff."""
    while True:
        with suppress(ServerError):
            await cluster.get(HELD)


@pytest.mark.promise("lease-first", runs="an hour in which 150 reconciles wait for answers that never come")
def test_a_lease_is_renewed_while_reconciles_use_up_their_requests() -> None:
    """Another candidate never gets it, and its holder never pauses."""

    async def work() -> None:
        server, terms = Server(), 0
        client = ApiServerCluster(RestConfig(host="http://127.0.0.1:1"))
        client._connection._open = server.open  # type: ignore[method-assign, assignment]

        async def compete() -> None:
            nonlocal terms
            async with lead(server.cluster, LEASE.name, namespace=LEASE.namespace, identity="two", clock=LoopClock()):
                terms += 1

        async with lead(client, LEASE.name, namespace=LEASE.namespace, identity="one", clock=LoopClock()):
            reading = [asyncio.create_task(keep_reading(client)) for _ in range(MAX_REQUESTS + 50)]
            competing = asyncio.create_task(compete())
            await asyncio.sleep(0.5)
            for _ in range(HOUR):
                await asyncio.sleep(1)
                assert server.held == MAX_REQUESTS
            for task in (*reading, competing):
                task.cancel()
            await asyncio.gather(*reading, competing, return_exceptions=True)
        assert terms == 0
        # The end of the term is a request as well, and is not kept from being sent.
        assert (await server.cluster.get(LEASE))["spec"]["holderIdentity"] == ""
        await client.close()

    run_in_virtual_time(work())


def test_a_lease_whose_own_requests_hang_is_lost() -> None:
    """What the other test proves is about the requests of others."""

    async def work() -> None:
        server = Server()
        client = ApiServerCluster(RestConfig(host="http://127.0.0.1:1"))
        client._connection._open = server.open  # type: ignore[method-assign, assignment]

        async def hold() -> None:
            async with lead(client, LEASE.name, namespace=LEASE.namespace, identity="one", clock=LoopClock()):
                server.silent = "leases"
                await asyncio.sleep(HOUR)

        with pytest.raises(LeaseLostError):
            await hold()
        await client.close()

    run_in_virtual_time(work())


class Recording(InterceptingCluster):
    """A cluster that records what each request is for."""

    def __init__(self, cluster: Cluster) -> None:
        super().__init__(cluster)
        self.purposes: list[Purpose] = []

    async def intercept(self, request: Request, send: Callable[[], Awaitable[Any]]) -> Any:
        if request.verb is not Verb.WATCH:  # it takes nothing from other requests
            self.purposes.append(current_purpose())
        return await send()


async def hold_lease(cluster: Cluster) -> None:
    async with lead(cluster, LEASE.name, namespace=LEASE.namespace, identity="one", clock=LoopClock()):
        await asyncio.sleep(10)


async def list_for_cache(cluster: Cluster) -> None:
    async with CachedCluster(cluster) as cached:
        await cached.cache("v1", "Secret")


async def post_event(cluster: Cluster) -> None:
    async with broadcasting_events(cluster, controller="shops", clock=LoopClock()) as posting:
        posting.happened(
            Event(owner=HELD, owner_uid="1", resource=HELD, reason="Done", action="Do", note="It is done.")
        )


async def renew_certificates(cluster: Cluster) -> None:
    webhooks = Webhooks("shops", [Webhook(group="example.com", version="v1", kind="Shop", plural="shops")])
    await SecretCertificates(cluster, webhooks, Service("shops", "default"), namespace="default").refresh()


async def reconcile(cluster: Cluster) -> None:
    """Also inside of a term, whose tasks inherit nothing from the renewal."""
    async with lead(EmbeddedCluster(), LEASE.name, namespace="default", identity="one", clock=LoopClock()):
        await cluster.list("v1", "ConfigMap")


@pytest.mark.parametrize(
    ("use", "purpose"),
    [
        pytest.param(hold_lease, Purpose.LEASE, id="taking, renewing and releasing a lease"),
        pytest.param(list_for_cache, Purpose.CACHE, id="the list of a cache"),
        pytest.param(post_event, Purpose.EVENTS, id="an event"),
        pytest.param(renew_certificates, Purpose.CERTIFICATES, id="the certificates of webhooks"),
        pytest.param(reconcile, Purpose.RECONCILES, id="what a leader does"),
    ],
)
def test_what_keeps_a_process_at_work_waits_for_nothing_else(
    use: Callable[[Cluster], Awaitable[None]], purpose: Purpose
) -> None:
    async def work() -> None:
        cluster = Recording(EmbeddedCluster(now=LoopClock().now))
        await use(cluster)
        assert set(cluster.purposes) == {purpose}

    run_in_virtual_time(work())


QUICK: Final = Timing(
    lease=timedelta(seconds=8), renew_deadline=timedelta(seconds=6), retry_period=timedelta(seconds=0.3)
)


@pytest.mark.promise("lease-first", runs="a proxy before a real API server that holds all requests for ConfigMaps")
async def test_on_a_real_server(envtest: Envtest, envtest_cluster: ApiServerCluster) -> None:
    """100 requests of this process are held while it takes the lease, renews it and lists another kind."""
    held, full = 0, asyncio.Event()

    async def hold(request: web.Request) -> None:
        nonlocal held
        if "/configmaps" in request.path:
            held += 1
            if held == MAX_REQUESTS:
                full.set()
            await asyncio.get_running_loop().create_future()

    async def renewed(after: str) -> bool:
        return bool((await envtest_cluster.get(key))["spec"]["renewTime"] > after)

    key = LEASE._replace(namespace=envtest.namespace)
    async with reverse_proxy(load_config(envtest.kubeconfig)) as proxy, ApiServerCluster(proxy.config) as mine:
        proxy.meddle = hold
        reading = [
            asyncio.create_task(mine.get(HELD._replace(namespace=envtest.namespace))) for _ in range(MAX_REQUESTS + 5)
        ]
        await full.wait()
        async with lead(mine, key.name, namespace=key.namespace, identity="one", timing=QUICK):
            first = (await envtest_cluster.get(key))["spec"]["renewTime"]
            await eventually(lambda: renewed(first))
            async with CachedCluster(mine) as cached:
                await cached.cache("v1", "Secret", namespace=envtest.namespace)
                secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s", "namespace": key.namespace}}
                await envtest_cluster.create(secret, field_manager="admin")
                await eventually(lambda: cached.get(ObjectKey.of(secret)), ignore=(NotFoundError,))
            assert held == MAX_REQUESTS
        for task in reading:
            task.cancel()
        await asyncio.gather(*reading, return_exceptions=True)
