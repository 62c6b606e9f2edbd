"""The running controller in virtual time: watches, leader election, and silence once everything is in place."""

from __future__ import annotations

import asyncio
import itertools
from typing import Final, NoReturn

import pytest

from ocf.cluster import Cluster, ListOptions, PatchOptions, PatchType, Subresource
from ocf.cluster.interceptor import is_write
from ocf.cluster.request_log import RequestLog
from ocf.controllers.nodegroup.definitions import node_definition, node_group_definition
from ocf.controllers.nodegroup.manifests import NAME, cluster_role
from ocf.controllers.nodegroup.process import ProcessOptions, controller_runner
from ocf.controllers.nodegroup.providers.simulated import SimulatedProvider
from ocf.errors import ConfigError, ProviderUnavailableError
from ocf.nodegroups import Provider
from ocf.objects import ObjectKey
from ocf.runtime.operator import Lease
from ocf.testing import LoopClock, RecordingCluster, run_in_virtual_time
from ocf_server import EmbeddedCluster
from tests.controllers.nodegroup.conftest import API, GROUP, SMALL

LEASE: Final = Lease(NAME, "default")
_RESOURCES: Final = {
    "Node": "nodes",
    "Pod": "pods",
    "NodeGroup": "nodegroups",
    "VPSieNode": "vpsienodes",
    "PersistentVolume": "persistentvolumes",
    "PersistentVolumeClaim": "persistentvolumeclaims",
    "Namespace": "namespaces",
    "PodDisruptionBudget": "poddisruptionbudgets",
    "StorageClass": "storageclasses",
    "CSINode": "csinodes",
    "SelfSubjectReview": "selfsubjectreviews",
    "DaemonSet": "daemonsets",
    "Event": "events",
    "Lease": "leases",
}


class Processes:
    """A cluster, a cloud, and processes of the controller."""

    def __init__(self) -> None:
        self.clock = LoopClock()
        self.cluster = EmbeddedCluster(now=self.clock.now)
        self.provider = SimulatedProvider([SMALL], self.clock)
        self.stopped = asyncio.Event()

    async def set_up(self, **spec: int) -> None:
        for definition in (node_group_definition(), node_definition()):
            await self.cluster.create(definition, field_manager="admin")
        settings = {"minNodes": 0, "maxNodes": 5, "datacenterID": "fra", "offeringIDs": ["small"], **spec}
        metadata = {"name": "workers", "namespace": "default"}
        group = {"apiVersion": API, "kind": "NodeGroup", "metadata": metadata, "spec": settings}
        await self.cluster.create(group, field_manager="user")

    def start(self, cluster: Cluster | None = None, lease: Lease | None = LEASE) -> asyncio.Task[None]:
        def make(_: Cluster) -> Provider:
            return self.provider

        runner = controller_runner(
            cluster or self.cluster, make, ProcessOptions(lease=lease), clock=self.clock, stopped=self.stopped
        )
        return asyncio.create_task(runner.run())

    async def live(self, minutes: float) -> None:
        """Let the kubelets act for a while."""
        for _ in range(int(minutes * 6)):
            await asyncio.sleep(10)
            await self.provider.register_nodes(self.cluster)

    async def ready(self) -> int:
        status = (await self.cluster.get(GROUP)).get("status") or {}
        return int(status.get("readyNodes") or 0)

    async def add_pod(self) -> None:
        container = {"name": "app", "image": "app:1", "resources": {"requests": {"cpu": "1"}}}
        metadata = {"name": "web", "namespace": "default"}
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": [container]}}
        await self.cluster.create(pod, field_manager="user")

    async def bind(self, node: str) -> None:
        target = {"apiVersion": "v1", "kind": "Node", "name": node}
        metadata = {"name": "web", "namespace": "default"}
        binding = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "target": target}
        await self.cluster.create(binding, field_manager="scheduler", subresource=Subresource.BINDING)


def test_a_pending_pod_gets_a_node_within_seconds_of_its_creation() -> None:
    async def scenario() -> None:
        env = Processes()
        await env.set_up()
        running = env.start()
        await env.live(5)
        await env.add_pod()
        await asyncio.sleep(3)
        assert len(await env.provider.list()) == 1
        await env.live(3)
        assert await env.ready() == 1
        env.stopped.set()
        await running

    run_in_virtual_time(scenario())


