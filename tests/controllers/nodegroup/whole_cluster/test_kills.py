"""Processes of the node-group controller in a whole cluster, each of which is killed after one write.

Another process follows when the lease of the killed one has ended. What matters is stored before it is done, so that
nothing is done twice, and nothing is forgotten.
"""

from __future__ import annotations

import asyncio
import signal
import sys
from asyncio.subprocess import Process
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Final

import pytest

from ocf.controllers.nodegroup.manifests import NAME
from ocf.errors import NotFoundError
from ocf.objects import ObjectKey
from ocf.testing.metrics_stub import MetricsStub
from tests.controllers.nodegroup.whole_cluster.environment import HPA_USER, NODE_GROUP_USER, SYSTEM, Environment
from tests.controllers.nodegroup.whole_cluster.killing import done
from tests.controllers.nodegroup.whole_cluster.kwok_stages import NEVER_BOOTS
from tests.controllers.nodegroup.whole_cluster.load import SharedLoad
from tests.controllers.nodegroup.whole_cluster.process import RECONCILED

pytestmark = pytest.mark.long

ROOT: Final = Path(__file__).parents[4]
PACKAGE: Final = "tests.controllers.nodegroup.whole_cluster"
LEASE: Final = ObjectKey("coordination.k8s.io/v1", "Lease", NAME, SYSTEM)
BOOT_TIMEOUT: Final = timedelta(minutes=15)
UNDERUTILIZED_FOR: Final = timedelta(minutes=10)
PROCESSES: Final = 2
MACHINE: Final = ("create", "nodes")  # what the provider sends for a new machine


@dataclass
class Processes:
    """Processes with a lease: one works, and the others wait for it to end.

    Args:
        command: The command of a process.
        folder: The folder of their logs.
        running: The processes that are not known to have ended, oldest first, each with its log.
        logs: The logs of all processes so far.
    """

    command: Sequence[str]
    folder: Path
    running: dict[Process, Path] = field(default_factory=dict)
    logs: list[Path] = field(default_factory=list)

    async def start(self) -> None:
        """Start a process."""
        log = self.folder / f"process-{len(self.logs)}.log"
        self.logs.append(log)
        with log.open("wb") as output:
            process = await asyncio.create_subprocess_exec(*self.command, cwd=ROOT, stdout=output, stderr=output)
        self.running[process] = log

    async def replace(self) -> None:
        """Start a process for each one that is killed; fail if one ends otherwise."""
        while True:
            waiting = {asyncio.create_task(process.wait()): process for process in self.running}
            try:
                ended, _ = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for task in waiting:
                    task.cancel()
            for task in ended:
                log = self.running.pop(waiting[task])
                assert task.result() == -signal.SIGKILL, log.read_text(encoding="utf-8")
                await self.start()

    async def stop(self) -> None:
        """Kill all processes."""
        for process in self.running:
            with suppress(ProcessLookupError):
                process.kill()
        await asyncio.gather(*(process.wait() for process in self.running))

    def reconciles(self) -> int:
        """Return how many reconciles all processes have completed."""
        return sum(log.read_text(encoding="utf-8").splitlines().count(RECONCILED) for log in self.logs)


@asynccontextmanager
async def processes(
    env: Environment, folder: Path, *steps: str, module: str = "process", user: str = NODE_GROUP_USER
) -> AsyncIterator[Processes]:
    """Run processes for the length of a block, which are killed one after another, each after one step."""
    kubeconfig = await asyncio.to_thread(env.plane.kubeconfig_for, user)
    command = [sys.executable, "-m", f"{PACKAGE}.{module}", str(kubeconfig), str(folder), *steps]
    started = Processes(command, folder)
    async with AsyncExitStack() as stack:
        stack.push_async_callback(started.stop)
        for _ in range(PROCESSES):
            await started.start()
        tasks = await stack.enter_async_context(asyncio.TaskGroup())
        replacing = tasks.create_task(started.replace())
        stack.callback(replacing.cancel)
        yield started
        assert done(folder) == list(steps)


async def runs(env: Environment, *, pods: int, nodes: int) -> bool:
    """Return whether all pods run, on as many nodes as they need."""
    phases = [each.get("phase") for each in (await env.machines()).values()]
    return await env.ready("web") == pods and phases == ["Ready"] * nodes and len(await env.nodes()) == nodes


@pytest.mark.promise(
    "nodes-once", runs="a kill after each of 6 writes of a scale-up, beside the real scheduler and controllers"
)
async def test_a_group_grows_once_whenever_its_leader_is_killed(env: Environment, tmp_path: Path) -> None:
    steps = (
        "decision to add",
        "object created",
        "request stored",
        "machine created",
        "request accepted",
        "node ready",
    )
    await env.add_group()
    await env.deploy("web", replicas=3, cpu="900m")
    async with processes(env, tmp_path, *steps) as started:

        async def all_run() -> bool:
            return done(tmp_path) == list(steps) and await runs(env, pods=3, nodes=2)

        await env.until("three pods run on two nodes", all_run)
        await env.assert_idle(started.reconciles, users=[NODE_GROUP_USER])
    await env.assert_nothing_leaked()
    await env.assert_invariants()
    created = [each.name for each in env.audit.writes(NODE_GROUP_USER) if (each.verb, each.resource) == MACHINE]
    assert sorted(created) == sorted(await env.nodes())


