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

START = Drain(node="n1", started=NOW, cordoned=True)
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
        pytest.param(
            step(blocked=Blocked("protected", "no")), DrainPhase.UNCORDON, [ActionKind.UNCORDON], id="blocked and empty"
        ),
        pytest.param(
            step(replace(START, phase=DrainPhase.WAIT), pods=(a_pod(leaving=True),), blocked=Blocked("unknown", "no")),
            DrainPhase.UNCORDON,
            [ActionKind.UNCORDON],
            id="blocked while pods shut down",
        ),
        pytest.param(
            step(replace(START, phase=DrainPhase.DELETE), blocked=Blocked("protected", "no")),
            DrainPhase.DELETE,
            [ActionKind.DELETE],
            id="blocked too late",
        ),
        pytest.param(
            step(replace(START, cordoned=False), minutes=10, pods=(a_pod(),)), DrainPhase.GAVE_UP, [], id="no own mark"
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


@pytest.mark.parametrize("cordoned", [False, True])
def test_a_drain_notes_its_mark_before_it_is_set(*, cordoned: bool) -> None:
    """A node that is cordoned already was cordoned by another one.

    https://github.com/NVIDIA/k8s-driver-manager/issues/212, https://github.com/SUSE/caasp-salt/pull/338
    """
    found = step(replace(START, cordoned=False), cordoned=cordoned, pods=(a_pod(),))
    assert found.drain.cordoned is not cordoned


def test_a_drain_names_a_pod_and_since_when_it_waits() -> None:
    """https://github.com/aws/karpenter-provider-aws/issues/2829 and #5806 of it: a number of pods is not enough."""
    first = step(pods=(a_pod("a"), a_pod("b"))).drain
    # An eviction may be all that they need.
    assert (first.pod, first.waiting_since) == ("", None)
    # The one that the API server does not let go, as long as it does not.
    refused = {"default/b": "violates the budget"}
    second = step(first, minutes=2, pods=(a_pod("a"), a_pod("b")), refused=refused).drain
    assert (second.pod, second.waiting_since) == ("default/b", NOW + timedelta(minutes=2))
    third = step(second, minutes=3, pods=(a_pod("b"),), refused=refused).drain
    assert (third.pod, third.waiting_since) == ("default/b", NOW + timedelta(minutes=2))
    # Another process does not know the answers.
    assert step(second, minutes=3, pods=(a_pod("b"),)).drain.waiting_since == NOW + timedelta(minutes=2)
    assert third.message == "pod default/b is left: violates the budget"
    # Its eviction was accepted, and it takes its time.
    fourth = step(third, minutes=4, pods=(a_pod("b", leaving=True),)).drain
    assert (fourth.pod, fourth.waiting_since) == ("default/b", NOW + timedelta(minutes=2))
    last = step(fourth, minutes=5).drain
    assert (last.phase, last.pod, last.waiting_since) == (DrainPhase.DELETE, "", None)


def test_a_drain_that_waits_is_the_same_as_long_as_the_answers_are() -> None:
    pods, refused = (a_pod("a"), a_pod("b")), {"default/a": "no", "default/b": "no"}
    first = step(replace(START, pod="default/b", waiting_since=NOW), pods=pods, refused=refused).drain
    assert (first.pod, first.waiting_since) == ("default/b", NOW)
    assert step(first, minutes=2, pods=pods, refused=refused).drain == first


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
