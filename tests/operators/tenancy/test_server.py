"""The operator of tenants as a process, with no rights but its own, and its webhooks over HTTPS; on both servers.

The tests play the controller of quotas.

Public reports: https://github.com/netbirdio/kubernetes-operator/issues/168 (webhooks of pods that are down keep their
own operator from starting).
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING, Any, Final

import pytest

from ocf.cluster import DeleteOptions, PatchOptions, PatchType, ServiceAccount, Subresource
from ocf.concepts import SystemClock
from ocf.errors import ApiError
from ocf.objects import Manifest, ObjectKey
from ocf.runtime.admission import Service, Url, Webhooks, configurations
from ocf.runtime.operator import ManagerOptions, Operator, WebhookOptions, running
from ocf.runtime.rbac import PolicyRule, roles
from ocf.testing import operator_cluster, serve_webhooks
from ocf.testing.envtest import ControllerName, ControlPlane
from ocf_server import EmbeddedCluster
from tests.operators.tenancy.model import API_VERSION, LABEL, Tenant
from tests.operators.tenancy.operator import ACCOUNT, tenants
from tests.operators.tenancy.world import Tenants, granted, key, prepare, refusal
from tests.support import eventually, until_granted

STATUS: Final = PatchOptions(patch_type=PatchType.MERGE, field_manager="controllers", subresource=Subresource.STATUS)
if TYPE_CHECKING:
    from ocf.testing.plugin import RunControllers

CONTROLLERS: Final = (ControllerName.CLUSTER_ROLE_AGGREGATION, ControllerName.NAMESPACE)
OURS: Final = "registry.example.com/web:1"


def pod(namespace: str, *, image: str = OURS, name: str = "web", **spec: Any) -> Manifest:
    containers = [{"name": "web", "image": image}]
    metadata = {"name": name, "namespace": namespace}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": containers, **spec}}


@asynccontextmanager
async def on_embedded() -> AsyncIterator[tuple[Tenants, Operator[Tenant]]]:
    cluster, operator = EmbeddedCluster(authorization=True), tenants()
    await cluster.apply(Tenant.definition(), field_manager="admin")
    await prepare(cluster)
    account = await operator_cluster(cluster, roles(granted(operator), name="tenancy", account=ACCOUNT))
    world = Tenants(cluster, account=account, home=ACCOUNT.namespace)
    async with admitted(world, operator):
        yield world, operator


@asynccontextmanager
async def on_real(plane: ControlPlane, controllers: RunControllers) -> AsyncIterator[tuple[Tenants, Operator[Tenant]]]:
    await asyncio.to_thread(plane.install_crds, Tenant.definition())
    with plane.namespace("tenancy-") as home, controllers(*CONTROLLERS):
        account = ServiceAccount("tenancy", home)
        operator, user = tenants(account), f"system:serviceaccount:{home}:tenancy"
        kubeconfig = await asyncio.to_thread(plane.kubeconfig_for, user)
        async with await plane.cluster() as cluster, await plane.cluster(kubeconfig) as restricted:
            await eventually(lambda: cluster.list(API_VERSION, Tenant.kind), lambda _: True, ignore=(ApiError,))
            await prepare(cluster)
            rules = granted(operator, home)
            for one in roles(rules, name=home, account=account):
                await cluster.create(one, field_manager="admin")
            await until_granted(cluster, user, rules)
            await until_granted(cluster, "alice", [PolicyRule("", "namespaces", "create")], groups=["users"])
            world = Tenants(cluster, f"{home}-", account=restricted, home=home)
            async with admitted(world, operator):
                yield world, operator


@asynccontextmanager
async def admitted(world: Tenants, operator: Operator[Tenant]) -> AsyncIterator[None]:
    """Serve the webhooks, and apply the policies, while the block runs."""
    cluster = world.cluster
    async with serve_webhooks(cluster, "tenancy", operator.webhooks, policies=operator.policies, namespace=world.home):
        await world.tenant(f"{world.prefix}probe", {"kind": "User", "name": "probe"})
        await eventually(lambda: is_called(world))
        await cluster.delete(key(f"{world.prefix}probe"))
        yield


async def is_called(world: Tenants) -> bool:
    """Return whether both configurations are in effect; a real API server reads each by itself."""
    user = world.user("probe")
    try:
        live = await user.namespace("probe", dry_run=True)
    except ApiError:
        return False
    refused = await refusal(user.namespace("probe", {LABEL: "none"}, dry_run=True))
    return LABEL in (live["metadata"].get("labels") or {}) and "is no owner" in refused


@pytest.fixture(params=["embedded", "envtest"])
async def place(request: pytest.FixtureRequest) -> AsyncIterator[tuple[Tenants, Operator[Tenant]]]:
    if request.param == "embedded":
        found = on_embedded()
    else:
        found = on_real(request.getfixturevalue("envtest_plane"), request.getfixturevalue("envtest_controllers"))
    async with found as one:
        yield one


async def test_the_life_of_a_tenant(place: tuple[Tenants, Operator[Tenant]], caplog: pytest.LogCaptureFixture) -> None:
    world, operator = place
    shops, east, west = f"{world.prefix}shops", f"{world.prefix}east", f"{world.prefix}west"
    for name in ("low", "high"):
        one = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": name}, "value": 1}
        await world.cluster.apply(one, field_manager="admin")
    config: Manifest = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "motd"}}
    async with world.operating(operator):
        await world.tenant(
            shops,
            quota={"requests.storage": "4Gi"},
            registries=["registry.example.com"],
            storageClasses=["fast"],
            priorityClasses=["low"],
            nodeSelector={"pool": "shops"},
            maxNamespaces=2,
            labels={"level": "1"},
        )
        alice = world.user("alice")
        for name in ("east", "west"):
            live = await alice.namespace(name)
            assert live["metadata"]["labels"][LABEL] == shops
        assert "has 2 namespaces, and may have 2" in await refusal(alice.namespace("north"))
        assert "bob is no owner" in await refusal(world.user("bob").namespace("north", {LABEL: shops}))
        for subresource in (None, Subresource.STATUS, Subresource.FINALIZE):
            assert "cannot be changed" in await refusal(alice.move(east, None, subresource))
        await world.until(key(shops), lambda one: (one.get("status") or {}).get("size") == 2)
        await world.until(
            ObjectKey("v1", "Namespace", east, ""), lambda one: one["metadata"]["labels"].get("level") == "1"
        )
        # The owner administers the namespace, within the rules of the tenant.
        await eventually(lambda: refusal(alice.cluster.create(pod(east), field_manager="user")), lambda text: not text)
        live = await alice.cluster.get(ObjectKey("v1", "Pod", "web", east))
        assert live["spec"]["nodeSelector"] == {"pool": "shops"}
        others = [
            (pod(east, name="b", image="web:1"), "web:1 is of docker.io"),
            (pod(east, name="b", priorityClassName="high"), "high is not of the tenant"),
            (pod(east, name="b", nodeSelector={"pool": "mines"}), "got another pool"),
        ]
        for manifest, text in others:
            assert text in await refusal(alice.cluster.create(manifest, field_manager="user"))
        debug = {"spec": {"ephemeralContainers": [{"name": "debug", "image": "busybox"}]}}
        ephemeral = PatchOptions(
            patch_type=PatchType.STRATEGIC_MERGE, field_manager="user", subresource=Subresource.EPHEMERAL_CONTAINERS
        )
        assert "busybox is of docker.io" in await refusal(
            world.cluster.patch(ObjectKey("v1", "Pod", "web", east), debug, ephemeral)
        )
        # What one namespace uses, the other has not.
        used = {"status": {"used": {"requests.storage": "1536Mi"}}}
        quota = ObjectKey("v1", "ResourceQuota", "tenant", east)
        await world.until(quota)
        await world.cluster.patch(quota, used, STATUS)
        await world.until(
            quota._replace(namespace=west),
            lambda one: one and one["spec"]["hard"] == {"requests.storage": "2560Mi"},
        )
        # The account of the tenant gets rights after its objects are declared.
        account = {"name": "deployer", "namespace": world.home}
        await world.change(shops, objects=[config], account=account)
        failed = await world.until(key(shops), lambda one: len(one["status"].get("failures") or {}) == 2)
        assert f"{world.home}:deployer" in failed["status"]["failures"][east]
        for name in (east, west):
            await world.grant(f"system:serviceaccount:{world.home}:deployer", name)
        await world.until(ObjectKey("v1", "ConfigMap", "motd", east))
        await world.until(key(shops), lambda one: "failures" not in one["status"])
        # Only the operator changes anything in a cordoned tenant.
        await world.change(shops, cordoned=True)
        one = {**config, "metadata": {"name": "one", "namespace": east}}
        await eventually(
            lambda: refusal(alice.cluster.create(one, field_manager="user", dry_run=True)),
            lambda text: "the tenant is cordoned" in text,
        )
        await world.change(shops, containerDefaults={"cpu": "1"})
        await world.until(ObjectKey("v1", "LimitRange", "tenant", east))
        await alice.cluster.delete(ObjectKey("v1", "Pod", "web", east), DeleteOptions(grace_period_seconds=0))
    await world.cluster.delete(key(shops))
    async with world.operating(operator):  # another process
        await world.until_gone(key(shops))
    for name in (east, west):
        await world.cluster.delete(ObjectKey("v1", "Namespace", name, ""))
    refused = [line for line in caplog.text.splitlines() if "forbidden" in line.lower()]
    assert [line for line in refused if f"{world.home}:tenancy" in line] == []


@pytest.mark.parametrize("where", ["embedded", "envtest"])
async def test_the_system_and_a_new_pod_of_the_operator_start_while_nothing_serves_the_webhooks(
    where: str, request: pytest.FixtureRequest
) -> None:
    async with AsyncExitStack() as stack:
        home, cluster = ACCOUNT.namespace, EmbeddedCluster(namespaces=["tenancy", "other"])
        world = Tenants(cluster, home=home)
        if where == "envtest":
            plane: ControlPlane = request.getfixturevalue("envtest_plane")
            world.cluster = await stack.enter_async_context(await plane.cluster())
            world.home = stack.enter_context(plane.namespace("tenancy-"))
            world.prefix = f"{world.home}-"
        down = configurations(Webhooks("tenancy-down", tenants().webhooks), Service("nothing", world.home))
        for one in down:
            await world.cluster.create(one, field_manager="admin")
            stack.push_async_callback(world.cluster.delete, ObjectKey.of(one))
        await world.namespace("guarded", **{LABEL: "shops"})  # by an administrator
        guarded = f"{world.prefix}guarded"
        await eventually(
            lambda: refusal(world.cluster.create(pod(guarded), field_manager="kubelet", dry_run=True)),
            lambda text: "failed calling webhook" in text,
        )
        for namespace in ("kube-system", world.home, "default"):
            await world.cluster.create(pod(namespace, image="web:1"), field_manager="kubelet", dry_run=True)
        await world.edit(ObjectKey("v1", "Namespace", guarded, ""), {"metadata": {"labels": {"a": "b"}}})
        await world.cluster.delete(ObjectKey("v1", "Namespace", guarded, ""))


async def test_a_process_serves_its_webhooks_from_its_cache_under_its_role() -> None:
    cluster, operator = EmbeddedCluster(authorization=True), tenants()
    admission = WebhookOptions(
        address=Url("https://127.0.0.1"), namespace=ACCOUNT.namespace, host="127.0.0.1", port=0, register=True
    )
    options = ManagerOptions(listen=None, clock=SystemClock(), admission=admission)
    rules = granted(operator) | options.policy_rules(operator)
    account = await operator_cluster(cluster, roles(rules, name="tenancy", account=ACCOUNT))
    await cluster.apply(Tenant.definition(), field_manager="admin")
    await prepare(cluster)
    world = Tenants(cluster, home=ACCOUNT.namespace)
    async with running(account, operator, options=options) as process:
        await process.started()
        await world.tenant("shops", registries=["registry.example.com"])

        async def tenant_of_a_new_one() -> str:
            live = await world.user("alice").namespace("east", dry_run=True)
            return str(live["metadata"]["labels"].get(LABEL))

        await eventually(tenant_of_a_new_one, lambda found: found == "shops")
        await world.user("alice").namespace("east")
        await world.until(ObjectKey("rbac.authorization.k8s.io/v1", "RoleBinding", "tenant", "east"))
        refused = world.user("alice").cluster.create(pod("east", image="web:1"), field_manager="user")
        assert "web:1 is of docker.io" in await refusal(refused)
