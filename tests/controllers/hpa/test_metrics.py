"""The metrics have the names, labels and buckets of the built-in controller."""

from __future__ import annotations

import pytest
from prometheus_client import generate_latest

from ocf.controllers.hpa.metrics import HpaMonitor

PREFIX = "horizontal_pod_autoscaler_controller_"


def test_the_families_are_those_of_the_built_in_controller_and_two_more() -> None:
    monitor = HpaMonitor()
    monitor.observe_reconcile("none", "spec", 0.001)
    monitor.observe_metric("scale_up", "none", "Pods", 20)
    monitor.set_desired_replicas("shop", "web", 3)
    monitor.set_state("shop", "web", "running")

    text = generate_latest(monitor.registry).decode()
    names = {line.split()[2] for line in text.splitlines() if line.startswith("# TYPE")}
    assert names == {
        f"{PREFIX}reconciliations_total",
        f"{PREFIX}reconciliation_duration_seconds",
        f"{PREFIX}metric_computation_total",
        f"{PREFIX}metric_computation_duration_seconds",
        f"{PREFIX}num_horizontal_pod_autoscalers",
        f"{PREFIX}desired_replicas",
        "ocf_hpa_controller_autoscalers",
        "ocf_hpa_controller_autoscaler_state",
    }
    assert f'{PREFIX}reconciliation_duration_seconds_bucket{{action="none",error="spec",le="0.001"}} 1.0' in text
    assert f'{PREFIX}metric_computation_duration_seconds_bucket{{action="scale_up",error="none",le="16.384"' in text
    assert f'{PREFIX}desired_replicas{{hpa_name="web",namespace="shop"}} 3.0' in text
    assert 'ocf_hpa_controller_autoscaler_state{hpa_name="web",namespace="shop",state="running"} 1.0' in text
    assert "_created" not in text


@pytest.mark.parametrize(
    ("seconds", "below"),
    [
        pytest.param(0.0005, 15, id="shorter than all"),
        pytest.param(0.002, 14, id="on a bound"),
        pytest.param(17, 0, id="longer than all"),
    ],
)
def test_a_duration_is_in_every_bucket_that_is_not_shorter(seconds: float, below: int) -> None:
    monitor = HpaMonitor()
    monitor.observe_reconcile("none", "none", seconds)

    (family,) = (one for one in monitor.collect() if one.name == f"{PREFIX}reconciliation_duration_seconds")
    buckets = [one.value for one in family.samples if one.name.endswith("_bucket")]
    assert (len(buckets), sum(buckets[:-1]), buckets[-1]) == (16, below, 1)


def test_gauges_of_a_deleted_autoscaler_are_dropped() -> None:
    monitor = HpaMonitor()
    monitor.set_desired_replicas("shop", "web", 3)
    monitor.set_state("shop", "web", "running")
    monitor.forget("shop", "web")

    values = {one.name: one.value for family in monitor.collect() for one in family.samples}
    assert values == {f"{PREFIX}num_horizontal_pod_autoscalers": 0}
