"""Several operators of the same owners, in one process and in two."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import pytest

from ocf import component
from ocf.cluster import ApplyCache, ListOptions, Request, Subresource, Verb
from ocf.errors import BuildError
from ocf.objects import ObjectKey
from ocf.primitives import configmap
from ocf.runtime.operator import ManagerOptions, Operator, OwnerType, running
from ocf.runtime.operator.manager import Manager
from ocf.testing import RecordingCluster
from ocf_server import EmbeddedCluster

from .conftest import NAMESPACE, SHOPS, Gateway, Shop, components_of, key_of, shop

if TYPE_CHECKING:
    from collections.abc import Callable

    from ocf.component import Component, ReconcileContext
    from ocf.objects import Manifest

    from .conftest import Env, RunTest

HOUR: Final = 3600


def making(name: str) -> Callable[[Shop], Component]:
    """Return a function that makes a component "web" of one ConfigMap, which prunes."""

    def components(owner: Shop) -> Component:
        metadata = {"name": name, "namespace": NAMESPACE}
        base = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"motto": owner.spec.motto}}
        builder = component.Builder("web", condition_type=f"{name.title()}Ready").with_prune()
        return builder.with_resource(configmap.Builder(base).build()).build()

    return components


def fail(_: Shop) -> Component:
    raise ValueError("secret")


async def drop(*_: object) -> None: ...


@pytest.mark.promise("several-operators", runs="two processes, ten edits in an hour; one has an on_delete, and fails")
def test_two_processes_leave_each_others_work_alone(run_test: RunTest) -> None:
    async def test(env: Env) -> None:
        gateways = Gateway(env.cluster), Gateway(env.cluster)
        shops = env.operator(name="shops", components=making("first"), on_delete=drop)
        malls = env.operator(name="malls", components=making("second"))
        await env.create(shop())
        async with (
            running(gateways[0], shops, options=env.options()),
            running(gateways[1], malls, options=env.options()),
        ):
            for number in range(10):
                await env.edit(key_of(), {"spec": {"motto": str(number)}})
                await asyncio.sleep(HOUR / 10)
        writes: list[Request] = [each for one in gateways for each in one.requests if not each.verb.is_read]
        assert [each for each in writes if each.verb is Verb.DELETE] == []
        assert len([each for each in writes if each.verb is Verb.PATCH and each.kind == "Shop"]) == 1
        assert len([each for each in writes if each.kind == "ConfigMap"]) == 20
        assert (await env.cluster.get(key_of()))["metadata"]["finalizers"] == ["shops.ocf.dev/cleanup-external"]
        async with (
            running(gateways[0], env.operator(components=fail), options=env.options()),
            running(gateways[1], malls, options=env.options()),
        ):
            await asyncio.sleep(HOUR)
            await env.edit(key_of(), {"spec": {"motto": "again"}})
            await asyncio.sleep(HOUR)
        conditions = await env.read_conditions(key_of())
        assert (conditions["shops/Reconciled"]["status"], conditions["SecondReady"]["status"]) == ("False", "True")
        assert "malls/Reconciled" not in conditions

    run_test(test)


def ready(context: ReconcileContext, *_: object) -> None:
    context.set_condition("Ready", status="True", reason=context.owned_by.operator.title(), message="")
    context.set_condition(f"{context.owned_by.operator.title()}Open", status="True", reason="Open", message="")


@pytest.mark.promise("several-operators", runs="two operators of a process whose reports set one undeclared condition")
def test_a_condition_that_only_the_reports_set_fails_the_second(run_test: RunTest) -> None:
    async def test(env: Env) -> None:
        both = [env.operator(name=name, components=making(name), report=ready) for name in ("first", "second")]
        await env.create(shop())
        async with running(Gateway(env.cluster), *both, options=env.options()):
            await asyncio.sleep(HOUR)
            conditions = await env.read_conditions(key_of())
            winner = conditions["Ready"]["reason"].lower()
            loser = {"first": "second", "second": "first"}[winner]
            failed = conditions[f"{loser}/Reconciled"]
            assert (failed["status"], failed["reason"]) == ("False", "Error")
            problem = f'operators "{winner}" and "{loser}" both set the condition "Ready" of '
            assert problem in failed["message"]
            assert f"{winner}/Reconciled" not in conditions
            names = ("First", "Second")
            assert {conditions[f"{name}Ready"]["status"] for name in names} == {"True"}
            assert conditions[f"{winner.title()}Open"]["status"] == "True"

    run_test(test)


@pytest.mark.promise("write-war", runs="an hour of two processes of one operator, of which one has an on_delete")
def test_two_versions_that_disagree_about_a_finalizer_come_to_rest(run_test: RunTest) -> None:
    """As during a rolling update without a lease: each one's write triggers the other one."""

    async def test(env: Env) -> None:
        # Each process has a memory of its own.
        gateways = [Gateway(RecordingCluster(env.cluster, apply_cache=ApplyCache())) for _ in range(2)]
        new = env.operator(name="shops", components=making("first"), on_delete=drop)
        await env.create(shop())
        async with running(gateways[1], replace(new, on_delete=None), options=env.options()):
            async with running(gateways[0], new, options=env.options()):
                await asyncio.sleep(HOUR)
            writes = [
                [each for each in one.requests if each.kind == "Shop" and not each.verb.is_read] for one in gateways
            ]
            assert max(len([each for each in one if each.verb is Verb.PATCH]) for one in writes) <= 10
            assert max(map(len, writes)) <= 40, "with those of the failure condition, which they also disagree about"
        async with running(gateways[0], new, options=env.options()):
            await asyncio.sleep(HOUR)
        assert (await env.cluster.get(key_of()))["metadata"]["finalizers"] == ["shops.ocf.dev/cleanup-external"]

    run_test(test)


