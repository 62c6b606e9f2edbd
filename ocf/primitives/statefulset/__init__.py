"""The StatefulSet (`apps/v1`): alive, graceful, suspendable.

Suspending scales it to zero and keeps the volume claims of its pods, so no data is lost.
"""

from __future__ import annotations

from typing import TypeAlias

from ocf import feature
from ocf.concepts import AliveStatus
from ocf.editors import (
    CONTAINERS,
    INIT_CONTAINERS,
    VOLUME_CLAIM_TEMPLATES,
    ObjectMetaEditor,
    PodSpecEditor,
    StatefulSetSpecEditor,
)
from ocf.lazy_types.kubernetes import V1PersistentVolumeClaim, V1StatefulSet
from ocf.objects import Manifest
from ocf.primitives.builder import WorkloadBuilder
from ocf.primitives.containers import ContainerEdits, ContainerListEdits, PodTemplateMutator
from ocf.primitives.kind import Handlers, Kind, OnManifest
from ocf.primitives.list_edits import ListEdits
from ocf.primitives.mutator import Edits
from ocf.primitives.resource import WorkloadResource
from ocf.primitives.statefulset.status import (
    default_converging_status_handler,
    default_grace_status_handler,
    default_suspension_status_handler,
)

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
    """Records edits of a StatefulSet, in this order: metadata, spec, pod template, containers, init containers, claims.

    The API server rejects changes of the volume claim templates of an existing StatefulSet, so edits of them only have
    an effect when it is created.
    """

    edit_object_metadata = Edits(ObjectMetaEditor, "metadata")
    edit_statefulset_spec = Edits(StatefulSetSpecEditor, "spec")
    edit_pod_template_metadata = Edits(ObjectMetaEditor, "spec.template.metadata")
    edit_pod_spec = Edits(PodSpecEditor, "spec.template.spec")
    _container_presence = ContainerListEdits(CONTAINERS)
    edit_containers = ContainerEdits("containers")
    _init_container_presence = ContainerListEdits(INIT_CONTAINERS)
    edit_init_containers = ContainerEdits("init_containers")
    _volume_claim_template_presence = ListEdits(VOLUME_CLAIM_TEMPLATES, "spec")

    def ensure_replicas(self, replicas: int) -> None:
        """Record the desired number of replicas, as a spec edit."""
        self.edit_statefulset_spec(lambda spec: spec.set_replicas(replicas))

    def ensure_volume_claim_template(self, claim: V1PersistentVolumeClaim) -> None:
        """Record a volume claim template: it replaces the one of the same name at its position, or is appended."""
        self._volume_claim_template_presence.ensure(claim)

    def remove_volume_claim_template(self, *names: str) -> None:
        """Record the removal of volume claim templates with these names."""
        self._volume_claim_template_presence.remove(*names)


Mutation: TypeAlias = feature.Mutation[Mutator]
"""A mutation of a StatefulSet."""

Resource: TypeAlias = WorkloadResource["V1StatefulSet", Mutator]
"""A StatefulSet as a resource of a component."""


_KIND: Kind[V1StatefulSet, Mutator] = Kind("apps/v1", "StatefulSet", "V1StatefulSet", Mutator)
_HANDLERS: Handlers[V1StatefulSet, Mutator, AliveStatus] = Handlers(
    status=OnManifest(default_converging_status_handler),
    grace=OnManifest(default_grace_status_handler),
    suspend=lambda mutator: mutator.ensure_replicas(0),
    suspension=OnManifest(default_suspension_status_handler),
)


class Builder(WorkloadBuilder[V1StatefulSet, Mutator]):
    """Builds a StatefulSet.

    Args:
        base: The desired baseline: a `V1StatefulSet`, a manifest, or a YAML text with one document. Omit
            `replicas` if an autoscaler sets it.
    """

    def __init__(self, base: V1StatefulSet | Manifest | str) -> None:
        super().__init__(base, _KIND, _HANDLERS)
