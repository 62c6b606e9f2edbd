"""A paused owner: the operator writes nothing for it but the condition that says so.

Rules that other projects discussed in public: a paused owner cannot be deleted, and says so where a user looks
(https://github.com/crossplane/crossplane/issues/4839,
https://github.com/kubernetes-sigs/cluster-api-provider-aws/issues/4584); no finalizer is added
(https://github.com/vmware-tanzu/vm-operator/pull/620); it is not reconciled from time to time
(https://github.com/metal3-io/baremetal-operator/pull/591); the condition does not outlive the pause
(https://github.com/authzed/spicedb-operator/pull/127, https://github.com/crossplane/crossplane-runtime/pull/357).
"""

from __future__ import annotations

import asyncio
from typing import Any, Final

import pytest

from ocf.cluster import Cluster, DeleteOptions, ListOptions, PatchOptions, PatchType, Propagation, Request, Verb
from ocf.component import CleanupPending, Component, ReconcileContext
from ocf.component.owner_deletion import SKIP_CLEANUP, external_finalizer
from ocf.errors import BuildError
from ocf.objects import Manifest
from ocf.runtime.operator import Lease, ManagerOptions, Operator, OwnerType, running
from ocf.testing import LoopClock, crash_at_each_write, run_in_virtual_time
from ocf_server import CustomKind, EmbeddedCluster

from .conftest import (
    NAMESPACE,
    SECOND,
    SHOPS,
    Env,
    RunTest,
    Shop,
    components_of,
    key_of,
    new_cluster,
    settings_of,
    shop,
)
from .test_deletion import TIMING, Databases

ANNOTATION: Final = "shops.ocf.dev/paused"
BY_ANNOTATION: Final = {"metadata": {"annotations": {ANNOTATION: "true"}}}
PATCH: Final = PatchOptions(patch_type=PatchType.MERGE, field_manager="kubectl")
RUNNING: Final = {"metadata": {"annotations": {ANNOTATION: None}}}


def paused_shop(name: str = "corner", **spec: Any) -> Manifest:
    made = shop(name, **spec)
    made["metadata"]["annotations"] = {ANNOTATION: "true"}
    return made


async def paused(env: Env, name: str = "corner") -> Manifest | None:
    return (await env.read_conditions(key_of(name))).get("shops/Paused")


async def reasons(env: Env) -> list[str]:
    events = await env.cluster.list("events.k8s.io/v1", "Event", ListOptions(namespace=NAMESPACE))
    return [one["reason"] for one in events.items if one["regarding"]["kind"] == "Shop"]


def writes(env: Env) -> list[tuple[Verb, str]]:
    return [(verb, kind) for verb, kind in env.gateway.writes if kind != "Event"]


@pytest.mark.promise("pause", runs="changes of the owner, of its objects, and a resync")
def test_a_paused_owner_gets_no_write_but_its_condition(run_test: RunTest) -> None:
    async def test(env: Env) -> None:
        async with env.operating(resync=100 * SECOND):
            await env.create(shop(motto="first"))
            await asyncio.sleep(5)
            await env.edit(key_of(), BY_ANNOTATION)
            await asyncio.sleep(5)
            env.forget()
            await env.edit(settings_of(), {"data": {"motto": "by hand"}})
            await env.cluster.delete(settings_of())
            await asyncio.sleep(1000)
            # Nothing is reacted to, and nothing is written at rest.
            assert (env.passes, env.gateway.requests) == ([], [])
            await env.edit(key_of(), {"spec": {"motto": "second"}})
            await asyncio.sleep(1000)
            assert env.passes == []
            assert writes(env) == [(Verb.UPDATE, "Shop")]
            found = await paused(env)
            assert found is not None
            assert (found["status"], found["reason"]) == ("True", "ReconciliationPaused")
            assert found["observedGeneration"] == 2
            assert f'the annotation {ANNOTATION}: "true", set by "kubectl"' in found["message"]
            # At once, and with all that happened meanwhile.
            await env.edit(key_of(), RUNNING)
            await asyncio.sleep(1)
            assert (await env.cluster.get(settings_of()))["data"]["motto"] == "second"
            assert await paused(env) is None
            assert [one for one in await reasons(env) if one.startswith("Reconciliation")] == [
                "ReconciliationPaused",
                "ReconciliationResumed",
            ]

    run_test(test)


