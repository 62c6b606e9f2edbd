"""Invariants of every history of a whole cluster."""

from __future__ import annotations

from typing import Any, Final

import pytest

from ocf.objects import Manifest
from tests.controllers.change_history import Change
from tests.controllers.nodegroup.whole_cluster.history import API, EVICTED, violations

READY: Final = {"type": "Ready", "status": "True"}
TARGET: Final = {"type": "DisruptionTarget", "status": "True", "reason": EVICTED}
BUDGET: Final = {"minAvailable": 1, "selector": {"matchLabels": {"app": "web"}}}


def stored(version: int, kind: str, name: str, *, deleted: bool = False, **fields: Any) -> Change:
    """Return a version of an object; `ending` marks it as being deleted."""
    metadata: Manifest = {"name": name, "namespace": "shop", "uid": name, "resourceVersion": str(version)}
    if fields.pop("ending", False):
        metadata["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    if kind == "Pod":
        metadata["labels"] = {"app": "web"}
    api = API if kind in ("NodeGroup", "VPSieNode") else "v1"
    return Change({"apiVersion": api, "kind": kind, "metadata": metadata, "spec": {}, **fields}, deleted)


def pod(version: int, name: str, *conditions: Manifest, ending: bool = False, node: str = "n1") -> Change:
    return stored(version, "Pod", name, ending=ending, spec={"nodeName": node}, status={"conditions": list(conditions)})


def machine(version: int, name: str, **fields: Any) -> Change:
    return stored(version, "VPSieNode", name, **fields)


GROUP: Final = stored(1, "NodeGroup", "workers", spec={"maxNodes": 1})
TWO_PODS: Final = (
    stored(1, "PodDisruptionBudget", "web", spec=BUDGET),
    pod(2, "web-0", READY),
    pod(3, "web-1", READY),
)


@pytest.mark.parametrize(
    "changes",
    [
        pytest.param((*TWO_PODS, pod(4, "web-0", READY, TARGET, ending=True)), id="an eviction that leaves enough"),
        pytest.param(
            (*TWO_PODS, pod(4, "web-0", ending=True), pod(5, "web-1", ending=True)), id="deletions by other users"
        ),
        pytest.param(
            (machine(1, "n1"), stored(2, "Node", "n1"), stored(3, "Node", "n1", deleted=True)), id="an empty node"
        ),
        pytest.param(
            (GROUP, machine(2, "n1", status={"phase": "Failed"}), machine(3, "n2")), id="a node in place of another"
        ),
    ],
)
def test_histories_without_violations(changes: tuple[Change, ...]) -> None:
    assert violations(reversed(changes)) == []


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        pytest.param(
            (
                *TWO_PODS,
                pod(4, "web-0", READY, TARGET, ending=True),
                pod(5, "web-1", READY, TARGET, ending=True),
            ),
            "5: the eviction of web-1 left 0 healthy pods of 1",
            id="an eviction against a budget",
        ),
        pytest.param(
            (machine(1, "n1"), stored(2, "Node", "n1"), pod(3, "web-0"), stored(4, "Node", "n1", deleted=True)),
            "4: Node n1 was deleted with pod web-0 on it",
            id="a pod lost with its node",
        ),
        pytest.param((stored(1, "Node", "n1"),), "1: Node n1 was created without VPSieNode", id="an unknown node"),
        pytest.param(
            (machine(1, "n1"), stored(2, "Node", "n1"), machine(3, "n1", deleted=True)),
            "3: VPSieNode n1 was removed before its Node",
            id="a leaked node",
        ),
        pytest.param(
            (GROUP, machine(2, "n1"), machine(3, "n2")), "3: VPSieNode n2 is number 2 of 1", id="too many nodes"
        ),
    ],
)
def test_violations_are_named(changes: tuple[Change, ...], problem: str) -> None:
    assert violations(changes) == [problem]


def test_pods_of_a_failed_node_are_lost_with_it() -> None:
    changes = (machine(1, "n1"), stored(2, "Node", "n1"), pod(3, "web-0"), stored(4, "Node", "n1", deleted=True))
    assert violations(changes, failed=["n1"]) == []
