"""Reconciles, writes and requests at once that bursts of changes cost, counted in virtual time.

An owner with 100 Deployments that the built-in controllers make ready one after another, an owner that 200 others
select, and one source with 1 000 targets.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from functools import cache, partial
from typing import Any, Final

from benchmarks.figures import Count, Suite
from ocf import component
from ocf.cluster import Cluster, InterceptingCluster, Request, Verb
from ocf.component import Component, ReconcileContext
from ocf.objects import Manifest, ObjectKey
from ocf.primitives import deployment, secret
from ocf.runtime.crds import CamelModel, CustomResource
from ocf.runtime.operator import ManagerOptions, Operator, OwnerType, Relation, running, spec_changed
from ocf.testing import LoopClock, run_in_virtual_time
from ocf_server import ControllerSettings, EmbeddedCluster

__all__ = ["small_suite", "suite"]

_SIZES: Final = (100, 200, 1000)
_SMALL: Final = (20, 50, 100)
_SHOP: Final = ("example.com/v1", "Shop")
_POSTER: Final = ("example.com/v1", "Poster")
_POSTERS: Final = Relation(_POSTER, _SHOP, "spec.shops")


class _Selector(CamelModel):
    match_labels: dict[str, str] | None = None


class _Spec(CamelModel):
    shops: _Selector | None = None


class Shop(CustomResource[_Spec], group="example.com", version="v1"):
    """An owner with children, which posters select."""

    spec: _Spec = _Spec()


class Poster(CustomResource[_Spec], group="example.com", version="v1"):
    """An owner that selects shops."""

    spec: _Spec = _Spec()


class _Gateway(InterceptingCluster):
    """Counts writes, and the applies without an answer; each takes a tenth of a second."""

    def __init__(self, cluster: Cluster) -> None:
        super().__init__(cluster)
        self.writes = self.open = self.most = 0

    async def intercept(self, request: Request, send: Callable[[], Awaitable[Any]]) -> Any:
        self.writes += not request.verb.is_read
        if request.verb is not Verb.APPLY:
            return await send()
        self.open += 1
        self.most = max(self.most, self.open)
        try:
            await asyncio.sleep(0.1)
            return await send()
        finally:
            self.open -= 1


async def _cluster(*namespaces: str) -> EmbeddedCluster:
    cluster = EmbeddedCluster(namespaces=["town", *namespaces], now=LoopClock().now)
    for kind in (Shop, Poster):
        await cluster.apply(kind.definition(), field_manager="me")
    return cluster


def _made(kind: tuple[str, str], name: str, **content: Any) -> Manifest:
    metadata = {"name": name, "namespace": "town", "labels": {"part": "north"}}
    return {"apiVersion": kind[0], "kind": kind[1], "metadata": metadata, **content}


def _options() -> ManagerOptions:
    return ManagerOptions(listen=None, clock=LoopClock())


async def _children(children: int) -> int:
    """Return the reconciles of an owner while its children become ready, a quarter of a second apart."""
    reconciles: list[float] = []

    def components(shop: Shop) -> Component:
        reconciles.append(asyncio.get_running_loop().time())
        builder = component.Builder("web", owner=shop.key, condition_type="WebReady")
        for number in range(children):
            labels = {"web": str(number)}
            metadata = {"labels": labels, "annotations": {"ocf.dev/ready-after": f"{10_000 + 250 * number}ms"}}
            pod = {"metadata": metadata, "spec": {"containers": [{"name": "web", "image": "web:1"}]}}
            base: Manifest = {"spec": {"selector": {"matchLabels": labels}, "template": pod}}
            builder.with_resource(deployment.Builder({"metadata": {"name": f"web-{number}"}, **base}), independent=True)
        return builder.build()

    cluster = await _cluster()
    operator = Operator(name="shops", owner=OwnerType.of(Shop), components=components)
    async with (
        cluster.controllers(ControllerSettings(nodes=2)).running(),
        running(cluster, operator, options=_options()),
    ):
        await cluster.create(_made(_SHOP, "corner"), field_manager="me")
        await asyncio.sleep(9)
        reconciles.clear()
        await asyncio.sleep(120)
        ready = (await cluster.get(ObjectKey(*_SHOP, "corner", "town")))["status"]["conditions"][0]["status"]
        assert ready == "True", "a count of an owner that is not ready means nothing"
        return len(reconciles)


async def _selecting(others: int) -> int:
    """Return the reconciles of an owner while others that select it are made."""
    found: list[int] = []

    async def components(_: Shop, context: ReconcileContext) -> list[Component]:
        found.append(len(await _POSTERS.selecting(context)))
        return []

    cluster = await _cluster()
    operator = Operator(
        name="shops",
        owner=OwnerType.of(Shop),
        components=components,
        watches=[_POSTERS],
        triggers={_POSTER: spec_changed},
    )
    async with running(cluster, operator, options=_options()):
        await cluster.create(_made(_SHOP, "corner"), field_manager="me")
        await asyncio.sleep(10)
        found.clear()
        spec = {"shops": {"matchLabels": {"part": "north"}}}
        for number in range(others):
            await cluster.create(_made(_POSTER, f"p{number}", spec=spec), field_manager="me")
            await asyncio.sleep(0.02)
        await asyncio.sleep(60)
        assert found[-1] == others, "the last reconcile finds all"
        return len(found)


async def _fan_out(targets: int) -> tuple[int, int]:
    """Return the writes after a change of a source with many targets, and the most requests at once."""
    homes = [f"n{number}" for number in range(targets)]

    def components(source: Manifest) -> Component:
        builder = component.Builder("copies", owner=ObjectKey.of(source)).unpublished()
        for home in homes:
            copy = {"metadata": {"name": "login", "namespace": home}, "data": source.get("data")}
            builder.with_resource(secret.Builder(copy), unowned=True, delete_with_owner=True, independent=True)
        return builder.build()

    cluster = await _cluster(*homes)
    gateway = _Gateway(cluster)
    owner: OwnerType[Manifest] = OwnerType("v1", "Secret")
    operator = Operator(name="copies", owner=owner, components=components, select="part=north")
    async with running(gateway, operator, options=_options()):
        source = await cluster.create(_made(("v1", "Secret"), "login", data={"a": "MQ=="}), field_manager="me")
        await asyncio.sleep(60)
        gateway.writes = gateway.most = 0
        live = await cluster.get(ObjectKey.of(source))
        await cluster.update({**live, "data": {"a": "Mg=="}}, field_manager="me")
        await asyncio.sleep(60)
        copied = (await cluster.get(ObjectKey("v1", "Secret", "login", homes[-1])))["data"]
        assert copied == {"a": "Mg=="}, "every target has the new value"
        return gateway.writes, gateway.most


@contextmanager
def _suite(children: int, others: int, targets: int) -> Iterator[Suite]:
    @cache
    def fan_out() -> tuple[int, int]:
        return run_in_virtual_time(_fan_out(targets))

    yield [
        Count(
            name="bursts.children",
            what=f"reconciles of an owner while {children} children become ready one by one",
            value=lambda: run_in_virtual_time(_children(children)),
            limit=12,
        ),
        Count(
            name="bursts.selecting",
            what=f"reconciles of an owner while {others} others are made that select it",
            value=lambda: run_in_virtual_time(_selecting(others)),
            limit=5,
        ),
        Count(
            name="bursts.writes",
            what=f"writes after a change of a source with {targets} targets",
            value=lambda: fan_out()[0],
            limit=targets + 1,
        ),
        Count(name="bursts.at-once", what="of these at once", value=lambda: fan_out()[1], limit=25),
    ]


suite = partial(_suite, *_SIZES)
"""Give the counts."""
small_suite = partial(_suite, *_SMALL)
"""Give them with few objects, for a run that only shows that everything works."""
