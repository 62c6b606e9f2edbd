"""The DaemonSet (`apps/v1`): alive, graceful, suspendable.

It has no replica count that could be set to zero, so suspending deletes it and resuming creates it again.
"""

from __future__ import annotations

from typing import TypeAlias

from ocf import feature
from ocf.concepts import AliveStatus
from ocf.editors import CONTAINERS, INIT_CONTAINERS, DaemonSetSpecEditor, ObjectMetaEditor, PodSpecEditor
from ocf.lazy_types.kubernetes import V1DaemonSet
from ocf.objects import Manifest
from ocf.primitives.builder import WorkloadBuilder
from ocf.primitives.containers import ContainerEdits, ContainerListEdits, PodTemplateMutator
from ocf.primitives.daemonset.status import (
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

_KIND: Kind[V1DaemonSet, Mutator] = Kind("apps/v1", "DaemonSet", "V1DaemonSet", Mutator)
_HANDLERS: Handlers[V1DaemonSet, Mutator, AliveStatus] = Handlers(
    status=OnManifest(default_converging_status_handler),
    grace=OnManifest(default_grace_status_handler),
    suspension=OnManifest(default_suspension_status_handler),
    delete_on_suspend=lambda _base: True,
)


class Builder(WorkloadBuilder[V1DaemonSet, Mutator]):
    """Builds a DaemonSet.

    Args:
        base: The desired baseline: a `V1DaemonSet`, a manifest, or a YAML text with one document.
    """

    def __init__(self, base: V1DaemonSet | Manifest | str) -> None:
        super().__init__(base, _KIND, _HANDLERS)
