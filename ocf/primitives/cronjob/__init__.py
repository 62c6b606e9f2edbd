"""The CronJob (`batch/v1`): operational, graceful, suspendable.

Suspending stops it from creating Jobs and waits for the active ones; it is kept.
"""

from __future__ import annotations

from typing import Final, TypeAlias

from ocf import feature
from ocf.concepts import OperationalStatus
from ocf.editors import CONTAINERS, INIT_CONTAINERS, CronJobSpecEditor, JobSpecEditor, ObjectMetaEditor, PodSpecEditor
from ocf.lazy_types.kubernetes import V1CronJob
from ocf.objects import Manifest
from ocf.primitives.builder import IntegrationBuilder
from ocf.primitives.containers import ContainerEdits, ContainerListEdits, PodMutator
from ocf.primitives.cronjob.status import (
    default_grace_status_handler,
    default_operational_status_handler,
    default_suspension_status_handler,
)
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


_KIND: Kind[V1CronJob, Mutator] = Kind("batch/v1", "CronJob", "V1CronJob", Mutator)
_HANDLERS: Handlers[V1CronJob, Mutator, OperationalStatus] = Handlers(
    status=default_operational_status_handler,
    grace=default_grace_status_handler,
    suspend=_suspend,
    suspension=default_suspension_status_handler,
)


class Builder(IntegrationBuilder[V1CronJob, Mutator]):
    """Builds a CronJob.

    Args:
        base: The desired baseline: a `V1CronJob`, a manifest, or a YAML text with one document.
    """

    def __init__(self, base: V1CronJob | Manifest | str) -> None:
        super().__init__(base, _KIND, _HANDLERS)
