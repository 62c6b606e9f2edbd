"""The Ingress (`networking.k8s.io/v1`): operational, graceful, not affected by suspension.

It is operational once its controller has given it an address. Suspending does not change it: its addresses and its
certificates stay, and requests get an error of the controller while its backends have no pods.
"""

from __future__ import annotations

from typing import Final, TypeAlias

from ocf import feature
from ocf.concepts import OperationalStatus, StatusReport
from ocf.editors import IngressSpecEditor, ObjectMetaEditor
from ocf.lazy_types.kubernetes import V1Ingress
from ocf.primitives.builder import IntegrationBuilder
from ocf.primitives.kind import Handlers, Kind
from ocf.primitives.mutator import BaseMutator, Edits
from ocf.primitives.resource import IntegrationResource
from ocf.primitives.status import IntegrationStatus, always_suspended, port_error

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


# Default status handlers of an Ingress (API reference, `IngressStatus`).


_AWAITING: Final = "Awaiting load balancer address assignment"


def _observed(live: V1Ingress) -> StatusReport[OperationalStatus]:
    balancer = live.status.load_balancer if live.status else None
    # Some controllers first write an empty entry, which is not an address.
    if any(entry.ip or entry.hostname for entry in (balancer.ingress if balancer else None) or ()):
        return StatusReport(OperationalStatus.OPERATIONAL, "Ingress has been assigned an address")
    problem = port_error(live)
    return StatusReport(OperationalStatus.PENDING, f"{_AWAITING}: {problem}" if problem else _AWAITING)


_STATUS: Final = IntegrationStatus(_observed)

default_operational_status_handler: Final = _STATUS.operational
"""Status handler: `Operational` once the Ingress has an IP address or a host name, before that `OperationPending`."""

default_grace_status_handler: Final = _STATUS.grace
"""Grace handler: `Healthy` once the Ingress has an IP address or a host name, else `Degraded`."""

default_suspension_status_handler: Final = always_suspended("Ingress suspended (backend unavailable)")
"""Suspension handler: always `Suspended`."""


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

    kind = Kind("networking.k8s.io/v1", "Ingress", "V1Ingress", Mutator)
    handlers = Handlers(
        status=default_operational_status_handler,
        grace=default_grace_status_handler,
        suspension=default_suspension_status_handler,
    )
