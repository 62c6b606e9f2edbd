"""The HTTPRoute of the Gateway API (`gateway.networking.k8s.io/v1`): operational, graceful, not affected by suspension.

It is operational once every parent has accepted it and resolved its references. Suspending does not change it: requests
get an error of the Gateway while its backends have no pods.

The models for its baseline and its editors are in `ocf.objects.third_party.gateway`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, TypeAlias

from ocf import feature
from ocf.concepts import OperationalStatus, StatusReport
from ocf.editors import HTTPRouteSpecEditor, ObjectMetaEditor
from ocf.objects.third_party.lazy import HTTPRoute, ParentReference, RouteParentStatus
from ocf.primitives.builder import IntegrationBuilder
from ocf.primitives.kind import Handlers, Kind
from ocf.primitives.mutator import BaseMutator, Edits
from ocf.primitives.resource import IntegrationResource
from ocf.primitives.status import IntegrationStatus, always_suspended, conditions_of, is_stale

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


# Default status handlers of an HTTPRoute, based on the conditions of its parents.
#
# Each controller that a parent belongs to adds an entry to `status.parents`, with the conditions `Accepted` and
# `ResolvedRefs`. A controller does not report which generation it has seen but in these conditions.
#
# Source: https://gateway-api.sigs.k8s.io/reference/spec/#routeparentstatus.

_TYPES: Final = ("Accepted", "ResolvedRefs")
# Reason of a condition that is False only until the controller has processed the route.
_PENDING: Final = "Pending"


def _observed(live: HTTPRoute) -> StatusReport[OperationalStatus]:
    parents = (live.spec.parent_refs if live.spec else None) or []
    if not parents:
        return StatusReport(OperationalStatus.PENDING, "HTTPRoute has no parent")
    reports = [report for parent in parents for report in _of_parent(live, parent)]
    for status in (OperationalStatus.FAILING, OperationalStatus.PENDING):
        reasons = [report.reason for report in reports if report.status is status]
        if reasons:
            return StatusReport(status, "; ".join(dict.fromkeys(reasons)))
    return StatusReport(OperationalStatus.OPERATIONAL, "HTTPRoute is accepted by its parents")


def _of_parent(live: HTTPRoute, parent: ParentReference) -> Iterator[StatusReport[OperationalStatus]]:
    namespace = (live.metadata.namespace if live.metadata else None) or ""
    wanted = _key(parent, namespace)
    entries = (live.status.parents if live.status else None) or []
    found = [entry for entry in entries if _key(entry.parent_ref, namespace) == wanted]
    if not found:
        yield StatusReport(OperationalStatus.PENDING, f"Waiting for parent {parent.name} to accept the route")
    for entry in found:
        yield from _of_entry(live, entry)


def _of_entry(live: HTTPRoute, entry: RouteParentStatus) -> Iterator[StatusReport[OperationalStatus]]:
    name = entry.parent_ref.name
    seen = {condition.type: condition for condition in conditions_of(entry)}
    for wanted in _TYPES:
        condition = seen.get(wanted)
        if condition is None or is_stale(live, condition.observed_generation):
            yield StatusReport(OperationalStatus.PENDING, f"Waiting for condition {wanted} of parent {name}")
        elif condition.status == "False" and condition.reason != _PENDING:
            yield StatusReport(OperationalStatus.FAILING, f"Parent {name}: {condition.text}")
        elif condition.status != "True":
            yield StatusReport(OperationalStatus.PENDING, f"Parent {name}: {condition.text}")


def _key(parent: ParentReference, namespace: str) -> tuple[str | int | None, ...]:
    place = (parent.group, parent.kind, parent.namespace or namespace, parent.name)
    return (*place, parent.section_name or "", parent.port)


_STATUS: Final = IntegrationStatus(_observed)

default_operational_status_handler: Final = _STATUS.operational
"""Status handler: `Operational` once all parents have accepted the current generation and resolved its references,
`OperationFailing` if one has rejected it or cannot resolve a reference, else `OperationPending`."""

default_grace_status_handler: Final = _STATUS.grace
"""Grace handler: `Healthy` if all parents have accepted it, `Down` if one has rejected it, else `Degraded`."""

default_suspension_status_handler: Final = always_suspended("HTTPRoute unaffected by suspension")
"""Suspension handler: always `Suspended`."""


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

    kind = Kind("gateway.networking.k8s.io/v1", "HTTPRoute", "ocf.objects.third_party.gateway:HTTPRoute", Mutator)
    handlers = Handlers(
        status=default_operational_status_handler,
        grace=default_grace_status_handler,
        suspension=default_suspension_status_handler,
    )
