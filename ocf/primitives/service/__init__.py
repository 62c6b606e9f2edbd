"""The Service (`v1`): operational, graceful, not affected by suspension.

A Service of type LoadBalancer is operational once it has an address; other types as soon as they exist. Suspending does
not change it: without pods it needs no resources, and deleting it would release its addresses.
"""

from __future__ import annotations

from typing import TypeAlias

from ocf import feature
from ocf.concepts import OperationalStatus
from ocf.editors import ObjectMetaEditor, ServiceSpecEditor
from ocf.lazy_types.kubernetes import V1Service
from ocf.objects import Manifest
from ocf.primitives.builder import IntegrationBuilder
from ocf.primitives.kind import Handlers, Kind, OnManifest
from ocf.primitives.mutator import BaseMutator, Edits
from ocf.primitives.resource import IntegrationResource
from ocf.primitives.service.status import (
    default_grace_status_handler,
    default_operational_status_handler,
    default_suspension_status_handler,
)

__all__ = [
    "Builder",
    "Mutation",
    "Mutator",
    "Resource",
    "default_grace_status_handler",
    "default_operational_status_handler",
    "default_suspension_status_handler",
]


class Mutator(BaseMutator):
    """Records edits of a Service: first its metadata, then its spec."""

    edit_object_metadata = Edits(ObjectMetaEditor, "metadata")
    edit_service_spec = Edits(ServiceSpecEditor, "spec")


Mutation: TypeAlias = feature.Mutation[Mutator]
"""A mutation of a Service."""

Resource: TypeAlias = IntegrationResource["V1Service", Mutator]
"""A Service as a resource of a component."""

_KIND: Kind[V1Service, Mutator] = Kind("v1", "Service", "V1Service", Mutator)
_HANDLERS: Handlers[V1Service, Mutator, OperationalStatus] = Handlers(
    status=OnManifest(default_operational_status_handler),
    grace=OnManifest(default_grace_status_handler),
    suspension=OnManifest(default_suspension_status_handler),
)


class Builder(IntegrationBuilder[V1Service, Mutator]):
    """Builds a Service.

    Args:
        base: The desired baseline: a `V1Service`, a manifest, or a YAML text with one document.

    Example:
        >>> metadata = {"name": "web", "namespace": "shop"}
        >>> spec = {"selector": {"app": "web"}, "ports": [{"port": 80}]}
        >>> Builder({"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": spec}).build().identity
        'v1/Service/shop/web'
    """

    def __init__(self, base: V1Service | Manifest | str) -> None:
        super().__init__(base, _KIND, _HANDLERS)
