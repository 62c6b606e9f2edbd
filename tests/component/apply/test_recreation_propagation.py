"""Objects that are created again: what is waited for, which pods stay, and that a process may die on the way."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import pytest

from ocf import component
from ocf.cluster import Cluster, DeleteOptions, InterceptingCluster, ListOptions, Propagation, Subresource
from ocf.component import diff
from ocf.component.apply.recreation import orphaning_problem, waiting_text
from ocf.errors import ReconcileError
from ocf.objects import ObjectKey
from ocf.primitives import daemonset, deployment, replicaset, service, statefulset
from ocf.testing import VirtualClock, crash_at_each_write, roll_out
from ocf_server import CustomKind, EmbeddedCluster
from tests.component.apply.test_recreation import (
    JOB,
    a_job,
    a_replica_set,
    a_stateful_set,
    base,
    emptied,
    of,
    recreated,
    template,
)

if TYPE_CHECKING:
    from ocf.concepts.resource import ResourceBuilder
    from ocf.objects import Manifest
    from tests.component.conftest import Env


@pytest.mark.parametrize(
    ("finalizers", "text"),
    [
        pytest.param([], "", id="none: its grace period"),
        pytest.param(
            ["foregroundDeletion"],
            "; the garbage collector deletes its dependents first, and waits for their finalizers",
            id="in the foreground",
        ),
        pytest.param(["orphan"], "; the garbage collector orphans its dependents first", id="orphaning"),
        pytest.param(
            ["orphan", "example.com/b", "example.com/a"],
            "; the garbage collector orphans its dependents first; finalizers example.com/a, "
            "example.com/b hold it until their controllers, or a user, remove them",
            id="orphaning, and other controllers",
        ),
    ],
)
def test_what_is_waited_for_has_a_name(finalizers: list[str], text: str) -> None:
    """It may never go: https://github.com/StarRocks/starrocks-kubernetes-operator/issues/622."""
    metadata = {"name": "web", "namespace": "shop", "finalizers": finalizers}
    live = {"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": metadata}
    start = "waiting for apps/v1/StatefulSet/shop/web to be deleted"
    assert waiting_text(live) == start
    ending = {**live, "metadata": {**metadata, "deletionTimestamp": "2026-01-31T12:00:00Z"}}
    assert waiting_text(ending) == f"{start}{text}"
    assert waiting_text(ending, "it is old") == f"{start}, because it is old{text}"


@pytest.mark.parametrize("propagation", Propagation)
async def test_an_object_that_a_user_deletes_is_waited_for_without_a_reason_of_ours(
    env: Env, propagation: Propagation
) -> None:
    await emptied(env)
    subject = recreated(a_job("a"), propagation=propagation)
    await env.reconcile(subject)
    await env.change(JOB, metadata={"finalizers": ["example.com/hold"]})
    await env.cluster.delete(JOB, DeleteOptions(propagation=Propagation.BACKGROUND))
    for waiting in [await env.reconcile(subject) for _ in range(3)]:
        assert (waiting.writes, waiting.requeue_after is None) == (0, False)
        assert waiting.condition.message.endswith(
            "to be deleted; finalizer example.com/hold holds it until its "
            "controller, or a user if there is none any more, removes it"
        )
    await env.change(JOB, metadata={"finalizers": None})
    assert (await env.reconcile(subject)).writes == 1


MADE: Final = {
    "Deployment": deployment.Builder,
    "DaemonSet": daemonset.Builder,
    "ReplicaSet": replicaset.Builder,
    "StatefulSet": statefulset.Builder,
}


def a_workload(kind: str, image: str) -> ResourceBuilder:
    made: ResourceBuilder = MADE[kind](
        base("apps/v1", kind, {"selector": {"matchLabels": {"app": "web"}}, "template": template(image)})
    )
    return made


