"""The Job (`batch/v1`): completable, suspendable.

Suspending stops its pods and then deletes it; resuming creates it again, so it runs again from the start.
"""

from __future__ import annotations

from typing import TypeAlias

from ocf import feature
from ocf.concepts import CompletionStatus
from ocf.editors import CONTAINERS, INIT_CONTAINERS, JobSpecEditor, ObjectMetaEditor, PodSpecEditor
from ocf.lazy_types.kubernetes import V1Job
from ocf.objects import Manifest
from ocf.primitives.builder import TaskBuilder
from ocf.primitives.containers import ContainerEdits, ContainerListEdits, PodMutator
from ocf.primitives.job.status import default_converging_status_handler, default_suspension_status_handler
from ocf.primitives.kind import Handlers, Kind
from ocf.primitives.mutator import Edits
from ocf.primitives.resource import TaskResource

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

Resource: TypeAlias = TaskResource["V1Job", Mutator]
"""A Job as a resource of a component."""


def _suspend(mutator: Mutator) -> None:
    @mutator.edit_job_spec
    def _(spec: JobSpecEditor) -> None:
        spec.raw.suspend = True


_KIND: Kind[V1Job, Mutator] = Kind("batch/v1", "Job", "V1Job", Mutator)
_HANDLERS: Handlers[V1Job, Mutator, CompletionStatus] = Handlers(
    status=default_converging_status_handler,
    suspend=_suspend,
    suspension=default_suspension_status_handler,
    delete_on_suspend=lambda _base: True,
)


class Builder(TaskBuilder[V1Job, Mutator]):
    """Builds a Job.

    Args:
        base: The desired baseline: a `V1Job`, a manifest, or a YAML text with one document.
    """

    def __init__(self, base: V1Job | Manifest | str) -> None:
        super().__init__(base, _KIND, _HANDLERS)