class TestOneProcess:
    def operator(self, name: str, **more: Any) -> Operator[Shop]:
        return Operator(name=name, owner=SHOPS, components=components_of, **more)

    @pytest.mark.parametrize(
        ("first", "second", "shared"),
        [
            pytest.param({"published_conditions": ["Ready"]}, {"published_conditions": ["Ready"]}, "Ready", id="both"),
            pytest.param(
                {"published_conditions": ["Degraded"]}, {"abnormal_conditions": ["Degraded"]}, "Degraded", id="abnormal"
            ),
            pytest.param({"failure_condition": "X"}, {"failure_condition": "X"}, "X", id="failures"),
            pytest.param({"published_conditions": ["malls/Reconciled"]}, {}, "malls/Reconciled", id="its failures"),
            pytest.param(
                {"published_conditions": ["malls/Reconciled"]},
                {"failure_condition": "X"},
                "malls/Reconciled",
                id="what it would set by default",
            ),
            pytest.param({"published_conditions": ["malls/CleanedUp"]}, {}, "malls/CleanedUp", id="its clean-up"),
            pytest.param({"failure_condition": "malls/CleanedUp"}, {}, "malls/CleanedUp", id="failure and clean-up"),
            pytest.param({"failure_condition": "X"}, {"published_conditions": ["X"]}, "X", id="a failure and another"),
        ],
    )
    def test_a_condition_that_two_operators_declare_is_rejected(
        self, first: dict[str, Any], second: dict[str, Any], shared: str
    ) -> None:
        both = [self.operator("shops", **first), self.operator("malls", **second)]
        with pytest.raises(BuildError, match=f'"shops" and "malls" both set the condition "{shared}" of each Shop'):
            Manager(EmbeddedCluster(), both, ManagerOptions())

    @pytest.mark.parametrize(
        ("first", "second", "shared"),
        [
            pytest.param({"finalizer": "a.example.com"}, {"finalizer": "a.example.com"}, "a.example.com", id="same"),
            pytest.param({"former_finalizers": ["*.example.com"]}, {"finalizer": "a.example.com"}, "a.example.com"),
            pytest.param({"former_finalizers": ["malls.ocf.dev/*"]}, {}, "malls.ocf.dev/cleanup", id="objects"),
            pytest.param({}, {"former_finalizers": ["*/cleanup-external"]}, "shops.ocf.dev/cleanup-external"),
        ],
    )
    def test_a_finalizer_that_two_operators_remove_is_rejected(
        self, first: dict[str, Any], second: dict[str, Any], shared: str
    ) -> None:
        both = [self.operator("shops", **first), self.operator("malls", on_delete=drop, **second)]
        with pytest.raises(BuildError, match=f'"shops" and "malls" both remove the finalizer "{shared}" of each Shop'):
            Manager(EmbeddedCluster(), both, ManagerOptions())

    def test_what_differs_is_accepted(self) -> None:
        one = self.operator("shops", published_conditions=["Ready"], on_delete=drop)
        Manager(EmbeddedCluster(), [one, self.operator("malls", on_delete=drop)], ManagerOptions())
        pods: Operator[Manifest] = Operator(
            name="pods", owner=OwnerType("v1", "Pod"), components=lambda _: (), published_conditions=["Ready"]
        )
        Manager(EmbeddedCluster(), [one, pods], ManagerOptions())
        same_name = replace(pods, finalizer="a.example.com")
        Manager(EmbeddedCluster(), [self.operator("shops", finalizer="a.example.com"), same_name], ManagerOptions())

    @pytest.mark.parametrize("name", ["Shops", "shop.operator", "s" * 64, "a/b", "ü"])
    def test_a_name_that_is_not_a_dns_label_is_rejected(self, name: str) -> None:
        with pytest.raises(BuildError, match=f'name "{name}": '):
            self.operator(name)


