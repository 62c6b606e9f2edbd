"""Objects that cannot refer to their owner: fields in objects of other writers, and copies in other namespaces.

Publicly reported of other operators: what becomes of fields in an object that others made, when their writer goes
(https://github.com/argoproj/argo-cd/pull/17125); copies in other namespaces that their source leaves behind
(https://github.com/kubermatic/kubermatic/issues/4388, https://github.com/nais/unleasherator/issues/108), or that are
deleted because of an owner reference into another namespace (https://github.com/knative/serving/issues/7305,
https://github.com/elastic/cloud-on-k8s/pull/3992).
"""

from __future__ import annotations

from contextlib import suppress
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

import pytest

from ocf import component
from ocf.cluster import DeleteOptions, Propagation, Verb
from ocf.component import (
    Adoption,
    CleanupPending,
    Component,
    Conflicts,
    DeletionOrder,
    Finalizer,
    Participation,
    ReconcileContext,
    Result,
    Writes,
    finalize,
    reconciling,
)
from ocf.component.owner_deletion import cleanup_finalizer
from ocf.component.status.reasons import Reason
from ocf.component.status.results import Action
from ocf.errors import BuildError, NotFoundError
from ocf.feature import BooleanGate
from ocf.objects import Manifest, ObjectKey
from ocf.objects.managed_fields import ManagedFields
from ocf.primitives import clusterrole, configmap, deployment, pod
from ocf.testing import InterceptingCluster, VirtualClock, crash_at_each_write
from tests.component.apply.test_takeover import reconcile

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from ocf.cluster import Cluster, Request
    from tests.component.conftest import Env

FOREIGN: Final = ObjectKey("v1", "ConfigMap", "shared", "default")
COPY: Final = ObjectKey("v1", "ConfigMap", "copy", "default")
KIND: Final = ("v1", "ConfigMap")
OWNER: Final = ObjectKey("example.com/v1", "Shop", "demo", "shop")
POD: Final[Manifest] = {"metadata": {"labels": {"app": "a"}}, "spec": {"containers": [{"name": "a", "image": "a:1"}]}}
CLEANUP: Final = cleanup_finalizer("ocf")


def body(key: ObjectKey, **data: str) -> Manifest:
    return {
        "apiVersion": key.api_version,
        "kind": key.kind,
        "metadata": {"name": key.name, "namespace": key.namespace},
        "data": data,
    }


def of(*bodies: Manifest, prune: bool = True, gate: Any = None, **options: Any) -> Component:
    builder = component.Builder("web", condition_type="WebReady", owner=OWNER)
    builder = builder.with_prune(kinds=[KIND]) if prune else builder
    builder = builder.with_feature_gate(gate) if gate is not None else builder
    for each in bodies:
        builder.with_resource(configmap.Builder(each).build(), **options)
    return builder.build()


def fields(*bodies: Manifest, **options: Any) -> Component:
    return of(*bodies, **{"writes": Writes.UPDATE_ONLY, **options})


def copies(*bodies: Manifest, **options: Any) -> Component:
    return of(*bodies, **{"unowned": True, "delete_with_owner": True, **options})


async def collect(env: Env, key: ObjectKey) -> None:
    """Remove the finalizers of an object that is being deleted, as the garbage collector does, which may not run."""
    with suppress(NotFoundError):
        if (await env.cluster.get(key))["metadata"].get("deletionTimestamp"):
            await env.merge_patch(key, {"metadata": {"finalizers": None}}, by="garbage-collector")


async def foreign(env: Env, **data: str) -> Manifest:
    """Create the object of another writer anew."""
    for key in (FOREIGN, COPY):
        with suppress(NotFoundError):
            await env.cluster.delete(key)
        await collect(env, key)
    return await env.create(FOREIGN, data=data, metadata={"labels": {"team": "a"}})


async def reconciled(env: Env, subject: Component) -> Result:
    """Reconcile in a process that remembers nothing."""
    (result,) = await env.process().reconcile(subject)
    assert isinstance(result, Result), result
    return result


async def data(env: Env, key: ObjectKey = FOREIGN) -> dict[str, str]:
    return (await env.cluster.get(key)).get("data") or {}


