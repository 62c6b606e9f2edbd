"""Reconcile of a component that is in sync: three healthy Deployments, each with its autoscaler.

The cluster is the embedded one, so the figure is our work without a network. The baseline is the six reads of such a
reconcile.
"""

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Final

from benchmarks.autoscaler import NAMESPACE, resource
from benchmarks.figures import Case, Count, Suite
from benchmarks.timer import each_turn
from ocf import component
from ocf.cluster import Cluster, PatchOptions, PatchType, Subresource
from ocf.cluster.cache import CachedCluster, Projection
from ocf.component import Component, Reason, Result, reconciling
from ocf.objects import Manifest, ObjectKey
from ocf.primitives import deployment
from ocf.runtime.operator.observed_versions import ObservedVersions
from ocf.runtime.operator.recording_reads import RecordingReads
from ocf_server import CustomKind, EmbeddedCluster

__all__ = ["ACTIVE", "deployment_of", "rolled_out", "suite"]

# Of the time of its reads in the same run: a time of its own fails on a busy machine. Alone on two cores it is 8.5,
# beside 20 other processes 15.
_SHARE: Final = 20.0
_NAMES: Final = ("api", "web", "worker")
_SETTINGS: Final = 1_000
_OWNER: Final = ObjectKey("example.com/v1", "Shop", "shop", NAMESPACE)


class _Settings:
    """Objects of which every reconcile looks at one field."""

    def __init__(self) -> None:
        self._cached = CachedCluster(EmbeddedCluster(namespaces=(NAMESPACE,)))
        self._projection = Projection("v1", "ConfigMap", _mode)
        self.close = self._cached.close

    async def bring_up(self) -> None:
        for number in range(_SETTINGS):
            metadata = {"name": f"settings-{number}", "namespace": NAMESPACE, "labels": {"app": "shop"}}
            data = {"mode": "production", "settings": "a" * 1_000}
            await self._cached.create(
                {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}, field_manager="benchmark"
            )

    async def list(self) -> list[str]:
        """Look at each object."""
        return [_mode(one) for one in (await self._recorded.list("v1", "ConfigMap")).items]

    async def project(self) -> Sequence[str]:
        """Look at those that have changed."""
        return await self._projection.read(self._recorded)

    @property
    def _recorded(self) -> Cluster:
        """The cluster of a reconcile, which records what is read."""
        return RecordingReads(self._cached, ObservedVersions(_OWNER))


def _mode(live: Manifest) -> str:
    mode: str = live["data"]["mode"]
    return mode


class _Shop:
    """An owner with a healthy component."""

    def __init__(self) -> None:
        shop = CustomKind("example.com", "v1", "Shop", "shops", status=True)
        self.cluster = EmbeddedCluster(kinds=[shop], namespaces=(NAMESPACE,))
        self.component = _component()

    async def bring_up(self) -> None:
        """Create everything, play the controllers' part, and let the component see it."""
        owner = {
            "apiVersion": _OWNER.api_version,
            "kind": _OWNER.kind,
            "metadata": {"name": _OWNER.name, "namespace": NAMESPACE},
            "spec": {"version": "2.3.1"},
        }
        await self.cluster.create(owner, field_manager="benchmark")
        await self.reconcile()
        for name in _NAMES:
            await self._report(_key("Deployment", name), rolled_out(await self.cluster.get(_key("Deployment", name))))
            await self._report(_key("HorizontalPodAutoscaler", name), ACTIVE)
        result = await self.reconcile()
        assert result.condition.reason is Reason.HEALTHY, result.condition.message

    async def reconcile(self) -> Result:
        """Read the owner, and reconcile its component."""
        self.owner = await self.cluster.get(_OWNER)
        return await self.reconcile_in_sync()

    async def reconcile_in_sync(self) -> Result:
        """Reconcile the component for the owner as it was read last."""
        async with reconciling(self.owner, self.cluster) as context:
            return await self.component.reconcile(context)

    async def reconcile_event(self) -> Result:
        """Do what an operator does for an event: read the owner, build the component for it, reconcile."""
        async with reconciling(await self.cluster.get(_OWNER), self.cluster) as context:
            return await _component().reconcile(context)

    async def read_all(self) -> Sequence[Manifest]:
        """Send the reads of a reconcile only."""
        return [await self.cluster.get(entry.resource.key) for entry in self.component.entries]

    async def _report(self, key: ObjectKey, status: Manifest) -> None:
        await self.cluster.patch(
            key,
            {"status": status},
            PatchOptions(
                patch_type=PatchType.MERGE, field_manager="kube-controller-manager", subresource=Subresource.STATUS
            ),
        )


