"""The application: a Deployment that finds the database by the data of another component, and its autoscaler.

It waits for the database's condition, and reads the database's ConfigMap for what it has to know. The two components
share names, not values: a data cell is a key whose value belongs to one component's pass, so the application fills the
cells anew from what is in the cluster.
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

    from ocf.concepts import Resource

__all__ = ["CONDITION", "application"]

CONDITION: Final = "ApplicationReady"


def application(shop: Shop) -> component.Component:
    """Describe the application of a shop.

    Args:
        shop: The owner.
    """
    return (
        component.Builder("application", condition_type=CONDITION)
        .with_prerequisite(depends_on(database.CONDITION))
        .with_resource(connection(shop), read_only=True, block_on_absence=True)
        .with_resource(service(shop))
        .with_resource(server(shop))
        .with_resource(autoscaler(shop))
        .with_resource(
            # The shop is open whether or not somebody measures it, and the exporter needs nothing of the others.
            exporter(shop),
            gated_by=wanted(shop),
            participation=Participation.AUXILIARY,
            independent=True,
        )
        .with_grace_period(timedelta(minutes=5))
        .suspend(shop.spec.suspended)
        .build()
    )


def connection(shop: Shop) -> Resource:
    """Describe the database's ConfigMap, which this component only reads."""
    base = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": shop.named(Part.DATABASE)}
    return (
        configmap.Builder(base)
        .extract_into(database.HOST, lambda live: _entry(live, database.HOST_ENTRY))
        .extract_into(database.PASSWORD_SECRET, lambda live: _entry(live, database.SECRET_ENTRY))
        .build()
    )


def service(shop: Shop) -> Resource:
    """Describe the name under which the application is found."""
    base = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": shop.named(Part.WEB),
        "spec": {
            "selector": shop.labels(Part.WEB),
            "ports": [
                {"name": "http", "port": 80, "targetPort": "http"},
                {"name": "metrics", "port": METRICS_PORT, "targetPort": "metrics"},  # leads nowhere without exporter
            ],
        },
    }
    return service_kind.Builder(base).build()


def server(shop: Shop) -> deployment.Resource:
    """Describe the servers, as the newest version of the product wants them; the autoscaler says how many."""
    labels = shop.labels(Part.WEB)
    container = {
        "name": "web",
        "image": f"registry.example.com/shop/web:{shop.spec.version}",
        "ports": [{"name": "http", "containerPort": 8080}],
        "readinessProbe": {"httpGet": {"path": "/ready", "port": "http"}},
        "resources": {"requests": {"cpu": "250m", "memory": "256Mi"}},
    }
    base = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": shop.named(Part.WEB),
        "spec": {
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}},
        },
    }
    version = shop.spec.version
    return (
        deployment.Builder(base)
        .with_data_guard(database.HOST, database.PASSWORD_SECRET)
        .with_mutation(
            database_access(),
            database_url(version),  # after `database_access`, of which it takes back the half
            health_path(version),
            metrics(shop),
        )
        .build()
    )


def database_access() -> deployment.Mutation:
    """Tell the servers where the database is, and let Kubernetes hand them the password."""

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
    """Tell 1.x the same in one variable, the only one it reads.

    Kubernetes puts the password in, as it is: one that a URL cannot hold needs 2.0.
    """

    def mutate(m: deployment.Mutator) -> None:
        @m.edit_containers(container_named("web"))
        def _(web: ContainerEditor) -> None:
            web.remove_env_var("DB_HOST", "DB_PORT")
            url = f"postgres://postgres:$(DB_PASSWORD)@{database.HOST.require()}:{database.PORT}/postgres"
            web.ensure_env_var(V1EnvVar(name="DATABASE_URL", value=url))

    return deployment.Mutation("database-url", mutate, feature=VersionGate(version, "< 2.0"))


def health_path(version: str) -> deployment.Mutation:
    """Ask versions before 2.3 at `/`: they know no `/ready`."""

    def mutate(m: deployment.Mutator) -> None:
        @m.edit_containers(container_named("web"))
        def _(web: ContainerEditor) -> None:
            probe = web.raw.readiness_probe
            if probe and probe.http_get:
                probe.http_get.path = "/"

    return deployment.Mutation("health-path", mutate, feature=VersionGate(version, "< 2.3"))


def autoscaler(shop: Shop) -> hpa.Resource:
    """Describe how many servers there are: as many as their processors and their memory need."""
    base = {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": shop.named(Part.WEB),
        "spec": {
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": shop.named(Part.WEB)["name"]},
            "minReplicas": shop.spec.scaling.min_replicas,
            "maxReplicas": shop.spec.scaling.max_replicas,
            "metrics": [_utilization("cpu", 70), _utilization("memory", 80)],
        },
    }
    return hpa.Builder(base).with_mutation(cpu_only(shop.spec.version)).build()


def cpu_only(version: str) -> hpa.Mutation:
    """Scale versions before 2.3 by their processors alone: their memory only ever grows."""

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
