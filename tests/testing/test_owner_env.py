"""An owner and its operator, one reconcile at a time."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated, Any

import pytest
from pydantic import BaseModel

from ocf import component
from ocf.component import Component, ReconcileContext
from ocf.errors import ConfigError
from ocf.objects import Manifest, ObjectKey
from ocf.primitives import deployment
from ocf.runtime.crds import CRDVersion, Preserve, crd
from ocf.runtime.operator import Operator, OwnerType
from ocf.testing import OwnerEnv, VirtualClock
from ocf_server import ControllerSettings, EmbeddedCluster

pytest_plugins = ["pytester"]


class ShopSpec(BaseModel):
    replicas: int = 1


class Shop(BaseModel):
    spec: ShopSpec = ShopSpec()
    status: Annotated[dict[str, Any], Preserve()] | None = None


def components(shop: Shop) -> list[Component]:
    web = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "town"},
        "spec": {
            "replicas": shop.spec.replicas,
            "selector": {"matchLabels": {"app": "web"}},
            "template": {
                "metadata": {"labels": {"app": "web"}},
                "spec": {"containers": [{"name": "web", "image": "web:1"}]},
            },
        },
    }
    return [component.Builder("web", condition_type="WebReady").with_resource(deployment.Builder(web).build()).build()]


OPERATOR = Operator(
    name="shops", owner=OwnerType.of(Shop, crd("example.com", CRDVersion("v1", Shop))), components=components
)
SHOP: Manifest = {
    "apiVersion": "example.com/v1",
    "kind": "Shop",
    "metadata": {"name": "corner", "namespace": "town"},
    "spec": {},
}
WEB = ObjectKey("apps/v1", "Deployment", "web", "town")


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


async def test_it_settles_with_rolled_out_workloads(env: OwnerEnv[Shop]) -> None:
    await env.settle()
    assert (await env.conditions())["WebReady"]["reason"] == "Healthy"
    await env.patch({"spec": {"replicas": 3}})
    await env.settle()
    assert (await env.cluster.get(WEB))["status"]["readyReplicas"] == 3


async def test_it_settles_without_rollouts(env: OwnerEnv[Shop]) -> None:
    await env.settle(rollouts=False)
    assert (await env.conditions())["WebReady"]["reason"] == "Creating"


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


async def test_an_error_of_a_reconcile_is_raised() -> None:
    def broken(_shop: Shop) -> list[Component]:
        raise ConfigError("no such version")

    operator = Operator(name="broken", owner=OPERATOR.owner, components=broken)
    clock = VirtualClock()
    env = await OwnerEnv.create(operator, SHOP, EmbeddedCluster(now=clock.now), clock)
    with pytest.raises(ConfigError, match="no such version"):
        await env.settle()


async def test_it_returns_when_the_next_reconcile_is_due() -> None:
    def later(_context: ReconcileContext, _shop: Shop, _outcome: object) -> timedelta:
        return timedelta(seconds=30)

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
