"""A cluster-scoped owner whose objects are in several namespaces, also if the process may read only these."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from typing import TYPE_CHECKING, Final

import pytest

from ocf import component
from ocf.cluster import ListOptions, ObjectList, WatchEvent, WatchOptions
from ocf.cluster.protocol import DEFAULT_LIST_OPTIONS
from ocf.component import DeletionOrder
from ocf.errors import ForbiddenError
from ocf.objects import Manifest, ObjectKey
from ocf.primitives import configmap
from ocf.runtime.crds import Scope
from ocf.runtime.operator import Operator, OwnerType, running
from tests.runtime.operator.test_identity import GROUPS, OwnersGateway, Realm, World, options_of, run_in_world, touch

if TYPE_CHECKING:
    from ocf.component import Component, ReconcileContext

HOMES: Final = ("east", "west")


class _Limited(OwnersGateway):
    """A gateway that refuses what the roles of an operator that is limited to two namespaces refuse."""

    async def list(self, api_version: str, kind: str, options: ListOptions = DEFAULT_LIST_OPTIONS) -> ObjectList:
        await self._require(api_version, kind, options.namespace)
        return await super().list(api_version, kind, options)

    async def watch(self, api_version: str, kind: str, options: WatchOptions) -> AsyncGenerator[WatchEvent, None]:
        await self._require(api_version, kind, options.namespace)
        async for event in super().watch(api_version, kind, options):
            yield event

    async def _require(self, api_version: str, kind: str, namespace: str) -> None:
        if namespace not in HOMES and await self.is_namespaced(api_version, kind):
            raise ForbiddenError(f"cannot list {kind} in {namespace or 'all namespaces'}")


@pytest.mark.promise("owner-identity", runs="a cluster-scoped owner whose objects are in several namespaces")
@pytest.mark.parametrize("limited", [False, True], ids=["all namespaces", "two namespaces"])
def test_a_cluster_scoped_owner_has_its_objects_in_several_namespaces(*, limited: bool) -> None:
    """Lists of all namespaces, with which objects are pruned and cleaned up, are those of the watched ones.

    As in the caches of controller-runtime: https://github.com/kubernetes-sigs/controller-runtime/issues/218. A list
    that needed the rights of the whole cluster: https://github.com/operator-framework/operator-sdk/issues/2608.
    """

    async def test(world: World) -> None:
        for home in HOMES:
            head = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": home}}
            await world.cluster.create(head, field_manager="user")
        gateway = _Limited(world.cluster) if limited else world.gateway
        listed: list[int] = []

        def settings(home: str, name: str, owner: Realm) -> Manifest:
            metadata = {"name": name, "namespace": home}
            return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"motto": owner.spec.motto}}

        async def components(owner: Realm, context: ReconcileContext) -> Component:
            listed.append(len((await context.cluster.list("v1", "ConfigMap", ListOptions(label_selector="all"))).items))
            builder = component.Builder("web", condition_type="WebReady").with_prune()
            for home in owner.spec.motto.split():
                builder = builder.with_resource(configmap.Builder(settings(home, "settings", owner)).build())
            shared = configmap.Builder(settings("east", "shared", owner)).build()
            return builder.with_resource(shared, unowned=True).build()

        async def on_delete(*_: object) -> None:
            """Delete nothing: the objects go before."""

        operator = Operator(
            name="realms",
            owner=OwnerType.of(Realm, world.definition(GROUPS[0])),
            components=components,
            on_delete=on_delete,
            deletion_order=DeletionOrder.COMPONENTS_FIRST,
            resync=None,
        )
        keys = {home: ObjectKey("v1", "ConfigMap", "settings", home) for home in HOMES}
        options = options_of(namespaces=HOMES if limited else ())
        async with running(gateway, operator, options=options) as process:
            await asyncio.sleep(5)
            await world.create(motto="east west")
            await asyncio.sleep(5)
            for key in keys.values():
                await touch(world, key, {"data": {"motto": "by hand"}})
            await asyncio.sleep(5)
            assert [(await world.found(key))["data"]["motto"] for key in keys.values()] == ["east west"] * 2
            for count, home in enumerate(HOMES, 1):
                named = {"name": f"other-{home}", "namespace": home, "labels": {"all": ""}}
                manifest = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": named}
                await world.cluster.create(manifest, field_manager="user")
                await asyncio.sleep(5)
                assert listed[-1] == count
            await touch(world, world.key(), {"spec": {"motto": "east"}})
            await asyncio.sleep(5)
            assert [bool(await world.found(key)) for key in keys.values()] == [True, False]
            assert [process.health.owners(), process.health.watches()] == ["", ""]
            await world.cluster.delete(world.key())
            await asyncio.sleep(60)
            assert [await world.found(key) for key in (world.key(), *keys.values())] == [{}, {}, {}]
            assert await world.found(ObjectKey("v1", "ConfigMap", "shared", "east")) != {}

    run_in_world(Scope.CLUSTER, test)
