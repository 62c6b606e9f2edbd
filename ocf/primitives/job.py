"""The Job (`batch/v1`): completable, suspendable.

Suspending stops its pods and then deletes it; resuming creates it again, so it runs again from the start, unless it has
finished and runs once.
"""

from __future__ import annotations

from functools import partial
from typing import Final, TypeAlias

from ocf import feature
from ocf.concepts import ApplyOperation, CompletionStatus, StatusReport, SuspensionStatus
from ocf.editors import JobSpecEditor, ObjectMetaEditor, PodSpecEditor
from ocf.editors.keyed_lists import CONTAINERS, INIT_CONTAINERS
from ocf.lazy_types.kubernetes import V1Job
from ocf.primitives.containers import ContainerEdits, ContainerListEdits, PodMutator
from ocf.primitives.kind import Handlers, Kind
from ocf.primitives.mutator import Edits
from ocf.primitives.single_run import SingleRunBuilder, SingleRunResource, expiry_errors
from ocf.primitives.status import conditions_of

__all__ = [
    "Builder",
    "Mutation",
    "Mutator",
    "Resource",
    "default_converging_status_handler",
    "default_suspension_status_handler",
]


class Mutator(PodMutator):
    """Records edits of a Job, in this order: metadata, spec, pod template, containers, init containers."""

    edit_object_metadata = Edits(ObjectMetaEditor, "metadata")
    edit_job_spec = Edits(JobSpecEditor, "spec")
    edit_pod_template_metadata = Edits(ObjectMetaEditor, "spec.template.metadata")
    edit_pod_spec = Edits(PodSpecEditor, "spec.template.spec")
    _container_presence = ContainerListEdits(CONTAINERS)
    edit_containers = ContainerEdits("containers")
    _init_container_presence = ContainerListEdits(INIT_CONTAINERS)
    edit_init_containers = ContainerEdits("init_containers")


Mutation: TypeAlias = feature.Mutation[Mutator]
"""A mutation of a Job."""

Resource: TypeAlias = SingleRunResource["V1Job", Mutator]
"""A Job as a resource of a component."""


_TTL: Final = ("spec", "ttlSecondsAfterFinished")


def _suspend(mutator: Mutator) -> None:
    @mutator.edit_job_spec
    def _(spec: JobSpecEditor) -> None:
        spec.raw.suspend = True


# Default status handlers of a Job (API reference, `JobStatus`).


def default_converging_status_handler(operation: ApplyOperation, live: V1Job) -> StatusReport[CompletionStatus]:
    """Return the status of a Job.

    Args:
        operation: What this reconcile did to the object.
        live: The object as the API server returned it.

    Returns:
        `Completed` once the Job has the condition `Complete`; `TaskFailing` once it has `Failed`, or `FailureTarget`
        while its last pods terminate; before that `TaskRunning` while it has active pods, else `TaskPending`.
    """
    for condition in conditions_of(live.status):
        if condition.type == "Complete" and condition.status == "True":
            return StatusReport(CompletionStatus.COMPLETED, "Job completed successfully")
        if condition.type in {"Failed", "FailureTarget"} and condition.status == "True":
            parts = filter(None, ("Job failed", condition.reason, condition.message))
            return StatusReport(CompletionStatus.FAILING, ": ".join(parts))
    active = _active(live)
    if active:
        return StatusReport(CompletionStatus.RUNNING, f"Job has {active} active pod(s)")
    if live.spec and live.spec.suspend:
        return StatusReport(CompletionStatus.PENDING, "Job is suspended: spec.suspend is true")
    created = "was just created," if operation is ApplyOperation.CREATED else "is"
    return StatusReport(CompletionStatus.PENDING, f"Job {created} waiting for pods to be scheduled")


def default_suspension_status_handler(live: V1Job) -> StatusReport[SuspensionStatus]:
    """Return the suspension status of a Job.

    Args:
        live: The object as the API server returned it.

    Returns:
        `Suspended` once `spec.suspend` is true and no pod is active; `Suspending` before that.
    """
    active = _active(live)
    if not (live.spec and live.spec.suspend):
        return StatusReport(SuspensionStatus.SUSPENDING, "Waiting for Job suspend field to be applied")
    if active:
        return StatusReport(SuspensionStatus.SUSPENDING, f"Job is suspending, {active} pod(s) still active")
    return StatusReport(SuspensionStatus.SUSPENDED, "Job is suspended")


def _active(live: V1Job) -> int:
    return (live.status.active if live.status else None) or 0


class Builder(SingleRunBuilder[V1Job, Mutator]):
    """Builds a Job.

    Args:
        base: The desired baseline: a `V1Job`, a manifest, or a YAML text with one document.

    Example:
        >>> from datetime import timedelta
        >>> resource = Builder('''
        ...     apiVersion: batch/v1
        ...     kind: Job
        ...     metadata: {name: migration, namespace: shop}
        ...     spec: {template: {spec: {restartPolicy: Never, containers: [{name: migration, image: "shop:2"}]}}}
        ... ''').run_once("2", ttl=timedelta(hours=1)).build()
        >>> resource.render()["metadata"]["labels"]
        {'ocf.dev/run': '2'}
    """

    kind = Kind("batch/v1", "Job", "V1Job", Mutator, validate=partial(expiry_errors, _TTL))
    expiry_field = _TTL
    handlers = Handlers(
        status=default_converging_status_handler,
        suspend=_suspend,
        suspension=default_suspension_status_handler,
        delete_on_suspend=lambda _base: True,
    )
