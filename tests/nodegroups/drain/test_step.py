"""Drains, step by step."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ocf.nodegroups.drain import ActionKind, Drain, DrainPhase, DrainStep, ObservedNode, next_step
from ocf.nodegroups.rules import Blocked
from ocf.nodegroups.snapshot import SnapshotPod
from tests.nodegroups.groups import NOW
from tests.nodegroups.manifests import pod

START = Drain(node="n1", started=NOW)
CORDONED = ObservedNode(cordoned=True)


def a_pod(name: str = "p", *, leaving: bool = False, **parts: Any) -> SnapshotPod:
    manifest = pod(name, on="n1", **parts)
    if leaving:
        manifest["metadata"]["deletionTimestamp"] = "2026-01-31T12:00:00Z"
    return SnapshotPod.of(manifest)


def step(drain: Drain = START, minutes: float = 1, **observed: Any) -> DrainStep:
    seen = replace(CORDONED, **observed)
    return next_step(drain, seen, NOW + timedelta(minutes=minutes))


GIVING_UP = replace(START, phase=DrainPhase.UNCORDON, message="why")


@pytest.mark.parametrize(
    ("found", "phase", "actions"),
    [
        pytest.param(step(cordoned=False, pods=(a_pod(),)), DrainPhase.CORDON, [ActionKind.CORDON], id="cordon first"),
        pytest.param(step(pods=(a_pod(),)), DrainPhase.EVICT, [ActionKind.EVICT], id="then evict"),
        pytest.param(step(pods=(a_pod(leaving=True),)), DrainPhase.WAIT, [], id="wait until pods are gone"),
        pytest.param(step(), DrainPhase.DELETE, [ActionKind.DELETE], id="delete the empty node"),
        pytest.param(
            step(pods=(a_pod(owner="DaemonSet"),)), DrainPhase.DELETE, [ActionKind.DELETE], id="DaemonSet pods stay"
        ),
        pytest.param(
            step(pods=(a_pod(owner="DaemonSet", leaving=True),)),
            DrainPhase.DELETE,
            [ActionKind.DELETE],
            id="even leaving ones",
        ),
        pytest.param(step(exists=False), DrainPhase.DONE, [], id="gone"),
        pytest.param(
            step(replace(START, phase=DrainPhase.DELETE), minutes=99, pods=(a_pod(),)),
            DrainPhase.DELETE,
            [ActionKind.DELETE],
            id="no way back from deleting",
        ),
        pytest.param(step(minutes=10, pods=(a_pod(),)), DrainPhase.UNCORDON, [ActionKind.UNCORDON], id="deadline"),
        pytest.param(
            step(minutes=10, pods=(a_pod(leaving=True),)),
            DrainPhase.UNCORDON,
            [ActionKind.UNCORDON],
            id="deadline while waiting",
        ),
        pytest.param(
            step(minutes=9.9, pods=(a_pod(),)), DrainPhase.EVICT, [ActionKind.EVICT], id="before the deadline"
        ),
        pytest.param(step(minutes=10), DrainPhase.DELETE, [ActionKind.DELETE], id="an empty node is deleted even late"),
        pytest.param(
            step(pods=(a_pod(),), blocked=Blocked("pdb", "no")),
            DrainPhase.UNCORDON,
            [ActionKind.UNCORDON],
            id="blocked",
        ),
        pytest.param(step(GIVING_UP, cordoned=True), DrainPhase.UNCORDON, [ActionKind.UNCORDON], id="uncordon again"),
        pytest.param(step(GIVING_UP, cordoned=False), DrainPhase.GAVE_UP, [], id="gave up"),
        pytest.param(
            step(replace(START, phase=DrainPhase.GAVE_UP), pods=(a_pod(),)), DrainPhase.GAVE_UP, [], id="ended"
        ),
    ],
)
def test_the_next_step(found: DrainStep, phase: DrainPhase, actions: list[ActionKind]) -> None:
    assert found.drain.phase is phase
    assert [action.kind for action in found.actions] == actions


def test_pods_of_low_priority_are_evicted_first() -> None:
    found = step(pods=(a_pod("a", priority=5), a_pod("b"), a_pod("c")))
    assert found.actions[0].pods == ("default/b", "default/c", "default/a")


def test_giving_up_says_why() -> None:
    refused = {"default/q": "Cannot evict pod as it would violate the pod's disruption budget."}
    found = step(minutes=11, pods=(a_pod(), a_pod("q")), refused=refused)
    assert found.drain.message == (
        "the deadline is over; 2 pods are left, among them default/q: "
        "Cannot evict pod as it would violate the pod's disruption budget."
    )


def test_a_clock_that_is_set_back_starts_the_deadline_again() -> None:
    found = step(minutes=-600, pods=(a_pod(),))
    assert found.drain.started == NOW - timedelta(minutes=600)


@given(st.lists(st.sampled_from(["evicted", "refused", "nothing"]), max_size=30))
def test_a_drain_ends_and_deletes_only_an_empty_node(answers: list[str]) -> None:
    """Whatever the API server answers, the node is deleted without pods, or schedulable in the end."""
    drain, cordoned, pods, exists = START, False, [a_pod("a"), a_pod("b")], True
    for number, answer in enumerate([*answers, *["nothing"] * 20]):
        observed = ObservedNode(exists=exists, cordoned=cordoned, pods=tuple(pods))
        taken = next_step(drain, observed, NOW + timedelta(minutes=number))
        drain = taken.drain
        for action in taken.actions:
            if action.kind is ActionKind.DELETE:
                assert not pods
                exists = False
            cordoned = {ActionKind.CORDON: True, ActionKind.UNCORDON: False}.get(action.kind, cordoned)
            if action.kind is ActionKind.EVICT and answer == "evicted":
                pods.pop()
    assert drain.ended
    assert exists is (drain.phase is DrainPhase.GAVE_UP)
    assert not (exists and cordoned)
