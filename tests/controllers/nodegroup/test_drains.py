"""Drains of nodes: marks of users, pauses between drains, and what a drain shows while it waits."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from ocf.cluster import Subresource
from ocf.controllers.nodegroup.carry_out import GroupWriter
from ocf.controllers.nodegroup.drains import DrainSteps
from ocf.controllers.nodegroup.objects import GroupObject, NodeObject, read_group
from ocf.errors import FieldProblem
from ocf.nodegroups.snapshot import SnapshotPod
from ocf.objects import Manifest, ObjectKey, format_time, parse_time
from tests.controllers.nodegroup.conftest import API, GROUP, Env, run

NODE = "VPSieNode"


async def draining(env: Env, **spec: Any) -> str:
    """Let two nodes come up, one of which is going to be drained; return its name, before its first step."""
    await env.set_up(minNodes=1, offeringIDs=["small"], **spec)
    await env.add_pod("web-0", cpu="900m")
    await env.add_pod("big-0", cpu="1900m")
    await env.tick(5)
    await env.remove_pods("big-0")
    await env.add_pod("web-1", cpu="900m")
    await env.add_pod("web-2", cpu="900m")
    await env.tick()
    await env.remove_pods("web-2")
    for _ in range(60):
        await env.controller.reconcile()
        found = [each for each in await env.objects(NODE) if each["status"]["phase"] == "Draining"]
        if found:
            return str(found[0]["metadata"]["name"])
        await env.others()
        env.clock.advance(timedelta(seconds=30))
    raise AssertionError("no node is drained")


async def draining_without_pods(env: Env, **spec: Any) -> str:
    """Let one node come up, which is going to be drained without pods; return its name, before its first step."""
    await env.set_up(offeringIDs=["small"], **spec)
    await env.add_pod("big-0", cpu="1900m")
    await env.tick(5)
    await env.remove_pods("big-0")
    while "Draining" not in await env.phases():
        await env.controller.reconcile()
        env.clock.advance(timedelta(seconds=30))
    return (await env.nodes())[0]


async def protect(env: Env, name: str) -> None:
    protected = {"metadata": {"annotations": {"ocf.dev/protected": "true"}}}
    await env.merge_patch(ObjectKey("v1", "Node", name), protected, by="user")


async def cordon(env: Env, name: str, *, on: bool) -> None:
    await env.merge_patch(ObjectKey("v1", "Node", name), {"spec": {"unschedulable": on or None}}, by="user")


async def is_cordoned(env: Env, name: str) -> bool:
    node = next(each for each in await env.objects("Node") if each["metadata"]["name"] == name)
    return bool(node["spec"].get("unschedulable"))


async def node_status(env: Env, name: str) -> Manifest:
    found = next(each for each in await env.objects(NODE) if each["metadata"]["name"] == name)
    status: Manifest = found["status"]
    return status


async def scaling(env: Env) -> Manifest:
    conditions = (await env.status())["conditions"]
    found: Manifest = next(each for each in conditions if each["type"] == "Scaling")
    return found


@pytest.mark.parametrize("restarted", [False, True])
@pytest.mark.parametrize("by_user", [False, True])
def test_a_drain_that_is_given_up_takes_back_its_own_mark_only(env: Env, *, by_user: bool, restarted: bool) -> None:
    """https://github.com/kubernetes/kubernetes/issues/37592 and https://github.com/kubereboot/kured/issues/63."""

    async def scenario() -> None:
        name = await draining(env, scaleDownPolicy={"drainTimeout": "3m"})
        await env.add_budget(0)
        if by_user:
            await cordon(env, name, on=True)
        for _ in range(11):
            await env.tick()
            if restarted:
                env.restart()
        assert (await node_status(env, name))["phase"] == "Ready"
        assert await is_cordoned(env, name) is by_user

    run(scenario())


def test_a_user_who_uncordons_a_node_ends_its_drain(env: Env) -> None:
    """https://github.com/planetlabs/draino/issues/17."""

    async def scenario() -> None:
        name = await draining(env)
        await env.add_budget(0)
        await env.tick(3)
        assert await is_cordoned(env, name)
        await cordon(env, name, on=False)
        await env.tick(2)
        status = await node_status(env, name)
        assert (status["phase"], await is_cordoned(env, name)) == ("Ready", False)
        assert "the node was made schedulable again" in status["lastError"]
        # Nor is it drained again at once.
        await env.tick(20)
        assert not await is_cordoned(env, name)

    run(scenario())


