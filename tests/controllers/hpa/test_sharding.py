"""Several HPA controllers divide the autoscalers by namespace: each is scaled by one, and none is left."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

import pytest
from aiohttp import ClientSession

from ocf.cluster import Cluster, Request
from ocf.cluster.client import ApiServerCluster
from ocf.cluster.client.kubeconfig import load_config
from ocf.controllers.hpa import HpaControllerOptions, Mode
from ocf.controllers.hpa.controller import HpaController
from ocf.controllers.hpa.crd import definition
from ocf.controllers.hpa.manager import ProcessOptions, run_process
from ocf.controllers.hpa.reconciler import Reconciler
from ocf.errors import ConfigError, ServerError
from ocf.objects import ObjectKey
from ocf.runtime.leader import Timing
from ocf.runtime.monitoring.http_server import Endpoints
from ocf.runtime.operator import Lease, Listen
from ocf.runtime.sharding import Sharding
from ocf.runtime.sharding.membership import Membership
from ocf.testing import InterceptingCluster, run_in_virtual_time
from ocf_server import EmbeddedCluster
from ocf_server.http import serving, write_kubeconfig
from tests.support import eventually

from .conftest import PERIOD, Env, periods

NAMESPACES: Final = ("acorn", "birch", "cedar", "dates", "elms", "firs")


class Way(InterceptingCluster):
    """The way of one replica to the cluster: it notes which autoscalers it writes, and can be cut."""

    def __init__(self, cluster: Cluster) -> None:
        super().__init__(cluster)
        self.scaled: list[str] = []
        self.is_cut = False

    async def intercept(self, request: Request, send: Callable[[], Awaitable[Any]]) -> Any:
        if self.is_cut:
            raise ServerError("connection refused")
        if not request.verb.is_read and request.kind == "HorizontalAutoscaler":
            self.scaled.append(request.namespace)
        return await send()


@dataclass
class Replica:
    """One process of the controller."""

    way: Way
    membership: Membership
    controller: HpaController
    task: asyncio.Task[None] | None = field(default=None)


@asynccontextmanager
async def replica(env: Env, name: str) -> AsyncIterator[Replica]:
    way = Way(env.cluster)
    membership = Membership(
        way,
        ObjectKey("coordination.k8s.io/v1", "Lease", "hpa", "default"),
        name,
        sharding=Sharding(by="namespace", slots=24),
        timing=Timing(),
        clock=env.clock,
        random=lambda: 0.5,
    )
    async with membership.joined() as slots:
        options = HpaControllerOptions(sharding=True)
        controller = HpaController(slots.fenced(way), env.metrics, options=options, clock=env.clock, shards=slots)
        running = asyncio.create_task(controller.run())
        try:
            yield Replica(way, membership, controller)
        finally:
            controller.stop()
            await running


async def scaled_by(env: Env, length: int, *replicas: Replica) -> dict[str, set[str]]:
    """Change the load of all namespaces, and return the namespaces in which each replica has scaled."""
    for each in replicas:
        each.way.scaled.clear()
    for namespace in NAMESPACES:
        env.queue(length, namespace=namespace)
    await periods(3)
    for namespace in NAMESPACES:
        assert await env.replicas(namespace=namespace) == length / 10
    return {each.membership.slots.identity: {*each.way.scaled} for each in replicas}


def test_each_autoscaler_is_scaled_by_the_replica_of_its_namespace() -> None:
    async def work() -> None:
        env = Env()
        await env.set_up()
        for namespace in NAMESPACES:
            home = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}
            await env.cluster.create(home, field_manager="user")
            await env.deploy(namespace=namespace, replicas=3)
            env.queue(30, namespace=namespace)
            await env.autoscale(namespace=namespace)
        async with replica(env, "one") as one:
            await periods(2)
            found = await scaled_by(env, 50, one)
            assert found == {"one": {*NAMESPACES}}
            async with replica(env, "two") as two:
                await periods(2)
                found = await scaled_by(env, 70, one, two)
                assert found["one"] | found["two"] == {*NAMESPACES}
                assert not found["one"] & found["two"]
                assert all(found.values())
                one.way.is_cut = True
                await periods(2)
                found = await scaled_by(env, 90, one, two)
                assert found == {"one": set(), "two": {*NAMESPACES}}
                one.way.is_cut = False
            await periods(2)
            assert await scaled_by(env, 120, one) == {"one": {*NAMESPACES}}

    run_in_virtual_time(work())


def test_the_autoscalers_of_slots_that_are_taken_are_spread_over_the_sync_period(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Those of a namespace together, because they share the reads of its metrics."""
    synced: list[tuple[float, str, str]] = []
    reconcile = Reconciler.reconcile

    async def noted(self: Reconciler, key: ObjectKey) -> timedelta | None:
        synced.append((asyncio.get_running_loop().time(), key.namespace, key.name))
        return await reconcile(self, key)

    monkeypatch.setattr(Reconciler, "reconcile", noted)

    async def work() -> None:
        env = Env()
        await env.set_up()
        for namespace in NAMESPACES:
            home = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}
            await env.cluster.create(home, field_manager="user")
            for name in ("api", "web"):
                await env.deploy(name, namespace=namespace, replicas=3)
                await env.autoscale(name, namespace=namespace)
            env.queue(30, namespace=namespace)
        async with replica(env, "one") as one:
            await periods(2)
            one.way.is_cut = True
            await periods(2)
            synced.clear()
            one.way.is_cut = False
            await periods(1.5)
            first: dict[tuple[str, str], float] = {}
            for when, namespace, name in synced:
                first.setdefault((namespace, name), when)
            assert len(first) == 2 * len(NAMESPACES)
            at = {namespace: {first[namespace, name] for name in ("api", "web")} for namespace in NAMESPACES}
            assert all(len(times) == 1 for times in at.values())
            began, *others = sorted(min(times) for times in at.values())
            assert [later - began for later in others] == pytest.approx(
                [PERIOD * place / len(NAMESPACES) for place in range(1, len(NAMESPACES))], abs=0.2
            )

    run_in_virtual_time(work())