async def finalizers(env: Env) -> list[str]:
    return (await env.owner_manifest())["metadata"].get("finalizers") or []


def marks(live: Manifest) -> list[str]:
    return [name for name in live["metadata"].get("labels") or {} if "/for-" in name]


async def end_owner(env: Env, subject: Component) -> None:
    await env.cluster.delete(env.owner)
    while await env.exists(env.owner):
        await env.process().reconcile(subject)


@pytest.mark.promise("released-fields", runs="gates, deletion flags, pruning and the deletion of the owner")
@pytest.mark.parametrize("way", ["dropped", "delete_when", "gated_by", "component gate", "owner deleted"])
async def test_fields_in_the_object_of_another_writer_are_released_and_the_object_stays(env: Env, way: str) -> None:
    """Fields that another manager owns, too, stay; those that only the component has set are removed."""
    before = await foreign(env, theirs="1", both="2")
    wanted = body(FOREIGN, ours="3", both="2")
    await reconciled(env, fields(wanted))
    live = await env.cluster.get(FOREIGN)
    assert live["data"] == {"theirs": "1", "ours": "3", "both": "2"}
    assert "ownerReferences" not in live["metadata"]
    assert {name for name in live["metadata"]["labels"] if "kubernetes.io" in name} == set()
    assert await finalizers(env) == [CLEANUP]
    assert (await reconciled(env, fields(wanted))).writes == 0
    gone: dict[str, Component] = {
        "dropped": fields(),
        "delete_when": fields(wanted, delete_when=True),
        "gated_by": fields(wanted, gated_by=BooleanGate(False)),
        "component gate": fields(wanted, gate=BooleanGate(False)),
    }
    if way == "owner deleted":
        await end_owner(env, fields(wanted))
    else:
        (outcome,) = (await reconciled(env, gone[way])).outcomes
        assert (outcome.action, outcome.writes) == (Action.UPDATED, 1)
        assert outcome.detail.startswith("fields released: ")
        assert (await reconciled(env, gone[way])).writes == 0
    live = await env.cluster.get(FOREIGN)
    assert live["data"] == {"theirs": "1", "both": "2"}
    assert live["metadata"]["uid"] == before["metadata"]["uid"]
    assert live["metadata"]["labels"] == {"team": "a"}
    assert [entry.manager.name for entry in ManagedFields.of(live).entries] == ["kubectl-edit"]


async def test_an_object_that_does_not_exist_is_waited_for_and_never_created(env: Env) -> None:
    await foreign(env)
    await env.cluster.delete(FOREIGN)
    subject = fields(body(FOREIGN, ours="3"), prune=False)
    result = await reconciled(env, subject)
    assert (result.condition.reason, result.outcomes[0].action) == (Reason.BLOCKED, Action.BLOCKED)
    assert result.outcomes[0].report is not None
    assert result.outcomes[0].report.reason == "waiting for v1/ConfigMap/default/shared"
    skipped = await reconciled(env, fields(body(FOREIGN, ours="3"), ignore_if_absent=True))
    assert [outcome.action for outcome in skipped.outcomes] == [Action.ABSENT]
    assert not await env.exists(FOREIGN)
    await env.create(FOREIGN)
    assert (await reconciled(env, subject)).outcomes[0].action is Action.UPDATED
    await end_owner(env, subject)