@pytest.mark.parametrize("kind", ["Deployment", "DaemonSet", "ReplicaSet", "StatefulSet"])
async def test_a_workload_that_is_being_deleted_is_left_alone(env: Env, kind: str) -> None:
    """Its controller ignores the spec by then, and its status would be that of the old one."""
    key = ObjectKey("apps/v1", kind, "web", "shop")
    await env.reconcile(of(a_workload(kind, "a")))
    await env.change(key, metadata={"finalizers": ["example.com/hold"]})
    await env.cluster.delete(key, DeleteOptions(propagation=Propagation.FOREGROUND))
    before = await env.cluster.get(key)
    changed = [of(a_workload(kind, "b"), suspended=suspended) for suspended in (False, True, False)]
    results = [await env.reconcile(one) for one in changed]
    for waiting in results:
        assert (waiting.writes, waiting.condition.status, waiting.requeue_after is None) == (0, False, False)
        assert f"{key} to be deleted" in waiting.condition.message
    assert "finalizer example.com/hold holds it" in results[-1].condition.message
    assert (results[-1].condition.reason, await env.cluster.get(key)) == ("Blocked", before)
    (found,) = await diff([of(a_workload(kind, "b"))], await env.owner_manifest(), env.cluster, clock=env.clock)
    assert [each.verb for each in found.objects] == []
    await env.change(key, metadata={"finalizers": None})
    assert (await env.reconcile(of(a_workload(kind, "b")))).writes == 1
    after = await env.cluster.get(key)
    assert after["spec"]["template"]["spec"]["containers"][0]["image"] == "b"
    assert after["metadata"]["uid"] != before["metadata"]["uid"]


async def test_another_object_that_is_being_deleted_goes_on_as_declared(env: Env) -> None:
    """A finalizer may hold it for as long as it is in use, and what it lacks to be let go may be a correction."""
    key = ObjectKey("v1", "Service", "web", "shop")

    def subject(port: int) -> component.Component:
        spec = {"type": "LoadBalancer", "ports": [{"port": port}]}
        return of(service.Builder(base("v1", "Service", spec)))

    await env.reconcile(subject(80))
    await env.change(key, metadata={"finalizers": ["example.com/hold"]})
    await env.cluster.delete(key)
    result = await env.reconcile(subject(81))
    assert [one["port"] for one in (await env.cluster.get(key))["spec"]["ports"]] == [81]
    assert (result.writes, result.condition.reason) == (1, "OperationPending")
    assert f"; waiting for {key} to be deleted; finalizer example.com/hold holds it" in result.condition.message
    assert (await env.reconcile(subject(81))).writes == 0
    await env.change(key, metadata={"finalizers": None})
    again = await env.reconcile(subject(81))
    assert (again.writes, "deleted" in again.condition.message) == (1, False)


SET: Final = ObjectKey("apps/v1", "StatefulSet", "web", "shop")


@pytest.mark.parametrize("propagation", [Propagation.FOREGROUND, Propagation.ORPHAN])
async def test_the_garbage_collector_is_waited_for_without_a_write(env: Env, propagation: Propagation) -> None:
    """No delete is repeated meanwhile: https://github.com/prometheus-operator/prometheus-operator/issues/4519."""
    await emptied(env, SET)
    await env.reconcile(recreated(a_stateful_set("a"), propagation=propagation))
    before = await env.cluster.get(SET)
    await env.change(SET, metadata={"finalizers": ["example.com/slow"]})
    changed = recreated(a_stateful_set("b"), propagation=propagation)
    assert (await env.reconcile(changed)).writes == 1
    await env.reconcile(changed)
    env.cluster.requests.clear()
    for _ in range(5):
        waiting = await env.reconcile(changed)
        assert (waiting.writes, waiting.condition.reason) == (0, "Blocked")
    assert not [request for request in env.cluster.requests if not request.verb.is_read]

    await env.change(SET, metadata={"finalizers": None})
    assert [(await env.reconcile(changed)).writes for _ in range(2)] == [1, 0]
    after = (await env.cluster.get(SET))["metadata"]
    assert after["uid"] != before["metadata"]["uid"]
    for field in ("ownerReferences", "managedFields"):
        masked = [[{**one, "time": ""} for one in each[field]] for each in (before["metadata"], after)]
        assert masked[0] == masked[1]


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        pytest.param(
            a_replica_set("a"),
            a_replica_set("b"),
            "its selector would be app=b, which does not match the existing pods (app=a)",
            id="another selector",
        ),
        pytest.param(a_job("a"), a_job("b"), "its selector is generated anew, which does not match", id="of a Job"),
    ],
)
async def test_no_pods_are_orphaned_that_the_new_object_would_not_adopt(
    env: Env, old: ResourceBuilder, new: ResourceBuilder, problem: str
) -> None:
    """They would run on beside the new ones: https://github.com/kubernetes/kubernetes/issues/22909."""
    resource = old.build()
    await emptied(env, resource.key)
    await env.reconcile(recreated(resource, propagation=Propagation.ORPHAN))
    before = await env.cluster.get(resource.key)
    with pytest.raises(ReconcileError) as caught:
        await env.reconcile(recreated(new, propagation=Propagation.ORPHAN))
    assert problem in caught.value.problem
    assert "register it with another propagation than Orphan" in caught.value.problem
    assert await env.cluster.get(resource.key) == before


