"""The operator of the fault tests: a shop with one component of six resources.

The resources are a ConfigMap whose data the Deployment needs, a Deployment and its autoscaler, a Service, a disruption
budget that the spec can delete, and a cluster-scoped role, which the garbage collector never deletes. All of them
depend on the owner's spec. Four of the kinds are declared here, as a user declares them; the controllers of Kubernetes
are simulated.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final
from weakref import WeakKeyDictionary

import pytest
from kubernetes.client import V1EnvVar

from ocf import component, feature
from ocf.autoscaling import metrics
from ocf.cluster import Cluster, PatchOptions, PatchType, Subresource
from ocf.component import (
    CleanupPending,
    Component,
    DeletionOrder,
    Finalizer,
    ReconcileContext,
    Result,
    finalize,
    reconciling,
)
from ocf.component.model.resource_options import ResourceOptions
from ocf.concepts import ApplyOperation, Data, Event, OperationalStatus, Resource, StatusReport
from ocf.concepts.recorder import NullRecorder
from ocf.editors import Editor, ObjectMetaEditor, container_named
from ocf.errors import NotFoundError, OcfError
from ocf.feature import BooleanGate, VersionGate
from ocf.objects import Manifest, ObjectKey
from ocf.primitives import BaseMutator, Edits, Handlers, IntegrationBuilder, Kind, StaticBuilder, deployment, hpa
from ocf.testing import ConditionSeverity, RecordingCluster, VirtualClock, lint_conditions, snapshot
from ocf_server import CustomKind, EmbeddedCluster

if TYPE_CHECKING:
    from kubernetes.client import V1ClusterRole, V1ConfigMap, V1PodDisruptionBudget, V1Service

# Replica count that the simulated autoscaler sets.
BUSY: Final = 5
# Namespace of the buckets, which Kubernetes does not delete with their owner.
BUCKETS: Final = "buckets"

MODE: Final = Data[str]("mode")


class SettingsMutator(BaseMutator):
    """Records edits of a ConfigMap, whose data is a top-level field."""

    edit_object_metadata = Edits(ObjectMetaEditor, "metadata")
    edit_data = Edits(Editor["V1ConfigMap"], "")


class PlainMutator(BaseMutator):
    """Records edits of metadata only."""

    edit_object_metadata = Edits(ObjectMetaEditor, "metadata")


_SETTINGS: Kind[V1ConfigMap, SettingsMutator] = Kind("v1", "ConfigMap", "V1ConfigMap", SettingsMutator)
_SERVICE: Kind[V1Service, PlainMutator] = Kind("v1", "Service", "V1Service", PlainMutator)
_BUDGET: Kind[V1PodDisruptionBudget, PlainMutator] = Kind(
    "policy/v1", "PodDisruptionBudget", "V1PodDisruptionBudget", PlainMutator
)
_ROLE: Kind[V1ClusterRole, PlainMutator] = Kind(
    "rbac.authorization.k8s.io/v1", "ClusterRole", "V1ClusterRole", PlainMutator, cluster_scoped=True
)


def _budget_status(_operation: ApplyOperation, live: V1PodDisruptionBudget) -> StatusReport[OperationalStatus]:
    seen = (live.status.observed_generation if live.status else None) or 0
    if seen < ((live.metadata.generation if live.metadata else None) or 0):
        return StatusReport(OperationalStatus.PENDING, "Waiting for disruption controller to observe latest spec")
    return StatusReport(OperationalStatus.OPERATIONAL, "Disruption budget is observed")


_BUDGET_HANDLERS: Handlers[V1PodDisruptionBudget, PlainMutator, OperationalStatus] = Handlers(status=_budget_status)

SPEC: Final[Manifest] = {
    "version": "1.4.0",
    "mode": "plain",
    "most": 10,
    "scaled": True,
    "protected": True,
    "suspended": False,
}


def _named(key: ObjectKey, **content: Any) -> Manifest:
    metadata = {"name": key.name, **({"namespace": key.namespace} if key.namespace else {})}
    return {"apiVersion": key.api_version, "kind": key.kind, "metadata": metadata, **content}


def _settings(key: ObjectKey, spec: Manifest) -> Resource:
    def set_mode(m: SettingsMutator) -> None:
        @m.edit_data
        def _(settings: Editor[V1ConfigMap]) -> None:
            settings.raw.data = {**(settings.raw.data or {}), "mode": spec["mode"]}

    builder = StaticBuilder(_named(key, data={"greeting": "welcome"}), _SETTINGS, Handlers())
    builder.with_mutation(feature.Mutation("mode", set_mode))
    return builder.extract_into(MODE, lambda live: (live.data or {}).get("mode", "")).build()


def _web(key: ObjectKey, spec: Manifest, *, follows: bool = True) -> Resource:
    def follow(m: deployment.Mutator) -> None:
        m.edit_pod_template_metadata(lambda meta: meta.ensure_annotation("example.com/mode", MODE.require()))

    def traced(m: deployment.Mutator) -> None:
        m.edit_containers(container_named("web"))(lambda web: web.ensure_env_var(V1EnvVar(name="TRACED", value="yes")))

    container = {
        "name": "web",
        "image": f"registry.example.com/web:{spec['version']}",
        "ports": [{"name": "http", "containerPort": 8080}],
        "resources": {"requests": {"cpu": "250m", "memory": "256Mi"}},
    }
    template = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [container]}}
    base = _named(key, spec={"replicas": 3, "selector": {"matchLabels": {"app": "web"}}, "template": template})
    builder = deployment.Builder(base)
    if follows:
        builder.with_data_guard(MODE).with_mutation(deployment.Mutation("mode", follow))
    gate = VersionGate(spec["version"], ">= 2")
    return builder.with_mutation(deployment.Mutation("traced", traced, feature=gate)).build()


def _scaler(key: ObjectKey, target: ObjectKey, spec: Manifest) -> Resource:
    def by_cpu(m: hpa.Mutator) -> None:
        m.edit_hpa_spec(lambda scaler: scaler.ensure_metric(metrics.cpu(average_utilization=70)))

    reference = {"apiVersion": target.api_version, "kind": target.kind, "name": target.name}
    base = _named(key, spec={"scaleTargetRef": reference, "minReplicas": 2, "maxReplicas": spec["most"]})
    return (
        hpa.Builder(base)
        .with_mutation(hpa.Mutation("by-cpu", by_cpu, feature=VersionGate(spec["version"], ">= 2")))
        .build()
    )


def _service(key: ObjectKey) -> Resource:
    ports = [{"name": "http", "port": 80, "targetPort": "http"}]
    return StaticBuilder(_named(key, spec={"selector": {"app": "web"}, "ports": ports}), _SERVICE, Handlers()).build()


def _budget(key: ObjectKey) -> Resource:
    spec = {"minAvailable": 1, "selector": {"matchLabels": {"app": "web"}}}
    return IntegrationBuilder(_named(key, spec=spec), _BUDGET, _BUDGET_HANDLERS).build()


def _role(key: ObjectKey) -> Resource:
    rules = [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list"]}]
    return StaticBuilder(_named(key, rules=rules), _ROLE, Handlers()).build()


class EventCounter(NullRecorder):
    """Recorder that counts the events of reconciles.

    Attributes:
        events: Number of events by object and reason.
    """

    def __init__(self) -> None:
        self.events: Counter[tuple[ObjectKey, str]] = Counter()

    def happened(self, event: Event) -> None:
        """Count an event."""
        self.events[event.resource, event.reason] += 1


class Operator:
    """The operator under test: its initial cluster, its reconcile, and simulated controllers.

    Args:
        clock: Clock of the reconciles.
        finalizes: Whether it adds a finalizer to the owner; without one the cluster-scoped role is never deleted.
        cleanup: The order of the deletion, if the operator also makes a bucket that Kubernetes does not delete. The
            bucket is emptied first and then deleted; a ConfigMap in another namespace stands for it, so that its
            requests can be disturbed as well.
        options: Additional resource options by kind.
        namespace: Namespace of the shop.

    Attributes:
        recorder: The recorder of all reconciles.
    """

    busy = BUSY

    def __init__(
        self,
        clock: VirtualClock,
        *,
        finalizes: bool = False,
        cleanup: DeletionOrder | None = None,
        options: Mapping[str, ResourceOptions] | None = None,
        namespace: str = "shop",
    ) -> None:
        self.owner = ObjectKey("example.com/v1", "Shop", "demo", namespace)
        self.settings = ObjectKey("v1", "ConfigMap", "settings", namespace)
        self.web = ObjectKey("apps/v1", "Deployment", "web", namespace)
        self.scaler = ObjectKey("autoscaling/v2", "HorizontalPodAutoscaler", "web", namespace)
        self.service = ObjectKey("v1", "Service", "web", namespace)
        self.budget = ObjectKey("policy/v1", "PodDisruptionBudget", "web", namespace)
        self.role = ObjectKey("rbac.authorization.k8s.io/v1", "ClusterRole", f"{namespace}-demo")
        self.keys = (self.settings, self.web, self.scaler, self.service, self.budget, self.role)
        self.clock = clock
        self.recorder = EventCounter()
        self.finalizes = finalizes or cleanup is not None
        self.bucket = ObjectKey("v1", "ConfigMap", "bucket", BUCKETS)
        self.finalizer = Finalizer()
        if cleanup is not None:
            self.finalizer = Finalizer(on_delete=self._delete_bucket, order=cleanup)
        self.options = options or {}
        self._seen: WeakKeyDictionary[Cluster, Manifest] = WeakKeyDictionary()

    async def new_cluster(self, **spec: Any) -> EmbeddedCluster:
        """Return a cluster that contains only the owner; keywords change its spec."""
        kinds = [CustomKind("example.com", "v1", "Shop")]
        cluster = EmbeddedCluster(kinds=kinds, namespaces=[self.owner.namespace, BUCKETS], now=self.clock.now)
        await self.open(cluster, **spec)
        return cluster

    async def open(self, cluster: Cluster, **spec: Any) -> None:
        """Create the owner; keywords change its spec."""
        await cluster.create(_named(self.owner, spec={**SPEC, **spec}), field_manager="user")

    def component(self, spec: Manifest) -> Component:
        """Return the component for a spec."""
        switches: dict[str, ResourceOptions] = {
            self.scaler.kind: {"gated_by": BooleanGate(spec["scaled"])},
            self.budget.kind: {"delete_when": not spec["protected"]},
        }
        builder = component.Builder("web", condition_type="WebReady").with_grace_period(timedelta(minutes=5))
        for made in self._resources(spec):
            options: ResourceOptions = {**switches.get(made.key.kind, {}), **self.options.get(made.key.kind, {})}
            builder.with_resource(made, **options)
        return builder.suspend(spec["suspended"]).build()

    def scaled_web(self, version: str) -> Component:
        """Return a component of only the Deployment and its autoscaler, with an unpublished condition."""
        spec = {**SPEC, "version": version}
        scaled = component.Builder("web", condition_type="WebReady")
        for made in (_web(self.web, spec, follows=False), _scaler(self.scaler, self.web, spec)):
            scaled.with_resource(made)
        return scaled.unpublished().build()

    def _resources(self, spec: Manifest) -> Iterator[Resource]:
        yield _settings(self.settings, spec)
        yield _web(self.web, spec)
        yield _scaler(self.scaler, self.web, spec)
        yield _service(self.service)
        yield _budget(self.budget)
        yield _role(self.role)

    async def reconcile(self, cluster: Cluster) -> Result | None:
        """Reconcile the owner; return None if it is deleted or being deleted."""
        try:
            owner = await cluster.get(self.owner)
        except NotFoundError:
            return None
        made = self.component(owner["spec"])
        async with reconciling(owner, cluster, clock=self.clock, recorder=self.recorder) as context:
            if self.finalizes and await finalize(context, made, finalizer=self.finalizer):
                return None
            if self.finalizer.on_delete is not None and await self.read(cluster, self.bucket) is None:
                await cluster.create(_named(self.bucket, data={"state": "full"}), field_manager="buckets")
            return await made.reconcile(context)

    async def _delete_bucket(self, context: ReconcileContext) -> CleanupPending | None:
        live = await self.read(context.cluster, self.bucket)
        if live is None:
            return None
        if live["data"]["state"] == "full":
            as_read = {"resourceVersion": live["metadata"]["resourceVersion"]}
            patch = {"metadata": as_read, "data": {"state": "empty"}}
            options = PatchOptions(patch_type=PatchType.MERGE, field_manager="buckets")
            await context.cluster.patch(self.bucket, patch, options)
            return CleanupPending(timedelta(seconds=10), "bucket is being emptied")
        await context.cluster.delete(self.bucket)
        return None

    async def controllers(self, cluster: Cluster) -> None:
        """Run the simulated controllers of Kubernetes, and check the owner's conditions."""
        await self.autoscale(cluster)
        await self._roll_out(cluster)
        for key in (self.scaler, self.budget):
            live = await self.read(cluster, key)
            if live is not None:
                await self.report(cluster, key, observed(live))
        await self.look(cluster)

    async def autoscale(self, cluster: Cluster) -> None:
        """Set the replica count as the autoscaler does; without an autoscaler, or at 0 replicas, do nothing."""
        live = await self.read(cluster, self.web)
        scaler = await self.read(cluster, self.scaler)
        if live and scaler and live["spec"]["replicas"] not in (0, BUSY):
            await self.scale(cluster, BUSY)

    async def scale(self, cluster: Cluster, count: int) -> None:
        """Set the replica count through the Scale subresource."""
        await cluster.patch(
            self.web,
            {"spec": {"replicas": count}},
            PatchOptions(
                patch_type=PatchType.MERGE, field_manager="kube-controller-manager", subresource=Subresource.SCALE
            ),
        )

    async def _roll_out(self, cluster: Cluster) -> None:
        live = await self.read(cluster, self.web)
        if live is not None:
            counts = dict.fromkeys(("replicas", "readyReplicas", "updatedReplicas"), live["spec"]["replicas"])
            await self.report(cluster, self.web, {"observedGeneration": live["metadata"]["generation"], **counts})

    async def report(self, cluster: Cluster, key: ObjectKey, status: Manifest) -> None:
        """Write a status as the kind's controller does."""
        await cluster.patch(
            key,
            {"status": status},
            PatchOptions(
                patch_type=PatchType.MERGE, field_manager="kube-controller-manager", subresource=Subresource.STATUS
            ),
        )

    async def read(self, cluster: Cluster, key: ObjectKey) -> Manifest | None:
        """Return an object; None if it does not exist."""
        try:
            return await cluster.get(key)
        except NotFoundError:
            return None

    async def look(self, cluster: Cluster) -> None:
        """Check the owner's conditions against the rules for conditions and against their previous state."""
        live = await self.read(cluster, self.owner)
        if live is None:
            return
        conditions = (live.get("status") or {}).get("conditions", [])
        previous = ((self._seen.get(cluster) or {}).get("status") or {}).get("conditions", [])
        found = lint_conditions(conditions, generation=live["metadata"]["generation"], previous=previous)
        assert not [str(finding) for finding in found if finding.severity is ConditionSeverity.FAIL]
        self._seen[cluster] = live

    async def change(self, cluster: Cluster, key: ObjectKey | None = None, **patch: Any) -> None:
        """Patch an object (by default the owner), as a user does with `kubectl`."""
        await cluster.patch(key or self.owner, patch, PatchOptions(patch_type=PatchType.MERGE, field_manager="kubectl"))

    async def settle(self, cluster: Cluster, through: Cluster | None = None, *, passes: int = 20) -> list[Result]:
        """Reconcile and run the controllers in turn until a reconcile sends no write; errors are retried.

        Args:
            cluster: The cluster.
            through: The cluster that the operator uses; by default the same.
            passes: Maximum number of reconciles.
        """
        results: list[Result] = []
        for made in range(passes):
            seen = RecordingCluster(through or cluster)
            try:
                result = await self.reconcile(seen)
            except OcfError:
                result = None
            else:
                waits = result is not None and any(outcome.retry_after for outcome in result.outcomes)
                if made and not seen.writes and not waits:
                    return results
                if waits:
                    self.clock.advance(timedelta(minutes=1))
            results += [result] if result is not None else []
            await self.controllers(cluster)
            if through is not None:
                await arrived()
        raise AssertionError(f"still writing after {passes} reconciles")

    async def at_rest(self, **spec: Any) -> EmbeddedCluster:
        """Return a cluster in which the component is healthy and scaled by the autoscaler."""
        cluster = await self.new_cluster(**spec)
        await self.settle(cluster)
        cluster.requests.clear()
        return cluster

    def clone(self, cluster: EmbeddedCluster) -> EmbeddedCluster:
        """Return a clone of a cluster; its next conditions are checked against those of the cluster."""
        clone = cluster.clone()
        if cluster in self._seen:
            self._seen[clone] = self._seen[cluster]
        return clone

    async def condition(self, cluster: Cluster) -> Manifest:
        """Return the component's condition as stored."""
        found: Manifest = (await cluster.get(self.owner))["status"]["conditions"][0]
        return found

    async def state(self, cluster: Cluster) -> dict[str, Manifest]:
        """Return all objects, masked so that two runs can be compared."""
        return await snapshot(cluster, {(key.api_version, key.kind) for key in (self.owner, *self.keys)})


async def arrived() -> None:
    """Yield to the event loop until the events of watches have arrived."""
    for _ in range(30):
        await asyncio.sleep(0)


def observed(live: Manifest) -> Manifest:
    """Return the status that the controller writes to an autoscaler or a disruption budget."""
    if live["kind"] == "PodDisruptionBudget":
        return {"observedGeneration": live["metadata"]["generation"]}
    return {"conditions": [{"type": "ScalingActive", "status": "True", "reason": "ValidMetricFound", "message": ""}]}


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock()


@pytest.fixture
def operator(clock: VirtualClock) -> Operator:
    return Operator(clock)


@pytest.fixture
def new_operator(clock: VirtualClock) -> Callable[..., Operator]:
    """Return a factory of operators with the same clock."""
    return lambda given=clock, **options: Operator(given, **options)
