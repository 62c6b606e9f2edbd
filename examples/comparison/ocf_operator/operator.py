"""The objects of a site, their component, and the declaration of the operator."""

from typing import Final

from kubernetes.client import V1Lifecycle, V1LifecycleHandler, V1SleepAction

from examples.comparison.ocf_operator.model import Site
from ocf.autoscaling import metrics
from ocf.component import Builder, Component, Participation
from ocf.editors import ContainerEditor, PodSpecEditor, container_named
from ocf.feature import BooleanGate, VersionGate
from ocf.primitives import configmap, deployment, hpa, service
from ocf.runtime.operator import Operator, OwnerType

__all__ = ["components", "operator"]

_CONTAINER: Final = "server"


def components(site: Site) -> Component:
    """Return the component of a site: its objects in their order, with one condition for all."""
    scaled = BooleanGate(site.spec.max_replicas is not None)
    return (
        Builder("site", owner=site.key)
        .with_resource(configmap.Builder({"data": {"index.html": f"{site.spec.greeting}\n"}}))
        .with_resource(_server(site))
        # The server is ready without metrics, too, which an autoscaler needs to be operational.
        .with_resource(_autoscaler(site), gated_by=scaled, participation=Participation.AUXILIARY)
        .with_resource(service.Builder({"spec": {"ports": [{"name": "http", "port": 80, "targetPort": "http"}]}}))
        .suspend(site.spec.suspended)
        .build()
    )


def _server(site: Site) -> deployment.Builder:
    """Return the Deployment: a baseline, and the features of the version."""
    container = {
        "name": _CONTAINER,
        "image": "docker.io/nginxinc/nginx-unprivileged:1.29",
        "ports": [{"name": "http", "containerPort": 8080}],
        "readinessProbe": {"httpGet": {"path": "/", "port": "http"}},
        "resources": {"requests": {"cpu": "50m", "memory": "32Mi"}, "limits": {"memory": "64Mi"}},
        "volumeMounts": [{"name": "page", "mountPath": "/usr/share/nginx/html", "readOnly": True}],
    }
    pod = {"containers": [container], "volumes": [{"name": "page", "configMap": {"name": site.metadata.name}}]}
    base = {"spec": {"replicas": site.spec.replicas, "template": {"spec": pod}}}
    return deployment.Builder(base).with_mutation(_graceful_shutdown(site.spec.version))


def _graceful_shutdown(version: str) -> deployment.Mutation:
    """Return the mutation that delays shutdown, which the product supports since 1.1.0."""

    def mutate(m: deployment.Mutator) -> None:
        @m.edit_pod_spec
        def _(pod: PodSpecEditor) -> None:
            pod.raw.termination_grace_period_seconds = 45

        @m.edit_containers(container_named(_CONTAINER))
        def _(container: ContainerEditor) -> None:
            container.raw.lifecycle = V1Lifecycle(pre_stop=V1LifecycleHandler(sleep=V1SleepAction(seconds=10)))

    return deployment.Mutation("graceful-shutdown", mutate, feature=VersionGate(version, ">= 1.1.0"))


def _autoscaler(site: Site) -> hpa.Builder:
    """Return the HorizontalPodAutoscaler."""
    spec = {
        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": site.metadata.name},
        "minReplicas": site.spec.replicas,
        "maxReplicas": site.spec.max_replicas or site.spec.replicas,
        "metrics": [metrics.cpu(average_utilization=70)],
    }
    return hpa.Builder({"spec": spec})


operator: Final = Operator(name="sites", owner=OwnerType.of(Site), components=components)
