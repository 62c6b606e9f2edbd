"""The Deployment (`apps/v1`): alive, graceful, suspendable.

Suspending scales it to zero; resuming restores the replica count of the baseline or, if an autoscaler sets the count,
the live count from before the suspension.
"""

from __future__ import annotations

from typing import Final, TypeAlias

from ocf import feature
from ocf.editors import DeploymentSpecEditor, ObjectMetaEditor, PodSpecEditor
from ocf.editors.keyed_lists import CONTAINERS, INIT_CONTAINERS
from ocf.lazy_types.kubernetes import V1Deployment
from ocf.lazy_types.pydantic import BaseModel
from ocf.objects import Manifest
from ocf.primitives.builder import WorkloadBuilder
from ocf.primitives.containers import ContainerEdits, ContainerListEdits, PodTemplateMutator
from ocf.primitives.kind import Handlers, Kind, OnManifest
from ocf.primitives.mutator import Edits
from ocf.primitives.resource import WorkloadResource
from ocf.primitives.status import RolloutStatus, live_count, live_field, replica_counts

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


def _suspend(mutator: Mutator) -> None:
    mutator.ensure_replicas(0)


# Default status handlers of a Deployment (API reference, `DeploymentStatus`).


def _pending(live: BaseModel | Manifest, desired: int) -> str:
    """Return what a rollout still has to do; a paused rollout only has to remove surplus replicas."""
    updated = live_count(live, "status", "updatedReplicas")
    total = live_count(live, "status", "replicas")
    if not live_field(live, "spec", "paused") and updated != desired:
        return f"Waiting for rollout: {updated}/{desired} replicas updated"
    if total > desired:
        return f"Waiting for rollout: {total - desired} old replicas pending termination"
    return ""


_STATUS: Final = RolloutStatus(kind="Deployment", controller="deployment", counts=replica_counts, pending=_pending)

default_converging_status_handler: Final = _STATUS.converging
"""Status handler: `Healthy` once the latest spec is observed, exactly the desired replicas are ready and the rollout is
complete; before that `Creating` or `Updating`, and `Scaling` while only the number of ready replicas differs."""

default_grace_status_handler: Final = _STATUS.grace
"""Grace handler: `Down` if replicas are desired and none is ready, `Degraded` while anything else is incomplete, else
`Healthy`."""

default_suspension_status_handler: Final = _STATUS.suspension
"""Suspension handler: `Suspended` once the status counts no replicas."""


class Builder(WorkloadBuilder[V1Deployment, Mutator]):
    """Builds a Deployment.

    Args:
        base: The desired baseline: a `V1Deployment`, a manifest, or a YAML text with one document. Omit
            `replicas` if an autoscaler sets it.
    """

    kind = Kind("apps/v1", "Deployment", "V1Deployment", Mutator, selector=("spec", "selector", "matchLabels"))
    handlers = Handlers(
        status=OnManifest(default_converging_status_handler),
        grace=OnManifest(default_grace_status_handler),
        suspend=_suspend,
        suspension=OnManifest(default_suspension_status_handler),
    )
