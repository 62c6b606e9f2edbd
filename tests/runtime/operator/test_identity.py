"""One owner is one uid: an owner that is deleted and created again under its name is another one, everywhere.

Each row deletes the owner and creates it again at another moment of the life of the former one; each is run for owners
of both scopes, and with a garbage collector that acts at once or late. An owner of another group, with the same kind
and name, exists beside it all the time. What is checked is the whole path: the status, the objects and their owner
references, the functions of the operator, events, metrics, backoff, and that nothing is written afterwards.

Public reports of operators that took one owner for another:
https://github.com/kubevirt/ssp-operator/pull/145, https://github.com/apache/flink-kubernetes-operator/pull/261,
https://github.com/percona/percona-xtradb-cluster-operator/pull/986, https://github.com/halkyonio/operator/issues/58,
https://github.com/OT-CONTAINER-KIT/redis-operator/issues/801 and
https://github.com/open-cluster-management-io/config-policy-controller/pull/57.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

import pytest
from pydantic import BaseModel, ConfigDict

from ocf import component
from ocf.cluster import (
    PatchOptions,
    PatchType,
    Request,
    Subresource,
    Verb,
)
from ocf.cluster.cache import CacheTiming
from ocf.concepts.backoff import ExponentialBackoff
from ocf.errors import ExpiredError, NotFoundError, ServerError
from ocf.objects import Manifest, ObjectKey
from ocf.primitives import configmap, service
from ocf.runtime.crds import CRDVersion, Scope, crd
from ocf.runtime.operator import ManagerOptions, Operator, OwnerType, running
from ocf.testing import LoopClock, run_in_virtual_time
from ocf_server import EmbeddedCluster
from tests.runtime.operator.conftest import Gateway, now

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from ocf.cluster import Cluster
    from ocf.component import Component, ReconcileContext
    from ocf.runtime.operator import ReconcileOutcome
    from ocf.runtime.operator.manager import Manager

TOWN: Final = "town"
GROUPS: Final = ("one.example.com", "two.example.com")
SECOND: Final = timedelta(seconds=1)


class RealmSpec(BaseModel):
    motto: str = "former"


class RealmStatus(BaseModel):
    model_config = ConfigDict(extra="allow")


class Realm(BaseModel):
    metadata: dict[str, Any] = {}
    spec: RealmSpec = RealmSpec()
    status: RealmStatus | None = None


class _BrokenError(Exception):
    """What the former owner fails with."""


class OwnersGateway(Gateway):
    """The operators' way to the cluster, with the owners as their writes left them."""

    def __init__(self, cluster: Cluster) -> None:
        super().__init__(cluster)
        self.written: list[Manifest] = []

    async def intercept(self, request: Request, send: Callable[[], Awaitable[Any]]) -> Any:
        answer = await super().intercept(request, send)
        if request.kind == "Realm" and not request.verb.is_read:
            self.written.append(answer)
        return answer


