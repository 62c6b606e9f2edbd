"""Tenants on the embedded server, which authorizes requests: users make namespaces, and the operator fills them.

The tests play the controllers of quotas and namespaces.

Public reports: https://github.com/projectcapsule/capsule/issues/1298 (a namespace is taken out of a tenant).
"""

from __future__ import annotations

import asyncio
from typing import Any, Final

from ocf.cluster import PatchOptions, PatchType, Subresource
from ocf.objects import Manifest, ObjectKey
from tests.operators.tenancy.model import LABEL
from tests.operators.tenancy.world import MERGE, Tenants, in_virtual_time, key, refusal

STATUS: Final = PatchOptions(patch_type=PatchType.MERGE, field_manager="controllers", subresource=Subresource.STATUS)
FINALIZED: Final = PatchOptions(
    patch_type=PatchType.MERGE, field_manager="controllers", subresource=Subresource.FINALIZE
)
KINDS: Final = {
    "ResourceQuota": "v1",
    "LimitRange": "v1",
    "NetworkPolicy": "networking.k8s.io/v1",
    "RoleBinding": "rbac.authorization.k8s.io/v1",
}
SPEC: Final[dict[str, Any]] = {"quota": {"pods": "10", "requests.memory": "4Gi"}, "containerDefaults": {"cpu": "1"}}
CONFIG: Final[Manifest] = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "motd"}, "data": {"a": "b"}}


async def kinds(world: Tenants, namespace: str) -> set[str]:
    """Return the kinds of which a namespace has the object of its tenant."""
    keys = {kind: ObjectKey(version, kind, "tenant", namespace) for kind, version in KINDS.items()}
    return {kind for kind, one in keys.items() if await world.found(one)}


async def hard(world: Tenants, namespace: str) -> Manifest:
    """Return the limits of a namespace."""
    found: Manifest = (await world.found(quota(namespace)))["spec"]["hard"]
    return found


def quota(namespace: str) -> ObjectKey:
    return ObjectKey("v1", "ResourceQuota", "tenant", namespace)


async def use(world: Tenants, namespace: str, **used: str) -> None:
    """Count what is used in a namespace, as the controller of quotas does."""
    await world.cluster.patch(quota(namespace), {"status": {"used": used}}, STATUS)
    await asyncio.sleep(5)


async def shops(world: Tenants, *namespaces: str, **spec: Any) -> None:
    await world.tenant("shops", **{**SPEC, **spec})
    for name in namespaces:
        await world.user("alice").namespace(name)
    await asyncio.sleep(5)


def test_a_namespace_gets_what_its_tenant_has_and_its_owner_administers_it() -> None:
    async def scene(world: Tenants) -> None:
        await shops(world, "east")
        assert await kinds(world, "east") == {*KINDS}
        status = await world.status("shops")
        assert (status["namespaces"], status["size"]) == (["east"], 1)
        assert (await world.conditions("shops"))["Ready"] == ("True", "Healthy")
        config = {**CONFIG, "metadata": {"name": "one", "namespace": "east"}}
        await world.user("alice").cluster.create(config, field_manager="user")
        assert "cannot create" in await refusal(world.user("bob").cluster.create(config, field_manager="user"))
        await world.settle()

    in_virtual_time(scene)


def test_the_limits_of_a_namespace_are_what_the_others_leave() -> None:
    async def scene(world: Tenants) -> None:
        await shops(world, "east", "west")
        await use(world, "east", pods="4", **{"requests.memory": "1Gi"})
        await use(world, "west", pods="3", **{"requests.memory": "512Mi"})
        assert await hard(world, "east") == {"pods": "7", "requests.memory": "3584Mi"}
        assert await hard(world, "west") == {"pods": "6", "requests.memory": "3Gi"}
        assert "Exceeded" not in await world.conditions("shops")
        # Two requests at the same moment have got more than there was.
        await use(world, "west", pods="11")
        assert (await hard(world, "east"))["pods"] == "0"
        assert (await world.conditions("shops"))["Exceeded"] == ("True", "LimitExceeded")
        await use(world, "west", pods="0")
        await world.change("shops", quota={"pods": "20", "requests.memory": None})
        await asyncio.sleep(5)
        assert (await hard(world, "east"), await hard(world, "west")) == ({"pods": "20"}, {"pods": "16"})
        assert "Exceeded" not in await world.conditions("shops")
        await world.settle()

    in_virtual_time(scene)


