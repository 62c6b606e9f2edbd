"""The DaemonSet (`apps/v1`): alive, graceful, suspendable.

It has no replica count that could be set to zero, so suspending deletes it and resuming creates it again.
"""

from __future__ import annotations

from typing import Final, TypeAlias

from ocf import feature
from ocf.editors import DaemonSetSpecEditor, ObjectMetaEditor, PodSpecEditor
from ocf.editors.keyed_lists import CONTAINERS, INIT_CONTAINERS
from ocf.lazy_types.kubernetes import V1DaemonSet
from ocf.lazy_types.pydantic import BaseModel
from ocf.objects import Manifest
from ocf.primitives.builder import WorkloadBuilder
from ocf.primitives.containers import ContainerEdits, ContainerListEdits, PodTemplateMutator
from ocf.primitives.kind import Handlers, Kind, OnManifest
from ocf.primitives.mutator import Edits
from ocf.primitives.resource import WorkloadResource
from ocf.primitives.status import PodCounts, RolloutStatus, always_suspended, live_count, live_field

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
    """Records edits of a DaemonSet, in this order: metadata, spec, pod template, containers, init containers."""

    edit_object_metadata = Edits(ObjectMetaEditor, "metadata")
    edit_daemonset_spec = Edits(DaemonSetSpecEditor, "spec")
    edit_pod_template_metadata = Edits(ObjectMetaEditor, "spec.template.metadata")
    edit_pod_spec = Edits(PodSpecEditor, "spec.template.spec")
    _container_presence = ContainerListEdits(CONTAINERS)
    edit_containers = ContainerEdits("containers")
    _init_container_presence = ContainerListEdits(INIT_CONTAINERS)
    edit_init_containers = ContainerEdits("init_containers")


Mutation: TypeAlias = feature.Mutation[Mutator]
"""A mutation of a DaemonSet."""

Resource: TypeAlias = WorkloadResource["V1DaemonSet", Mutator]
"""A DaemonSet as a resource of a component."""


# Default status handlers of a DaemonSet (API reference, `DaemonSetStatus`).
#
# The desired number of pods is not in the spec: the DaemonSet controller counts one pod for each matching node.


def _counts(live: BaseModel | Manifest) -> PodCounts:
    desired = live_count(live, "status", "desiredNumberScheduled")
    # Without a matching node, pods that still terminate are not desired and not a reason to wait.
    ready = live_count(live, "status", "numberReady") if desired else 0
    running, available = (live_count(live, "status", name) for name in ("currentNumberScheduled", "numberAvailable"))
    return PodCounts(desired, ready, running=running, available=available)


def _pending(live: BaseModel | Manifest, desired: int) -> str:
    updated = live_count(live, "status", "updatedNumberScheduled")
    if updated >= desired or live_field(live, "spec", "updateStrategy", "type") == "OnDelete":
        return ""
    return f"Waiting for rollout: {updated}/{desired} pods updated"


_STATUS: Final = RolloutStatus(
    kind="DaemonSet",
    controller="DaemonSet",
    counts=_counts,
    pending=_pending,
    pods="pods",
    none_desired="No nodes match the DaemonSet node selector",
)

default_converging_status_handler: Final = _STATUS.converging
"""Status handler: `Healthy` once the latest spec is observed, every matching node has a ready pod and the rollout is as
far as its update strategy takes it; also without a matching node. Before that `Creating` or `Updating`, and `Scaling`
while only pods are missing."""

default_grace_status_handler: Final = _STATUS.grace
"""Grace handler: `Down` if a node matches and no pod is ready, `Degraded` while anything else is incomplete, else
`Healthy`."""


default_suspension_status_handler: Final = always_suspended("DaemonSet deleted on suspend")
"""Suspension handler: always `Suspended`; a DaemonSet cannot be scaled to zero, so suspending deletes it."""


class Builder(WorkloadBuilder[V1DaemonSet, Mutator]):
    """Builds a DaemonSet.

    Args:
        base: The desired baseline: a `V1DaemonSet`, a manifest, or a YAML text with one document.
    """

    kind = Kind("apps/v1", "DaemonSet", "V1DaemonSet", Mutator, selector=("spec", "selector", "matchLabels"))
    handlers = Handlers(
        status=OnManifest(default_converging_status_handler),
        grace=OnManifest(default_grace_status_handler),
        suspension=OnManifest(default_suspension_status_handler),
        delete_on_suspend=lambda _base: True,
    )
