"""The CronJob (`batch/v1`): operational, graceful, suspendable.

Suspending stops it from creating Jobs and waits for the active ones; it is kept.
"""

from __future__ import annotations

from typing import Final, TypeAlias

from ocf import feature
from ocf.concepts import ApplyOperation, GraceStatus, OperationalStatus, StatusReport, SuspensionStatus
from ocf.editors import CronJobSpecEditor, JobSpecEditor, ObjectMetaEditor, PodSpecEditor
from ocf.editors.keyed_lists import CONTAINERS, INIT_CONTAINERS
from ocf.lazy_types.kubernetes import V1CronJob
from ocf.primitives.builder import IntegrationBuilder
from ocf.primitives.containers import ContainerEdits, ContainerListEdits, PodMutator
from ocf.primitives.kind import Handlers, Kind
from ocf.primitives.mutator import Edits
from ocf.primitives.resource import IntegrationResource

__all__ = [
    "Builder",
    "Mutation",
    "Mutator",
    "Resource",
    "default_grace_status_handler",
    "default_operational_status_handler",
    "default_suspension_status_handler",
]

_TEMPLATE: Final = "spec.job_template.spec.template"


class Mutator(PodMutator):
    """Records edits of a CronJob: metadata, spec, spec of its Jobs, pod template, containers, init containers."""

    edit_object_metadata = Edits(ObjectMetaEditor, "metadata")
    edit_cronjob_spec = Edits(CronJobSpecEditor, "spec")
    edit_job_spec = Edits(JobSpecEditor, "spec.job_template.spec")
    edit_pod_template_metadata = Edits(ObjectMetaEditor, f"{_TEMPLATE}.metadata")
    edit_pod_spec = Edits(PodSpecEditor, f"{_TEMPLATE}.spec")
    _container_presence = ContainerListEdits(CONTAINERS, f"{_TEMPLATE}.spec")
    edit_containers = ContainerEdits("containers", f"{_TEMPLATE}.spec")
    _init_container_presence = ContainerListEdits(INIT_CONTAINERS, f"{_TEMPLATE}.spec")
    edit_init_containers = ContainerEdits("init_containers", f"{_TEMPLATE}.spec")


Mutation: TypeAlias = feature.Mutation[Mutator]
"""A mutation of a CronJob."""

Resource: TypeAlias = IntegrationResource["V1CronJob", Mutator]
"""A CronJob as a resource of a component."""


def _suspend(mutator: Mutator) -> None:
    @mutator.edit_cronjob_spec
    def _(spec: CronJobSpecEditor) -> None:
        spec.raw.suspend = True


# Default status handlers of a CronJob (API reference, `CronJobStatus`).
#
# A CronJob only creates Jobs, so it works as soon as it exists; failures are reported by its Jobs. Its first schedule
# may be later than the end of any grace period.


def default_operational_status_handler(
    operation: ApplyOperation,  # noqa: ARG001 (the signature of every status handler)
    live: V1CronJob,  # noqa: ARG001
) -> StatusReport[OperationalStatus]:
    """Return `Operational`.

    Args:
        operation: What this reconcile did to the object; not used.
        live: The object as the API server returned it; not used.
    """
    return StatusReport(OperationalStatus.OPERATIONAL, "CronJob is operational")


def default_grace_status_handler(
    live: V1CronJob,  # noqa: ARG001 (the signature of every grace handler)
) -> StatusReport[GraceStatus]:
    """Return `Healthy`.

    Args:
        live: The object as the API server returned it; not used.
    """
    return StatusReport(GraceStatus.HEALTHY, "CronJob is operational")


def default_suspension_status_handler(live: V1CronJob) -> StatusReport[SuspensionStatus]:
    """Return the suspension status of a CronJob.

    Args:
        live: The object as the API server returned it.

    Returns:
        `Suspended` once `spec.suspend` is true and no Job is active; `Suspending` before that. Active Jobs run to
        their end.
    """
    active = len((live.status.active if live.status else None) or ())
    if not live.spec.suspend:
        return StatusReport(SuspensionStatus.SUSPENDING, "Waiting for suspend flag to be applied")
    if active:
        return StatusReport(SuspensionStatus.SUSPENDING, f"CronJob suspended but {active} active jobs still running")
    return StatusReport(SuspensionStatus.SUSPENDED, "CronJob suspended")


class Builder(IntegrationBuilder[V1CronJob, Mutator]):
    """Builds a CronJob.

    Args:
        base: The desired baseline: a `V1CronJob`, a manifest, or a YAML text with one document.
    """

    kind = Kind("batch/v1", "CronJob", "V1CronJob", Mutator)
    handlers = Handlers(
        status=default_operational_status_handler,
        grace=default_grace_status_handler,
        suspend=_suspend,
        suspension=default_suspension_status_handler,
    )
