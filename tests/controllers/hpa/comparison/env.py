"""Environment of one scenario: a namespace with a target, pods, metrics, and an autoscaler."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from ocf.cluster import PatchOptions, PatchType, Subresource
from ocf.cluster.client import ApiServerCluster
from ocf.objects import Manifest, ObjectKey
from ocf.objects.timestamps import format_time
from ocf.testing.fake_metrics import FakeMetricsClient
from ocf.testing.metrics_stub import MetricsStub
from tests.controllers.hpa.comparison.gate import Gate
from tests.support import eventually

_US: Final = "comparison"
_LONG_AGO: Final = timedelta(hours=1)
LABELS: Final = {"app": "web"}
_SELECTOR: Final = ",".join(f"{key}={value}" for key, value in LABELS.items())
_TWIN: Final = "twin"


def resource(name: str = "cpu", *, container: str = "", **target: Any) -> Manifest:
    """Return a metric of type Resource or ContainerResource: `utilization=50` or `average="1Gi"`."""
    wanted: Manifest = (
        {"type": "Utilization", "averageUtilization": target["utilization"]}
        if "utilization" in target
        else {"type": "AverageValue", "averageValue": target["average"]}
    )
    if container:
        source = {"name": name, "container": container, "target": wanted}
        return {"type": "ContainerResource", "containerResource": source}
    return {"type": "Resource", "resource": {"name": name, "target": wanted}}


def pods(name: str, average: str, **selector: Any) -> Manifest:
    """Return a metric of type Pods."""
    return {"type": "Pods", "pods": {"metric": _metric(name, selector), "target": _target(average=average)}}


def described(reference: Manifest, name: str, **target: str) -> Manifest:
    """Return a metric of type Object: `value="10"` or `average="10"`."""
    source = {"describedObject": reference, "metric": _metric(name, {}), "target": _target(**target)}
    return {"type": "Object", "object": source}


def external(name: str, *, selector: Manifest | None = None, **target: str) -> Manifest:
    """Return a metric of type External: `value="10"` or `average="10"`."""
    return {"type": "External", "external": {"metric": _metric(name, selector or {}), "target": _target(**target)}}


def _metric(name: str, selector: Manifest) -> Manifest:
    return {"name": name, **({"selector": selector} if selector else {})}


def _target(*, value: str = "", average: str = "") -> Manifest:
    return {"type": "AverageValue", "averageValue": average} if average else {"type": "Value", "value": value}


@dataclass
class Env:
    """The environment that a scenario changes between two ticks.

    Args:
        cluster: The API server.
        stub: The metrics APIs.
        gate: Holds the reconciles of the controller.
        namespace: The namespace of the scenario.
    """

    cluster: ApiServerCluster
    stub: MetricsStub
    gate: Gate
    namespace: str
    target: ObjectKey = field(init=False)
    hpa_key: ObjectKey = field(init=False)
    running: list[str] = field(default_factory=list)
    rivals: dict[str, str] = field(default_factory=dict)
    pending: dict[str, Any] = field(default_factory=dict)
    is_recreated: bool = False
    last_status: Manifest | None = None

    def __post_init__(self) -> None:
        self.target = ObjectKey("apps/v1", "Deployment", "web", self.namespace)
        self.hpa_key = ObjectKey("autoscaling/v2", "HorizontalPodAutoscaler", "web", self.namespace)

    @property
    def metrics(self) -> FakeMetricsClient:
        return self.stub.metrics

    async def workload(self, replicas: int, *, kind: str = "Deployment", pods: int | None = None, **pod: Any) -> None:
        """Create the target and its pods; as many as replicas by default."""
        template = {
            "metadata": {"labels": LABELS},
            "spec": {"containers": [{"name": "app", "image": "app"}]},
        }
        spec: Manifest = {"replicas": replicas, "selector": {"matchLabels": LABELS}, "template": template}
        if kind == "StatefulSet":
            spec["serviceName"] = "web"
        self.target = ObjectKey("apps/v1", kind, "web", self.namespace)
        await self.create({"apiVersion": "apps/v1", "kind": kind, "metadata": {"name": "web"}, "spec": spec})
        await self.follow(pods=replicas if pods is None else pods, **pod)

    async def custom(self, kind: str, replicas: int, selector: str = "app=web", **pod: Any) -> None:
        """Create a target of a test kind, and its pods."""
        self.target = ObjectKey("example.com/v1", kind, "web", self.namespace)
        spec = {"replicas": replicas, "selector": selector}
        await self.create({"apiVersion": "example.com/v1", "kind": kind, "metadata": {"name": "web"}, "spec": spec})
        self.running = [f"web-{number}" for number in range(replicas)]
        for name in self.running:
            await self.pod(name, **pod)

    async def change_selector(self, selector: str) -> None:
        """Change the selector of a target of a test kind."""
        change = {"spec": {"selector": selector}}
        await self.cluster.patch(self.target, change, PatchOptions(patch_type=PatchType.MERGE, field_manager=_US))

    async def hpa(
        self, *metrics: Manifest, maximum: int = 10, target: Manifest | None = None, name: str = "web", **spec: Any
    ) -> None:
        """Create the autoscaler."""
        reference = {"apiVersion": self.target.api_version, "kind": self.target.kind, "name": "web", **(target or {})}
        whole = {"scaleTargetRef": reference, "maxReplicas": maximum, "metrics": list(metrics), **spec}
        await self.create(
            {
                "apiVersion": "autoscaling/v2",
                "kind": "HorizontalPodAutoscaler",
                "metadata": {"name": name},
                "spec": whole,
            }
        )

    async def rival(self, name: str, *metrics: Manifest) -> None:
        """Create another workload with the same selector, and its autoscaler; wait until the controller knows it."""
        template = {"metadata": {"labels": LABELS}, "spec": {"containers": [{"name": "app", "image": "app"}]}}
        spec = {"replicas": 1, "selector": {"matchLabels": LABELS}, "template": template}
        await self.create({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name}, "spec": spec})
        await self.hpa(*metrics, name=name, target={"kind": "Deployment", "name": name})
        key = ObjectKey(self.hpa_key.api_version, self.hpa_key.kind, name, self.namespace)
        await eventually(lambda: self.cluster.get(key), lambda live: live.get("status", {}).get("conditions"))
        self.rivals[name] = _SELECTOR

    async def twin(self, *metrics: Manifest) -> None:
        """Create another autoscaler of the target, before the one of the scenario; it decides once, and then waits."""
        await self.hpa(*metrics, name=_TWIN)
        await self.gate.hold_twin(self.namespace)
        self.rivals[_TWIN] = _SELECTOR

    async def delete_twin(self) -> None:
        """Delete the other autoscaler, and with it all that the controller knows of it."""
        await self.cluster.delete(ObjectKey(self.hpa_key.api_version, self.hpa_key.kind, _TWIN, self.namespace))
        await self.gate.reject_twin(self.namespace)
        del self.rivals[_TWIN]

    def change_hpa(self, **spec: Any) -> None:
        """Request a change of the autoscaler after the next reconcile, which has already read it."""
        self.pending.update(spec)

    def recreate_hpa(self) -> None:
        """Request that the autoscaler is deleted and made anew after the next reconcile."""
        self.is_recreated = True

    async def change_hpa_now(self) -> None:
        """Make the requested changes of the autoscaler."""
        if self.is_recreated:
            self.is_recreated = False
            live = await self.cluster.get(self.hpa_key)
            self.last_status = live.get("status")
            await self.cluster.delete(self.hpa_key)
            await self.create({**live, "metadata": {"name": live["metadata"]["name"]}})
        change, self.pending = {"spec": self.pending}, {}
        await self.cluster.patch(self.hpa_key, change, PatchOptions(patch_type=PatchType.MERGE, field_manager=_US))

    async def scale(self, replicas: int) -> None:
        """Scale the target as a user does."""
        await self.cluster.patch(
            self.target,
            {"spec": {"replicas": replicas}},
            PatchOptions(patch_type=PatchType.MERGE, field_manager=_US, subresource=Subresource.SCALE),
        )

    async def replicas(self) -> int:
        """Return the replicas in the spec of the target."""
        found = await self.cluster.get(self.target)
        number: int = found["spec"]["replicas"]
        return number

    async def follow(self, *, pods: int | None = None, **pod: Any) -> None:
        """Create or delete pods to match the replicas, and write the status of the target."""
        wanted = await self.replicas() if pods is None else pods
        while len(self.running) > wanted:
            await self.remove(self.running.pop())
        await asyncio.gather(*(self.pod(f"web-{number}", **pod) for number in range(len(self.running), wanted)))
        self.running = [f"web-{number}" for number in range(wanted)]
        status: Manifest = {"status": {"replicas": wanted}}
        await self.cluster.patch(
            self.target,
            status,
            PatchOptions(patch_type=PatchType.MERGE, field_manager=_US, subresource=Subresource.STATUS),
        )

    async def pod(
        self,
        name: str,
        *,
        cpu: str | None = "500m",
        memory: str | None = "1Gi",
        sidecar: str | None = None,
        native_sidecar: str | None = None,
        phase: str = "Running",
        ready: str | None = "True",
        started: timedelta = _LONG_AGO,
        turned: timedelta | None = None,
    ) -> None:
        """Create a running pod; `started` and `turned` are how long ago it started and its readiness changed."""
        asked = {"cpu": cpu, "memory": memory}
        requests = {key: value for key, value in asked.items() if value is not None}
        containers = [{"name": "app", "image": "app", "resources": {"requests": requests}}]
        if sidecar is not None:
            containers.append({"name": "proxy", "image": "proxy", "resources": {"requests": {"cpu": sidecar}}})
        spec: Manifest = {"containers": containers}
        if native_sidecar is not None:
            setup = {"name": "setup", "image": "setup", "resources": {"requests": {"cpu": "9"}}}
            mesh = {"name": "mesh", "image": "mesh", "resources": {"requests": {"cpu": native_sidecar}}}
            spec["initContainers"] = [setup, {**mesh, "restartPolicy": "Always"}]
        metadata = {"name": name, "labels": LABELS}
        made = await self.create({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})
        now = datetime.now(UTC)
        since = format_time(now - (started if turned is None else turned))
        conditions = [] if ready is None else [{"type": "Ready", "status": ready, "lastTransitionTime": since}]
        status = {"phase": phase, "startTime": format_time(now - started), "conditions": conditions}
        await self.cluster.update({**made, "status": status}, field_manager=_US, subresource=Subresource.STATUS)

    async def create(self, manifest: Manifest) -> Manifest:
        """Create an object in the namespace."""
        metadata = {**manifest["metadata"], "namespace": self.namespace}
        return await self.cluster.create({**manifest, "metadata": metadata}, field_manager=_US)

    async def begin_removal(self, name: str) -> None:
        """Start the deletion of a pod, which a finalizer holds."""
        key = ObjectKey("v1", "Pod", name, self.namespace)
        held = {"metadata": {"finalizers": ["example.com/held"]}}
        await self.cluster.patch(key, held, PatchOptions(patch_type=PatchType.MERGE, field_manager=_US))
        await self.cluster.delete(key)

    async def remove(self, name: str) -> None:
        """Delete a pod and its metrics."""
        self.metrics.forget_pod(self.namespace, name)
        key = ObjectKey("v1", "Pod", name, self.namespace)
        metadata = {"metadata": {"finalizers": None}}
        await self.cluster.patch(key, metadata, PatchOptions(patch_type=PatchType.MERGE, field_manager=_US))
        await self.cluster.delete(key)

    def use(self, *names: str, age: timedelta = timedelta(seconds=10), **used: str) -> None:
        """Set the usage of the container `app` of these pods, or of all: `cpu="250m"`."""
        for name in names or self.running:
            self.use_of(name, {"app": used}, age=age)

    def use_of(self, name: str, containers: dict[str, dict[str, str]], age: timedelta = timedelta(seconds=10)) -> None:
        """Set the usage of the containers of one pod."""
        at = datetime.now(UTC) - age
        self.metrics.set_usage(self.namespace, name, containers, labels=LABELS, at=at)

    def count(self, metric: str, value: str, *names: str) -> None:
        """Set a metric of these pods, or of all."""
        values = dict.fromkeys(names or self.running, value)
        self.metrics.set_pods_metric(self.namespace, metric, values, labels=LABELS)

    def see(self, metric: str, *values: str, **labels: str) -> None:
        """Set an external metric."""
        self.metrics.set_external(self.namespace, metric, *values, labels=labels)