async def test_no_pods_are_orphaned_that_the_new_object_would_delete(env: Env) -> None:
    """Without a number of its own, it would begin with one pod, until an autoscaler or a user adds the others again."""
    await emptied(env, SET)
    orphaning: dict[str, Any] = {"propagation": Propagation.ORPHAN}
    await env.reconcile(recreated(a_stateful_set("a"), **orphaning))
    await env.set_scale(SET, 3, by="kube-controller-manager")
    before = await env.cluster.get(SET)
    with pytest.raises(ReconcileError, match=r"its spec\.replicas is 3, and the resource sends none"):
        await env.reconcile(recreated(a_stateful_set("b"), **orphaning))
    assert await env.cluster.get(SET) == before
    await env.set_scale(SET, 1, by="kube-controller-manager")
    assert (await env.reconcile(recreated(a_stateful_set("b"), **orphaning))).writes == 1


@pytest.mark.parametrize(
    ("labels", "selector", "adopts"),
    [
        pytest.param({"app": "web", "tier": "a"}, {"matchLabels": {"app": "web"}}, True, id="fewer labels"),
        pytest.param({"app": "web"}, {"matchLabels": {"app": "web", "tier": "a"}}, False, id="more labels"),
        pytest.param(
            {"app": "web"}, {"matchExpressions": [{"key": "tier", "operator": "DoesNotExist"}]}, True, id="expression"
        ),
        pytest.param({"app": "web"}, None, True, id="a default, which is not known"),
        pytest.param({"app": "web"}, {"app": "shop"}, True, id="of a form that is not known"),
        pytest.param({"app": "web"}, "app=shop", True, id="a text"),
        pytest.param(None, {"matchLabels": {"app": "web"}}, True, id="no pods"),
    ],
)
def test_pods_are_adopted_if_the_new_selector_matches_their_labels(labels: Any, selector: Any, *, adopts: bool) -> None:
    template = {"metadata": {"labels": labels}}
    live = {"metadata": {"uid": "1"}, "spec": {"selector": {"matchLabels": {"app": "web"}}, "template": template}}
    desired = {"metadata": {}, "spec": {} if selector is None else {"selector": selector}}
    assert (orphaning_problem(live, desired) == "") is adopts


async def test_a_status_that_changes_meanwhile_fails_no_recreation(env: Env) -> None:
    """The controller of a workload writes it whenever a pod changes."""
    await emptied(env, SET)
    await env.reconcile(recreated(a_stateful_set("a")))
    live = await env.cluster.get(SET)
    await env.report(SET, {"replicas": 1, "observedGeneration": 1})
    cluster = StaleCluster(env.cluster, live)
    async with component.reconciling(await env.owner_manifest(), cluster, clock=env.clock) as context:
        result = await recreated(a_stateful_set("b")).reconcile(context)
    assert result.writes == 1
    assert not await env.exists(SET)


async def test_any_other_change_is_looked_at_first(env: Env) -> None:
    await emptied(env, SET)
    await env.reconcile(recreated(a_stateful_set("a")))
    live = await env.cluster.get(SET)
    await env.change(SET, metadata={"labels": {"example.com/keep": "yes"}})
    cluster = StaleCluster(env.cluster, live)
    async with component.reconciling(await env.owner_manifest(), cluster, clock=env.clock) as context:
        with pytest.raises(ReconcileError, match="as observed"):
            await recreated(a_stateful_set("b")).reconcile(context)
    assert await env.exists(SET)


