"""What an operator knows before its first reconcile, and what one owner can make it read.

Public reports of controllers that wait for their caches without an end, or fail as a whole because of one kind:
https://github.com/kubernetes-sigs/controller-runtime/issues/2589, https://github.com/rancher/rancher/issues/51813,
https://github.com/kubernetes-sigs/controller-runtime/issues/1220, https://github.com/ariga/atlas-operator/pull/392.
"""

from __future__ import annotations

import asyncio
import re
from copy import copy
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import pytest

from ocf import component
from ocf.cluster import Request, ServiceAccount, Verb
from ocf.cluster.cache import CacheTiming
from ocf.errors import (
    ApiError,
    BuildError,
    ConfigError,
    ForbiddenError,
    NotFoundError,
    ServerError,
    TooManyRequestsError,
)
from ocf.objects import Manifest, ObjectKey
from ocf.runtime.crds import CRDVersion, crd
from ocf.runtime.operator import Lease, ManagerOptions, Operator, OwnerType, Watch, running
from ocf.runtime.rbac import PolicyRule, roles
from tests.support import eventually, until_granted

from .conftest import NAMESPACE, SECOND, SHOPS, Env, Gateway, RunTest, Shop, key_of, now, settings_of, shop

if TYPE_CHECKING:
    from ocf.cluster.client import ApiServerCluster
    from ocf.component import Component, ReconcileContext
    from ocf.testing.envtest import ControlPlane
    from ocf.testing.envtest.fixtures import Envtest

GUIDE: Final = ObjectKey("v1", "Secret", "guide", NAMESPACE)
MONITOR: Final = ("monitoring.coreos.com/v1", "ServiceMonitor")
FORBIDDEN: Final = ForbiddenError("secrets is forbidden", code=403, reason="Forbidden")
BROKEN: Final = ServerError("conversion webhook failed: connection refused")


def failing(kind: str, error: Exception, *, verbs: tuple[Verb, ...] = (Verb.LIST, Verb.WATCH)) -> Any:
    """Return what makes requests of a kind fail until `mended` is set."""

    async def meddle(request: Request) -> None:
        if request.kind == kind and request.verb in verbs and not meddle.mended:  # type: ignore[attr-defined]
            raise copy(error)

    meddle.mended = False  # type: ignore[attr-defined]
    return meddle


def no_owners(_: Manifest) -> list[tuple[str, str]]:
    return []


DECLARED: Final[dict[str, dict[str, Any]]] = {
    "owns": {"owns": [("v1", "Secret")]},
    "watches": {"watches": [Watch("v1", "Secret", no_owners)]},
}


@pytest.mark.promise("synced-first", runs="kinds of owners, `owns` and `watches` whose first lists fail for a minute")
@pytest.mark.parametrize("declared", [*DECLARED, "owner"])
def test_no_reconcile_begins_before_the_declared_kinds_are_read(run_test: RunTest, declared: str) -> None:
    """In each term as the leader: the second one waits as the first did.

    A new leader that began earlier deleted what it had not read:
    https://github.com/Kong/kubernetes-ingress-controller/pull/5483.
    """

    async def test(env: Env) -> None:
        await env.create(shop())
        kind = "Shop" if declared == "owner" else "Secret"
        for _ in range(2):
            env.forget()
            env.gateway.meddle = meddle = failing(kind, BROKEN)
            options = {"lease": Lease("shops", "default", "one")}
            async with env.operating(options=options, **DECLARED.get(declared, {})) as process:
                await asyncio.sleep(60)
                assert env.passes == []
                assert f"{kind} is not read yet: " in process.health.owners()
                assert "conversion webhook failed" in process.health.owners()
                meddle.mended = True
                await asyncio.sleep(45)
                assert [name for name, _ in env.passes] == ["corner"]
                assert process.health.owners() == process.health.watches() == ""

    run_test(test)


def test_a_component_that_lists_from_the_cache_finds_all_objects_from_the_first_reconcile_on(run_test: RunTest) -> None:
    found: list[int] = []

    async def count(_: Shop, context: ReconcileContext) -> None:
        found.append(len((await context.cluster.list("v1", "Secret")).items))

    async def test(env: Env) -> None:
        for name in ("a", "b"):
            await env.create({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, "namespace": NAMESPACE}})
        await env.create(shop())
        env.before = count
        env.gateway.meddle = meddle = failing("Secret", BROKEN)
        async with env.operating(owns=[("v1", "Secret")]):
            await asyncio.sleep(20)
            meddle.mended = True
            await asyncio.sleep(60)
        assert set(found) == {2}

    run_test(test)


