"""The database: a StatefulSet, its Service, and a ConfigMap that tells others how to reach it.

The password is the user's: a Secret that is read and never written. Only names of it travel in data cells, never what
is in it.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Final

from examples.web.shop import Part, Shop
from ocf import component
from ocf.concepts import Data, GuardStatus, StatusReport
from ocf.editors import ConfigMapDataEditor, ContainerEditor, container_named
from ocf.feature import VersionGate
from ocf.primitives import configmap, secret, statefulset
from ocf.primitives import service as service_kind

if TYPE_CHECKING:
    from kubernetes.client import V1Secret, V1Service, V1StatefulSet

    from ocf.concepts import Resource

__all__ = ["CONDITION", "HOST", "HOST_ENTRY", "PASSWORD_KEY", "PASSWORD_SECRET", "PORT", "SECRET_ENTRY", "database"]

CONDITION: Final = "DatabaseReady"
PORT: Final = 5432
PASSWORD_KEY: Final = "password"  # noqa: S105 (a key, no password)
HOST_ENTRY: Final = "host"
SECRET_ENTRY: Final = "passwordSecret"  # noqa: S105 (a key, no password)

# Cells are keys: their values belong to one pass of one component, so they are constants of the module.
HOST: Final = Data[str]("database-host")
PASSWORD_SECRET: Final = Data[str]("password-secret")
PASSWORD_KEYS: Final = Data[list[str]]("password-keys")


def database(shop: Shop) -> component.Component:
    """Describe the database of a shop.

    Args:
        shop: The owner.
    """
    return (
        component.Builder("database", condition_type=CONDITION)
        .with_resource(password(shop), read_only=True, block_on_absence=True)
        .with_resource(service(shop))
        .with_resource(connection(shop))
        .with_resource(server(shop))
        .with_grace_period(timedelta(minutes=10))
        .suspend(shop.spec.suspended)
        .build()
    )


def password(shop: Shop) -> Resource:
    """Describe the Secret that the user makes."""
    metadata = {"name": shop.spec.password_secret, "namespace": shop.metadata.namespace}
    return (
        secret.Builder({"apiVersion": "v1", "kind": "Secret", "metadata": metadata})
        .extract_into(PASSWORD_SECRET, _name)
        .extract_into(PASSWORD_KEYS, lambda live: sorted(live.data or {}))
        .build()
    )


def service(shop: Shop) -> Resource:
    """Describe the name under which the database is found."""
    base = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": shop.named(Part.DATABASE),
        "spec": {"selector": shop.labels(Part.DATABASE), "ports": [{"name": "postgres", "port": PORT}]},
    }
    return service_kind.Builder(base).extract_into(HOST, _host).build()


def connection(shop: Shop) -> Resource:
    """Describe what others may know about the database."""

    def mutate(m: configmap.Mutator) -> None:
        @m.edit_data
        def _(data: ConfigMapDataEditor) -> None:
            data.ensure_entry(HOST_ENTRY, HOST.require())
            data.ensure_entry(SECRET_ENTRY, PASSWORD_SECRET.require())

    base = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": shop.named(Part.DATABASE)}
    told = configmap.Mutation("connection", mutate)
    return configmap.Builder(base).with_data_guard(HOST, PASSWORD_SECRET).with_mutation(told).build()


def server(shop: Shop) -> statefulset.Resource:
    """Describe the server itself, as the newest version of the product wants it."""
    labels = shop.labels(Part.DATABASE)
    password_key = {"name": shop.spec.password_secret, "key": PASSWORD_KEY}
    container = {
        "name": "postgres",
        "image": "postgres:17",
        "args": ["--max_connections=200"],
        "env": [
            {"name": "PGDATA", "value": "/data/pgdata"},
            {"name": "POSTGRES_PASSWORD", "valueFrom": {"secretKeyRef": password_key}},
        ],
        "ports": [{"name": "postgres", "containerPort": PORT}],
        "volumeMounts": [{"name": "data", "mountPath": "/data"}],
    }
    claim = {
        "metadata": {"name": "data"},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
    }
    base = {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": shop.named(Part.DATABASE),
        "spec": {
            "replicas": 1,
            "serviceName": shop.named(Part.DATABASE)["name"],
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}},
            "volumeClaimTemplates": [claim],
        },
    }
    return (
        statefulset.Builder(base)
        .with_data_guard(PASSWORD_KEYS)
        .with_guard(_password_is_there)
        .with_mutation(few_connections(shop.spec.version))
        .build()
    )


def few_connections(version: str) -> statefulset.Mutation:
    """Ask for fewer connections before 2.0, where the application kept a pool of them."""

    def mutate(m: statefulset.Mutator) -> None:
        @m.edit_containers(container_named("postgres"))
        def _(postgres: ContainerEditor) -> None:
            postgres.remove_arg("--max_connections=200")
            postgres.ensure_arg("--max_connections=100")

    return statefulset.Mutation("few-connections", mutate, feature=VersionGate(version, "< 2.0"))


def _password_is_there(_base: V1StatefulSet) -> StatusReport[GuardStatus]:
    """Wait for a Secret that can be used: without its key no pod would start."""
    if PASSWORD_KEY in PASSWORD_KEYS.require():
        return StatusReport(GuardStatus.UNBLOCKED)
    return StatusReport(GuardStatus.BLOCKED, f'Waiting for a Secret with the key "{PASSWORD_KEY}"')


def _name(live: V1Secret) -> str:
    return (live.metadata.name if live.metadata else None) or ""


def _host(live: V1Service) -> str:
    metadata = live.metadata
    return f"{metadata.name}.{metadata.namespace}.svc" if metadata else ""
