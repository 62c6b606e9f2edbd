"""The Pod (`v1`): alive, graceful, suspendable.

A Pod cannot be paused, so suspending deletes it and resuming creates it again. The API server rejects most changes of
the spec of an existing Pod; a Deployment replaces its pods instead.
"""

from __future__ import annotations

from typing import TypeAlias

from ocf import feature
from ocf.concepts import AliveStatus
from ocf.editors import CONTAINERS, INIT_CONTAINERS, ObjectMetaEditor, PodSpecEditor
from ocf.lazy_types.kubernetes import V1Pod
from ocf.objects import Manifest
from ocf.primitives.builder import WorkloadBuilder
from ocf.primitives.containers import ContainerEdits, ContainerListEdits, PodMutator
from ocf.primitives.kind import Handlers, Kind
from ocf.primitives.mutator import Edits
from ocf.primitives.pod.status import (
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
    """Records edits of a Pod, in this order: metadata, spec, containers, init containers."""

    edit_object_metadata = Edits(ObjectMetaEditor, "metadata")
    edit_pod_spec = Edits(PodSpecEditor, "spec")
    _container_presence = ContainerListEdits(CONTAINERS, "spec")
    edit_containers = ContainerEdits("containers", "spec")
    _init_container_presence = ContainerListEdits(INIT_CONTAINERS, "spec")
    edit_init_containers = ContainerEdits("init_containers", "spec")


Mutation: TypeAlias = feature.Mutation[Mutator]
"""A mutation of a Pod."""

Resource: TypeAlias = WorkloadResource["V1Pod", Mutator]
"""A Pod as a resource of a component."""

_KIND: Kind[V1Pod, Mutator] = Kind("v1", "Pod", "V1Pod", Mutator)
_HANDLERS: Handlers[V1Pod, Mutator, AliveStatus] = Handlers(
    status=default_converging_status_handler,
    grace=default_grace_status_handler,
    suspension=default_suspension_status_handler,
    delete_on_suspend=lambda _base: True,
)


class Builder(WorkloadBuilder[V1Pod, Mutator]):
    """Builds a Pod.

    Args:
        base: The desired baseline: a `V1Pod`, a manifest, or a YAML text with one document.
    """

    def __init__(self, base: V1Pod | Manifest | str) -> None:
        super().__init__(base, _KIND, _HANDLERS)
