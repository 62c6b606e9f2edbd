"""Tenants on the embedded server, which authorizes requests: users make namespaces, and the operator fills them."""

from __future__ import annotations

import asyncio

from ocf.objects import ObjectKey
from tests.operators.tenancy.model import LABEL
from tests.operators.tenancy.world import Tenants, in_virtual_time


def test_a_namespace_belongs_to_the_tenant_of_its_user() -> None:
    async def scene(world: Tenants) -> None:
        await world.tenant("shops", quota={"pods": "10"}, maxNamespaces=2)
        live = await world.user("alice").namespace("east")
        assert live["metadata"]["labels"][LABEL] == "shops"
        await asyncio.sleep(5)
        quota = await world.found(ObjectKey("v1", "ResourceQuota", "tenant", "east"))
        assert quota["spec"]["hard"] == {"pods": "10"}
        status = await world.status("shops")
        assert (status["namespaces"], status["size"]) == (["east"], 1)
        await world.settle()

    in_virtual_time(scene)