@pytest.mark.promise("synced-first", runs="lists that are forbidden, fail, never end, or exceed the limit of the cache")
@pytest.mark.parametrize(
    ("cause", "reason"),
    [
        pytest.param(FORBIDDEN, "secrets is forbidden", id="forbidden"),
        pytest.param(BROKEN, "conversion webhook failed", id="not converted"),
        pytest.param(None, "v1 Secret is not read yet$", id="a list that does not end"),
    ],
)
def test_a_declared_kind_that_is_not_read_in_time_ends_the_process(
    run_test: RunTest, cause: ApiError | None, reason: str
) -> None:
    async def hang(request: Request) -> None:
        if request.kind == "Secret":
            await asyncio.get_running_loop().create_future()

    async def test(env: Env) -> None:
        await env.create(shop())
        env.gateway.meddle = hang if cause is None else failing("Secret", cause)
        with pytest.raises(ConfigError, match=rf"shops: the caches did not sync within .*0:02:00: .*{reason}"):
            async with env.operating(owns=[("v1", "Secret")]):
                await asyncio.sleep(10_000)
        assert now() == 120
        assert env.passes == []
        assert not [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]

    run_test(test)


def test_a_leader_that_cannot_read_a_declared_kind_leaves_the_lease_to_another(run_test: RunTest) -> None:
    """The way of the first process to the cluster is broken for one kind, that of the second is not."""

    async def test(env: Env) -> None:
        await env.create(shop())
        env.gateway.meddle = failing("Secret", BROKEN)
        second = Env(env.cluster, Gateway(env.cluster), env.clock)
        owns = [("v1", "Secret")]

        async def first() -> None:
            with pytest.raises(ConfigError, match="did not sync"):
                async with env.operating(owns=owns, options={"lease": Lease("shops", "default", "one")}):
                    await asyncio.sleep(10_000)

        leading = asyncio.create_task(first())
        await asyncio.sleep(1)
        async with second.operating(owns=owns, options={"lease": Lease("shops", "default", "two")}):
            await leading
            ended = now()
            await asyncio.sleep(10)
            assert (env.passes, [name for name, _ in second.passes]) == ([], ["corner"])
            assert second.times[0] - ended < 5

    run_test(test)


def test_a_declared_kind_with_too_many_objects_ends_the_process_at_once(run_test: RunTest) -> None:
    async def test(env: Env) -> None:
        for number in range(3):
            metadata = {"name": f"s{number}", "namespace": NAMESPACE}
            await env.create({"apiVersion": "v1", "kind": "Secret", "metadata": metadata})
        with pytest.raises(ConfigError, match=r"v1/Secret: the cache may hold 2 objects"):
            async with env.operating(owns=[("v1", "Secret")], options={"max_objects": 2}):
                await asyncio.sleep(10_000)

    run_test(test)


def test_a_stop_does_not_wait_for_the_declared_kinds(run_test: RunTest) -> None:
    async def test(env: Env) -> None:
        env.gateway.meddle = failing("Secret", BROKEN)
        async with env.operating(owns=[("v1", "Secret")]):
            pass
        assert now() == 5
        assert not [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]

    run_test(test)


MISSING: Final = "monitoring.coreos.com/v1 ServiceMonitor is not read yet: the API server does not serve it"
ALL_OR_SOME: Final = pytest.mark.parametrize(
    "namespaces", [(), (NAMESPACE,)], ids=["all namespaces", "some namespaces"]
)


