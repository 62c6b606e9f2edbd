"""Resources that move from one component to another of the same owner: not deleted, not orphaned, no value lost."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import pytest

from ocf import component
from ocf.cluster import PatchOptions, PatchType, Verb, WatchOptions
from ocf.cluster.cache import CachedCluster
from ocf.cluster.protocol import EventType
from ocf.component import BEFORE_SUSPENSION, Component, finalize, reconcile_all, reconciling
from ocf.component.status.results import Action
from ocf.concepts.recorder import Why
from ocf.errors import ReconcileError
from ocf.feature import BooleanGate
from ocf.objects import Manifest, ObjectKey, copy_json
from ocf.objects.managed_fields import ManagedFields
from ocf.primitives import deployment
from ocf.testing import FaultyCluster, faults

if TYPE_CHECKING:
    from collections.abc import Callable

    from ocf.cluster import Cluster
    from ocf.primitives import hpa
    from tests.component.conftest import Env, StaticKind

SETTINGS: Final = ObjectKey("v1", "ConfigMap", "settings", "shop")
OTHER: Final = ObjectKey("v1", "ConfigMap", "other", "shop")


def builder(name: str, *resources: Any, prune: bool = False, **options: Any) -> component.Builder:
    """Return the builder of a component; the options are those of every resource."""
    made = component.Builder(name, condition_type=f"{name.title()}Ready")
    for resource in resources:
        made.with_resource(resource, **options)
    return made.with_prune() if prune else made


def of(name: str, *resources: Any, prune: bool = False, **options: Any) -> Component:
    return builder(name, *resources, prune=prune, **options).build()


async def managers(env: Env, key: ObjectKey) -> list[str]:
    """Return the names of our field managers of an object, without the uid of the owner."""
    live = await env.cluster.get(key)
    uid = (await env.owner_manifest())["metadata"]["uid"]
    applied = (entry.manager for entry in ManagedFields.of(live).entries)
    return sorted(each.name.replace(f"/{uid}", "") for each in applied if uid in each.name)


async def together(env: Env, *components: Component, cluster: Cluster | None = None) -> list[component.Result]:
    async with reconciling(await env.owner_manifest(), cluster or env.cluster, clock=env.clock) as context:
        return list(await reconcile_all(context, *components))


async def events(env: Env, key: ObjectKey, since: str) -> list[tuple[EventType, Manifest]]:
    """Return what a watcher has seen of an object since a version."""
    last = await env.change(key, metadata={"labels": {"end": "here"}})
    options = WatchOptions(resource_version=since, namespace="shop")
    watch = env.cluster.watch(key.api_version, key.kind, options)
    seen = []
    async for event in watch:
        if event.object["metadata"]["resourceVersion"] == last["metadata"]["resourceVersion"]:
            break
        if event.object["metadata"]["name"] == key.name:
            seen.append((event.type, event.object))
    await watch.aclose()
    return seen


# How the old component is built after the move: from the resource that moved, and one that stays.
OLD: Final = [
    pytest.param(lambda _moved, stays: of("old", stays, prune=True), id="not registered, with pruning"),
    pytest.param(lambda _moved, stays: of("old", stays), id="not registered, without pruning"),
    pytest.param(
        lambda moved, stays: builder("old", stays).with_resource(moved, delete_when=True).build(), id="delete_when"
    ),
    pytest.param(
        lambda moved, stays: builder("old", stays).with_resource(moved, gated_by=BooleanGate(False)).build(),
        id="gated off",
    ),
    pytest.param(
        lambda moved, stays: builder("old", stays).with_resource(moved, orphan_when=True).build(), id="orphan_when"
    ),
    pytest.param(
        lambda moved, stays: builder("old", moved, stays).with_feature_gate(BooleanGate(False)).build(), id="disabled"
    ),
    pytest.param(None, id="removed"),
]


class TestMoving:
    @pytest.mark.promise("move", runs="7 ways in which the old component gives it up, in both orders")
    @pytest.mark.parametrize("first", ["old", "new"])
    @pytest.mark.parametrize("give_up", OLD)
    async def test_a_moved_object_is_neither_deleted_nor_without_a_value(
        self,
        env: Env,
        config_map: Callable[..., StaticKind],
        give_up: Callable[[Any, Any], Component] | None,
        first: str,
    ) -> None:
        """Every version of it that a watcher sees has the data, and refers to the owner."""
        before, after = config_map(a="1", b="2").build(), config_map(a="1", c="3").build()
        stays = config_map("other").build()
        await together(env, of("old", before, stays))
        live = await env.cluster.get(SETTINGS)
        old = give_up(before, stays) if give_up is not None else None
        new = of("new", after)
        components = [new] if old is None else [old, new] if first == "old" else [new, old]
        await together(env, *components)

        moved = await env.cluster.get(SETTINGS)
        assert moved["metadata"]["uid"] == live["metadata"]["uid"]
        assert moved["data"] == {"a": "1", "c": "3"}
        assert await managers(env, SETTINGS) == ["ocf/Shop/new"]
        assert await env.owners(SETTINGS) == ["demo"]
        env.cluster.requests.clear()
        await together(env, *components)
        assert env.cluster.requests.writes == 0
        for kind, seen in await events(env, SETTINGS, live["metadata"]["resourceVersion"]):
            assert kind is EventType.MODIFIED
            assert seen["data"]["a"] == "1"
            assert seen["metadata"]["ownerReferences"]

    async def test_the_outcome_names_who_has_it(self, env: Env, config_map: Callable[..., StaticKind]) -> None:
        moved = config_map().build()
        await together(env, of("old", moved))
        old, new = await together(env, of("old", moved, delete_when=True), of("new", moved))
        assert (old.outcomes[0].action, old.outcomes[0].reason_texts) == (
            Action.KEPT,
            ('applied by component "new"',),
        )
        assert (new.outcomes[0].action, new.outcomes[0].why, new.writes) == (Action.UPDATED, Why.TAKEN_OVER, 1)
        assert new.outcomes[0].reason_texts == ("metadata.managedFields: taken over",)

    @pytest.mark.promise("move", runs="components that are reconciled one after the other")
    async def test_an_object_of_a_component_that_takes_no_part_is_recognized_by_its_field_manager(
        self, env: Env, config_map: Callable[..., StaticKind]
    ) -> None:
        """The component that applies it now takes no part in this reconcile."""
        moved, stays = config_map().build(), config_map("other").build()
        await env.reconcile(of("old", moved, stays))
        await env.reconcile(of("new", moved))
        for old in (of("old", moved, delete_when=True), of("old", stays, prune=True)):
            await env.reconcile(old)
            assert await managers(env, SETTINGS) == ["ocf/Shop/new"]

    async def test_an_object_of_a_blocked_component_is_kept(
        self, env: Env, config_map: Callable[..., StaticKind]
    ) -> None:
        """Until the new component applies it, it stays as the old one has left it."""
        moved = config_map().build()
        await together(env, of("old", moved))
        waiting = builder("new", moved).with_prerequisite(component.depends_on("Never")).build()
        await together(env, of("old", moved, delete_when=True), waiting)
        assert await managers(env, SETTINGS) == ["ocf/Shop/old"]

    async def test_a_component_that_is_renamed_takes_its_objects_along(
        self, env: Env, config_map: Callable[..., StaticKind]
    ) -> None:
        await env.reconcile(of("old", config_map(a="1", b="2").build()))
        result = await env.reconcile(of("new", config_map(a="1").build()))
        assert (result.writes, await managers(env, SETTINGS)) == (2, ["ocf/Shop/new"])
        assert (await env.cluster.get(SETTINGS))["data"] == {"a": "1"}

    async def test_a_manager_with_a_long_name_is_recognized_if_its_component_is_known(
        self, env: Env, config_map: Callable[..., StaticKind]
    ) -> None:
        """Its name is a hash."""
        long, moved = "x" * 120, config_map(a="1", b="2").build()
        await together(env, of(long, moved))
        await together(env, of(long, moved, delete_when=True), of("new", config_map(a="1").build()))
        live = await env.cluster.get(SETTINGS)
        assert live["data"] == {"a": "1"}
        assert len(ManagedFields.of(live).entries) == 1

    async def test_an_object_in_sync_is_taken_over_once_its_old_component_is_known(
        self, env: Env, config_map: Callable[..., StaticKind]
    ) -> None:
        """Neither the object nor the desired state changes; before, the hashed name belonged to no component."""
        long, moved, other = "x" * 120, config_map(a="1").build(), config_map("other").build()
        await together(env, of(long, config_map(a="1", b="2").build()))
        new = of("new", moved)
        for _ in range(3):
            await together(env, new)
        assert (await env.cluster.get(SETTINGS))["data"] == {"a": "1", "b": "2"}
        *_, result = await together(env, of(long, other), new)
        assert [drift.why for drift in result.outcomes[0].reasons][:1] == [Why.TAKEN_OVER]
        assert (await env.cluster.get(SETTINGS))["data"] == {"a": "1"}
        assert len(ManagedFields.of(await env.cluster.get(SETTINGS)).entries) == 1

    async def test_entries_of_two_components_become_one(self, env: Env, config_map: Callable[..., StaticKind]) -> None:
        await env.reconcile(of("new", config_map(a="1").build()))
        uid = (await env.owner_manifest())["metadata"]["uid"]
        manifest = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings", "namespace": "shop"}}
        await env.cluster.apply({**manifest, "data": {"b": "2"}}, field_manager=f"ocf/Shop/old/{uid}")
        await env.reconcile(of("new", config_map(a="1").build()))
        assert await managers(env, SETTINGS) == ["ocf/Shop/new"]
        assert (await env.cluster.get(SETTINGS))["data"] == {"a": "1"}

    async def test_fields_of_other_managers_stay_theirs(self, env: Env, config_map: Callable[..., StaticKind]) -> None:
        await env.reconcile(of("old", config_map(a="1").build()))
        await env.change(SETTINGS, data={"theirs": "1"})
        await env.reconcile(of("new", config_map(a="1").build()))
        live = await env.cluster.get(SETTINGS)
        assert live["data"] == {"a": "1", "theirs": "1"}
        entries = {entry.manager.name.split("/")[0]: entry.fields for entry in ManagedFields.of(live).entries}
        assert entries["kubectl-edit"] == {"f:data": {"f:theirs": {}}}

    async def test_a_takeover_is_repeated_after_a_conflict(
        self, env: Env, config_map: Callable[..., StaticKind]
    ) -> None:
        await env.reconcile(of("old", config_map(a="1").build()))

        async def change() -> None:
            await env.change(SETTINGS, data={"theirs": "1"})

        meanwhile = faults.meanwhile(change, kind="ConfigMap", verbs=[Verb.PATCH], first=2, times=1)
        await together(env, of("new", config_map(a="1").build()), cluster=FaultyCluster(env.cluster, [meanwhile]))
        assert await managers(env, SETTINGS) == ["ocf/Shop/new"]
        assert (await env.cluster.get(SETTINGS))["data"] == {"a": "1", "theirs": "1"}

    async def test_a_cache_without_the_entries_of_others_loses_none(
        self, env: Env, config_map: Callable[..., StaticKind]
    ) -> None:
        await env.reconcile(of("old", config_map(a="1").build()))
        await env.change(SETTINGS, data={"theirs": "1"})
        async with CachedCluster(env.cluster, keeps_manager=lambda name: name.startswith("ocf/Shop/")) as cached:
            await together(env, of("new", config_map(a="1").build()), cluster=cached)
        names = {
            entry.manager.name.split("/")[0] for entry in ManagedFields.of(await env.cluster.get(SETTINGS)).entries
        }
        assert names == {"ocf", "kubectl-edit"}


class TestScaled:
    """A Deployment that moves into a component with an autoscaler, or out of it."""

    @pytest.mark.promise("move", runs="a Deployment whose replicas the old component sets and the new one ignores")
    async def test_the_replicas_of_the_old_component_stay_until_the_autoscaler_sets_them(
        self, env: Env, fixed_web: deployment.Resource, web_hpa: hpa.Resource
    ) -> None:
        await together(env, of("old", fixed_web))
        since = (await env.cluster.get(env.web))["metadata"]["resourceVersion"]
        await together(env, of("old", fixed_web, delete_when=True), of("new", fixed_web, web_hpa))
        assert await managers(env, env.web) == ["ocf/Shop/new", "ocf/Shop/new/left"]
        assert {seen["spec"]["replicas"] for _, seen in await events(env, env.web, since)} == {4}

    @pytest.mark.promise("move", runs="a suspended Deployment")
    async def test_the_saved_replicas_of_a_suspended_component_are_restored(
        self, env: Env, web: deployment.Resource, web_hpa: hpa.Resource
    ) -> None:
        await together(env, of("old", web, web_hpa))
        await env.scale(6)
        await together(env, builder("old", web, web_hpa).suspend().build())
        assert await env.replicas() == 0
        await together(env, of("old", web, delete_when=True), of("new", web))
        live = await env.cluster.get(env.web)
        assert (live["spec"]["replicas"], BEFORE_SUSPENSION in live["metadata"].get("annotations", {})) == (6, False)
        assert await managers(env, env.web) == ["ocf/Shop/new", "ocf/Shop/new/left"]

    async def test_it_may_be_suspended_while_it_moves(self, env: Env, web: deployment.Resource) -> None:
        await together(env, of("old", web))
        await env.scale(6)
        await together(env, of("old", web, delete_when=True), builder("new", web).suspend().build())
        assert (await env.replicas(), await managers(env, env.web)) == (0, ["ocf/Shop/new"])
        await together(env, of("new", web))
        assert await env.replicas() == 6

    async def test_values_that_were_handed_over_before_stay(
        self, env: Env, fixed_web: deployment.Resource, web: deployment.Resource
    ) -> None:
        """The second field manager of the old component has them."""
        await together(env, of("old", fixed_web))
        await together(env, of("old", fixed_web, ignore_fields=["spec.replicas"]))
        assert await managers(env, env.web) == ["ocf/Shop/old", "ocf/Shop/old/left"]
        await together(env, of("new", web))
        assert (await env.replicas(), await managers(env, env.web)) == (4, ["ocf/Shop/new", "ocf/Shop/new/left"])

    async def test_a_field_that_only_the_old_component_declares_is_dropped(
        self, env: Env, web_base: Manifest, web: deployment.Resource
    ) -> None:
        base = copy_json(web_base)
        base["spec"]["template"]["spec"]["priorityClassName"] = "high"
        await together(env, of("old", deployment.Builder(base).build()))
        await together(env, of("new", web))
        assert "priorityClassName" not in (await env.cluster.get(env.web))["spec"]["template"]["spec"]


class TestShared:
    @pytest.mark.promise("one-component")
    async def test_a_resource_of_two_components_fails_both_and_names_both(
        self, env: Env, config_map: Callable[..., StaticKind]
    ) -> None:
        """A third component goes on, and neither of the two touches anything."""
        shared, third = config_map().build(), of("c", config_map("third").build())
        with pytest.raises(ExceptionGroup) as caught:
            await together(env, of("a", shared), of("b", config_map("other").build(), shared), third)
        expected = [
            f'resource {SETTINGS} is managed by component "{mine}" and by component "{other}": register it in one of '
            "them, and in the other one with read_only or delete_when, if at all"
            for mine, other in (("a", "b"), ("b", "a"))
        ]
        errors = [error for error in caught.value.exceptions if isinstance(error, ReconcileError)]
        assert [error.problem for error in errors] == expected
        assert [error.resource for error in errors] == [str(SETTINGS)] * 2
        assert [(await env.condition(f"{name}Ready"))["message"] for name in "AB"] == expected
        assert (await env.condition("CReady"))["status"] == "True"
        assert (await env.exists(SETTINGS), await env.exists(OTHER)) == (False, False)

    async def test_the_version_of_the_api_makes_no_difference(self, env: Env, web_hpa: hpa.Resource) -> None:
        class Older:
            key = web_hpa.key._replace(api_version="autoscaling/v1")
            identity = str(key)

            def render(self, **_: Any) -> Manifest:
                raise AssertionError("rendered")

        with pytest.raises(ExceptionGroup):
            await together(env, of("a", web_hpa), of("b", Older()))

    async def test_the_second_of_two_reconciles_of_one_context_fails(
        self, env: Env, config_map: Callable[..., StaticKind]
    ) -> None:
        with pytest.raises(ReconcileError, match='component "b" and by component "a"'):
            await env.reconcile(of("a", config_map().build()), of("b", config_map().build()))

    @pytest.mark.parametrize(
        "options",
        [{"read_only": True, "ignore_if_absent": True}, {"delete_when": True}, {"orphan_when": True}],
        ids=["read-only", "deleted", "orphaned"],
    )
    async def test_a_component_that_does_not_manage_it_may_register_it(
        self, env: Env, config_map: Callable[..., StaticKind], options: dict[str, Any]
    ) -> None:
        shared = config_map().build()
        for _ in range(2):
            await together(env, of("a", shared), of("b", shared, **options))
        assert await managers(env, SETTINGS) == ["ocf/Shop/a"]

    @pytest.mark.parametrize("enabled", ["a", "b"])
    async def test_variants_behind_gates_take_turns(
        self, env: Env, config_map: Callable[..., StaticKind], enabled: str
    ) -> None:
        """A component that is switched off manages nothing."""
        shared = config_map().build()

        def variants(on: str) -> list[Component]:
            return [builder(name, shared).with_feature_gate(BooleanGate(name == on)).build() for name in "ab"]

        await together(env, *variants("a"))
        uid = (await env.cluster.get(SETTINGS))["metadata"]["uid"]
        await together(env, *variants(enabled))
        assert (await env.cluster.get(SETTINGS))["metadata"]["uid"] == uid
        assert await managers(env, SETTINGS) == [f"ocf/Shop/{enabled}"]


class TestGivenUp:
    """Objects of a component that does not exist any more."""

    async def test_they_are_deleted_by_another_component_if_all_are_known(
        self, env: Env, config_map: Callable[..., StaticKind]
    ) -> None:
        """`finalize` is given all components of the owner."""
        gone = config_map().build()
        await env.reconcile(of("old", gone))
        new = of("new", gone, delete_when=True)
        async with reconciling(await env.owner_manifest(), env.cluster, clock=env.clock) as context:
            assert await finalize(context, new) is None
            await reconcile_all(context, new)
        assert not await env.exists(SETTINGS)

    async def test_they_are_kept_otherwise(self, env: Env, config_map: Callable[..., StaticKind]) -> None:
        gone = config_map().build()
        await env.reconcile(of("old", gone))
        result = await env.reconcile(of("new", gone, delete_when=True))
        assert result.outcomes[0].reason_texts == ('applied by component "old"',)
        assert await env.exists(SETTINGS)

    async def test_an_update_by_another_component_does_not_make_it_theirs(
        self, env: Env, config_map: Callable[..., StaticKind]
    ) -> None:
        """Only an apply does."""
        await env.reconcile(of("old", config_map().build()))
        uid = (await env.owner_manifest())["metadata"]["uid"]
        options = PatchOptions(patch_type=PatchType.MERGE, field_manager=f"ocf/Shop/new/{uid}")
        await env.cluster.patch(SETTINGS, {"data": {"b": "2"}}, options)
        await env.reconcile(of("old", config_map().build(), delete_when=True))
        assert not await env.exists(SETTINGS)
