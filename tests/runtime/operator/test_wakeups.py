"""Whatever another writer changes while a reconcile runs, the last reconcile has used it; without one, none follows."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

import pytest

from ocf import component
from ocf.cluster import (
    Cluster,
    InterceptingCluster,
    ListOptions,
    ObjectList,
    PatchOptions,
    PatchType,
    Request,
    Subresource,
    Verb,
)
from ocf.cluster.protocol import DEFAULT_LIST_OPTIONS
from ocf.component import Component, ReconcileContext
from ocf.errors import NotFoundError, ServerError
from ocf.objects import Manifest, ObjectKey
from ocf.primitives import configmap
from ocf.runtime.operator import controller, running
from ocf.runtime.operator.recording_reads import RecordingReads
from tests.requirements import Sampled

from .conftest import NAMESPACE, Env, RunTest, Shop, key_of, settings_of, shop

GUIDE: Final = ObjectKey("v1", "Secret", "guide", NAMESPACE)
STALLS: Final = ListOptions(namespace=NAMESPACE, label_selector="stall")
RICH: Final = ObjectKey("v1", "ConfigMap", "rich", NAMESPACE)
POOR: Final = ObjectKey("v1", "ConfigMap", "poor", NAMESPACE)
FRONT: Final = ObjectKey("v1", "Service", "corner-front", NAMESPACE)


def named(key: ObjectKey, labels: Manifest | None = None, **content: Any) -> Manifest:
    metadata = {"name": key.name, "namespace": key.namespace, "labels": labels or {}}
    return {"apiVersion": key.api_version, "kind": key.kind, "metadata": metadata, **content}


async def decision(cluster: Cluster, owner: Manifest | Shop) -> Manifest:
    """Return what a reconcile decides by: lists first, then reads by name of the same objects."""
    shown = Shop.model_validate(owner) if isinstance(owner, dict) else owner
    stalls = await cluster.list("v1", "ConfigMap", STALLS)
    read = {}
    for key in (POOR, RICH, GUIDE, settings_of(), FRONT):
        with suppress(NotFoundError):
            read[key.name] = await cluster.get(key)
    front = read.get(FRONT.name, {})
    return {
        "motto": shown.spec.motto,
        "visits": shown.status.visits if shown.status is not None else 0,
        "labels": shown.metadata.labels,
        "stalls": {one["metadata"]["name"]: one.get("data") for one in stalls.items},
        "read": {name: one.get("data") for name, one in read.items() if name in (POOR.name, RICH.name, GUIDE.name)},
        "seen": (read.get(settings_of().name, {}).get("metadata", {}).get("annotations") or {}).get("seen"),
        "load balancer": (front.get("status") or {}).get("loadBalancer") or None,
    }


Change: TypeAlias = Callable[[Env], Awaitable[object]]


async def _recreate(env: Env, key: ObjectKey, manifest: Manifest) -> None:
    with suppress(NotFoundError):
        await env.cluster.delete(key)
    await env.create(manifest)


async def _edit_if_there(env: Env, key: ObjectKey, patch: Manifest) -> None:
    with suppress(NotFoundError):
        await env.edit(key, patch)


async def _delete_if_there(env: Env, key: ObjectKey) -> None:
    with suppress(NotFoundError):
        await env.cluster.delete(key)


async def _set_load_balancer(env: Env) -> None:
    with suppress(NotFoundError):
        await env.patch_status(FRONT, {"loadBalancer": {"ingress": [{"ip": "10.0.0.1"}]}}, by="cloud")


CHANGES: Final[dict[str, Change]] = {
    "the spec of the owner": lambda env: env.edit(key_of(), {"spec": {"motto": "closed"}}),
    "a label of the owner": lambda env: env.edit(key_of(), {"metadata": {"labels": {"town": "east"}}}),
    "the status of the owner": lambda env: env.patch_status(key_of(), {"visits": 3}, by="counter"),
    "the owner, replaced": lambda env: _recreate(env, key_of(), shop(motto="again")),
    "an object that is read by name": lambda env: env.edit(GUIDE, {"stringData": {"text": "2"}}),
    "an object that is read by name, deleted": lambda env: env.cluster.delete(GUIDE),
    "an object that is read by name, replaced": lambda env: _recreate(env, GUIDE, named(GUIDE, data={"text": "Mw=="})),
    "an object that is listed": lambda env: env.edit(RICH, {"data": {"goods": "many more"}}),
    "an object that is listed, deleted": lambda env: env.cluster.delete(RICH),
    "an object that is listed from now on": lambda env: env.create(
        named(POOR, {"stall": "poor"}, data={"goods": "few"})
    ),
    "an object that a list selects no longer": lambda env: env.edit(RICH, {"metadata": {"labels": {"stall": None}}}),
    "an object of the component": lambda env: _edit_if_there(env, settings_of(), {"data": {"motto": "by hand"}}),
    "an annotation of it": lambda env: _edit_if_there(
        env, settings_of(), {"metadata": {"annotations": {"seen": "yes"}}}
    ),
    "an object of the component, deleted": lambda env: _delete_if_there(env, settings_of()),
    "an object of the component, replaced": lambda env: _recreate(
        env, settings_of(), named(settings_of(), {"by": "hand"}, data={"motto": "by hand"})
    ),
    "the status of an object of the component": _set_load_balancer,
}


@dataclass
class Script:
    """What happens at which request of the operator; a request is counted before it is sent, and after the answer."""

    env: Env
    at: int | None = None
    change: Change | None = None
    count: int = 0
    until_cached: float = 0.0
    decisions: list[Manifest] = field(default_factory=list)

    async def step(self) -> None:
        self.count += 1
        if self.count == self.at and self.change is not None:
            await self.change(self.env)
            # Otherwise the cache does not know it before the reconcile has gone on.
            await asyncio.sleep(self.until_cached)

    def arm(self, at: int | None, change: Change | None) -> None:
        self.count, self.at, self.change = 0, at, change


def scripted(script: Script) -> type[RecordingReads]:
    """Return the cluster of a reconcile that counts its requests, those that the cache answers included."""

    class Scripted(RecordingReads):
        async def get(self, key: ObjectKey, *, subresource: Subresource | None = None) -> Manifest:
            await script.step()
            return await super().get(key, subresource=subresource)

        async def list(self, api_version: str, kind: str, options: ListOptions = DEFAULT_LIST_OPTIONS) -> ObjectList:
            await script.step()
            return await super().list(api_version, kind, options)

        async def apply(self, *args: Any, **given: Any) -> Manifest:
            await script.step()
            return await super().apply(*args, **given)

        async def update(self, *args: Any, **given: Any) -> Manifest:
            await script.step()
            return await super().update(*args, **given)

    return Scripted


@dataclass(frozen=True, kw_only=True)
class Pace:
    """How fast requests are answered, and how fast the cache learns of a change.

    Args:
        latency: Seconds before and after each request to the API server.
        until_cached: Seconds after a change by another writer until the reconcile goes on.
    """

    latency: float
    until_cached: float


Play: TypeAlias = Callable[[Callable[[Env, Script], Awaitable[None]], Pace], None]


@pytest.fixture
def play(monkeypatch: pytest.MonkeyPatch, run_test: RunTest) -> Play:
    """Return the function that runs a test of an operator whose requests are counted."""

    def run(test: Callable[[Env, Script], Awaitable[None]], pace: Pace) -> None:
        async def on_stage(env: Env) -> None:
            script = Script(env, until_cached=pace.until_cached)
            monkeypatch.setattr(controller, "RecordingReads", scripted(script))

            async def slow(request: Request) -> None:
                await asyncio.sleep(pace.latency)
                if not request.verb.is_read:
                    await script.step()
                await asyncio.sleep(pace.latency)

            async def decide(owner: Shop, context: ReconcileContext) -> None:
                script.decisions.append(await decision(context.cluster, owner))

            env.gateway.meddle = env.gateway.after = slow
            env.before = decide
            await env.create(named(RICH, {"stall": "rich"}, data={"goods": "many"}))
            await env.create(named(GUIDE, data={"text": "MQ=="}))
            await test(env, script)

        run_test(on_stage)

    return run


async def settled(env: Env, script: Script) -> None:
    """Wait, and check that the last decision is about the state that is left, and that nothing happens any more."""
    await asyncio.sleep(100)
    live = await env.cluster.get(key_of())
    assert script.decisions[-1] == await decision(env.cluster, live)
    assert (await env.cluster.get(settings_of()))["data"] == {"motto": live["spec"].get("motto", "open")}
    generations = {one["observedGeneration"] for one in live["status"]["conditions"]}
    assert generations == {live["metadata"]["generation"]}
    env.forget()
    await asyncio.sleep(1000)
    assert (env.passes, env.gateway.requests) == ([], [])


PACES: Final = [
    pytest.param(Pace(latency=0.0, until_cached=0.0), id="the cache is behind"),
    pytest.param(Pace(latency=0.01, until_cached=1.0), id="the cache is up to date"),
]


@pytest.mark.promise(
    "no-lost-change",
    runs="a change by another writer at each request of a reconcile (in `make test` at one request in ten)",
)
@pytest.mark.matrix
@pytest.mark.parametrize("pace", PACES)
@pytest.mark.parametrize("first", [True, False], ids=["new owner", "known owner"])
@pytest.mark.parametrize("change", CHANGES)
def test_a_change_at_any_request_of_a_reconcile_is_used_by_the_last_one(
    play: Play, change: str, first: bool, pace: Pace, sampled: Sampled
) -> None:
    """Reports of lost changes in other projects.

    * https://github.com/operator-framework/java-operator-sdk/issues/3398 (a spec that changes before the status write)
    * https://github.com/operator-framework/java-operator-sdk/pull/3414 (foreign writes between two of the operator)
    * https://github.com/nolar/kopf/issues/729 (a change between the creation and the first write of the operator)
    """
    requests = 0

    def played(at: int | None) -> None:
        async def test(env: Env, script: Script) -> None:
            nonlocal requests
            if not first:
                await env.create(shop())
            async with env.operating():
                script.arm(at, CHANGES[change])
                if first:
                    await env.create(shop())
                else:
                    await env.edit(key_of(), {"spec": {"motto": "new"}})
                await asyncio.sleep(50)
                if at is None:
                    requests = script.count
                else:
                    assert script.count >= at
                script.arm(None, None)
                await settled(env, script)

        play(test, pace)

    played(None)
    assert requests >= 14
    for *_, at in sampled([(change, first, pace, at) for at in range(1, requests + 1)]):
        played(at)


@pytest.mark.promise("no-lost-change", runs="own reads and writes of a new owner and after an edit")
@pytest.mark.parametrize("pace", PACES)
def test_without_another_writer_no_reconcile_follows(play: Play, pace: Pace) -> None:
    async def test(env: Env, script: Script) -> None:
        async with env.operating():
            await env.create(shop())
            await settled(env, script)
            assert len(script.decisions) == 1
            await env.edit(key_of(), {"spec": {"motto": "new"}})
            await settled(env, script)
            assert len(script.decisions) == 2

    play(test, pace)


@pytest.mark.promise("no-lost-change", runs="an owner whose spec and annotation its own operator patches")
@pytest.mark.parametrize(
    "patch",
    [
        pytest.param({"spec": {"guide": "default"}}, id="spec"),
        pytest.param({"metadata": {"annotations": {"seen": "yes"}}}, id="annotation"),
        pytest.param({"metadata": {"labels": {"seen": "yes"}}}, id="label"),
    ],
)
@pytest.mark.parametrize("reports", [True, False], ids=["status changes too", "status stays"])
def test_a_patch_of_the_owner_by_its_operator_takes_one_more_reconcile(
    run_test: RunTest, patch: Manifest, reports: bool
) -> None:
    """Its components were made from the owner as it was before: https://github.com/kubernetes-sigs/cluster-api/issues/3256."""

    async def test(env: Env) -> None:
        async def complete(owner: Shop, context: ReconcileContext) -> None:
            if owner.metadata.annotations.get("begin") or reports:
                await context.cluster.patch(
                    key_of(), patch, PatchOptions(patch_type=PatchType.MERGE, field_manager="me")
                )

        env.before = complete
        async with env.operating(report=env.report):
            await env.create(shop())
            await asyncio.sleep(5)
            if not reports:
                env.forget()
                await env.edit(key_of(), {"metadata": {"annotations": {"begin": "now"}}})
                await asyncio.sleep(5)
            assert len(env.passes) == 2
            live = await env.cluster.get(key_of())
            generations = {one["observedGeneration"] for one in live["status"]["conditions"]}
            assert generations == {live["metadata"]["generation"]}
            env.forget()
            await env.edit(key_of(), {"spec": {"motto": "new"}})
            await asyncio.sleep(100)
            assert len(env.passes) == 1

    run_test(test)