@pytest.mark.promise("synced-first", runs="kinds of owners, `owns` and `watches` that are not served for two minutes")
@pytest.mark.parametrize("declared", ["owner", "owns", "watches"])
@ALL_OR_SOME
def test_a_declared_kind_that_is_not_served_ends_the_process(
    run_test: RunTest, declared: str, namespaces: tuple[str, ...]
) -> None:
    """As in controller-runtime, after the same time, with what to do.

    Public reports of processes that seemed to run, and did nothing:
    https://github.com/operator-framework/java-operator-sdk/issues/1136,
    https://github.com/operator-framework/java-operator-sdk/issues/1139,
    https://github.com/rhobs/observability-operator/issues/804, https://github.com/apache/doris-operator/issues/489,
    https://github.com/l7mp/stunner-gateway-operator/issues/39.
    """
    given: dict[str, dict[str, Any]] = {
        "owner": {"owner": OwnerType(*MONITOR)},
        "owns": {"owns": [MONITOR]},
        "watches": {"watches": [Watch(*MONITOR, no_owners)]},
    }

    async def test(env: Env) -> None:
        await env.create(shop())
        advice = "; install its CustomResourceDefinition before the operator, or name the kind in `late_kinds`"
        within = "shops: the caches did not sync within cache_sync_timeout, 0:02:00: "
        with pytest.raises(ConfigError, match=re.escape(f"{within}{MISSING}{advice}")):
            async with env.operating(options={"namespaces": namespaces}, **given[declared]):
                await asyncio.sleep(10_000)
        assert now() == 120
        assert env.passes == []

    run_test(test)


@pytest.mark.promise("synced-first", runs="an event about the lease of a process that ends")
@pytest.mark.parametrize("cause", ["a kind that is not served", "too many objects"])
def test_a_process_that_ends_says_so_in_an_event_about_its_lease(run_test: RunTest, cause: str) -> None:
    """The lease is the one object of the process that is known; client-go posts the events of an election there."""

    async def test(env: Env) -> None:
        given: dict[str, Any] = {"owns": [MONITOR]} if cause == "a kind that is not served" else {}
        limits = {} if given else {"max_objects": 0}
        await env.create(shop())
        with pytest.raises(ConfigError) as caught:
            async with env.operating(options={"lease": Lease("shops", NAMESPACE, "one"), **limits}, **given):
                await asyncio.sleep(10_000)
        lease = await env.cluster.get(ObjectKey("coordination.k8s.io/v1", "Lease", "shops", NAMESPACE))
        events = await env.cluster.list("events.k8s.io/v1", "Event")
        [event] = [one for one in events.items if one["regarding"]["kind"] == "Lease"]
        assert event["regarding"]["uid"] == lease["metadata"]["uid"]
        assert (event["type"], event["reason"], event["metadata"]["namespace"]) == (
            "Warning",
            "OperatorEnded",
            NAMESPACE,
        )
        assert event["note"] == str(caught.value)

    run_test(test)


def test_a_process_that_ends_without_a_lease_has_no_event(run_test: RunTest) -> None:
    async def test(env: Env) -> None:
        with pytest.raises(ConfigError):
            async with env.operating(owns=[MONITOR]):
                await asyncio.sleep(10_000)
        assert (await env.cluster.list("events.k8s.io/v1", "Event")).items == ()

    run_test(test)


@pytest.mark.promise(
    "synced-first", runs="a watched kind that is expected late, and is installed an hour after the start"
)
@ALL_OR_SOME
def test_a_declared_kind_that_may_come_late_is_waited_for(run_test: RunTest, namespaces: tuple[str, ...]) -> None:
    """Until then nothing is reconciled, the readiness probe names the kind, and the process lives."""
    definition = _definition(*MONITOR)

    async def test(env: Env) -> None:
        await env.create(shop())
        watches = [Watch(*MONITOR, no_owners)]
        options = {"namespaces": namespaces}
        async with env.operating(watches=watches, late_kinds=[MONITOR], options=options) as process:
            await asyncio.sleep(3600)
            assert process.health.owners() == MISSING
            assert [check() for check in process.health.live.values()] == ["", ""]
            assert env.passes == []
            await env.create(definition)
            await asyncio.sleep(60)
            assert [name for name, _ in env.passes] == ["corner"]
            assert process.health.owners() == ""

    run_test(test)


@pytest.mark.promise("synced-first", runs="a declared kind that is installed up to a second before the timeout")
@ALL_OR_SOME
@pytest.mark.parametrize("jitter", [0.0, 0.99])
@pytest.mark.parametrize("at", [40, 60, 70, 80, 90, 100, 110, 119])
def test_a_declared_kind_that_is_installed_before_the_timeout_never_ends_the_process(
    run_test: RunTest, at: int, jitter: float, namespaces: tuple[str, ...]
) -> None:
    """Although the next look for it would be after the timeout."""

    async def test(env: Env) -> None:
        await env.create(shop())
        timing = CacheTiming(idle_timeout=1e9, relist_every=1e9, monotonic=now, random=lambda: jitter)
        async with env.operating(owns=[MONITOR], options={"namespaces": namespaces, "cache_timing": timing}) as process:
            # `operating` has waited for 5 seconds.
            await asyncio.sleep(at - 5)
            await env.create(_definition(*MONITOR))
            await asyncio.sleep(120 + 60 - at)
            assert [name for name, _ in env.passes] == ["corner"]
            assert process.health.owners() == ""

    run_test(test)


