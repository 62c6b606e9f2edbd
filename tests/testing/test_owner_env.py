"""An owner and its operator, one reconcile at a time."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest
from kubernetes.client import V1Deployment

from ocf import component
from ocf.cluster.client import ApiServerCluster
from ocf.component import Component, ReconcileContext
from ocf.errors import ConfigError, InvalidError, NotFoundError, ReconcileError
from ocf.objects import Manifest, ObjectKey
from ocf.primitives import deployment
from ocf.runtime.admission import Policy, Validation
from ocf.runtime.crds import CamelModel, CustomResource, OwnerStatus, Scope
from ocf.runtime.operator import Operator, OwnerType, Relation
from ocf.testing import OwnerEnv, VirtualClock
from ocf.testing.envtest.fixtures import Envtest
from ocf_server import ControllerSettings, EmbeddedCluster

pytest_plugins = ["pytester"]


class ShopSpec(CamelModel):
    replicas: int = 1


class ShopStatus(OwnerStatus):
    count: int | None = None


class Shop(CustomResource[ShopSpec, ShopStatus], group="example.com", version="v1"):
    spec: ShopSpec = ShopSpec()


class SettledShop(Shop, group="settled.example.com", version="v1", kind="Shop"):
    """A kind that no other test defines on the shared API server."""


class Realm(Shop, group="example.com", version="v1", kind="Shop", scope=Scope.CLUSTER):
    """Shops everywhere."""


def components(shop: Shop) -> list[Component]:
    pod = {"spec": {"containers": [{"name": "web", "image": "web:1"}]}}
    web = deployment.Builder({"spec": {"replicas": shop.spec.replicas, "template": pod}})
    parts = component.Builder("web", owner=shop.key, condition_type="WebReady").with_namespace("town")
    return [parts.with_resource(web).build()]


OPERATOR = Operator(name="shops", owner=OwnerType.of(Shop), components=components)
SHOP: Manifest = {
    "apiVersion": "example.com/v1",
    "kind": "Shop",
    "metadata": {"name": "corner", "namespace": "town"},
    "spec": {},
}
WEB = ObjectKey("apps/v1", "Deployment", "corner", "town")


@pytest.fixture
async def env() -> OwnerEnv[Shop]:
    clock = VirtualClock()
    return await OwnerEnv.create(OPERATOR, SHOP, EmbeddedCluster(now=clock.now), clock)


async def test_one_reconcile_is_one_reconcile(env: OwnerEnv[Shop]) -> None:
    await env.reconcile()
    assert (await env.conditions())["WebReady"]["reason"] == "Creating"


async def test_it_settles_with_the_controllers_as_far_as_they_come_without_time() -> None:
    clock = VirtualClock()
    cluster = EmbeddedCluster(now=clock.now)
    controllers = cluster.controllers(ControllerSettings(ready_after=timedelta(seconds=5)))
    env = await OwnerEnv.create(OPERATOR, SHOP, cluster, clock, controllers=controllers)
    await env.settle()
    pods = (await cluster.list("v1", "Pod")).items
    assert (len(pods), (await env.conditions())["WebReady"]["reason"]) == (1, "Creating")
    clock.advance(timedelta(seconds=5))
    await env.settle()
    assert (await env.conditions())["WebReady"]["reason"] == "Healthy"


async def test_a_real_api_server_does_as_well(envtest: Envtest, envtest_cluster: ApiServerCluster) -> None:
    envtest.plane.install_crds(SettledShop.definition())
    metadata = {"name": "corner", "namespace": envtest.namespace}
    owner = {**SHOP, "apiVersion": "settled.example.com/v1", "metadata": metadata}

    def web(shop: Shop) -> Component:
        pod = {"spec": {"containers": [{"name": "web", "image": "web:1"}]}}
        base = {"spec": {"replicas": shop.spec.replicas, "template": pod}}
        return component.Builder("web", owner=shop.key).with_resource(deployment.Builder(base)).build()

    operator = Operator(name="shops", owner=OwnerType.of(SettledShop), components=web)
    env = await OwnerEnv.create(operator, owner, envtest_cluster, VirtualClock())
    await env.settle(rollouts=False)
    await env.patch({"spec": {"replicas": 3}})
    await env.settle(rollouts=False)

    live = await env.cluster.get(ObjectKey("apps/v1", "Deployment", "corner", envtest.namespace))
    assert (live["spec"]["replicas"], (await env.conditions())["Ready"]["reason"]) == (3, "Creating")
    await env.delete()


async def test_it_settles_with_rolled_out_workloads(env: OwnerEnv[Shop]) -> None:
    await env.settle()
    assert (await env.conditions())["WebReady"]["reason"] == "Healthy"
    await env.patch({"spec": {"replicas": 3}})
    await env.settle()
    assert (await env.cluster.get(WEB))["status"]["readyReplicas"] == 3


async def test_it_settles_without_rollouts(env: OwnerEnv[Shop]) -> None:
    await env.settle(rollouts=False)
    assert (await env.conditions())["WebReady"]["reason"] == "Creating"


@pytest.mark.parametrize("named", ["", "elsewhere"], ids=["without a namespace", "with a namespace"])
async def test_a_cluster_scoped_owner_has_its_objects_in_namespaces(named: str) -> None:
    """The API server drops the namespace of a cluster-scoped object."""
    operator = Operator(name="realms", owner=OwnerType.of(Realm), components=components)
    clock = VirtualClock()
    owner = {**SHOP, "metadata": {"name": "corner"} | ({"namespace": named} if named else {})}
    cluster = EmbeddedCluster(namespaces=["town"], now=clock.now)
    env = await OwnerEnv.create(operator, owner, cluster, clock)
    await env.settle()
    assert env.key == ObjectKey("example.com/v1", "Shop", "corner")
    assert (await env.conditions())["WebReady"]["reason"] == "Healthy"
    (reference,) = (await env.cluster.get(WEB))["metadata"]["ownerReferences"]
    assert reference["uid"] == (await env.read())["metadata"]["uid"]
    await env.delete()
    assert (await env.cluster.list("apps/v1", "Deployment")).items == ()


async def test_a_deleted_owner_takes_its_objects_along(env: OwnerEnv[Shop]) -> None:
    await env.settle()
    await env.delete()
    assert (await env.cluster.list("apps/v1", "Deployment")).items == ()


async def test_an_operator_that_never_settles_is_an_error_with_its_writes() -> None:
    def count(context: ReconcileContext, _shop: Shop, _outcome: object) -> None:
        context.status["count"] = context.status.get("count", 0) + 1

    restless = Operator(name="restless", owner=OPERATOR.owner, components=lambda _: (), report=count)
    clock = VirtualClock()
    env = await OwnerEnv.create(restless, SHOP, EmbeddedCluster(now=clock.now), clock)
    with pytest.raises(AssertionError, match=r"reconcile 4 of example.com/v1/Shop/town/corner still wrote: .*status"):
        await env.settle(most=4)


@pytest.mark.parametrize("delay", [timedelta(0), timedelta(seconds=-1)], ids=str)
async def test_it_settles_after_the_last_reconcile_that_is_asked_for_at_once(delay: timedelta) -> None:
    taken = 0

    def step(context: ReconcileContext, _shop: Shop, _outcome: object) -> None:
        nonlocal taken
        taken += 1
        context.requeue_after(delay if taken < 3 else timedelta(hours=1))

    operator = Operator(name="steps", owner=OPERATOR.owner, components=lambda _: (), report=step)
    clock = VirtualClock()
    env = await OwnerEnv.create(operator, SHOP, EmbeddedCluster(now=clock.now), clock)
    await env.settle()
    assert taken == 3
    taken = 0
    with pytest.raises(AssertionError, match=r"reconcile 2 of .* still asked for another one at once"):
        await env.settle(most=2)


async def test_an_error_of_a_reconcile_is_raised() -> None:
    def broken(_shop: Shop) -> list[Component]:
        raise ConfigError("no such version")

    operator = Operator(name="broken", owner=OPERATOR.owner, components=broken)
    clock = VirtualClock()
    env = await OwnerEnv.create(operator, SHOP, EmbeddedCluster(now=clock.now), clock)
    with pytest.raises(ConfigError, match="no such version"):
        await env.settle()


async def test_it_returns_when_the_next_reconcile_is_due() -> None:
    def later(context: ReconcileContext, _shop: Shop, _outcome: object) -> None:
        context.requeue_after(timedelta(seconds=30))

    operator = Operator(name="later", owner=OPERATOR.owner, components=lambda _: (), report=later)
    clock = VirtualClock()
    env = await OwnerEnv.create(operator, SHOP, EmbeddedCluster(now=clock.now), clock)
    assert await env.reconcile() == timedelta(seconds=30)


LOOP = ("-o", "asyncio_default_fixture_loop_scope=function")
CONFTEST = """
import pytest

