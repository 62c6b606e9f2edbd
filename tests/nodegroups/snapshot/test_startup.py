"""A node whose startup taints are not removed yet is not ready: the scheduler places no pods there."""

from typing import Any

import pytest

from ocf.nodegroups import ClusterSnapshot, Node
from ocf.nodegroups.snapshot.nodes import STARTUP_TAINTS


def node(*taints: str) -> dict[str, Any]:
    return {
        "metadata": {"name": "n1"},
        "spec": {"taints": [{"key": key, "effect": "NoSchedule"} for key in taints]},
        "status": {"conditions": [{"type": "Ready", "status": "True"}]},
    }


@pytest.mark.parametrize("key", sorted(STARTUP_TAINTS))
def test_a_startup_taint_keeps_a_node_from_being_ready(key: str) -> None:
    assert not Node.of(node("dedicated", key)).ready


def test_other_taints_do_not() -> None:
    assert Node.of(node("dedicated")).ready


def test_a_starting_node_still_counts_as_ordered() -> None:
    """Otherwise another node would be ordered for the pods that it is to take."""
    ordered = Node(name="n1")
    starting = ClusterSnapshot.of(nodes=[node("node.kubernetes.io/not-ready")], in_flight=[ordered]).nodes["n1"]
    assert (starting.in_flight, starting.taints) == (True, ())
    joined = ClusterSnapshot.of(nodes=[node()], in_flight=[ordered]).nodes["n1"]
    assert not joined.in_flight
