"""A component that applies fields to its own owner: no reference to itself, never deleted, never created again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import pytest

from ocf import component
from ocf.cluster import DeleteOptions, PatchOptions, PatchType, Propagation, Verb
from ocf.component import Component, Writes, diff, reconcile_all, reconciling
from ocf.component.status.results import Action
from ocf.concepts import AliveStatus, StatusReport, SuspensionStatus
from ocf.errors import ReconcileError
from ocf.feature import BooleanGate
from ocf.objects import Manifest, ObjectKey
from ocf.primitives import unstructured
from ocf.testing import FaultyCluster, faults
from ocf.testing.envtest import ControllerName
from tests.support import eventually

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

    from ocf.cluster import Cluster
    from ocf.component import Result
    from tests.component.conftest import Env, StaticKind

OTHER: Final = ObjectKey("v1", "ConfigMap", "other", "shop")


def labelled(value: str = "one", **spec: Any) -> Manifest:
    """Return the fields of the owner that a component applies."""
    metadata = {"name": "demo", "namespace": "shop", "labels": {"tier": value}}
    return {"apiVersion": "example.com/v1", "kind": "Shop", "metadata": metadata, **({"spec": spec} if spec else {})}


def of(*resources: Any, name: str = "web", **options: Any) -> Component:
    builder = component.Builder(name, condition_type=f"{name.title()}Ready")
    for resource in resources:
        builder.with_resource(resource, **options)
    return builder.build()


def tagging(value: str = "one", **options: Any) -> Component:
    return of(unstructured.StaticBuilder(labelled(value)).build(), **options)


async def reconcile(env: Env, owner: Manifest, *components: Component, cluster: Cluster) -> tuple[Result, ...]:
    async with reconciling(owner, cluster, clock=env.clock) as context:
        return await reconcile_all(context, *components)


@pytest.mark.promise("owner-itself", runs="owned and unowned, created and in sync")
@pytest.mark.parametrize("unowned", [False, True])
async def test_it_gets_no_reference_to_itself(env: Env, *, unowned: bool) -> None:
    result = await env.reconcile(tagging(unowned=unowned))
    owner = await env.owner_manifest()
    assert owner["metadata"]["labels"] == {"tier": "one"}
    assert "ownerReferences" not in owner["metadata"]
    assert [outcome.action for outcome in result.outcomes] == [Action.UPDATED]
    assert owner["status"]["conditions"][0]["reason"] == "Healthy"
    env.cluster.requests.clear()
    await env.reconcile(tagging(unowned=unowned))
    assert not env.cluster.requests.writes


@pytest.mark.parametrize("former", ["user", "us*"])
async def test_what_its_users_have_written_is_not_taken_over(env: Env, former: str) -> None:
    fields = {"spec": {"size": 3}, "metadata": {"annotations": {"team": "a"}, "finalizers": ["example.com/hold"]}}
    options = PatchOptions(patch_type=PatchType.MERGE, field_manager="user")
    before = await env.cluster.patch(env.owner, fields, options)
    made = component.Builder("web", condition_type="WebReady").with_former_managers(former)
    tagged = made.with_resource(unstructured.StaticBuilder(labelled()).build()).build()
    (planned,) = await diff([tagged], before, env.cluster)
    assert [change.path for change in planned.objects[0].fields] == ["metadata.labels.tier"]
    await env.reconcile(tagged)
    owner = await env.owner_manifest()
    assert owner["metadata"]["labels"] == {"tier": "one"}
    assert owner["spec"] == before["spec"]
    assert owner["metadata"]["annotations"] == {"team": "a"}
    assert owner["metadata"]["finalizers"] == ["example.com/hold"]


async def test_its_status_is_written_without_a_conflict(env: Env) -> None:
    env.cluster.requests.clear()
    await env.reconcile(tagging())
    written = [request.verb for request in env.cluster.requests if not request.verb.is_read]
    assert written == [Verb.APPLY, Verb.UPDATE]


async def test_a_reference_to_itself_is_removed(env: Env) -> None:
    """As one of an earlier release, whose apply set it."""
    uid = (await env.owner_manifest())["metadata"]["uid"]
    itself = {"apiVersion": "example.com/v1", "kind": "Shop", "name": "demo", "uid": uid, "controller": True}
    referring = labelled()
    referring["metadata"]["ownerReferences"] = [itself | {"blockOwnerDeletion": True}]
    await env.cluster.apply(referring, field_manager=f"ocf/Shop/web/{uid}", force=True)
    assert await env.owners(env.owner) == ["demo"]
    await env.reconcile(tagging())
    assert await env.owners(env.owner) == []


@pytest.mark.promise("owner-itself", runs="a foreground deletion, on a real API server with its garbage collector")
@pytest.mark.parametrize("new_env", ["envtest"], indirect=True)
async def test_a_foreground_deletion_ends(
    env: Env, config_map: Callable[..., StaticKind], envtest_controllers: Callable[..., AbstractContextManager[None]]
) -> None:
    await env.reconcile(of(unstructured.StaticBuilder(labelled()).build(), config_map("other").build()))
    with envtest_controllers(ControllerName.GARBAGE_COLLECTOR):
        await env.cluster.delete(env.owner, DeleteOptions(propagation=Propagation.FOREGROUND))

        async def gone() -> bool:
            return not await env.exists(env.owner) and not await env.exists(OTHER)

        await eventually(gone)


REPLACED: Final = [pytest.param(False, id="deleted"), pytest.param(True, id="another one has its name")]


@pytest.mark.promise("owner-itself", runs="an owner that is deleted before, and right before, it is applied")
@pytest.mark.parametrize("replaced", REPLACED)
@pytest.mark.parametrize("verb", [Verb.GET, Verb.APPLY])
async def test_an_owner_that_is_deleted_meanwhile_is_not_created_again(
    env: Env, config_map: Callable[..., StaticKind], verb: Verb, *, replaced: bool
) -> None:
    """https://github.com/kubernetes-sigs/cluster-api/issues/6741: an apply created what a user had just deleted."""

    async def delete() -> None:
        await env.cluster.delete(env.owner)
        if replaced:
            await env.create(env.owner, spec={"size": 1})

    owner = await env.owner_manifest()
    before = FaultyCluster(env.cluster, [faults.meanwhile(delete, verbs=[verb], kind="Shop", times=1)])
    later = config_map("other").build()
    (result,) = await reconcile(env, owner, of(unstructured.StaticBuilder(labelled()).build(), later), cluster=before)
    assert (result.outcomes, result.requeue_after) == ((), None)
    assert not await env.exists(OTHER)
    if not replaced:
        assert not await env.exists(env.owner)
        return
    new = await env.owner_manifest()
    assert "labels" not in new["metadata"]
    assert "status" not in new


