"""The Job primitive: status, suspension by deletion, the order of its eight categories, and runs that have a key."""

from datetime import timedelta
from typing import Any

import pytest

from ocf import component
from ocf.concepts import (
    ApplyOperation,
    Completable,
    CompletionStatus,
    Graceful,
    StatusReport,
    Suspendable,
    SuspensionStatus,
)
from ocf.errors import BuildError, MutationError
from ocf.objects import Manifest, ObjectKey
from ocf.primitives import deployment, job
from ocf.runtime.rbac import policy_rules

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


class TestRunOnce:
    def test_the_object_has_the_key_in_a_label_and_no_time_to_live(self) -> None:
        resource = job.Builder(BASE).run_once("2.3.1", ttl=timedelta(hours=1)).build()
        assert resource.render()["metadata"]["labels"] == {"ocf.dev/run": "2.3.1"}
        assert resource.render()["spec"] == BASE["spec"]
        assert (resource.run_key, resource.expiry) == ("2.3.1", (("spec", "ttlSecondsAfterFinished"), 3600))

    def test_the_label_is_set_after_all_mutations(self) -> None:
        def mutate(m: job.Mutator) -> None:
            m.edit_object_metadata(lambda meta: meta.ensure_label("ocf.dev/run", "other"))

        builder = job.Builder(BASE).run_once("1").with_mutation(job.Mutation("other", mutate))
        assert builder.build().render()["metadata"]["labels"] == {"ocf.dev/run": "1"}
        assert builder.build().registered_mutations == ("other", "run-once")

    def test_the_builder_can_build_again(self) -> None:
        builder = job.Builder(BASE).run_once("1")
        assert builder.build().render() == builder.build().render()
        assert builder.run_once("2").build().run_key == "2"

    @pytest.mark.parametrize(
        ("key", "ttl", "problem"),
        [
            pytest.param("", None, "the key of run_once must be a text that is not empty, got ''", id="no key"),
            pytest.param(7, None, "the key of run_once must be a text that is not empty, got 7", id="a number"),
            pytest.param("1+a", None, "the key of run_once must be a label value, got '1+a': ", id="build metadata"),
            pytest.param("x" * 64, None, "must be no more than 63", id="too long"),
            pytest.param(
                "1", 600, "the ttl of run_once must be a timedelta that is not negative, got 600", id="seconds"
            ),
            pytest.param(
                "1",
                timedelta(seconds=-1),
                "the ttl of run_once must be a timedelta that is not negative, got datetime",
                id="negative",
            ),
        ],
    )
    def test_a_setting_that_is_invalid_is_rejected(self, key: Any, ttl: Any, problem: str) -> None:
        with pytest.raises(BuildError) as rejected:
            job.Builder(BASE).run_once(key, ttl=ttl).build()
        (found,) = rejected.value.problems
        assert problem in found

    @pytest.mark.parametrize(
        ("seen", "key", "finished"),
        [
            pytest.param(live(condition("Complete")), "", True, id="complete, from before it ran once"),
            pytest.param(live(FAILED), "", True, id="failed"),
            pytest.param(live(condition("FailureTarget"), active=1), "", False, id="its last pods terminate"),
            pytest.param(live(condition("SuccessCriteriaMet")), "", False, id="criteria are met, pods terminate"),
            pytest.param(live(condition("Complete", "False")), "", False, id="not complete"),
            pytest.param(live(active=1), "", False, id="runs"),
            pytest.param(
                {**BASE, "metadata": {**BASE["metadata"], "labels": {"ocf.dev/run": "7"}}}, "7", False, id="with a key"
            ),
        ],
    )
    def test_a_run_has_ended_when_its_controller_says_so(self, seen: Manifest, key: str, finished: bool) -> None:
        resource = job.Builder(BASE).run_once("1").build()
        assert (resource.run_of(seen), resource.has_finished(seen)) == (key, finished)


TTL = "spec.ttlSecondsAfterFinished: Forbidden: the finished object would be deleted, and the next reconcile"


def test_a_time_to_live_in_the_baseline_is_rejected() -> None:
    """https://github.com/ansible/awx-resource-operator/issues/49: such a Job runs again and again."""
    with pytest.raises(BuildError) as rejected:
        job.Builder({**BASE, "spec": {**BASE["spec"], "ttlSecondsAfterFinished": 60}}).build()
    assert TTL in str(rejected.value)
    assert "run_once(key, ttl=...)" in str(rejected.value)


def test_a_time_to_live_in_a_mutation_is_rejected() -> None:
    def mutate(m: job.Mutator) -> None:
        m.edit_job_spec(lambda spec: spec.set_ttl_seconds_after_finished(60))

    with pytest.raises(MutationError) as rejected:
        job.Builder(BASE).run_once("1").with_mutation(job.Mutation("ttl", mutate)).build().render()
    assert TTL in str(rejected.value)


def test_a_job_that_runs_once_needs_the_right_to_delete_the_one_of_an_earlier_run() -> None:
    def verbs(builder: job.Builder) -> set[str]:
        kept = builder.with_custom_suspend_deletion_decision(None)
        subject = component.Builder("migration", condition_type="Migrated").with_resource(kept).build()
        rules = policy_rules([subject], owner=ObjectKey("v1", "ConfigMap", "owner", "shop"))
        return {rule.verb for rule in rules if rule.resource == "jobs"}

    assert verbs(job.Builder(BASE)) == {"get", "create", "patch"}
    assert verbs(job.Builder(BASE).run_once("1")) == {"get", "create", "patch", "delete"}