def test_kinds_that_are_installed_one_after_the_other_do_not_end_the_process(run_test: RunTest) -> None:
    """The second one while the first list of the first one is waited for."""

    async def test(env: Env) -> None:
        await env.create(shop())
        second = (MONITOR[0], "PodMonitor")
        async with env.operating(owns=[MONITOR, second]):
            await asyncio.sleep(114)
            await env.create(_definition(*MONITOR))
            await asyncio.sleep(60)
            await env.create(_definition(*second))
            await asyncio.sleep(60)
            assert [name for name, _ in env.passes] == ["corner"]

    run_test(test)


INSTALLED: Final = 119


@pytest.mark.parametrize("other", [pytest.param(True, id="another is missing"), pytest.param(False, id="unreadable")])
def test_a_kind_that_is_installed_before_the_timeout_delays_the_end_of_others_by_a_minute(
    run_test: RunTest, *, other: bool
) -> None:
    """The message then names what is not read, and why."""
    absent, refused = "PodMonitor is not read yet: the API server does not serve it", "ServiceMonitor .*forbidden"
    reason = absent if other else refused
    owns = [MONITOR, (MONITOR[0], "PodMonitor")] if other else [MONITOR]

    async def run(env: Env) -> None:
        async with env.operating(owns=owns):
            await asyncio.sleep(INSTALLED - 5)
            await env.create(_definition(*MONITOR))
            await asyncio.sleep(10_000)

    async def test(env: Env) -> None:
        await env.create(shop())
        env.gateway.meddle = None if other else failing_lists
        began = now()
        with pytest.raises(ConfigError, match=reason) as got:
            await run(env)
        assert MISSING not in str(got.value)
        assert now() - began == pytest.approx(180, abs=1)

    async def failing_lists(request: Request) -> None:
        if request.kind == MONITOR[1] and now() >= INSTALLED:
            raise copy(FORBIDDEN)

    run_test(test)


def test_another_kind_that_is_missing_ends_the_process_although_one_may_come_late(run_test: RunTest) -> None:
    async def test(env: Env) -> None:
        other = ("monitoring.coreos.com/v1", "PodMonitor")
        with pytest.raises(ConfigError, match="PodMonitor is not read yet: the API server does not serve it"):
            async with env.operating(owns=[MONITOR, other], late_kinds=[MONITOR]):
                await asyncio.sleep(10_000)

    run_test(test)


def test_a_late_kind_that_cannot_be_listed_ends_the_process(run_test: RunTest) -> None:
    """It is there, so nothing that may come later is waited for."""

    async def test(env: Env) -> None:
        env.gateway.meddle = failing("Secret", FORBIDDEN)
        with pytest.raises(ConfigError, match=r"v1 Secret is not read yet: .*secrets is forbidden$"):
            async with env.operating(owns=[("v1", "Secret")], late_kinds=[("v1", "Secret")]):
                await asyncio.sleep(10_000)

    run_test(test)


def test_a_late_kind_must_be_declared() -> None:
    with pytest.raises(BuildError, match="v1 Secret is neither the kind of its owners nor in `owns` or `watches`"):
        Operator(name="shops", owner=SHOPS, components=lambda _: (), late_kinds=[("v1", "Secret")])