def test_a_user_who_uncordons_a_node_while_its_pods_shut_down_ends_its_drain(env: Env) -> None:
    async def scenario() -> None:
        name = await draining(env)
        await env.tick()
        env.dead.add(name)
        await env.tick(2)
        assert (await node_status(env, name))["drain"]["phase"] == "wait"
        await cordon(env, name, on=False)
        await env.tick(2)
        assert ((await node_status(env, name))["phase"], await is_cordoned(env, name)) == ("Ready", False)

    run(scenario())


@pytest.mark.parametrize("without_pods", [False, True])
def test_a_node_that_a_user_protects_in_its_drain_stays(env: Env, *, without_pods: bool) -> None:
    async def scenario() -> None:
        name = await (draining_without_pods if without_pods else draining)(env)
        await protect(env, name)
        await env.tick(6)
        assert name in await env.nodes()
        assert not await is_cordoned(env, name)

    run(scenario())


@pytest.mark.parametrize("without_pods", [False, True])
def test_a_drain_is_given_up_when_the_minimum_of_its_group_is_raised(env: Env, *, without_pods: bool) -> None:
    async def scenario() -> None:
        await (draining_without_pods if without_pods else draining)(env)
        before = await env.machines()
        if not without_pods:
            await env.add_budget(0)
            await env.tick(3)
        await env.merge_patch(GROUP, {"spec": {"minNodes": before, "maxNodes": before}}, by="user")
        await env.tick(2)
        if not without_pods:
            await env.allow(5)
        for _ in range(10):
            await env.tick()
            assert (await env.machines(), len(await env.objects(NODE))) == (before, before)

    run(scenario())


def test_as_many_drains_are_given_up_as_the_raised_minimum_needs(env: Env) -> None:
    async def scenario() -> None:
        await env.set_up(offeringIDs=["small"])
        for number in range(3):
            await env.add_pod(f"big-{number}", cpu="1900m")
        await env.tick(5)
        await env.remove_pods()
        while "Draining" not in await env.phases():
            await env.controller.reconcile()
            env.clock.advance(timedelta(seconds=30))
        assert await env.phases() == ["Draining"] * 3
        await env.merge_patch(GROUP, {"spec": {"minNodes": 2}}, by="user")
        requested = len(env.cloud.requests)
        await env.tick(6)
        assert (await env.phases(), await env.machines()) == (["Ready", "Ready"], 2)
        assert len(env.cloud.requests) == requested

    run(scenario())


@pytest.mark.parametrize("protected", [False, True])
def test_the_drains_of_a_group_whose_spec_became_invalid_wait(
    env: Env, monkeypatch: pytest.MonkeyPatch, *, protected: bool
) -> None:
    """As after an update of the controller whose model has one more rule."""
    invalid: list[bool] = []

    def read(manifest: Manifest) -> GroupObject:
        found = read_group(manifest)
        return replace(found, spec=None, problems=(FieldProblem("spec", "bad"),)) if invalid else found

    async def scenario() -> None:
        name = await draining(env)
        await env.add_budget(0)
        await env.tick(3)
        invalid.append(True)
        env.restart()
        if protected:
            await protect(env, name)
        await env.allow(5)
        await env.tick(8)
        assert await is_cordoned(env, name) is not protected
        invalid.clear()
        env.restart()
        await env.tick(8)
        assert (name in await env.nodes()) is protected

    monkeypatch.setattr("ocf.controllers.nodegroup.cluster_reader.read_group", read)
    run(scenario())


def test_a_node_with_a_pod_that_cannot_be_read_stays(env: Env, monkeypatch: pytest.MonkeyPatch) -> None:
    original = SnapshotPod.of

    def read(manifest: Manifest, **named: Any) -> SnapshotPod:
        # As a later API server may store it, whose rules this version does not know.
        if manifest["metadata"]["name"] == "odd-0":
            manifest = {**manifest, "spec": {**manifest["spec"], "nodeSelector": ["a"]}}
        return original(manifest, **named)

    async def scenario() -> None:
        name = await draining_without_pods(env)
        await env.add_pod("odd-0", cpu="100m", nodeName=name)
        await env.tick(6)
        assert [each["metadata"]["name"] for each in await env.objects("Pod")] == ["odd-0"]

    monkeypatch.setattr(SnapshotPod, "of", read)
    env.restart()
    run(scenario())


def test_a_node_that_a_user_deletes_is_drained_although_it_is_uncordoned(env: Env) -> None:
    async def scenario() -> None:
        await env.set_up()
        await env.add_pod()
        await env.tick(5)
        (node,) = await env.objects(NODE)
        await env.add_budget(0)
        await env.cluster.delete(ObjectKey.of(node))
        await env.tick(3)
        await cordon(env, node["metadata"]["name"], on=False)
        await env.tick(2)
        assert await is_cordoned(env, node["metadata"]["name"])
        assert len(await env.objects("Pod")) == 1

    run(scenario())


