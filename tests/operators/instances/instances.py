"""The operator of instances: servers that it deploys, and external ones."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from aiohttp import ClientSession

from ocf import component
from ocf.cluster import Cluster
from ocf.component import CleanupPending, Component, ContextKey, ReconcileContext
from ocf.concepts import Data
from ocf.objects import Manifest
from ocf.primitives import configmap, data_hash, deployment, external, secret, service
from ocf.runtime.operator import Operator, OwnerType, ReconcileOutcome
from tests.operators.instances.model import API_VERSION, Dashboard, Deployed, Folder, Instance, Source
from tests.operators.instances.servers import Health, Nothing, Server, place_of, server_of

__all__ = ["CONTENT_KINDS", "SECRET", "SESSION", "instance_component", "instances"]

SECRET: Final = ("v1", "Secret")
SESSION: Final = ContextKey[ClientSession]("session")
CONTENT_KINDS: Final = tuple((API_VERSION, kind.kind) for kind in (Folder, Source, Dashboard))
_SERVER: Final = ContextKey[Server | None]("server")
_LOGIN: Final = Data[str]("login")
_PORT: Final = 3000
_HEALTH_PERIOD: Final = timedelta(minutes=10)
_POLL: Final = timedelta(minutes=1)
_UNDER_WAY: Final = timedelta(seconds=5)
_SHOWN: Final = 3


def instances() -> Operator[Instance]:
    """Return the operator of instances."""
    return Operator(
        name="instances",
        owner=OwnerType.of(Instance),
        components=_components,
        report=_report,
        on_delete=_emptied,
        reads=[SECRET, *CONTENT_KINDS],
    )


async def _components(instance: Instance, context: ReconcileContext) -> Component:
    context.values[_SERVER] = server = await server_of(instance, context)
    return instance_component(instance, server, context.values.get(SESSION))


def instance_component(instance: Instance, server: Server | None, session: ClientSession | None) -> Component:
    """Return the objects of an instance.

    Args:
        server: Its server; None while that is not known.
        session: The HTTP session of the process.
    """
    builder = component.Builder("server", owner=instance.key).with_prune(
        kinds=[("apps/v1", "Deployment"), ("v1", "Service"), ("v1", "ConfigMap"), SECRET]
    )
    if instance.spec.deployed is not None:
        return _deployed(instance, instance.spec.deployed, builder)
    builder.with_resource(secret.Builder(_named(instance.login_name)), read_only=True, block_on_absence=True)
    if server is not None:
        place = f"{instance.metadata.namespace}/{instance.metadata.name}"
        client = Health(f"{server.url}/health", session, server, _HEALTH_PERIOD)
        health = external.Builder(client, name=place, desired=Nothing()).with_targets(place)
        builder.with_resource(health, read_only=True, block_on_absence=True)
    return builder.build()


def _deployed(instance: Instance, deployed: Deployed, builder: component.Builder) -> Component:
    """Return a server that runs in the cluster, and that a change of its settings or its password restarts."""
    name, labels = instance.metadata.name, {f"{API_VERSION.split('/')[0]}/instance": instance.metadata.name}
    entries: Manifest = {"data": deployed.settings}
    settings = configmap.Builder(_named(f"{name}-settings") | entries)
    login = secret.Builder(_named(instance.login_name) | {"stringData": {"user": "admin"}})
    login.with_generated("password").extract_into(_LOGIN, data_hash)
    container: Manifest = {
        "name": "server",
        "image": deployed.image,
        "ports": [{"containerPort": _PORT}],
        "envFrom": [{"configMapRef": {"name": f"{name}-settings"}}, {"secretRef": {"name": instance.login_name}}],
    }
    template = {"metadata": {"labels": labels}, "spec": {"containers": [container]}}
    spec: Manifest = {"replicas": 1, "selector": {"matchLabels": labels}, "template": template}
    restarting = deployment.Mutation(
        "restart", lambda m: m.roll_on_change(lambda: data_hash(entries), lambda: _LOGIN.get() or "")
    )
    pods = deployment.Builder(_named(name) | {"spec": spec}).with_data_guard(_LOGIN).with_mutation(restarting)
    port = service.Builder(_named(name) | {"spec": {"selector": labels, "ports": [{"port": _PORT}]}})
    for one in (settings, login, pods, port):
        builder.with_resource(one)
    return builder.build()


def _named(name: str) -> Manifest:
    return {"metadata": {"name": name}}


def _report(context: ReconcileContext, instance: Instance, outcome: ReconcileOutcome) -> None:
    """Publish where the server is: what is in it waits until it was ready for the first time."""
    result, server = outcome.results.get("server"), context.values.get(_SERVER)
    url = instance.service_url or (server.url if server is not None else None)
    if url and ("url" in context.status or (result is not None and result.condition.status)):
        context.status["url"] = url


async def _emptied(instance: Instance, context: ReconcileContext, cluster: Cluster) -> CleanupPending | None:
    """Keep an instance until nothing is in its server any more, unless the server goes with it."""
    if instance.spec.deployed is not None:
        return None
    # A reconcile that had selected the instance before may not have recorded yet what it puts into the server.
    rest = (instance.metadata.deletion_timestamp or context.now) + _UNDER_WAY - context.now
    if rest > timedelta(0):
        return CleanupPending(rest, "what is being put into the server is awaited")
    place = f"{instance.metadata.namespace}/{instance.metadata.name}"
    held = []
    for kind in CONTENT_KINDS:
        for one in (await cluster.list(*kind)).items:
            records = ((one.get("status") or {}).get("external") or {}).values()
            if any(record.get("target") == place for record in records):
                held.append(f"{kind[1]} {place_of(one)}")
    if not held:
        return None
    more = f" and {len(held) - _SHOWN} more" if len(held) > _SHOWN else ""
    return CleanupPending(_POLL, f"these are still in the server: {', '.join(held[:_SHOWN])}{more}")
