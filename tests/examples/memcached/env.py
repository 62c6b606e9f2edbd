"""A cluster with a cache, and simulated actors: the user, the webhook, the autoscaler and the kubelet."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import replace
from typing import Any, Final

from examples.memcached import monitor
from examples.memcached.defaulting import default
from examples.memcached.model import Memcached
from examples.memcached.operator import memcached_operator
from examples.memcached.validation import validate
from ocf.cluster import Cluster, ListOptions, PatchOptions, PatchType, Subresource, WatchOptions
from ocf.component import ReconcileContext, Result
from ocf.concepts import Attempt, Event
from ocf.errors import ConflictError, NotFoundError, ReconcileError, TooManyRequestsError
from ocf.objects import Manifest, ObjectKey, copy_json, load_document, read_live, write_model
from ocf.runtime.operator import ReconcileOutcome
from ocf.runtime.operator.reconciler import reconcile_owner
from ocf.testing import RecordingCluster, VirtualClock
from ocf.testing.fake_controllers import rolled_out
from ocf_server import EmbeddedCluster
from tests import support

__all__ = ["DEFINITIONS", "Env", "Heard", "admitted", "embedded_kubelet", "real_kubelet", "served"]

DEFINITIONS: Final = (Memcached.definition(), monitor.DEFINITION)
"""The kinds that are not built in."""

APIS: Final = {
    "Deployment": "apps/v1",
    "HorizontalPodAutoscaler": "autoscaling/v2",
    "Service": "v1",
    "PodDisruptionBudget": "policy/v1",
    "ServiceMonitor": "monitoring.coreos.com/v1",
    "NetworkPolicy": "networking.k8s.io/v1",
    "Secret": "v1",
}
_PATIENCE: Final = 600  # seconds, for controllers that share two cores with other tests
_PASSES: Final = 20

Kubelet = Callable[[Cluster, str], Awaitable[None]]
"""Brings all pods of a namespace up, and returns once the Deployments in it say so."""


class Heard:
    """A recorder that keeps all events."""

    def __init__(self) -> None:
        self.attempts: list[Attempt] = []
        self.events: list[Event] = []

    def attempted(self, attempt: Attempt) -> None:
        self.attempts.append(attempt)

    def happened(self, event: Event) -> None:
        self.events.append(event)

    def observed(self, owner: ObjectKey, conditions: object) -> None:
        pass


class Env(support.Env[EmbeddedCluster | RecordingCluster, VirtualClock]):
    """A cluster with a cache, and the actions of the user and of other controllers."""

    def __init__(self, cluster: EmbeddedCluster | RecordingCluster, namespace: str, kubelet: Kubelet) -> None:
        super().__init__(cluster, VirtualClock())
        self.namespace = namespace
        self.heard = Heard()
        self._kubelet = kubelet

    # --- The user, and the webhook in front of what they write. ---

    def own(self, kind: str, name: str = "my-cache") -> ObjectKey:
        return ObjectKey(APIS.get(kind, "memcached.c5c3.io/v1alpha1"), kind, name, self.namespace)

    @property
    def owner(self) -> ObjectKey:
        return self.own("Memcached")

    async def create(self, sample: str = "", /, **spec: Any) -> Manifest:
        """Create a cache, `my-cache`, from a sample, from a spec, or from both."""
        manifest = load_document(sample) if sample else _EMPTY
        manifest = {**manifest, "spec": {**manifest.get("spec", {}), **spec}}
        metadata = {**manifest.get("metadata", {}), "name": "my-cache", "namespace": self.namespace}
        return await self.cluster.create(admitted({**manifest, "metadata": metadata}), field_manager="user")

    async def change(self, **spec: Any) -> Manifest:
        """Replace fields of the spec; one that is None goes."""
        while True:
            live = await self.cluster.get(self.owner)
            merged = {**live["spec"], **spec}
            live["spec"] = {field: value for field, value in merged.items() if value is not None}
            with suppress(ConflictError):  # the operator was faster with the status
                return await self.cluster.update(admitted(live), field_manager="user")

    async def secret(self, name: str, **entries: str) -> None:
        content = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, "namespace": self.namespace}}
        with suppress(NotFoundError):
            await self.cluster.delete(self.own("Secret", name))
        await self.cluster.create({**content, "stringData": entries}, field_manager="user")

    async def meddle(self, kind: str, **patch: Any) -> Manifest:
        """Change an object of the operator by hand."""
        return await self.merge_patch(self.own(kind), patch, by="another")

    # --- The controllers. ---

    async def scale(self, replicas: int) -> None:
        """Scale the Deployment as the autoscaler does."""
        await self.set_scale(self.own("Deployment"), replicas, by="horizontal-pod-autoscaler")

    async def kubelet(self) -> None:
        """Bring all pods up."""
        await self._kubelet(self.cluster, self.namespace)

    # --- The operator. ---

    async def reconcile(self) -> Result | None:
        return await self.pass_over(self.cluster)

    async def retried(self) -> Result | None:
        """Reconcile, and again after a write conflict with a controller, as the operator's queue does."""
        while True:
            try:
                return await self.reconcile()
            except ReconcileError as error:
                if not isinstance(error.__cause__, ConflictError):
                    raise

    async def pass_over(self, cluster: Cluster, owner: ObjectKey | None = None) -> Result | None:
        """Reconcile on another cluster or another cache; return the result, if there is one."""
        results: list[Result] = []

        async def report(context: ReconcileContext, cache: Memcached, outcome: ReconcileOutcome) -> None:
            results.extend(outcome.results.values())
            await memcached_operator.callbacks.report(context, cache, outcome)

        operator = replace(memcached_operator, report=report)
        live = await cluster.get(owner or self.owner)
        await reconcile_owner(operator, live, cluster, clock=self.clock, recorder=self.heard)
        return results[0] if results else None

    async def settle(self) -> None:
        """Run the operator and the controllers until nothing changes any more."""
        before: Manifest = {}
        for _ in range(_PASSES):
            result = await self.retried()
            await self.kubelet()
            after = await self.cluster.get(self.owner)
            if result is not None and not result.writes and after == before:
                return
            before = after
        raise AssertionError("the cache does not come to rest")

    # --- What is there. ---

    async def get(self, kind: str) -> Manifest:
        return await self.cluster.get(self.own(kind))

    async def exists(self, kind: str) -> bool:
        return await self.is_present(self.own(kind))

    async def gone(self, kind: str) -> None:
        """Wait until there is no object of a kind: a real garbage collector takes its time."""
        api_version = APIS[kind]
        async with asyncio.timeout(_PATIENCE):
            while (found := await self.cluster.list(api_version, kind, ListOptions(namespace=self.namespace))).items:
                since = found.resource_version
                await anext(
                    self.cluster.watch(
                        api_version, kind, WatchOptions(namespace=self.namespace, resource_version=since)
                    )
                )

    async def replicas(self) -> int:
        return await self.read_replicas(self.own("Deployment"))

    async def status(self) -> Manifest:
        return await self.read_status(self.owner)

    async def conditions(self) -> dict[str, tuple[str, str, str]]:
        """Type of each condition to status, reason and message."""
        found = await self.read_conditions(self.owner)
        return {name: (one["status"], one["reason"], one["message"]) for name, one in found.items()}

    async def versions(self) -> dict[str, object]:
        """Kind of each object of the cache to its resourceVersion; the autoscaler to its spec (its status changes)."""
        there = [kind for kind in APIS if kind != "Secret" and await self.exists(kind)]
        found = {kind: await self.get(kind) for kind in [*there, "Memcached"]}
        return {
            kind: one["spec"] if kind == "HorizontalPodAutoscaler" else one["metadata"]["resourceVersion"]
            for kind, one in found.items()
        }


