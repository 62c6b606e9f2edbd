"""Our own kind has the fields of autoscaling/v2, and its settings."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from ocf.controllers.hpa.crd import definition
from ocf.controllers.hpa.modes import OWN
from ocf.errors import InvalidError
from ocf.objects import Manifest
from ocf_server import EmbeddedCluster
from tests.support import eventually

if TYPE_CHECKING:
    from ocf.cluster.client import ApiServerCluster
    from ocf.testing.plugin import Envtest

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


async def test_the_minimum_is_one_by_default(defined: EmbeddedCluster) -> None:
    spec = {field: value for field, value in WHOLE["spec"].items() if field != "minReplicas"}
    assert (await defined.create({**WHOLE, "spec": spec}, field_manager="user"))["spec"]["minReplicas"] == 1


DOWN_TO_ZERO = {"minReplicas": 0, "metrics": WHOLE["spec"]["metrics"][:3]}
INVALID = [
    pytest.param({"minReplicas": 10}, "spec.maxReplicas", id="a maximum below the minimum"),
    pytest.param({"minReplicas": 0, "maxReplicas": 0}, "spec.maxReplicas", id="no maximum"),
    pytest.param({"minReplicas": -1}, "spec.minReplicas", id="a negative minimum"),
    pytest.param(DOWN_TO_ZERO, "spec.metrics: Forbidden: must specify at least one Object", id="zero without a metric"),
    pytest.param({"scaleTargetRef": {"kind": "", "name": "web"}}, "spec.scaleTargetRef", id="no kind of target"),
    pytest.param({"scaleTargetRef": {"kind": "Deployment", "name": ""}}, "spec.scaleTargetRef", id="no name of target"),
    pytest.param({"settings": {"tolerance": "-0.1"}}, "spec.settings.tolerance", id="a negative tolerance"),
    pytest.param({"settings": {"tolerance": -1}}, "spec.settings.tolerance", id="a negative tolerance, a number"),
    pytest.param({"settings": {"scaleUpLimitFactor": "0.9"}}, "spec.settings.scaleUpLimitFactor", id="factor below 1"),
    pytest.param(
        {"behavior": {"scaleUp": {"tolerance": "-50m"}}}, "spec.behavior.scaleUp.tolerance", id="tolerance of growing"
    ),
    pytest.param(
        {"behavior": {"scaleDown": {"tolerance": "-1n"}}},
        "spec.behavior.scaleDown.tolerance",
        id="tolerance of shrinking",
    ),
]


@pytest.mark.parametrize(("change", "problem"), INVALID)
async def test_the_server_rejects_what_the_controller_could_not_run(
    defined: EmbeddedCluster, change: Manifest, problem: str
) -> None:
    with pytest.raises(InvalidError, match=problem):
        await defined.create({**WHOLE, "spec": {**WHOLE["spec"], **change}}, field_manager="user")


async def test_the_real_server_takes_the_definition_and_rejects_the_same(
    envtest: Envtest, envtest_cluster: ApiServerCluster
) -> None:
    await asyncio.to_thread(envtest.plane.install_crds, definition())
    whole = {**WHOLE, "metadata": {"name": "web", "namespace": envtest.namespace}}
    for case in INVALID:
        change, problem = case.values
        assert isinstance(change, dict)
        with pytest.raises(InvalidError, match=str(problem)):
            await envtest_cluster.create({**whole, "spec": {**whole["spec"], **change}}, field_manager="user")
    stored = await envtest_cluster.create(whole, field_manager="user")
    assert stored["spec"] == WHOLE["spec"]
    # kubectl finds the kinds of a category in its cache of discovery, which only this command renews.
    named = ("api-resources", "--categories=all", "--output=name")
    await eventually(
        lambda: asyncio.to_thread(envtest.kubectl, *named), lambda printed: "horizontalautoscalers." in printed
    )
    listed = await asyncio.to_thread(envtest.kubectl, "get", "all", "-o", "name")
    assert "horizontalautoscaler.autoscaling.ocf.dev/web" in listed.split()


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
