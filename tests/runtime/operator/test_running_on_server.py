"""A running operator on a real API server: no change is lost, and no failure changes what it is not about.

The server answers in its own time and order. A proxy in front of it holds, fails or refuses single requests. Public
reports: https://github.com/operator-framework/java-operator-sdk/issues/3398,
https://github.com/operator-framework/java-operator-sdk/pull/3414, https://github.com/nolar/kopf/issues/729,
https://github.com/kubernetes-sigs/cluster-api/issues/3256 (changes while a reconcile runs),
https://github.com/gravitee-io/gravitee-kubernetes-operator/pull/1725 (a failure that resets the status),
https://github.com/Kong/kubernetes-ingress-controller/pull/5483 (a reconcile before the caches are filled).
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import pytest
from pydantic import field_validator

from ocf import component
from ocf.cluster import ListOptions, PatchOptions, PatchType, Subresource
from ocf.cluster.client import ApiServerCluster
from ocf.cluster.client.kubeconfig import load_config
from ocf.concepts.backoff import ExponentialBackoff
from ocf.errors import ConfigError, NotFoundError, TooManyRequestsError
from ocf.objects import Manifest, ObjectKey
from ocf.primitives import configmap
from ocf.runtime.crds import CRDVersion, crd
from ocf.runtime.operator import ManagerOptions, Operator, OwnerType, ReconcileOutcome, Watch, running, spec_changed
from tests.reverse_proxy import Meddle, ReverseProxy, failure, reverse_proxy
from tests.support import eventually, until

from .conftest import SECOND, Shop, ShopSpec, shop

if TYPE_CHECKING:
    from aiohttp import web

    from ocf.cluster import Cluster
    from ocf.component import Component, ReconcileContext
    from ocf.runtime.operator.manager import Manager
    from ocf.testing.envtest.fixtures import Envtest

GROUP: Final = "running.example.com"
# The parameters of other tests differ, and all tests share the server.
DEFINITION: Final = crd(GROUP, CRDVersion("v1", Shop))
OWNERS: Final = OwnerType.of(Shop, DEFINITION)
MERGE: Final = PatchOptions(patch_type=PatchType.MERGE, field_manager="admin")


@dataclass
class Town:
    """A namespace with one shop, and the operators that work there.

    Args:
        admin: The cluster, past the proxy.
        proxy: The way of the operators.
    """

    admin: ApiServerCluster
    proxy: ReverseProxy
    namespace: str
    decisions: list[Any] = field(default_factory=list)
    process: Manager | None = None

    @property
    def owner(self) -> ObjectKey:
        return ObjectKey(f"{GROUP}/v1", "Shop", "corner", self.namespace)

    def key(self, kind: str, name: str) -> ObjectKey:
        return ObjectKey("v1", kind, name, self.namespace)

    def manifest(self, kind: str, name: str, labels: Manifest | None = None, **content: Any) -> Manifest:
        metadata = {"name": name, "namespace": self.namespace, "labels": labels or {}}
        return {"apiVersion": "v1", "kind": kind, "metadata": metadata, **content}

    async def create(self, manifest: Manifest) -> None:
        await self.admin.create(manifest, field_manager="admin")

    async def edit(self, key: ObjectKey, patch: Manifest) -> Manifest:
        return await self.admin.patch(key, patch, MERGE)

    async def open_shop(self, **spec: Any) -> None:
        """Create the owner, as soon as the server serves its kind."""
        made = shop(**spec)
        made["apiVersion"], made["metadata"]["namespace"] = f"{GROUP}/v1", self.namespace

        async def created() -> bool:
            await self.create(made)
            return True

        await eventually(created, ignore=(NotFoundError, TooManyRequestsError))

    async def conditions(self) -> dict[str, Manifest]:
        status: Manifest = (await self.admin.get(self.owner)).get("status") or {}
        return {one["type"]: one for one in status.get("conditions") or ()}

    async def is_current(self) -> bool:
        """Return whether every condition is about the present generation of the owner."""
        live = await self.admin.get(self.owner)
        found = (live.get("status") or {}).get("conditions") or ()
        return {one["observedGeneration"] for one in found} == {live["metadata"]["generation"]}

    def settings(self, owner: Shop, name: str = "settings", kind: str = "web") -> Component:
        base = self.manifest("ConfigMap", name, data={"motto": owner.spec.motto})
        builder = component.Builder(kind, condition_type=f"{kind.title()}Ready").with_prune()
        return builder.with_resource(configmap.Builder(base).build()).build()

    def operator(self, **changed: Any) -> Operator[Shop]:
        given: dict[str, Any] = {
            "name": "shops",
            "owner": OWNERS,
            "components": self.settings,
            "resync": None,
            "rate_limiter": ExponentialBackoff(SECOND / 5, SECOND / 5, jitter=0),
        }
        return Operator(**{**given, **changed})

    @asynccontextmanager
    async def operating(self, operator: Operator[Shop], **options: Any) -> AsyncIterator[Manager]:
        """Run an operator with a connection of its own, as a process has it."""
        given = ManagerOptions(listen=None, namespaces=[self.namespace], **options)
        async with ApiServerCluster(self.proxy.config) as cluster, running(cluster, operator, options=given) as process:
            self.process = process
            yield process

    async def until_cached(self, key: ObjectKey) -> None:
        """Wait until the cache of the process holds an object as it is now, if it holds that kind."""
        assert self.process is not None
        cache, version = self.process.controllers[0]._cache, ""
        with suppress(NotFoundError):
            version = (await self.admin.get(key))["metadata"]["resourceVersion"]
        if any(one.synced for one in cache.informers_of(key.api_version, key.kind)):
            await until(lambda: getattr(cache.entry(key), "version", "") == version)


@pytest.fixture
async def town(envtest: Envtest, envtest_cluster: ApiServerCluster) -> AsyncIterator[Town]:
    await envtest_cluster.apply(DEFINITION, field_manager="admin")
    async with reverse_proxy(load_config(envtest.kubeconfig)) as proxy:
        yield Town(envtest_cluster, proxy, envtest.namespace)


class TestWakeUps:
    """Another writer changes something while the first reconcile runs, and the last one has used it."""

    STALL: Final = {"stall": "yes"}

    Change: TypeAlias = tuple[str, str, Callable[[Town, ObjectKey], Awaitable[object]]]
    """Kind and name of an object, and what happens to it."""
    CHANGES: Final[dict[str, Change]] = {
        "an object that is listed": ("ConfigMap", "rich", lambda town, key: town.edit(key, {"data": {"goods": "all"}})),
        "an object that is listed, deleted": ("ConfigMap", "rich", lambda town, key: town.admin.delete(key)),
        "an object that is listed from now on": (
            "ConfigMap",
            "poor",
            lambda town, key: town.create(town.manifest(key.kind, key.name, TestWakeUps.STALL, data={"goods": "few"})),
        ),
        "an object that is selected no longer": (
            "ConfigMap",
            "rich",
            lambda town, key: town.edit(key, {"metadata": {"labels": {"stall": None}}}),
        ),
        "an object that is read by name": (
            "Secret",
            "guide",
            lambda town, key: town.edit(key, {"data": {"a": "Mg=="}}),
        ),
        "the object that is applied next": (
            "ConfigMap",
            "settings",
            lambda town, key: town.edit(key, {"metadata": {"annotations": {"seen": "yes"}}}),
        ),
        "a label of the owner": (
            "Shop",
            "corner",
            lambda town, key: town.edit(key, {"metadata": {"labels": {"seen": "yes"}}}),
        ),
    }

    @pytest.mark.promise("no-lost-change", runs="7 changes between a list, a read and a write, on a real API server")
    @pytest.mark.parametrize("is_cached", [False, True], ids=["the cache is behind", "the cache is up to date"])
    @pytest.mark.parametrize("at", ["after the list", "after the reads"])
    @pytest.mark.parametrize("change", CHANGES)
    async def test_a_change_while_a_reconcile_runs_is_used(
        self, town: Town, change: str, at: str, *, is_cached: bool
    ) -> None:
        changed = False

        async def meddle(step: str) -> None:
            nonlocal changed
            if step == at and not changed:
                changed = True
                kind, name, happen = self.CHANGES[change]
                key = town.owner if kind == "Shop" else town.key(kind, name)
                await happen(town, key)
                if is_cached:
                    await town.until_cached(key)

        async def components(owner: Shop, context: ReconcileContext) -> Component:
            town.decisions.append(await seen(town, context.cluster, context.owner, meddle))
            return town.settings(owner)

        async def used() -> bool:
            wanted = await seen(town, town.admin, await town.admin.get(town.owner))
            return changed and town.decisions[-1:] == [wanted] and await town.is_current()

        await town.create(town.manifest("ConfigMap", "rich", self.STALL, data={"goods": "many"}))
        await town.create(town.manifest("Secret", "guide", data={"text": "MQ=="}))
        await town.create(town.manifest("ConfigMap", "settings", data={"motto": "old"}))
        await town.open_shop()
        async with town.operating(town.operator(components=components)):
            await eventually(used)

    @pytest.mark.promise("no-lost-change", runs="an operator that patches its own owner, on a real API server")
    @pytest.mark.parametrize(
        "patch",
        [
            pytest.param({"spec": {"guide": "default"}}, id="spec"),
            pytest.param({"metadata": {"annotations": {"seen": "yes"}}}, id="annotation"),
        ],
    )
    async def test_a_patch_of_the_own_owner_is_followed_by_one_reconcile(self, town: Town, patch: Manifest) -> None:
        """The generation of every condition is the present one in the end."""

        async def components(owner: Shop, context: ReconcileContext) -> Component:
            town.decisions.append(context.owner["metadata"]["generation"])
            await context.cluster.patch(town.owner, patch, PatchOptions(patch_type=PatchType.MERGE, field_manager="me"))
            return town.settings(owner)

        async def came(number: int) -> bool:
            return len(town.decisions) >= number and await town.is_current()

        await town.open_shop()
        async with town.operating(town.operator(components=components)):
            await eventually(lambda: came(2))
            # The next one is about the next edit: none came in between.
            generation = (await town.edit(town.owner, {"spec": {"motto": "new"}}))["metadata"]["generation"]
            await eventually(lambda: came(3))
            assert [one == generation for one in town.decisions] == [False, False, True]


async def nothing(_: str) -> None: ...


async def seen(
    town: Town, cluster: Cluster, owner: Manifest, meddle: Callable[[str], Awaitable[None]] = nothing
) -> Manifest:
    """Return what a reconcile decides by: objects that it lists, and then objects that it reads by name."""
    listed = await cluster.list("v1", "ConfigMap", ListOptions(namespace=town.namespace, label_selector="stall=yes"))
    await meddle("after the list")
    read: dict[str, Manifest] = {}
    for key in (town.key("Secret", "guide"), town.key("ConfigMap", "rich"), town.key("ConfigMap", "settings")):
        with suppress(NotFoundError):
            read[key.name] = await cluster.get(key)
    await meddle("after the reads")
    return {
        "labels": owner["metadata"].get("labels"),
        "stalls": {one["metadata"]["name"]: one["data"] for one in listed.items},
        "read": {name: one.get("data") for name, one in read.items() if name != "settings"},
        "seen": (read.get("settings", {}).get("metadata", {}).get("annotations") or {}).get("seen"),
    }


class StrictShop(Shop):
    """A model that cannot read every owner that the definition allows."""

    @field_validator("spec")
    @classmethod
    def _readable(cls, spec: ShopSpec) -> ShopSpec:
        if spec.motto == "unreadable":
            raise ValueError("the motto cannot be read")
        return spec


def finished(context: ReconcileContext, owner: Shop, outcome: ReconcileOutcome) -> None:
    """Report as the controller of a batch kind does: once that it has finished, and never that it has failed."""
    if outcome.error is None:
        context.set_condition("Completed", status="True", reason="AllDone", message="")
        context.set_condition("Failed", status="False", reason="NothingFailed", message="")
    if owner.spec.motto == "uncounted":
        context.status["visits"] = "many"


@dataclass(frozen=True)
class Cause:
    """Why a reconcile fails.

    Args:
        failed: The conditions that show it.
        motto: The motto of the owner, by which the functions of the operator fail.
        meddle: What the proxy answers meanwhile.
        cleans_up: Whether the operator sets a finalizer first.
        reaches_all: Whether everything but the status is reconciled, so that conditions have the new generation.
    """

    failed: frozenset[str]
    motto: str = "new"
    meddle: Meddle | None = None
    cleans_up: bool = False
    reaches_all: bool = False


def _answering(part: str, answer: Callable[[], Awaitable[web.StreamResponse]], method: str) -> Meddle:
    async def meddle(request: web.Request) -> web.StreamResponse | None:
        return await answer() if request.path.endswith(part) and request.method == method else None

    return meddle


async def _fail() -> web.StreamResponse:
    return failure(500, "InternalError")


async def _refuse() -> web.StreamResponse:
    return failure(403, "Forbidden")


async def _hold() -> web.StreamResponse:
    found: web.StreamResponse = await asyncio.get_running_loop().create_future()
    return found


async def drop(*_: object) -> None: ...


WEB: Final = frozenset({"WebReady"})
RECONCILED: Final = frozenset({"shops/Reconciled"})
SETTINGS: Final = "/configmaps/settings"
CAUSES: Final = [
    pytest.param(Cause(WEB, meddle=_answering(SETTINGS, _fail, "PATCH")), id="a 500 for an object"),
    pytest.param(Cause(WEB, meddle=_answering(SETTINGS, _refuse, "PATCH")), id="an object that is refused"),
    pytest.param(Cause(RECONCILED, meddle=_answering("/secrets/guide", _fail, "GET")), id="a 500 for a read"),
    pytest.param(Cause(RECONCILED, meddle=_answering(SETTINGS, _hold, "PATCH")), id="a timeout"),
    pytest.param(
        Cause(RECONCILED, meddle=_answering("/shops/corner", _fail, "PATCH"), cleans_up=True),
        id="a 500 for the finalizer",
    ),
    pytest.param(Cause(RECONCILED, motto="unreadable"), id="an owner that the model cannot read"),
    pytest.param(Cause(RECONCILED, motto="uncounted", reaches_all=True), id="a status that the API server refuses"),
    pytest.param(Cause(RECONCILED, motto="raising"), id="components raises"),
]


@pytest.mark.promise("failure-alone", runs="a finished owner on a real API server, with 8 causes of a failure")
@pytest.mark.parametrize("cause", CAUSES)
async def test_a_failure_leaves_the_author_s_conditions_alone(town: Town, cause: Cause) -> None:
    """Type, status, reason, message, generation and transition time; the same ones are left when it has ended."""

    async def components(owner: Shop, context: ReconcileContext) -> Component:
        if owner.spec.motto == "raising":
            raise ValueError("secret")
        await context.cluster.get(town.key("Secret", "guide"))
        return town.settings(owner)

    def is_failed(found: dict[str, Manifest]) -> bool:
        return {name for name, one in found.items() if one["reason"] == "Error"} == cause.failed

    async def recovered() -> bool:
        return (await town.conditions()).keys() == before.keys() and await town.is_current()

    def compared(found: dict[str, Manifest], *, whole: bool) -> dict[str, Manifest]:
        names = before.keys() - cause.failed
        return {name: found[name] | ({} if whole else {"observedGeneration": 0}) for name in names}

    operator = town.operator(
        owner=OwnerType.of(StrictShop, DEFINITION),
        components=components,
        report=finished,
        uncached=[("v1", "Secret")],
        published_conditions=["Completed", "Failed"],
        abnormal_conditions=["Failed"],
        reconcile_timeout=timedelta(seconds=2),
    )
    await town.create(town.manifest("Secret", "guide"))
    await town.open_shop()
    async with town.operating(operator):
        await eventually(town.conditions, lambda found: {"WebReady", "Completed", "Failed"} == found.keys())
    before = await town.conditions()
    assert (before["Completed"]["status"], before["Failed"]["status"]) == ("True", "False")
    town.proxy.meddle = cause.meddle
    await town.edit(town.owner, {"spec": {"motto": cause.motto}})
    async with town.operating(replace(operator, on_delete=drop if cause.cleans_up else None)):
        during = await eventually(town.conditions, is_failed)
        whole = not cause.reaches_all
        assert compared(during, whole=whole) == compared(before, whole=whole)
        assert during.keys() == before.keys() | cause.failed
        town.proxy.meddle = None
        await town.edit(town.owner, {"spec": {"motto": "well"}})
        await eventually(recovered)
    assert compared(await town.conditions(), whole=False) == compared(before, whole=False)


@pytest.mark.promise("intent", runs="an operator on a real API server")
@pytest.mark.promise("patch-owner", runs="an operator on a real API server")
async def test_an_intent_triggers_nothing_and_a_patch_of_the_owner_one_reconcile(town: Town) -> None:
    seen: list[tuple[str, int]] = []

    async def setting(owner: Shop, context: ReconcileContext) -> Component:
        visits = context.status.get("visits", 0)
        seen.append((owner.spec.motto, visits))
        if not visits:
            context.status["visits"] = 7
            await context.write_status()
        await context.patch_owner({"spec": {"motto": "closed"}})
        return town.settings(owner)

    async def is_done() -> bool:
        settings = await town.admin.get(town.key("ConfigMap", "settings"))
        return settings["data"] == {"motto": "closed"} and await town.is_current()

    await town.open_shop()
    async with town.operating(town.operator(components=setting, patches_owner=True)) as process:
        await eventually(is_done, ignore=(NotFoundError,))
        await town.until_cached(town.owner)
        queue = process.controllers[0].queue
        await until(lambda: not queue.depth and not queue.running)
    assert seen == [("open", 0), ("closed", 7)]
    assert (await town.admin.get(town.owner))["metadata"]["generation"] == 2


@pytest.mark.promise("several-operators", runs="two processes on a real API server, one of which fails")
async def test_two_processes_leave_each_others_work_alone(town: Town) -> None:
    """Successes of one remove neither the failure nor the objects nor the finalizer of the other."""
    woken: list[str] = []

    def failing(owner: Shop) -> Component:
        if owner.spec.motto == "raising":
            raise ValueError("secret")
        return town.settings(owner, "first", "first")

    def making(owner: Shop) -> Component:
        woken.append(owner.spec.motto)
        return town.settings(owner, "second", "second")

    async def forget(*_: object) -> None:
        woken.append("cleaned up")

    async def shows(motto: str) -> bool:
        found = await town.conditions()
        return (await town.admin.get(town.key("ConfigMap", "second")))["data"] == {"motto": motto} and {
            "shops/Reconciled",
            "SecondReady",
        } <= found.keys()

    async def has_both() -> bool:
        return bool(
            await town.admin.get(town.key("ConfigMap", "first"))
            and await town.admin.get(town.key("ConfigMap", "second"))
        )

    async def is_gone() -> bool:
        try:
            await town.admin.get(town.owner)
        except NotFoundError:
            return True
        return False

    shops = town.operator(name="shops", components=failing, on_delete=forget)
    malls = town.operator(name="malls", components=making)
    await town.open_shop()
    async with town.operating(shops), town.operating(malls):
        await eventually(has_both, ignore=(NotFoundError,))
        await town.edit(town.owner, {"spec": {"motto": "raising"}})
        await eventually(lambda: shows("raising"), ignore=(NotFoundError,))
        failed = (await town.conditions())["shops/Reconciled"]
        # Only the second operator may write here, because the first one fails in the same way again. After a third
        # delete within a minute it would wait.
        for number in range(2):
            label = {"metadata": {"labels": {"at": str(number)}}}
            await town.edit(town.owner, label)
            await town.admin.delete(town.key("ConfigMap", "second"))
            await eventually(lambda: shows("raising"), ignore=(NotFoundError,))
            found = await town.conditions()
            assert (found["shops/Reconciled"], found["SecondReady"]["status"]) == (failed, "True")
            assert "malls/Reconciled" not in found
            assert (await town.admin.get(town.owner))["metadata"]["finalizers"] == ["shops.ocf.dev/cleanup-external"]
            assert (await town.admin.get(town.key("ConfigMap", "first")))["data"] == {"motto": "open"}
        assert "cleaned up" not in woken
        await town.admin.delete(town.owner)
        await eventually(is_gone)
        assert woken.count("cleaned up") == 1


@pytest.mark.promise("synced-first", runs="a list that a proxy before a real API server holds")
@pytest.mark.parametrize("declared", ["owns", "watches"])
async def test_no_reconcile_begins_before_a_list_that_is_late(town: Town, declared: str) -> None:
    """And if it never is answered, the process ends with the kind in its message."""
    lists = asyncio.Event()
    kinds: dict[str, Any] = {
        "owns": {"owns": [("v1", "Secret")]},
        "watches": {"watches": [Watch("v1", "Secret", lambda _: [])]},
    }
    found: list[int] = []

    async def hold(request: web.Request) -> None:
        if request.path.endswith("/secrets") and "watch" not in request.query:
            await lists.wait()

    async def components(owner: Shop, context: ReconcileContext) -> Component:
        found.append(len((await context.cluster.list("v1", "Secret", ListOptions(namespace=town.namespace))).items))
        return town.settings(owner)

    async def is_asked() -> bool:
        return any(path.endswith("/secrets") for _, path in town.proxy.seen)

    async def is_reconciled() -> bool:
        return bool(found)

    operator = town.operator(components=components, **kinds[declared])
    await town.create(town.manifest("Secret", "guide"))
    await town.open_shop()
    town.proxy.meddle = hold
    message = r"shops: the caches did not sync within cache_sync_timeout, 0:00:02: v1 Secret is not read yet$"
    with pytest.raises(ConfigError, match=message):
        async with town.operating(operator, cache_sync_timeout=timedelta(seconds=2)):
            await asyncio.get_running_loop().create_future()
    assert found == []
    town.proxy.seen.clear()
    async with town.operating(operator) as process:
        await eventually(is_asked)
        assert process.health.ready["owners"]() == "v1 Secret is not read yet"
        # The owner is edited, and its own kind has been read: only the other kind is missing.
        await town.edit(town.owner, {"spec": {"motto": "new"}})
        await eventually(lambda: _is_cached(process, "Shop"))
        assert found == []
        lists.set()
        await eventually(is_reconciled)
    assert set(found) == {1}


async def _is_cached(process: Manager, kind: str) -> bool:
    return all(one.synced for one in process.controllers[0]._cache.informers if one.kind == kind)


@pytest.mark.promise("predicates", runs="labels, annotations, a status and a deletion, by the API server's own events")
async def test_a_predicate_keeps_away_what_needs_no_reconcile_and_nothing_else(town: Town) -> None:
    """A deletion changes no spec on the API server, and neither does the label that a list selects by."""
    listed: list[list[str]] = []
    cleaned: list[str] = []

    async def components(owner: Shop, context: ReconcileContext) -> Component:
        options = ListOptions(namespace=town.namespace, label_selector="stall=yes")
        found = (await context.cluster.list("v1", "ConfigMap", options)).items
        listed.append([one["metadata"]["name"] for one in found])
        return town.settings(owner)

    async def clean(owner: Shop, *_: object) -> None:
        cleaned.append(owner.metadata.name)

    triggers = {(f"{GROUP}/v1", "Shop"): spec_changed, ("v1", "ConfigMap"): spec_changed}
    guide, rich = town.key("ConfigMap", "guide"), {"stall": "yes"}
    await town.create(town.manifest("ConfigMap", "guide", rich))
    async with town.operating(town.operator(components=components, on_delete=clean, triggers=triggers)):
        await town.open_shop()
        await until(lambda: bool(listed))
        await eventually(town.is_current)
        status = PatchOptions(patch_type=PatchType.MERGE, field_manager="admin", subresource=Subresource.STATUS)
        await town.admin.patch(town.owner, {"status": {"visits": 3}}, status)
        await town.edit(town.owner, {"metadata": {"labels": {"a": "b"}}})
        await town.edit(guide, {"metadata": {"annotations": {"a": "b"}}})
        for key in (town.owner, guide):
            await town.until_cached(key)
        assert listed == [["guide"]]
        await town.edit(guide, {"metadata": {"labels": {"stall": None}}})
        await until(lambda: listed == [["guide"], []])
        await town.admin.delete(town.owner)
        await until(lambda: cleaned == ["corner"])