_EMPTY: Final[Manifest] = {"apiVersion": "memcached.c5c3.io/v1alpha1", "kind": "Memcached"}


def admitted(manifest: Manifest) -> Manifest:
    """Return a cache as after the webhooks: with defaults set; reject an invalid one."""
    cache = default(read_live(manifest, Memcached))
    assert validate(cache) == ()
    return {**copy_json(manifest), "spec": write_model(cache)["spec"]}


async def embedded_kubelet(cluster: Cluster, namespace: str) -> None:
    """Say that all pods of all Deployments run."""
    for live in (await cluster.list("apps/v1", "Deployment", ListOptions(namespace=namespace))).items:
        status = {"status": rolled_out(live)}
        await _report(cluster, live, status)


async def real_kubelet(cluster: Cluster, namespace: str) -> None:
    """Report every pod as ready, until the real controllers have made all of them and said so.

    Before that the real autoscaler has looked at its target, so that it does not raise the count behind our back.
    """
    limits = await _limits(cluster, namespace)
    async with asyncio.timeout(_PATIENCE):
        while True:
            found = await cluster.list("apps/v1", "Deployment", ListOptions(namespace=namespace))
            await _make_ready(cluster, namespace)
            if all(_is_rolled_out(live, limits.get(live["metadata"]["name"])) for live in found.items):
                return
            await anext(
                cluster.watch(
                    "apps/v1", "Deployment", WatchOptions(namespace=namespace, resource_version=found.resource_version)
                )
            )


