"""Objects that a component only creates, and objects that it only updates.

Rebuilt from public reports: https://github.com/crossplane-contrib/provider-kubernetes/issues/542 (an object that must
only be updated is created by the apply), https://github.com/kubernetes/client-go/issues/1346 (an apply after a deletion
creates the object again), https://github.com/crossplane/crossplane-runtime/issues/681 and
https://github.com/crossplane-contrib/provider-kubernetes/issues/115 (a few fields of what another tool makes),
https://github.com/kubernetes-sigs/controller-runtime/issues/1585 and https://github.com/keycloak/keycloak/issues/22183
(create, and never touch again), https://github.com/cloudnative-pg/cloudnative-pg/issues/10988 (created already, with a
stale cache), https://github.com/operator-framework/java-operator-sdk/issues/3124 (an object that two owners share).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import pytest

from ocf import component
from ocf.cluster import Verb
from ocf.component import Adoption, Component, Finalizer, Writes, diff, finalize, reconciling
from ocf.component.apply.initial_values import CREATED_ONLY
from ocf.component.status.results import Action
from ocf.concepts.recorder import Why
from ocf.errors import BuildError, ReconcileError
from ocf.feature import BooleanGate
from ocf.objects import Manifest, ObjectKey, copy_json
from ocf.objects.managed_fields import ManagedFields
from ocf.primitives import clusterrole, configmap, deployment, hpa, job
from ocf.testing import FaultyCluster, crash_at_each_write, faults
from ocf_server import CustomKind, EmbeddedCluster
from tests.component.apply.test_adoption import adopted
from tests.component.apply.test_takeover import managers, reconcile

if TYPE_CHECKING:
    from collections.abc import Callable

    from ocf.cluster import Cluster
    from tests.component.conftest import Env, StaticKind

SETTINGS: Final = ObjectKey("v1", "ConfigMap", "settings", "shop")
VIEWER: Final = ObjectKey("rbac.authorization.k8s.io/v1", "ClusterRole", "viewer")
SHOP: Final = {"apiVersion": "example.com/v1", "kind": "Shop", "metadata": {"name": "demo", "namespace": "shop"}}


def of(
    *resources: Any, suspended: bool = False, prune: bool = False, gate: BooleanGate | None = None, **options: Any
) -> Component:
    builder = component.Builder("web", condition_type="WebReady").suspend(suspended).with_feature_gate(gate)
    builder = builder.with_prune() if prune else builder
    for resource in resources:
        builder.with_resource(resource, **options)
    return builder.build()


def created(*resources: Any, **options: Any) -> Component:
    return of(*resources, writes=Writes.CREATE_ONLY, **options)


def labelled(name: str = "settings", **labels: str) -> configmap.Builder:
    return configmap.Builder({"metadata": {"name": name, "namespace": "shop", "labels": labels or {"team": "a"}}})


def updated(*resources: Any, **options: Any) -> Component:
    return of(*resources, writes=Writes.UPDATE_ONLY, **options)


def _named(owner: Manifest) -> dict[str, str]:
    return {name: owner["metadata"][name] for name in ("name", "uid")}


async def writes_of(env: Env, made: Component) -> int:
    env.cluster.requests.clear()
    await env.reconcile(made)
    return env.cluster.requests.writes


async def outcomes(env: Env, made: Component) -> list[tuple[Action, Why | None]]:
    return [(one.action, one.why) for one in (await env.reconcile(made)).outcomes]


async def data(env: Env) -> dict[str, str]:
    found: dict[str, str] = (await env.cluster.get(SETTINGS))["data"]
    return found


async def labels(env: Env, key: ObjectKey = SETTINGS) -> dict[str, str]:
    """Return the labels of an object without the one by which it is found for its owner."""
    found = (await env.cluster.get(key))["metadata"].get("labels") or {}
    return {name: value for name, value in found.items() if "/for-" not in name}


class TestCreateOnly:
    async def test_the_object_is_created_once_and_owned(self, env: Env, config_map: Callable[..., StaticKind]) -> None:
        made = created(config_map(a="1"))
        result = await env.reconcile(made)
        assert [(one.action, one.writes) for one in result.outcomes] == [(Action.CREATED, 2)]
        assert await env.owners(SETTINGS) == ["demo"]
        assert await writes_of(env, made) == 0

    async def test_it_is_left_as_it_is(self, env: Env, config_map: Callable[..., StaticKind]) -> None:
        await env.reconcile(created(config_map(a="1")))
        await env.change(SETTINGS, data={"a": "theirs"}, metadata={"labels": {"x": "y"}})
        assert await writes_of(env, created(config_map(a="2", b="3"))) == 0
        assert await data(env) == {"a": "theirs"}

    async def test_no_other_apply_conflicts(self, env: Env, config_map: Callable[..., StaticKind]) -> None:
        await env.reconcile(created(config_map(a="1")))
        manifest = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings", "namespace": "shop"}}
        await env.cluster.apply({**manifest, "data": {"a": "gitops"}}, field_manager="gitops")
        assert await data(env) == {"a": "gitops"}
        assert await writes_of(env, created(config_map(a="1"))) == 0

    async def test_a_deleted_object_is_created_again(self, env: Env, config_map: Callable[..., StaticKind]) -> None:
        await env.reconcile(created(config_map(a="1")))
        await env.cluster.delete(SETTINGS)
        await env.reconcile(created(config_map(a="2")))
        assert await data(env) == {"a": "2"}

    async def test_its_health_counts(self, env: Env, web: deployment.Resource) -> None:
        await env.reconcile(created(web))
        assert (await env.condition())["reason"] == "Creating"
        await env.run(1)
        await env.reconcile(created(web))
        assert (await env.condition())["reason"] == "Healthy"

    async def test_an_object_that_exists_is_rendered_no_more(self, env: Env) -> None:
        """What it was made of may be gone."""
        sizes = ["3"]
        base = {"metadata": {"name": "settings", "namespace": "shop"}}
        sized = configmap.Mutation("size", lambda m: m.ensure_entry("size", sizes.pop()))
        made = created(configmap.Builder(base).with_mutation(sized))
        await env.reconcile(made)
        assert await writes_of(env, made) == 0
        assert await data(env) == {"size": "3"}

    @pytest.mark.parametrize("owner", [True, False], ids=["of another owner", "of a user"])
    async def test_the_object_of_another_writer_is_used_as_it_is(
        self, env: Env, config_map: Callable[..., StaticKind], *, owner: bool
    ) -> None:
        references = [await env.other_owner()] if owner else []
        before = await env.create(SETTINGS, data={"a": "theirs"}, metadata={"ownerReferences": references})
        made = created(config_map(a="1"))
        events = await reconcile(env, made)
        assert await outcomes(env, made) == [(Action.UNCHANGED, Why.IN_SYNC)]
        assert adopted(events) == []
        assert await env.cluster.get(SETTINGS) == before
        assert (await env.condition())["reason"] == "Healthy"
        await env.reconcile(of(config_map(a="1"), delete_when=True))
        assert await env.cluster.get(SETTINGS) == before

    @pytest.mark.parametrize("adoption", [Adoption.NEVER, Adoption.LABELLED])
    async def test_a_policy_of_adoption_blocks(
        self, env: Env, config_map: Callable[..., StaticKind], adoption: Adoption
    ) -> None:
        await env.create(SETTINGS, data={"a": "theirs"})
        await env.reconcile(created(config_map(a="1"), adopt=adoption))
        assert (await env.condition())["reason"] == "Blocked"

    async def test_a_foreign_controller_blocks_on_request(
        self, env: Env, config_map: Callable[..., StaticKind]
    ) -> None:
        await env.create(SETTINGS, metadata={"ownerReferences": [await env.other_owner()]})
        await env.reconcile(created(config_map(a="1"), block_on_foreign_controller=True))
        assert (await env.condition())["reason"] == "Blocked"

    async def test_the_sharer_creates_it_after_its_owner_has_deleted_it(
        self, env: Env, config_map: Callable[..., StaticKind]
    ) -> None:
        await env.create(SETTINGS, metadata={"ownerReferences": [await env.other_owner()]})
        await env.reconcile(created(config_map(a="1")))
        await env.cluster.delete(SETTINGS)
        await env.reconcile(created(config_map(a="1")))
        assert await env.owners(SETTINGS) == ["demo"]

    @pytest.mark.parametrize(
        "how",
        [{"delete_when": True}, {"gated_by": BooleanGate(False)}, {"gate": BooleanGate(False)}],
        ids=["delete_when", "a closed gate", "a disabled component"],
    )
    async def test_it_is_deleted_with_the_component(
        self, env: Env, config_map: Callable[..., StaticKind], how: dict[str, Any]
    ) -> None:
        await env.reconcile(created(config_map(a="1")))
        await env.reconcile(created(config_map(a="1"), **how))
        assert not await env.exists(SETTINGS)

    async def test_it_is_pruned(self, env: Env, config_map: Callable[..., StaticKind]) -> None:
        await env.reconcile(created(config_map(a="1"), config_map("other")))
        await env.reconcile(created(config_map("other"), prune=True))
        assert not await env.exists(SETTINGS)

    async def test_it_can_be_orphaned(self, env: Env, config_map: Callable[..., StaticKind]) -> None:
        await env.reconcile(created(config_map(a="1")))
        await env.reconcile(of(config_map(a="1"), orphan_when=True))
        assert await env.owners(SETTINGS) == []

    async def test_a_cluster_scoped_object_goes_with_its_owner(self, env: Env, cluster_role: StaticKind) -> None:
        made = created(cluster_role)
        process = env.process()
        await process.reconcile(made)
        live = await env.cluster.get(VIEWER)
        assert live["metadata"]["annotations"] == {CREATED_ONLY: "true"}
        assert await process.reconcile(made)
        before = process.writes
        await process.reconcile(made)
        assert process.writes == before
        await env.cluster.delete(env.owner)
        await process.reconcile(made)
        assert not await env.exists(VIEWER)

    async def test_an_unowned_object_outlives_its_owner_reference(
        self, env: Env, config_map: Callable[..., StaticKind]
    ) -> None:
        made = created(config_map(a="1"), unowned=True)
        await env.reconcile(made)
        assert await env.owners(SETTINGS) == []
        assert await writes_of(env, made) == 0

    async def test_an_applied_object_becomes_one_that_is_only_created(
        self, env: Env, config_map: Callable[..., StaticKind]
    ) -> None:
        await env.reconcile(of(config_map(a="1", b="2")))
        made = created(config_map(a="2"))
        await env.reconcile(made)
        assert await data(env) == {"a": "1", "b": "2"}
        live = await env.cluster.get(SETTINGS)
        assert list(ManagedFields.of(live).owners_of(("data", "a"))) == []
        assert await writes_of(env, made) == 0
        await env.reconcile(of(config_map(a="3")))
        assert (await data(env))["a"] == "3"

    async def test_the_object_of_an_earlier_owner_is_kept_with_its_content(
        self, env: Env, config_map: Callable[..., StaticKind]
    ) -> None:
        """As after a restore from a backup: with the reference to the earlier owner, it would be collected."""
        earlier = {"apiVersion": "example.com/v1", "kind": "Shop", "name": "demo", "uid": "earlier", "controller": True}
        metadata = {"name": "settings", "namespace": "shop", "ownerReferences": [earlier]}
        manifest = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}
        await env.cluster.apply(manifest, field_manager="ocf/Shop/web/earlier")
        await env.change(SETTINGS, data={"a": "theirs"})
        await env.reconcile(created(config_map(a="1")))
        live = await env.cluster.get(SETTINGS)
        uid = (await env.owner_manifest())["metadata"]["uid"]
        assert [one["uid"] for one in live["metadata"]["ownerReferences"]] == [uid]
        assert live["data"] == {"a": "theirs"}

    async def test_a_suspension_leaves_it_as_it_is(self, env: Env, web_base: Manifest) -> None:
        base = copy_json(web_base)
        base["spec"]["replicas"] = 3
        web = deployment.Builder(base)
        await env.reconcile(created(web, suspended=True))
        assert not await env.exists(env.web)
        await env.reconcile(created(web))
        await env.reconcile(created(web, suspended=True))
        assert (await env.condition())["reason"] == "Suspended"
        assert await env.replicas() == 3

    @pytest.mark.parametrize(
        "fault",
        [
            pytest.param(faults.lost_reply(kind="ConfigMap", verbs=[Verb.CREATE], times=1), id="lost answer"),
            pytest.param(
                faults.server_error(kind="ConfigMap", verbs=[Verb.PATCH], times=1), id="ownership not changed"
            ),
        ],
    )
    async def test_an_interrupted_creation_is_completed(
        self, env: Env, config_map: Callable[..., StaticKind], fault: faults.Fault
    ) -> None:
        old = faults.stale(versions=2, kind="ConfigMap", verbs=[Verb.GET], first=2)
        cluster = FaultyCluster(env.cluster, [fault, old])
        made = created(config_map(a="1", b="2"))
        with pytest.raises(ReconcileError):
            await reconcile(env, made, cluster=cluster)
        await reconcile(env, created(config_map(a="2")), cluster=cluster)
        await env.reconcile(made)
        assert await data(env) == {"a": "1", "b": "2"}
        assert set(await managers(env, SETTINGS)) == {("ocf/Shop/web", "Apply")}
        assert await writes_of(env, made) == 0

    async def test_what_appears_before_the_create_is_left(
        self, env: Env, config_map: Callable[..., StaticKind]
    ) -> None:
        async def create() -> None:
            await env.create(SETTINGS, data={"a": "theirs"})

        first = faults.meanwhile(create, kind="ConfigMap", verbs=[Verb.CREATE], times=1)
        await reconcile(env, created(config_map(a="1")), cluster=FaultyCluster(env.cluster, [first]))
        assert await data(env) == {"a": "theirs"}
        assert await env.owners(SETTINGS) == []

    async def test_a_rollout_does_not_take_what_is_not_ours_for_a_change(self, env: Env, web_base: Manifest) -> None:
        """It would wait for the next member, and use up what may be unavailable."""
        other = copy_json(web_base)
        other["metadata"]["name"] = "other"
        await env.create(env.web, spec=web_base["spec"])
        await env.run(1)
        await env.create(ObjectKey("apps/v1", "Deployment", "other", "shop"), spec=web_base["spec"])
        builder = component.Builder("web", condition_type="WebReady")
        members = [deployment.Builder(other), deployment.Builder(web_base)]
        made = builder.with_rollout(members, max_unavailable=1, writes=Writes.CREATE_ONLY).build()
        assert [why for _, why in await outcomes(env, made)] == [Why.NOT_OURS, Why.NOT_OURS]

    async def test_a_held_object_is_held_and_released(self, env: Env, config_map: Callable[..., StaticKind]) -> None:
        async def on_delete(_context: Any) -> None:
            assert await env.exists(SETTINGS)

        made, process = created(config_map(a="1"), held_for_cleanup=True), env.process()
        finalizer = Finalizer(on_delete=on_delete)
        await process.reconcile(made, finalizer=finalizer)
        assert (await env.cluster.get(SETTINGS))["metadata"]["finalizers"]
        await process.reconcile(made, finalizer=finalizer)
        before = process.writes
        await process.reconcile(made, finalizer=finalizer)
        assert process.writes == before
        await env.cluster.delete(SETTINGS)
        await process.reconcile(made, finalizer=finalizer)
        await process.reconcile(made, finalizer=finalizer)
        assert (await env.cluster.get(SETTINGS))["metadata"].get("deletionTimestamp") is None

    async def test_a_diff_reports_no_drift(self, env: Env, config_map: Callable[..., StaticKind]) -> None:
        made = created(config_map(a="1"))
        (before,) = await diff([made], await env.owner_manifest(), env.cluster)
        assert [(each.verb, (each.after or {})["data"]) for each in before.objects] == [("create", {"a": "1"})]
        await env.reconcile(made)
        await env.change(SETTINGS, data={"a": "theirs"})
        (found,) = await diff([made], await env.owner_manifest(), env.cluster)
        assert found.is_empty

    async def test_every_disturbance_ends_the_same(self, config_map: Callable[..., StaticKind]) -> None:
        async def new_cluster() -> EmbeddedCluster:
            cluster = EmbeddedCluster(kinds=[CustomKind("example.com", "v1", "Shop")], namespaces=["shop"])
            await cluster.create(SHOP, field_manager="user")
            return cluster

        async def operate(cluster: Cluster) -> None:
            async with reconciling(await cluster.get(ObjectKey.of(SHOP)), cluster) as context:
                await finalize(context)
                await created(config_map(a="1"), config_map("other"), unowned=True).reconcile(context)

        report = await crash_at_each_write(new_cluster, operate)
        report.assert_same()


class TestUpdateOnly:
    async def test_declared_fields_are_applied_to_an_object_that_exists(self, env: Env) -> None:
        await env.create(SETTINGS, data={"a": "1"}, metadata={"labels": {"team": "b", "x": "y"}})
        made = updated(labelled())
        assert (await outcomes(env, made))[0][0] is Action.UPDATED
        live = await env.cluster.get(SETTINGS)
        assert (await labels(env), live["data"]) == ({"team": "a", "x": "y"}, {"a": "1"})
        assert await env.owners(SETTINGS) == []
        assert await writes_of(env, made) == 0
        await env.change(SETTINGS, metadata={"labels": {"team": "c"}})
        await env.reconcile(made)
        assert (await labels(env))["team"] == "a"
        await env.reconcile(updated(labelled(stage="x")))
        assert await labels(env) == {"stage": "x", "x": "y"}

    async def test_an_object_that_is_deleted_before_the_apply_is_not_created(self, env: Env) -> None:
        await env.create(SETTINGS)
        gone = faults.meanwhile(lambda: env.cluster.delete(SETTINGS), kind="ConfigMap", verbs=[Verb.APPLY], times=1)
        made = updated(labelled(), ignore_if_absent=True)
        await reconcile(env, made, cluster=FaultyCluster(env.cluster, [gone]))
        assert not await env.exists(SETTINGS)

    async def test_a_stale_read_does_not_create_it(self, env: Env) -> None:
        await env.create(SETTINGS)
        cluster = FaultyCluster(env.cluster, [faults.stale(versions=1, kind="ConfigMap", verbs=[Verb.GET], first=2)])
        made = updated(labelled(), ignore_if_absent=True)
        await reconcile(env, made, cluster=cluster)
        await env.cluster.delete(SETTINGS)
        await reconcile(env, updated(labelled(stage="x"), ignore_if_absent=True), cluster=cluster)
        assert not await env.exists(SETTINGS)

    async def test_an_autoscaler_that_is_only_labelled_scales_nothing_of_the_component(
        self, env: Env, web: deployment.Resource, hpa_base: Manifest
    ) -> None:
        await env.create(env.hpa, spec=hpa_base["spec"])
        builder = component.Builder("web", condition_type="WebReady").with_resource(web)
        scaler = hpa.Builder({"metadata": {"name": "web", "namespace": "shop", "labels": {"a": "b"}}})
        await env.reconcile(builder.with_resource(scaler, writes=Writes.UPDATE_ONLY).build())
        assert await labels(env, env.hpa) == {"a": "b"}

    @pytest.mark.parametrize("kind", [deployment, job], ids=["Deployment", "Job"])
    async def test_metadata_suffices_for_every_kind(self, env: Env, web_base: Manifest, kind: Any) -> None:
        key = ObjectKey(kind.Builder.kind.api_version, kind.Builder.kind.name, "web", "shop")
        spec = copy_json(web_base["spec"])
        if kind is job:
            spec = {"template": spec["template"]}
            spec["template"]["spec"]["restartPolicy"] = "Never"
        await env.create(key, spec=spec)
        metadata = {"name": "web", "namespace": "shop", "annotations": {"a": "b"}}
        await env.reconcile(updated(kind.Builder({"metadata": metadata})))
        assert (await env.cluster.get(key))["metadata"]["annotations"]["a"] == "b"

    async def test_labels_of_the_component_are_not_added(self, env: Env) -> None:
        await env.create(SETTINGS)
        builder = component.Builder("web", condition_type="WebReady", owner=env.owner).with_labels({"mine": "1"})
        await env.reconcile(builder.with_resource(labelled(), writes=Writes.UPDATE_ONLY).build())
        assert await labels(env) == {"team": "a"}

    async def test_a_cluster_scoped_object_of_others_stays_when_the_owner_goes(
        self, env: Env, cluster_role: StaticKind
    ) -> None:
        """Beside another object of the kind, which the component deletes with its owner."""
        other = ObjectKey(VIEWER.api_version, VIEWER.kind, "other")
        await env.create(other)
        builder = component.Builder("web", condition_type="WebReady").with_resource(cluster_role)
        theirs = clusterrole.Builder({"metadata": {"name": "other", "labels": {"a": "b"}}})
        builder.with_resource(theirs, writes=Writes.UPDATE_ONLY)
        made, process = builder.build(), env.process()
        await process.reconcile(made)
        assert await labels(env, other) == {"a": "b"}
        await env.cluster.delete(env.owner)
        await process.reconcile(made)
        assert (await env.exists(VIEWER), await labels(env, other)) == (False, {})

    async def test_a_suspension_leaves_it_as_it_is(self, env: Env, web_base: Manifest) -> None:
        await env.create(env.web, spec={**web_base["spec"], "replicas": 3})
        web = deployment.Builder({"metadata": {"name": "web", "namespace": "shop", "labels": {"a": "b"}}})
        await env.reconcile(updated(web))
        await env.reconcile(updated(web, suspended=True))
        assert (await env.condition())["reason"] == "Suspended"
        assert await env.replicas() == 3

    @pytest.mark.parametrize("ours", [True, False], ids=["refers to the owner", "refers to no owner"])
    @pytest.mark.parametrize("way", ["suspended", "delete_when", "another scaler"])
    async def test_a_scaler_of_others_is_never_deleted(
        self, env: Env, web: deployment.Resource, hpa_base: Manifest, *, way: str, ours: bool
    ) -> None:
        """Scalers of the component are deleted before all other resources, and by a suspension."""
        references = [{**(await env.other_owner()), "controller": False}]
        if ours:
            owner = await env.owner_manifest()
            references = [{"apiVersion": owner["apiVersion"], "kind": owner["kind"], **_named(owner)}]
        made = await env.create(env.hpa, spec=hpa_base["spec"], metadata={"ownerReferences": references})
        theirs = copy_json(hpa_base)
        theirs["metadata"]["labels"] = {"a": "b"}

        def with_scalers(*, last: bool) -> Component:
            builder = component.Builder("web", condition_type="WebReady").with_resource(web)
            options: dict[str, Any] = {"delete_when": last and way != "suspended"}
            builder.with_resource(hpa.Builder(theirs), writes=Writes.UPDATE_ONLY, **options)
            if last and way == "another scaler":
                other = copy_json(hpa_base)
                other["metadata"]["name"] = "other"
                builder.with_resource(hpa.Builder(other))
            return builder.suspend(last and way == "suspended").build()

        await env.reconcile(with_scalers(last=False))
        assert await labels(env, env.hpa) == {"a": "b"}
        await env.reconcile(with_scalers(last=True))
        live = await env.cluster.get(env.hpa)
        assert live["metadata"]["uid"] == made["metadata"]["uid"]
        assert live["spec"]["scaleTargetRef"] == made["spec"]["scaleTargetRef"]
        assert await labels(env, env.hpa) == ({"a": "b"} if way == "suspended" else {})
        assert (await env.condition())["reason"] != "Error"

    async def test_a_diff_does_not_create_it(self, env: Env) -> None:
        made = updated(labelled(), ignore_if_absent=True)
        (before,) = await diff([made], await env.owner_manifest(), env.cluster)
        await env.create(SETTINGS)
        (after,) = await diff([made], await env.owner_manifest(), env.cluster)
        assert (before.is_empty, [str(each.verb) for each in after.objects]) == (True, ["update"])


class TestDeclarations:
    @pytest.mark.parametrize(
        ("options", "problem"),
        [
            pytest.param({"writes": "create-only", "read_only": True}, "read_only", id="created, read"),
            pytest.param({"writes": "create-only", "on_conflict": "fail"}, "on_conflict", id="created, conflicts"),
            pytest.param({"writes": "create-only", "set_once": ["data"]}, "set_once", id="created, set once"),
            pytest.param(
                {"writes": "create-only", "recreate_on_immutable_change": True},
                "recreate_on_immutable_change",
                id="created, recreated",
            ),
            pytest.param(
                {"writes": "create-only", "recreate_when_changed": ["data"]},
                "recreate_when_changed",
                id="created, recreated by name",
            ),
            pytest.param({"writes": "sometimes"}, "writes must be one of all, create-only, update-only", id="unknown"),
            pytest.param({"set_once": "data"}, "set_once must be a list of fields", id="a text"),
            pytest.param({"set_once": ["data"], "read_only": True}, "set_once is mutually", id="set once, read"),
            pytest.param(
                {"set_once": ["data.a"], "ignore_fields": ["data"]},
                'set_once has "data.a" and ignore_fields has "data"',
                id="ignored and set once",
            ),
        ],
    )
    def test_options_that_exclude_each_other(self, options: dict[str, Any], problem: str) -> None:
        with pytest.raises(BuildError) as raised:
            of(labelled(), **options)
        assert any(problem in each for each in raised.value.problems)

    @pytest.mark.parametrize("writes", ["create-only", "update-only"])
    def test_a_run_once_is_written_as_it_needs(self, writes: str) -> None:
        base = {"metadata": {"name": "a", "namespace": "shop"}}
        pod = {"restartPolicy": "Never", "containers": [{"name": "a", "image": "a"}]}
        runs = job.Builder({**base, "spec": {"template": {"spec": pod}}}).run_once("1")
        with pytest.raises(BuildError, match="mutually exclusive with run_once"):
            of(runs, writes=writes)

    @pytest.mark.parametrize("writes", list(Writes))
    def test_all_are_rendered_for_a_preview(self, writes: Writes) -> None:
        made = of(labelled(), writes=writes)
        assert [each["metadata"]["labels"] for each in made.render()] == [{"team": "a"}]
        assert [each.metadata.labels for each in made.preview()] == [{"team": "a"}]
        assert [str(each.field("metadata.labels.team").source) for each in made.explain()] == ["base"]
