"""Scenarios: the changes of the cluster between the ticks of a controller; see `registry` for their form."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Final

from ocf.controllers.metrics_client import RESOURCE_METRICS
from ocf.controllers.metrics_client.client import EXTERNAL_METRICS
from ocf.objects import Manifest
from tests.controllers.hpa.comparison import edge_scenarios
from tests.controllers.hpa.comparison.env import Env, described, external, pods, resource
from tests.controllers.hpa.comparison.registry import HALF, INGRESS, QUEUE, SCENARIOS, policy, scenario

__all__ = ["DIFFERENCES", "SCENARIOS"]

del edge_scenarios  # imported for its scenarios, which are registered


@scenario
async def utilization_of_a_resource(env: Env) -> AsyncIterator[None]:
    """Up, within tolerance, and down again after the controller's own window."""
    await env.workload(3)
    env.use(cpu="400m")
    await env.hpa(HALF)
    yield
    await env.follow()
    env.use(cpu="270m")
    yield
    env.use(cpu="276m")
    yield
    env.use(cpu="100m")
    for _ in range(5):
        yield
        await env.follow()


@scenario
async def average_of_a_resource(env: Env) -> AsyncIterator[None]:
    await env.workload(2)
    env.use(memory="700Mi")
    await env.hpa(resource("memory", average="512Mi"))
    yield
    await env.follow()
    env.use(memory="600Mi")
    yield
    env.use(memory="1Gi")
    yield


@scenario
async def utilization_of_a_container(env: Env) -> AsyncIterator[None]:
    """Only the named container counts; a pod without its usage is missing."""
    await env.workload(3, sidecar="100m")
    for name in env.running:
        env.use_of(name, {"app": {"cpu": "400m"}, "proxy": {"cpu": "10m"}})
    await env.hpa(resource(container="app", utilization=50), resource(container="proxy", utilization=50))
    yield
    env.use_of("web-0", {"proxy": {"cpu": "10m"}})
    yield
    for name in env.running:
        env.use_of(name, {"app": {"cpu": "260m"}, "proxy": {"cpu": "95m"}})
    yield
    for name in env.running:
        env.use_of(name, {"proxy": {"cpu": "5m"}})
    yield


@scenario
async def average_of_pods(env: Env) -> AsyncIterator[None]:
    await env.workload(3)
    env.count("hits", "7500m")
    await env.hpa(pods("hits", "5"))
    yield
    await env.follow()
    env.count("hits", "5200m")
    yield
    env.count("hits", "12", "web-1")
    yield
    env.count("hits", "1")
    yield


@scenario
async def value_of_an_object(env: Env) -> AsyncIterator[None]:
    await env.workload(2)
    env.metrics.set_object_metric(env.namespace, INGRESS, "hits", "300")
    await env.hpa(described(INGRESS, "hits", value="100"))
    yield
    await env.follow()
    env.metrics.set_object_metric(env.namespace, INGRESS, "hits", "105")
    yield
    env.metrics.set_object_metric(env.namespace, INGRESS, "hits", "50500m")
    for _ in range(4):
        yield


@scenario
async def average_of_an_object(env: Env) -> AsyncIterator[None]:
    """A metric of a Namespace, which has another path, and an old version of a kind."""
    await env.workload(2)
    whole = {"apiVersion": "v1", "kind": "Namespace", "name": "any"}
    env.metrics.set_object_metric(env.namespace, whole, "load", "55")
    env.metrics.set_object_metric(env.namespace, INGRESS, "hits", "12")
    old = {**INGRESS, "apiVersion": "networking.k8s.io/v1beta1"}
    await env.hpa(described(whole, "load", average="10"), described(old, "hits", average="10"))
    yield
    await env.follow()
    env.metrics.set_object_metric(env.namespace, INGRESS, "hits", "69")
    yield
    await env.follow()
    yield


@scenario
async def value_of_something_external(env: Env) -> AsyncIterator[None]:
    """The sum of all series counts."""
    await env.workload(2)
    env.see("queue", "12", "13")
    await env.hpa(external("queue", value="10"))
    yield
    await env.follow()
    env.see("queue", "5", "5500m")
    yield
    env.see("queue", "-3")
    yield
    env.see("queue", "9P")
    yield


