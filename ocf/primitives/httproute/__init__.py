"""The HTTPRoute of the Gateway API (`gateway.networking.k8s.io/v1`): operational, graceful, not affected by suspension.

It is operational once every parent has accepted it and resolved its references. Suspending does not change it: requests
get an error of the Gateway while its backends have no pods.

The models for its baseline and its editors are in `ocf.objects.third_party.gateway`.
"""

from __future__ import annotations

from typing import TypeAlias

from ocf import feature
from ocf.concepts import OperationalStatus
from ocf.editors import HTTPRouteSpecEditor, ObjectMetaEditor
from ocf.objects import Manifest
from ocf.objects.third_party.lazy import HTTPRoute
from ocf.primitives.builder import IntegrationBuilder
from ocf.primitives.httproute.status import (
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
    """Records edits of an HTTPRoute: first its metadata, then its spec."""

    edit_object_metadata = Edits(ObjectMetaEditor, "metadata")
    edit_httproute_spec = Edits(HTTPRouteSpecEditor, "spec")


Mutation: TypeAlias = feature.Mutation[Mutator]
"""A mutation of an HTTPRoute."""

Resource: TypeAlias = IntegrationResource["HTTPRoute", Mutator]
"""An HTTPRoute as a resource of a component."""

_KIND: Kind[HTTPRoute, Mutator] = Kind(
    "gateway.networking.k8s.io/v1", "HTTPRoute", "ocf.objects.third_party.gateway:HTTPRoute", Mutator
)
_HANDLERS: Handlers[HTTPRoute, Mutator, OperationalStatus] = Handlers(
    status=default_operational_status_handler,
    grace=default_grace_status_handler,
    suspension=default_suspension_status_handler,
)


class Builder(IntegrationBuilder[HTTPRoute, Mutator]):
    """Builds an HTTPRoute.

    Args:
        base: The desired baseline: a `HTTPRoute`, a manifest, or a YAML text with one document.

    Example:
        >>> metadata = {"name": "web", "namespace": "shop"}
        >>> base = {"apiVersion": "gateway.networking.k8s.io/v1", "kind": "HTTPRoute", "metadata": metadata}
        >>> public = Mutation(
        ...     "public", lambda m: m.edit_httproute_spec(lambda spec: spec.ensure_hostname("a.example.com"))
        ... )
        >>> Builder(base).with_mutation(public).build().render()["spec"]
        {'hostnames': ['a.example.com']}
    """

    def __init__(self, base: HTTPRoute | Manifest | str) -> None:
        super().__init__(base, _KIND, _HANDLERS)