@dataclass
class World:
    """Owners of one name in two groups, each group with an operator of its own in one process."""

    cluster: EmbeddedCluster
    scope: Scope
    gateway: OwnersGateway
    reconciled: list[tuple[str, str]] = field(default_factory=list)
    """Group and uid of each reconcile."""
    forgotten: list[ObjectKey] = field(default_factory=list)
    during: Callable[[], Awaitable[None]] | None = None
    """What happens once within a reconcile, after the owner was read."""
    fails: set[str] = field(default_factory=set)
    """Uids of owners whose reconcile fails."""
    requeue: timedelta | None = None
    cleaned: list[str] | None = None
    """Uids for which something outside of the cluster was deleted; None if there is no clean-up."""
    cleaning: Callable[[], Awaitable[None]] | None = None
    """What happens once within a clean-up."""

    def key(self, group: str = GROUPS[0]) -> ObjectKey:
        return ObjectKey(f"{group}/v1", "Realm", "north", "" if self.scope is Scope.CLUSTER else TOWN)

    def child(self, group: str = GROUPS[0]) -> ObjectKey:
        return ObjectKey("v1", "ConfigMap", f"north-{group[:3]}", TOWN)

    def operator(self, group: str, definition: Manifest) -> Operator[Realm]:
        def components(owner: Realm, _context: ReconcileContext) -> Awaitable[Component]:
            return self._components(group, owner)

        def report(context: ReconcileContext, owner: Realm, _outcome: ReconcileOutcome) -> None:
            context.status["reported"] = {"motto": owner.spec.motto, "uid": owner.metadata["uid"]}
            if self.requeue is not None:
                context.requeue_after(self.requeue)

        return Operator(
            name=f"realms-{group[:3]}",
            owner=OwnerType.of(Realm, definition),
            components=components,
            report=report,
            rate_limiter=ExponentialBackoff(SECOND, 2**12 * SECOND, jitter=0),
            resync=None,
            on_delete=self._clean_up if self.cleaned is not None else None,
            on_deleted=self.forgotten.append,
        )

    async def _clean_up(self, owner: Realm, _context: ReconcileContext, _cluster: Cluster) -> None:
        assert self.cleaned is not None
        if self.cleaning is not None:
            cleaning, self.cleaning = self.cleaning, None
            await cleaning()
        self.cleaned.append(owner.metadata["uid"])

    async def _components(self, group: str, owner: Realm) -> Component:
        uid = owner.metadata["uid"]
        self.reconciled.append((group, uid))
        if uid in self.fails:
            raise _BrokenError
        if self.during is not None and group == GROUPS[0]:
            during, self.during = self.during, None
            await during()
        metadata = {"name": self.child(group).name, "namespace": TOWN}
        settings = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"motto": owner.spec.motto}}
        front = {"apiVersion": "v1", "kind": "Service", "metadata": metadata}
        front["spec"] = {"selector": {"realm": "north"}, "ports": [{"name": "http", "port": 80}]}
        return (
            component.Builder("web", condition_type="WebReady")
            .with_resource(configmap.Builder(settings).build(), held_for_cleanup=self.cleaned is not None)
            .with_resource(service.Builder(front).build())
            .with_prune()
            .build()
        )

    @asynccontextmanager
    async def operating(self) -> AsyncIterator[Manager]:
        operators = [self.operator(group, self.definition(group)) for group in GROUPS]
        async with running(self.gateway, *operators, options=options_of()) as process:
            await asyncio.sleep(5)
            yield process

    def definition(self, group: str) -> Manifest:
        return crd(group, CRDVersion("v1", Realm), scope=self.scope)

    async def create(self, group: str = GROUPS[0], motto: str = "former") -> str:
        """Create an owner; return its uid."""
        key = self.key(group)
        metadata = {"name": key.name} | ({"namespace": key.namespace} if key.namespace else {})
        manifest = {"apiVersion": key.api_version, "kind": key.kind, "metadata": metadata, "spec": {"motto": motto}}
        created = await self.cluster.create(manifest, field_manager="user")
        return str(created["metadata"]["uid"])

    async def replace(self) -> None:
        """Delete the owner, whatever its finalizers, and create another one of its name."""
        with suppress(NotFoundError):
            await self.cluster.delete(self.key())
            await touch(self, self.key(), {"metadata": {"finalizers": None}})
        await self.create(motto="new")

    async def found(self, key: ObjectKey) -> Manifest:
        try:
            return await self.cluster.get(key)
        except NotFoundError:
            return {}


def options_of(**changed: Any) -> ManagerOptions:
    timing = CacheTiming(idle_timeout=1e9, relist_every=1e9, monotonic=now, random=lambda: 0.0)
    return ManagerOptions(listen=None, clock=LoopClock(), random=lambda: 0.5, cache_timing=timing, **changed)


Replace = Callable[[World], Awaitable[None]]


async def _within_a_reconcile(world: World) -> None:
    world.during = world.replace
    await touch(world, world.key(), {"spec": {"motto": "edited"}})


async def _while_its_status_is_written(world: World) -> None:
    async def before(request: Request) -> None:
        if request.subresource is Subresource.STATUS and request.api_version == world.key().api_version:
            world.gateway.meddle = None
            await world.replace()

    world.gateway.meddle = before
    await touch(world, world.key(), {"spec": {"motto": "edited"}})


async def _while_an_object_is_applied(world: World) -> None:
    async def before(request: Request) -> None:
        if request.verb is Verb.APPLY and request.name == world.child().name:
            world.gateway.meddle = None
            await world.replace()

    world.gateway.meddle = before
    await touch(world, world.key(), {"spec": {"motto": "edited"}})


async def _while_a_trigger_is_queued(world: World) -> None:
    # No await in between lets the worker take the key.
    await touch(world, world.child(), {"data": {"motto": "by hand"}})
    await world.replace()