@scenario
async def average_of_something_external(env: Env) -> AsyncIterator[None]:
    await env.workload(2)
    env.see("queue", "35", name="mail")
    env.see("queue", "900", name="post")
    await env.hpa(external("queue", selector={"matchLabels": {"name": "mail"}}, average="10"))
    yield
    await env.follow()
    env.see("queue", "42", name="mail")
    yield
    env.see("queue", "61", name="mail")
    yield
    env.see("queue", "0", name="mail")
    for _ in range(4):
        yield


@scenario
async def policies_of_growing(env: Env) -> AsyncIterator[None]:
    """The larger of two rates, then the smaller, then none."""
    await env.workload(2)
    env.see("queue", "200")
    rates = [policy("Pods", 1, 3), policy("Percent", 100, 8)]
    await env.hpa(QUEUE, maximum=20, behavior={"scaleUp": {"policies": rates, "selectPolicy": "Max"}})
    yield
    yield
    yield
    env.change_hpa(behavior={"scaleUp": {"policies": rates, "selectPolicy": "Min"}})
    yield
    for _ in range(3):
        yield
    env.change_hpa(behavior={"scaleUp": {"selectPolicy": "Disabled"}})
    yield
    yield


@scenario
async def policies_of_shrinking(env: Env) -> AsyncIterator[None]:
    await env.workload(9)
    env.see("queue", "0")
    rates = [policy("Pods", 2, 3), policy("Percent", 50, 7)]
    rules = {"policies": rates, "stabilizationWindowSeconds": 0}
    await env.hpa(QUEUE, behavior={"scaleDown": {**rules, "selectPolicy": "Min"}})
    yield
    yield
    yield
    env.change_hpa(behavior={"scaleDown": {**rules, "selectPolicy": "Disabled"}})
    yield
    yield
    env.change_hpa(behavior={"scaleDown": {**rules, "selectPolicy": "Max"}})
    yield
    yield
    yield


@scenario
async def stabilization_of_growing(env: Env) -> AsyncIterator[None]:
    """A peak is ignored unless it lasts longer than the window."""
    await env.workload(2)
    env.see("queue", "20")
    await env.hpa(QUEUE, behavior={"scaleUp": {"stabilizationWindowSeconds": 5}})
    yield
    env.see("queue", "80")
    yield
    env.see("queue", "20")
    yield
    env.see("queue", "60")
    for _ in range(5):
        yield


@scenario
async def stabilization_of_shrinking(env: Env) -> AsyncIterator[None]:
    await env.workload(6)
    env.see("queue", "60")
    await env.hpa(QUEUE, behavior={"scaleDown": {"stabilizationWindowSeconds": 4}})
    yield
    env.see("queue", "20")
    yield
    env.see("queue", "50")
    yield
    env.see("queue", "20")
    for _ in range(4):
        yield


@scenario
async def pods_without_measurements(env: Env) -> AsyncIterator[None]:
    """Missing pods count as idle when scaling up and as busy when scaling down; no values at all are a failure."""
    await env.workload(4)
    env.use("web-0", "web-1", cpu="450m")
    await env.hpa(HALF)
    yield
    env.use("web-0", "web-1", cpu="10m")
    yield
    for name in env.running:
        env.metrics.forget_pod(env.namespace, name)
    yield
    env.use(cpu="450m")
    yield


@scenario
async def pods_that_do_not_count(env: Env) -> AsyncIterator[None]:
    """Pending, failed, new and terminating pods."""
    await env.workload(2)
    young = timedelta(seconds=60)
    await env.pod("web-2", phase="Pending", ready=None)
    await env.pod("web-3", phase="Failed", ready="False")
    await env.pod("web-4", started=young, ready="False")
    await env.pod("web-5", started=young, turned=timedelta(seconds=5))
    await env.pod("web-6")
    await env.begin_removal("web-6")
    for name in ("web-0", "web-1", "web-3", "web-4", "web-5", "web-6"):
        env.use(name, cpu="450m")
    await env.hpa(HALF)
    yield
    env.use("web-0", "web-1", cpu="50m")
    yield
    env.use("web-5", cpu="450m", age=timedelta())
    yield


