"""Run scenarios with the real controller, and record each of its ticks."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncGenerator, Iterable
from contextlib import asynccontextmanager, nullcontext, suppress
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

from ocf.cluster import ListOptions
from ocf.cluster.client import ApiServerCluster
from ocf.controllers.hpa.snapshot import HpaSnapshot, SnapshotReader, SubresourceScaleGetter
from ocf.controllers.metrics_client import RESTMapper, RESTMetricsClient
from ocf.errors import ApiError, NotFoundError
from ocf.objects import Manifest
from ocf.testing.envtest import ControllerName, ControlPlane
from ocf.testing.envtest.binaries import Programs
from ocf.testing.envtest.startup import free_port
from ocf.testing.metrics_stub import MetricsStub
from tests.controllers.hpa.comparison.env import Env
from tests.controllers.hpa.comparison.gate import CONTROLLER, Gate
from tests.controllers.hpa.comparison.scenarios import SCENARIOS
from tests.controllers.hpa.comparison.ticks import FLAGS, GATES, SETTINGS, Recorder, ReportedEvent, Tick, message_of

_DONE: Final = 0.5  # seconds until a reconcile has written everything, long before the next one starts
_PERIOD: Final = timedelta(seconds=2)
_LONGEST: Final = 600  # seconds until a reconcile starts
_ATTEMPTS: Final = 30
_AGAIN: Final = 2  # scenarios at once


@dataclass(frozen=True, slots=True)
class Sync:
    """A tick, and our snapshot of the same state.

    Args:
        tick: The tick.
        seen: Our snapshot before it.
    """

    tick: Tick
    seen: HpaSnapshot


class OutOfStepError(Exception):
    """A reconcile started too early, so its input is not known: the host is too slow."""


@dataclass(frozen=True, slots=True)
class ComparisonEnv:
    """A control plane with the real controller, for scenarios.

    Args:
        plane: The control plane.
        cluster: Its client.
        stub: What serves its metrics.
        gate: What holds the reconciles.
        events: The events of each scenario that has been run.
        settled: Seconds until a change has reached the controller's cache.
        again: Admits scenarios that are run again: on a slow host, all at once would be out of step again.
    """

    plane: ControlPlane
    cluster: ApiServerCluster
    stub: MetricsStub
    gate: Gate
    events: dict[str, set[ReportedEvent]] = field(default_factory=dict)
    settled: float = 0.4
    again: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(_AGAIN))

    async def run(self, names: Iterable[str]) -> dict[str, list[Sync]]:
        """Run scenarios in parallel, and return their reconciles by name."""
        async with asyncio.TaskGroup() as group:
            playing = {name: group.create_task(self._run(name)) for name in names}
        return {name: task.result() for name, task in playing.items()}

    async def _run(self, name: str) -> list[Sync]:
        for attempt in range(_ATTEMPTS):
            async with self.again if attempt else nullcontext():
                with self.plane.namespace(f"{name.replace('_', '-')[:40].strip('-')}-") as namespace:
                    try:
                        return await self._run_steps(name, Env(self.cluster, self.stub, self.gate, namespace))
                    except OutOfStepError:
                        continue
                    finally:
                        await self._end(namespace)
        raise OutOfStepError(f"{name}: the host is too slow to keep in step with the controller")

    async def _run_steps(self, name: str, env: Env) -> list[Sync]:
        syncs: list[Sync] = []
        steps = SCENARIOS[name](env)
        await anext(steps)
        hpa = await self._next(env, 0)
        more = True
        while more:
            await asyncio.sleep(self.settled)
            syncs.append(await self._observed(env, hpa))
            at = await self.gate.release(env.namespace, len(syncs) - 1)
            await self._change_hpa(env, len(syncs))
            hpa = await self._next(env, len(syncs))
            after, seen = syncs[-1].tick, syncs[-1].seen
            status, env.last_status = env.last_status or hpa.get("status") or {}, None
            completed = replace(after, at=at.isoformat(), status=status, replicas=await _replicas(env))
            syncs[-1] = Sync(completed, seen)
            more = await anext(steps, "the end") != "the end"
        await asyncio.sleep(_DONE)  # events are sent asynchronously
        self.events[name] = await self._reported_events(env)
        return syncs

    async def _reported_events(self, env: Env) -> set[ReportedEvent]:
        """Return the events that the controller has posted for the autoscaler."""
        found = (await self.cluster.list("v1", "Event", ListOptions(namespace=env.namespace))).items
        about = (each for each in found if each["involvedObject"]["name"] == env.hpa_key.name)
        return {(each["type"], each["reason"], message_of(each["message"])) for each in about}

    async def _next(self, env: Env, number: int) -> Manifest:
        """Wait until a reconcile has started, and return its autoscaler."""
        async with asyncio.timeout(_LONGEST):
            await self.gate.arrival(env.namespace, number)
        if self.gate.hurried(env.namespace):
            raise OutOfStepError(env.namespace)
        return await self.cluster.get(env.hpa_key)

    async def _change_hpa(self, env: Env, number: int) -> None:
        """Change the autoscaler between two reconciles; a reconcile that has started does not see the change."""
        if env.pending or env.is_recreated:
            await asyncio.sleep(_DONE)
            await env.change_hpa_now()
            if self.gate.arrivals(env.namespace) > number:
                raise OutOfStepError(env.namespace)

    async def _observed(self, env: Env, hpa: Manifest) -> Sync:
        """Return a snapshot of the state that the reconcile is going to read."""
        served = RESTMetricsClient(self.cluster)
        recorder = Recorder(served, SubresourceScaleGetter(self.cluster, self.cluster, kinds=RESTMapper(self.cluster)))
        known = Tick("", hpa, (), {}, {}, None, env.rivals).selectors
        observer = SnapshotReader(
            self.cluster, recorder, scales=recorder, selectors=known, settings=SETTINGS, max_age=timedelta()
        )
        seen = await observer.observe(hpa)
        pods = (await self.cluster.list("v1", "Pod", ListOptions(namespace=env.namespace))).items
        kept = [_reduced(pod) for pod in pods]
        return Sync(Tick("", _reduced(hpa), kept, recorder.answers, {}, None, dict(env.rivals)), seen)

    async def _end(self, namespace: str) -> None:
        """Delete the autoscaler, so that the controller stops reconciling it."""
        with suppress(ApiError):
            await self.cluster.delete(Env(self.cluster, self.stub, self.gate, namespace).hpa_key)
        await self.gate.close(namespace)


async def _replicas(env: Env) -> int | None:
    try:
        return await env.replicas()
    except NotFoundError:
        return None


def _reduced(manifest: Manifest) -> Manifest:
    """Return an object without the fields that the controller does not read."""
    kept = {"name", "namespace", "labels", "deletionTimestamp", "generation"}
    reduced: dict[str, Any] = {**manifest, "metadata": {k: v for k, v in manifest["metadata"].items() if k in kept}}
    if manifest["kind"] == "Pod":
        parts = [part for part in ("containers", "initContainers") if part in manifest["spec"]]
        spec = {part: [_container(each) for each in manifest["spec"][part]] for part in parts}
        status = {k: v for k, v in manifest["status"].items() if k in {"phase", "startTime", "conditions"}}
        reduced |= {"spec": spec, "status": status}
    return reduced


def _container(container: Manifest) -> Manifest:
    return {
        "image": "app",
        **{key: value for key, value in container.items() if key in {"name", "resources", "restartPolicy"}},
    }


@asynccontextmanager
async def comparison_env(programs: Programs | None = None) -> AsyncGenerator[ComparisonEnv, None]:
    """Run a control plane with the real controller while the block runs."""
    with tempfile.TemporaryDirectory() as folder:
        gate = Gate(Path(folder), free_port())
        plane = ControlPlane(programs, feature_gates=GATES, server_arguments=gate.flags)
        async with gate.open(), plane, await plane.cluster() as cluster, MetricsStub(plane) as stub:
            for manifest in (_definition("Rollout"), _definition("Plain"), _RIGHTS):
                await cluster.create(manifest, field_manager="comparison")
            flags = {
                **FLAGS,
                "concurrent-horizontal-pod-autoscaler-syncs": "50",
                "kubeconfig": str(plane.kubeconfig_for(CONTROLLER)),
            }
            running = plane.controllers(
                ControllerName.HORIZONTAL_POD_AUTOSCALER, hpa_sync_period=_PERIOD, arguments=flags
            )
            await asyncio.to_thread(running.__enter__)
            try:
                yield ComparisonEnv(plane, cluster, stub, gate)
            finally:
                await asyncio.to_thread(running.__exit__, None, None, None)


_RIGHTS: Final = {
    "apiVersion": "rbac.authorization.k8s.io/v1",
    "kind": "ClusterRoleBinding",
    "metadata": {"name": CONTROLLER},
    "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
    "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": CONTROLLER}],
}


def _definition(kind: str) -> Manifest:
    """Return the CRD of a test kind; a Plain has no Scale."""
    plural = f"{kind.lower()}s"
    scale = {
        "specReplicasPath": ".spec.replicas",
        "statusReplicasPath": ".status.replicas",
        "labelSelectorPath": ".spec.selector",
    }
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
        "subresources": {"status": {}, **({"scale": scale} if kind == "Rollout" else {})},
    }
    names = {"kind": kind, "plural": plural, "singular": kind.lower(), "listKind": f"{kind}List"}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.example.com"},
        "spec": {"group": "example.com", "scope": "Namespaced", "names": names, "versions": [version]},
    }
