"""Tenants in random histories: each namespace ends with what its tenant declares, and nothing is written then."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Final

from hypothesis import given, settings
from hypothesis import strategies as st

from ocf.cluster import PatchOptions, PatchType, Subresource
from ocf.errors import ApiError
from ocf.objects import Manifest, ObjectKey
from tests.operators.tenancy.model import LABEL
from tests.operators.tenancy.world import Tenants, User, in_virtual_time, key

STATUS: Final = PatchOptions(patch_type=PatchType.MERGE, field_manager="controllers", subresource=Subresource.STATUS)
TENANTS: Final = ("shops", "mines")
USERS: Final = ("alice", "bob")
NAMESPACES: Final = ("n0", "n1", "n2")
STEPS: Final = st.tuples(
    st.sampled_from(["make", "delete", "use", "quota", "defaults", "move", "most", "cordon", "end", "begin", "damage"]),
    st.integers(0, 2),
    st.integers(0, 3),
)


async def take(world: Tenants, step: str, one: int, number: int) -> None:
    """Let something happen; what is refused, and what does not exist, changes nothing."""
    namespace, tenant = NAMESPACES[one], TENANTS[number % 2]
    quota = ObjectKey("v1", "ResourceQuota", "tenant", namespace)
    changes: dict[str, Manifest] = {
        "quota": {"quota": {"pods": str(5 * one)} if one else None},
        "defaults": {"containerDefaults": {"cpu": str(one)} if one else None},
        "most": {"maxNamespaces": one or None},
        "cordon": {"cordoned": bool(one)},
    }
    deleted = {"delete": ObjectKey("v1", "Namespace", namespace, ""), "end": key(tenant), "damage": quota}
    with suppress(ApiError):
        if step in changes:
            await world.change(tenant, **changes[step])
        elif step in deleted:
            await world.cluster.delete(deleted[step])
        elif step == "make":
            await world.user(USERS[number % 2]).namespace(namespace)
        elif step == "use":
            await world.cluster.patch(quota, {"status": {"used": {"pods": str(4 * number)}}}, STATUS)
        elif step == "move":
            await User(world.cluster).move(namespace, (*TENANTS, None, None)[number])
        else:
            await begin(world)


async def begin(world: Tenants) -> None:
    for tenant, user in zip(TENANTS, USERS, strict=True):
        with suppress(ApiError):
            await world.tenant(tenant, {"kind": "User", "name": user}, quota={"pods": "10"})


async def expected(world: Tenants) -> dict[str, tuple[Manifest | None, Manifest | None]]:
    """Return the limits and the defaults of each namespace, as tenants and counts say."""
    tenants = {one["metadata"]["name"]: one["spec"] for one in (await world.cluster.list(*key("")[:2])).items}
    of = {
        one["metadata"]["name"]: (one["metadata"].get("labels") or {}).get(LABEL)
        for one in (await world.cluster.list("v1", "Namespace")).items
    }
    quotas = (await world.cluster.list("v1", "ResourceQuota")).items
    used = {one["metadata"]["namespace"]: int(one.get("status", {}).get("used", {}).get("pods", 0)) for one in quotas}
    found = {}
    for name in NAMESPACES:
        spec = tenants.get(of.get(name) or "", {})
        others = sum(used.get(one, 0) for one in NAMESPACES if one != name and name in of and of.get(one) == of[name])
        most = (spec.get("quota") or {}).get("pods")
        hard = None if most is None else {"pods": str(max(int(most) - others, 0))}
        found[name] = hard, spec.get("containerDefaults") or None
    return found


async def seen(world: Tenants) -> dict[str, tuple[Manifest | None, Manifest | None]]:
    found = {}
    for name in NAMESPACES:
        quota = await world.found(ObjectKey("v1", "ResourceQuota", "tenant", name))
        limits = await world.found(ObjectKey("v1", "LimitRange", "tenant", name))
        default = limits["spec"]["limits"][0]["default"] if limits else None
        found[name] = quota["spec"]["hard"] if quota else None, default
    return found


@settings(max_examples=5)
@given(st.lists(st.tuples(STEPS, st.sampled_from([0.1, 3, 20, 200])), min_size=3, max_size=12))
def test_whatever_happens_each_namespace_ends_with_what_its_tenant_declares(
    steps: list[tuple[tuple[str, int, int], float]],
) -> None:
    async def scene(world: Tenants) -> None:
        await begin(world)
        for step, seconds in steps:
            await take(world, *step)
            await asyncio.sleep(seconds)
        await asyncio.sleep(600)
        assert await seen(world) == await expected(world)
        await world.settle()

    in_virtual_time(scene)
