"""Several operators of one owner: each knows by its name what it has written itself, and leaves the rest alone.

The same happened elsewhere: https://github.com/nolar/kopf/issues/664 (finalizers removed and added without end),
https://github.com/stackabletech/operator-rs/pull/225 (one field manager for two writers),
https://github.com/fluxcd/kustomize-controller/issues/1724 (objects pruned by the one that does not render them).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

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
