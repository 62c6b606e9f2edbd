"""Why pods do not start, or are not ready: the texts for what the kubelet and the scheduler report.

Rebuilt from public reports: https://github.com/arkmq-org/arkmq-org-broker-operator/issues/1004 (only counts, without
what the scheduler says), https://github.com/kubernetes-sigs/mcp-lifecycle-operator/issues/88 (an image, a crash, a
missing ConfigMap), https://github.com/openshift/library-go/pull/2128 (pods that fail before any container),
https://github.com/strimzi/strimzi-kafka-operator/pull/8557 (everything was called unschedulable),
https://github.com/GoogleContainerTools/skaffold/pull/4223 (one text for ErrImagePull and ImagePullBackOff),
https://github.com/ambient-code/platform/pull/619 (the scheduler's own message),
https://github.com/kubernetes/kubernetes/issues/24726 (failures other than of the image),
https://github.com/wongnai/kube-slack/issues/37 (the output of a lifecycle hook in the message of its failure).
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kubernetes.client import V1Pod

from ocf.objects.timestamps import format_time
from ocf.primitives.pod_causes import lacks_pods, pod_cause, pod_problem, pod_selector, refusal_cause

if TYPE_CHECKING:
    from ocf.objects import Manifest

PULL: Final = 'ImagePullBackOff: image "web:9" of container web cannot be pulled'
LOOP: Final = "CrashLoopBackOff: container web ends with exit code 1 (Error)"
ENDED: Final = {"terminated": {"exitCode": 1, "reason": "Error", "message": "the password is hunter2"}}
STOPPED: Final = {"terminated": {"exitCode": 128, "reason": "StartError", "message": 'exec: "wbe": not found'}}
START: Final = 'StartError: container web cannot start: exec: "wbe": not found'
BACKING_OFF: Final = 'Back-off pulling image "web:9"'
NETWORK: Final = 'Get "https://r.example/v2/?sig=s3cr3t": read udp 10.0.0.7:4711->10.0.0.1:53: timeout'
NOW: Final = datetime(2026, 1, 31, 12, tzinfo=UTC)


def container(state: Manifest, *, name: str = "web", **fields: Any) -> Manifest:
    return {"name": name, "image": "web:9", "imageID": "", "ready": False, "restartCount": 0, "state": state, **fields}


def waiting(reason: str, message: str = "", **fields: Any) -> Manifest:
    return container({"waiting": {"reason": reason, **({"message": message} if message else {})}}, **fields)


def pod(*containers: Manifest, name: str = "web-0", phase: str = "Pending", **status: Any) -> Manifest:
    metadata = {"name": name, "namespace": "shop"}
    whole = {"phase": phase, "containerStatuses": list(containers), **status}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": []}, "status": whole}


def condition(kind: str, reason: str, message: str) -> Manifest:
    return {"type": kind, "status": "False", "reason": reason, "message": message}


RUNNING: Final = container({"running": {}})
GATE: Final = condition("Ready", "ReadinessGatesNotReady", 'condition "example.com/lb" does not exist')
NO_NODE: Final = condition("PodScheduled", "Unschedulable", "0/3 nodes are available: 3 Insufficient cpu.")
GATED: Final = condition("PodScheduled", "SchedulingGated", "Scheduling is blocked due to non-empty gates")
CASES: Final = {
    "image, between attempts": (pod(waiting("ImagePullBackOff", BACKING_OFF)), PULL),
    "image, between attempts, with the cause": (
        pod(waiting("ImagePullBackOff", f"{BACKING_OFF}: ErrImagePull: not found")),
        f"{PULL}: not found",
    ),
    "image, during an attempt": (pod(waiting("ErrImagePull", "not found")), f"{PULL}: not found"),
    "image, without a signature and a local port": (
        pod(waiting("ErrImagePull", NETWORK)),
        f'{PULL}: Get "https://r.example/v2/": read udp 10.0.0.1:53: timeout',
    ),
    "name of the image": (
        pod(waiting("InvalidImageName", "couldn't parse")),
        "InvalidImageName: container web: couldn't parse",
    ),
    "configuration": (
        pod(waiting("CreateContainerConfigError", 'secret "login" not found')),
        'CreateContainerConfigError: container web: secret "login" not found',
    ),
    "crash loop, waiting": (pod(waiting("CrashLoopBackOff", "back-off 10s", lastState=ENDED)), LOOP),
    "crash loop, ended": (pod(container(ENDED, restartCount=3)), LOOP),
    "crash loop, running": (
        pod(container({"running": {}}, restartCount=3, lastState=ENDED), phase="Running"),
        LOOP,
    ),
    "crash loop alone": (pod(waiting("CrashLoopBackOff")), "CrashLoopBackOff: container web ends again and again"),
    "out of memory": (
        pod(container({"terminated": {"exitCode": 137, "reason": "OOMKilled"}}, restartCount=1)),
        "CrashLoopBackOff: container web ends with exit code 137 (OOMKilled)",
    ),
    "ended once": (pod(container(ENDED), phase="Failed"), "container web ended: exit code 1 (Error)"),
    "no program, without a message": (
        pod(container({"terminated": {"exitCode": 128, "reason": "StartError"}})),
        "StartError: container web cannot start",
    ),
    "no program, at the start": (pod(waiting("RunContainerError", "exec", lastState=STOPPED)), START),
    "no program, waiting": (pod(waiting("CrashLoopBackOff", lastState=STOPPED)), START),
    "no program, ended": (pod(container(STOPPED)), START),
    "no node": (pod(conditions=[NO_NODE]), "Unschedulable: 0/3 nodes are available: 3 Insufficient cpu."),
    "scheduling gates": (
        pod(conditions=[GATED]),
        "SchedulingGated: Scheduling is blocked due to non-empty gates",
    ),
    "evicted": (
        pod(phase="Failed", reason="Evicted", message="The node was low on resource: memory."),
        "Evicted: The node was low on resource: memory.",
    ),
    "not ready": (pod(RUNNING, phase="Running"), "container web is running, but not ready"),
    "readiness gate": (
        pod({**RUNNING, "ready": True}, phase="Running", conditions=[GATE]),
        'ReadinessGatesNotReady: condition "example.com/lb" does not exist',
    ),
    "node unreachable": (
        pod({**RUNNING, "ready": True}, phase="Running", conditions=[condition("Ready", "", "")]),
        "its condition Ready is False, although its containers are ready",
    ),
    "not ready, without a reason": (
        pod(RUNNING, phase="Running", conditions=[condition("Ready", "", "")]),
        "container web is running, but not ready",
    ),
    "lifecycle hook": (
        pod(waiting("PostStartHookError", 'exited with 1: , message: "the password is hunter2"')),
        "PostStartHookError: container web: its lifecycle hook has failed",
    ),
    "lifecycle hook at the end": (
        pod(waiting("PreStopHookError", "the password is hunter2")),
        "PreStopHookError: container web: its lifecycle hook has failed",
    ),
    "sidecar": (
        pod(
            {**RUNNING, "ready": True},
            phase="Running",
            initContainerStatuses=[container({"running": {}}, name="proxy", started=True)],
        ),
        "init container proxy is running, but not ready",
    ),
    "sidecar, before the others start": (
        {
            "metadata": {"name": "web-0"},
            "spec": {"initContainers": [{"name": "proxy", "restartPolicy": "Always"}, {"name": "migrate"}]},
            "status": {"phase": "Pending", "initContainerStatuses": [container({"running": {}}, name="proxy")]},
        },
        "init container proxy is running, but not ready",
    ),
    "being created": (pod(waiting("ContainerCreating")), "ContainerCreating: container web has not started"),
    "init container": (
        pod(
            waiting("PodInitializing"),
            initContainerStatuses=[waiting("CrashLoopBackOff", name="migrate", restartCount=4, lastState=ENDED)],
        ),
        "CrashLoopBackOff: init container migrate ends with exit code 1 (Error)",
    ),
    "init container, running": (
        pod(waiting("PodInitializing"), initContainerStatuses=[container({"running": {}}, name="migrate")]),
        "init container migrate has not ended",
    ),
    "the cause before its effect": (
        pod(RUNNING, waiting("ErrImageNeverPull", "not present", name="proxy"), phase="Running"),
        "ErrImageNeverPull: container proxy: not present",
    ),
    "nothing known yet": (pod(), ""),
    "without a status": ({"metadata": {"name": "web-0"}}, ""),
    "ready": (pod({**RUNNING, "ready": True}, phase="Running"), ""),
    "ready after crashes": (
        pod(container({"running": {}}, ready=True, restartCount=3, lastState=ENDED), phase="Running"),
        "",
    ),
    "succeeded": (pod(container(ENDED), phase="Succeeded"), ""),
}


@pytest.mark.promise("cause-in-condition", runs="35 states of pods")
@pytest.mark.parametrize(("seen", "text"), CASES.values(), ids=CASES)
def test_the_cause_of_one_pod(seen: Manifest, text: str) -> None:
    assert pod_problem(seen) == text
    assert pod_problem(V1Pod.model_validate({**seen, "spec": {"containers": [], **seen.get("spec", {})}})) == text
    assert pod_cause([seen]) == (f"{text} (pod web-0)" if text else "")


@given(st.lists(st.sampled_from([seen for seen, _ in CASES.values()]), max_size=5), st.randoms())
def test_the_order_of_pods_does_not_matter(states: list[Manifest], random: Any) -> None:
    pods = [{**state, "metadata": {"name": f"web-{at}"}} for at, state in enumerate(states)]
    shuffled = list(pods)
    random.shuffle(shuffled)
    assert pod_cause(pods) == pod_cause(shuffled)
    assert "hunter2" not in pod_cause(pods)


def test_the_most_severe_cause_is_named_with_its_pods() -> None:
    pods = [pod(RUNNING, name="a"), pod(waiting("ErrImagePull"), name="c"), pod(waiting("ErrImagePull"), name="b")]
    assert pod_cause(pods) == f"{PULL} (pod b and 1 more)"


def test_the_node_that_may_be_unreachable_is_named() -> None:
    seen = pod({**RUNNING, "ready": True}, phase="Running", conditions=[condition("Ready", "", "")])
    seen["spec"]["nodeName"] = "node-1"
    assert pod_problem(seen).endswith("although its containers are ready: node node-1 may be unreachable")


def test_a_pod_that_is_deleted_does_not_count() -> None:
    seen = pod(waiting("ErrImagePull"))
    seen["metadata"]["deletionTimestamp"] = "2026-01-31T12:00:00Z"
    assert not pod_cause([seen])


def test_a_long_message_is_cut() -> None:
    assert len(pod_problem(pod(waiting("CreateContainerError", "x" * 40_000)))) < 300


@pytest.mark.parametrize(
    ("spec", "selector"),
    [
        pytest.param({"selector": {"matchLabels": {"app": "web"}}, "template": {}}, "app=web", id="labels"),
        pytest.param(
            {"selector": {"matchExpressions": [{"key": "a", "operator": "Exists"}]}, "template": {}},
            "a",
            id="expressions",
        ),
        pytest.param({"selector": {"app": "web"}}, "", id="a Service"),
        pytest.param({"containers": []}, "", id="a Pod"),
        pytest.param({"jobTemplate": {}}, "", id="a CronJob"),
        pytest.param(None, "", id="without a spec"),
    ],
)
def test_the_selector_of_the_pods(spec: Manifest | None, selector: str) -> None:
    assert pod_selector({"spec": spec}) == selector


@pytest.mark.parametrize(
    ("live", "lacks"),
    [
        pytest.param({"spec": {"replicas": 2}}, True, id="replicas"),
        pytest.param({"spec": {"replicas": 1}}, False, id="enough replicas"),
        pytest.param({"spec": {"replicas": 0}}, False, id="no replicas"),
        pytest.param({"spec": {}}, False, id="one by default"),
        pytest.param({"spec": {}, "status": {"desiredNumberScheduled": 2}}, True, id="a DaemonSet"),
        pytest.param({"spec": {"parallelism": 2}}, True, id="a Job"),
    ],
)
def test_whether_pods_are_missing(live: Manifest, *, lacks: bool) -> None:
    """One pod counts; one that has succeeded does not."""
    assert lacks_pods(live, [pod(), pod(phase="Succeeded")]) is lacks


def event(message: str, *, reason: str = "FailedCreate", ago: timedelta = timedelta(minutes=1)) -> Manifest:
    return {"reason": reason, "message": message, "lastTimestamp": format_time(NOW - ago)}


@pytest.mark.parametrize(
    ("events", "text"),
    [
        pytest.param([], "", id="none"),
        pytest.param([event("created", reason="SuccessfulCreate")], "", id="another reason"),
        pytest.param([event("refused", ago=timedelta(hours=1))], "", id="long ago"),
        pytest.param([{"reason": "FailedCreate", "message": "refused"}], "", id="without a time"),
        pytest.param(
            [event('Error creating: pods "web-x7k2p" is forbidden: exceeded quota: small')],
            "FailedCreate: Error creating: pods is forbidden: exceeded quota: small",
            id="without the random name",
        ),
        pytest.param([event("old", ago=timedelta(minutes=5)), event("new")], "FailedCreate: new", id="the latest"),
    ],
)
def test_refused_pods(events: list[Manifest], text: str) -> None:
    assert refusal_cause(events, NOW) == text
