"""The Ingress (`networking.k8s.io/v1`): operational, graceful, not affected by suspension.

It is operational once its controller has given it an address. Suspending does not change it: its addresses and its
certificates stay, and requests get an error of the controller while its backends have no pods.
"""

from __future__ import annotations

from typing import TypeAlias

from ocf import feature
from ocf.concepts import OperationalStatus
from ocf.editors import IngressSpecEditor, ObjectMetaEditor
from ocf.lazy_types.kubernetes import V1Ingress
from ocf.objects import Manifest
from ocf.primitives.builder import IntegrationBuilder
from ocf.primitives.ingress.status import (
    default_grace_status_handler,
    default_operational_status_handler,
    default_suspension_status_handler,
)
from ocf.primitives.kind import Handlers, Kind
from ocf.primitives.mutator import BaseMutator, Edits
from ocf.primitives.resource import IntegrationResource

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
    """Records edits of an Ingress: first its metadata, then its spec."""

    edit_object_metadata = Edits(ObjectMetaEditor, "metadata")
    edit_ingress_spec = Edits(IngressSpecEditor, "spec")


Mutation: TypeAlias = feature.Mutation[Mutator]
"""A mutation of an Ingress."""

Resource: TypeAlias = IntegrationResource["V1Ingress", Mutator]
"""An Ingress as a resource of a component."""

_KIND: Kind[V1Ingress, Mutator] = Kind("networking.k8s.io/v1", "Ingress", "V1Ingress", Mutator)
_HANDLERS: Handlers[V1Ingress, Mutator, OperationalStatus] = Handlers(
    status=default_operational_status_handler,
    grace=default_grace_status_handler,
    suspension=default_suspension_status_handler,
)


class Builder(IntegrationBuilder[V1Ingress, Mutator]):
    """Builds an Ingress.

    Args:
        base: The desired baseline: a `V1Ingress`, a manifest, or a YAML text with one document.

    Example:
        >>> metadata = {"name": "web", "namespace": "shop"}
        >>> base = {"apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "metadata": metadata}
        >>> public = Mutation("public",
        ...     lambda m: m.edit_ingress_spec(lambda spec: spec.set_ingress_class_name("public")))
        >>> Builder(base).with_mutation(public).build().render()["spec"]
        {'ingressClassName': 'public'}
    """

    def __init__(self, base: V1Ingress | Manifest | str) -> None:
        super().__init__(base, _KIND, _HANDLERS)
