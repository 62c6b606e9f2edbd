"""Several operators of one owner: each knows by its name what it has written itself, and leaves the rest alone.

The same happened elsewhere: https://github.com/nolar/kopf/issues/664 (finalizers removed and added without end),
https://github.com/stackabletech/operator-rs/pull/225 (one field manager for two writers),
https://github.com/fluxcd/kustomize-controller/issues/1724 (objects pruned by the one that does not render them).
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import pytest

from ocf import component
from ocf.cluster import Verb
from ocf.component import Component, Finalizer, Result, finalize, reconciling
from ocf.component.owner_deletion import cleanup_finalizer, external_finalizer
from ocf.component.status.results import Action
from ocf.concepts import Event
from ocf.concepts.recorder import NullRecorder
from ocf.errors import ConfigError, ReconcileError
from ocf.objects import ObjectKey
from ocf.objects.managed_fields import ManagedFields

if TYPE_CHECKING:
    from collections.abc import Callable

    from ocf.component import CleanupPending, ReconcileContext
    from tests.component.conftest import Env, StaticKind

FIRST: Final = ObjectKey("v1", "ConfigMap", "first", "shop")
SECOND: Final = ObjectKey("v1", "ConfigMap", "second", "shop")
EDITS: Final = 10


def web(*resources: Any, **options: Any) -> Component:
    builder = component.Builder("web", condition_type="WebReady").with_prune()
    for resource in resources:
        builder.with_resource(resource, **options)
    return builder.build()


async def drop(_: ReconcileContext) -> CleanupPending | None:
    return None


async def finalizers(env: Env) -> list[str]:
    found: list[str] = (await env.owner_manifest())["metadata"].get("finalizers", [])
    return found


@pytest.mark.promise("several-operators", runs="ten edits, each reconciled by two operators that prune")
async def test_neither_prunes_what_the_other_one_applies(env: Env, config_map: Callable[..., StaticKind]) -> None:
    """Although both have a component of the same name."""
    shops, malls = env.process("shops"), env.process("malls")
    for size in range(EDITS):
        await env.change(env.owner, spec={"size": size})
        await shops.reconcile(web(config_map("first", size=str(size)).build()))
        await malls.reconcile(web(config_map("second", size=str(size)).build()))
    assert [each for process in (shops, malls) for each in process.cluster.requests.of(Verb.DELETE)] == []
    for key in (FIRST, SECOND):
        assert (await env.cluster.get(key))["data"] == {"size": str(EDITS - 1)}


@pytest.mark.promise("several-operators", runs="one applies an object that the other one wants deleted or orphaned")
@pytest.mark.parametrize("option", ["delete_when", "orphan_when"])
async def test_neither_deletes_or_orphans_what_the_other_one_applies(
    env: Env, config_map: Callable[..., StaticKind], option: str
) -> None:
    shops, malls = env.process("shops"), env.process("malls")
    await shops.reconcile(web(config_map("first").build()))
    (result,) = await malls.reconcile(web(config_map("first").build(), **{option: True}))
    assert isinstance(result, Result)
    (outcome,) = result.outcomes
    assert (outcome.action, outcome.detail) == (Action.KEPT, 'applied by operator "shops"')
    assert await env.owners(FIRST) == ["demo"]


async def test_an_object_of_a_long_component_name_is_known_to_be_of_another_operator(
    env: Env, config_map: Callable[..., StaticKind]
) -> None:
    """The name of its field manager is hashed, but for the operator."""
    shops, malls = env.process("s" * 63), env.process("malls")
    long = component.Builder("w" * 63, condition_type="WebReady").with_resource(config_map("first").build()).build()
    await shops.reconcile(long)
    (manager,) = [one.manager.name for one in ManagedFields.of(await env.cluster.get(FIRST)).entries]
    assert len(manager) == 128
    (result,) = await malls.reconcile(web(config_map("first").build(), delete_when=True))
    assert isinstance(result, Result)
    assert result.outcomes[0].detail == f'applied by operator "{"s" * 63}"'
    await shops.reconcile(long)
    assert shops.cluster.requests.of(Verb.APPLY) == shops.cluster.requests.of(Verb.APPLY)[:1]


@pytest.mark.promise("several-operators", runs="one with on_delete and one without, 20 reconciles")
async def test_neither_removes_the_finalizer_of_the_other_one(env: Env, config_map: Callable[..., StaticKind]) -> None:
    shops, malls = env.process("shops"), env.process("malls")
    for _ in range(EDITS):
        await shops.reconcile(web(config_map("first").build()), finalizer=Finalizer(on_delete=drop))
        await malls.reconcile(web(config_map("second").build()))
    patches = [each for process in (shops, malls) for each in process.cluster.requests.of(Verb.PATCH)]
    assert [each.kind for each in patches] == ["Shop"]
    assert await finalizers(env) == ["shops.ocf.dev/cleanup-external"]


async def test_each_releases_its_own_finalizer_only(env: Env, cluster_role: StaticKind) -> None:
    calls: list[str] = []

    async def drop_and_count(context: ReconcileContext) -> None:
        calls.append(context.owned_by.operator)

    shops, malls = env.process("shops"), env.process("malls")
    ours = Finalizer(on_delete=drop_and_count)
    role = web(cluster_role.build())
    await shops.reconcile(web(), finalizer=ours)
    await malls.reconcile(role)
    assert await finalizers(env) == [external_finalizer("shops"), cleanup_finalizer("malls")]
    await env.cluster.delete(env.owner)
    await shops.reconcile(web(), finalizer=ours)
    assert (await finalizers(env), calls) == ([cleanup_finalizer("malls")], ["shops"])
    assert await env.condition("shops/CleanedUp")
    await malls.reconcile(role)
    assert (await env.exists(env.owner), calls) == (False, ["shops"])


@pytest.mark.parametrize("name", ["", "Shops", "shop.operator", "s" * 64, "a/b"])
async def test_a_name_that_is_not_a_dns_label_is_rejected(env: Env, name: str) -> None:
    with pytest.raises(ConfigError, match=f'operator "{name}": '):
        async with reconciling(await env.owner_manifest(), env.cluster, operator=name):
            raise AssertionError("reconciled")


WAYS: Final = ("set", "listed", "aggregated")
Setting: TypeAlias = "Callable[[ReconcileContext], object]"


def sets(name: str, status: str = "True") -> Setting:
    return lambda context: context.set_condition(name, status=status, reason="Observed", message="")


def lists(name: str) -> Setting:
    def assign(context: ReconcileContext) -> None:
        mine = {"type": name, "status": "True", "reason": context.owned_by.operator, "message": ""}
        others = [one for one in context.status.get("conditions", []) if one["type"] != name]
        context.status["conditions"] = [*others, mine]

    return assign


def stages(name: str) -> Setting:
    return lambda context: context.aggregate(name)


async def report(env: Env, operator: str, *settings: Setting) -> None:
    """Reconcile as one of several operators of a process."""
    async with reconciling(await env.owner_manifest(), env.cluster, clock=env.clock, operator=operator) as context:
        for setting in settings:
            setting(context)


@pytest.mark.promise("several-operators", runs="a condition that the reports of two operators in one process set")
@pytest.mark.parametrize("second", [sets("Ready", "False"), lists("Ready"), stages("Ready")], ids=WAYS)
@pytest.mark.parametrize("first", [sets("Ready"), lists("Ready"), stages("Ready")], ids=WAYS)
async def test_a_condition_that_two_operators_of_a_process_set_fails_the_second(
    env: Env, first: Setting, second: Setting
) -> None:
    """However each of them sets it; what else the second sets is written.

    Elsewhere: https://github.com/oracle/oci-native-ingress-controller/pull/156 (two instances, one name for both),
    https://github.com/kubernetes-sigs/cluster-api/issues/3260 (who owns which condition).
    """
    await report(env, "shops", first)
    before = await env.condition("Ready")
    problem = r'operators "shops" and "malls" both set the condition "Ready" of example.com/v1/Shop/shop/demo: use'
    for _ in range(2):
        with pytest.raises(ConfigError, match=problem):
            await report(env, "malls", sets("Stocked"), second)
        assert await env.condition("Ready") == before
        assert (await env.condition("Stocked"))["status"] == "True"
    await report(env, "shops", first)


async def test_the_same_operator_may_set_a_condition_in_several_reconciles(env: Env) -> None:
    await report(env, "shops", sets("Ready"), sets("Ready", "False"))
    await report(env, "shops", sets("Other"))
    await report(env, "shops", sets("Ready"))


async def test_a_condition_that_an_operator_does_not_set_any_more_is_free(env: Env) -> None:
    await report(env, "shops", sets("Ready"))

    def fail(_: ReconcileContext) -> None:
        raise OSError("unavailable")

    with pytest.raises(OSError, match="unavailable"):
        await report(env, "shops", fail)
    with pytest.raises(ConfigError, match="both set"):
        await report(env, "malls", sets("Ready"))
    await report(env, "shops", sets("Stocked"))
    await report(env, "malls", sets("Ready"))


@pytest.mark.promise("several-operators", runs="the same, after reconciles that assign an unchanged condition")
@pytest.mark.parametrize("second", [sets("Ready", "False"), lists("Ready"), stages("Ready")], ids=WAYS)
async def test_a_condition_that_is_assigned_unchanged_stays_with_its_operator(env: Env, second: Setting) -> None:
    for _ in range(3):
        await report(env, "shops", lists("Ready"))
        before = await env.condition("Ready")
        with pytest.raises(ConfigError, match='operators "shops" and "malls" both set the condition "Ready"'):
            await report(env, "malls", second)
        assert await env.condition("Ready") == before


@pytest.mark.promise("several-operators", runs="an assigned condition that is left in the list, in three ways")
@pytest.mark.parametrize("second", [sets("Ready", "False"), lists("Ready"), stages("Ready")], ids=WAYS)
@pytest.mark.parametrize("keeps", ["alone", "in a new list"])
async def test_an_assigned_condition_that_is_only_left_in_the_list_is_free(
    env: Env, second: Setting, keeps: str
) -> None:
    def leave(context: ReconcileContext) -> None:
        if keeps == "in a new list":
            context.status["conditions"] = [*context.status["conditions"]]

    await report(env, "shops", lists("Ready"))
    await report(env, "shops", leave)
    await report(env, "malls", second)
    with pytest.raises(ConfigError, match='operators "malls" and "shops" both set the condition "Ready"'):
        await report(env, "shops", lists("Ready"))


async def test_an_assigned_condition_that_is_removed_is_free(env: Env) -> None:
    def remove(context: ReconcileContext) -> None:
        context.status["conditions"] = [one for one in context.status["conditions"] if one["type"] != "Ready"]

    await report(env, "shops", lists("Ready"), sets("Stocked"))
    await report(env, "shops", remove)
    await report(env, "malls", sets("Ready"), sets("Stocked", "False"))


async def test_an_assigned_condition_that_is_set_by_its_type_later_is_free_without_it(env: Env) -> None:
    await report(env, "shops", lists("Ready"))
    await report(env, "shops", sets("Ready"))
    await report(env, "shops")
    await report(env, "malls", sets("Ready", "False"))


async def test_a_condition_that_shows_a_failure_is_free_without_it(env: Env) -> None:
    await report(env, "shops", lambda context: context.fail(["Ready"], "unavailable"))
    await report(env, "shops")
    await report(env, "malls", sets("Ready"))


async def test_a_type_with_the_name_of_an_operator_is_its_own(env: Env) -> None:
    """So the mistake of another operator does not hold its clean-up."""
    await report(env, "malls", sets("shops/CleanedUp"))
    await report(env, "shops", sets("shops/CleanedUp", "False"))
    with pytest.raises(ConfigError, match='operators "shops" and "malls" both set the condition "shops/CleanedUp"'):
        await report(env, "malls", sets("shops/CleanedUp"))


async def test_each_owner_and_each_process_is_on_its_own(env: Env) -> None:
    await report(env, "shops", sets("Ready"))
    other = await env.create(ObjectKey("example.com/v1", "Shop", "other", "shop"))
    async with reconciling(other, env.cluster, clock=env.clock, operator="malls") as context:
        sets("Ready")(context)
    live, malls = await env.owner_manifest(), env.process("malls")
    async with reconciling(live, malls.cluster, clock=env.clock, operator="malls") as context:
        sets("Ready", "False")(context)
    assert (await env.condition("Ready"))["status"] == "False"


class Versions:
    """Two processes of one operator, of which the first has an `on_delete`; its errors are kept."""

    def __init__(self, env: Env, *components: Component) -> None:
        self._env = env
        self.components = components
        self.processes = env.process("shops"), env.process("shops")
        self.errors: list[str] = []
        self.events = Notes()
        self.retries: list[timedelta] = []

    @property
    def patches(self) -> list[int]:
        """The numbers of writes of finalizers."""
        return [len(each.cluster.requests.of(Verb.PATCH)) for each in self.processes]

    async def new(self) -> None:
        """Reconcile with the version that sets the finalizer."""
        try:
            await self._reconcile(0, Finalizer(on_delete=drop), *self.components)
        except ReconcileError as error:
            self.errors.append(str(error))

    async def old(self) -> None:
        """Reconcile with the version that removes it."""
        await self._reconcile(1, Finalizer())

    async def _reconcile(self, number: int, finalizer: Finalizer, *components: Component) -> None:
        cluster, live = self.processes[number].cluster, await self._env.owner_manifest()
        async with reconciling(live, cluster, operator="shops", clock=self._env.clock, recorder=self.events) as context:
            await finalize(context, *components, finalizer=finalizer)
        if context.delay is not None:
            self.retries.append(context.delay)


class Notes(NullRecorder):
    """The notes of events about finalizers."""

    def __init__(self) -> None:
        self.found: list[str] = []

    def happened(self, event: Event) -> None:
        if event.reason == "FinalizerReverted":
            self.found.append(event.note)


async def fight(env: Env, versions: Versions) -> None:
    """Let both reconcile every ten seconds for an hour."""
    for _ in range(360):
        await versions.new()
        await versions.old()
        env.clock.advance(timedelta(seconds=10))


@pytest.mark.promise("write-war", runs="an hour of two versions, of which one sets a finalizer and one removes it")
async def test_two_versions_that_disagree_about_a_finalizer_back_off_and_name_each_other(env: Env) -> None:
    """Finalizers that were removed and added without end elsewhere.

    * https://github.com/kubermatic/kubermatic/pull/12174
    * https://github.com/oracle/oci-native-ingress-controller/pull/156
    """
    versions = Versions(env)
    await fight(env, versions)
    assert max(versions.patches) <= 10
    other = 'by another process of the operator "shops", or by a client that changes finalizers: before it is '
    # One of the two waits, and the other one has what it wants.
    messages = [*versions.errors, *versions.events.found]
    assert messages
    assert all(other in text and external_finalizer("shops") in text for text in messages)
    assert len(versions.events.found) <= 10


@pytest.mark.parametrize("cluster_scoped", [False, True], ids=["for on_delete", "for cluster-scoped objects"])
async def test_whoever_changes_finalizers_again_and_again_is_damped(
    env: Env, cluster_role: StaticKind, *, cluster_scoped: bool
) -> None:
    """A user's program that removes every finalizer; nothing is made for the owner while it has none."""
    made = [web(cluster_role.build())] if cluster_scoped else []
    versions = Versions(env, *made)
    for _ in range(360):
        await versions.new()
        await env.change(env.owner, metadata={"finalizers": None})
        env.clock.advance(timedelta(seconds=10))
    assert versions.patches[0] <= 10 * (2 if cluster_scoped else 1)
    assert "is removed again and again, by another process" in versions.errors[-1]