@pytest.mark.parametrize(
    ("builder", "kind", "content"),
    [
        pytest.param(configmap.Builder, "v1/ConfigMap", {}, id="a ConfigMap"),
        pytest.param(pod.Builder, "v1/Pod", {"spec": POD["spec"]}, id="a pod"),
        pytest.param(deployment.Builder, "apps/v1/Deployment", {"spec": {"template": POD}}, id="a workload"),
    ],
)
async def test_fields_are_set_in_an_object_that_is_being_deleted(
    env: Env, builder: Callable[[Manifest], Any], kind: str, content: Manifest
) -> None:
    """A Service selects a pod until it is gone: https://github.com/cloudnative-pg/cloudnative-pg/pull/10409."""
    version, _, name = kind.rpartition("/")
    key = ObjectKey(version, name, "held", FOREIGN.namespace)
    if "template" in content.get("spec", {}):
        content = {"spec": {**content["spec"], "selector": {"matchLabels": POD["metadata"]["labels"]}}}
    await env.create(key, metadata={"finalizers": ["example.com/held"]}, **content)
    await env.cluster.delete(key)
    labels = {"metadata": {"name": key.name, "namespace": key.namespace, "labels": {"role": "former"}}}
    subject = (
        component.Builder("web", condition_type="WebReady")
        .with_resource(
            builder(labels),
            writes=Writes.UPDATE_ONLY,
            participation=Participation.AUXILIARY,
            ignore_if_absent=True,
        )
        .build()
    )
    result = await reconciled(env, subject)
    assert [outcome.action for outcome in result.outcomes] == [Action.UPDATED]
    assert result.condition.reason == Reason.HEALTHY
    assert (await env.cluster.get(key))["metadata"]["labels"]["role"] == "former"
    assert (await reconciled(env, subject)).writes == 0
    await env.change(key, metadata={"finalizers": None})
    assert [outcome.action for outcome in (await reconciled(env, subject)).outcomes] == [Action.ABSENT]
    await end_owner(env, subject)


@pytest.mark.parametrize("again", [False, True], ids=["deleted", "deleted and created again"])
@pytest.mark.parametrize("releases", [False, True], ids=["applied", "released"])
async def test_an_object_that_is_deleted_before_a_write_is_not_made_again(
    env: Env, *, again: bool, releases: bool
) -> None:
    """Between the read and the write of fields; the API server compares the uid."""
    await foreign(env, theirs="1")
    if releases:
        await reconciled(env, fields(body(FOREIGN, ours="3")))
    process, meddled = env.process(), list[str]()

    class Meddling(InterceptingCluster):
        async def intercept(self, request: Request, send: Callable[[], Awaitable[Any]]) -> Any:
            if request.verb is Verb.APPLY and request.name == FOREIGN.name and not meddled:
                meddled.append(request.name)
                await env.cluster.delete(FOREIGN)
                if again:
                    await env.create(FOREIGN, data={"new": "1"})
            return await send()

    process.cluster = Meddling(process.cluster)  # type: ignore[assignment]  # it records as well
    await process.reconcile(fields() if releases else fields(body(FOREIGN, ours="3")))
    assert meddled
    assert await env.exists(FOREIGN) is again
    if again:
        assert await data(env) == ({"new": "1"} if releases else {"new": "1", "ours": "3"})
    await foreign(env)
    await end_owner(env, fields(body(FOREIGN, ours="3")))


async def test_a_field_of_another_manager_is_taken_or_fails_as_the_author_says(env: Env) -> None:
    await foreign(env, mode="theirs")
    with pytest.raises(AssertionError, match='conflict with "kubectl-edit"'):
        await reconciled(env, fields(body(FOREIGN, mode="ours"), on_conflict=Conflicts.FAIL))
    assert await data(env) == {"mode": "theirs"}
    await reconciled(env, fields(body(FOREIGN, mode="ours")))
    assert await data(env) == {"mode": "ours"}
    await end_owner(env, fields())


@pytest.mark.parametrize("to_fields", [True, False], ids=["to update only", "back"])
async def test_the_option_can_be_changed_later(env: Env, *, to_fields: bool) -> None:
    """The fields move with it, so none stays for ever, and a release removes all of them."""
    await foreign(env, theirs="1")
    one, other = fields(body(FOREIGN, a="1", b="2")), of(body(FOREIGN, a="1"), unowned=True)
    if to_fields:
        one, other = of(body(FOREIGN, a="1", b="2"), unowned=True), fields(body(FOREIGN, a="1"))
    await reconciled(env, one)
    await reconciled(env, other)
    assert await data(env) == {"theirs": "1", "a": "1"}
    assert len(set(ManagedFields.of(await env.cluster.get(FOREIGN)).appliers)) == 1
    await end_owner(env, other)
    assert await data(env) == ({"theirs": "1"} if to_fields else {"theirs": "1", "a": "1"})