def owning(condition: str) -> Callable[[Shop], Component]:
    """Return a function that makes a component with this condition."""
    return lambda _: component.Builder("web", condition_type=condition).build()


@pytest.mark.promise(
    "several-operators", runs="a component with the failure condition of another operator, in one process"
)
@pytest.mark.parametrize("first", ["shops", "malls"])
def test_a_component_does_not_hide_the_failures_of_another_operator(run_test: RunTest, first: str) -> None:
    """Whichever reconciles first, and also before the other one has failed."""

    async def test(env: Env) -> None:
        failing = {"fails": False}

        def sometimes(_: Shop) -> tuple[Component, ...]:
            if failing["fails"]:
                raise ValueError("secret")
            return ()

        shops = env.operator(name="shops", components=owning("Reconciled"))
        malls = env.operator(name="malls", components=sometimes, failure_condition="Reconciled")
        operators = [shops, malls] if first == "shops" else [malls, shops]
        await env.create(shop())
        async with running(env.cluster, *operators, options=env.options()):
            await asyncio.sleep(60)
            both = 'operators "malls" and "shops" both set the condition "Reconciled" of example.com/v1/Shop/'
            conditions = await env.read_conditions(key_of())
            assert both in conditions["shops/Reconciled"]["message"]
            assert "Reconciled" not in conditions
            failing["fails"] = True
            await env.edit(key_of(), {"spec": {"motto": "again"}})
            await asyncio.sleep(HOUR)
            conditions = await env.read_conditions(key_of())
            assert (conditions["Reconciled"]["status"], conditions["Reconciled"]["reason"]) == ("False", "Error")
            assert both in conditions["shops/Reconciled"]["message"]

    run_test(test)


SPOILT: Final = {
    "another status": {"status": "True"},
    "another reason": {"reason": "Fine"},
    "another message": {"message": "all is well"},
    "another reason and status": {"status": "True", "reason": "Fine"},
    "removed": None,
}


