"""The scenarios: what changes between the ticks of a controller.

Each is a generator: what stands before a `yield` has happened before a tick. The autoscaler is changed after the next
one. Ticks are two seconds apart, and a little.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from datetime import timedelta
from typing import Final, TypeAlias

from ocf.controllers.metrics_client import EXTERNAL_METRICS, RESOURCE_METRICS
from ocf.objects import Manifest
from tests.controllers.hpa.comparison.world import World, described, external, pods, resource

__all__ = ["DIFFERENCES", "SCENARIOS", "Scenario"]

Scenario: TypeAlias = Callable[[World], AsyncIterator[None]]
SCENARIOS: Final[dict[str, Scenario]] = {}

INGRESS: Final = {"apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "name": "shop"}
HALF: Final = resource(utilization=50)
QUEUE: Final = external("queue", average="10")


def scenario(steps: Scenario) -> Scenario:
    SCENARIOS[steps.__name__] = steps
    return steps


def policy(kind: str, value: int, seconds: int) -> Manifest:
    return {"type": kind, "value": value, "periodSeconds": seconds}


@scenario
async def utilization_of_a_resource(world: World) -> AsyncIterator[None]:
    """Up, within tolerance, and down again after the controller's own window."""
    await world.workload(3)
    world.use(cpu="400m")
    await world.hpa(HALF)
    yield
    await world.follow()
    world.use(cpu="270m")
    yield
    world.use(cpu="276m")
    yield
    world.use(cpu="100m")
    for _ in range(5):
        yield
        await world.follow()


@scenario
async def average_of_a_resource(world: World) -> AsyncIterator[None]:
    await world.workload(2)
    world.use(memory="700Mi")
    await world.hpa(resource("memory", average="512Mi"))
    yield
    await world.follow()
    world.use(memory="600Mi")
    yield
    world.use(memory="1Gi")
    yield


@scenario
async def utilization_of_a_container(world: World) -> AsyncIterator[None]:
    """Only the named container counts; a pod of which it is not measured is missing."""
    await world.workload(3, sidecar="100m")
    for name in world.running:
        world.use_of(name, {"app": {"cpu": "400m"}, "proxy": {"cpu": "10m"}})
    await world.hpa(resource(container="app", utilization=50), resource(container="proxy", utilization=50))
    yield
    world.use_of("web-0", {"proxy": {"cpu": "10m"}})
    yield
    for name in world.running:
        world.use_of(name, {"app": {"cpu": "260m"}, "proxy": {"cpu": "95m"}})
    yield
    for name in world.running:
        world.use_of(name, {"proxy": {"cpu": "5m"}})
    yield


@scenario
async def average_of_pods(world: World) -> AsyncIterator[None]:
    await world.workload(3)
    world.count("hits", "7500m")
    await world.hpa(pods("hits", "5"))
    yield
    await world.follow()
    world.count("hits", "5200m")
    yield
    world.count("hits", "12", "web-1")
    yield
    world.count("hits", "1")
    yield


@scenario
async def value_of_an_object(world: World) -> AsyncIterator[None]:
    await world.workload(2)
    world.metrics.set_object_metric(world.namespace, INGRESS, "hits", "300")
    await world.hpa(described(INGRESS, "hits", value="100"))
    yield
    await world.follow()
    world.metrics.set_object_metric(world.namespace, INGRESS, "hits", "105")
    yield
    world.metrics.set_object_metric(world.namespace, INGRESS, "hits", "50500m")
    for _ in range(4):
        yield


@scenario
async def average_of_an_object(world: World) -> AsyncIterator[None]:
    """Of a Namespace, which is asked for differently, and with an old version of a kind."""
    await world.workload(2)
    whole = {"apiVersion": "v1", "kind": "Namespace", "name": "any"}
    world.metrics.set_object_metric(world.namespace, whole, "load", "55")
    world.metrics.set_object_metric(world.namespace, INGRESS, "hits", "12")
    old = {**INGRESS, "apiVersion": "networking.k8s.io/v1beta1"}
    await world.hpa(described(whole, "load", average="10"), described(old, "hits", average="10"))
    yield
    await world.follow()
    world.metrics.set_object_metric(world.namespace, INGRESS, "hits", "69")
    yield
    await world.follow()
    yield