@pytest.mark.promise("nodes-once", runs="a kill after each of 5 writes, beside the real scheduler and controllers")
async def test_a_node_that_never_boots_is_replaced_once_whenever_the_leader_is_killed(
    env: Environment, tmp_path: Path
) -> None:
    steps = ("failure stored", "refusal counted", "object deleted", "deletion stored", "machine deleted")
    await env.add_group(offeringIDs=[NEVER_BOOTS, "small"])
    await env.deploy("web", replicas=2, cpu="900m")
    async with processes(env, tmp_path, *steps) as started:

        async def is_requested() -> bool:
            return any("acceptedAt" in each for each in (await env.machines()).values())

        await env.until("a machine is requested", is_requested)
        env.clock.advance(BOOT_TIMEOUT)

        async def is_replaced() -> bool:
            return done(tmp_path) == list(steps) and await runs(env, pods=2, nodes=1)

        await env.until("another node has replaced it", is_replaced)
        await env.assert_idle(started.reconciles, users=[NODE_GROUP_USER])
    assert [each["failures"] for each in (await env.group())["backoffs"]] == [1]
    await env.assert_nothing_leaked()
    await env.assert_invariants()


@pytest.mark.promise(
    "nodes-once", runs="a kill after each of 7 writes of a drain, beside the real scheduler and controllers"
)
async def test_a_drain_goes_on_whenever_the_leader_is_killed(env: Environment, tmp_path: Path) -> None:
    steps = (
        "drain stored",
        "node cordoned",
        "pod evicted",
        "object deleted",
        "deletion stored",
        "machine deleted",
        "finalizer removed",
    )
    await env.add_group()
    await env.add_budget("web", 1)
    await env.deploy("web", replicas=3, cpu="900m")
    async with processes(env, tmp_path, *steps) as started:

        async def all_run() -> bool:
            return await runs(env, pods=3, nodes=2)

        await env.until("three pods run on two nodes", all_run)
        await leave_one_pod_on_each_node(env)
        await make_due(env)

        async def is_drained() -> bool:
            return done(tmp_path) == list(steps) and await runs(env, pods=2, nodes=1)

        await env.until("two pods run on one node", is_drained)
        await env.assert_idle(started.reconciles, users=[NODE_GROUP_USER])
    await env.assert_nothing_leaked()
    await env.assert_invariants()
    assert env.evictions() == [201]


async def leave_one_pod_on_each_node(env: Environment) -> None:
    """Let the Deployment delete a pod of the node with two."""
    (fullest,) = (pods for pods in (await env.pods_by_node("web")).values() if len(pods) == 2)
    cost = {"metadata": {"annotations": {"controller.kubernetes.io/pod-deletion-cost": "-1"}}}
    await env.merge_patch(env.key("v1", "Pod", fullest[0]), cost, by="user")
    await env.change("apps/v1", "Deployment", "web", replicas=2)


async def make_due(env: Environment) -> None:
    """Let both nodes be underutilized for as long as it takes."""

    async def are_unneeded() -> bool:
        return {each["name"] for each in (await env.group()).get("unneeded") or ()} == set(await env.nodes())

    await env.until("both nodes are underutilized", are_unneeded)
    env.clock.advance(UNDERUTILIZED_FOR)


@pytest.mark.promise(
    "one-leader",
    runs="a kill of the HPA controller after each of 3 writes, beside the real scheduler and controllers",
)
async def test_a_target_is_scaled_once_whenever_the_autoscaler_is_killed(env: Environment, tmp_path: Path) -> None:
    steps = ("autoscaler claimed", "target scaled", "status stored")
    load = SharedLoad(env.cluster)
    await env.add_node("machine")
    await env.deploy("web", replicas=2, cpu="100m")
    await env.autoscale("web", least=2, most=9, cpu=50)
    load.millicores = 6 * 50
    async with (
        MetricsStub(env.plane, load) as stub,
        processes(env, tmp_path, *steps, module="hpa_process", user=HPA_USER),
    ):

        async def all_run() -> bool:
            return done(tmp_path) == list(steps) and await env.ready("web") == 6

        await env.until("six pods run", all_run)
        await env.assert_idle(lambda: len(stub.queries), users=[HPA_USER])
    scaled = [each for each in env.audit.writes(HPA_USER) if each.resource == "deployments/scale"]
    assert [each.code for each in scaled] == [200]


TYPE_FILE: Final = """\
- name: small
  allocatable: {cpu: "2", memory: 8Gi, pods: "110"}
  offerings: [{zone: fra, price: 0.02}]
"""
COMMAND: Final = "from ocf.cli import main; main()"


async def test_the_command_goes_on_where_a_killed_one_has_stopped(env: Environment, tmp_path: Path) -> None:
    """Two processes of `ocf nodegroups run`, with the default settings and the installed roles."""
    (tmp_path / "types.yaml").write_text(TYPE_FILE, encoding="utf-8")
    kubeconfig = await asyncio.to_thread(env.plane.kubeconfig_for, NODE_GROUP_USER)
    arguments = ["nodegroups", "run", f"--types={tmp_path / 'types.yaml'}", f"--kubeconfig={kubeconfig}"]
    started = Processes([sys.executable, "-c", COMMAND, *arguments, "--host=127.0.0.1", "--port=0"], tmp_path)
    await env.add_group()
    async with AsyncExitStack() as stack:
        stack.push_async_callback(started.stop)
        await started.start()

        async def leads() -> bool:
            with suppress(NotFoundError):
                return bool((await env.cluster.get(LEASE))["spec"]["holderIdentity"])
            return False

        await env.until("the first process leads", leads)
        await started.start()
        await env.deploy("web", replicas=2, cpu="900m")

        async def is_begun() -> bool:
            return bool(await env.machines())

        await env.until("a node is being added", is_begun)
        next(iter(started.running)).kill()

        async def all_run() -> bool:
            return await runs(env, pods=2, nodes=1)

        await env.until("two pods run on one node", all_run)
        assert (await env.cluster.get(LEASE))["spec"]["leaseTransitions"] <= 1
    await env.assert_nothing_leaked()
    await env.assert_invariants()