@pytest.mark.parametrize("adopt", [Adoption.NEVER, Adoption.LABELLED])
async def test_setting_fields_is_not_adopting(env: Env, adopt: Adoption) -> None:
    """A later registration as a whole object asks as if the component had never written the object."""
    await foreign(env, theirs="1")
    await reconciled(env, fields(body(FOREIGN, a="1")))
    whole = of(body(FOREIGN, b="2"), prune=False, unowned=True, adopt=adopt)
    result = await reconciled(env, whole)
    assert [(outcome.action, outcome.writes) for outcome in result.outcomes] == [(Action.BLOCKED, 1)]
    await nothing_left(env, whole)


async def test_fields_are_released_from_an_object_that_is_only_created_later(env: Env) -> None:
    """Because it exists, it is used as it is, as one in which the component has set nothing."""
    await foreign(env, theirs="1")
    await reconciled(env, fields(body(FOREIGN, a="1")))
    later = of(body(FOREIGN, a="1"), prune=False, unowned=True, writes=Writes.CREATE_ONLY)
    assert (await reconciled(env, later)).condition.reason is Reason.HEALTHY
    await nothing_left(env, later)


@pytest.mark.parametrize("suspended", [False, True])
@pytest.mark.parametrize("options", [{"adopt": Adoption.NEVER}, {"writes": Writes.CREATE_ONLY}], ids=str)
async def test_an_event_names_the_object_that_is_not_taken_over(
    env: Env, web_base: Manifest, options: dict[str, Any], *, suspended: bool
) -> None:
    """A suspension asks about an adoption, too, and leaves alone what is only created."""
    await env.create(env.web, spec=web_base["spec"])
    shown = deployment.Builder(web_base)
    found: list[list[str]] = []
    update_only: dict[str, Any] = {"writes": Writes.UPDATE_ONLY}
    for each in (update_only, options, options):
        builder = component.Builder("web", condition_type="WebReady").suspend(suspended and each is options)
        events = await reconcile(env, builder.with_resource(shown, **each).build())
        found.append([event.reason for event in events.found if event.reason == "FieldsReleased"])
    released = not suspended or "adopt" in options
    assert found == [[], ["FieldsReleased"] if released else [], []]


async def nothing_left(env: Env, subject: Component) -> None:
    """Check that nothing of the component is left in the object of another writer, and that this stays so."""
    live = await env.cluster.get(FOREIGN)
    assert (live["data"], live["metadata"]["labels"]) == ({"theirs": "1"}, {"team": "a"})
    assert list(ManagedFields.of(live).appliers) == []
    assert (await reconciled(env, subject)).writes == 0
    assert await finalizers(env) == []
    await end_owner(env, subject)
    assert await data(env) == {"theirs": "1"}


async def test_two_owners_set_fields_in_one_object(env: Env) -> None:
    await foreign(env)
    other = await env.create(ObjectKey("example.com/v1", "Shop", "second", "shop"))
    await reconciled(env, fields(body(FOREIGN, a="1")))
    await env.process().reconcile(fields(body(FOREIGN, b="2")), owner=ObjectKey.of(other))
    assert await data(env) == {"a": "1", "b": "2"}
    assert (await reconciled(env, fields(body(FOREIGN, a="1")))).writes == 0
    await end_owner(env, fields(body(FOREIGN, a="1")))
    assert await data(env) == {"b": "2"}
    await env.cluster.delete(ObjectKey.of(other))
    await env.process().reconcile(fields(body(FOREIGN, b="2")), owner=ObjectKey.of(other))
    assert await data(env) == {}


@pytest.mark.parametrize("dropped", [False, True], ids=["set", "released"])
async def test_a_diff_shows_which_fields_are_set_and_released(env: Env, *, dropped: bool) -> None:
    await foreign(env, theirs="1")
    wanted = fields(body(FOREIGN, ours="3"))
    if dropped:
        await reconciled(env, wanted)
    before = await env.cluster.get(FOREIGN)
    (found,) = await component.diff([fields() if dropped else wanted], await env.owner_manifest(), env.cluster)
    (one,) = found.objects
    assert (one.resource, one.verb) == (str(FOREIGN), "update")
    (field,) = [each for each in one.fields if each.path == "data.ours"]
    assert (field.before, field.after) == (("3", None) if dropped else (None, "3"))
    assert await env.cluster.get(FOREIGN) == before
    await end_owner(env, wanted)