async def _limits(cluster: Cluster, namespace: str) -> dict[str, range]:
    """Return the counts that autoscalers allow, by the names of their targets, once all have been looked at."""
    api_version, kind = "autoscaling/v2", "HorizontalPodAutoscaler"
    async with asyncio.timeout(_PATIENCE):
        while True:
            found = await cluster.list(api_version, kind, ListOptions(namespace=namespace))
            if all(live.get("status", {}).get("conditions") for live in found.items):
                specs = [live["spec"] for live in found.items]
                return {
                    each["scaleTargetRef"]["name"]: range(each["minReplicas"], each["maxReplicas"] + 1)
                    for each in specs
                }
            await anext(
                cluster.watch(
                    api_version, kind, WatchOptions(namespace=namespace, resource_version=found.resource_version)
                )
            )


async def _make_ready(cluster: Cluster, namespace: str) -> None:
    ready = {"conditions": [{"type": "Ready", "status": "True"}], "phase": "Running"}
    for pod in (await cluster.list("v1", "Pod", ListOptions(namespace=namespace))).items:
        if pod.get("status", {}).get("phase") != "Running":
            with suppress(NotFoundError):
                await _report(cluster, pod, {"status": ready})


async def _report(cluster: Cluster, live: Manifest, status: Manifest) -> None:
    key, part = ObjectKey.of(live), Subresource.STATUS
    await cluster.patch(
        key, status, PatchOptions(patch_type=PatchType.MERGE, field_manager="kubelet", subresource=part)
    )


def _is_rolled_out(live: Manifest, limits: range | None) -> bool:
    count = live["spec"]["replicas"]
    wanted = {name: number for name, number in rolled_out(live).items() if number}  # zero is left out
    status = live.get("status", {})
    reported = wanted.items() <= status.items() and status.get("replicas", 0) == count
    return bool(reported) and (limits is None or count in limits)


async def served(cluster: Cluster, *kinds: tuple[str, str]) -> None:
    """Ask until kinds are served: a definition is taken before it is in force."""
    async with asyncio.timeout(_PATIENCE):
        for api_version, kind in kinds:
            while True:
                with suppress(NotFoundError, TooManyRequestsError):
                    await cluster.list(api_version, kind, ListOptions(namespace="default"))
                    break
                await asyncio.sleep(0)
