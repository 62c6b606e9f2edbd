"""The metrics of the controller."""

import pytest
from prometheus_client import CollectorRegistry, generate_latest

from ocf.controllers.nodegroup.metrics import DRAIN_BUCKETS, PROVISIONING_BUCKETS, GroupSize, NodeGroupMonitor

OWN = {"namespace": "default", "nodegroup": "workers"}


def test_durations_are_counted_in_buckets() -> None:
    monitor = NodeGroupMonitor()
    for seconds in (-5, 10, 10.5, 1e6):
        monitor.observe("node_provisioning_duration_seconds", "default/workers", seconds=seconds)

    def below(bound: str) -> float | None:
        name = "ocf_nodegroup_node_provisioning_duration_seconds_bucket"
        return monitor.registry.get_sample_value(name, {**OWN, "le": bound})

    assert [below(bound) for bound in ("10", "20", "5120", "+Inf")] == [2, 3, 3, 4]
    assert (PROVISIONING_BUCKETS[-1], len(DRAIN_BUCKETS), DRAIN_BUCKETS[0]) == (5120, 12, 1)


def test_gauges_follow_the_groups() -> None:
    monitor = NodeGroupMonitor()
    monitor.set_sizes({"default/workers": GroupSize(desired=3, current=2, ready=1, min=0, max=5)})
    names = ("desired", "current", "ready", "min", "max")
    values = [monitor.registry.get_sample_value(f"ocf_nodegroup_{name}_nodes", OWN) for name in names]
    assert values == [3, 2, 1, 0, 5]
    monitor.set_sizes({})
    assert monitor.registry.get_sample_value("ocf_nodegroup_max_nodes", OWN) is None


def test_all_metrics_of_the_documentation_exist() -> None:
    monitor = NodeGroupMonitor()
    monitor.count("scaling_decisions", "default/workers", "scale_up", "pending_pods")
    monitor.count("scale_down_blocked", "default/workers", "pdb")
    text = generate_latest(monitor.registry).decode()
    assert 'scaling_decisions_total{decision="scale_up",namespace="default",nodegroup="workers"' in text
    assert 'scale_down_blocked_total{namespace="default",nodegroup="workers",reason="pdb"} 1.0' in text


def test_a_registry_takes_one_set_of_metrics() -> None:
    registry = CollectorRegistry()
    NodeGroupMonitor(registry)
    with pytest.raises(ValueError, match="Duplicated"):
        NodeGroupMonitor(registry)
