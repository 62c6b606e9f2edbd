"""The operator of clusters: a scheduler with its Service, and groups of workers."""

from __future__ import annotations

from typing import Final

from ocf import component
from ocf.cluster import ListOptions
from ocf.component import Component, ReconcileContext
from ocf.objects import Manifest
from ocf.primitives import custom_kind, deployment, service
from ocf.runtime.operator import Operator, OwnerType, spec_changed
from tests.operators.workers.model import ComputeCluster, GroupScaler, WorkerGroup
from tests.operators.workers.scheduler import scheduler_name

__all__ = ["clusters", "component_of", "pods"]

_SCALER: Final = (GroupScaler.api_version, GroupScaler.kind)
_GROUPS: Final = custom_kind(WorkerGroup, WorkerGroup.api_version)
_NAME: Final = "workers.example.com/name"


def clusters() -> Operator[ComputeCluster]:
    """Return the operator of clusters."""
    return Operator(
        name="compute-clusters",
        owner=OwnerType.of(ComputeCluster),
        components=components,
        triggers={_SCALER: spec_changed},
        reads=[_SCALER],
    )


async def components(cluster: ComputeCluster, context: ReconcileContext) -> Component:
    """Return the objects of a cluster; a group that is scaled has its number of workers from its scaler."""
    found = await context.cluster.list(*_SCALER, ListOptions(namespace=cluster.metadata.namespace))
    return component_of(cluster, {one["spec"]["group"] for one in found.items})


def component_of(cluster: ComputeCluster, scaled: set[str]) -> Component:
    """Return the objects of a cluster.

    Args:
        scaled: The groups that have a scaler.
    """
    name = scheduler_name(cluster.metadata.name)
    port = {"name": "api", "port": 80, "targetPort": 8787}
    builder = (
        component.Builder("cluster", owner=cluster.key)
        .with_prune(kinds=[(WorkerGroup.api_version, WorkerGroup.kind)], while_blocked=True)
        .with_resource(deployment.Builder(pods(name, cluster.spec.image, "scheduler")))
        .with_resource(
            service.Builder({"metadata": {"name": name}, "spec": {"selector": {_NAME: name}, "ports": [port]}})
        )
    )
    for suffix, replicas in cluster.spec.groups.items():
        group = f"{cluster.metadata.name}-{suffix}"
        spec = {"cluster": cluster.metadata.name, "image": cluster.spec.image, "replicas": replicas}
        made = _GROUPS.integration({"metadata": {"name": group}, "spec": spec})
        builder.with_resource(made, independent=True, set_once=["spec.replicas"] if group in scaled else [])
    return builder.build()


def pods(name: str, image: str, command: str) -> Manifest:
    """Return a Deployment of one pod."""
    container = {"name": "compute", "image": image, "command": [command], "env": [{"name": "NAME", "value": name}]}
    template = {"metadata": {"labels": {_NAME: name}}, "spec": {"containers": [container]}}
    spec = {"replicas": 1, "selector": {"matchLabels": {_NAME: name}}, "template": template}
    return {"metadata": {"name": name}, "spec": spec}