def test_a_pause_begins_when_the_annotation_was_set_and_not_when_it_was_read(run_test: RunTest) -> None:
    async def test(env: Env) -> None:
        await env.create(shop())
        await env.edit(key_of(), BY_ANNOTATION)
        entries = (await env.cluster.get(key_of()))["metadata"]["managedFields"]
        since = next(one["time"] for one in entries if ANNOTATION in str(one["fieldsV1"]))
        await asyncio.sleep(5000)
        async with env.operating():
            found = await paused(env)
            assert found is not None
            assert found["lastTransitionTime"] == since

    run_test(test)


def test_an_owner_that_is_paused_from_its_creation_gets_neither_finalizer_nor_objects(run_test: RunTest) -> None:
    async def test(env: Env) -> None:
        databases = Databases()
        async with env.operating(**databases.declared()):
            await env.create(paused_shop())
            await asyncio.sleep(100)
            live = await env.cluster.get(key_of())
            assert "finalizers" not in live["metadata"]
            assert [one["type"] for one in live["status"]["conditions"]] == ["shops/Paused"]
            assert databases.existing == set()
            assert not await env.is_present(settings_of())
            # Nothing holds it, so it can be deleted.
            await env.cluster.delete(key_of())
            assert not await env.is_present(key_of())

    run_test(test)


@pytest.mark.parametrize(
    "propagation",
    [
        pytest.param(Propagation.BACKGROUND, id="in the background"),
        pytest.param(Propagation.FOREGROUND, id="in the foreground"),
        pytest.param(Propagation.ORPHAN, id="orphaning its objects"),
    ],
)
@pytest.mark.promise("pause", runs="3 kinds of deletion")
def test_the_deletion_of_a_paused_owner_waits_and_says_so(run_test: RunTest, propagation: Propagation) -> None:
    async def test(env: Env) -> None:
        databases = Databases()
        async with env.operating(**databases.declared()):
            await env.create(shop())
            await asyncio.sleep(5)
            await env.edit(key_of(), BY_ANNOTATION)
            await asyncio.sleep(5)
            await env.cluster.delete(key_of(), DeleteOptions(propagation=propagation))
            await asyncio.sleep(1000)
            live = await env.cluster.get(key_of())
            assert external_finalizer("shops") in live["metadata"]["finalizers"]
            assert databases.calls == []
            found = await paused(env)
            assert found is not None
            assert (found["status"], found["reason"]) == ("True", "DeletionPaused")
            assert found["message"].startswith("The deletion waits")
            assert (await reasons(env)).count("DeletionPaused") == 1
            await env.edit(key_of(), RUNNING)
            await asyncio.sleep(30)
            assert len(databases.calls) == 1
            assert not await env.is_present(key_of())

    run_test(test)


