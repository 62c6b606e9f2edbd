"""Running scenarios beside the real controller, and noting each of its ticks."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncGenerator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

from ocf.cluster.apiserver import ApiServerCluster
from ocf.controllers.metrics import Kinds, ServedMetrics
from ocf.controllers.observing import Observation, Observer, SubresourceScales
from ocf.errors import NotFoundError
from ocf.objects import Manifest
from ocf.testing.envtest import Controller, ControlPlane, Programs
from ocf.testing.metrics_stub import MetricsStub
from tests.controllers.comparison.audit import Audit
from tests.controllers.comparison.scenarios import SCENARIOS
from tests.controllers.comparison.ticks import FLAGS, GATES, SETTINGS, Recorder, Tick
from tests.controllers.comparison.world import World

_SETTLED: Final = 0.15  # seconds until what was changed has reached the controller's own memory
_DONE: Final = 0.4  # seconds until a tick has written everything
_ATTEMPTS: Final = 3


@dataclass(frozen=True, slots=True)
class Round:
    """A tick, and what was observed of the same by us.

    Args:
        tick: The tick.
        seen: What we saw before it.
    """

    tick: Tick
    seen: Observation


class OutOfStepError(Exception):
    """A tick came while something was being changed, so nobody can say what it saw."""


@dataclass(frozen=True, slots=True)
class Stage:
    """A control plane with the real controller, on which scenarios are played."""

    plane: ControlPlane
    cluster: ApiServerCluster
    stub: MetricsStub
    audit: Audit

    async def play(self, names: Iterable[str]) -> dict[str, list[Round]]:
        """Play scenarios side by side, and return their rounds by name."""
        chosen = list(names)
        return dict(zip(chosen, await asyncio.gather(*map(self._play, chosen)), strict=True))

    async def _play(self, name: str) -> list[Round]:
        for _ in range(_ATTEMPTS):
            with self.plane.namespace(f"{name.replace('_', '-')[:40].strip('-')}-") as namespace:
                try:
                    return await self._rounds(name, World(self.cluster, self.stub, namespace))
                except OutOfStepError:
                    continue
                finally:
                    await self._end(namespace)
        raise OutOfStepError(f"{name}: the machine is too busy to keep in step with the controller")

    async def _rounds(self, name: str, world: World) -> list[Round]:
        rounds: list[Round] = []
        async for _ in SCENARIOS[name](world):
            await asyncio.sleep(_SETTLED)
            rounds.append(await self._round(world, len(rounds)))
        return rounds

    async def _round(self, world: World, number: int) -> Round:
        served = ServedMetrics(self.cluster)
        recorder = Recorder(served, SubresourceScales(self.cluster, self.cluster, kinds=Kinds(self.cluster)))
        hpa = await self.cluster.get(world.hpa_key)
        known = Tick("", hpa, (), {}, {}, None, world.rivals).selectors
        observer = Observer(
            self.cluster, recorder, scales=recorder, selectors=known, settings=SETTINGS, max_age=timedelta()
        )
        seen = await observer.observe(hpa)
        pods = (await self.cluster.list("v1", "Pod", namespace=world.namespace)).items
        if len(self.audit.ticks(world.namespace)) != number:
            raise OutOfStepError(world.namespace)
        async with asyncio.timeout(10):
            at = await self.audit.tick(world.namespace, number)
        await asyncio.sleep(_DONE)
        after = await self.cluster.get(world.hpa_key)
        if len(self.audit.ticks(world.namespace)) != number + 1:
            raise OutOfStepError(world.namespace)
        status: Manifest = after.get("status") or {}
        replicas = await _replicas(world)
        kept = [_reduced(pod) for pod in pods]
        tick = Tick(at, _reduced(hpa), kept, recorder.answers, status, replicas, dict(world.rivals))
        return Round(tick, seen)

    async def _end(self, namespace: str) -> None:
        """Remove the autoscaler, so that the controller has no more work with it."""
        key = World(self.cluster, self.stub, namespace).hpa_key
        try:
            await self.cluster.delete(key)
        except NotFoundError:
            return


async def _replicas(world: World) -> int | None:
    try:
        return await world.replicas()
    except NotFoundError:
        return None


def _reduced(manifest: Manifest) -> Manifest:
    """Return an object without what no controller looks at."""
    kept = {"name", "namespace", "labels", "deletionTimestamp", "generation"}
    reduced: dict[str, Any] = {**manifest, "metadata": {k: v for k, v in manifest["metadata"].items() if k in kept}}
    if manifest["kind"] == "Pod":
        spec = [_container(each) for each in manifest["spec"]["containers"]]
        status = {k: v for k, v in manifest["status"].items() if k in {"phase", "startTime", "conditions"}}
        reduced |= {"spec": {"containers": spec}, "status": status}
    return reduced


def _container(container: Manifest) -> Manifest:
    return {"image": "app", **{key: value for key, value in container.items() if key in {"name", "resources"}}}


@asynccontextmanager
async def staged(programs: Programs | None = None) -> AsyncGenerator[Stage, None]:
    """Give a stage for as long as a block runs."""
    with tempfile.TemporaryDirectory() as folder:
        audit = Audit(Path(folder))
        plane = ControlPlane(programs, feature_gates=GATES, server_arguments=audit.flags)
        async with plane, await plane.cluster() as cluster, MetricsStub(plane) as stub, audit.followed():
            for kind in ("Rollout", "Plain"):
                await cluster.create(_definition(kind), field_manager="comparison")
            flags = {**FLAGS, "concurrent-horizontal-pod-autoscaler-syncs": "50"}
            running = plane.controllers(
                Controller.HORIZONTAL_POD_AUTOSCALER, hpa_sync_period=SETTINGS.sync_period, arguments=flags
            )
            await asyncio.to_thread(running.__enter__)
            try:
                yield Stage(plane, cluster, stub, audit)
            finally:
                await asyncio.to_thread(running.__exit__, None, None, None)


def _definition(kind: str) -> Manifest:
    """Return a kind of our own; a Plain has no Scale."""
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