@pytest.mark.promise("synced-first", runs="a kind that is not served, then is, on a real API server")
async def test_a_missing_kind_on_a_real_server(envtest: Envtest, envtest_cluster: ApiServerCluster) -> None:
    """Without its definition the process ends; one that waits for it begins within the interval of the looks."""
    definition = crd(f"{envtest.namespace}.example.com", CRDVersion("v1", Shop))
    kind = (f"{envtest.namespace}.example.com/v1", "Shop")
    passes: list[str] = []

    def components(owner: Shop) -> Component:
        passes.append(owner.metadata.name)
        return component.Builder("web", condition_type="WebReady").build()

    operator = Operator(name="shops", owner=OwnerType.of(Shop, definition), components=components, resync=None)
    options = ManagerOptions(listen=None, events=False, cache_sync_timeout=2 * SECOND)
    with pytest.raises(
        ConfigError, match=rf"{kind[0]} Shop is not read yet: the API server does not serve it; install"
    ):
        async with running(envtest_cluster, operator, options=options):
            await asyncio.get_running_loop().create_future()
    async with running(envtest_cluster, replace(operator, late_kinds=[kind]), options=options) as process:

        async def named() -> bool:
            return process.health.owners() == f"{kind[0]} Shop is not read yet: the API server does not serve it"

        await eventually(named)
        await envtest_cluster.create(definition, field_manager="admin")
        corner = shop()
        corner["apiVersion"], corner["metadata"]["namespace"] = kind[0], envtest.namespace

        async def created() -> bool:
            await envtest_cluster.create(corner, field_manager="admin")
            return True

        async def reconciled() -> bool:
            return passes == ["corner"] and not process.health.owners()

        await eventually(created, ignore=(NotFoundError, TooManyRequestsError))
        await eventually(reconciled)


def _definition(api_version: str, kind: str) -> Manifest:
    group, version = api_version.split("/")
    plural = f"{kind.lower()}s"
    served = {"name": version, "served": True, "storage": True, "schema": {"openAPIV3Schema": {"type": "object"}}}
    spec = {"group": group, "scope": "Namespaced", "names": {"kind": kind, "plural": plural}, "versions": [served]}
    metadata = {"name": f"{plural}.{group}"}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": metadata,
        "spec": spec,
    }


async def read_guide(owner: Shop, context: ReconcileContext) -> None:
    if owner.spec.guide:
        await context.cluster.get(ObjectKey("v1", "Secret", owner.spec.guide, NAMESPACE))


@pytest.mark.parametrize(
    "cause",
    [
        pytest.param(FORBIDDEN, id="forbidden"),
        pytest.param(BROKEN, id="not converted"),
        pytest.param(ValueError("not an object"), id="not decoded"),
    ],
)
def test_what_one_owner_names_affects_no_other_owner(
    run_test: RunTest, caplog: pytest.LogCaptureFixture, cause: Exception
) -> None:
    """The object is read without a cache, the process stays ready, and few requests are made."""

    async def test(env: Env) -> None:
        await env.create({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "guide", "namespace": NAMESPACE}})
        await env.create(shop(guide="guide"))
        await env.create(shop("other"))
        env.before = read_guide
        env.gateway.meddle = failing("Secret", cause)
        async with env.operating() as process:
            await asyncio.sleep(3600)
            assert [check() for checks in (process.health.ready, process.health.live) for check in checks.values()] == [
                ""
            ] * 5
            for name in ("corner", "other"):
                conditions = (await env.cluster.get(key_of(name)))["status"]["conditions"]
                assert {one["status"] for one in conditions} == {"True"}
            lists = [one for one in env.gateway.requests if one.kind == "Secret" and one.verb == "list"]
            assert len(lists) < 100
            value = process.registry.get_sample_value(  # type: ignore[union-attr]
                "ocf_watch_healthy", {"api_version": "v1", "kind": "Secret", "namespace": ""}
            )
            assert value == 0
        assert sum("v1/Secret" in one.getMessage() for one in caplog.records if one.levelname != "ERROR") <= 1

    run_test(test)


def test_too_many_objects_of_a_kind_that_one_owner_names_fail_that_owner_alone(run_test: RunTest) -> None:
    """Here once the kind has grown, while it is watched."""

    async def list_guides(owner: Shop, context: ReconcileContext) -> None:
        if owner.spec.guide:
            await context.cluster.list("v1", "Secret")

    async def test(env: Env) -> None:
        env.before = list_guides
        await env.create({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "guide", "namespace": NAMESPACE}})
        await env.create(shop(guide="guide"))
        await env.create(shop("other"))

        async def condition(name: str) -> Manifest:
            conditions: list[Manifest] = (await env.cluster.get(key_of(name)))["status"]["conditions"]
            return (
                conditions[0] if len(conditions) == 1 else next(one for one in conditions if one["status"] == "False")
            )

        async with env.operating(options={"max_objects": 3}) as process:
            assert [(await condition(name))["status"] for name in ("corner", "other")] == ["True", "True"]
            for number in range(5):
                metadata = {"name": f"s{number}", "namespace": NAMESPACE}
                await env.create({"apiVersion": "v1", "kind": "Secret", "metadata": metadata})
            await asyncio.sleep(1)
            await env.edit(key_of(), {"spec": {"motto": "closed"}})
            await env.edit(key_of("other"), {"spec": {"motto": "closed"}})
            await asyncio.sleep(3600)
            assert "max_objects" in (await condition("corner"))["message"]
            assert (await condition("other"))["status"] == "True"
            assert (await env.cluster.get(settings_of("other")))["data"] == {"motto": "closed"}
            assert [check() for check in process.health.ready.values()] == ["", "", ""]

    run_test(test)