def test_a_list_of_the_framework_itself_triggers_nothing(run_test: RunTest) -> None:
    """Pruning lists every ConfigMap of the namespace."""

    async def test(env: Env) -> None:
        async def pruned(owner: Shop) -> Component:
            env.passes.append((owner.metadata.name, 0))
            settings = named(settings_of(), data={"motto": owner.spec.motto})
            builder = component.Builder("web", condition_type="WebReady").with_prune()
            return builder.with_resource(configmap.Builder(settings).build()).build()

        async with env.operating(components=pruned):
            await env.create(shop())
            await asyncio.sleep(5)
            assert len(env.passes) == 1
            await env.create(named(RICH))
            await env.edit(RICH, {"data": {"goods": "many"}})
            await asyncio.sleep(5)
            assert len(env.passes) == 1

    run_test(test)


def _settings_alone(owner: Shop) -> Component:
    base = named(settings_of(), data={"motto": owner.spec.motto})
    return component.Builder("web", condition_type="WebReady").with_resource(configmap.Builder(base).build()).build()


class _DeletesAtOnce(InterceptingCluster):
    """Deletes the settings before the create of them is answered; its watches report both together."""

    is_armed = False
    delay = 0.0

    async def intercept(self, request: Request, send: Callable[[], Awaitable[Any]]) -> Any:
        answer = await send()
        if self.is_armed and request.kind == "ConfigMap" and not request.verb.is_read:
            self.is_armed = False
            await self._inner.delete(settings_of())
            await asyncio.sleep(self.delay)
        return answer