@pytest.mark.promise("copies", runs="copies that are dropped, the last one included, and the deletion of the owner")
@pytest.mark.parametrize("left", [0, 1])
async def test_copies_in_other_namespaces_are_pruned(env: Env, left: int) -> None:
    await foreign(env)
    both = [body(COPY, a="1"), body(ObjectKey("v1", "ConfigMap", "copy", "shop"), a="1")]
    await reconciled(env, copies(*both))
    assert "ownerReferences" not in (await env.cluster.get(COPY))["metadata"]
    assert (await reconciled(env, copies(*both))).writes == 0
    rest = both[1 : 1 + left]
    await reconciled(env, copies(*rest))
    assert not await env.exists(COPY)
    assert await env.exists(ObjectKey.of(both[1])) is bool(left)
    # Once nothing is left to delete, the finalizer goes.
    await reconciled(env, copies(*rest))
    assert await finalizers(env) == ([CLEANUP] if left else [])
    await end_owner(env, copies(*rest))
    assert not await env.exists(ObjectKey.of(both[1]))


@pytest.mark.promise("copies", runs="owners that are deleted, with copies that are not registered any more")
@pytest.mark.parametrize("registers", [True, False])
@pytest.mark.parametrize("prune", [True, False])
@pytest.mark.parametrize("writes", [Writes.ALL, Writes.CREATE_ONLY])
async def test_copies_end_with_their_owner(env: Env, *, registers: bool, prune: bool, writes: Writes) -> None:
    await foreign(env)
    await reconciled(env, copies(body(COPY, a="1"), writes=writes))
    assert (await reconciled(env, copies(body(COPY, a="1"), writes=writes))).writes == 0
    other = ObjectKey("v1", "ConfigMap", "other", "shop")
    # Without pruning, what is dropped stays, and is found by the kind of what is left.
    subject = copies(body(COPY if registers else other, a="1"), prune=prune, writes=writes)
    await end_owner(env, subject)
    assert not await env.exists(COPY)
    assert await env.exists(FOREIGN)


@pytest.mark.parametrize("made", [True, False], ids=["with a mark", "without"])
async def test_an_orphaned_copy_stays_when_its_owner_is_deleted(env: Env, *, made: bool) -> None:
    await foreign(env)
    wanted = body(COPY, a="1")
    await reconciled(env, copies(wanted))
    if not made:
        await env.change(COPY, metadata={"labels": None})
    (outcome,) = (await reconciled(env, copies(wanted, orphan_when=True))).outcomes
    assert outcome.action is (Action.ORPHANED if made else Action.UNCHANGED)
    assert marks(await env.cluster.get(COPY)) == []
    assert (await reconciled(env, copies(wanted, orphan_when=True))).writes == 0
    await end_owner(env, copies(wanted, orphan_when=True))
    assert await data(env, COPY) == {"a": "1"}


@pytest.mark.parametrize("order", DeletionOrder)
async def test_a_delete_of_the_owner_that_orphans_keeps_copies(env: Env, order: DeletionOrder) -> None:
    """The request is acted upon at once, because `on_delete` may take until nothing shows it any more."""
    await foreign(env, theirs="1")
    builder = component.Builder("web", condition_type="WebReady").with_prune(kinds=[KIND])
    role = clusterrole.Builder({"metadata": {"name": "for-copies"}, "rules": []}).build()
    builder.with_resource(configmap.Builder(body(COPY, a="1")).build(), unowned=True, delete_with_owner=True)
    builder.with_resource(configmap.Builder(body(FOREIGN, a="1")).build(), writes=Writes.UPDATE_ONLY)
    subject = builder.with_resource(role).build()
    ready: list[bool] = []

    async def on_delete(_context: ReconcileContext) -> CleanupPending | None:
        return None if ready else CleanupPending(timedelta(seconds=1))

    async def once(*, orphans: bool = False) -> None:
        async with reconciling(await env.owner_manifest(), env.cluster, clock=env.clock) as context:
            ending = Finalizer(on_delete=on_delete, order=order, orphans=orphans)
            if await finalize(context, subject, finalizer=ending) is None:
                await subject.reconcile(context)

    await once()
    await env.cluster.delete(env.owner, DeleteOptions(propagation=Propagation.ORPHAN))
    await once(orphans="orphan" not in await finalizers(env))
    await env.change(env.owner, metadata={"finalizers": [one for one in await finalizers(env) if one != "orphan"]})
    await once()
    ready.append(True)
    while await env.exists(env.owner):
        await once()
    live = await env.cluster.get(COPY)
    assert (live["data"], marks(live)) == ({"a": "1"}, [])
    assert await env.exists(role.key)
    assert await data(env) == {"theirs": "1"}
    await env.cluster.delete(role.key)


