"""An environment in virtual time: an embedded cluster, workloads, metrics, and processes of the controller."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import pytest

from ocf.autoscaling.algorithm import Settings
from ocf.cluster import Cluster, ListOptions, Request, Subresource
from ocf.controllers.hpa import HpaController, HpaControllerOptions, Mode
from ocf.controllers.hpa.crd import definition
from ocf.controllers.hpa.dry_run import DryRunResult
from ocf.controllers.hpa.metrics import HpaMonitor
from ocf.controllers.hpa.modes import OWN
from ocf.controllers.hpa.reporter import COMPONENT
from ocf.controllers.metrics_client import MetricsClient
from ocf.controllers.process import leader_runner
from ocf.objects import Manifest, ObjectKey
from ocf.runtime.operator import Lease
from ocf.testing import LoopClock, run_in_virtual_time
from ocf.testing.fake_metrics import FakeMetricsClient
from ocf_server import EmbeddedCluster
from tests import support
from tests.support import eventually

if TYPE_CHECKING:
    from ocf.cluster.client import ApiServerCluster
    from ocf.testing.plugin import Envtest

PERIOD: Final = 15.0
NAMESPACE: Final = "shop"

Scenario: TypeAlias = Callable[["Env"], Coroutine[Any, Any, None]]
RunScenario: TypeAlias = Callable[[Scenario], None]


@dataclass
class Process:
    """A process of the controller.

    Attributes:
        monitor: Its metrics.
        reports: The results of a dry run.
    """

    controller: HpaController | None = None
    monitor: HpaMonitor = field(default_factory=HpaMonitor)
    reports: list[DryRunResult] = field(default_factory=list)
    stopped: asyncio.Event = field(default_factory=asyncio.Event)
    task: asyncio.Task[None] | None = None

    async def stop(self) -> None:
        self.stopped.set()
        assert self.task is not None
        await self.task

    def value(self, name: str, **labels: str) -> float:
        return self.monitor.registry.get_sample_value(f"horizontal_pod_autoscaler_controller_{name}", labels) or 0

    def states(self) -> dict[str, float]:
        return {
            sample.labels["state"]: sample.value
            for family in self.monitor.collect()
            for sample in family.samples
            if sample.name == "ocf_hpa_controller_autoscalers"
        }


class SettableClock(LoopClock):
    """A clock of the loop whose time of day can be set; elapsed time does not follow."""

    def __init__(self) -> None:
        super().__init__()
        self._offset = timedelta(0)

    def now(self) -> datetime:
        return super().now() + self._offset

    def jump(self, seconds: float) -> None:
        self._offset += timedelta(seconds=seconds)


class Env(support.Env[EmbeddedCluster, SettableClock]):
    """The cluster and metrics, which outlive a process."""

    def __init__(self) -> None:
        clock = SettableClock()
        super().__init__(EmbeddedCluster(namespaces=(NAMESPACE, "other"), now=clock.now), clock)
        self.metrics = FakeMetricsClient(self.clock)

    async def set_up(self) -> None:
        await self.cluster.create(definition(), field_manager="admin")

    async def deploy(self, name: str = "web", replicas: int = 3, *, namespace: str = NAMESPACE) -> None:
        """Create a Deployment with pods that have run for an hour."""
        labels = {"app": name}
        container = {"name": "app", "image": "app:1", "resources": {"requests": {"cpu": "100m"}}}
        template = {"metadata": {"labels": labels}, "spec": {"containers": [container]}}
        spec = {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template}
        metadata = {"name": name, "namespace": namespace}
        await self.cluster.create(
            {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": spec}, field_manager="user"
        )
        await self.sync_pods(name, namespace=namespace)

    async def sync_pods(self, name: str = "web", *, namespace: str = NAMESPACE) -> None:
        """Act as the controllers of a Deployment: create or delete pods to match the replicas, and write the status."""
        key = ObjectKey("apps/v1", "Deployment", name, namespace)
        replicas = (await self.cluster.get(key))["spec"]["replicas"]
        await self.patch_status(key, {"replicas": replicas}, by="user")
        wanted = {f"{name}-{number}" for number in range(replicas)}
        pods = await self.cluster.list("v1", "Pod", ListOptions(namespace=namespace, label_selector=f"app={name}"))
        existing = {pod["metadata"]["name"] for pod in pods.items}
        for pod in sorted(existing - wanted):
            await self.cluster.delete(ObjectKey("v1", "Pod", pod, namespace))
        for pod in sorted(wanted - existing):
            await self._run(pod, name, namespace)

    async def _run(self, pod: str, app: str, namespace: str) -> None:
        container = {"name": "app", "image": "app:1", "resources": {"requests": {"cpu": "100m"}}}
        metadata = {"name": pod, "namespace": namespace, "labels": {"app": app}}
        made = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": [container]}}
        await self.cluster.create(made, field_manager="user")
        ready = {"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T10:00:00Z"}
        status = {"phase": "Running", "startTime": "2026-01-01T10:00:00Z", "conditions": [ready]}
        await self.patch_status(ObjectKey("v1", "Pod", pod, namespace), status, by="user")

    def use_cpu(self, name: str, cpu: str, pods: int, *, namespace: str = NAMESPACE) -> None:
        """Set the cpu usage of each pod."""
        for number in range(pods):
            pod = f"{name}-{number}"
            self.metrics.set_usage(namespace, pod, {"app": {"cpu": cpu}}, labels={"app": name})

    def queue(self, length: int, *, namespace: str = NAMESPACE) -> None:
        self.metrics.set_external(namespace, "queue", str(length))

    async def autoscale(
        self,
        name: str = "web",
        *,
        of: tuple[str, str] = OWN,
        target: Manifest | None = None,
        namespace: str = NAMESPACE,
        **spec: Any,
    ) -> ObjectKey:
        """Create an autoscaler with one pod per ten items of the queue, or another spec."""
        reference = {"apiVersion": "apps/v1", "kind": "Deployment", "name": name} | (target or {})
        wanted = {"type": "AverageValue", "averageValue": "10"}
        queue = {"type": "External", "external": {"metric": {"name": "queue"}, "target": wanted}}
        manifest = {
            "apiVersion": of[0],
            "kind": of[1],
            "metadata": {"name": name, "namespace": namespace},
            "spec": {"scaleTargetRef": reference, "maxReplicas": 20, "metrics": [queue]} | spec,
        }
        await self.cluster.create(manifest, field_manager="user")
        return ObjectKey.of(manifest)

    async def change(self, key: ObjectKey, patch: Manifest, *, by: str = "user", status: bool = False) -> None:
        await self.merge_patch(key, patch, by=by, subresource=Subresource.STATUS if status else None)

    async def replicas(self, name: str = "web", *, namespace: str = NAMESPACE) -> int:
        return await self.read_replicas(ObjectKey("apps/v1", "Deployment", name, namespace))

    async def conditions(self, key: ObjectKey) -> dict[str, tuple[str, str]]:
        found = await self.read_conditions(key)
        return {name: (each["status"], each["reason"]) for name, each in found.items()}

    async def message(self, key: ObjectKey, condition: str) -> str:
        return str((await self.read_conditions(key))[condition]["message"])

    async def events(self, reason: str = "") -> list[tuple[str, str, str]]:
        found = (await self.cluster.list("events.k8s.io/v1", "Event")).items
        return [
            (each["regarding"]["name"], each["reason"], each["note"])
            for each in found
            if reason in ("", each["reason"])
        ]

    @property
    def writes(self) -> list[Request]:
        return [one for one in self.cluster.requests if not one.verb.is_read]

    @asynccontextmanager
    async def running(
        self,
        mode: Mode = Mode.OWN_KIND,
        *,
        cluster: Cluster | None = None,
        metrics: MetricsClient | None = None,
        settings: Settings | None = None,
        take_over: bool = False,
        take_over_delay: float = 0,
        request_timeout: float = 60,
        lease: Lease | None = None,
    ) -> AsyncIterator[Process]:
        """Run a process while the block runs; it is stopped gracefully unless the test cancels it."""
        process = Process()
        given = settings or Settings()

        def make(where: Cluster, events: Any) -> HpaController:
            report = process.reports.append if mode is Mode.DRY_RUN else None
            process.controller = HpaController(
                where,
                metrics or self.metrics,
                options=HpaControllerOptions(
                    mode=mode,
                    settings=given,
                    take_over=take_over,
                    take_over_delay=timedelta(seconds=take_over_delay),
                    request_timeout=timedelta(seconds=request_timeout),
                    report=report,
                ),
                clock=self.clock,
                events=events,
                monitor=process.monitor,
            )
            return process.controller

        runner = leader_runner(
            cluster or self.cluster,
            make,
            lease=lease,
            component=COMPONENT if mode.writes else "",
            clock=self.clock,
            stopped=process.stopped,
        )
        process.task = asyncio.create_task(runner.run())
        try:
            yield process
        finally:
            process.stopped.set()
            await asyncio.wait([process.task])
            if not process.task.cancelled():
                process.task.result()


async def periods(number: float = 1, *, period: float = PERIOD) -> None:
    """Wait for sync periods, and half a second for the reconciles that are due."""
    await asyncio.sleep(number * period + 0.5)


@pytest.fixture
def run_scenario() -> RunScenario:
    """Run a scenario in a new environment, in virtual time."""

    def run(scenario: Scenario) -> None:
        async def whole() -> None:
            env = Env()
            await env.set_up()
            await scenario(env)

        run_in_virtual_time(whole())

    return run


@pytest.fixture
async def defined(envtest: Envtest, envtest_cluster: ApiServerCluster) -> ApiServerCluster:
    """Give a cluster with our kind."""
    await asyncio.to_thread(envtest.plane.install_crds, definition())
    return envtest_cluster


async def until(cluster: Cluster, key: ObjectKey, reached: Callable[[Manifest], Any]) -> Manifest:
    """Poll an object of a real API server until a condition holds."""
    return await eventually(lambda: cluster.get(key), reached)