def test_another_namespace_that_one_owner_names_affects_no_other_owner(run_test: RunTest) -> None:
    """The kind is declared, the namespace is not one of those that the operator watches."""

    async def refuse(request: Request) -> None:
        if request.namespace == "vault" and request.verb is not Verb.GET:
            raise copy(FORBIDDEN)

    async def read_vault(owner: Shop, context: ReconcileContext) -> None:
        if owner.spec.guide:
            await context.cluster.get(GUIDE._replace(namespace="vault"))

    async def test(env: Env) -> None:
        await env.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "vault"}})
        await env.create({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "guide", "namespace": "vault"}})
        await env.create(shop(guide="guide"))
        env.before, env.gateway.meddle = read_vault, refuse
        async with env.operating(owns=[("v1", "Secret")], options={"namespaces": [NAMESPACE]}) as process:
            await asyncio.sleep(3600)
            assert [check() for check in process.health.ready.values()] == ["", "", ""]
            conditions = (await env.cluster.get(key_of()))["status"]["conditions"]
            assert {one["status"] for one in conditions} == {"True"}

    run_test(test)


@pytest.mark.promise("synced-first", runs="a kind that may not be listed, with a role on a real API server")
async def test_rights_to_get_only(
    envtest: Envtest, envtest_plane: ControlPlane, envtest_cluster: ApiServerCluster
) -> None:
    """With the right to get Secrets only: those that an owner names are read, a declaration fails."""
    admin, namespace = envtest_cluster, envtest.namespace
    definition = crd("rights.example.com", CRDVersion("v1", Shop))
    await admin.apply(definition, field_manager="admin")
    passes: list[str] = []

    async def components(owner: Shop, context: ReconcileContext) -> Component:
        passes.append(owner.metadata.name)
        if owner.spec.guide:
            await context.cluster.get(ObjectKey("v1", "Secret", owner.spec.guide, namespace))
        return component.Builder("web", condition_type="WebReady").build()

    owners = OwnerType.of(Shop, definition)
    operator = Operator(name="shops", owner=owners, components=components, uncached=[], resync=None)
    allowed = operator.policy_rules([component.Builder("web", condition_type="WebReady").build()])
    allowed |= {PolicyRule("", "secrets", "get")}
    for one in roles(allowed, name=f"shops-{namespace}", account=ServiceAccount("shops", namespace)):
        await admin.create(one, field_manager="admin")
    user = f"system:serviceaccount:{namespace}:shops"
    await until_granted(admin, user, allowed, namespace=namespace)
    kubeconfig = await asyncio.to_thread(envtest_plane.kubeconfig_for, user)
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "guide", "namespace": namespace}}
    await admin.create(secret, field_manager="admin")
    named = shop(guide="guide")
    named["apiVersion"], named["metadata"]["namespace"] = "rights.example.com/v1", namespace

    async def created() -> bool:
        await admin.create(named, field_manager="admin")
        return True

    await eventually(created, ignore=(NotFoundError, TooManyRequestsError))

    async def healthy() -> bool:
        status: Manifest = (await admin.get(ObjectKey.of(named))).get("status") or {}
        return {one["status"] for one in status.get("conditions", [])} == {"True"}

    async with await envtest_plane.cluster(kubeconfig) as mine:
        async with running(mine, operator, options=ManagerOptions(listen=None)) as process:
            await eventually(healthy)
            assert process.controllers[0].following == (("rights.example.com/v1", "Shop"), ("v1", "Secret"))
            assert [check() for check in process.health.ready.values()] == ["", "", ""]
        passes.clear()
        declaring = replace(operator, owns=[("v1", "Secret")])
        options = ManagerOptions(listen=None, cache_sync_timeout=3 * SECOND)
        with pytest.raises(ConfigError, match=r"v1 Secret is not read yet: .*secrets is forbidden"):
            async with running(mine, declaring, options=options):
                await asyncio.get_running_loop().create_future()
        assert passes == []
