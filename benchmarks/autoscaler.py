"""The autoscaler of the suites: two metrics, a slow scale-down, a label with the version."""

from typing import Any

from kubernetes.client import (
    V1ObjectMeta,
    V2CrossVersionObjectReference,
    V2HorizontalPodAutoscaler,
    V2HorizontalPodAutoscalerBehavior,
    V2HorizontalPodAutoscalerSpec,
    V2HPAScalingRules,
    V2MetricSpec,
    V2MetricTarget,
    V2ResourceMetricSource,
)

from ocf.autoscaling import metrics
from ocf.editors import HPASpecEditor, ObjectMetaEditor
from ocf.feature import VersionGate
from ocf.primitives import hpa

__all__ = ["NAMESPACE", "VERSION", "base", "modelled", "mutation", "plain", "resource"]

NAMESPACE = "shop"
VERSION = "2.3.1"


def base(target: str) -> V2HorizontalPodAutoscaler:
    """Return the baseline of the autoscaler of a Deployment."""
    return V2HorizontalPodAutoscaler(
        metadata=V1ObjectMeta(name=target, namespace=NAMESPACE),
        spec=V2HorizontalPodAutoscalerSpec(
            scale_target_ref=V2CrossVersionObjectReference(api_version="apps/v1", kind="Deployment", name=target),
            min_replicas=2,
            max_replicas=10,
        ),
    )


def mutation(version: str) -> hpa.Mutation:
    """Return the mutation that every version gets."""

    def mutate(m: hpa.Mutator) -> None:
        @m.edit_hpa_spec
        def _(spec: HPASpecEditor) -> None:
            spec.set_min_replicas(2)
            spec.set_max_replicas(10)
            spec.ensure_metric(metrics.cpu(average_utilization=70))
            spec.ensure_metric(metrics.memory(average_utilization=80))
            spec.set_behavior(_slowly_down())

        @m.edit_object_metadata
        def _(meta: ObjectMetaEditor) -> None:
            meta.ensure_label("app.kubernetes.io/version", version)

    return hpa.Mutation("autoscaling-config", mutate, feature=VersionGate(version))


def resource(target: str) -> hpa.Resource:
    """Build the autoscaler of a Deployment, as an operator does in every reconcile."""
    return hpa.Builder(base(target)).with_mutation(mutation(VERSION)).build()


def modelled(target: str) -> V2HorizontalPodAutoscaler:
    """Return what `resource` renders, made of the client's models by hand."""
    labels = {"app.kubernetes.io/version": VERSION}
    return V2HorizontalPodAutoscaler(
        api_version="autoscaling/v2",
        kind="HorizontalPodAutoscaler",
        metadata=V1ObjectMeta(name=target, namespace=NAMESPACE, labels=labels),
        spec=V2HorizontalPodAutoscalerSpec(
            scale_target_ref=V2CrossVersionObjectReference(api_version="apps/v1", kind="Deployment", name=target),
            min_replicas=2,
            max_replicas=10,
            metrics=[_utilization("cpu", 70), _utilization("memory", 80)],
            behavior=_slowly_down(),
        ),
    )


def plain(target: str) -> dict[str, Any]:
    """Return what `resource` renders, written down by hand."""
    return {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": target, "namespace": NAMESPACE, "labels": {"app.kubernetes.io/version": VERSION}},
        "spec": {
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": target},
            "minReplicas": 2,
            "maxReplicas": 10,
            "metrics": [_plain_utilization("cpu", 70), _plain_utilization("memory", 80)],
            "behavior": {"scaleDown": {"stabilizationWindowSeconds": 300}},
        },
    }


def _slowly_down() -> V2HorizontalPodAutoscalerBehavior:
    return V2HorizontalPodAutoscalerBehavior(scale_down=V2HPAScalingRules(stabilization_window_seconds=300))


def _utilization(name: str, percent: int) -> V2MetricSpec:
    target = V2MetricTarget(type="Utilization", average_utilization=percent)
    return V2MetricSpec(type="Resource", resource=V2ResourceMetricSource(name=name, target=target))


def _plain_utilization(name: str, percent: int) -> dict[str, Any]:
    target = {"type": "Utilization", "averageUtilization": percent}
    return {"type": "Resource", "resource": {"name": name, "target": target}}
