"""The application: a Deployment that uses the connection data of the database component, and its autoscaler.

The component depends on the database's condition and reads the connection data from the database's ConfigMap. The two
components share data cells, not values: a cell is a key whose value belongs to one reconcile of one component, so the
application fills the cells from the cluster.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

from kubernetes.client import V1EnvVar, V1EnvVarSource, V1SecretKeySelector

from examples.web import database
from examples.web.exporter import METRICS_PORT, exporter, metrics, wanted
from examples.web.shop import Part, Shop
from ocf import component
from ocf.component import Participation, depends_on
from ocf.editors import ContainerEditor, HPASpecEditor, container_named
from ocf.feature import VersionGate
from ocf.primitives import configmap, deployment, hpa
from ocf.primitives import service as service_kind

if TYPE_CHECKING:
    from kubernetes.client import V1ConfigMap

__all__ = ["CONDITION", "application"]

CONDITION: Final = "ApplicationReady"


def application(shop: Shop) -> component.Component:
    """Return the application component of a shop.

    Args:
        shop: The owner.
    """
    return (
        component.Builder("application", owner=shop.key, condition_type=CONDITION)
        .with_prerequisite(depends_on(database.CONDITION))
        .with_resource(connection(shop), read_only=True, block_on_absence=True)
        .with_resource(service(shop))
        .with_resource(server(shop))
        .with_resource(autoscaler(shop))
        .with_resource(
            # The shop works without the exporter, and the exporter does not depend on the other resources.
            exporter(shop),
            gated_by=wanted(shop),
            participation=Participation.AUXILIARY,
            independent=True,
        )
        .with_grace_period(timedelta(minutes=5))
        .suspend(shop.spec.suspended)
        .build()
    )


def connection(shop: Shop) -> configmap.Builder:
    """Return the read-only ConfigMap of the database."""
    return (
        configmap.Builder({"metadata": {"name": shop.name_of(Part.DATABASE)}})
        .extract_into(database.HOST, lambda live: _entry(live, database.HOST_ENTRY))
        .extract_into(database.PASSWORD_SECRET, lambda live: _entry(live, database.SECRET_ENTRY))
    )


def service(shop: Shop) -> service_kind.Builder:
    """Return the Service of the application."""
    base = {
        "metadata": {"name": shop.name_of(Part.WEB)},
        "spec": {
            "ports": [
                {"name": "http", "port": 80, "targetPort": "http"},
                {"name": "metrics", "port": METRICS_PORT, "targetPort": "metrics"},  # unused without the exporter
            ],
        },
    }
    return service_kind.Builder(base)


def server(shop: Shop) -> deployment.Builder:
    """Return the Deployment; its baseline is for the newest version, and the autoscaler sets the replica count."""
    container = {
        "name": "web",
        "image": f"registry.example.com/shop/web:{shop.spec.version}",
        "ports": [{"name": "http", "containerPort": 8080}],
        "readinessProbe": {"httpGet": {"path": "/ready", "port": "http"}},
        "resources": {"requests": {"cpu": "250m", "memory": "256Mi"}},
    }
    base = {
        "metadata": {"name": shop.name_of(Part.WEB)},
        "spec": {"template": {"spec": {"containers": [container]}}},
    }
    version = shop.spec.version
    return (
        deployment.Builder(base)
        .with_data_guard(database.HOST, database.PASSWORD_SECRET)
        .with_mutation(
            database_access(),
            database_url(version),  # after `database_access`: it removes two of its variables
            health_path(version),
            metrics(shop),
        )
    )


def database_access() -> deployment.Mutation:
    """Return the mutation that sets the host and port of the database, and the password from the Secret."""

    def mutate(m: deployment.Mutator) -> None:
        @m.edit_containers(container_named("web"))
        def _(web: ContainerEditor) -> None:
            secret = V1SecretKeySelector(name=database.PASSWORD_SECRET.require(), key=database.PASSWORD_KEY)
            web.ensure_env_var(
                V1EnvVar(name="DB_PASSWORD", value_from=V1EnvVarSource(secret_key_ref=secret)),
                V1EnvVar(name="DB_HOST", value=database.HOST.require()),
                V1EnvVar(name="DB_PORT", value=str(database.PORT)),
            )

    return deployment.Mutation("database-access", mutate)


def database_url(version: str) -> deployment.Mutation:
    """Return the mutation for 1.x, which reads the connection data from a single variable.

    Kubernetes inserts the password without URL encoding: a password with reserved characters needs 2.0.
    """

    def mutate(m: deployment.Mutator) -> None:
        @m.edit_containers(container_named("web"))
        def _(web: ContainerEditor) -> None:
            web.remove_env_var("DB_HOST", "DB_PORT")
            url = f"postgres://postgres:$(DB_PASSWORD)@{database.HOST.require()}:{database.PORT}/postgres"
            web.ensure_env_var(V1EnvVar(name="DATABASE_URL", value=url))

    return deployment.Mutation("database-url", mutate, feature=VersionGate(version, "< 2.0"))


def health_path(version: str) -> deployment.Mutation:
    """Return the mutation that probes versions before 2.3 at `/`: they do not serve `/ready`."""

    def mutate(m: deployment.Mutator) -> None:
        @m.edit_containers(container_named("web"))
        def _(web: ContainerEditor) -> None:
            probe = web.raw.readiness_probe
            if probe and probe.http_get:
                probe.http_get.path = "/"

    return deployment.Mutation("health-path", mutate, feature=VersionGate(version, "< 2.3"))


def autoscaler(shop: Shop) -> hpa.Builder:
    """Return the autoscaler, which scales by cpu and memory utilization."""
    name = shop.name_of(Part.WEB)
    base = {
        "metadata": {"name": name},
        "spec": {
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": name},
            "minReplicas": shop.spec.scaling.min_replicas,
            "maxReplicas": shop.spec.scaling.max_replicas,
            "metrics": [_utilization("cpu", 70), _utilization("memory", 80)],
        },
    }
    return hpa.Builder(base).with_mutation(cpu_only(shop.spec.version))


def cpu_only(version: str) -> hpa.Mutation:
    """Return the mutation that scales versions before 2.3 by cpu only: their memory usage never decreases."""

    def mutate(m: hpa.Mutator) -> None:
        @m.edit_hpa_spec
        def _(spec: HPASpecEditor) -> None:
            spec.remove_metric("Resource", "memory")

    return hpa.Mutation("cpu-only", mutate, feature=VersionGate(version, "< 2.3"))


def _utilization(resource: str, percent: int) -> dict[str, Any]:
    target = {"type": "Utilization", "averageUtilization": percent}
    return {"type": "Resource", "resource": {"name": resource, "target": target}}


def _entry(live: V1ConfigMap, name: str) -> str:
    return (live.data or {})[name]