@pytest.mark.parametrize("pending", [0, 2])
async def test_copies_and_fields_end_before_external_resources(env: Env, pending: int) -> None:
    await foreign(env, theirs="1")
    builder = component.Builder("web", condition_type="WebReady")
    builder.with_resource(configmap.Builder(body(COPY, a="1")).build(), unowned=True, delete_with_owner=True)
    builder.with_resource(configmap.Builder(body(FOREIGN, a="1")).build(), writes=Writes.UPDATE_ONLY)
    subject, seen = builder.build(), list[tuple[bool, dict[str, str]]]()

    async def on_delete(_context: ReconcileContext) -> CleanupPending | None:
        seen.append((await env.exists(COPY), await data(env)))
        return CleanupPending(timedelta(seconds=1)) if len(seen) <= pending else None

    ending = Finalizer(on_delete=on_delete, order=DeletionOrder.COMPONENTS_FIRST)
    for deletes in (True, False):
        while await env.exists(env.owner):
            async with reconciling(await env.owner_manifest(), env.cluster, clock=env.clock) as context:
                if await finalize(context, subject, finalizer=ending) is None:
                    await subject.reconcile(context)
            if deletes:
                break
            await collect(env, COPY)
        if deletes:
            await env.cluster.delete(env.owner)
    assert seen == [(False, {"theirs": "1"})] * (pending + 1)


@pytest.mark.parametrize("propagation", [Propagation.BACKGROUND, Propagation.ORPHAN])
async def test_a_pruned_copy_is_deleted_as_the_component_says(env: Env, propagation: Propagation) -> None:
    await foreign(env)

    def subject(*bodies: Manifest) -> Component:
        builder = component.Builder("web", condition_type="WebReady").with_prune(kinds=[KIND], propagation=propagation)
        for each in bodies:
            builder.with_resource(configmap.Builder(each).build(), unowned=True, delete_with_owner=True)
        return builder.build()

    await reconciled(env, subject(body(COPY, a="1")))
    (outcome,) = (await reconciled(env, subject())).outcomes
    assert outcome.action is Action.DELETED
    assert outcome.detail.endswith("its dependents are kept") is (propagation is Propagation.ORPHAN)


@pytest.mark.parametrize("way", ["owner deleted", "dropped", "delete_when"])
@pytest.mark.parametrize("other", [Writes.ALL, Writes.UPDATE_ONLY])
async def test_a_copy_that_another_owner_applies_stays_with_it(env: Env, way: str, other: Writes) -> None:
    """What the first owner has set in it goes; an owner that only sets fields in the copy does not keep it."""
    await foreign(env)
    second = ObjectKey.of(await env.create(ObjectKey("example.com/v1", "Shop", "second", "shop")))
    theirs = (copies if other is Writes.ALL else fields)(body(COPY, b="2"))
    await reconciled(env, copies(body(COPY, a="1")))
    await env.process().reconcile(theirs, owner=second)
    ours = copies(body(COPY, a="1"), delete_when=way == "delete_when")
    if way == "owner deleted":
        await end_owner(env, ours)
    else:
        await reconciled(env, copies() if way == "dropped" else ours)
    if other is Writes.ALL:
        live = await env.cluster.get(COPY)
        assert (live["data"], len(marks(live))) == ({"b": "2"}, 1)
        (result,) = await env.process().reconcile(theirs, owner=second)
        assert isinstance(result, Result)
        assert result.writes == 0
    assert await env.exists(COPY) is (other is Writes.ALL)
    await env.cluster.delete(second)
    await env.process().reconcile(theirs, owner=second)
    assert not await env.exists(COPY)


