"""What users may do in the namespaces of tenants, and which namespaces they get.

Public reports: https://github.com/golang/vulndb/issues/5043 (the label is changed through a subresource),
https://github.com/projectcapsule/capsule/issues/1131 (an administrator moves a namespace),
https://github.com/projectcapsule/capsule/pull/288 (namespaces of a cordoned tenant),
https://github.com/kubernetes/kubernetes/issues/118640 (ephemeral containers).
"""

from __future__ import annotations

import asyncio
from typing import Any, Final

import pytest

from ocf.cluster import PatchOptions, PatchType, Subresource
from ocf.objects import Manifest, ObjectKey
from ocf.testing import faults
from tests.operators.tenancy.contents import registry_of
from tests.operators.tenancy.model import LABEL
from tests.operators.tenancy.world import MERGE, Tenants, User, in_virtual_time, refusal

EAST: Final = ObjectKey("v1", "Namespace", "east", "")
SHOPS: Final = {
    "registries": ["registry.example.com", "localhost:5000"],
    "storageClasses": ["fast"],
    "priorityClasses": ["low"],
    "nodeSelector": {"pool": "shops"},
}


async def shops(world: Tenants) -> None:
    """Make a tenant of alice with a namespace."""
    await world.tenant("shops", **SHOPS)
    await world.user("alice").namespace("east")
    await asyncio.sleep(5)


@pytest.mark.parametrize(
    ("user", "groups", "label", "tenant"),
    [
        pytest.param("alice", [], None, "shops", id="of a user"),
        pytest.param("carol", ["miners"], None, "mines", id="of a group"),
        pytest.param("alice", [], "shops", "shops", id="named by its user"),
        pytest.param("bob", ["miners"], "mines", "mines", id="one of two, named"),
        pytest.param("dave", [], None, None, id="of no tenant"),
    ],
)
def test_a_namespace_gets_the_tenant_of_its_user(
    user: str, groups: list[str], label: str | None, tenant: str | None
) -> None:
    async def scene(world: Tenants) -> None:
        await two(world)
        wanted = {} if label is None else {LABEL: label}
        live = await world.user(user, *groups).namespace("east", wanted)
        assert live["metadata"]["labels"].get(LABEL) == tenant

    in_virtual_time(scene, operating=False)


async def two(world: Tenants) -> None:
    people = [{"kind": "User", "name": "alice"}, {"kind": "User", "name": "bob"}]
    await world.tenant("shops", *people)
    await world.tenant("mines", {"kind": "Group", "name": "miners"}, maxNamespaces=1)


@pytest.mark.parametrize(
    ("user", "groups", "label", "text"),
    [
        pytest.param("dave", [], "shops", "dave is no owner of a tenant shops", id="of another's tenant"),
        pytest.param("alice", [], "none", "alice is no owner of a tenant none", id="of a tenant that does not exist"),
        pytest.param("bob", ["miners"], None, "name one of your tenants in the label", id="of one of two"),
    ],
)
def test_a_namespace_is_refused(user: str, groups: list[str], label: str | None, text: str) -> None:
    async def scene(world: Tenants) -> None:
        await two(world)
        wanted = {} if label is None else {LABEL: label}
        for dry_run in (True, False):
            assert text in await refusal(world.user(user, *groups).namespace("east", wanted, dry_run=dry_run))
        assert not await world.found(EAST)

    in_virtual_time(scene, operating=False)


@pytest.mark.promise("webhook-dry-run", runs="an operator of tenants that counts namespaces")
def test_a_tenant_has_at_most_as_many_namespaces_as_it_may_and_a_dry_run_is_none() -> None:
    async def scene(world: Tenants) -> None:
        await two(world)
        carol = world.user("carol", "miners")
        for _ in range(2):
            await carol.namespace("east", dry_run=True)
        await carol.namespace("east")
        for dry_run in (True, False):
            text = await refusal(carol.namespace("west", dry_run=dry_run))
            assert "tenant mines has 1 namespaces, and may have 1" in text
        await world.cluster.delete(EAST)
        await world.until_gone(EAST)
        await carol.namespace("west")

    in_virtual_time(scene, operating=False)


