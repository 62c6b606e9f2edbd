"""A component with an autoscaler becomes healthy beside the built-in controllers and the HPA controller."""

import asyncio
from datetime import timedelta
from typing import Any, Final

from ocf import component
from ocf.controllers.hpa import HpaController, HpaControllerOptions, Mode
from ocf.objects import Manifest, ObjectKey
from ocf.objects.conditions import find_condition
from ocf.primitives import deployment, hpa
from ocf.runtime.operator import ManagerOptions, Operator, OwnerType, running
from ocf.testing import LoopClock, run_in_virtual_time
from ocf.testing.fake_metrics import FakeMetricsClient
from ocf_server import ControllerSettings, CustomKind, EmbeddedCluster

HOME: Final = {"name": "web", "namespace": "default"}
LABELS: Final = {"app": "web"}
DEPLOYMENT: Final = ObjectKey("apps/v1", "Deployment", "web", "default")
OWNER: Final = ObjectKey("example.com/v1", "Shop", "web", "default")


def parts(_shop: Manifest) -> list[component.Component]:
    container = {"name": "main", "image": "web:1", "resources": {"requests": {"cpu": "100m"}}}
    template = {"metadata": {"labels": LABELS}, "spec": {"containers": [container]}}
    web = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": HOME,
        "spec": {"replicas": 1, "selector": {"matchLabels": LABELS}, "template": template},
    }
    metric = {"metric": {"name": "queue_length"}, "target": {"type": "AverageValue", "averageValue": "10"}}
    scaler = {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": HOME,
        "spec": {
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
            "maxReplicas": 9,
            "metrics": [{"type": "External", "external": metric}],
        },
    }
    builder = component.Builder("web", condition_type="WebReady")
    builder = builder.with_resource(deployment.Builder(web).build()).with_resource(hpa.Builder(scaler).build())
    return [builder.build()]


async def scaled_up() -> tuple[list[int], list[str]]:
    clock = LoopClock()
    cluster = EmbeddedCluster(kinds=[CustomKind("example.com", "v1", "Shop")], now=clock.now)
    metrics = FakeMetricsClient(clock)
    operator: Operator[Any] = Operator(name="shops", owner=OwnerType("example.com/v1", "Shop"), components=parts)
    autoscalers = HpaController(cluster, metrics, options=HpaControllerOptions(mode=Mode.REPLACE), clock=clock)
    ready, reasons = [], []

    async def after(load: str) -> None:
        metrics.set_external("default", "queue_length", load)
        await asyncio.sleep(120)
        ready.append((await cluster.get(DEPLOYMENT))["status"].get("readyReplicas", 0))
        condition = find_condition((await cluster.get(OWNER))["status"]["conditions"], "WebReady")
        reasons.append(condition["reason"] if condition else "")

    settings = ControllerSettings(ready_after=timedelta(seconds=3))
    options = ManagerOptions(listen=None, clock=clock)
    async with cluster.controllers(settings).running(), running(cluster, operator, options=options):
        task = asyncio.create_task(autoscalers.run())
        await cluster.create({"apiVersion": "example.com/v1", "kind": "Shop", "metadata": HOME}, field_manager="user")
        await after("10")
        await after("45")
        await after("90")
        autoscalers.stop()
        await task
    return ready, reasons


def test_the_autoscaler_scales_and_the_component_becomes_healthy_again() -> None:
    assert run_in_virtual_time(scaled_up()) == ([1, 5, 9], ["Healthy"] * 3)
