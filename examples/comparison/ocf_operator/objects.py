"""The objects of a site: functions of values, without a cluster."""

from typing import Any, Final

from kubernetes.client import V1Lifecycle, V1LifecycleHandler, V1SleepAction

from examples.comparison.ocf_operator.model import Site
from ocf.autoscaling import metrics
from ocf.editors import ContainerEditor, PodSpecEditor, container_named
from ocf.feature import VersionGate
from ocf.objects import Manifest
from ocf.primitives import configmap, deployment, hpa, service

__all__ = ["autoscaler", "entrance", "page", "server"]

_IMAGE: Final = "docker.io/nginxinc/nginx-unprivileged:1.29"
_PORT: Final = 8080
_CONTAINER: Final = "server"
_GRACE_PERIOD_SECONDS: Final = 45
_DELAY_SECONDS: Final = 10
_CPU_UTILIZATION: Final = 70


def _labels(site: Site) -> dict[str, str]:
    return {"app.kubernetes.io/name": "site", "app.kubernetes.io/instance": site.metadata.name}


def _manifest(site: Site, api_version: str, kind: str, **content: Any) -> Manifest:
    metadata = {"name": site.metadata.name, "namespace": site.metadata.namespace, "labels": _labels(site)}
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, **content}


def page(site: Site) -> configmap.Resource:
    """Return the ConfigMap with the text."""
    return configmap.Builder(_manifest(site, "v1", "ConfigMap", data={"index.html": f"{site.spec.greeting}\n"})).build()


def server(site: Site) -> deployment.Resource:
    """Return the Deployment: a baseline, and the features of the version."""
    container = {
        "name": _CONTAINER,
        "image": _IMAGE,
        "ports": [{"name": "http", "containerPort": _PORT}],
        "readinessProbe": {"httpGet": {"path": "/", "port": "http"}},
        "resources": {"requests": {"cpu": "50m", "memory": "32Mi"}, "limits": {"memory": "64Mi"}},
        "volumeMounts": [{"name": "page", "mountPath": "/usr/share/nginx/html", "readOnly": True}],
    }
    pod = {"containers": [container], "volumes": [{"name": "page", "configMap": {"name": site.metadata.name}}]}
    spec = {
        "replicas": site.spec.replicas,
        "selector": {"matchLabels": _labels(site)},
        "template": {"metadata": {"labels": _labels(site)}, "spec": pod},
    }
    base = _manifest(site, "apps/v1", "Deployment", spec=spec)
    return deployment.Builder(base).with_mutation(_graceful_shutdown(site.spec.version)).build()


def _graceful_shutdown(version: str) -> deployment.Mutation:
    """Return the mutation that delays shutdown, which the product supports since 1.1.0."""

    def mutate(m: deployment.Mutator) -> None:
        @m.edit_pod_spec
        def _(pod: PodSpecEditor) -> None:
            pod.raw.termination_grace_period_seconds = _GRACE_PERIOD_SECONDS

        @m.edit_containers(container_named(_CONTAINER))
        def _(container: ContainerEditor) -> None:
            wait = V1LifecycleHandler(sleep=V1SleepAction(seconds=_DELAY_SECONDS))
            container.raw.lifecycle = V1Lifecycle(pre_stop=wait)

    return deployment.Mutation("graceful-shutdown", mutate, feature=VersionGate(version, ">= 1.1.0"))


def autoscaler(site: Site) -> hpa.Resource:
    """Return the HorizontalPodAutoscaler."""
    spec = {
        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": site.metadata.name},
        "minReplicas": site.spec.replicas,
        "maxReplicas": site.spec.max_replicas or site.spec.replicas,
        "metrics": [metrics.cpu(average_utilization=_CPU_UTILIZATION)],
    }
    return hpa.Builder(_manifest(site, "autoscaling/v2", "HorizontalPodAutoscaler", spec=spec)).build()


def entrance(site: Site) -> service.Resource:
    """Return the Service."""
    spec = {"selector": _labels(site), "ports": [{"name": "http", "port": 80, "targetPort": "http"}]}
    return service.Builder(_manifest(site, "v1", "Service", spec=spec)).build()