@scenario
async def apis_that_are_down(env: Env) -> AsyncIterator[None]:
    """With a metric missing a workload is only scaled up."""
    await env.workload(3)
    env.see("queue", "50")
    env.use(cpu="50m")
    unknown_kind = described({"apiVersion": "example.com/v1", "kind": "Nobody", "name": "web"}, "hits", value="1")
    await env.hpa(HALF, QUEUE, unknown_kind, behavior={"scaleDown": {"stabilizationWindowSeconds": 0}})
    yield
    env.see("queue", "1")
    yield
    env.see("queue")
    yield
    external_path = _queue_path(env)
    env.stub.override(external_path, b"overloaded", status=503)
    env.change_hpa(metrics=[HALF, QUEUE])
    yield
    yield
    refusal = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "NotFound", "code": 404}
    env.stub.override(external_path, json.dumps({**refusal, "message": "no queue here"}).encode(), status=404)
    usage_path = f"/apis/{RESOURCE_METRICS}/v1beta1/namespaces/{env.namespace}/pods"
    env.stub.override(usage_path, b"404 page not found", status=404)
    yield
    env.stub.override(usage_path, None)
    env.change_hpa(metrics=[HALF])
    yield
    yield


@scenario
async def answers_that_are_nonsense(env: Env) -> AsyncIterator[None]:
    """A value that is not a quantity makes the whole metric unavailable."""
    await env.workload(3)
    env.see("queue", "30", "many")
    env.use(cpu="50m")
    await env.hpa(HALF, QUEUE, behavior={"scaleDown": {"stabilizationWindowSeconds": 0}})
    yield
    env.see("queue", "30")
    env.use("web-1", cpu="NaN")
    yield
    env.use("web-1", cpu="50m")
    for value in ("5mm", "1.2.3", "1e", "+", "0x10"):
        env.see("queue", value)
        yield
    env.see("queue", "30")
    yield


@scenario
async def minimum_and_maximum(env: Env) -> AsyncIterator[None]:
    await env.workload(2)
    env.see("queue", "500")
    await env.hpa(QUEUE, maximum=4, minReplicas=2)
    yield
    yield
    await env.scale(7)
    yield
    env.change_hpa(minReplicas=5, maxReplicas=8)
    yield
    yield
    env.see("queue", "1")
    env.change_hpa(minReplicas=3, behavior={"scaleDown": {"stabilizationWindowSeconds": 0}})
    yield
    yield
    yield
    await env.scale(1)
    yield


@scenario
async def to_zero_and_back(env: Env) -> AsyncIterator[None]:
    await env.workload(2)
    env.see("queue", "0")
    await env.hpa(QUEUE, minReplicas=0, behavior={"scaleDown": {"stabilizationWindowSeconds": 0}})
    yield
    await env.follow()
    yield
    env.see("queue", "25")
    yield
    await env.follow()
    yield


@scenario
async def paused_by_a_person(env: Env) -> AsyncIterator[None]:
    """A workload that a user scaled to zero stays there."""
    await env.workload(2)
    env.see("queue", "30")
    await env.hpa(QUEUE, minReplicas=0)
    yield
    await env.scale(0)
    yield
    yield
    await env.scale(1)
    yield


@scenario
async def from_zero_to_a_minimum(env: Env) -> AsyncIterator[None]:
    """The minimum was raised while the workload was at zero."""
    await env.workload(1)
    env.see("queue", "0")
    await env.hpa(QUEUE, minReplicas=0, behavior={"scaleDown": {"stabilizationWindowSeconds": 0}})
    yield
    yield
    env.change_hpa(minReplicas=3)
    yield
    yield
    yield


@scenario
async def tolerance_of_one_autoscaler(env: Env) -> AsyncIterator[None]:
    await env.workload(4)
    env.use(cpu="280m")
    rules = {"scaleUp": {"tolerance": "0.2"}, "scaleDown": {"tolerance": "0.05", "stabilizationWindowSeconds": 0}}
    await env.hpa(HALF, behavior=rules)
    yield
    env.use(cpu="310m")
    yield
    await env.follow()
    env.use(cpu="240m")
    yield
    env.use(cpu="200m")
    yield


