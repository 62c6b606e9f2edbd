"""Remedies of rules that keep a node: each of them, on the objects that it is about, lets the node go."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import pytest

from ocf.controllers.nodegroup.observation import view_of
from ocf.controllers.nodegroup.plan import make_plan
from ocf.controllers.nodegroup.plan_report import REMEDIES, outcome_text
from ocf.nodegroups import Catalog
from ocf.nodegroups.rules import RULES
from ocf.nodegroups.scale_down import CandidateOutcome, Verdict
from ocf.objects import format_time
from tests.controllers.nodegroup.conftest import API, SMALL
from tests.nodegroups.manifests import budget, pod

NOW: Final = datetime(2026, 1, 31, 12, tzinfo=UTC)
Objects = dict[str, Any]
Change = Callable[[Objects], object]


def node(name: str, cpu: str, **metadata: Any) -> Objects:
    allocatable = {"cpu": cpu, "memory": "8Gi", "pods": "110"}
    conditions = [{"type": "Ready", "status": "True"}]
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {}, "annotations": {}, **metadata},
        "spec": {},
        "status": {"allocatable": allocatable, "conditions": conditions},
    }


def minutes(number: int) -> str:
    return format_time(NOW + timedelta(minutes=number))


def objects() -> Objects:
    """Return a group whose only node, n1, is not needed: its pod fits on n2."""
    spec = {"minNodes": 0, "maxNodes": 5, "datacenterID": "fra", "offeringIDs": ["small"]}
    status = {"unneeded": [{"name": "n1", "since": minutes(-20)}]}
    metadata = {"name": "workers", "namespace": "default", "uid": "1"}
    machine = {"nodeGroupName": "workers", "instanceType": "small", "datacenterID": "fra"}
    running = {"phase": "Ready", "nodeName": "n1", "readyAt": minutes(-60)}
    named = {"name": "n1", "namespace": "default", "uid": "2"}
    return {
        "group": {"apiVersion": API, "kind": "NodeGroup", "metadata": metadata, "spec": spec, "status": status},
        "machine": {"apiVersion": API, "kind": "VPSieNode", "metadata": named, "spec": machine, "status": running},
        "n1": node("n1", "2", labels={"autoscaling.ocf.dev/node-group": "default.workers"}),
        "n2": node("n2", "2"),
        "pod": {"apiVersion": "v1", "kind": "Pod", **pod("web", cpu="500m", on="n1")},
        "type": SMALL,
    }


def outcome(found: Objects) -> CandidateOutcome:
    """Return what happens to n1."""
    manifests = [each for name, each in found.items() if name != "type"]
    plan = make_plan(view_of(manifests), Catalog.of([found["type"]]), NOW)
    return next(each for each in plan.decision.scale_down.outcomes if each.node == "n1")


def put(path: str, value: Any) -> Change:
    """Return the change that sets a field; None removes it."""
    first, *above, last = path.split("|")

    def change(found: Objects) -> None:
        target = found[first]
        for step in above:
            target = target[int(step)] if step.isdecimal() else target.setdefault(step, {})
        if value is None:
            del target[last]
        else:
            target[last] = value

    return change


def drop(name: str) -> Change:
    return lambda found: found.pop(name)


def add(name: str, value: object) -> Change:
    return lambda found: found.update({name: value})


def budgeted(name: str, allowed: int) -> Objects:
    return {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", **budget(name, allowed=allowed)}


def several(*changes: Change) -> Change:
    return lambda found: [change(found) for change in changes]


CPU: Final = "pod|spec|containers|0|resources|requests|cpu"
ANNOTATION: Final = "pod|metadata|annotations|"
SAFE: Final = put(f"{ANNOTATION}ocf.dev/safe-to-evict", "true")
OWNER: Final = "pod|metadata|ownerReferences"
CASES: Final[list[tuple[str, Change, list[Change]]]] = [
    ("unknown", put(CPU, "much"), [put(CPU, "500m")]),
    ("pdb", add("b", budgeted("b", 0)), [add("b", budgeted("b", 1))]),
    ("pdb", several(add("b", budgeted("b", 1)), add("c", budgeted("c", 1))), [drop("c")]),
    (
        "local_storage",
        put("pod|spec|volumes", [{"name": "cache", "emptyDir": {}}]),
        [SAFE, put("pod|spec|volumes", None)],
    ),
    (
        "system_pods",
        several(put("pod|metadata|namespace", "kube-system"), put("pod|metadata|name", "etcd-0")),
        [SAFE, put("pod|spec|nodeName", "n2")],
    ),
    ("capacity", put("n2|status|allocatable|cpu", "400m"), [put("n2|status|allocatable|cpu", "4"), put(CPU, "300m")]),
    (
        "affinity",
        put("pod|spec|nodeSelector", {"disk": "ssd"}),
        [put("pod|spec|nodeSelector", None), put("n2|metadata|labels|disk", "ssd")],
    ),
    ("min_nodes", put("group|spec|minNodes", 1), [put("group|spec|minNodes", 0)]),
    (
        "cooldown",
        put("group|status|lastScaleUpTime", minutes(-1)),
        [put("group|spec|scaleDownCooldown", "0s"), put("group|status|lastScaleUpTime", minutes(-10))],
    ),
    (
        "protected",
        put("n1|metadata|annotations|ocf.dev/protected", "true"),
        [put("n1|metadata|annotations|ocf.dev/protected", None)],
    ),
    (
        "protected",
        put("n1|metadata|labels|ocf.dev/scale-down-disabled", "true"),
        [put("n1|metadata|labels|ocf.dev/scale-down-disabled", None)],
    ),
    (
        "safe_to_evict",
        put(f"{ANNOTATION}ocf.dev/safe-to-evict", "false"),
        [put(f"{ANNOTATION}ocf.dev/safe-to-evict", None)],
    ),
    ("bare_pod", put(OWNER, None), [SAFE, put(OWNER, objects()["pod"]["metadata"]["ownerReferences"])]),
    (
        "do_not_disrupt",
        put(f"{ANNOTATION}karpenter.sh/do-not-disrupt", "true"),
        [put(f"{ANNOTATION}karpenter.sh/do-not-disrupt", None)],
    ),
    (
        "do_not_disrupt",
        put("n1|metadata|annotations|ocf.dev/do-not-disrupt", "true"),
        [put("n1|metadata|annotations|ocf.dev/do-not-disrupt", None)],
    ),
    ("undeletable", add("type", replace(SMALL, undeletable="it is paused")), [add("type", SMALL)]),
    ("unmanaged", drop("machine"), [put("n1|metadata|labels", {}), drop("n1")]),
    (
        "drain",
        put("machine|status|drainBackoff", {"failures": 1, "until": minutes(1), "message": "the deadline is over"}),
        [
            put("machine|status|drainBackoff", {"failures": 1, "until": minutes(0), "message": "the deadline is over"}),
            put("machine|metadata|deletionTimestamp", minutes(0)),
        ],
    ),
]


def test_without_a_rule_against_it_the_node_goes() -> None:
    assert outcome(objects()).verdict is Verdict.REMOVE


@pytest.mark.parametrize(
    ("reason", "change", "remedies"), CASES, ids=[f"{i}-{case[0]}" for i, case in enumerate(CASES)]
)
def test_each_remedy_lets_the_node_go(reason: str, change: Change, remedies: list[Change]) -> None:
    blocked = objects()
    change(blocked)
    kept = outcome(blocked)
    assert (kept.verdict, kept.reason) == (Verdict.BLOCKED, reason)
    assert outcome_text(kept).endswith(f"; to let it go: {REMEDIES[reason]}")
    for remedy in remedies:
        found = deepcopy(blocked)
        remedy(found)
        # A node that is gone, or that belongs to no group any more, is kept by no rule either.
        assert "n1" not in found or outcome(found).verdict is not Verdict.BLOCKED, outcome(found)


def test_a_pause_between_drains_that_another_clock_wrote_keeps_no_node() -> None:
    found = objects()
    put("machine|status|drainBackoff", {"failures": 9, "until": minutes(241)})(found)
    assert outcome(found).verdict is Verdict.REMOVE
    put("machine|status|drainBackoff", {"failures": 9, "until": minutes(240)})(found)
    assert outcome(found).verdict is Verdict.BLOCKED


def test_each_rule_has_a_remedy_that_was_tried() -> None:
    others = {"capacity", "bare_pod", "undeletable", "unmanaged", "drain"}
    assert {reason for reason, _, _ in CASES} == {rule.name for rule in RULES} | others == {*REMEDIES}
