"""Default handlers of all kinds, and the handlers that a workload and a task require."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import pytest

from ocf.concepts import AliveStatus, ApplyOperation, CompletionStatus, GraceStatus, StatusReport, SuspensionStatus
from ocf.editors import ObjectMetaEditor
from ocf.errors import BuildError
from ocf.primitives import BaseMutator, Edits, Handlers, Kind, TaskBuilder, WorkloadBuilder
from ocf.primitives.kind import OnManifest

if TYPE_CHECKING:
    from kubernetes.client import V1DaemonSet, V1Job

    from ocf.objects import Manifest


class Mutator(BaseMutator):
    edit_object_metadata = Edits(ObjectMetaEditor, "metadata")


DAEMON_SET: Kind[V1DaemonSet, Mutator] = Kind("apps/v1", "DaemonSet", "V1DaemonSet", Mutator)
JOB: Kind[V1Job, Mutator] = Kind("batch/v1", "Job", "V1Job", Mutator)


def base(api_version: str, kind: str) -> Manifest:
    spec: dict[str, Any] = {"template": {"spec": {"containers": []}}}
    if kind == "DaemonSet":
        spec["selector"] = {}
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": "x", "namespace": "shop"}, "spec": spec}


def test_grace_and_suspension_have_defaults() -> None:
    builder = WorkloadBuilder(base("apps/v1", "DaemonSet"), DAEMON_SET, Handlers())
    resource = builder.with_custom_converge_status(lambda *_: StatusReport(AliveStatus.HEALTHY)).build()
    live = base("apps/v1", "DaemonSet")
    assert resource.grace_status(live) == StatusReport(GraceStatus.HEALTHY, "default grace status")
    assert resource.suspension_status(live) == StatusReport(SuspensionStatus.SUSPENDED, "default suspension status")
    assert resource.render(suspended=True) == live
    assert resource.delete_on_suspend() is False


def test_a_workload_and_a_task_need_a_status_handler() -> None:
    with pytest.raises(BuildError, match="converging status handler is required"):
        WorkloadBuilder(base("apps/v1", "DaemonSet"), DAEMON_SET, Handlers()).build()
    with pytest.raises(BuildError, match="converging status handler is required"):
        TaskBuilder(base("batch/v1", "Job"), JOB, Handlers()).build()


def test_the_handlers_of_a_kind_are_checked_for_each_of_its_resources() -> None:
    async def judge(_live: object) -> StatusReport[GraceStatus]:
        return StatusReport(GraceStatus.HEALTHY)

    wrong: Any = {"grace": OnManifest(cast("Any", judge)), "suspension": "never"}
    declared: Handlers[Any, Any, AliveStatus] = Handlers(status=lambda *_: StatusReport(AliveStatus.HEALTHY), **wrong)
    for _ in range(2):
        with pytest.raises(BuildError) as error:
            WorkloadBuilder(base("apps/v1", "DaemonSet"), DAEMON_SET, declared).build()
        assert error.value.problems == (
            "grace handler must be a plain function, without async and yield",
            "suspension handler must be a function, not of type str",
        )
    fixed = WorkloadBuilder(base("apps/v1", "DaemonSet"), DAEMON_SET, declared)
    fixed.with_custom_grace_status(None).with_custom_suspend_status(None).build()


def test_a_task_reports_in_its_own_words() -> None:
    running = StatusReport(CompletionStatus.RUNNING, "half way")
    builder = TaskBuilder(base("batch/v1", "Job"), JOB, Handlers())
    resource = builder.with_custom_converge_status(lambda *_: running).build()
    assert resource.completion_status(ApplyOperation.NONE, base("batch/v1", "Job")) == running