@scenario
async def a_target_that_comes_late(env: Env) -> AsyncIterator[None]:
    await env.hpa(HALF)
    yield
    await env.workload(2)
    env.use(cpu="450m")
    yield
    yield


@scenario
async def a_target_of_another_version(env: Env) -> AsyncIterator[None]:
    """The version of a target does not count; a missing resource request does."""
    await env.workload(1, kind="StatefulSet", cpu=None)
    env.use(cpu="450m")
    await env.hpa(HALF, target={"apiVersion": "apps/v9"})
    yield
    env.change_hpa(metrics=[resource(average="100m")])
    yield
    yield


@scenario
async def a_target_of_a_kind_of_our_own(env: Env) -> AsyncIterator[None]:
    await env.custom("Rollout", 2)
    env.use(cpu="450m")
    await env.hpa(HALF)
    yield
    yield
    await env.change_selector("")
    yield
    for selector in ("app in (", "app!=other", "size>3", "app==web"):
        await env.change_selector(selector)
        yield


@scenario
async def a_target_without_a_scale(env: Env) -> AsyncIterator[None]:
    await env.custom("Plain", 2)
    await env.hpa(HALF)
    yield


@scenario
async def selectors_that_overlap(env: Env) -> AsyncIterator[None]:
    """Two autoscalers count the same pods, so neither decides."""
    await env.workload(2)
    env.see("queue", "35")
    await env.rival("rival", QUEUE)
    await env.hpa(QUEUE)
    yield
    yield


@scenario
async def a_metric_of_pods_that_has_no_values(env: Env) -> AsyncIterator[None]:
    """Then all pods have a value, and one of them is negative."""
    await env.workload(3)
    await env.hpa(pods("hits", "5"))
    yield
    env.count("hits", "7500m")
    yield
    env.count("hits", "-4", "web-1")
    yield


@scenario
async def a_value_beyond_64_bits(env: Env) -> AsyncIterator[None]:
    await env.workload(2)
    env.see("queue", "9E")
    await env.hpa(external("queue", value="10"))
    yield


@scenario
async def a_measurement_without_a_value(env: Env) -> AsyncIterator[None]:
    await env.workload(3)
    env.stub.override(_queue_path(env), _series({"metricName": "queue", "timestamp": "2026-01-31T12:00:00Z"}))
    await env.hpa(QUEUE, behavior={"scaleDown": {"stabilizationWindowSeconds": 0}})
    yield


@scenario
async def a_list_that_goes_on_elsewhere(env: Env) -> AsyncIterator[None]:
    await env.workload(3)
    entry = {"metricName": "queue", "timestamp": "2026-01-31T12:00:00Z", "value": "1"}
    env.stub.override(_queue_path(env), _series(entry, more="more"))
    await env.hpa(QUEUE, behavior={"scaleDown": {"stabilizationWindowSeconds": 0}})
    yield


def _queue_path(env: Env) -> str:
    return f"/apis/{EXTERNAL_METRICS}/v1beta1/namespaces/{env.namespace}/queue"


def _series(entry: Manifest, *, more: str = "") -> bytes:
    about = {"kind": "ExternalMetricValueList", "apiVersion": f"{EXTERNAL_METRICS}/v1beta1"}
    return json.dumps({**about, "metadata": {"continue": more} if more else {}, "items": [entry]}).encode()


DIFFERENCES: Final = {
    # In thousandths it fits no 64-bit integer. The controller takes it for 0 and shrinks; we take it for the largest.
    ("a_value_beyond_64_bits", 0),
    # The controller shrinks on what it does not know; we do not.
    ("a_measurement_without_a_value", 0),
    ("a_list_that_goes_on_elsewhere", 0),
    # The controller adds a sample below zero to the others and shrinks; for us that pod is not measured.
    ("a_metric_of_pods_that_has_no_values", 2),
}
"""The ticks in which we differ from the controller intentionally."""