from tests.testing.test_owner_env import OPERATOR, SHOP

pytest_plugins = ["ocf.testing.plugin"]


@pytest.fixture
def operator():
    return OPERATOR


@pytest.fixture
def owner():
    return SHOP
"""
TEST = """
async def test_it_becomes_healthy(owner_env):
    await owner_env.settle()
    assert (await owner_env.conditions())["WebReady"]["status"] == "True"
"""


@pytest.mark.parametrize("mode", ["auto", "strict"])
def test_the_fixture_needs_an_operator_and_an_owner(pytester: pytest.Pytester, mode: str) -> None:
    pytester.makeconftest(CONFTEST)
    marker = "import pytest\n\npytestmark = pytest.mark.asyncio\n" if mode == "strict" else ""
    pytester.makepyfile(marker + TEST)
    pytester.runpytest_inprocess("-p", "no:randomly", "-o", f"asyncio_mode={mode}", *LOOP).assert_outcomes(passed=1)


def test_a_missing_operator_is_named(pytester: pytest.Pytester) -> None:
    pytester.makeconftest('pytest_plugins = ["ocf.testing.plugin"]')
    pytester.makepyfile(TEST)
    result = pytester.runpytest_inprocess("-p", "no:randomly", "-o", "asyncio_mode=auto", *LOOP)
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*owner_env: the fixture `operator` is missing*"])


async def test_a_deletion_settles_once_the_owner_is_gone(env: OwnerEnv[Shop]) -> None:
    """The last reconcile removes the finalizer, so there is nothing to read for another one."""
    released: list[str] = []

    async def drop(shop: Shop, *_: object) -> None:
        released.append(shop.metadata.name or "")

    operator = Operator(name="shops", owner=OPERATOR.owner, components=components, on_delete=drop)
    env = OwnerEnv(operator, env.key, env.cluster, env.clock)
    await env.settle()
    await env.delete()
    await env.settle()
    assert released == ["corner"]
    with pytest.raises(NotFoundError):
        await env.read()
    assert await env.reconcile() is None


class Branch(CustomResource[ShopSpec], group="example.com", version="v1"):
    spec: ShopSpec = ShopSpec()


async def test_other_operators_reconcile_the_owners_that_the_first_one_makes() -> None:
    async def opens(shop: Shop, context: ReconcileContext) -> list[Component]:
        metadata = {"name": "east", "namespace": "town"}
        made = {**SHOP, "kind": "Branch", "metadata": metadata, "spec": {"replicas": shop.spec.replicas}}
        try:
            await context.cluster.get(ObjectKey.of(made))
        except NotFoundError:
            await context.cluster.create(made, field_manager="shops")
        return []

    def houses(branch: Branch) -> Component:
        pod = {"spec": {"containers": [{"name": "web", "image": "web:1"}]}}
        web = deployment.Builder({"spec": {"replicas": branch.spec.replicas, "template": pod}})
        return component.Builder("house", owner=branch.key).with_resource(web).build()

    shops = Operator(name="shops", owner=OPERATOR.owner, components=opens)
    branches = Operator(name="branches", owner=OwnerType.of(Branch), components=houses)
    clock = VirtualClock()
    env = await OwnerEnv.create(shops, SHOP, EmbeddedCluster(now=clock.now), clock, others=[branches])
    await env.settle()
    east = await env.cluster.get(ObjectKey("example.com/v1", "Branch", "east", "town"))
    assert [one["reason"] for one in east["status"]["conditions"]] == ["Healthy"]


@pytest.mark.parametrize(("across", "reconciled"), [(True, ["Healthy"]), (False, [])], ids=["across", "within"])
async def test_other_operators_reconcile_owners_of_other_namespaces_that_a_relation_concerns(
    across: bool, reconciled: list[str]
) -> None:
    """Without one, an environment in a namespace of a shared server leaves the owners of other tests alone."""

    def house(branch: Branch) -> Component:
        return component.Builder("house", owner=branch.key).build()

    relation = Relation(OPERATOR.owner_kind, ("example.com/v1", "Branch"), "spec.branches", across_namespaces=across)
    branches = Operator(name="branches", owner=OwnerType.of(Branch), components=house, watches=[relation])
    clock = VirtualClock()
    cluster = EmbeddedCluster(namespaces=["village"], now=clock.now)
    env = await OwnerEnv.create(OPERATOR, SHOP, cluster, clock, others=[branches])
    metadata = {"name": "west", "namespace": "village"}
    west = await cluster.create({**SHOP, "kind": "Branch", "metadata": metadata}, field_manager="user")
    await env.settle()
    status = (await cluster.get(ObjectKey.of(west))).get("status") or {}
    assert [one["reason"] for one in status.get("conditions", ())] == reconciled


async def test_the_policies_of_the_operator_hold() -> None:
    """A test sees them as users of the operator do, and a wrong expression fails it."""
    few = Validation("object.spec.replicas <= 5", "at most 5 replicas")
    policy = Policy.of(V1Deployment, "few", validations=[few])
    shops = replace(OPERATOR, policies=[policy])
    cluster = EmbeddedCluster()
    shop = {"apiVersion": "example.com/v1", "kind": "Shop", "metadata": {"name": "corner", "namespace": "town"}}
    env = await OwnerEnv.create(shops, {**shop, "spec": {"replicas": 6}}, cluster, VirtualClock())
    with pytest.raises(ReconcileError, match="denied request: at most 5 replicas"):
        await env.settle()
    await env.patch({"spec": {"replicas": 5}})
    await env.settle()

    wrong = replace(OPERATOR, policies=[replace(policy, validations=[Validation("object.")])])
    with pytest.raises(InvalidError, match=r"spec\.validations\[0\]\.expression"):
        await OwnerEnv.create(wrong, shop, EmbeddedCluster(), VirtualClock())