@scenario
async def value_of_something_external(world: World) -> AsyncIterator[None]:
    """The sum of all series counts."""
    await world.workload(2)
    world.see("queue", "12", "13")
    await world.hpa(external("queue", value="10"))
    yield
    await world.follow()
    world.see("queue", "5", "5500m")
    yield
    world.see("queue", "-3")
    yield
    world.see("queue", "9P")
    yield


@scenario
async def average_of_something_external(world: World) -> AsyncIterator[None]:
    await world.workload(2)
    world.see("queue", "35", name="mail")
    world.see("queue", "900", name="post")
    await world.hpa(external("queue", selector={"matchLabels": {"name": "mail"}}, average="10"))
    yield
    await world.follow()
    world.see("queue", "42", name="mail")
    yield
    world.see("queue", "61", name="mail")
    yield
    world.see("queue", "0", name="mail")
    for _ in range(4):
        yield


@scenario
async def policies_of_growing(world: World) -> AsyncIterator[None]:
    """The larger of two rates, then the smaller, then none."""
    await world.workload(2)
    world.see("queue", "200")
    rates = [policy("Pods", 1, 3), policy("Percent", 100, 8)]
    await world.hpa(QUEUE, maximum=20, behavior={"scaleUp": {"policies": rates, "selectPolicy": "Max"}})
    yield
    yield
    yield
    world.change_hpa(behavior={"scaleUp": {"policies": rates, "selectPolicy": "Min"}})
    yield
    for _ in range(3):
        yield
    world.change_hpa(behavior={"scaleUp": {"selectPolicy": "Disabled"}})
    yield
    yield


@scenario
async def policies_of_shrinking(world: World) -> AsyncIterator[None]:
    await world.workload(9)
    world.see("queue", "0")
    rates = [policy("Pods", 2, 3), policy("Percent", 50, 7)]
    rules = {"policies": rates, "stabilizationWindowSeconds": 0}
    await world.hpa(QUEUE, behavior={"scaleDown": {**rules, "selectPolicy": "Min"}})
    yield
    yield
    yield
    world.change_hpa(behavior={"scaleDown": {**rules, "selectPolicy": "Disabled"}})
    yield
    yield
    world.change_hpa(behavior={"scaleDown": {**rules, "selectPolicy": "Max"}})
    yield
    yield
    yield


@scenario
async def stabilization_of_growing(world: World) -> AsyncIterator[None]:
    """A peak is passed over; what lasts longer than the window is not."""
    await world.workload(2)
    world.see("queue", "20")
    await world.hpa(QUEUE, behavior={"scaleUp": {"stabilizationWindowSeconds": 5}})
    yield
    world.see("queue", "80")
    yield
    world.see("queue", "20")
    yield
    world.see("queue", "60")
    for _ in range(5):
        yield


@scenario
async def stabilization_of_shrinking(world: World) -> AsyncIterator[None]:
    await world.workload(6)
    world.see("queue", "60")
    await world.hpa(QUEUE, behavior={"scaleDown": {"stabilizationWindowSeconds": 4}})
    yield
    world.see("queue", "20")
    yield
    world.see("queue", "50")
    yield
    world.see("queue", "20")
    for _ in range(4):
        yield


@scenario
async def pods_without_measurements(world: World) -> AsyncIterator[None]:
    """Missing ones count as idle on the way up and as busy on the way down; none at all is a failure."""
    await world.workload(4)
    world.use("web-0", "web-1", cpu="450m")
    await world.hpa(HALF)
    yield
    world.use("web-0", "web-1", cpu="10m")
    yield
    for name in world.running:
        world.metrics.forget_pod(world.namespace, name)
    yield
    world.use(cpu="450m")
    yield


