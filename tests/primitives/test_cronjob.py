"""The CronJob primitive: status, suspension, and the order of its nine categories."""

from typing import Any

import pytest
from kubernetes.client import V1Container

from ocf.concepts import (
    ApplyOperation,
    GraceStatus,
    OperationalStatus,
    StatusReport,
    SuspensionStatus,
)
from ocf.editors import all_containers
from ocf.errors import MutationError
from ocf.objects import Manifest
from ocf.primitives import cronjob

POD: Manifest = {"restartPolicy": "Never", "containers": [{"name": "backup", "image": "backup:1"}]}
BASE: Manifest = {
    "apiVersion": "batch/v1",
    "kind": "CronJob",
    "metadata": {"name": "backup", "namespace": "shop"},
    "spec": {"schedule": "0 2 * * *", "jobTemplate": {"spec": {"template": {"spec": POD}}}},
}


def live(active: int, *, suspend: bool | None) -> Manifest:
    status = {"active": [{"kind": "Job", "name": f"backup-{number}"} for number in range(active)]}
    return {**BASE, "spec": {**BASE["spec"], "suspend": suspend}, "status": status}


@pytest.mark.parametrize("operation", list(ApplyOperation))
@pytest.mark.parametrize(
    "seen",
    [
        pytest.param(BASE, id="never scheduled"),
        pytest.param({**BASE, "status": {"lastScheduleTime": "2026-01-01T02:00:00Z"}}, id="scheduled"),
        pytest.param(live(1, suspend=True), id="suspended by a user"),
    ],
)
def test_it_is_operational_as_soon_as_it_exists(seen: Manifest, operation: ApplyOperation) -> None:
    """Its first schedule may be later than the end of the grace period; its Jobs report failures."""
    resource = cronjob.Builder(BASE).build()
    expected = StatusReport(OperationalStatus.OPERATIONAL, "CronJob is operational")
    assert resource.operational_status(operation, seen) == expected
    assert resource.grace_status(seen) == StatusReport(GraceStatus.HEALTHY, "CronJob is operational")


WAITING = "Waiting for suspend flag to be applied"


@pytest.mark.parametrize(
    ("seen", "status", "reason"),
    [
        pytest.param(
            live(2, suspend=True), "Suspending", "CronJob suspended but 2 active jobs still running", id="two"
        ),
        pytest.param(live(0, suspend=True), "Suspended", "CronJob suspended", id="no active Job"),
        pytest.param(live(0, suspend=False), "Suspending", WAITING, id="not yet applied"),
        pytest.param(live(1, suspend=None), "Suspending", WAITING, id="unset"),
        pytest.param(BASE, "Suspending", WAITING, id="without a status"),
    ],
)
def test_suspension_status(seen: Manifest, status: str, reason: str) -> None:
    report = cronjob.Builder(BASE).build().suspension_status(seen)
    assert report == StatusReport(SuspensionStatus(status), reason)


def test_suspending_sets_its_flag_and_keeps_it() -> None:
    resource = cronjob.Builder(BASE).build()
    assert resource.delete_on_suspend() is False
    assert resource.render(suspended=True)["spec"] == {**BASE["spec"], "suspend": True}


def test_nine_categories_run_in_the_declared_order() -> None:
    ran: list[str] = []

    def mutate(m: Any) -> None:
        m.edit_init_containers(all_containers)(lambda container: ran.append(f"init {container.raw.name}"))
        m.ensure_init_container(V1Container(name="setup"))
        m.edit_containers(all_containers)(lambda container: ran.append(container.raw.name))
        m.ensure_container(V1Container(name="upload"))
        m.edit_pod_spec(lambda spec: ran.append(f"pod of {len(spec.raw.containers)}"))
        m.edit_pod_template_metadata(lambda _: ran.append("template"))
        m.edit_job_spec(lambda _: ran.append("job spec"))
        m.edit_cronjob_spec(lambda _: ran.append("spec"))
        m.edit_object_metadata(lambda _: ran.append("metadata"))

    cronjob.Builder(BASE).with_mutation(cronjob.Mutation("m", mutate)).build().render()
    assert ran == ["metadata", "spec", "job spec", "template", "pod of 1", "backup", "upload", "init setup"]
    assert [category.name for category in cronjob.Mutator.categories] == [
        "edit_object_metadata",
        "edit_cronjob_spec",
        "edit_job_spec",
        "edit_pod_template_metadata",
        "edit_pod_spec",
        "container_presence",
        "edit_containers",
        "init_container_presence",
        "edit_init_containers",
    ]


def test_every_category_edits_its_part() -> None:
    def mutate(m: Any) -> None:
        m.ensure_container_arg("--fast")
        m.edit_pod_spec(lambda spec: spec.set_service_account_name("backup"))
        m.edit_pod_template_metadata(lambda meta: meta.ensure_label("app", "backup"))
        m.edit_job_spec(lambda spec: spec.set_backoff_limit(2))
        m.edit_cronjob_spec(lambda spec: spec.set_time_zone("Etc/UTC"))

    spec = cronjob.Builder(BASE).with_mutation(cronjob.Mutation("m", mutate)).build().render()["spec"]
    template = spec["jobTemplate"]["spec"]["template"]
    assert spec["timeZone"] == "Etc/UTC"
    assert spec["jobTemplate"]["spec"]["backoffLimit"] == 2
    assert template["metadata"] == {"labels": {"app": "backup"}}
    assert template["spec"]["serviceAccountName"] == "backup"
    assert template["spec"]["containers"] == [{"name": "backup", "image": "backup:1", "args": ["--fast"]}]


def test_an_edit_inside_of_an_unset_job_spec_names_the_missing_field() -> None:
    base = {**BASE, "spec": {"schedule": "0 2 * * *", "jobTemplate": {}}}
    mutation = cronjob.Mutation("m", lambda m: m.ensure_container_arg("--fast"))
    with pytest.raises(MutationError, match=r"spec\.jobTemplate\.spec: required value") as caught:
        cronjob.Builder(base).with_mutation(mutation).build().render()
    assert caught.value.category == "edit_containers"
