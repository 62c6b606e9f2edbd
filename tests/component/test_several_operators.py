"""Several operators of one owner: each knows by its name what it has written itself, and leaves the rest alone.

The same happened elsewhere: https://github.com/nolar/kopf/issues/664 (finalizers removed and added without end),
https://github.com/stackabletech/operator-rs/pull/225 (one field manager for two writers),
https://github.com/fluxcd/kustomize-controller/issues/1724 (objects pruned by the one that does not render them).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeAlias

import pytest

from ocf import component
from ocf.cluster import Verb
from ocf.component import Action, Component, Finalizer, Result, cleanup_finalizer, external_finalizer, reconciling
from ocf.errors import ConfigError
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