@pytest.mark.promise("owner-itself", runs="an owner that is deleted right before a field is handed over")
async def test_nor_is_one_whose_field_is_handed_over(env: Env) -> None:
    """The second field manager applies that field alone."""
    sized = unstructured.StaticBuilder(labelled(size=5)).build()
    await env.reconcile(of(sized))

    async def delete() -> None:
        await env.cluster.delete(env.owner)

    owner = await env.owner_manifest()
    before = FaultyCluster(env.cluster, [faults.meanwhile(delete, verbs=[Verb.APPLY], kind="Shop", times=1)])
    (result,) = await reconcile(env, owner, of(sized, ignore_fields=["spec.size"]), cluster=before)
    assert result.outcomes == ()
    assert not await env.exists(env.owner)


async def test_nothing_is_made_for_an_owner_that_its_status_write_has_found_to_be_gone(
    env: Env, config_map: Callable[..., StaticKind]
) -> None:
    async with reconciling(await env.owner_manifest(), env.cluster, clock=env.clock) as context:
        context.status["phase"] = "Starting"
        await env.cluster.delete(env.owner)
        with pytest.raises(ReconcileError, match="was deleted before its status was stored"):
            await context.write_status()
        assert context.is_gone
        result = await of(config_map("other").build(), unowned=True).reconcile(context)
    assert result.outcomes == ()
    assert not await env.exists(OTHER)


@pytest.mark.promise("owner-gone", runs="an object that is deleted with its owner during a reconcile")
@pytest.mark.parametrize("unowned", [False, True])
@pytest.mark.parametrize("replaced", REPLACED)
async def test_an_object_that_is_deleted_with_the_owner_is_not_created_again(
    env: Env, config_map: Callable[..., StaticKind], *, unowned: bool, replaced: bool
) -> None:
    subject = of(config_map("other").build(), unowned=unowned)
    await env.reconcile(subject)

    async def delete() -> None:
        await env.cluster.delete(OTHER)
        await env.cluster.delete(env.owner)
        if replaced:
            await env.create(env.owner, spec={"size": 1})

    owner = await env.owner_manifest()
    before = FaultyCluster(env.cluster, [faults.meanwhile(delete, verbs=[Verb.GET], kind="ConfigMap", times=1)])
    (result,) = await reconcile(env, owner, subject, cluster=before)
    assert result.outcomes == ()
    assert not await env.exists(OTHER)


async def test_an_object_that_is_deleted_alone_is_created_again(
    env: Env, config_map: Callable[..., StaticKind]
) -> None:
    subject = of(config_map("other").build())
    await env.reconcile(subject)
    await env.cluster.delete(OTHER)
    assert [outcome.action for outcome in (await env.reconcile(subject)).outcomes] == [Action.CREATED]