def test_a_clean_up_that_is_skipped_while_paused_is_skipped_when_the_pause_ends(run_test: RunTest) -> None:
    """A pause keeps the finalizers, whatever else is requested; the condition says how it is ended."""

    async def test(env: Env) -> None:
        databases = Databases()
        async with env.operating(**databases.declared()):
            await env.create(shop())
            await asyncio.sleep(5)
            await env.edit(key_of(), BY_ANNOTATION)
            await env.cluster.delete(key_of())
            await env.edit(key_of(), {"metadata": {"annotations": {SKIP_CLEANUP: "true"}}})
            await asyncio.sleep(100)
            found = await paused(env)
            assert found is not None
            assert found["reason"] == "DeletionPaused"
            await env.edit(key_of(), RUNNING)
            await asyncio.sleep(30)
            assert databases.calls == []
            assert not await env.is_present(key_of())

    run_test(test)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        pytest.param("yes", f'the annotation {ANNOTATION} must be "true" to pause it, got "yes"', id="another word"),
        pytest.param("True", f'the annotation {ANNOTATION} must be "true" to pause it, got "True"', id="a capital"),
        pytest.param("false", "", id="false"),
        pytest.param("", "", id="empty"),
    ],
)
def test_another_value_is_not_a_pause_and_the_condition_says_so(run_test: RunTest, value: str, message: str) -> None:
    async def test(env: Env) -> None:
        made = shop(motto="first")
        made["metadata"]["annotations"] = {ANNOTATION: value}
        async with env.operating():
            await env.create(made)
            await asyncio.sleep(5)
            assert (await env.cluster.get(settings_of()))["data"]["motto"] == "first"
            found = await paused(env)
            if not message:
                assert found is None
                return
            assert found is not None
            assert (found["status"], found["reason"]) == ("False", "InvalidPauseValue")
            assert found["message"] == f"the owner is not paused: {message}"
            assert (await reasons(env)).count("InvalidPauseValue") == 1
            env.forget()
            await env.edit(key_of(), {"spec": {"motto": "second"}})
            await asyncio.sleep(100)
            assert (await reasons(env)).count("InvalidPauseValue") == 1
            await env.edit(key_of(), RUNNING)
            await asyncio.sleep(5)
            assert await paused(env) is None

    run_test(test)


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        pytest.param(True, "ReconciliationPaused", id="true"),
        pytest.param(False, "", id="false"),
        pytest.param("true", "InvalidPauseValue", id="a text"),
        pytest.param(None, "", id="not set"),
    ],
)
def test_a_field_of_the_spec_pauses_if_the_operator_names_it(value: object, reason: str) -> None:
    calls: list[Manifest] = []

    def components(owner: Manifest) -> tuple[Component, ...]:
        calls.append(owner)
        return ()

    async def main() -> None:
        cluster = EmbeddedCluster(kinds=[CustomKind("example.com", "v1", "Shop")], namespaces=[NAMESPACE])
        made = shop(paused=value)
        kind: OwnerType[Manifest] = OwnerType("example.com/v1", "Shop")
        operator: Operator[Manifest] = Operator(
            name="shops", owner=kind, components=components, pause_field="spec.paused"
        )
        async with running(cluster, operator, options=ManagerOptions(listen=None, clock=LoopClock())):
            await cluster.create(made, field_manager="kubectl")
            await asyncio.sleep(5)
            live = await cluster.get(key_of())
            shown = [(one["type"], one["reason"]) for one in live.get("status", {}).get("conditions", [])]
            assert shown == ([("shops/Paused", reason)] if reason else [])
            assert bool(calls) is (value is not True)
            if value is True:
                message = live["status"]["conditions"][0]["message"]
                assert "paused by the field spec.paused: true" in message
                assert message.endswith("to resume it, set the field spec.paused to false.")

    run_in_virtual_time(main())


@pytest.mark.parametrize(
    "field",
    [
        pytest.param("metadata.labels", id="of the metadata"),
        pytest.param("spec", id="the spec itself"),
        pytest.param("spec..paused", id="not a path"),
    ],
)
def test_a_field_outside_of_the_spec_is_an_error(field: str) -> None:
    with pytest.raises(BuildError, match=r"spec\.(paused|replicas)"):
        Operator(name="shops", owner=SHOPS, components=components_of, pause_field=field)


@pytest.mark.promise("pause", runs="a pause before each write of a reconcile")
@pytest.mark.parametrize("after", range(5))
def test_a_pause_between_two_writes_stops_the_next_one(run_test: RunTest, after: int) -> None:
    """The finalizer, the two objects, the status; and after the last of them."""

    async def test(env: Env) -> None:
        databases = Databases()
        seen: list[Request] = []

        async def pause(request: Request) -> None:
            if request.verb.is_read or request.kind == "Event":
                return
            seen.append(request)
            if len(seen) == after:
                await env.edit(key_of(), BY_ANNOTATION)
                # So long a watch takes at least.
                await asyncio.sleep(0.1)

        env.gateway.after = pause
        async with env.operating(**databases.declared()):
            await env.create(shop() if after else paused_shop())
            await asyncio.sleep(100)
            made = [one for one in seen if one.kind != "Shop" or one.subresource is None]
            assert len(made) == min(after, 3)
            conditions = await env.read_conditions(key_of())
            assert conditions["shops/Paused"]["status"] == "True"
            # What was staged before the pause was noticed is not written, and no failure is shown.
            assert ("WebReady" in conditions) is (after == 4)
            assert "shops/Reconciled" not in conditions
            assert "ReconcileFailed" not in await reasons(env)
            await env.edit(key_of(), RUNNING)
            await asyncio.sleep(5)
            conditions = await env.read_conditions(key_of())
            assert conditions["WebReady"]["status"] == "True"
            assert "shops/Paused" not in conditions

    run_test(test)


def test_a_pause_during_the_clean_up_stops_it(run_test: RunTest) -> None:
    async def test(env: Env) -> None:
        databases = Databases(results=[CleanupPending(10 * SECOND, "one table left")])
        async with env.operating(**databases.declared()):
            await env.create(shop())
            await asyncio.sleep(5)
            await env.cluster.delete(key_of())
            await asyncio.sleep(5)
            await env.edit(key_of(), BY_ANNOTATION)
            await asyncio.sleep(1000)
            assert len(databases.calls) == 1
            conditions = await env.read_conditions(key_of())
            assert conditions["shops/Paused"]["reason"] == "DeletionPaused"
            assert conditions["shops/CleanedUp"]["reason"] == "CleanupPending"

    run_test(test)


