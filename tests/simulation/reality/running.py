"""Runs of scenarios on a real control plane, with pods that kwok starts after the delays of the scenario."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from contextlib import ExitStack, aclosing
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from importlib.resources import files
from itertools import pairwise
from typing import Any, Final

from ocf.cluster import Cluster, WatchEvent, WatchOptions
from ocf.cluster.protocol import EventType
from ocf.objects import Manifest
from ocf.objects.documents import load_documents
from ocf.simulation import Scenario, load_series
from ocf.simulation.scenario.workload import Delay
from ocf.testing.envtest import ControllerName, ControlPlane
from ocf.testing.envtest.binaries import Programs
from ocf.testing.fake_metrics import FakeMetricsClient
from ocf.testing.metrics_stub import MetricsStub
from tests.simulation.reality.recorded import RecordedPod, RecordedRun, RecordedSync
from tests.simulation.reality.scenarios import read
from tests.simulation.reality.workload import LABELS, RealWorkload

__all__ = ["run_all"]

_USER: Final = "user"
_STEP: Final = 0.02  # seconds between two steps of a workload
_STAGES: Final = ("startup", "readiness", "termination")
_ANNOTATION: Final = "example.com/"
_NODES: Final = 2
_CONTROLLERS: Final = (
    ControllerName.DEPLOYMENT,
    ControllerName.REPLICA_SET,
    ControllerName.HORIZONTAL_POD_AUTOSCALER,
)


async def run_all(programs: Programs, names: Sequence[str]) -> dict[str, RecordedRun]:
    """Run scenarios at the same time on one control plane.

    Args:
        programs: The programs of the control plane.
        names: Names of the scenarios.

    Returns:
        The runs by name.
    """
    scenarios = {name: read(name) for name in names}
    controller, *others = (scenario.controller for scenario in scenarios.values())
    assert all(other == controller for other in others)
    prefix = "horizontal-pod-autoscaler"
    flags = {
        f"{prefix}-downscale-stabilization": _go(controller.downscale_stabilization),
        f"{prefix}-cpu-initialization-period": _go(controller.cpu_initialization_period),
        f"{prefix}-initial-readiness-delay": _go(controller.initial_readiness_delay),
        f"{prefix}-tolerance": f"{controller.tolerance:g}",
    }
    with ExitStack() as stack:
        plane = stack.enter_context(ControlPlane(programs))
        companions = (
            plane.controllers(*_CONTROLLERS, hpa_sync_period=controller.sync_period, arguments=flags),
            plane.scheduler(),
            plane.kwok(_stages()),
        )
        for companion in companions:
            stack.enter_context(companion)
        metrics = _SampledMetrics()
        async with await plane.cluster() as cluster, MetricsStub(plane, metrics) as stub:
            assert stub.metrics is metrics
            for number in range(_NODES):
                await cluster.create(_node(number), field_manager=_USER)
            async with asyncio.TaskGroup() as group:
                runs = {
                    name: group.create_task(_run(plane, cluster, metrics, scenario))
                    for name, scenario in scenarios.items()
                }
            return {name: task.result() for name, task in runs.items()}


def _go(period: timedelta) -> str:
    return f"{period.total_seconds():g}s"


class _SampledMetrics(FakeMetricsClient):
    """Metrics APIs that report each read: it is the moment at which the controller syncs."""

    def __init__(self) -> None:
        super().__init__()
        self.runs: dict[str, _RealRun] = {}

    async def pod_metrics(self, namespace: str, selector: str = "") -> Sequence[Any]:
        found = await super().pod_metrics(namespace, selector)
        self._report(namespace, [each["containers"][0]["usage"]["cpu"] for each in found])
        return found

    async def pods_metric(
        self, namespace: str, metric: str, *, selector: str = "", metric_selector: str = ""
    ) -> Sequence[Any]:
        found = await super().pods_metric(namespace, metric, selector=selector, metric_selector=metric_selector)
        self._report(namespace, [each["value"] for each in found])
        return found

    async def external_metric(self, namespace: str, metric: str, *, selector: str = "") -> Sequence[Any]:
        found = await super().external_metric(namespace, metric, selector=selector)
        self._report(namespace, [each["value"] for each in found])
        return found

    def _report(self, namespace: str, values: Iterable[str]) -> None:
        if namespace in self.runs:
            self.runs[namespace].synced([int(value.removesuffix("n")) / 10**9 for value in values])


@dataclass(slots=True)
class _RealRun:
    """A run of a scenario in a namespace, with times in seconds of the event loop."""

    scenario: Scenario
    namespace: str
    workload: RealWorkload
    replicas: int
    start: datetime | None = None
    syncs: list[tuple[float, tuple[float, ...], int]] = field(default_factory=list)
    scaled: list[tuple[float, int]] = field(default_factory=list)
    has_begun: asyncio.Event = field(default_factory=asyncio.Event)

    def synced(self, values: Sequence[float]) -> None:
        """Note a sync; the first one is the start of the run."""
        now = _now()
        if self.start is None:
            self.workload.began, self.start = now, datetime.now(UTC)
            self.has_begun.set()
        self.syncs.append((now, tuple(round(value, 6) for value in values), self.workload.ready))

    def recorded(self) -> RecordedRun:
        """Return the run, with the replicas after each sync: those before the next one."""
        began = self.workload.began
        assert self.start is not None
        assert began is not None

        def since(at: float | None) -> float | None:
            return None if at is None else round(at - began, 3)

        found: list[RecordedSync] = []
        for (at, values, ready), (following, _, _) in pairwise(self.syncs):
            replicas = next((count for time, count in reversed(self.scaled) if time < following), self.replicas)
            found.append(RecordedSync(round(at - began, 3), values, ready, replicas))
        pods = sorted((*self.workload.gone, *self.workload.pods.values()), key=lambda pod: pod.created)
        created = [
            RecordedPod(round(pod.created - began, 3), since(pod.started), since(pod.ready))
            for pod in pods
            if pod.created > began
        ]
        return RecordedRun(self.start.isoformat(), found, created)


def _now() -> float:
    return asyncio.get_running_loop().time()


async def _run(plane: ControlPlane, cluster: Cluster, metrics: _SampledMetrics, scenario: Scenario) -> RecordedRun:
    assert isinstance(scenario.hpa, dict)
    assert scenario.duration is not None
    replicas = scenario.workload.replicas or 1
    with plane.namespace(f"{scenario.name}-") as namespace:
        run = _RealRun(scenario, namespace, RealWorkload(scenario, load_series(scenario)), replicas)
        metrics.runs[namespace] = run
        async with asyncio.TaskGroup() as group:
            background = [
                group.create_task(each)
                for each in (_watch_pods(cluster, run), _watch_target(cluster, run), _serve(run, metrics))
            ]
            await cluster.create(_deployment(scenario, namespace), field_manager=_USER)
            while run.workload.ready < replicas:  # noqa: ASYNC110 (other processes)
                await asyncio.sleep(_STEP)
            # From now on, all samples are of pods that are ready.
            await asyncio.sleep(4 * scenario.metrics.scrape_period.total_seconds())
            metadata = {**scenario.hpa["metadata"], "namespace": namespace}
            await cluster.create({**scenario.hpa, "metadata": metadata}, field_manager=_USER)
            await run.has_begun.wait()
            await asyncio.sleep(scenario.duration.total_seconds())
            for task in background:
                task.cancel()
            metrics.runs.pop(namespace)
        return run.recorded()


async def _serve(run: _RealRun, metrics: FakeMetricsClient) -> None:
    """Let load arrive, and scrape, from the first sync on at whole periods."""
    period = run.scenario.metrics.scrape_period.total_seconds()
    began, due = run.workload.began, 0.0
    async with asyncio.TaskGroup() as group:
        while True:
            now = _now()
            if began != run.workload.began:
                began = due = run.workload.began or now
            run.workload.advance(now)
            if now >= due:
                due = (due or now) + period
                group.create_task(_publish(run, metrics))
            await asyncio.sleep(_STEP)


async def _publish(run: _RealRun, metrics: FakeMetricsClient) -> None:
    measured, at = run.workload.scrape(), datetime.now(UTC)
    await asyncio.sleep(run.scenario.metrics.delay.total_seconds())
    run.workload.publish(measured, metrics, run.namespace, at)


async def _watch_pods(cluster: Cluster, run: _RealRun) -> None:
    async with aclosing(_events(cluster, "v1", "Pod", run.namespace)) as events:
        async for event in events:
            if event.type is EventType.DELETED:
                run.workload.forget(event.object["metadata"]["name"], _now())
            else:
                run.workload.see(event.object, _now())


async def _watch_target(cluster: Cluster, run: _RealRun) -> None:
    async with aclosing(_events(cluster, "apps/v1", "Deployment", run.namespace)) as events:
        async for event in events:
            count = event.object["spec"]["replicas"]
            if count != (run.scaled[-1][1] if run.scaled else run.replicas):
                run.scaled.append((_now(), count))


async def _events(cluster: Cluster, api_version: str, kind: str, namespace: str) -> AsyncGenerator[WatchEvent, None]:
    options = WatchOptions(resource_version="", namespace=namespace, timeout=600.0)
    async for event in cluster.watch(api_version, kind, options):
        if event.type in {EventType.ADDED, EventType.MODIFIED, EventType.DELETED}:
            yield event


def _node(number: int) -> Manifest:
    size = {"cpu": "64", "memory": "256Gi", "pods": "110"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": f"node-{number}"},
        "status": {"allocatable": size, "capacity": size},
    }


def _deployment(scenario: Scenario, namespace: str) -> Manifest:
    workload = scenario.workload
    delays: Mapping[str, Delay] = {name: getattr(workload, name) for name in _STAGES}
    annotations = {f"{_ANNOTATION}{name}": _go(delay.mean) for name, delay in delays.items()}
    requests = {name: f"{milli}m" for name, milli in workload.requests.items()}
    container = {"name": "app", "image": "app", "resources": {"requests": requests}}
    # A node has taints until a controller that does not run here has seen that it is ready.
    tolerations = [{"operator": "Exists"}]
    pod = {"containers": [container], "automountServiceAccountToken": False, "tolerations": tolerations}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", "namespace": namespace},
        "spec": {
            "replicas": workload.replicas,
            "selector": {"matchLabels": LABELS},
            "template": {"metadata": {"labels": LABELS, "annotations": annotations}, "spec": pod},
        },
    }


def _stages() -> list[Manifest]:
    """Return stages of kwok: a pod starts, becomes ready and goes after the delays in its annotations."""
    text = files("ocf.testing.envtest").joinpath("kwok_stages.yaml").read_text(encoding="utf-8")
    stages = {stage["metadata"]["name"]: stage for stage in load_documents(text)}
    ready, deleted = stages["pod-running"], stages["pod-deleted"]
    deleted["spec"]["delay"] = _delay("termination")
    ready["metadata"]["name"] = "pod-ready"
    ready["spec"]["delay"] = _delay("readiness")
    conditions = ready["spec"]["selector"]["matchExpressions"]
    conditions[1] = {"key": ".status.phase", "operator": "In", "values": ["Running"]}
    conditions.append(
        {
            "key": '.status.conditions.[] | select( .type == "Ready" ) | .status',
            "operator": "NotIn",
            "values": ["True"],
        }
    )
    template = ready["spec"]["next"]["statusTemplate"]
    ready["spec"]["next"]["statusTemplate"] = template.replace("startTime: {{ $now | Quote }}\n", "")
    return [stages["node-ready"], _started(), ready, deleted]


def _started() -> Manifest:
    template = """
{{ $now := Now }}
phase: Running
startTime: {{ $now | Quote }}
conditions:
- type: Ready
  status: "False"
  reason: ContainersNotReady
  lastTransitionTime: {{ $now | Quote }}
"""
    return {
        "apiVersion": "kwok.x-k8s.io/v1alpha1",
        "kind": "Stage",
        "metadata": {"name": "pod-started"},
        "spec": {
            "resourceRef": {"apiGroup": "v1", "kind": "Pod"},
            "selector": {
                "matchExpressions": [
                    {"key": ".metadata.deletionTimestamp", "operator": "DoesNotExist"},
                    {"key": ".status.phase", "operator": "In", "values": ["Pending"]},
                ]
            },
            "delay": _delay("startup"),
            "next": {"statusTemplate": template},
        },
    }


def _delay(name: str) -> Manifest:
    expression = f'.metadata.annotations["{_ANNOTATION}{name}"]'
    return {"durationMilliseconds": 0, "durationFrom": {"expressionFrom": expression}}
