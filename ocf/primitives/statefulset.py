"""The StatefulSet (`apps/v1`): alive, graceful, suspendable.

Suspending scales it to zero and keeps the volume claims of its pods, so no data is lost.
"""

from __future__ import annotations

from typing import Final, TypeAlias

from ocf import feature
from ocf.editors import ObjectMetaEditor, PodSpecEditor, StatefulSetSpecEditor
from ocf.editors.keyed_lists import CONTAINERS, INIT_CONTAINERS
from ocf.editors.stateful_set import VOLUME_CLAIM_TEMPLATES
from ocf.lazy_types.kubernetes import V1PersistentVolumeClaim, V1StatefulSet
from ocf.lazy_types.pydantic import BaseModel
from ocf.objects import Manifest
from ocf.primitives.builder import WorkloadBuilder
from ocf.primitives.containers import ContainerEdits, ContainerListEdits, PodTemplateMutator
from ocf.primitives.kind import Handlers, Kind, OnManifest
from ocf.primitives.mutator import Edits, ListEdits
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


def _suspend(mutator: Mutator) -> None:
    mutator.ensure_replicas(0)


# Default status handlers of a StatefulSet (API reference, `StatefulSetStatus`).
#
# A rollout is complete when the update strategy has done its part: it stops at the partition, and with `OnDelete` it
# replaces no pods at all until the user deletes them.


def _pending(live: BaseModel | Manifest, desired: int) -> str:
    status, strategy = live_field(live, "status"), live_field(live, "spec", "updateStrategy")
    if status is None:
        return ""
    surplus = live_count(status, "replicas") - desired
    if surplus > 0:
        return f"Waiting for rollout: {surplus} old replicas pending termination"
    if live_field(strategy, "type") == "OnDelete":
        return ""
    partition = live_count(strategy, "rollingUpdate", "partition")
    updated, expected = live_count(status, "updatedReplicas"), max(desired - partition, 0)
    # Pods below a partition keep their revision, so the current and the update revision stay different.
    if updated < expected or (not partition and updated != expected):
        return f"Waiting for rollout: {updated}/{expected} replicas updated"
    if not partition and live_field(status, "currentRevision") != live_field(status, "updateRevision"):
        return "Waiting for rollout: the latest revision is not yet the current one"
    return ""


_STATUS: Final = RolloutStatus(kind="StatefulSet", controller="statefulset", counts=replica_counts, pending=_pending)

default_converging_status_handler: Final = _STATUS.converging
"""Status handler: `Healthy` once the latest spec is observed, exactly the desired replicas are ready and the rollout is
as far as its update strategy takes it; before that `Creating` or `Updating`, and `Scaling` while only the number of
ready replicas differs."""

default_grace_status_handler: Final = _STATUS.grace
"""Grace handler: `Down` if replicas are desired and none is ready, `Degraded` while anything else is incomplete, else
`Healthy`."""

default_suspension_status_handler: Final = _STATUS.suspension
"""Suspension handler: `Suspended` once the status counts no replicas."""


class Builder(WorkloadBuilder[V1StatefulSet, Mutator]):
    """Builds a StatefulSet.

    Args:
        base: The desired baseline: a `V1StatefulSet`, a manifest, or a YAML text with one document. Omit
            `replicas` if an autoscaler sets it.
    """

    kind = Kind("apps/v1", "StatefulSet", "V1StatefulSet", Mutator, selector=("spec", "selector", "matchLabels"))
    handlers = Handlers(
        status=OnManifest(default_converging_status_handler),
        grace=OnManifest(default_grace_status_handler),
        suspend=_suspend,
        suspension=OnManifest(default_suspension_status_handler),
    )
