"""The Pod primitive: status, suspension by deletion, and the order of its six categories."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kubernetes.client import V1Container

from ocf.concepts import AliveStatus, ApplyOperation, GraceStatus, StatusReport, SuspensionStatus
from ocf.editors import all_containers
from ocf.objects import Manifest
from ocf.primitives import pod

BASE: Manifest = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "agent", "namespace": "shop"},
    "spec": {"containers": [{"name": "agent", "image": "agent:1"}]},
}
IMAGE = {"image": "agent:1", "imageID": "", "restartCount": 0}
READY: Manifest = {"name": "agent", "ready": True, **IMAGE}
UNREADY: Manifest = {"name": "proxy", "ready": False, **IMAGE}
LOOPING: Manifest = {**UNREADY, "state": {"waiting": {"reason": "CrashLoopBackOff"}}}
PULLING: Manifest = {**UNREADY, "state": {"waiting": {"reason": "ContainerCreating"}}}
FAILED: Manifest = {**UNREADY, "state": {"terminated": {"exitCode": 2}}}
ENDED: Manifest = {**UNREADY, "state": {"terminated": {"exitCode": 0}}}


def live(phase: str, *containers: Manifest, **status: Any) -> Manifest:
    return {**BASE, "status": {"phase": phase, "containerStatuses": list(containers), **status}}


def ready(status: str, reason: str = "", message: str = "") -> list[Manifest]:
    return [{"type": "Ready", "status": status, "reason": reason, "message": message}]


RUNNING = "Pod is running and all containers are ready"
NOT_READY = "Pod running but not all containers ready"
# As reported in https://github.com/kubernetes-sigs/aws-load-balancer-controller/issues/1205.
GATED = live("Running", READY, conditions=ready("False", "ReadinessGatesNotReady", 'condition "lb" does not exist'))
BY_GATE = 'Pod running but not ready: ReadinessGatesNotReady: condition "lb" does not exist'
DONE = "Pod has completed successfully"
DOWN = "Pod is not running"
LOOP = "Container proxy is in CrashLoopBackOff"
ERROR = "Container proxy terminated with error"
LOOPS = "CrashLoopBackOff: container proxy ends again and again"
ENDS = "container proxy ended: exit code 2 (Error)"
PULLS = "ContainerCreating: container proxy has not started"
PROGRESS = {
    ApplyOperation.CREATED: (AliveStatus.CREATING, "Pod is starting"),
    ApplyOperation.UPDATED: (AliveStatus.UPDATING, "Pod is being recreated"),
}


# row: what is observed, the status if this reconcile did nothing with its reason, and the grace status with its reason
@pytest.mark.parametrize("operation", list(ApplyOperation))
@pytest.mark.parametrize(
    ("seen", "status", "reason", "grace", "grace_reason"),
    [
        pytest.param(live("Running", READY), "Healthy", RUNNING, "Healthy", RUNNING, id="ready"),
        pytest.param(live("Running"), "Healthy", RUNNING, "Healthy", RUNNING, id="without container statuses"),
        pytest.param(
            live("Running", READY, conditions=ready("True")), "Healthy", RUNNING, "Healthy", RUNNING, id="Ready"
        ),
        pytest.param(
            live("Running", READY, conditions=ready("Unknown")), "Healthy", RUNNING, "Healthy", RUNNING, id="not said"
        ),
        pytest.param(GATED, "Creating", BY_GATE, "Degraded", BY_GATE, id="a readiness gate"),
        pytest.param(
            live("Succeeded", ENDED, conditions=ready("False", "PodCompleted")),
            "Healthy",
            DONE,
            "Healthy",
            DONE,
            id="succeeded, no longer ready",
        ),
        pytest.param(live("Running", READY, UNREADY), "Creating", NOT_READY, "Degraded", NOT_READY, id="not ready"),
        pytest.param(
            live("Running", READY, PULLING),
            "Creating",
            f"{NOT_READY}: {PULLS}",
            "Degraded",
            f"{NOT_READY}: {PULLS}",
            id="another wait",
        ),
        pytest.param(live("Running", READY, ENDED), "Creating", NOT_READY, "Degraded", NOT_READY, id="one succeeded"),
        pytest.param(
            live("Running", READY, LOOPING), "Failing", LOOP, "Degraded", f"{NOT_READY}: {LOOPS}", id="crash loop"
        ),
        pytest.param(
            live("Running", FAILED, READY), "Failing", ERROR, "Degraded", f"{NOT_READY}: {ENDS}", id="container failed"
        ),
        pytest.param(
            live("Running", FAILED, LOOPING),
            "Failing",
            ERROR,
            "Degraded",
            f"{NOT_READY}: {LOOPS}",
            id="the first failure",
        ),
        pytest.param(live("Pending"), "Creating", "Pod is pending", "Down", DOWN, id="pending"),
        pytest.param(
            live("Pending", LOOPING), "Failing", LOOP, "Down", f"{DOWN}: {LOOPS}", id="crash loop before it runs"
        ),
        pytest.param(BASE, "Creating", "Pod is pending", "Down", DOWN, id="without a status"),
        pytest.param(live("Failed"), "Failing", "Pod has failed", "Down", DOWN, id="failed, for example evicted"),
        pytest.param(live("Failed", FAILED), "Failing", ERROR, "Down", f"{DOWN}: {ENDS}", id="failed container"),
        pytest.param(live("Succeeded", ENDED), "Healthy", DONE, "Healthy", DONE, id="succeeded"),
    ],
)
def test_status(  # noqa: PLR0917 (a table row)
    seen: Manifest, status: str, reason: str, grace: str, grace_reason: str, operation: ApplyOperation
) -> None:
    expected = AliveStatus(status), reason
    if status == "Creating":
        expected = PROGRESS.get(operation, expected)
    resource = pod.Builder(BASE).build()
    assert resource.alive_status(operation, seen) == StatusReport(*expected)
    assert resource.grace_status(seen) == StatusReport(GraceStatus(grace), grace_reason)


@given(
    phase=st.sampled_from(["Pending", "Running", "Succeeded", "Failed", "Unknown"]),
    containers=st.lists(st.sampled_from([READY, UNREADY, LOOPING, PULLING, FAILED, ENDED]), max_size=3),
    conditions=st.sampled_from([[], ready("True"), ready("False"), ready("False", "ReadinessGatesNotReady")]),
    operation=st.sampled_from(ApplyOperation),
)
def test_it_is_healthy_after_the_grace_period_exactly_when_it_is_healthy(
    phase: str, containers: list[Manifest], conditions: list[Manifest], operation: ApplyOperation
) -> None:
    seen = live(phase, *containers, conditions=conditions)
    resource = pod.Builder(BASE).build()
    healthy = resource.alive_status(operation, seen).status is AliveStatus.HEALTHY
    assert healthy == (resource.grace_status(seen).status is GraceStatus.HEALTHY)


def test_suspending_deletes_it() -> None:
    resource = pod.Builder(BASE).build()
    assert resource.delete_on_suspend() is True
    assert resource.render(suspended=True) == resource.render() == BASE
    expected = StatusReport(SuspensionStatus.SUSPENDED, "Pod deleted on suspend")
    assert resource.suspension_status(live("Running", READY)) == expected


def test_six_categories_run_in_the_declared_order() -> None:
    ran: list[str] = []

    def mutate(m: Any) -> None:
        m.edit_init_containers(all_containers)(lambda container: ran.append(f"init {container.raw.name}"))
        m.ensure_init_container(V1Container(name="setup"))
        m.edit_containers(all_containers)(lambda container: ran.append(container.raw.name))
        m.ensure_container(V1Container(name="proxy"))
        m.edit_pod_spec(lambda spec: ran.append(f"spec of {len(spec.raw.containers)}"))
        m.edit_object_metadata(lambda _: ran.append("metadata"))

    pod.Builder(BASE).with_mutation(pod.Mutation("m", mutate)).build().render()
    assert ran == ["metadata", "spec of 1", "agent", "proxy", "init setup"]
    assert [category.name for category in pod.Mutator.categories] == [
        "edit_object_metadata",
        "edit_pod_spec",
        "container_presence",
        "edit_containers",
        "init_container_presence",
        "edit_init_containers",
    ]