async def test_a_component_that_finds_the_owner_gone_stops_the_others(
    env: Env, config_map: Callable[..., StaticKind]
) -> None:
    owner = await env.owner_manifest()
    await env.cluster.delete(env.owner)
    parts = [tagging(), of(config_map("other").build(), name="data", unowned=True)]
    async with reconciling(owner, env.cluster, clock=env.clock) as context:
        results = [await one.reconcile(context) for one in parts]
    assert [result.outcomes for result in results] == [(), ()]
    assert not await env.exists(OTHER)


def suspended(**options: Any) -> Component:
    builder = unstructured.WorkloadBuilder(labelled())
    builder.with_custom_converge_status(lambda *_: StatusReport(AliveStatus.HEALTHY, ""))
    builder.with_custom_suspend_mutation(lambda _: None)
    builder.with_custom_suspend_deletion_decision(lambda _: True)
    builder.with_custom_suspend_status(lambda _: StatusReport(SuspensionStatus.SUSPENDED, ""))
    made = component.Builder("web", condition_type="WebReady").with_resource(builder.build(), **options)
    return made.suspend(True).build()


@pytest.mark.promise("owner-itself", runs="options that would delete any other object")
@pytest.mark.parametrize(
    "unwanted",
    [
        pytest.param(lambda: tagging(delete_when=True), id="delete_when"),
        pytest.param(lambda: tagging(gated_by=BooleanGate(False)), id="a closed gate of the resource"),
        pytest.param(lambda: tagging(unowned=True, delete_when=True), id="delete_when, unowned"),
        pytest.param(
            lambda: (
                component.Builder("web", condition_type="WebReady")
                .with_resource(unstructured.StaticBuilder(labelled()).build())
                .with_feature_gate(BooleanGate(False))
                .build()
            ),
            id="a closed gate of the component",
        ),
        pytest.param(
            lambda: (
                component.Builder("web", condition_type="WebReady")
                .with_resource(
                    unstructured.StaticBuilder(labelled() | {"metadata": {"name": "x", "namespace": "shop"}}).build(),
                    delete_when=True,
                )
                .with_prune()
                .build()
            ),
            id="pruning",
        ),
        pytest.param(suspended, id="deletion on suspension"),
        pytest.param(lambda: tagging(orphan_when=True), id="orphan_when"),
    ],
)
@pytest.mark.parametrize("referring", [False, True], ids=["", "with a reference to itself"])
async def test_it_is_never_deleted(env: Env, unwanted: Callable[[], Component], *, referring: bool) -> None:
    before = await env.owner_manifest()
    await env.reconcile(tagging())
    if referring:
        uid = before["metadata"]["uid"]
        itself = {"apiVersion": "example.com/v1", "kind": "Shop", "name": "demo", "uid": uid, "controller": True}
        await env.change(env.owner, metadata={"ownerReferences": [itself]})
    result = await env.reconcile(unwanted())
    assert result.condition.status is True
    owner = await env.owner_manifest()
    assert owner["metadata"]["uid"] == before["metadata"]["uid"]
    assert "deletionTimestamp" not in owner["metadata"]
    assert not env.cluster.requests.of(Verb.DELETE)


@pytest.mark.promise("owner-itself", runs="fields that are only updated, and released by each way to drop them")
@pytest.mark.parametrize("dropped", ["delete_when", "gate", "pruned"])
async def test_fields_that_are_only_updated_need_neither_a_finalizer_nor_a_label(env: Env, dropped: str) -> None:
    """They go with their owner, which can be deleted while no operator runs.

    Publicly reported of other operators: Namespaces that an operator only annotates, and that cannot be deleted while
    it does not run, because it holds them (https://github.com/rgeraskin/remove-empty-ns-operator/issues/5).
    """

    def fields(*, kept: bool = True) -> Component:
        builder = component.Builder("web", condition_type="WebReady").with_prune()
        if not kept and dropped == "gate":
            builder.with_feature_gate(BooleanGate(False))
        if kept or dropped != "pruned":
            without = not kept and dropped == "delete_when"
            tags = unstructured.StaticBuilder(labelled()).build()
            builder.with_resource(tags, writes=Writes.UPDATE_ONLY, delete_when=without)
        return builder.build()

    async def reconciled(subject: Component) -> Manifest:
        process = env.process()
        await process.reconcile(subject)
        found: Manifest = (await env.owner_manifest())["metadata"]
        return found

    metadata = await reconciled(fields())
    assert (metadata["labels"], metadata.get("finalizers")) == ({"tier": "one"}, None)
    env.cluster.requests.clear()
    await reconciled(fields())
    assert not env.cluster.requests.writes
    metadata = await reconciled(fields(kept=False))
    assert (metadata.get("labels"), metadata.get("finalizers")) == (None, None)
    assert not [one for one in metadata["managedFields"] if "/fields/" in one["manager"]]
    env.cluster.requests.clear()
    await reconciled(fields(kept=False))
    assert not env.cluster.requests.writes
    await reconciled(fields())
    await env.cluster.delete(env.owner)
    assert not await env.exists(env.owner)