def test_what_a_tenant_does_not_declare_any_more_goes() -> None:
    async def scene(world: Tenants) -> None:
        await shops(world, "east", "west")
        await world.change("shops", quota=None, containerDefaults=None, owners=[{"name": "bob"}])
        await asyncio.sleep(5)
        assert await kinds(world, "east") == {"NetworkPolicy", "RoleBinding"}
        config = {**CONFIG, "metadata": {"name": "one", "namespace": "east"}}
        await world.user("bob").cluster.create(config, field_manager="user")
        assert "cannot create" in await refusal(world.user("alice").cluster.create(config, field_manager="user"))
        # An administrator takes a namespace out of the tenant.
        await world.cluster.patch(
            ObjectKey("v1", "Namespace", "east", ""), {"metadata": {"labels": {LABEL: None}}}, MERGE
        )
        await asyncio.sleep(5)
        assert (await kinds(world, "east"), (await world.status("shops"))["namespaces"]) == (set(), ["west"])
        await world.settle()

    in_virtual_time(scene)


def test_a_namespace_that_ends_is_left_to_kubernetes() -> None:
    async def scene(world: Tenants) -> None:
        await shops(world, "east", "west", labels={"level": "1"})
        await use(world, "east", pods="4")
        assert (await hard(world, "west"))["pods"] == "6"
        east = ObjectKey("v1", "Namespace", "east", "")
        await world.edit(east, {"metadata": {"finalizers": ["example.com/held"]}})
        await world.cluster.delete(east)
        await asyncio.sleep(5)
        world.forget()
        await world.change("shops", quota={"pods": "9"}, containerDefaults={"cpu": "2"}, labels={"level": "2"})
        await asyncio.sleep(60)
        assert {one.namespace for one in world.written if one.namespace} <= {"west", "default"}
        assert (await world.status("shops"))["namespaces"] == ["west"]
        assert (await world.conditions("shops"))["Ready"] == ("True", "Healthy")
        assert await world.events(key("shops")) == []
        await world.settle()

    in_virtual_time(scene)


def test_labels_are_set_on_namespaces_that_exist_and_released() -> None:
    async def scene(world: Tenants) -> None:
        await shops(world, "east", labels={"level": "1"})
        live = await world.found(ObjectKey("v1", "Namespace", "east", ""))
        assert live["metadata"]["labels"]["level"] == "1"
        await world.change("shops", labels={"level": None})
        await asyncio.sleep(5)
        live = await world.found(ObjectKey("v1", "Namespace", "east", ""))
        assert "level" not in live["metadata"]["labels"]
        assert live["metadata"]["labels"][LABEL] == "shops"
        await world.settle()

    in_virtual_time(scene)


def test_objects_of_a_tenant_are_written_with_the_rights_of_its_account() -> None:
    async def scene(world: Tenants) -> None:
        account = {"name": "deployer", "namespace": "tenancy"}
        await shops(world, "east", "west", account=account, objects=[CONFIG])
        failures = (await world.status("shops"))["failures"]
        assert [*failures] == ["east", "west"]
        assert 'User "system:serviceaccount:tenancy:deployer" cannot' in failures["east"]
        assert (await world.conditions("shops"))["ObjectsReady"] == ("False", "Error")
        assert (await world.conditions("shops"))["Ready"] == ("False", "Error")
        assert await kinds(world, "east") == {*KINDS}
        await world.grant("system:serviceaccount:tenancy:deployer", "east")
        await asyncio.sleep(400)
        assert [*(await world.status("shops"))["failures"]] == ["west"]
        assert (await world.found(ObjectKey("v1", "ConfigMap", "motd", "east")))["data"] == {"a": "b"}
        await world.grant("system:serviceaccount:tenancy:deployer", "west")
        await asyncio.sleep(400)
        assert "failures" not in await world.status("shops")
        await world.settle()

    in_virtual_time(scene)


def test_a_tenant_that_is_deleted_leaves_the_namespaces() -> None:
    async def scene(world: Tenants) -> None:
        await shops(world, "east", labels={"level": "1"})
        await world.cluster.delete(key("shops"))
        await world.until_gone(key("shops"))
        live = await world.found(ObjectKey("v1", "Namespace", "east", ""))
        assert "level" not in live["metadata"]["labels"]
        west = await world.user("alice").namespace("west")
        assert LABEL not in west["metadata"]["labels"]
        await world.settle()

    in_virtual_time(scene)
