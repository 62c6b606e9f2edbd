"""Our own kind has the fields of autoscaling/v2, and its settings."""

from __future__ import annotations

import pytest

from ocf.controllers.hpa import OWN
from ocf.controllers.hpa.crd import definition
from ocf.embedded import EmbeddedCluster
from ocf.errors import InvalidError
from ocf.objects import Manifest

WHOLE: Manifest = {
    "apiVersion": OWN[0],
    "kind": OWN[1],
    "metadata": {"name": "web", "namespace": "default"},
    "spec": {
        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
        "minReplicas": 2,
        "maxReplicas": 9,
        "metrics": [
            {
                "type": "Resource",
                "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 5}},
            },
            {
                "type": "ContainerResource",
                "containerResource": {
                    "name": "memory",
                    "container": "app",
                    "target": {"type": "AverageValue", "averageValue": "1Gi"},
                },
            },
            {
                "type": "Pods",
                "pods": {"metric": {"name": "r"}, "target": {"type": "AverageValue", "averageValue": "1"}},
            },
            {
                "type": "Object",
                "object": {
                    "metric": {"name": "hits", "selector": {"matchLabels": {"a": "b"}}},
                    "describedObject": {"apiVersion": "v1", "kind": "Service", "name": "web"},
                    "target": {"type": "Value", "value": "10"},
                },
            },
            {"type": "External", "external": {"metric": {"name": "q"}, "target": {"type": "Value", "value": "500m"}}},
        ],
        "behavior": {
            "scaleUp": {
                "stabilizationWindowSeconds": 0,
                "selectPolicy": "Max",
                "tolerance": "50m",
                "policies": [{"type": "Pods", "value": 4, "periodSeconds": 15}],
            }
        },
        "settings": {
            "syncPeriodSeconds": 5,
            "tolerance": "0.05",
            "downscaleStabilizationSeconds": 60,
            "cpuInitializationPeriodSeconds": 90,
            "initialReadinessDelaySeconds": 10,
            "scaleUpLimitFactor": "1.5",
            "scaleUpLimitMinimum": 8,
        },
    },
}


@pytest.fixture
async def defined(cluster: EmbeddedCluster) -> EmbeddedCluster:
    await cluster.create(definition(), field_manager="admin")
    return cluster


async def test_every_field_of_an_autoscaler_is_kept(defined: EmbeddedCluster) -> None:
    stored = await defined.create(WHOLE, field_manager="user")

    assert stored["spec"] == WHOLE["spec"]


@pytest.mark.parametrize(
    ("settings", "field"),
    [
        pytest.param({"syncPeriodSeconds": 0}, "syncPeriodSeconds", id="no period"),
        pytest.param({"syncPeriodSeconds": 3601}, "syncPeriodSeconds", id="too long"),
        pytest.param({"tolerance": "much"}, "tolerance", id="no quantity"),
        pytest.param({"cpuInitializationPeriodSeconds": "1m"}, "cpuInitializationPeriodSeconds", id="no number"),
    ],
)
async def test_the_server_rejects_settings_out_of_range(
    defined: EmbeddedCluster, settings: dict[str, object], field: str
) -> None:
    with pytest.raises(InvalidError, match=f"spec.settings.{field}"):
        await defined.create({**WHOLE, "spec": {**WHOLE["spec"], "settings": settings}}, field_manager="user")