@pytest.mark.parametrize("restarted", [False, True])
def test_a_node_whose_drain_fails_is_drained_ever_more_rarely(env: Env, *, restarted: bool) -> None:
    """As https://github.com/DataDog/draino/pull/36, for pods that never end.

    https://github.com/kubernetes-sigs/karpenter/issues/2169
    """

    async def scenario() -> None:
        name = await draining(env)
        for other in {*await env.nodes()} - {name}:
            await protect(env, other)
        # Its pods never end, and its kubelet reports.
        env.dead.add(name)
        for _ in range(6 * 60):
            await env.tick()
            if restarted:
                env.restart()
        begun = [event for event in env.events.all if event.reason == "ScalingDown"]
        given_up = [event for event in env.events.all if "was given up" in event.note]
        # Each takes 10 minutes; the pauses are 15, 30 and 60 minutes. Without them there were 15.
        assert [len(begun), len(given_up)] == [4, 4]
        assert env.value("scale_down_blocked_total", reason="drain") == 4
        status = await node_status(env, name)
        backoff = status["drainBackoff"]
        assert backoff["failures"] == 4
        assert timedelta(hours=1) < parse_time(backoff["until"]) - env.clock.now() < timedelta(hours=2)
        (blocked,) = [each for each in (await env.status())["blocked"] if each["name"] == name]
        assert blocked["reason"] == "drain"
        assert blocked["message"].startswith(
            f"4 drains were given up, and the next one begins after {backoff['until']}: "
        )

    run(scenario())


@pytest.mark.parametrize(
    ("failures", "ago", "expected", "pause"),
    [
        pytest.param(1, timedelta(hours=1), 2, timedelta(minutes=30), id="doubled"),
        pytest.param(9, timedelta(hours=3), 10, timedelta(hours=4), id="at most four hours"),
        pytest.param(10**6, timedelta(hours=3), 10**6 + 1, timedelta(hours=4), id="very often"),
        pytest.param(2**31 - 1, timedelta(0), 2**31 - 1, timedelta(hours=4), id="as often as can be stored"),
        pytest.param(9, timedelta(hours=5), 1, timedelta(minutes=15), id="long ago"),
    ],
)
def test_the_pause_after_a_drain_follows_from_the_ones_before(
    env: Env, failures: int, ago: timedelta, expected: int, pause: timedelta
) -> None:
    async def scenario() -> None:
        name = await draining(env, scaleDownPolicy={"drainTimeout": "3m"})
        await env.add_budget(0)
        backoff = {"failures": failures, "until": format_time(env.clock.now() - ago)}
        await env.patch_status(ObjectKey(API, NODE, name, "default"), {"drainBackoff": backoff}, by="controller")
        for _ in range(20):
            await env.tick()
            if (await node_status(env, name))["phase"] == "Ready":
                break
        found = (await node_status(env, name))["drainBackoff"]
        assert found["failures"] == expected
        assert abs(parse_time(found["until"]) - env.clock.now() - pause) <= timedelta(seconds=30)

    run(scenario())


def test_a_drain_that_waits_names_the_pod_and_since_when_and_is_silent_otherwise(env: Env) -> None:
    """https://github.com/aws/karpenter-provider-aws/issues/2829 (invisible) and #3002 of it (675 events)."""

    async def scenario() -> None:
        name = await draining(env)
        await env.add_budget(0)
        await env.tick(4)
        drain = (await node_status(env, name))["drain"]
        (pod,) = [each["metadata"]["name"] for each in await env.objects("Pod") if each["spec"]["nodeName"] == name]
        assert drain["pod"] == f"shop/{pod}"
        found = await scaling(env)
        assert (found["status"], found["reason"]) == ("True", "ScalingDown")
        assert found["message"].startswith(f"node {name} waits for pod shop/{pod} since {drain['waitingSince']}: ")
        assert "Cannot evict pod as it would violate the pod's disruption budget." in found["message"]
        env.cluster.requests.clear()
        events = len(env.events.all)
        await env.tick(5)
        # But for the evictions, which are asked for again.
        assert {each.kind for each in env.writes() if each.field_manager == "ocf-nodegroup-controller"} <= {"Pod"}
        assert len(env.events.all) == events
        assert (await node_status(env, name))["drain"] == drain

    run(scenario())


def test_a_node_that_is_not_ready_is_no_scale_up(env: Env) -> None:
    async def scenario() -> None:
        await env.set_up(minNodes=3)
        reasons = []
        for _ in range(5):
            await env.tick()
            reasons.append((await scaling(env))["reason"])
        # While machines are ordered, and while they boot.
        assert reasons[:2] == ["ScalingUp", "ScalingUp"]
        assert reasons[-1] == "ScalingComplete"
        await env.kill_node((await env.nodes())[0])
        await env.tick(4)
        assert (await scaling(env))["reason"] == "ScalingComplete"
        assert [each["status"] for each in (await env.status())["conditions"] if each["type"] == "Ready"] == ["False"]

    run(scenario())