async def _while_it_waits_after_failures(world: World) -> None:
    live = await world.cluster.get(world.key())
    world.fails.add(live["metadata"]["uid"])
    await touch(world, world.key(), {"spec": {"motto": "edited"}})
    await asyncio.sleep(600)
    await world.replace()


async def _while_a_delay_runs(world: World) -> None:
    world.requeue = timedelta(minutes=3)
    await touch(world, world.key(), {"spec": {"motto": "edited"}})
    await asyncio.sleep(60)
    world.requeue = None
    await world.replace()


async def _twice_in_a_row(world: World) -> None:
    await world.replace()
    await world.replace()


async def _while_it_is_paused(world: World) -> None:
    pause = {"metadata": {"annotations": {"realms-one.ocf.dev/paused": "true"}}}
    await touch(world, world.key(), pause)
    await asyncio.sleep(60)
    await world.replace()


async def _while_watches_are_interrupted(world: World) -> None:
    assert world.gateway.cut(ServerError("connection lost"))
    await _twice_in_a_row(world)


async def _while_watches_have_to_list_again(world: World) -> None:
    assert world.gateway.cut(ExpiredError("too old resource version"))
    await _twice_in_a_row(world)


async def touch(world: World, key: ObjectKey, patch: Manifest) -> None:
    options = PatchOptions(patch_type=PatchType.MERGE, field_manager="kubectl")
    await world.cluster.patch(key, patch, options)


MOMENTS: Final = [
    pytest.param(World.replace, id="between two reconciles"),
    pytest.param(_twice_in_a_row, id="twice in a row"),
    pytest.param(_while_a_trigger_is_queued, id="while a trigger is queued"),
    pytest.param(_within_a_reconcile, id="within a reconcile"),
    pytest.param(_while_an_object_is_applied, id="while an object is applied"),
    pytest.param(_while_its_status_is_written, id="while its status is written"),
    pytest.param(_while_it_waits_after_failures, id="while it waits after failures"),
    pytest.param(_while_a_delay_runs, id="while a delay runs"),
    pytest.param(_while_it_is_paused, id="while it is paused"),
    pytest.param(_while_watches_are_interrupted, id="while watches are interrupted"),
    pytest.param(_while_watches_have_to_list_again, id="while watches have to list again"),
]


def run_in_world(scope: Scope, test: Callable[[World], Awaitable[None]], *, collect: bool = True) -> None:
    async def on_stage() -> None:
        cluster = EmbeddedCluster(namespaces=[TOWN], now=LoopClock().now, collect=collect)
        world = World(cluster, scope, OwnersGateway(cluster))
        for group in GROUPS:
            await cluster.create(world.definition(group), field_manager="user")
        await test(world)

    run_in_virtual_time(on_stage())


async def _check(world: World, process: Manager, former: str, other: str, before: Manifest) -> None:
    """Check all that belongs to the new owner, and that nothing of the former one is left."""
    live, untouched = await world.found(world.key()), await world.found(world.key(GROUPS[1]))
    uid = live["metadata"]["uid"]
    assert uid not in {former, other}
    assert live["status"]["reported"] == {"motto": "new", "uid": uid}
    assert [(one["type"], one["reason"]) for one in live["status"]["conditions"]] == [("WebReady", "Healthy")]
    assert {one["observedGeneration"] for one in live["status"]["conditions"]} == {live["metadata"]["generation"]}
    for kind in ("ConfigMap", "Service"):
        made = await world.found(world.child()._replace(kind=kind))
        assert [one["uid"] for one in made["metadata"]["ownerReferences"]] == [uid], kind
    assert (await world.found(world.child()))["data"] == {"motto": "new"}
    assert set(world.forgotten) == {world.key()}
    assert untouched == before
    regarding = [one["regarding"] for one in await _events(world)]
    about = {(each["apiVersion"], each["kind"], each["name"], each.get("namespace", "")) for each in regarding}
    assert about == {tuple(world.key()), tuple(world.key(GROUPS[1]))}
    assert {each["uid"] for each in regarding if each["apiVersion"] == world.key(GROUPS[1]).api_version} == {other}
    assert {former, uid} <= {each["uid"] for each in regarding} - {other}
    reported = [one for one in world.gateway.written if "reported" in one.get("status", {})]
    assert [one for one in reported if one["status"]["reported"]["uid"] != one["metadata"]["uid"]] == []
    assert _conditions(process) == {("realms-one", "Healthy"): 1, ("realms-two", "Healthy"): 1}