@scenario
async def pods_that_do_not_count(world: World) -> AsyncIterator[None]:
    """Pending, failed, young and leaving pods."""
    await world.workload(2)
    young = timedelta(seconds=60)
    await world.pod("web-2", phase="Pending", ready=None)
    await world.pod("web-3", phase="Failed", ready="False")
    await world.pod("web-4", started=young, ready="False")
    await world.pod("web-5", started=young, turned=timedelta(seconds=5))
    await world.pod("web-6")
    await world.begin_removal("web-6")
    for name in ("web-0", "web-1", "web-3", "web-4", "web-5", "web-6"):
        world.use(name, cpu="450m")
    await world.hpa(HALF)
    yield
    world.use("web-0", "web-1", cpu="50m")
    yield
    world.use("web-5", cpu="450m", age=timedelta())
    yield


@scenario
async def apis_that_are_down(world: World) -> AsyncIterator[None]:
    """With a metric missing a workload may grow, and never shrinks."""
    await world.workload(3)
    world.see("queue", "50")
    world.use(cpu="50m")
    nobody = described({"apiVersion": "example.com/v1", "kind": "Nobody", "name": "web"}, "hits", value="1")
    await world.hpa(HALF, QUEUE, nobody, behavior={"scaleDown": {"stabilizationWindowSeconds": 0}})
    yield
    world.see("queue", "1")
    yield
    world.see("queue")
    yield
    external_path = _queue_path(world)
    world.stub.override(external_path, b"overloaded", status=503)
    world.change_hpa(metrics=[HALF, QUEUE])
    yield
    yield
    refusal = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "NotFound", "code": 404}
    world.stub.override(external_path, json.dumps({**refusal, "message": "no queue here"}).encode(), status=404)
    usage_path = f"/apis/{RESOURCE_METRICS}/v1beta1/namespaces/{world.namespace}/pods"
    world.stub.override(usage_path, b"404 page not found", status=404)
    yield
    world.stub.override(usage_path, None)
    world.change_hpa(metrics=[HALF])
    yield
    yield


@scenario
async def answers_that_are_nonsense(world: World) -> AsyncIterator[None]:
    """A value that is no quantity makes a metric unusable, whatever else there is."""
    await world.workload(3)
    world.see("queue", "30", "many")
    world.use(cpu="50m")
    await world.hpa(HALF, QUEUE, behavior={"scaleDown": {"stabilizationWindowSeconds": 0}})
    yield
    world.see("queue", "30")
    world.use("web-1", cpu="NaN")
    yield
    world.use("web-1", cpu="50m")
    for value in ("5mm", "1.2.3", "1e", "+", "0x10"):
        world.see("queue", value)
        yield
    world.see("queue", "30")
    yield


@scenario
async def minimum_and_maximum(world: World) -> AsyncIterator[None]:
    await world.workload(2)
    world.see("queue", "500")
    await world.hpa(QUEUE, maximum=4, minReplicas=2)
    yield
    yield
    await world.scale(7)
    yield
    world.change_hpa(minReplicas=5, maxReplicas=8)
    yield
    yield
    world.see("queue", "1")
    world.change_hpa(minReplicas=3, behavior={"scaleDown": {"stabilizationWindowSeconds": 0}})
    yield
    yield
    yield
    await world.scale(1)
    yield


@scenario
async def to_zero_and_back(world: World) -> AsyncIterator[None]:
    await world.workload(2)
    world.see("queue", "0")
    await world.hpa(QUEUE, minReplicas=0, behavior={"scaleDown": {"stabilizationWindowSeconds": 0}})
    yield
    await world.follow()
    yield
    world.see("queue", "25")
    yield
    await world.follow()
    yield


@scenario
async def paused_by_a_person(world: World) -> AsyncIterator[None]:
    """What a person took to zero stays there."""
    await world.workload(2)
    world.see("queue", "30")
    await world.hpa(QUEUE, minReplicas=0)
    yield
    await world.scale(0)
    yield
    yield
    await world.scale(1)
    yield


@scenario
async def from_zero_to_a_minimum(world: World) -> AsyncIterator[None]:
    """The minimum was raised while the workload was at zero."""
    await world.workload(1)
    world.see("queue", "0")
    await world.hpa(QUEUE, minReplicas=0, behavior={"scaleDown": {"stabilizationWindowSeconds": 0}})
    yield
    yield
    world.change_hpa(minReplicas=3)
    yield
    yield
    yield