@pytest.mark.promise("node-groups-no-read")
def test_a_controller_at_rest_sends_no_requests_but_for_its_lease() -> None:
    async def scenario() -> None:
        env = Processes()
        await env.set_up(minNodes=2)
        running = env.start()
        await env.live(5)
        assert await env.ready() == 2
        env.cluster.requests.clear()
        await asyncio.sleep(120)
        others = [each for each in env.cluster.requests if each.kind != "Lease"]
        assert [str(each.verb) for each in others if is_write(each) or str(each.verb) in ("get", "list")] == []
        env.stopped.set()
        await running

    run_in_virtual_time(scenario())


@pytest.mark.parametrize("call", ["list", "create"])
def test_an_error_with_another_text_each_time_is_not_met_each_second(
    monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    calls = itertools.count(1)

    async def fail(*_: object) -> NoReturn:
        raise ProviderUnavailableError(f"the service is down (request-id {next(calls)})")

    async def scenario() -> None:
        env = Processes()
        await env.set_up(minNodes=1)
        task = env.start()
        await env.live(2)
        monkeypatch.setattr(env.provider, call, fail)
        group = {"spec": {"minNodes": 2}}
        await env.cluster.patch(GROUP, group, PatchOptions(field_manager="user", patch_type=PatchType.MERGE))
        await env.live(10)
        env.stopped.set()
        await task
        # Every ten seconds while something has failed.
        assert 20 < next(calls) < 80

    run_in_virtual_time(scenario())


def test_two_processes_create_each_node_once() -> None:
    async def scenario() -> None:
        env = Processes()
        await env.set_up(minNodes=3)
        first, second = env.start(), env.start()
        await env.live(5)
        assert len(await env.provider.list()) == 3
        env.stopped.set()
        await asyncio.gather(first, second)

    run_in_virtual_time(scenario())


def test_another_leader_goes_on_where_the_last_one_was_killed() -> None:
    async def scenario() -> None:
        env = Processes()
        await env.set_up(minNodes=3)
        killed = env.start()
        await asyncio.sleep(5)
        killed.cancel()
        await asyncio.gather(killed, return_exceptions=True)
        running = env.start()
        await env.live(5)
        assert (await env.ready(), len(await env.provider.list())) == (3, 3)
        env.stopped.set()
        await running

    run_in_virtual_time(scenario())


def test_missing_definitions_are_named() -> None:
    async def scenario() -> None:
        env = Processes()
        with pytest.raises(ConfigError, match="NodeGroup"):
            await env.start(lease=None)

    run_in_virtual_time(scenario())


@pytest.mark.promise("node-groups-rights")
def test_the_role_allows_the_requests_that_are_sent_and_no_others() -> None:
    async def scenario() -> RequestLog:
        env = Processes()
        await env.set_up(minNodes=1)
        recording = RecordingCluster(env.cluster)
        running = env.start(recording)
        await env.live(5)
        (node,) = (await env.cluster.list(API, "VPSieNode", ListOptions())).items
        await env.add_pod()
        await env.bind(node["status"]["nodeName"])
        await env.cluster.delete(ObjectKey.of(node))
        await env.live(15)
        assert await env.ready() == 1
        await env.cluster.delete(GROUP)
        await env.live(5)
        env.stopped.set()
        await running
        return recording.requests

    requests = run_in_virtual_time(scenario())
    allowed = {(rule.group, rule.resource, rule.verb) for rule in cluster_role(lease_namespace="default")}
    sent = set()
    for each in requests:
        group = each.api_version.rpartition("/")[0]
        sub = f"/{each.subresource}" if each.subresource not in (None, "") else ""
        sent.add((group, _RESOURCES[each.kind] + sub, str(each.verb)))
    assert sent - allowed == set()
    unused = {
        # Asked for by an admission plugin that the embedded cluster does not have, when an owner reference blocks.
        ("autoscaling.ocf.dev", "nodegroups/finalizers", "update"),
        # Read by the metrics client, and only for groups that want the measured use of nodes.
        ("metrics.k8s.io", "nodes", "list"),
    }
    assert allowed - sent == unused