class StaleCluster(InterceptingCluster):
    """A cluster whose first read of an object returns an older version."""

    def __init__(self, cluster: Cluster, older: Manifest) -> None:
        super().__init__(cluster)
        self._older: Manifest | None = older

    async def get(self, key: ObjectKey, *, subresource: Subresource | None = None) -> Manifest:
        older = self._older
        if older is None or key != ObjectKey.of(older):
            return await self._inner.get(key, subresource=subresource)
        self._older = None
        return older


@pytest.mark.promise("recreate-orphan", runs="4 disturbances of each write")
@pytest.mark.parametrize("propagation", Propagation)
async def test_a_process_that_dies_at_any_write_is_followed_by_one_that_ends_the_same(
    propagation: Propagation,
) -> None:
    """The old object may be gone, and the new one not made yet; orphaned pods wait for it."""
    clock = VirtualClock()
    shop = ObjectKey("example.com/v1", "Shop", "demo", "shop")
    pod = ObjectKey("v1", "Pod", "web-0", "shop")
    clusters: list[Cluster] = []

    async def reconciled(cluster: Cluster, subject: component.Component) -> None:
        async with component.reconciling(await cluster.get(shop), cluster, clock=clock) as context:
            await subject.reconcile(context)

    async def made() -> Cluster:
        kinds = [CustomKind("example.com", "v1", "Shop")]
        cluster = EmbeddedCluster(kinds=kinds, namespaces=["shop"], now=clock.now)
        clusters.append(cluster)
        await cluster.create(
            {**base("example.com/v1", "Shop", {}), "metadata": {"name": "demo", "namespace": "shop"}},
            field_manager="user",
        )
        await reconciled(cluster, recreated(a_stateful_set("a"), propagation=propagation))
        uid = (await cluster.get(SET))["metadata"]["uid"]
        reference = {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "web", "uid": uid, "controller": True}
        metadata = {"name": "web-0", "namespace": "shop", "labels": {"app": "web"}, "ownerReferences": [reference]}
        await cluster.create(
            {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": template("a")["spec"]},
            field_manager="set",
        )
        return cluster

    async def settle(cluster: Cluster) -> None:
        await roll_out(cluster)

    report = await crash_at_each_write(
        made,
        lambda cluster: reconciled(cluster, recreated(a_stateful_set("b"), propagation=propagation)),
        others=settle,
    )
    report.assert_same()
    verbs = [write.verb for write in report.writes if write.kind == "StatefulSet"]
    assert verbs == ["apply", "delete", "apply"]
    for cluster in clusters:
        found = await cluster.list("v1", "Pod", ListOptions(namespace="shop"))
        kept = [ObjectKey.of(live) for live in found.items if not live["metadata"].get("ownerReferences")]
        assert kept == ([pod] if propagation is Propagation.ORPHAN else [])


async def test_a_pause_between_the_delete_and_the_create_leaves_it_deleted(env: Env) -> None:
    await emptied(env, SET)
    await env.reconcile(recreated(a_stateful_set("a")))
    paused = {"annotations": {"ocf.ocf.dev/paused": "true"}}
    running = {"annotations": {"ocf.ocf.dev/paused": None}}
    changed = recreated(a_stateful_set("b"))
    await env.change(env.owner, metadata=paused)
    await env.reconcile(changed)
    assert await env.exists(SET)
    await env.change(env.owner, metadata=running)
    await env.reconcile(changed)
    await env.change(env.owner, metadata=paused)
    await env.reconcile(changed)
    assert not await env.exists(SET)
    await env.change(env.owner, metadata=running)
    await env.reconcile(changed)
    assert (await env.cluster.get(SET))["spec"]["serviceName"] == "b"


async def test_the_diff_shows_that_dependents_stay(env: Env) -> None:
    await emptied(env, SET)
    await env.reconcile(of(a_stateful_set("a")))
    changed = recreated(a_stateful_set("b"), propagation=Propagation.ORPHAN)
    before = await env.cluster.get(SET)
    (found,) = await diff([changed], await env.owner_manifest(), env.cluster, clock=env.clock)
    assert [(each.verb, each.reasons) for each in found.objects] == [
        (
            "delete",
            (
                "spec.serviceName: changed",
                "to be created again, because a changed field is immutable; its dependents are kept",
            ),
        )
    ]
    assert await env.cluster.get(SET) == before
