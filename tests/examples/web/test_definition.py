"""A real API server accepts the definition of shops and all their objects."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Final

import pytest
from click.testing import CliRunner, Result

from examples.web import played
from examples.web.operator import operator
from examples.web.shop import Shop
from ocf.cli.app import app
from ocf.cluster.client import ApiServerCluster
from ocf.errors import InvalidError
from ocf.objects import Manifest
from ocf.runtime.operator import ManagerOptions, running
from ocf.runtime.rbac import roles
from ocf.testing import LoopClock, VirtualClock, assert_quiet, operator_cluster, run_in_virtual_time
from ocf.testing.envtest import ControlPlane
from ocf.testing.envtest.binaries import Programs
from ocf_server import EmbeddedCluster
from tests.support import until_granted

CHECKOUT: Final = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def plane(envtest_programs: Programs) -> Iterator[ControlPlane]:
    """Give a control plane of this module's own: other tests have other shops."""
    with ControlPlane(envtest_programs) as started:
        yield started


@pytest.fixture
async def real(plane: ControlPlane) -> AsyncIterator[ApiServerCluster]:
    """Return a real API server with the definition of shops."""
    await asyncio.to_thread(plane.install_crds, Shop.definition())
    async with await plane.cluster() as cluster:
        namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": played.NAMESPACE}}
        await cluster.create(namespace, field_manager="user")
        for manifest in played.granted(played.RULES):
            await cluster.create(manifest, field_manager="user")
        await until_granted(cluster, played.ACCOUNT.username, played.RULES, namespace=played.NAMESPACE)
        yield cluster


async def diff(plane: ControlPlane, *more: str) -> Result:
    """Run the page's `ocf diff`; in a thread, because it runs a loop of its own."""
    command = ["diff", "examples.web.operator:components", "--owner", "examples/web/shop.yaml", *more]
    return await asyncio.to_thread(CliRunner().invoke, app, [*command, "--kubeconfig", str(plane.kubeconfig)])


async def test_a_real_server_accepts_all_objects(
    real: ApiServerCluster, plane: ControlPlane, clock: VirtualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    await played.open_shop(real, version="1.4.2", exporter=True)
    with pytest.raises(InvalidError, match=r"spec\.version"):
        await played.change(real, version="latest")
    await played.give_password(real)
    await played.reconcile_until_in_sync(real, clock)
    await played.scale(real, 5)
    counts = []
    for change in ({}, {"suspended": True}, {"suspended": False, "version": "2.0.3"}, {"version": "2.3.0"}):
        await played.change(real, **change)
        await played.reconcile_until_in_sync(real, clock)
        counts.append((await real.get(played.WEB))["spec"]["replicas"])

    assert counts == [5, 0, 5, 5]
    ready = {each["type"]: each["reason"] for each in (await real.get(played.SHOP))["status"]["conditions"]}
    assert ready == dict.fromkeys(["DatabaseReady", "ApplicationReady", "Ready"], "Healthy")
    await assert_quiet(real, lambda seen: played.reconcile_shop(seen, clock))
    monkeypatch.chdir(CHECKOUT)
    same, older = await diff(plane), await diff(plane, "--set", "spec.version=1.4.2")
    assert (same.exit_code, older.exit_code) == (0, 1)
    assert "is set by mutation few-connections" in older.stdout


def test_the_operator_runs_and_sets_one_condition_for_all() -> None:
    """In virtual time, as its process runs it."""

    async def ready() -> Manifest:
        clock = LoopClock()
        cluster = EmbeddedCluster(namespaces=[played.NAMESPACE], now=clock.now, authorization=True)
        await cluster.create(Shop.definition(), field_manager="user")
        await played.give_password(cluster)
        options = ManagerOptions(listen=None, clock=clock)
        rules = played.RULES | options.policy_rules(operator)
        restricted = await operator_cluster(cluster, roles(rules, name=operator.name, account=played.ACCOUNT))
        async with running(restricted, operator, options=options):
            await played.open_shop(cluster)
            for _ in range(3):
                await asyncio.sleep(30)
                await played.controllers(cluster)
            await asyncio.sleep(30)
        assert [request for request in cluster.requests if request.code == 403] == []
        conditions = (await cluster.get(played.SHOP))["status"]["conditions"]
        return {each["type"]: each["reason"] for each in conditions}

    assert run_in_virtual_time(ready()) == dict.fromkeys(["DatabaseReady", "ApplicationReady", "Ready"], "Healthy")