async def test_who_sets_a_finalizer_again_is_named(env: Env) -> None:
    name = external_finalizer("shops")
    versions = Versions(env)
    for _ in range(20):
        await env.change(env.owner, metadata={"finalizers": [name]})
        await versions.old()
        env.clock.advance(timedelta(seconds=10))
    assert versions.patches[1] <= 4
    assert versions.events.found[0].startswith(f'finalizer {name} is set again and again, by "kubectl-edit": before')
    assert versions.retries
    env.clock.advance(max(versions.retries))
    await versions.old()
    assert await finalizers(env) == []


async def test_a_deletion_does_not_wait(env: Env) -> None:
    versions = Versions(env)
    await fight(env, versions)
    env.clock.advance(timedelta(hours=2))
    await versions.new()
    assert await finalizers(env) == [external_finalizer("shops")]
    await env.cluster.delete(env.owner)
    await versions.old()
    assert not await env.exists(env.owner)


async def test_one_version_may_change_its_mind_as_often_as_it_likes(env: Env, cluster_role: StaticKind) -> None:
    process = env.process("shops")
    for _ in range(10):
        await process.reconcile(web(cluster_role.build()))
        assert await finalizers(env) == [cleanup_finalizer("shops")]
        await process.reconcile(web())
        assert await finalizers(env) == []
