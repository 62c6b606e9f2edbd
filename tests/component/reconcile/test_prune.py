"""Deletion, orphaning and pruning: only existing objects of ours, in the version that was read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from ocf import component
from ocf.cluster import Cluster, Verb
from ocf.cluster.cache import CachedCluster
from ocf.cluster.cache.serialization import CacheEntry, unpack
from ocf.component import Component, reconciling
from ocf.component.status.results import Action
from ocf.concepts import GuardStatus, StatusReport
from ocf.errors import BuildError, ConflictError, ReconcileError, ServerError
from ocf.feature import BooleanGate
from ocf.objects import Manifest, ObjectKey
from ocf.primitives import configmap, deployment, hpa
from ocf_server import CustomKind, EmbeddedCluster

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.component.conftest import Env, StaticKind

SETTINGS = ObjectKey("v1", "ConfigMap", "settings", "shop")
VIEWER = ObjectKey("rbac.authorization.k8s.io/v1", "ClusterRole", "viewer")
OTHER = {"apiVersion": "v1", "kind": "ConfigMap", "name": "other", "uid": "c0ffee", "controller": True}
DELETE: dict[str, Any] = {"delete_when": True}
ORPHAN: dict[str, Any] = {"orphan_when": True}


def of(*resources: Any, name: str = "web", suspended: bool = False, **options: Any) -> Component:
    """Build a component; the options are those of every resource."""
    builder = component.Builder(name, condition_type="WebReady").suspend(suspended)
    for resource in resources:
        builder.with_resource(resource, **options)
    return builder.build()


class Interfering:
    """A cluster that calls a hook before chosen requests; the hook may raise to fail them."""

    def __init__(self, cluster: Cluster, **before: Any) -> None:
        self._cluster = cluster
        self._before = before

    def __getattr__(self, name: str) -> Any:
        done = getattr(self._cluster, name)
        if name not in self._before:
            return done

        async def interfered(*args: Any, **options: Any) -> Any:
            await self._before[name](*args)
            return await done(*args, **options)

        return interfered


async def one_pass(env: Env, subject: Component, **before: Any) -> component.Result:
    cluster: Any = Interfering(env.cluster, **before)
    async with reconciling(await env.owner_manifest(), cluster, clock=env.clock) as context:
        return await subject.reconcile(context)


async def reject(key: ObjectKey, *_: Any) -> None:
    raise ServerError(f"no {key.name} today")


class TestDeleting:
    async def test_an_existing_object_of_ours(self, env: Env, config_map: Callable[..., StaticKind]) -> None:
        await env.reconcile(of(config_map().build()))
        result = await env.reconcile(of(config_map().build(), **DELETE))
        assert (result.outcomes[0].action, result.writes) == (Action.DELETED, 1)
        assert not await env.exists(SETTINGS)

    async def test_an_absent_object_costs_no_write(self, env: Env, config_map: Callable[..., StaticKind]) -> None:
        subject = of(config_map().build(), **DELETE)
        await env.reconcile(subject)
        env.cluster.requests.clear()
        result = await env.reconcile(subject)
        assert (result.outcomes[0].action, env.cluster.requests.writes) == (Action.ABSENT, 0)

    async def test_an_object_that_is_being_deleted_is_not_deleted_again(
        self, env: Env, config_map: Callable[..., StaticKind]
    ) -> None:
        await env.reconcile(of(config_map().build()))
        await env.change(SETTINGS, metadata={"finalizers": ["example.com/hold"]})
        results = [await env.reconcile(of(config_map().build(), **DELETE)) for _ in range(2)]
        assert [result.outcomes[0].action for result in results] == [Action.DELETED, Action.UNCHANGED]
        assert len(env.cluster.requests.of(Verb.DELETE)) == 1

    async def test_a_foreign_object_is_kept(self, env: Env, config_map: Callable[..., StaticKind]) -> None:
        live = await env.create(SETTINGS, data={"a": "1"})
        result = await env.reconcile(of(config_map().build(), **DELETE))
        assert (result.outcomes[0].action, result.outcomes[0].reason_texts) == (Action.KEPT, ("not ours",))
        assert await env.cluster.get(SETTINGS) == live

    async def test_an_object_with_another_controller_is_kept(
        self, env: Env, config_map: Callable[..., StaticKind]
    ) -> None:
        """Also if we applied it, and whatever the options."""
        await env.reconcile(of(config_map().build(), unowned=True))
        await env.change(SETTINGS, metadata={"ownerReferences": [await env.other_owner()]})
        result = await env.reconcile(of(config_map().build(), **DELETE))
        assert (result.outcomes[0].action, result.outcomes[0].reason_texts) == (
            Action.KEPT,
            ("controlled by Shop other",),
        )
        assert await env.exists(SETTINGS)

    async def test_an_object_with_only_another_owner_is_kept(
        self, env: Env, config_map: Callable[..., StaticKind]
    ) -> None:
        """An object of another owner is not ours, even if we applied it once."""
        await env.reconcile(of(config_map().build(), unowned=True))
        reference = await env.other_owner() | {"controller": False}
        await env.change(SETTINGS, metadata={"ownerReferences": [reference]})
        assert (await env.reconcile(of(config_map().build(), **DELETE))).outcomes[0].action is Action.KEPT

    async def test_an_object_with_our_owner_is_ours_whatever_its_manager(
        self, env: Env, config_map: Callable[..., StaticKind]
    ) -> None:
        owner = await env.owner_manifest()
        named = {"apiVersion": owner["apiVersion"], "kind": owner["kind"], "name": "demo"}
        reference = named | {"uid": owner["metadata"]["uid"], "controller": True}
        await env.create(SETTINGS, metadata={"ownerReferences": [reference]})
        await env.reconcile(of(config_map().build(), **DELETE))
        assert not await env.exists(SETTINGS)

    async def test_an_unowned_object_is_ours_by_its_field_manager(
        self, env: Env, config_map: Callable[..., StaticKind]
    ) -> None:
        await env.reconcile(of(config_map().build(), unowned=True))
        await env.reconcile(of(config_map().build(), unowned=True, **DELETE))
        assert not await env.exists(SETTINGS)

    async def test_only_the_version_that_was_read(self, env: Env, config_map: Callable[..., StaticKind]) -> None:
        """An object that another client goes on changing is kept, after a few tries."""
        await env.reconcile(of(config_map().build()))
        changes: list[int] = []

        async def change(*_: Any) -> None:
            changes.append(1)
            await env.change(SETTINGS, data={"meanwhile": str(len(changes))})

        with pytest.raises(
            ReconcileError, match="failed to delete resource v1/ConfigMap/shop/settings as observed: "
        ) as caught:
            await one_pass(env, of(config_map().build(), **DELETE), delete=change)
        assert isinstance(caught.value.__cause__, ConflictError)
        assert caught.value.resource == "v1/ConfigMap/shop/settings"
        assert await env.exists(SETTINGS)
        assert (await env.condition())["reason"] == "Error"
        assert len(changes) == 5

    @pytest.mark.parametrize(
        ("change", "action"),
        [
            pytest.param({"data": {"meanwhile": "1"}}, Action.DELETED, id="its content"),
            pytest.param({"metadata": {"ownerReferences": [OTHER]}}, Action.KEPT, id="its owner"),
        ],
    )
    async def test_an_object_that_was_changed_meanwhile_is_judged_again(
        self, env: Env, config_map: Callable[..., StaticKind], change: Manifest, action: Action
    ) -> None:
        await env.reconcile(of(config_map().build()))
        changes = [change]

        async def once(*_: Any) -> None:
            if changes:
                await env.change(SETTINGS, **changes.pop())

        result = await one_pass(env, of(config_map().build(), **DELETE), delete=once)
        assert result.outcomes[0].action is action
        assert await env.exists(SETTINGS) is (action is Action.KEPT)

    @pytest.mark.promise("delete-ours")
    async def test_no_new_object_of_the_same_name(self, env: Env, config_map: Callable[..., StaticKind]) -> None:
        await env.reconcile(of(config_map().build()))

        async def replace(*_: Any) -> None:
            await env.cluster.delete(SETTINGS)
            await env.create(SETTINGS)

        with pytest.raises(ReconcileError, match="as observed"):
            await one_pass(env, of(config_map().build(), **DELETE), delete=replace)
        assert await env.exists(SETTINGS)

    async def test_an_object_that_is_deleted_meanwhile_is_not_an_error(
        self, env: Env, config_map: Callable[..., StaticKind]
    ) -> None:
        await env.reconcile(of(config_map().build()))
        await one_pass(env, of(config_map().build(), **DELETE), delete=env.cluster.delete)
        assert not await env.exists(SETTINGS)

    async def test_every_object_is_tried_and_the_errors_collected(
        self, env: Env, config_map: Callable[..., StaticKind]
    ) -> None:
        doomed = [config_map(name).build() for name in ("a", "b", "settings")]
        kept = config_map("kept").build()
        await env.reconcile(of(*doomed, kept))

        async def refuse_two(key: ObjectKey, _options: object) -> None:
            if key.name in "ab":
                await reject(key)

        builder = component.Builder("web", condition_type="WebReady").with_resource(kept, orphan_when=True)
        for one in doomed:
            builder.with_resource(one, delete_when=True)
        with pytest.raises(ReconcileError) as caught:
            await one_pass(env, builder.build(), delete=refuse_two)
        assert caught.value.problem == (
            "failed to delete resource v1/ConfigMap/shop/a: no a today; "
            "failed to delete resource v1/ConfigMap/shop/b: no b today"
        )
        assert isinstance(caught.value.__cause__, ExceptionGroup)
        assert not await env.exists(SETTINGS)
        assert await env.owners(ObjectKey("v1", "ConfigMap", "kept", "shop")) == []
        condition = await env.condition()
        assert (condition["status"], condition["reason"]) == ("False", "Error")

    async def test_comes_after_the_other_resources_were_applied(
        self, env: Env, web: deployment.Resource, config_map: Callable[..., StaticKind]
    ) -> None:
        await env.reconcile(of(config_map().build()))
        env.cluster.requests.clear()
        builder = component.Builder("web", condition_type="WebReady").with_resource(config_map().build(), **DELETE)
        await env.reconcile(builder.with_resource(web).build())
        assert [request.verb for request in env.cluster.requests.of(Verb.APPLY, Verb.DELETE)] == ["apply", "delete"]

    async def test_happens_also_behind_a_blocked_resource_and_while_suspended(
        self, env: Env, web_base: Manifest, config_map: Callable[..., StaticKind]
    ) -> None:
        blocked = StatusReport(GuardStatus.BLOCKED, "not yet")
        guarded = deployment.Builder(web_base).with_guard(lambda _base: blocked).build()
        for suspended in (False, True):
            await env.reconcile(of(config_map().build()))
            builder = component.Builder("web", condition_type="WebReady").suspend(suspended).with_resource(guarded)
            await env.reconcile(builder.with_resource(config_map().build(), **DELETE).build())
            assert not await env.exists(SETTINGS)

    async def test_a_kind_that_is_not_served_has_nothing_to_delete(self, env: Env) -> None:
        class Unserved:
            key = ObjectKey("example.com/v9", "Gone", "x", "shop")
            identity = str(key)

            def render(self, **_: Any) -> Manifest:
                raise AssertionError("rendered")

        assert (await env.reconcile(of(Unserved(), **DELETE))).outcomes[0].action is Action.ABSENT


class TestClusterScoped:
    async def test_is_applied_without_an_owner_and_deleted_by_its_field_manager(
        self, env: Env, cluster_role: StaticKind
    ) -> None:
        resource = cluster_role.build()
        await env.reconcile(of(resource))
        assert await env.owners(VIEWER) == []
        assert (await env.reconcile(of(resource))).writes == 0
        gate = BooleanGate(False)
        await env.reconcile(of(resource, gated_by=gate))
        assert not await env.exists(VIEWER)

    async def test_without_fields_it_is_in_sync_but_not_known_to_be_ours(self, env: Env, bare_role: StaticKind) -> None:
        """The server keeps no entry for a field manager that owns no field."""
        await env.reconcile(of(bare_role.build()))
        assert (await env.reconcile(of(bare_role.build()))).writes == 0
        assert (await env.reconcile(of(bare_role.build(), **DELETE))).outcomes[0].action is Action.KEPT

    @pytest.mark.promise("delete-ours")
    async def test_of_another_user_is_kept(self, env: Env, cluster_role: StaticKind) -> None:
        await env.create(VIEWER)
        assert (await env.reconcile(of(cluster_role.build(), **DELETE))).outcomes[0].action is Action.KEPT

    async def test_of_another_component_is_kept(self, env: Env, cluster_role: StaticKind) -> None:
        await env.reconcile(of(cluster_role.build(), name="other"))
        assert (await env.reconcile(of(cluster_role.build(), **DELETE))).outcomes[0].action is Action.KEPT

    async def test_of_a_cluster_scoped_owner_is_owned(
        self, cluster_role: StaticKind, config_map: Callable[..., StaticKind]
    ) -> None:
        cluster = EmbeddedCluster(
            kinds=[CustomKind("example.com", "v1", "Mall", namespaced=False)], namespaces=["shop"]
        )
        mall = {"apiVersion": "example.com/v1", "kind": "Mall", "metadata": {"name": "demo"}}
        owner = await cluster.create(mall, field_manager="user")
        async with reconciling(owner, cluster) as context:
            await of(cluster_role.build(), config_map().build()).reconcile(context)
        for key in (VIEWER, SETTINGS):
            (reference,) = (await cluster.get(key))["metadata"]["ownerReferences"]
            assert reference["uid"] == owner["metadata"]["uid"]


class TestOrphaning:
    async def test_removes_only_our_reference_and_the_object_outlives_the_owner(
        self, env: Env, config_map: Callable[..., StaticKind]
    ) -> None:
        await env.reconcile(of(config_map(a="1", b="2").build()))
        ours = (await env.cluster.get(SETTINGS))["metadata"]["ownerReferences"]
        other = await env.other_owner() | {"controller": False}
        await env.change(SETTINGS, metadata={"ownerReferences": [*ours, other], "labels": {"team": "a"}})
        result = await env.reconcile(of(config_map().build(), **ORPHAN))
        live = await env.cluster.get(SETTINGS)
        assert (result.outcomes[0].action, result.writes) == (Action.ORPHANED, 1)
        assert await env.owners(SETTINGS) == ["other"]
        assert (live["data"], live["metadata"]["labels"]) == ({"a": "1", "b": "2"}, {"team": "a"})
        await env.cluster.delete(env.owner)
        assert await env.exists(SETTINGS)

    async def test_once_is_enough(self, env: Env, config_map: Callable[..., StaticKind]) -> None:
        subject = of(config_map().build(), **ORPHAN)
        assert (await env.reconcile(subject)).outcomes[0].action is Action.ABSENT
        await env.reconcile(of(config_map().build()))
        await env.reconcile(subject)
        env.cluster.requests.clear()
        assert (await env.reconcile(subject)).outcomes[0].action is Action.UNCHANGED
        assert env.cluster.requests.writes == 0

    async def test_is_retried_after_a_conflict(self, env: Env, config_map: Callable[..., StaticKind]) -> None:
        await env.reconcile(of(config_map().build()))
        times: list[str] = []

        async def change(*_: Any) -> None:
            if len(times) < 3:
                times.append("again")
                await env.change(SETTINGS, data={"meanwhile": str(len(times))})

        await one_pass(env, of(config_map().build(), **ORPHAN), patch=change)
        live = await env.cluster.get(SETTINGS)
        assert (live["data"]["meanwhile"], await env.owners(SETTINGS)) == ("3", [])

    async def test_endless_conflicts_are_an_error(self, env: Env, config_map: Callable[..., StaticKind]) -> None:
        await env.reconcile(of(config_map().build()))
        times: list[str] = []

        async def change(*_: Any) -> None:
            times.append("again")
            await env.change(SETTINGS, data={"meanwhile": str(len(times))})

        with pytest.raises(ReconcileError, match="failed to orphan resource v1/ConfigMap/shop/settings: "):
            await one_pass(env, of(config_map().build(), **ORPHAN), patch=change)
        assert len(times) == 5

    async def test_an_object_that_is_deleted_meanwhile_is_not_an_error(
        self, env: Env, config_map: Callable[..., StaticKind]
    ) -> None:
        await env.reconcile(of(config_map().build()))

        async def delete(*_: Any) -> None:
            await env.cluster.delete(SETTINGS)

        result = await one_pass(env, of(config_map().build(), **ORPHAN), patch=delete)
        assert result.outcomes[0].action is Action.UNCHANGED

    async def test_every_object_is_tried_and_the_errors_collected(
        self, env: Env, config_map: Callable[..., StaticKind]
    ) -> None:
        names = ("a", "settings")
        await env.reconcile(of(*(config_map(name).build() for name in names)))

        async def refuse_one(key: ObjectKey, *_: Any) -> None:
            if key.name == "a":
                await reject(key)

        with pytest.raises(ReconcileError) as caught:
            await one_pass(env, of(*(config_map(name).build() for name in names), **ORPHAN), patch=refuse_one)
        assert caught.value.problem == "failed to orphan resource v1/ConfigMap/shop/a: no a today"
        assert await env.owners(SETTINGS) == []


def pruning(*resources: Any, name: str = "web", suspended: bool = False, kinds: Any = ()) -> Component:
    builder = component.Builder(name, condition_type="WebReady").with_prune(kinds=kinds).suspend(suspended)
    for resource in resources:
        builder.with_resource(resource)
    return builder.build()


class TestPruning:
    @pytest.fixture
    def pair(self, config_map: Callable[..., StaticKind]) -> list[Any]:
        return [config_map("kept").build(), config_map().build()]

    async def test_deletes_unregistered_objects(self, env: Env, pair: list[Any]) -> None:
        await env.reconcile(pruning(*pair))
        result = await env.reconcile(pruning(pair[0]))
        assert not await env.exists(SETTINGS)
        gone = result.outcomes[-1]
        assert (gone.resource, gone.action, gone.reason_texts) == (
            "v1/ConfigMap/shop/settings",
            Action.DELETED,
            ("no longer registered",),
        )

    async def test_deletes_an_autoscaler_before_its_target(
        self, env: Env, web_base: Manifest, web: deployment.Resource, hpa_base: Manifest, web_hpa: hpa.Resource
    ) -> None:
        def renamed(base: Manifest) -> Manifest:
            return {**base, "metadata": {**base["metadata"], "name": "new"}}

        await env.reconcile(pruning(web, web_hpa))
        new = deployment.Builder(renamed(web_base)).build(), hpa.Builder(renamed(hpa_base)).build()
        await env.reconcile(pruning(*new))
        deleted = [(request.kind, request.name) for request in env.cluster.requests.of(Verb.DELETE)]
        assert deleted == [("HorizontalPodAutoscaler", "web"), ("Deployment", "web")]

    async def test_is_off_by_default(self, env: Env, pair: list[Any]) -> None:
        await env.reconcile(of(*pair))
        await env.reconcile(of(pair[0]))
        assert env.cluster.requests.of(Verb.LIST) == ()
        assert await env.exists(SETTINGS)

    async def test_costs_one_list_per_kind_and_no_write(
        self, env: Env, pair: list[Any], web: deployment.Resource
    ) -> None:
        subject = pruning(*pair, web)
        await env.reconcile(subject)
        env.cluster.requests.clear()
        await env.reconcile(subject)
        assert [request.kind for request in env.cluster.requests.of(Verb.LIST)] == ["ConfigMap", "Deployment"]
        assert env.cluster.requests.writes == 0

    @pytest.mark.promise("pruned-sets", runs="sets that become empty, after a restart")
    @pytest.mark.parametrize("left", [0, 1], ids=["the set is empty", "another kind is left"])
    async def test_deletes_the_last_object_of_a_named_kind(
        self, env: Env, pair: list[Any], web: deployment.Resource, left: int
    ) -> None:
        """The same component, of another process: nothing but the API server knows what it has applied.

        As `kubectl apply --prune`, which kept the last one: https://github.com/kubernetes/kubectl/issues/555 and
        https://github.com/kubernetes/kubernetes/issues/40635.
        """
        kinds = [("v1", "ConfigMap")]
        await env.reconcile(pruning(*pair, web, kinds=kinds))
        rest = [web] if left else []
        (result,) = await env.process().reconcile(pruning(*rest, kinds=kinds))
        assert isinstance(result, component.Result)
        gone = {outcome.resource for outcome in result.outcomes if outcome.action is Action.DELETED}
        assert gone == {"v1/ConfigMap/shop/kept", "v1/ConfigMap/shop/settings"}
        assert not await env.exists(SETTINGS)
        assert await env.exists(env.web)
        assert (await env.reconcile(pruning(*rest, kinds=kinds))).writes == 0

    async def test_of_a_named_kind_keeps_what_is_not_its_own(self, env: Env, pair: list[Any]) -> None:
        await env.reconcile(of(pair[0], name="other"), of(pair[1], unowned=True))
        await env.create(ObjectKey("v1", "ConfigMap", "foreign", "shop"))
        result = await env.reconcile(pruning(kinds=[("v1", "ConfigMap")]))
        assert result.outcomes == ()
        assert await env.exists(SETTINGS)

    @pytest.mark.parametrize(
        "kind",
        [("rbac.authorization.k8s.io/v1", "ClusterRole"), ("missing.example.com/v1", "Missing")],
        ids=["cluster-scoped", "not served"],
    )
    async def test_leaves_out_a_named_kind_that_cannot_refer_to_the_owner(
        self, env: Env, pair: list[Any], kind: tuple[str, str]
    ) -> None:
        result = await env.reconcile(pruning(pair[0], kinds=[kind]))
        assert [outcome.resource for outcome in result.outcomes] == ["v1/ConfigMap/shop/kept"]

    @pytest.mark.parametrize("kinds", ["ConfigMap", [("v1",)], [("v1", 7)], [7], ("v1", "ConfigMap"), None], ids=repr)
    def test_rejects_what_names_no_kind(self, kinds: Any) -> None:
        with pytest.raises(BuildError, match=r'kinds must be pairs such as \("v1", "ConfigMap"\)'):
            pruning(kinds=kinds)

    async def test_keeps_objects_of_another_component(self, env: Env, pair: list[Any]) -> None:
        await env.reconcile(of(pair[1], name="other"))
        await env.reconcile(pruning(pair[0]))
        assert await env.exists(SETTINGS)

    async def test_keeps_objects_without_the_owner(self, env: Env, pair: list[Any]) -> None:
        await env.reconcile(of(pair[1], unowned=True))
        await env.create(ObjectKey("v1", "ConfigMap", "foreign", "shop"))
        result = await env.reconcile(pruning(pair[0]))
        assert [outcome.resource for outcome in result.outcomes] == ["v1/ConfigMap/shop/kept"]
        assert await env.exists(SETTINGS)

    async def test_keeps_objects_of_another_controller(self, env: Env, pair: list[Any]) -> None:
        await env.reconcile(pruning(*pair))
        ours = (await env.cluster.get(SETTINGS))["metadata"]["ownerReferences"][0] | {"controller": False}
        await env.change(SETTINGS, metadata={"ownerReferences": [ours, await env.other_owner()]})
        assert (await env.reconcile(pruning(pair[0]))).outcomes[-1].action is Action.KEPT

    async def test_keeps_read_only_and_orphaned_resources(self, env: Env, pair: list[Any]) -> None:
        await env.reconcile(pruning(*pair))
        builder = component.Builder("web", condition_type="WebReady").with_prune()
        builder.with_resource(pair[0], read_only=True).with_resource(pair[1], orphan_when=True)
        await env.reconcile(builder.build())
        assert await env.exists(SETTINGS)

    async def test_does_not_list_cluster_scoped_kinds(
        self, env: Env, pair: list[Any], cluster_role: StaticKind
    ) -> None:
        await env.reconcile(pruning(pair[0], cluster_role.build()))
        assert [request.kind for request in env.cluster.requests.of(Verb.LIST)] == ["ConfigMap"]

    async def test_waits_while_a_resource_is_blocked_or_the_component_is_suspended(
        self, env: Env, pair: list[Any], config_map: Callable[..., StaticKind]
    ) -> None:
        """Old objects may be needed until the new ones are ready."""
        await env.reconcile(pruning(*pair))
        blocked = StatusReport(GuardStatus.BLOCKED, "not yet")
        await env.reconcile(pruning(config_map("kept").with_guard(lambda _base: blocked).build()))
        await env.reconcile(pruning(pair[0], suspended=True))
        assert await env.exists(SETTINGS)

    @pytest.mark.parametrize("while_blocked", [False, True])
    @pytest.mark.parametrize("place", ["the first", "the last"])
    async def test_may_go_on_while_a_resource_is_blocked(
        self, env: Env, pair: list[Any], config_map: Callable[..., StaticKind], place: str, *, while_blocked: bool
    ) -> None:
        """A failed primary stays for ever if its successor waits for its end.

        What is blocked, and what comes after it, is registered, and stays in any case.
        """
        await env.reconcile(pruning(pair[0], pair[1], config_map("later").build()))
        blocked = StatusReport(GuardStatus.BLOCKED, "the primary has failed")
        guarded = config_map("kept").with_guard(lambda _base: blocked).build()
        later = config_map("later").build()
        builder = component.Builder("web", condition_type="WebReady").with_prune(while_blocked=while_blocked)
        for resource in (guarded, later) if place == "the first" else (later, guarded):
            builder.with_resource(resource)
        subject = builder.build()
        result = await env.reconcile(subject)
        assert [str(one.action) for one in result.outcomes].count("Deleted") == while_blocked
        assert await env.exists(SETTINGS) == (not while_blocked)
        assert await env.exists(SETTINGS._replace(name="kept"))
        assert await env.exists(SETTINGS._replace(name="later"))
        assert (await env.condition())["reason"] == "Blocked"
        writes = len(env.cluster.requests)
        await env.reconcile(subject)
        assert not [one for one in list(env.cluster.requests)[writes:] if not one.verb.is_read]

    @pytest.mark.parametrize("cause", ["suspended", "failing"])
    async def test_never_goes_on_while_the_component_is_suspended_or_fails(
        self, env: Env, pair: list[Any], config_map: Callable[..., StaticKind], cause: str
    ) -> None:
        def fail(_base: object) -> StatusReport[GuardStatus]:
            raise ArithmeticError

        await env.reconcile(pruning(*pair))
        builder = component.Builder("web", condition_type="WebReady").with_prune(while_blocked=True)
        if cause == "suspended":
            await env.reconcile(builder.with_resource(pair[0]).suspend(True).build())
        else:
            broken = config_map("kept").with_guard(fail).build()
            with pytest.raises(ReconcileError):
                await env.reconcile(builder.with_resource(broken).build())
        assert await env.exists(SETTINGS)

    async def test_a_gate_that_is_off_deletes_unregistered_objects_too(self, env: Env, pair: list[Any]) -> None:
        await env.reconcile(pruning(*pair))
        builder = component.Builder("web", condition_type="WebReady").with_prune()
        await env.reconcile(builder.with_resource(pair[0]).with_feature_gate(BooleanGate(False)).build())
        assert not await env.exists(SETTINGS)

    async def test_a_list_that_fails_is_an_error(self, env: Env, pair: list[Any]) -> None:
        async def refuse_list(*_: Any) -> None:
            raise ServerError("no list today")

        with pytest.raises(
            ReconcileError, match="failed to list v1/ConfigMap to find unregistered objects: no list today"
        ) as caught:
            await one_pass(env, pruning(*pair), list=refuse_list)
        assert isinstance(caught.value.__cause__, ServerError)

    async def test_of_a_cluster_scoped_owner_covers_every_namespace(
        self, config_map: Callable[..., StaticKind]
    ) -> None:
        cluster = EmbeddedCluster(
            kinds=[CustomKind("example.com", "v1", "Mall", namespaced=False)], namespaces=["shop"]
        )
        mall = {"apiVersion": "example.com/v1", "kind": "Mall", "metadata": {"name": "demo"}}
        owner = await cluster.create(mall, field_manager="user")
        keeper = config_map("kept").build()
        for resources in ([keeper, config_map().build()], [keeper]):
            async with reconciling(await cluster.get(ObjectKey.of(owner)), cluster) as context:
                await pruning(*resources).reconcile(context)
        left = await cluster.list("v1", "ConfigMap")
        assert [item["metadata"]["name"] for item in left.items] == ["kept"]


async def test_a_gated_autoscaler_is_deleted_and_the_replicas_come_back(
    env: Env, fixed_web: deployment.Resource, web_hpa: hpa.Resource
) -> None:
    def built(*, autoscaled: bool) -> Component:
        builder = component.Builder("web", condition_type="WebReady").with_resource(fixed_web)
        return builder.with_resource(web_hpa, gated_by=BooleanGate(autoscaled)).build()

    await env.reconcile(built(autoscaled=True))
    await env.scale(7)
    await env.reconcile(built(autoscaled=False))
    assert (await env.replicas(), await env.exists(env.hpa)) == (4, False)
    await env.reconcile(built(autoscaled=True))
    assert await env.replicas() == 4
    await env.scale(6)
    assert (await env.reconcile(built(autoscaled=True))).writes == 0


@pytest.mark.parametrize("others", [1, 200])
async def test_a_reconcile_reads_only_what_its_owner_owns(others: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many objects other owners have: https://github.com/ai-dynamo/grove/issues/655."""
    kind = CustomKind("example.com", "v1", "Shop")
    cluster = EmbeddedCluster(kinds=[kind], namespaces=["shop"])
    read: list[str] = []

    def counted(entry: CacheEntry) -> Manifest:
        found = unpack(entry)
        read.append(found["metadata"]["name"])
        return found

    async def reconcile(name: str) -> None:
        owner = await cached.get(ObjectKey("example.com/v1", "Shop", name, "shop"))
        data = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "shop"}}
        made = component.Builder("web").with_prune().with_resource(configmap.Builder(data).build()).build()
        async with reconciling(owner, cached) as context:
            await made.reconcile(context)

    names = ["corner", *(f"other-{number}" for number in range(others))]
    async with CachedCluster(cluster) as cached:
        for name in names:
            shop = {"apiVersion": "example.com/v1", "kind": "Shop", "metadata": {"name": name, "namespace": "shop"}}
            await cached.create(shop, field_manager="user")
            await reconcile(name)
        monkeypatch.setattr("ocf.cluster.cache.informer.unpack", counted)
        await reconcile("corner")
    assert read == ["corner"]