@scenario
async def tolerance_of_one_autoscaler(world: World) -> AsyncIterator[None]:
    await world.workload(4)
    world.use(cpu="280m")
    rules = {"scaleUp": {"tolerance": "0.2"}, "scaleDown": {"tolerance": "0.05", "stabilizationWindowSeconds": 0}}
    await world.hpa(HALF, behavior=rules)
    yield
    world.use(cpu="310m")
    yield
    await world.follow()
    world.use(cpu="240m")
    yield
    world.use(cpu="200m")
    yield


@scenario
async def a_target_that_comes_late(world: World) -> AsyncIterator[None]:
    await world.hpa(HALF)
    yield
    await world.workload(2)
    world.use(cpu="450m")
    yield
    yield


@scenario
async def a_target_of_another_version(world: World) -> AsyncIterator[None]:
    """The version of a target does not count; a request that is missing does."""
    await world.workload(1, kind="StatefulSet", cpu=None)
    world.use(cpu="450m")
    await world.hpa(HALF, target={"apiVersion": "apps/v9"})
    yield
    world.change_hpa(metrics=[resource(average="100m")])
    yield
    yield


@scenario
async def a_target_of_a_kind_of_our_own(world: World) -> AsyncIterator[None]:
    await world.custom("Rollout", 2)
    world.use(cpu="450m")
    await world.hpa(HALF)
    yield
    yield
    await world.change_selector("")
    yield
    for selector in ("app in (", "app!=other", "size>3", "app==web"):
        await world.change_selector(selector)
        yield


@scenario
async def a_target_without_a_scale(world: World) -> AsyncIterator[None]:
    await world.custom("Plain", 2)
    await world.hpa(HALF)
    yield


@scenario
async def selectors_that_overlap(world: World) -> AsyncIterator[None]:
    """Two autoscalers count the same pods, so neither decides."""
    await world.workload(2)
    world.see("queue", "35")
    await world.rival("rival", QUEUE)
    await world.hpa(QUEUE)
    yield
    yield


@scenario
async def a_metric_of_pods_that_nobody_measures(world: World) -> AsyncIterator[None]:
    """Then all pods are measured, and one of them less than nothing."""
    await world.workload(3)
    await world.hpa(pods("hits", "5"))
    yield
    world.count("hits", "7500m")
    yield
    world.count("hits", "-4", "web-1")
    yield


@scenario
async def a_value_beyond_64_bits(world: World) -> AsyncIterator[None]:
    await world.workload(2)
    world.see("queue", "9E")
    await world.hpa(external("queue", value="10"))
    yield


@scenario
async def a_measurement_without_a_value(world: World) -> AsyncIterator[None]:
    await world.workload(3)
    world.stub.override(_queue_path(world), _series({"metricName": "queue", "timestamp": "2026-01-31T12:00:00Z"}))
    await world.hpa(QUEUE, behavior={"scaleDown": {"stabilizationWindowSeconds": 0}})
    yield


@scenario
async def a_list_that_goes_on_elsewhere(world: World) -> AsyncIterator[None]:
    await world.workload(3)
    entry = {"metricName": "queue", "timestamp": "2026-01-31T12:00:00Z", "value": "1"}
    world.stub.override(_queue_path(world), _series(entry, more="more"))
    await world.hpa(QUEUE, behavior={"scaleDown": {"stabilizationWindowSeconds": 0}})
    yield


def _queue_path(world: World) -> str:
    return f"/apis/{EXTERNAL_METRICS}/v1beta1/namespaces/{world.namespace}/queue"


def _series(entry: Manifest, *, more: str = "") -> bytes:
    about = {"kind": "ExternalMetricValueList", "apiVersion": f"{EXTERNAL_METRICS}/v1beta1"}
    return json.dumps({**about, "metadata": {"continue": more} if more else {}, "items": [entry]}).encode()


DIFFERENCES: Final = {
    # In thousandths it fits no 64-bit integer. The controller takes it for 0 and shrinks; we take it for the largest.
    ("a_value_beyond_64_bits", 0),
    # The controller shrinks on what it does not know; we do not.
    ("a_measurement_without_a_value", 0),
    ("a_list_that_goes_on_elsewhere", 0),
}
"""The rounds in which we differ from the controller, and mean to."""
