"""The Deployment (`apps/v1`): alive, graceful, suspendable.

Suspending scales it to zero; resuming restores the replica count of the baseline or, if an autoscaler sets the count,
the live count from before the suspension.
"""

from __future__ import annotations

from typing import TypeAlias

from ocf import feature
from ocf.concepts import AliveStatus
from ocf.editors import CONTAINERS, INIT_CONTAINERS, DeploymentSpecEditor, ObjectMetaEditor, PodSpecEditor
from ocf.lazy_types.kubernetes import V1Deployment
from ocf.objects import Manifest
from ocf.primitives.builder import WorkloadBuilder
from ocf.primitives.containers import ContainerEdits, ContainerListEdits, PodTemplateMutator
from ocf.primitives.deployment.status import (
    default_converging_status_handler,
    default_grace_status_handler,
    default_suspension_status_handler,
)
from ocf.primitives.kind import Handlers, Kind, OnManifest
from ocf.primitives.mutator import Edits
from ocf.primitives.resource import WorkloadResource

__all__ = [
    "Builder",
    "Mutation",
    "Mutator",
    "Resource",
    "default_converging_status_handler",
    "default_grace_status_handler",
    "default_suspension_status_handler",
]


class Mutator(PodTemplateMutator):
    """Records edits of a Deployment, in this order: metadata, spec, pod template, containers, init containers."""

    edit_object_metadata = Edits(ObjectMetaEditor, "metadata")
    edit_deployment_spec = Edits(DeploymentSpecEditor, "spec")
    edit_pod_template_metadata = Edits(ObjectMetaEditor, "spec.template.metadata")
    edit_pod_spec = Edits(PodSpecEditor, "spec.template.spec")
    _container_presence = ContainerListEdits(CONTAINERS)
    edit_containers = ContainerEdits("containers")
    _init_container_presence = ContainerListEdits(INIT_CONTAINERS)
    edit_init_containers = ContainerEdits("init_containers")

    def ensure_replicas(self, replicas: int) -> None:
        """Record the desired number of replicas, as a spec edit."""
        self.edit_deployment_spec(lambda spec: spec.set_replicas(replicas))


Mutation: TypeAlias = feature.Mutation[Mutator]
"""A mutation of a Deployment."""

Resource: TypeAlias = WorkloadResource["V1Deployment", Mutator]
"""A Deployment as a resource of a component."""


_KIND: Kind[V1Deployment, Mutator] = Kind("apps/v1", "Deployment", "V1Deployment", Mutator)
_HANDLERS: Handlers[V1Deployment, Mutator, AliveStatus] = Handlers(
    status=OnManifest(default_converging_status_handler),
    grace=OnManifest(default_grace_status_handler),
    suspend=lambda mutator: mutator.ensure_replicas(0),
    suspension=OnManifest(default_suspension_status_handler),
)


class Builder(WorkloadBuilder[V1Deployment, Mutator]):
    """Builds a Deployment.

    Args:
        base: The desired baseline: a `V1Deployment`, a manifest, or a YAML text with one document. Omit
            `replicas` if an autoscaler sets it.
    """

    def __init__(self, base: V1Deployment | Manifest | str) -> None:
        super().__init__(base, _KIND, _HANDLERS)