@pytest.mark.parametrize("is_first", [pytest.param(True, id="created"), pytest.param(False, id="created again")])
@pytest.mark.parametrize("delay", [0.0, 0.1])
def test_an_object_that_is_deleted_before_its_creation_is_reported_is_created_again(
    run_test: RunTest, delay: float, is_first: bool
) -> None:
    async def test(env: Env) -> None:
        cluster = _DeletesAtOnce(env.cluster)
        cluster.is_armed, cluster.delay = is_first, delay
        operator = env.operator(components=_settings_alone, owns=[("v1", "ConfigMap")])
        async with running(cluster, operator, options=env.options()):
            await env.create(shop())
            await asyncio.sleep(600)
            if not is_first:
                cluster.is_armed = True
                await env.cluster.delete(settings_of())
                await asyncio.sleep(600)
            assert not cluster.is_armed
            assert (await env.cluster.get(settings_of()))["data"]

    run_test(test)


@pytest.mark.parametrize("read", ["by name", "in a list"])
@pytest.mark.parametrize("failures", [0, 1])
def test_what_is_deleted_before_the_cache_could_be_filled_is_noticed(
    run_test: RunTest, read: str, failures: int
) -> None:
    """The first list fails, the reconcile is answered by the API server, and then the object goes."""

    async def test(env: Env) -> None:
        failed = 0

        async def fail_first(request: Request) -> None:
            nonlocal failed
            if request.kind == "Secret" and request.verb is Verb.LIST and request.name == "" and failed < failures:
                failed += 1
                raise ServerError("etcdserver: leader changed")

        async def components(_: Shop, context: ReconcileContext) -> list[Component]:
            if read == "by name":
                with suppress(NotFoundError):
                    context.status["visits"] = 0
                    context.status["visits"] = len([await context.cluster.get(GUIDE)])
            else:
                listed = await context.cluster.list("v1", "Secret", ListOptions(namespace=NAMESPACE))
                context.status["visits"] = len(listed.items)
            return []

        async def visits() -> int:
            return int((await env.cluster.get(key_of()))["status"]["visits"])

        await env.create(named(GUIDE))
        env.gateway.meddle = fail_first
        async with env.operating(components=components):
            await env.create(shop())
            await asyncio.sleep(0.1)
            assert await visits() == 1
            await env.cluster.delete(GUIDE)
            await asyncio.sleep(600)
            assert (failed, await visits()) == (failures, 0)

    run_test(test)
