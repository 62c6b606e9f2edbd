"""Children of an owner, found by its uid and deleted one by one; on both servers.

Public reports: https://github.com/operator-framework/java-operator-sdk/issues/2349 (an object of another owner of the
same name is deleted), https://github.com/kubernetes-sigs/kubebuilder/issues/1381 (children are made twice),
https://github.com/kubernetes-sigs/kubebuilder/issues/1722 (a child that was deleted is still listed).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

import pytest

from ocf import component
from ocf.cluster import DeleteOptions, Propagation, Request, Verb
from ocf.cluster.protocol import DEFAULT_DELETE_OPTIONS, Preconditions
from ocf.component import reconciling
from ocf.concepts.recorder import Event, NullRecorder
from ocf.errors import ConfigError, ConflictError, ForbiddenError, NotFoundError, ReconcileError
from ocf.objects import Manifest, ObjectKey
from ocf.primitives import configmap
from ocf.testing import InterceptingCluster
from ocf_server import CustomKind, EmbeddedCluster

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from ocf.cluster import Cluster
    from tests.component.conftest import Env

UID_OF_NOTHING: Final = "00000000-0000-0000-0000-000000000000"


def settings(name: str) -> ObjectKey:
    return ObjectKey("v1", "ConfigMap", name, "shop")


async def reference(env: Env, **changed: Any) -> Manifest:
    owner = await env.owner_manifest()
    found = {"apiVersion": "example.com/v1", "kind": "Shop", "name": "demo", "uid": owner["metadata"]["uid"]}
    return {**found, "controller": True, **changed}


async def child(env: Env, name: str = "one", **metadata: Any) -> Manifest:
    references = [await reference(env)]
    return await env.create(settings(name), metadata={"ownerReferences": references, **metadata})


async def listed(env: Env) -> list[str]:
    async with reconciling(await env.owner_manifest(), env.cluster, clock=env.clock) as context:
        return [one["metadata"]["name"] for one in await context.children.list("v1", "ConfigMap")]


class Events(NullRecorder):
    def __init__(self) -> None:
        self.found: list[Event] = []

    def happened(self, event: Event) -> None:
        self.found.append(event)


class Meddling(InterceptingCluster):
    """Lets another client act once, immediately before the first delete."""

    def __init__(self, cluster: Cluster, act: Callable[[], Awaitable[object]] | None) -> None:
        super().__init__(cluster)
        self._act = act
        self.deletes = 0

    async def intercept(self, request: Request, send: Callable[[], Awaitable[Any]]) -> Any:
        if request.verb is Verb.DELETE:
            self.deletes += 1
            act, self._act = self._act, None
            if act is not None:
                await act()
        return await send()


async def deleted(env: Env, live: Manifest, *, through: Cluster | None = None, **options: Any) -> bool:
    owner = await env.owner_manifest()
    async with reconciling(owner, through or env.cluster, clock=env.clock) as context:
        return await context.children.delete(live, **options)


@pytest.mark.promise("children")
async def test_they_are_those_that_the_owner_controls_by_uid(env: Env) -> None:
    mine, other = await reference(env), await env.other_owner()
    references = {
        "mine": [mine],
        "of-two": [await reference(env, name="other", uid=other["uid"], controller=False), mine],
        "earlier-owner": [{**mine, "uid": UID_OF_NOTHING}],
        "not-controlled": [{**mine, "controller": False}],
        "other-owner": [other],
        "without-references": [],
    }
    for name, given in references.items():
        await env.create(settings(name), metadata={"ownerReferences": given})

    assert await listed(env) == ["mine", "of-two"]


async def test_they_are_found_whoever_made_them_and_whatever_their_names_and_labels_are(env: Env) -> None:
    made = component.Builder("web", owner=env.owner).with_resource(configmap.Builder({"metadata": {"name": "applied"}}))
    await env.reconcile(made.build())
    await child(env, "created", labels={"app.kubernetes.io/instance": "another"})

    assert await listed(env) == ["applied", "created"]


async def test_those_of_a_cluster_scoped_owner_are_in_every_namespace() -> None:
    cluster = EmbeddedCluster(
        kinds=[CustomKind("example.com", "v1", "Shop", namespaced=False)], namespaces=("shop", "town")
    )
    shop = {"apiVersion": "example.com/v1", "kind": "Shop", "metadata": {"name": "demo"}}
    owner = await cluster.create(shop, field_manager="user")
    async with reconciling(owner, cluster) as context:
        for namespace in ("town", "shop"):
            manifest = {"metadata": {"name": "one", "namespace": namespace}}
            made = component.Builder("web", condition_type=namespace.title()).with_resource(configmap.Builder(manifest))
            await made.build().reconcile(context)
        found = await context.children.list("v1", "ConfigMap")
        roles = await context.children.list("rbac.authorization.k8s.io/v1", "ClusterRole")

    assert [one["metadata"]["namespace"] for one in found] == ["shop", "town"]
    assert roles == ()


async def test_a_kind_that_a_namespaced_owner_cannot_control_is_an_error(env: Env) -> None:
    async with reconciling(await env.owner_manifest(), env.cluster, clock=env.clock) as context:
        with pytest.raises(ConfigError, match="which is cluster-scoped: list them with"):
            await context.children.list("rbac.authorization.k8s.io/v1", "ClusterRole")


async def test_a_kind_that_is_not_served_is_an_error(env: Env) -> None:
    async with reconciling(await env.owner_manifest(), env.cluster, clock=env.clock) as context:
        with pytest.raises(NotFoundError):
            await context.children.list("example.com/v1", "Nothing")


@pytest.mark.promise("children")
async def test_a_deletion_is_an_event_and_an_outcome(env: Env) -> None:
    live, recorder = await child(env), Events()
    async with reconciling(await env.owner_manifest(), env.cluster, clock=env.clock, recorder=recorder) as context:
        assert await context.children.delete(live) is True
        assert await context.children.delete(live) is False
        outcomes = list(context.children.outcomes)

    assert not await env.exists(settings("one"))
    assert [(one.resource, str(one.action), one.writes) for one in outcomes] == [
        ("v1/ConfigMap/shop/one", "Deleted", 1),
        ("v1/ConfigMap/shop/one", "Absent", 0),
    ]
    notes = [(event.reason, event.note) for event in recorder.found]
    assert notes == [("ResourceDeleted", "Resource v1/ConfigMap/shop/one deleted by operator ocf")]


@pytest.mark.promise("children")
async def test_one_that_has_changed_since_it_was_read_is_not_deleted(env: Env) -> None:
    live = await child(env)
    await env.change(settings("one"), data={"busy": "true"})

    with pytest.raises(
        ReconcileError, match="failed to delete resource v1/ConfigMap/shop/one: it was changed"
    ) as raised:
        await deleted(env, live)
    assert isinstance(raised.value.__cause__, ConflictError)
    assert await env.exists(settings("one"))


def is_idle(live: Manifest) -> bool:
    return (live.get("data") or {}).get("busy") != "true"


@pytest.mark.promise(
    "children", runs="changes that keep it, changes that do not, a deletion and a replacement meanwhile"
)
@pytest.mark.parametrize(
    ("data", "result"),
    [pytest.param({"note": "new"}, True, id="still idle"), pytest.param({"busy": "true"}, False, id="busy")],
)
async def test_a_predicate_is_asked_again_about_one_that_changes_meanwhile(
    env: Env, data: Manifest, *, result: bool
) -> None:
    live = await child(env)
    meddling = Meddling(env.cluster, lambda: env.change(settings("one"), data=data))

    assert await deleted(env, live, through=meddling, when=is_idle) is result
    assert await env.exists(settings("one")) is not result
    assert meddling.deletes == (2 if result else 1)


async def later(_: Manifest) -> bool:
    return False


@pytest.mark.promise("children")
@pytest.mark.parametrize(
    ("answer", "name"), [(later, "coroutine"), (lambda _: None, "NoneType"), (lambda _: 1, "int"), (dict, "dict")]
)
async def test_an_answer_of_the_predicate_that_is_no_bool_is_an_error_and_deletes_nothing(
    env: Env, answer: Callable[[Manifest], Any], name: str
) -> None:
    live = await child(env)
    meddling = Meddling(env.cluster, lambda: env.change(settings("one"), data={"note": "new"}))

    with pytest.raises(ConfigError, match=f"`when` must be a plain function.* of type {name}"):
        await deleted(env, live, through=meddling, when=answer)
    assert await env.exists(settings("one"))
    assert meddling.deletes == 1


@pytest.mark.promise("children")
async def test_what_has_replaced_it_meanwhile_is_kept(env: Env) -> None:
    live = await child(env)

    async def replace() -> None:
        await env.cluster.delete(settings("one"))
        await child(env)

    assert await deleted(env, live, through=Meddling(env.cluster, replace), when=is_idle) is False
    assert await env.exists(settings("one"))


@pytest.mark.promise("children")
async def test_one_that_was_given_away_meanwhile_is_kept(env: Env) -> None:
    live, other = await child(env), await env.other_owner()
    given = Meddling(env.cluster, lambda: env.change(settings("one"), metadata={"ownerReferences": [other]}))

    assert await deleted(env, live, through=given, when=is_idle) is False
    assert await env.exists(settings("one"))


@pytest.mark.parametrize("when", [None, is_idle])
async def test_one_that_is_being_deleted_costs_no_request(env: Env, when: Callable[[Manifest], bool] | None) -> None:
    await child(env, finalizers=["example.com/hold"])
    await env.cluster.delete(settings("one"))
    ending, counted = await env.cluster.get(settings("one")), Meddling(env.cluster, None)

    assert await deleted(env, ending, through=counted, when=when) is False
    assert counted.deletes == 0


@pytest.mark.promise("children")
async def test_a_delete_names_the_version_that_was_read_and_the_propagation(env: Env) -> None:
    sent: list[DeleteOptions] = []

    class Noting(InterceptingCluster):
        async def delete(self, key: ObjectKey, options: DeleteOptions = DEFAULT_DELETE_OPTIONS) -> None:
            sent.append(options)
            await super().delete(key, replace(options, dry_run=True))

    live = await child(env)
    for propagation in Propagation:
        await deleted(env, live, through=Noting(env.cluster), propagation=propagation)
    await deleted(env, live, through=Noting(env.cluster))

    metadata = live["metadata"]
    read = Preconditions(uid=metadata["uid"], resource_version=metadata["resourceVersion"])
    assert [one.preconditions for one in sent] == [read] * 4
    assert [one.propagation for one in sent] == [*Propagation, Propagation.BACKGROUND]


@pytest.mark.promise("children")
async def test_an_object_that_the_owner_does_not_control_is_refused(env: Env) -> None:
    stranger = await env.create(settings("one"), metadata={"ownerReferences": [await env.other_owner()]})

    with pytest.raises(ConfigError, match=r"v1/ConfigMap/shop/one is not deleted: .* does not control it"):
        await deleted(env, stranger)
    assert await env.exists(settings("one"))


@pytest.mark.promise("children")
async def test_what_another_operator_of_the_owner_applies_is_neither_listed_nor_deleted(env: Env) -> None:
    made = component.Builder("web", owner=env.owner).with_resource(configmap.Builder({"metadata": {"name": "one"}}))
    await env.process("malls").reconcile(made.build())

    assert await listed(env) == []
    with pytest.raises(ConfigError, match=r'operator "malls" of .* applies it'):
        await deleted(env, await env.cluster.get(settings("one")))
    assert await env.exists(settings("one"))


@pytest.mark.promise("children")
async def test_a_paused_owner_keeps_its_children(env: Env) -> None:
    live = await child(env)
    await env.change(env.owner, metadata={"annotations": {"ocf.ocf.dev/paused": "true"}})

    with pytest.raises(ReconcileError, match="is paused by"):
        await deleted(env, live)
    assert await env.exists(settings("one"))


@pytest.mark.promise("children", runs="ten attempts within ten seconds")
async def test_a_component_that_makes_it_again_does_not_wait_as_in_a_fight(env: Env) -> None:
    """A restart deletes an object again and again, which is no reason to suspect another client."""
    made = component.Builder("web", owner=env.owner).with_resource(configmap.Builder({"metadata": {"name": "one"}}))
    for _ in range(10):
        async with reconciling(await env.owner_manifest(), env.cluster, clock=env.clock) as context:
            for live in await context.children.list("v1", "ConfigMap"):
                await context.children.delete(live)
            result = await made.build().reconcile(context)
        assert [str(one.action) for one in result.outcomes] == ["Created"]
        env.clock.advance(timedelta(seconds=1))


async def test_a_refused_deletion_is_an_error_and_no_event(env: Env) -> None:
    live, recorder = await child(env), Events()

    class Refusing(InterceptingCluster):
        async def intercept(self, request: Request, send: Callable[[], Awaitable[Any]]) -> Any:
            if request.verb is Verb.DELETE:
                raise ForbiddenError("not today", code=403, reason="Forbidden")
            return await send()

    with pytest.raises(ReconcileError, match="failed to delete resource v1/ConfigMap/shop/one"):
        async with reconciling(
            await env.owner_manifest(), Refusing(env.cluster), clock=env.clock, recorder=recorder
        ) as context:
            await context.children.delete(live)
    assert recorder.found == []