async def _events(world: World) -> tuple[Manifest, ...]:
    """Return the events; those about cluster-scoped owners are in the namespace `default`."""
    found = await world.cluster.list("events.k8s.io/v1", "Event")
    assert {one["metadata"]["namespace"] for one in found.items} == {world.key().namespace or "default"}
    return found.items


def _conditions(process: Manager) -> dict[tuple[str, str], int]:
    """Return the number of series of conditions, by controller and reason."""
    found: dict[tuple[str, str], int] = {}
    registry = process.registry
    assert registry is not None
    for family in registry.collect():
        for sample in family.samples if family.name == "ocf_controller_condition" else ():
            named = sample.labels["controller"], sample.labels["reason"]
            found[named] = found.get(named, 0) + 1
    return found


@pytest.mark.promise(
    "owner-identity", runs="an owner that is created again at any moment, with one of another group beside it"
)
@pytest.mark.parametrize("replace", MOMENTS)
@pytest.mark.parametrize("scope", list(Scope))
@pytest.mark.parametrize("collect", [True, False], ids=["collected at once", "collected late"])
def test_an_owner_that_is_created_again_begins_anew(scope: Scope, replace: Replace, *, collect: bool) -> None:
    async def test(world: World) -> None:
        former, other = await world.create(), await world.create(GROUPS[1], "other")
        async with world.operating() as process:
            before = await world.found(world.key(GROUPS[1]))
            await replace(world)
            await asyncio.sleep(10)
            if not collect:
                await world.cluster.collect_garbage()
                await asyncio.sleep(10)
            await _check(world, process, former, other, before)
            world.gateway.requests.clear()
            await asyncio.sleep(3600)
            assert [one for one in world.gateway.writes if one[1] != "Event"] == []
            # What fails first is retried as soon as for any new owner.
            live = await world.found(world.key())
            world.fails.add(live["metadata"]["uid"])
            world.reconciled.clear()
            await touch(world, world.key(), {"spec": {"motto": "newest"}})
            await asyncio.sleep(4)
            assert world.reconciled == [(GROUPS[0], live["metadata"]["uid"])] * 3
            world.fails.clear()
            await world.cluster.delete(world.key())
            await asyncio.sleep(60)
            await world.cluster.collect_garbage()
            await asyncio.sleep(60)
            assert _conditions(process) == {("realms-two", "Healthy"): 1}
            assert await world.found(world.child()) == {}
            assert await world.found(world.child(GROUPS[1])) != {}
            assert await world.found(world.key(GROUPS[1])) == before

    run_in_world(scope, test, collect=collect)


@pytest.mark.promise("owner-identity", runs="an owner that is created again while no process runs")
@pytest.mark.parametrize("scope", list(Scope))
@pytest.mark.parametrize("collect", [True, False], ids=["collected at once", "collected late"])
def test_an_owner_that_is_created_again_while_no_process_runs(scope: Scope, *, collect: bool) -> None:
    async def test(world: World) -> None:
        former, other = await world.create(), await world.create(GROUPS[1], "other")
        async with world.operating():
            before = await world.found(world.key(GROUPS[1]))
        await world.replace()
        world.forgotten.append(world.key())  # no process has seen the deletion
        async with world.operating() as process:
            await world.cluster.collect_garbage()
            await asyncio.sleep(10)
            await _check(world, process, former, other, before)

    run_in_world(scope, test, collect=collect)


async def _while_the_clean_up_runs(world: World) -> None:
    world.cleaning = world.replace
    await world.cluster.delete(world.key())


async def _while_a_finalizer_is_changed(world: World) -> None:
    async def before(request: Request) -> None:
        if request.verb is Verb.PATCH and request.name == world.key().name:
            world.gateway.meddle = None
            await world.replace()

    world.gateway.meddle = before
    await world.cluster.delete(world.key())


