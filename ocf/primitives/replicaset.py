"""The ReplicaSet (`apps/v1`): alive, graceful, suspendable.

Suspending scales it to zero. Use a Deployment unless the operator replaces pods itself: a changed pod template applies
to new pods only, so existing pods keep the old one.
"""

from __future__ import annotations

from typing import Final, TypeAlias

from ocf import feature
from ocf.editors import ObjectMetaEditor, PodSpecEditor, ReplicaSetSpecEditor
from ocf.editors.keyed_lists import CONTAINERS, INIT_CONTAINERS
from ocf.lazy_types.kubernetes import V1ReplicaSet
from ocf.lazy_types.pydantic import BaseModel
from ocf.objects import Manifest
from ocf.primitives.builder import WorkloadBuilder
from ocf.primitives.containers import ContainerEdits, ContainerListEdits, PodMutator
from ocf.primitives.kind import Handlers, Kind, OnManifest
from ocf.primitives.mutator import Edits
from ocf.primitives.resource import WorkloadResource
from ocf.primitives.status import RolloutStatus, replica_counts

__all__ = [
    "Builder",
    "Mutation",
    "Mutator",
    "Resource",
    "default_converging_status_handler",
    "default_grace_status_handler",
    "default_suspension_status_handler",
]


class Mutator(PodMutator):
    """Records edits of a ReplicaSet, in this order: metadata, spec, pod template, containers, init containers."""

    edit_object_metadata = Edits(ObjectMetaEditor, "metadata")
    edit_replicaset_spec = Edits(ReplicaSetSpecEditor, "spec")
    edit_pod_template_metadata = Edits(ObjectMetaEditor, "spec.template.metadata")
    edit_pod_spec = Edits(PodSpecEditor, "spec.template.spec")
    _container_presence = ContainerListEdits(CONTAINERS)
    edit_containers = ContainerEdits("containers")
    _init_container_presence = ContainerListEdits(INIT_CONTAINERS)
    edit_init_containers = ContainerEdits("init_containers")

    def ensure_replicas(self, replicas: int) -> None:
        """Record the desired number of replicas, as a spec edit."""
        self.edit_replicaset_spec(lambda spec: spec.set_replicas(replicas))


Mutation: TypeAlias = feature.Mutation[Mutator]
"""A mutation of a ReplicaSet."""

Resource: TypeAlias = WorkloadResource["V1ReplicaSet", Mutator]
"""A ReplicaSet as a resource of a component."""


def _suspend(mutator: Mutator) -> None:
    mutator.ensure_replicas(0)


# Default status handlers of a ReplicaSet (API reference, `ReplicaSetStatus`).
#
# A ReplicaSet has no rollout: a changed pod template applies to new pods only.


def _pending(live: BaseModel | Manifest, desired: int) -> str:
    surplus = replica_counts(live).running - desired
    return f"Waiting for scale-down: {surplus} surplus replicas pending termination" if surplus > 0 else ""


_STATUS: Final = RolloutStatus(kind="ReplicaSet", controller="replicaset", counts=replica_counts, pending=_pending)

default_converging_status_handler: Final = _STATUS.converging
"""Status handler: `Healthy` once the latest spec is observed, exactly the desired replicas are ready and no others
exist; before that `Creating` or `Updating`, and `Scaling` while only the number of ready replicas differs."""

default_grace_status_handler: Final = _STATUS.grace
"""Grace handler: `Down` if replicas are desired and none is ready, `Degraded` while anything else is incomplete, else
`Healthy`."""

default_suspension_status_handler: Final = _STATUS.suspension
"""Suspension handler: `Suspended` once the status counts no replicas."""


class Builder(WorkloadBuilder[V1ReplicaSet, Mutator]):
    """Builds a ReplicaSet.

    Args:
        base: The desired baseline: a `V1ReplicaSet`, a manifest, or a YAML text with one document. Omit
            `replicas` if an autoscaler sets it.
    """

    kind = Kind("apps/v1", "ReplicaSet", "V1ReplicaSet", Mutator, selector=("spec", "selector", "matchLabels"))
    handlers = Handlers(
        status=OnManifest(default_converging_status_handler),
        grace=OnManifest(default_grace_status_handler),
        suspend=_suspend,
        suspension=OnManifest(default_suspension_status_handler),
    )