async def test_only_what_the_component_has_applied_is_deleted_as_a_copy(env: Env) -> None:
    """A user copies the copy, with its labels; another object is unowned, and stays."""
    await foreign(env)
    await reconciled(env, copies(body(COPY, a="1")))
    live = await env.cluster.get(COPY)
    by_hand = ObjectKey("v1", "ConfigMap", "by-hand", "shop")
    await env.create(by_hand, metadata={"labels": live["metadata"]["labels"]})
    kept = ObjectKey("v1", "ConfigMap", "kept", "shop")
    both = component.Builder("web", condition_type="WebReady").with_prune(kinds=[KIND])
    both.with_resource(configmap.Builder(body(COPY, a="1")).build(), unowned=True, delete_with_owner=True)
    both.with_resource(configmap.Builder(body(kept)).build(), unowned=True)
    await reconciled(env, both.build())
    await reconciled(env, copies())
    assert [await env.exists(key) for key in (COPY, by_hand, kept)] == [False, True, True]
    await end_owner(env, copies())
    assert [await env.exists(key) for key in (by_hand, kept)] == [True, True]


@pytest.mark.embedded_only(reason="a fault at each write")
@pytest.mark.promise("copies", runs="a crash, a lost answer and a rejection at each write")
@pytest.mark.promise("released-fields", runs="a crash, a lost answer and a rejection at each write")
async def test_a_crash_at_any_write_leaves_nothing_behind(new_env: Callable[[], Awaitable[Env]]) -> None:
    """Fields and a copy are applied, changed and dropped, and the owner is deleted; each step by a new process."""
    clock = VirtualClock()
    steps = {"0": [body(COPY, a="1")], "1": [body(COPY, a="2")], "2": []}

    async def new_cluster() -> Cluster:
        env = await new_env()
        await foreign(env, theirs="1")
        return env.cluster

    async def reconcile(cluster: Cluster) -> None:
        try:
            live = await cluster.get(OWNER)
        except NotFoundError:
            return
        step = str((live.get("status") or {}).get("step", 0))
        subject = component.Builder("web", condition_type="WebReady").with_prune(kinds=[KIND])
        for each in steps[step]:
            subject.with_resource(configmap.Builder(each).build(), unowned=True, delete_with_owner=True)
            wanted = body(FOREIGN, **each["data"])
            subject.with_resource(configmap.Builder(wanted).build(), writes=Writes.UPDATE_ONLY)
        built = subject.build()
        async with reconciling(live, cluster, clock=clock) as context:
            if await finalize(context, built) is None:
                await built.reconcile(context)
                context.status["step"] = min(int(step) + 1, 2)
        if step == "2":
            with suppress(NotFoundError):
                await cluster.delete(OWNER)

    report = await crash_at_each_write(new_cluster, reconcile)
    report.assert_same()
    assert len(report.writes) > 8


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"delete_with_owner": True}, "delete_with_owner requires unowned"),
        *(
            ({"writes": "update-only", **other}, f'writes="update-only" is mutually exclusive with {next(iter(other))}')
            for other in (
                {"read_only": True},
                {"unowned": True},
                {"adopt": "never"},
                {"orphan_when": False},
                {"held_for_cleanup": True},
                {"propagation": "Foreground"},
                {"recreate_on_immutable_change": True},
                {"recreate_when_changed": ["data.a"]},
                {"set_once": ["data.a"]},
            )
        ),
        ({"ignore_if_absent": True}, "ignore_if_absent requires read_only or writes="),
        ({"block_on_absence": True, "writes": "update-only"}, "block_on_absence requires read_only"),
    ],
    ids=str,
)
def test_options_that_exclude_each_other(options: Any, problem: str) -> None:
    with pytest.raises(BuildError, match=problem):
        of(body(FOREIGN), **options)