@pytest.mark.promise(
    "failure-shown", runs="a failure condition that another client spoils in 5 ways, while reconciles fail or not"
)
@pytest.mark.parametrize("fails", [True, False], ids=["failing", "in order"])
@pytest.mark.parametrize("change", SPOILT.values(), ids=SPOILT)
def test_a_failure_condition_that_another_client_changes_is_put_right(
    run_test: RunTest, change: Manifest | None, *, fails: bool
) -> None:
    """At once, and although no other reconcile is due."""
    at = {"lastTransitionTime": "2026-01-01T00:00:00Z"}
    failed = {"type": "shops/Reconciled", "status": "False", "reason": "Error", "message": "it fails", **at}

    async def test(env: Env) -> None:
        operator = env.operator(name="shops", components=fail if fails else owning("WebReady"))
        await env.create(shop())
        async with running(env.cluster, operator, options=env.options()):
            await asyncio.sleep(HOUR)
            before = await env.read_conditions(key_of())
            live = await env.cluster.get(key_of())
            conditions = {**before, "shops/Reconciled": {**before.get("shops/Reconciled", failed), **(change or {})}}
            if change is None:
                del conditions["shops/Reconciled"]
            live["status"] = {**(live.get("status") or {}), "conditions": [*conditions.values()]}
            await env.cluster.update(live, field_manager="other", subresource=Subresource.STATUS)
            await asyncio.sleep(60)
            after = await env.read_conditions(key_of())
            assert after.keys() == before.keys()
            for name, one in after.items():
                assert {**one, "lastTransitionTime": ""} == {**before[name], "lastTransitionTime": ""}

    run_test(test)


def test_operators_of_two_processes_that_share_a_condition_are_told(run_test: RunTest) -> None:
    """Each sees the value of the other one, backs off, and names the field manager of the other one in an event.

    Elsewhere they overwrite each other without end: https://github.com/kubernetes-sigs/cluster-api/issues/3260.
    """

    async def test(env: Env) -> None:
        gateways = [RecordingCluster(env.cluster, apply_cache=ApplyCache()) for _ in range(2)]
        shops = env.operator(name="shops", components=owning("Reconciled"))
        malls = env.operator(name="malls", components=fail, failure_condition="Reconciled")
        await env.create(shop())
        async with (
            running(gateways[0], shops, options=env.options()),
            running(gateways[1], malls, options=env.options()),
        ):
            await asyncio.sleep(HOUR)
            writes = [one for each in gateways for one in each.requests if not one.verb.is_read and one.kind == "Shop"]
            assert len(writes) <= 20
            found = await env.cluster.list("events.k8s.io/v1", "Event", ListOptions(namespace=NAMESPACE))
            notes = [one["note"] for one in found.items if one["reason"] == "StatusReverted"]
            assert notes
            assert all('condition "Reconciled" of the status is reverted repeatedly' in note for note in notes)
            assert any("malls" in note or "shops" in note for note in notes)
            assert len(notes) <= 6

    run_test(test)


def test_a_wildcard_of_kinds_that_are_not_cached_leaves_out_what_another_operator_declares(run_test: RunTest) -> None:
    """Both operators share a cache; the one that declares ConfigMaps puts back what is changed of its own."""

    async def test(env: Env) -> None:
        settings = ("v1", "ConfigMap")
        direct = env.operator(name="direct", components=making("first"), uncached=[("*", "*")])
        caching = env.operator(name="caching", components=making("second"), owns=[settings])
        await env.create(shop(motto="open"))
        async with running(env.gateway, direct, caching, options=env.options()):
            await asyncio.sleep(10)
            assert env.gateway.watched == {"Shop", "ConfigMap"}
            for name in ("first", "second"):
                await env.edit(ObjectKey(*settings, name, NAMESPACE), {"data": {"motto": "closed"}})
            await asyncio.sleep(HOUR)
            found = {name: await env.cluster.get(ObjectKey(*settings, name, NAMESPACE)) for name in ("first", "second")}
            assert {name: one["data"]["motto"] for name, one in found.items()} == {"first": "closed", "second": "open"}

    run_test(test)
