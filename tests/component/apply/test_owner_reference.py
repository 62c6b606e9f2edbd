"""Owner references of objects whose owner is deleted in the middle of a reconcile.

A deletion that orphans the objects removes their references, and then the owner. Set again, they are to an owner that
does not exist, and the garbage collector deletes what it was asked to keep.
"""

from __future__ import annotations

from contextlib import suppress
from itertools import count
from typing import TYPE_CHECKING, Final

import pytest

from ocf import component
from ocf.cluster import DeleteOptions, Propagation, Verb
from ocf.component import Component, reconciling
from ocf.errors import NotFoundError
from ocf.objects import ObjectKey
from ocf.testing import FaultyCluster, faults

if TYPE_CHECKING:
    from collections.abc import Callable

    from ocf.cluster import Cluster
    from ocf.objects import Manifest
    from tests.component.conftest import Env, StaticKind

SETTINGS: Final = ObjectKey("v1", "ConfigMap", "settings", "shop")
_NO_REFERENCE: Final[Manifest] = {"metadata": {"ownerReferences": None}}


@pytest.fixture
def web(config_map: Callable[..., StaticKind]) -> Callable[[str], Component]:
    def build(value: str) -> Component:
        builder = component.Builder("web", condition_type="WebReady")
        return builder.with_resource(config_map(a=value).build()).build()

    return build


async def orphan(env: Env) -> None:
    """Delete the owner, and keep its objects, as the garbage collector does."""
    await env.cluster.delete(env.owner, DeleteOptions(propagation=Propagation.ORPHAN))
    await env.merge_patch(SETTINGS, _NO_REFERENCE, by="kube-controller-manager")
    with suppress(NotFoundError):
        await env.merge_patch(env.owner, {"metadata": {"finalizers": None}}, by="kube-controller-manager")


async def reconcile(env: Env, owner: Manifest, wanted: Component, cluster: Cluster) -> int:
    """Reconcile an owner as it was read before; return the number of outcomes."""
    async with reconciling(owner, cluster, clock=env.clock) as context:
        return len((await wanted.reconcile(context)).outcomes)


@pytest.mark.promise("orphaned", runs="a deletion before an object is read or applied, on both servers")
@pytest.mark.parametrize(
    ("verb", "value"),
    [
        pytest.param(Verb.GET, "1", id="before it is read"),
        pytest.param(Verb.GET, "2", id="before it is read, with another value to apply"),
        pytest.param(Verb.APPLY, "2", id="between read and apply"),
    ],
)
async def test_an_orphaned_object_gets_no_reference_again(
    env: Env, web: Callable[[str], Component], verb: Verb, value: str
) -> None:
    await env.reconcile(web("1"))
    owner = await env.owner_manifest()
    meanwhile = faults.meanwhile(lambda: orphan(env), verbs=[verb], kind="ConfigMap", times=1)
    assert await reconcile(env, owner, web(value), FaultyCluster(env.cluster, [meanwhile])) == 0
    assert await env.owners(SETTINGS) == []


@pytest.mark.promise("orphaned", runs="an owner that a finalizer still holds, on both servers")
async def test_nor_while_the_owner_is_still_held(env: Env, web: Callable[[str], Component]) -> None:
    await env.reconcile(web("1"))
    await env.merge_patch(env.owner, {"metadata": {"finalizers": ["example.com/backup"]}}, by="user")
    owner = await env.owner_manifest()
    await env.cluster.delete(env.owner)
    await env.merge_patch(SETTINGS, _NO_REFERENCE, by="kube-controller-manager")
    assert await reconcile(env, owner, web("1"), env.cluster) == 0
    assert await env.owners(SETTINGS) == []


@pytest.mark.parametrize("times", [1, 2, 7], ids=["once", "twice", "each time"])
async def test_an_apply_wins_over_other_writers(env: Env, web: Callable[[str], Component], times: int) -> None:
    await env.reconcile(web("1"))

    numbers = count()

    async def edit() -> None:
        await env.merge_patch(SETTINGS, {"data": {"b": str(next(numbers))}}, by="user")

    owner = await env.owner_manifest()
    before = FaultyCluster(env.cluster, [faults.meanwhile(edit, verbs=[Verb.APPLY], kind="ConfigMap", times=times)])
    assert await reconcile(env, owner, web("2"), before) == 1
    assert (await env.cluster.get(SETTINGS))["data"]["a"] == "2"
    assert await env.owners(SETTINGS) == ["demo"]
