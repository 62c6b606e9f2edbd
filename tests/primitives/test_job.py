"""The Job primitive: status, suspension by deletion, and the order of its eight categories."""

from typing import Any

import pytest

from ocf.concepts import (
    ApplyOperation,
    Completable,
    CompletionStatus,
    Graceful,
    StatusReport,
    Suspendable,
    SuspensionStatus,
)
from ocf.objects import Manifest
from ocf.primitives import deployment, job

BASE: Manifest = {
    "apiVersion": "batch/v1",
    "kind": "Job",
    "metadata": {"name": "migrate", "namespace": "shop"},
    "spec": {
        "template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "migrate", "image": "migrate:1"}]}}
    },
}


def condition(kind: str, status: str = "True", message: str = "", reason: str = "") -> Manifest:
    return {"type": kind, "status": status, "message": message, "reason": reason}


def live(*conditions: Manifest, active: int | None = None, suspend: bool | None = None) -> Manifest:
    status = {"conditions": list(conditions), "active": active}
    return {**BASE, "spec": {**BASE["spec"], "suspend": suspend}, "status": status}


COMPLETED = "Job completed successfully"
WAITING = "Job is waiting for pods to be scheduled"
CREATED = "Job was just created, waiting for pods to be scheduled"
FAILED = condition("Failed", message="BackoffLimitExceeded")


@pytest.mark.parametrize("operation", list(ApplyOperation))
@pytest.mark.parametrize(
    ("seen", "status", "reason"),
    [
        pytest.param(live(condition("Complete")), "Completed", COMPLETED, id="complete"),
        pytest.param(live(condition("Complete"), active=1), "Completed", COMPLETED, id="complete, and a pod is active"),
        pytest.param(live(FAILED), "TaskFailing", "Job failed: BackoffLimitExceeded", id="failed"),
        pytest.param(live(condition("Failed")), "TaskFailing", "Job failed", id="failed without a message"),
        pytest.param(
            live(FAILED, condition("Complete")), "TaskFailing", "Job failed: BackoffLimitExceeded", id="first"
        ),
        pytest.param(
            live(condition("Failed", "False"), active=2), "TaskRunning", "Job has 2 active pod(s)", id="false"
        ),
        pytest.param(
            live(condition("FailureTarget", reason="PodFailurePolicy", message="exit code 42"), active=1),
            "TaskFailing",
            "Job failed: PodFailurePolicy: exit code 42",
            id="a pod failure policy, while the last pods terminate",
        ),
        pytest.param(
            live(condition("Failed", reason="BackoffLimitExceeded", message="the limit is reached")),
            "TaskFailing",
            "Job failed: BackoffLimitExceeded: the limit is reached",
            id="backoff limit",
        ),
        pytest.param(
            live(condition("Failed", reason="DeadlineExceeded")),
            "TaskFailing",
            "Job failed: DeadlineExceeded",
            id="late",
        ),
        pytest.param(
            live(condition("SuccessCriteriaMet"), active=1), "TaskRunning", "Job has 1 active pod(s)", id="other"
        ),
        pytest.param(live(suspend=True), "TaskPending", "Job is suspended: spec.suspend is true", id="suspended"),
        pytest.param(
            live(active=1, suspend=True), "TaskRunning", "Job has 1 active pod(s)", id="suspended, and a pod is active"
        ),
        pytest.param(live(condition("Suspended")), "TaskPending", WAITING, id="suspended by another user"),
        pytest.param(live(active=0), "TaskPending", WAITING, id="no active pod"),
        pytest.param(BASE, "TaskPending", WAITING, id="without a status"),
    ],
)
def test_status(seen: Manifest, status: str, reason: str, operation: ApplyOperation) -> None:
    if reason == WAITING and operation is ApplyOperation.CREATED:
        reason = CREATED
    resource = job.Builder(BASE).build()
    assert resource.completion_status(operation, seen) == StatusReport(CompletionStatus(status), reason)


def test_it_is_a_task() -> None:
    resource = job.Builder(BASE).build()
    assert isinstance(resource, Completable)
    assert isinstance(resource, Suspendable)
    assert not isinstance(resource, Graceful)


@pytest.mark.parametrize(
    ("seen", "status", "reason"),
    [
        pytest.param(live(suspend=True), "Suspended", "Job is suspended", id="no active pod"),
        pytest.param(live(suspend=True, active=2), "Suspending", "Job is suspending, 2 pod(s) still active", id="two"),
        pytest.param(live(active=2), "Suspending", "Waiting for Job suspend field to be applied", id="unset"),
        pytest.param(live(suspend=False), "Suspending", "Waiting for Job suspend field to be applied", id="false"),
        pytest.param(BASE, "Suspending", "Waiting for Job suspend field to be applied", id="without a status"),
    ],
)
def test_suspension_status(seen: Manifest, status: str, reason: str) -> None:
    report = job.Builder(BASE).build().suspension_status(seen)
    assert report == StatusReport(SuspensionStatus(status), reason)


def test_suspending_stops_its_pods_and_deletes_it() -> None:
    resource = job.Builder(BASE).build()
    assert resource.delete_on_suspend() is True
    assert resource.render(suspended=True)["spec"] == {**BASE["spec"], "suspend": True}


def test_the_author_may_keep_it() -> None:
    assert job.Builder(BASE).with_custom_suspend_deletion_decision(None).build().delete_on_suspend() is False


def test_the_categories_are_those_of_a_deployment_with_its_own_spec() -> None:
    names = [category.name.replace("deployment", "job") for category in deployment.Mutator.categories]
    assert [category.name for category in job.Mutator.categories] == names


def test_its_pod_template_cannot_change_so_it_has_no_roll_on_change() -> None:
    assert not hasattr(job.Mutator, "roll_on_change")


def test_every_category_edits_its_part() -> None:
    def mutate(m: Any) -> None:
        m.ensure_container_arg("--fast")
        m.edit_pod_spec(lambda spec: spec.set_service_account_name("migrate"))
        m.edit_pod_template_metadata(lambda meta: meta.ensure_label("app", "migrate"))
        m.edit_job_spec(lambda spec: spec.set_backoff_limit(2))

    rendered = job.Builder(BASE).with_mutation(job.Mutation("m", mutate)).build().render()
    template = rendered["spec"]["template"]
    assert rendered["spec"]["backoffLimit"] == 2
    assert template["metadata"] == {"labels": {"app": "migrate"}}
    assert template["spec"]["serviceAccountName"] == "migrate"
    assert template["spec"]["containers"] == [{"name": "migrate", "image": "migrate:1", "args": ["--fast"]}]