@pytest.mark.parametrize("sharding", [False, True])
async def test_a_process_shows_its_slots_in_readiness_and_metrics(tmp_path: Path, *, sharding: bool) -> None:
    cluster = EmbeddedCluster()
    await cluster.create(definition(), field_manager="admin")
    started: asyncio.Future[Endpoints] = asyncio.get_running_loop().create_future()
    stopped = asyncio.Event()
    async with serving(cluster) as server:
        write_kubeconfig(server.kubeconfig(), tmp_path / "kubeconfig")
        options = ProcessOptions(
            controller=HpaControllerOptions(sharding=sharding),
            lease=Lease("hpa", "default", "one"),
            listen=Listen(host="127.0.0.1", port=0),
        )
        async with ApiServerCluster(load_config(tmp_path / "kubeconfig")) as connected:
            running = asyncio.create_task(run_process(connected, options, stopped, on_serving=started.set_result))
            async with ClientSession((await started).url) as session:

                async def ask(path: str) -> str:
                    async with session.get(path) as answer:
                        return await answer.text()

                held = "[+]shards ok: 64 of 64 slots; replicas: 1" if sharding else "[+]controller ok"
                await eventually(lambda: ask("/readyz?verbose"), lambda text: held in text)
                metrics = await ask("/metrics")
                assert ('ocf_slot_held{name="hpa",slot="63"} 1.0' in metrics) is sharding
                assert ('ocf_replicas{name="hpa"} 1.0' in metrics) is sharding
                assert ("shards" in await ask("/readyz?verbose")) is sharding
            stopped.set()
            await running


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        pytest.param({"mode": Mode.DRY_RUN}, "a mode that writes", id="dry run"),
        pytest.param({}, "needs a lease", id="no lease"),
    ],
)
def test_what_cannot_be_divided_is_an_error(options: dict[str, Any], problem: str) -> None:
    with pytest.raises(ConfigError, match=problem):
        ProcessOptions(controller=HpaControllerOptions(sharding=True, **options))
