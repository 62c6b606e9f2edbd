"""The database: a StatefulSet, its Service, and a ConfigMap with its connection data.

The user creates the Secret with the password; the operator reads it and never writes it. Data cells hold only its name
and the names of its keys, never their values.
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

__all__ = ["CONDITION", "HOST", "HOST_ENTRY", "PASSWORD_KEY", "PASSWORD_SECRET", "PORT", "SECRET_ENTRY", "database"]

CONDITION: Final = "DatabaseReady"
PORT: Final = 5432
PASSWORD_KEY: Final = "password"  # noqa: S105 (a key, no password)
HOST_ENTRY: Final = "host"
SECRET_ENTRY: Final = "passwordSecret"  # noqa: S105 (a key, no password)

# A cell is a key: its value belongs to one reconcile of one component, so the cell itself can be a module constant.
HOST: Final = Data[str]("database-host")
PASSWORD_SECRET: Final = Data[str]("password-secret")
PASSWORD_KEYS: Final = Data[list[str]]("password-keys")


def database(shop: Shop) -> component.Component:
    """Return the database component of a shop.

    Args:
        shop: The owner.
    """
    return (
        component.Builder("database", owner=shop.key, condition_type=CONDITION)
        .with_resource(password(shop), read_only=True, block_on_absence=True)
        .with_resource(service(shop))
        .with_resource(connection(shop))
        .with_resource(server(shop))
        .with_grace_period(timedelta(minutes=10))
        .suspend(shop.spec.suspended)
        .build()
    )


def password(shop: Shop) -> secret.Builder:
    """Return the read-only Secret that the user creates."""
    return (
        secret.Builder({"metadata": {"name": shop.spec.password_secret}})
        .extract_into(PASSWORD_SECRET, _name)
        .extract_into(PASSWORD_KEYS, lambda live: sorted(live.data or {}))
    )


def service(shop: Shop) -> service_kind.Builder:
    """Return the Service of the database."""
    base = {
        "metadata": {"name": shop.name_of(Part.DATABASE)},
        "spec": {"ports": [{"name": "postgres", "port": PORT}]},
    }
    return service_kind.Builder(base).extract_into(HOST, _host)


def connection(shop: Shop) -> configmap.Builder:
    """Return the ConfigMap with the connection data of the database."""

    def mutate(m: configmap.Mutator) -> None:
        @m.edit_data
        def _(data: ConfigMapDataEditor) -> None:
            data.ensure_entry(HOST_ENTRY, HOST.require())
            data.ensure_entry(SECRET_ENTRY, PASSWORD_SECRET.require())

    base = {"metadata": {"name": shop.name_of(Part.DATABASE)}}
    mutation = configmap.Mutation("connection", mutate)
    return configmap.Builder(base).with_data_guard(HOST, PASSWORD_SECRET).with_mutation(mutation)


def server(shop: Shop) -> statefulset.Builder:
    """Return the StatefulSet of the database; its baseline is for the newest version of the product."""
    name = shop.name_of(Part.DATABASE)
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
        "metadata": {"name": name},
        "spec": {
            "replicas": 1,
            "serviceName": name,
            "template": {"spec": {"containers": [container]}},
            "volumeClaimTemplates": [claim],
        },
    }
    return (
        statefulset.Builder(base)
        .with_data_guard(PASSWORD_KEYS)
        .with_guard(_password_is_there)
        .with_mutation(few_connections(shop.spec.version))
    )


def few_connections(version: str) -> statefulset.Mutation:
    """Return the mutation that allows fewer connections before 2.0, where the application uses a connection pool."""

    def mutate(m: statefulset.Mutator) -> None:
        @m.edit_containers(container_named("postgres"))
        def _(postgres: ContainerEditor) -> None:
            postgres.remove_arg("--max_connections=200")
            postgres.ensure_arg("--max_connections=100")

    return statefulset.Mutation("few-connections", mutate, feature=VersionGate(version, "< 2.0"))


def _password_is_there(_base: V1StatefulSet) -> StatusReport[GuardStatus]:
    """Block until the Secret contains the password: without that key no pod would start."""
    if PASSWORD_KEY in PASSWORD_KEYS.require():
        return StatusReport(GuardStatus.UNBLOCKED)
    return StatusReport(GuardStatus.BLOCKED, f'Waiting for a Secret with the key "{PASSWORD_KEY}"')


def _name(live: V1Secret) -> str:
    return (live.metadata.name if live.metadata else None) or ""


def _host(live: V1Service) -> str:
    metadata = live.metadata
    return f"{metadata.name}.{metadata.namespace}.svc" if metadata else ""