@pytest.mark.parametrize("value", ["mines", None])
@pytest.mark.parametrize("subresource", [None, Subresource.STATUS, Subresource.FINALIZE])
def test_a_user_does_not_move_a_namespace(value: str | None, subresource: Subresource | None) -> None:
    async def scene(world: Tenants) -> None:
        await two(world)
        bob = world.user("bob", "miners")
        await bob.namespace("east", {LABEL: "shops"})
        assert f"the label {LABEL} cannot be changed" in await refusal(bob.move("east", value, subresource))
        await bob.cluster.patch(EAST, {"metadata": {"labels": {"colour": "red"}}}, MERGE)
        await User(world.cluster).move("east", value)  # an administrator does

    in_virtual_time(scene, operating=False)


def pod(*images: str, namespace: str = "east", **spec: Any) -> Manifest:
    containers = [{"name": f"c{number}", "image": image} for number, image in enumerate(images)]
    metadata = {"name": "web", "namespace": namespace}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": containers, **spec}}


def claim(name: str | None) -> Manifest:
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}, "storageClassName": name}
    metadata = {"name": "data", "namespace": "east"}
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata, "spec": spec}


OURS: Final = "registry.example.com/web:1"


@pytest.mark.parametrize(
    ("manifest", "text"),
    [
        pytest.param(pod(OURS), "", id="an image of the tenant"),
        pytest.param(pod(OURS, "web:1"), "spec.containers[1].image: Forbidden: web:1 is of docker.io", id="no host"),
        pytest.param(pod("registry.example.com.evil.org/a"), "is of registry.example.com.evil.org", id="a prefix"),
        pytest.param(
            pod(OURS, initContainers=[{"name": "i", "image": "other.org/a"}]), "spec.initContainers[0]", id="init"
        ),
        pytest.param(pod(OURS, nodeSelector={"disk": "ssd"}), "", id="another label of nodes"),
        pytest.param(pod(OURS, nodeSelector={"pool": "mines"}), "got another pool", id="nodes of others"),
        pytest.param(pod(OURS, priorityClassName="low"), "", id="a priority class of the tenant"),
        pytest.param(pod(OURS, priorityClassName="high"), "high is not of the tenant, which has low", id="another"),
        pytest.param(claim("fast"), "", id="a storage class of the tenant"),
        pytest.param(claim("slow"), "slow is not of the tenant, which has fast", id="another storage class"),
        pytest.param(claim(None), "none is not of the tenant", id="no storage class"),
        pytest.param(pod("web:1", namespace="default"), "", id="a namespace without a tenant"),
        pytest.param(pod("web:1", namespace="kube-system"), "", id="a namespace of the system"),
    ],
)
def test_what_a_user_creates(manifest: Manifest, text: str) -> None:
    async def scene(world: Tenants) -> None:
        await shops(world)
        is_ours = manifest["metadata"]["namespace"] == "east"
        cluster = world.user("alice").cluster if is_ours else world.cluster
        if text:
            for dry_run in (True, False):
                assert text in await refusal(cluster.create(manifest, field_manager="user", dry_run=dry_run))
            return
        live = await cluster.create(manifest, field_manager="user")
        if live["kind"] == "Pod":
            assert ((live["spec"].get("nodeSelector") or {}).get("pool") == "shops") == is_ours

    in_virtual_time(scene)