def test_scalings_are_counted_and_not_their_nodes(env: Env) -> None:
    async def scenario() -> None:
        await env.set_up(offeringIDs=["small"])
        for number in range(3):
            await env.add_pod(f"web-{number}", cpu="1900m")
        await env.tick(5)
        assert (await env.machines(), env.value("scale_up_total")) == (3, 1)
        await env.remove_pods()
        await env.tick(40)
        assert (await env.machines(), env.value("scale_down_total")) == (0, 1)

    run(scenario())


@pytest.mark.parametrize("timeout", ["100000000h", "23999999976h"])
def test_a_drain_may_take_as_long_as_the_definition_allows(env: Env, timeout: str) -> None:
    async def scenario() -> None:
        name = await draining(env, scaleDownPolicy={"drainTimeout": timeout})
        await env.add_group("other", offeringIDs=["large"])
        await env.add_pod("new-0", cpu="7")
        await env.tick(10)
        assert (await env.waiting(), name in await env.nodes()) == ([], False)

    run(scenario())


@pytest.mark.parametrize("broken", [(DrainSteps, "step"), (GroupWriter, "carry_out")], ids=["drain", "group"])
def test_an_unexpected_error_of_one_group_stops_no_other_group(
    env: Env, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, broken: tuple[type, str]
) -> None:
    async def scenario() -> None:
        await draining(env)
        await env.add_group("other", offeringIDs=["large"])
        await env.add_pod("new-0", cpu="7")
        original = getattr(*broken)

        async def fails(self: object, view: Any, *args: Any, **named: Any) -> None:
            subject = next(each for each in args if isinstance(each, NodeObject | GroupObject))
            if "workers" in (subject.name if isinstance(subject, GroupObject) else subject.group):
                raise OverflowError("a secret")
            await original(self, view, *args, **named)

        monkeypatch.setattr(*broken, fails)
        await env.tick(10)
        assert await env.waiting() == []
        error = next(each for each in (await env.status())["conditions"] if each["type"] == "Error")
        assert (error["status"], error["reason"]) == ("True", "ReconcileFailed")
        assert "unexpected OverflowError" in error["message"]
        assert "a secret" not in error["message"]
        assert "Traceback" in caplog.text

    run(scenario())


NEVER = "2001-01-01T00:00:00Z"
LATER = "2099-01-01T00:00:00Z"


@pytest.mark.parametrize("deleted", [False, True])
@pytest.mark.parametrize(
    "change",
    [
        pytest.param({"nodeName": ""}, id="no name of the Node"),
        pytest.param({"drain": {"startedAt": LATER, "phase": "done"}}, id="done in the future"),
        pytest.param({"drain": {"startedAt": NEVER, "phase": "done"}}, id="done long ago"),
        pytest.param({"drain": {"startedAt": NEVER, "phase": "delete"}}, id="deleted long ago"),
        pytest.param({"drain": {"startedAt": NEVER, "phase": "delete"}, "phase": "Draining"}, id="draining"),
        pytest.param({"drain": {"startedAt": NEVER, "phase": "evict"}, "phase": "Draining"}, id="evicted long ago"),
        pytest.param({"phase": "Terminating", "terminatingAt": NEVER}, id="terminating"),
        pytest.param({"phase": "Failed", "failedAt": NEVER}, id="failed"),
        pytest.param(None, id="no status"),
    ],
)
def test_no_status_lets_pods_end_without_a_drain(env: Env, change: Manifest | None, *, deleted: bool) -> None:
    """A status may be lost with a restore, or written by a user.

    https://github.com/kubernetes-sigs/cluster-api/issues/5957
    """

    async def scenario() -> None:
        await env.set_up(offeringIDs=["small"])
        await env.add_pod("web-0", cpu="900m")
        await env.tick(6)
        await env.add_budget(0)
        (node,) = await env.objects(NODE)
        key = ObjectKey.of(node)
        if change is None:
            await env.cluster.update({**node, "status": {}}, field_manager="restore", subresource=Subresource.STATUS)
        else:
            await env.patch_status(key, change, by="user")
        if deleted:
            await env.cluster.delete(key)
        # Less than the time of a drain, at whose end the pods of a node that a user deletes go with it.
        await env.tick(15)
        assert [each["metadata"]["name"] for each in await env.objects("Pod")] == ["web-0"]
        await env.tick(15)
        assert not (deleted and node["metadata"]["name"] in await env.nodes())

    run(scenario())