def test_the_report_and_components_are_not_called_while_paused(run_test: RunTest) -> None:
    async def test(env: Env) -> None:
        async with env.operating(report=env.report):
            await env.create(paused_shop())
            await asyncio.sleep(100)
            assert (env.passes, env.outcomes) == ([], [])

    run_test(test)


def test_a_restart_while_paused_neither_writes_nor_posts_an_event(run_test: RunTest) -> None:
    async def test(env: Env) -> None:
        async with env.operating():
            await env.create(paused_shop())
            await asyncio.sleep(100)
        before, posted = await env.cluster.get(key_of()), await reasons(env)
        env.forget()
        async with env.operating():
            await asyncio.sleep(100)
            assert env.gateway.writes == []
        assert await env.cluster.get(key_of()) == before
        assert await reasons(env) == posted

    run_test(test)


def test_the_metric_counts_paused_owners(run_test: RunTest) -> None:
    async def test(env: Env) -> None:
        async with env.operating() as process:

            def count() -> float | None:
                assert process.registry is not None
                return process.registry.get_sample_value("ocf_paused_owners", {"controller": "shops"})

            await env.create(shop("first"))
            await env.create(paused_shop("second"))
            await env.create(paused_shop("third"))
            await asyncio.sleep(5)
            assert count() == 2
            await env.edit(key_of("second"), RUNNING)
            await env.cluster.delete(key_of("third"))
            await asyncio.sleep(5)
            assert count() == 0

    run_test(test)


def test_of_two_processes_the_one_that_takes_over_keeps_the_pause(run_test: RunTest) -> None:
    async def test(env: Env) -> None:
        def leading(identity: str) -> dict[str, Any]:
            return {"lease": Lease("shops", namespace=NAMESPACE, identity=identity)}

        await env.create(shop(motto="first"))
        async with env.operating(options=leading("a")):
            async with env.operating(options=leading("b")):
                await asyncio.sleep(60)
                await env.edit(key_of(), BY_ANNOTATION)
                await asyncio.sleep(5)
                await env.edit(key_of(), {"spec": {"motto": "second"}})
                await asyncio.sleep(60)
            await asyncio.sleep(60)
            assert (await env.cluster.get(settings_of()))["data"]["motto"] == "first"
            assert (await reasons(env)).count("ReconciliationPaused") == 1

    run_test(test)


def test_two_operators_of_an_owner_are_paused_apart(run_test: RunTest) -> None:
    async def test(env: Env) -> None:
        calls: list[str] = []

        def called(name: str) -> Operator[Shop]:
            def components(_: Shop) -> tuple[Component, ...]:
                calls.append(name)
                return ()

            return Operator(name=name, owner=SHOPS, components=components, resync=None)

        options = env.options()
        async with running(env.gateway, called("shops"), called("malls"), options=options):
            await env.create(paused_shop())
            await asyncio.sleep(5)
            assert set(calls) == {"malls"}
            assert [*await env.read_conditions(key_of())] == ["shops/Paused"]

    run_test(test)


@pytest.mark.promise("pause", runs="3 disturbances of each write around a pause")
def test_a_process_that_dies_around_a_pause_is_followed_by_one_that_ends_the_same() -> None:
    direct: list[Cluster] = []

    async def begun() -> Cluster:
        direct[:] = [cluster] = [await new_cluster()]
        await cluster.create(shop(motto="first"), field_manager="kubectl")
        return cluster

    async def drop(_: Shop, __: ReconcileContext, ___: Cluster) -> None: ...

    async def operate(cluster: Cluster) -> None:
        operator = Operator(name="shops", owner=SHOPS, components=components_of, on_delete=drop, workers=1)
        options = ManagerOptions(listen=None, events=False, clock=LoopClock(), cache_timing=TIMING)
        async with running(cluster, operator, options=options):
            await asyncio.sleep(60)
            await direct[0].patch(key_of(), BY_ANNOTATION, PATCH)
            await asyncio.sleep(60)
            await direct[0].patch(key_of(), {"spec": {"motto": "second"}}, PATCH)
            await asyncio.sleep(60)

    async def main() -> None:
        report = await crash_at_each_write(begun, operate)
        report.assert_same()

    run_in_virtual_time(main())