def test_an_update_and_an_ephemeral_container_are_checked_and_what_was_there_stays() -> None:
    async def scene(world: Tenants) -> None:
        await shops(world)
        alice, key = world.user("alice").cluster, ObjectKey("v1", "Pod", "web", "east")
        await alice.create(pod(OURS), field_manager="user")
        text = await refusal(alice.patch(key, {"spec": {"containers": [{"name": "c0", "image": "web:1"}]}}, MERGE))
        assert "web:1 is of docker.io" in text
        debug = {"spec": {"ephemeralContainers": [{"name": "debug", "image": "busybox"}]}}
        options = PatchOptions(
            patch_type=PatchType.STRATEGIC_MERGE, field_manager="user", subresource=Subresource.EPHEMERAL_CONTAINERS
        )
        assert "spec.ephemeralContainers[0].image" in await refusal(world.cluster.patch(key, debug, options))
        # A tenant that gets other registries does not hold pods that exist.
        await world.change("shops", registries=["other.org"])
        await alice.patch(key, {"metadata": {"labels": {"a": "b"}}}, MERGE)

    in_virtual_time(scene)


def test_nothing_is_created_or_changed_in_a_cordoned_tenant_also_while_its_operator_is_down() -> None:
    async def scene(world: Tenants) -> None:
        assert world.webhooks is not None
        await shops(world)
        alice, key = world.user("alice").cluster, ObjectKey("v1", "ConfigMap", "one", "east")
        config = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "one", "namespace": "east"}}
        await alice.create(config, field_manager="user")
        await world.change("shops", cordoned=True)
        world.webhooks.inject(faults.webhook_down(times=None))
        other = {**config, "metadata": {"name": "two", "namespace": "east"}}
        for write in (
            alice.create(other, field_manager="user"),
            alice.create(other, field_manager="user", dry_run=True),
            world.cluster.create(other, field_manager="user"),
            alice.patch(key, {"data": {"a": "b"}}, MERGE),
        ):
            assert "the tenant is cordoned" in await refusal(write)
        await world.cluster.create({**config, "metadata": {"name": "one", "namespace": "default"}}, field_manager="a")
        await alice.delete(key)
        world.webhooks.inject()
        assert "tenant shops is cordoned" in await refusal(world.user("alice").namespace("west"))
        await world.change("shops", quota={"pods": "3"})  # what the operator writes goes on
        await world.until(ObjectKey("v1", "ResourceQuota", "tenant", "east"))
        await world.change("shops", cordoned=False)
        await alice.create(other, field_manager="user")

    in_virtual_time(scene)


def test_the_system_and_a_new_pod_of_the_operator_start_while_the_webhooks_are_down() -> None:
    async def scene(world: Tenants) -> None:
        assert world.webhooks is not None
        await shops(world)
        world.webhooks.inject(faults.webhook_down(times=None))
        for namespace in ("kube-system", "tenancy", "default"):
            await world.cluster.create(pod("web:1", namespace=namespace), field_manager="kubelet")
        await world.namespace("by-an-administrator")
        alice = world.user("alice")
        assert "failed calling webhook" in await refusal(alice.cluster.create(pod(OURS), field_manager="user"))
        assert "failed calling webhook" in await refusal(alice.namespace("west"))
        # What needs no decision does not wait: deletions, and other labels of namespaces.
        await alice.cluster.patch(EAST, {"metadata": {"labels": {"a": "b"}}}, MERGE)
        await alice.cluster.delete(EAST)

    in_virtual_time(scene)


@pytest.mark.parametrize(
    ("image", "registry"),
    [
        pytest.param("web", "docker.io", id="a name"),
        pytest.param("team/web:1", "docker.io", id="a path"),
        pytest.param("localhost/web", "localhost", id="this machine"),
        pytest.param("localhost:5000/web", "localhost:5000", id="a port"),
        pytest.param("registry.example.com/a/b@sha256:0", "registry.example.com", id="a digest"),
        pytest.param("web:1.2", "docker.io", id="a tag with a dot"),
    ],
)
def test_the_registry_of_an_image(image: str, registry: str) -> None:
    assert registry_of(image) == registry
