"""The provider for Cluster API beside its real controllers, which `make cluster-api` builds."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import timedelta
from pathlib import Path

import pytest

from ocf.cli.nodegroups.providers import ProviderChoice, ProviderName
from ocf.cluster import ServiceAccount
from ocf.controllers.nodegroup.manifests import cluster_role
from ocf.controllers.nodegroup.providers.cluster_api import ClusterAPIProvider
from ocf.errors import CapacityExhaustedError
from ocf.nodegroups import MachineRequest
from ocf.objects import Manifest
from ocf.runtime.rbac import roles
from tests.controllers.nodegroup.whole_cluster.cluster_api import CLUSTER, ClusterAPI, running
from tests.controllers.nodegroup.whole_cluster.environment import SYSTEM, Environment
from tests.controllers.nodegroup.whole_cluster.history import API
from tests.controllers.nodegroup.whole_cluster.in_process import controller
from tests.support import until_granted

ACCOUNT = ServiceAccount("cluster-api", SYSTEM)
PAUSED = "cluster.x-k8s.io/paused"
UNDERUTILIZED_FOR = timedelta(minutes=11)

Reconciles = Callable[[], int]


@pytest.fixture
async def capi(env: Environment, tmp_path: Path) -> AsyncIterator[ClusterAPI]:
    folder = tmp_path / "cluster-api"
    folder.mkdir()
    async with running(env, folder) as found:
        await found.define("small")
        yield found


@pytest.fixture
async def reconciles(capi: ClusterAPI) -> AsyncIterator[Reconciles]:
    env = capi.env
    kubeconfig = await installed(env)
    async with controller(env, lambda where: ClusterAPIProvider(where, env.namespace), kubeconfig) as found:
        yield found


async def installed(env: Environment) -> Path:
    """Grant what an installation for Cluster API may do, and nothing else; return the kubeconfig of its user."""
    provider = ProviderChoice(name=ProviderName.CLUSTER_API, namespace=env.namespace)
    granted = cluster_role(lease_namespace=SYSTEM) | provider.rules()
    manifests = roles(granted, name=ACCOUNT.name, account=ACCOUNT)
    items = json.dumps({"apiVersion": "v1", "kind": "List", "items": manifests})
    await asyncio.to_thread(env.plane.kubectl, "apply", "--filename=-", stdin=items)
    user = f"system:serviceaccount:{SYSTEM}:{ACCOUNT.name}"
    await until_granted(env.cluster, user, granted)
    return await asyncio.to_thread(env.plane.kubeconfig_for, user)


async def owners(env: Environment) -> dict[str, str]:
    """Return the machine of each VPSieNode."""
    return {name: each.get("machineId", "") for name, each in (await env.machines()).items()}


async def serving(capi: ClusterAPI, replicas: int) -> dict[str, str]:
    """Let a Deployment serve, with a node for each of its pods, as many as may be; return the machines."""
    await capi.env.add_group(maxNodes=replicas)
    await capi.env.deploy("web", replicas=replicas, cpu="1500m")
    return await settled(capi, replicas)


async def settled(capi: ClusterAPI, replicas: int, changed: Callable[[dict[str, str]], bool] = bool) -> dict[str, str]:
    """Wait until pods serve on as many nodes of ours, whose machines Cluster API has no others beside."""
    env = capi.env

    async def serves() -> bool:
        found = await env.machines()
        ids = await owners(env)
        machines = await capi.machines("small")
        return (
            await env.ready("web") == replicas
            and [each.get("phase") for each in found.values()] == ["Ready"] * replicas
            and sorted(ids.values()) == sorted(machines)
            and not any("deletionTimestamp" in each["metadata"] for each in machines.values())
            and changed(ids)
        )

    await env.until(f"{replicas} pods serve, each on a node of ours", serves)
    return await owners(env)


async def assert_stable(capi: ClusterAPI, reconciles: Reconciles) -> None:
    """Check that nothing more happens, also when idle nodes would be removed: no Machine is marked or replaced."""
    before = await owners(capi.env), sorted(await capi.env.nodes()), await capi.replicas("small")
    for _ in range(2):
        await goes_on(capi, reconciles)
        capi.env.clock.advance(UNDERUTILIZED_FOR)
    await goes_on(capi, reconciles)
    assert (await owners(capi.env), sorted(await capi.env.nodes()), await capi.replicas("small")) == before
    assert await capi.marked("small") == []


async def goes_on(capi: ClusterAPI, reconciles: Reconciles, number: int = 10) -> None:
    before = reconciles()

    async def are() -> bool:
        return reconciles() >= before + number

    await capi.env.until(f"{number} more reconciles", are)


async def test_machines_of_new_nodes_are_theirs_and_exactly_the_chosen_one_goes(
    capi: ClusterAPI, reconciles: Reconciles
) -> None:
    env = capi.env
    before = await serving(capi, 2)
    # A machine of the user in between, which no request gets.
    await capi.change("small", {"spec": {"replicas": 3}})

    async def has_joined() -> bool:
        return len(await env.nodes()) == len(await capi.machines("small")) == 3

    await env.until("the user's machine has joined", has_joined)
    assert await owners(env) == before
    await env.change("apps/v1", "Deployment", "web", replicas=1)

    async def has_one_pod() -> bool:
        return await env.ready("web") == 1

    await env.until("one pod is left", has_one_pod)
    (kept,) = [name.removeprefix("node-") for name in await env.pods_by_node("web")]
    (chosen,) = set(before.values()) - {kept}
    await goes_on(capi, reconciles)
    env.clock.advance(UNDERUTILIZED_FOR)

    async def is_gone() -> bool:
        return list((await owners(env)).values()) == [kept] and chosen not in await capi.machines("small")

    await env.until("the machine of the idle node is gone", is_gone)
    assert (await capi.replicas("small"), kept in await capi.machines("small")) == (2, True)
    await assert_stable(capi, reconciles)


async def roll_out(capi: ClusterAPI, _: str) -> None:
    await capi.roll_out("small", "b")


async def check_health(capi: ClusterAPI, machine: str) -> None:
    unhealthy = [{"type": "Ready", "status": "False", "timeoutSeconds": 0}]
    selector = {"matchLabels": {"cluster.x-k8s.io/deployment-name": "small"}}
    spec = {"clusterName": CLUSTER, "selector": selector, "checks": {"unhealthyNodeConditions": unhealthy}}
    await capi.create("MachineHealthCheck", "small", spec)
    await capi.env.fail_node(f"node-{machine}")


async def delete_machine(capi: ClusterAPI, machine: str) -> None:
    await capi.env.cluster.delete(capi.key("Machine", machine))


# https://github.com/kubernetes/autoscaler/issues/8494, https://github.com/gardener/machine-controller-manager/issues/758
@pytest.mark.promise("node-groups-replaced", runs="beside the controllers of Cluster API 1.13.6, on a real API server")
@pytest.mark.parametrize("replace", [roll_out, check_health, delete_machine])
async def test_a_replacement_belongs_to_the_same_request(
    capi: ClusterAPI, reconciles: Reconciles, replace: Callable[[ClusterAPI, str], Awaitable[None]]
) -> None:
    """The group may have no more nodes than it has, which a rollout exceeds for a while."""
    before = await serving(capi, 1)
    (machine,) = before.values()
    await replace(capi, machine)
    after = await settled(capi, 1, lambda ids: machine not in ids.values())
    assert after.keys() == before.keys()
    await assert_stable(capi, reconciles)


# https://github.com/kubernetes-sigs/cluster-api/issues/12035
@pytest.mark.promise("node-groups-replaced", runs="a drain that a disruption budget holds back, on a real API server")
async def test_a_replacement_waits_for_pods_that_a_budget_holds_back(capi: ClusterAPI, reconciles: Reconciles) -> None:
    before = await serving(capi, 1)
    (machine,) = before.values()
    await capi.env.add_budget("web", least=1)
    await capi.roll_out("small", "b")

    async def is_held_back() -> bool:
        return "deletionTimestamp" in (await capi.machines("small"))[machine]["metadata"]

    await capi.env.until("Cluster API drains the old machine", is_held_back)
    replaced = await owners(capi.env)
    assert replaced.keys() == before.keys()
    for _ in range(2):
        await goes_on(capi, reconciles)
        capi.env.clock.advance(UNDERUTILIZED_FOR)
    await goes_on(capi, reconciles)
    assert (await capi.marked("small"), (await owners(capi.env)).keys()) == ([], before.keys())
    assert await capi.env.ready("web") == 1
    await capi.env.delete("policy/v1", "PodDisruptionBudget", "web")
    after = await settled(capi, 1, lambda ids: machine not in ids.values())
    assert after.keys() == before.keys()
    await assert_stable(capi, reconciles)


@pytest.mark.parametrize(
    ("kind", "name", "pause"),
    [
        # https://github.com/kubernetes/autoscaler/issues/9345
        pytest.param("MachineDeployment", "small", lambda on: _annotation("" if on else None), id="annotation"),
        pytest.param("Cluster", CLUSTER, lambda on: {"spec": {"paused": on}}, id="Cluster"),
    ],
)
async def test_a_paused_machine_deployment_is_available_when_it_is_resumed(
    capi: ClusterAPI, reconciles: Reconciles, kind: str, name: str, pause: Callable[[bool], Manifest]
) -> None:
    env = capi.env
    provider = ClusterAPIProvider(env.cluster, env.namespace)
    await capi.change(name, pause(True), kind)

    async def problem() -> str:
        (known,) = await provider.instance_types()
        return known.problem

    async def is_named() -> bool:
        return await problem() == "MachineDeployment small is paused"

    async def is_available() -> bool:
        return not await problem()

    await env.until("the type is not available", is_named)
    await env.add_group(maxNodes=1)
    await env.deploy("web", replicas=1, cpu="1500m")
    await goes_on(capi, reconciles)
    assert (await capi.replicas("small"), await owners(env)) == (0, {})
    error = (await env.read_conditions(env.key(API, "NodeGroup", "workers")))["Error"]
    assert "MachineDeployment small is paused" in error["message"]
    await capi.change(name, pause(False), kind)
    # Cluster API ends the condition Paused on its own time; a catalog that is read before has the type as paused.
    await env.until("the type is available", is_available)
    # Later than the catalog is read again.
    env.clock.advance(timedelta(minutes=6))
    await settled(capi, 1)


def _annotation(value: str | None) -> Manifest:
    return {"metadata": {"annotations": {PAUSED: value}}}


async def test_a_machine_deployment_that_is_being_deleted_is_not_available(capi: ClusterAPI) -> None:
    env = capi.env
    provider = ClusterAPIProvider(env.cluster, env.namespace)
    await capi.change("small", {"spec": {"replicas": 1}, "metadata": {"finalizers": ["tests.ocf.dev/held"]}})

    async def has_joined() -> bool:
        return len(await env.nodes()) == 1

    await env.until("a machine has joined", has_joined)
    await env.cluster.delete(capi.key("MachineDeployment", "small"))
    (known,) = await provider.instance_types()
    assert known.problem == known.undeletable == "MachineDeployment small is being deleted"
    with pytest.raises(CapacityExhaustedError, match="MachineDeployment small is being deleted"):
        await provider.create(MachineRequest("workers-1", "workers", "small", "fra"))
    assert await capi.replicas("small") == 1