@pytest.mark.promise("owner-identity", runs="an owner that is created again while the former one is cleaned up")
@pytest.mark.parametrize(
    ("replace", "cleaned"),
    [
        pytest.param(World.replace, False, id="between two reconciles"),
        pytest.param(_within_a_reconcile, False, id="within a reconcile"),
        pytest.param(_while_the_clean_up_runs, True, id="while the clean-up runs"),
        pytest.param(_while_a_finalizer_is_changed, True, id="while a finalizer is removed"),
    ],
)
@pytest.mark.parametrize("scope", list(Scope))
@pytest.mark.parametrize("collect", [True, False], ids=["collected at once", "collected late"])
def test_a_clean_up_is_of_one_owner(scope: Scope, replace: Replace, *, cleaned: bool, collect: bool) -> None:
    """A user who removes the finalizers ends the clean-up, and the next owner of the name is not cleaned up for it."""

    async def test(world: World) -> None:
        world.cleaned = []
        former, other = await world.create(), await world.create(GROUPS[1], "other")
        async with world.operating() as process:
            before = await world.found(world.key(GROUPS[1]))
            await replace(world)
            await asyncio.sleep(60)
            await world.cluster.collect_garbage()
            await asyncio.sleep(60)
            await _check(world, process, former, other, before)
            # The operator may have seen the deletion before the finalizers were gone.
            assert {*world.cleaned} <= {former}
            assert len(world.cleaned) in ([1] if cleaned else [0, 1])
            world.cleaned.clear()
            live = await world.found(world.key())
            held = [name.replace("realms-two", "realms-one") for name in before["metadata"]["finalizers"]]
            assert live["metadata"]["finalizers"] == held
            await world.cluster.delete(world.key())
            await asyncio.sleep(60)
            assert world.cleaned == [live["metadata"]["uid"]]
            assert await world.found(world.key()) == {}

    run_in_world(scope, test, collect=collect)


@pytest.mark.parametrize("scope", list(Scope))
def test_failures_of_the_former_owner_do_not_delay_the_new_one(scope: Scope) -> None:
    async def test(world: World) -> None:
        world.fails.add(await world.create())
        async with world.operating():
            await asyncio.sleep(1200)
            await world.cluster.delete(world.key())
            uid = await world.create(motto="new")
            world.fails.add(uid)
            world.reconciled.clear()
            await asyncio.sleep(4)
            assert world.reconciled == [(GROUPS[0], uid)] * 3
            assert set(world.forgotten) == {world.key()}

    run_in_world(scope, test)


@pytest.mark.promise("owner-identity", runs="an owner that is also read, listed and edited in another version")
@pytest.mark.parametrize("scope", list(Scope))
def test_an_owner_in_another_version_is_the_same_owner(scope: Scope) -> None:
    async def test(world: World) -> None:
        versions = [CRDVersion("v1", Realm, stored=True), CRDVersion("v2", Realm)]
        definition = crd("versions.example.com", *versions, scope=scope)
        await world.cluster.create(definition, field_manager="user")
        key = world.key("versions.example.com")
        later = key._replace(api_version="versions.example.com/v2")
        seen: list[str] = []

        async def components(owner: Realm, context: ReconcileContext) -> Component:
            read = await context.cluster.get(later)
            listed = (await context.cluster.list(later.api_version, later.kind)).items
            seen.append(read["spec"]["motto"])
            assert [one["metadata"]["uid"] for one in (read, *listed)] == [owner.metadata["uid"]] * 2
            metadata = {"name": "settings", "namespace": TOWN}
            settings = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"motto": seen[-1]}}
            return (
                component.Builder("web", condition_type="WebReady").with_resource(configmap.Builder(settings)).build()
            )

        deleted: list[ObjectKey] = []
        operator = Operator(
            name="realms",
            owner=OwnerType.of(Realm, definition, version="v1"),
            components=components,
            resync=None,
            on_deleted=deleted.append,
        )
        async with running(world.gateway, operator, options=options_of()):
            await asyncio.sleep(5)
            await world.create("versions.example.com", "open")
            await asyncio.sleep(3600)
            # Its own write of the status is an event of the other version, too, and costs one reconcile.
            assert seen.count("open") <= len(versions) + 1
            await touch(world, later, {"spec": {"motto": "edited"}})
            await asyncio.sleep(3600)
            assert (await world.found(ObjectKey("v1", "ConfigMap", "settings", TOWN)))["data"] == {"motto": "edited"}
            assert seen.count("edited") <= len(versions) + 1
            await world.cluster.delete(later)
            await asyncio.sleep(60)
            assert deleted == [key]

    run_in_world(scope, test)