@contextmanager
def suite() -> Iterator[Suite]:
    """Give the cases."""
    shop, settings = _Shop(), _Settings()
    with asyncio.Runner() as runner:
        runner.run(settings.bring_up())
        runner.run(shop.bring_up())
        runner.run(shop.reconcile())
        shop.cluster.requests.clear()
        runner.run(shop.reconcile_in_sync())
        requests = shop.cluster.requests
        yield [
            Count(name="reconcile.writes", what="writes of a reconcile in sync", value=requests.writes, limit=0),
            Count(name="reconcile.reads", what="its reads", value=requests.reads, limit=len(shop.component.entries)),
            Case(name="reconcile.gets", what="six reads, alone", measure=each_turn(runner, shop.read_all)),
            Case(
                name="reconcile.in-sync",
                what="a reconcile of six resources in sync",
                measure=each_turn(runner, shop.reconcile_in_sync),
                against="reconcile.gets",
                share=_SHARE,
            ),
            Case(
                name="reconcile.event",
                what="the same, with reading the owner and building the component",
                measure=each_turn(runner, shop.reconcile_event),
                against="reconcile.gets",
            ),
            Case(name="reconcile.list", what="a list of 1000 objects", measure=each_turn(runner, settings.list)),
            Case(
                name="reconcile.projection",
                what="a projection of them, where nothing has changed",
                measure=each_turn(runner, settings.project),
                against="reconcile.list",
            ),
        ]
        runner.run(settings.close())


def _component() -> Component:
    builder = component.Builder("web", condition_type="WebReady")
    for name in _NAMES:
        builder.with_resource(deployment.Builder(deployment_of(name)).build()).with_resource(resource(name))
    return builder.build()


def deployment_of(name: str) -> Manifest:
    """Return a Deployment that leaves its count to an autoscaler."""
    labels = {"app.kubernetes.io/name": name}
    container = {
        "name": name,
        "image": f"registry.example.com/{name}:2.3.1",
        "env": [{"name": "MODE", "value": "production"}],
        "ports": [{"name": "http", "containerPort": 8080}],
        "resources": {"requests": {"cpu": "250m", "memory": "256Mi"}, "limits": {"memory": "512Mi"}},
        "readinessProbe": {"httpGet": {"path": "/ready", "port": "http"}},
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": NAMESPACE, "labels": labels},
        "spec": {
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}},
        },
    }


def _key(kind: str, name: str) -> ObjectKey:
    return ObjectKey("apps/v1" if kind == "Deployment" else "autoscaling/v2", kind, name, NAMESPACE)


def rolled_out(live: Manifest) -> Manifest:
    """Return the status of a Deployment that is through with its rollout."""
    wanted = live["spec"]["replicas"]
    return {
        "observedGeneration": live["metadata"]["generation"],
        "replicas": wanted,
        "updatedReplicas": wanted,
        "readyReplicas": wanted,
        "availableReplicas": wanted,
    }


ACTIVE: Final[Manifest] = {
    "currentReplicas": 1,
    "desiredReplicas": 1,
    "conditions": [
        {
            "type": kind,
            "status": "True",
            "reason": reason,
            "message": message,
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        }
        for kind, reason, message in (
            ("AbleToScale", "ReadyForNewScale", "recommended size matches current size"),
            ("ScalingActive", "ValidMetricFound", "the HPA was able to successfully calculate a replica count"),
        )
    ],
}
