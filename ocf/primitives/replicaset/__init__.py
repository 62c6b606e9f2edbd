"""The ReplicaSet (`apps/v1`): alive, graceful, suspendable.

Suspending scales it to zero. Use a Deployment unless the operator replaces pods itself: a changed pod template applies
to new pods only, so existing pods keep the old one.
"""

from __future__ import annotations

from typing import TypeAlias

from ocf import feature
from ocf.concepts import AliveStatus
from ocf.editors import CONTAINERS, INIT_CONTAINERS, ObjectMetaEditor, PodSpecEditor, ReplicaSetSpecEditor
from ocf.lazy_types.kubernetes import V1ReplicaSet
from ocf.objects import Manifest
from ocf.primitives.builder import WorkloadBuilder
from ocf.primitives.containers import ContainerEdits, ContainerListEdits, PodMutator
from ocf.primitives.kind import Handlers, Kind, OnManifest
from ocf.primitives.mutator import Edits
from ocf.primitives.replicaset.status import (
    default_converging_status_handler,
    default_grace_status_handler,
    default_suspension_status_handler,
)
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

_KIND: Kind[V1ReplicaSet, Mutator] = Kind("apps/v1", "ReplicaSet", "V1ReplicaSet", Mutator)
_HANDLERS: Handlers[V1ReplicaSet, Mutator, AliveStatus] = Handlers(
    status=OnManifest(default_converging_status_handler),
    grace=OnManifest(default_grace_status_handler),
    suspend=lambda mutator: mutator.ensure_replicas(0),
    suspension=OnManifest(default_suspension_status_handler),
)


class Builder(WorkloadBuilder[V1ReplicaSet, Mutator]):
    """Builds a ReplicaSet.

    Args:
        base: The desired baseline: a `V1ReplicaSet`, a manifest, or a YAML text with one document. Omit
            `replicas` if an autoscaler sets it.
    """

    def __init__(self, base: V1ReplicaSet | Manifest | str) -> None:
        super().__init__(base, _KIND, _HANDLERS)
