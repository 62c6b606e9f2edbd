"""The PersistentVolumeClaim (`v1`): operational, graceful, not affected by suspension.

It is operational once it is bound. Claims of a storage class with `volumeBindingMode: WaitForFirstConsumer` are bound
only when a pod uses them. Suspending keeps the claim, and so its data.

The spec is immutable after creation, except for a larger storage request of a bound claim and for
`volumeAttributesClassName`.
"""

from __future__ import annotations

from typing import Final, TypeAlias

from ocf import feature
from ocf.concepts import OperationalStatus, StatusReport
from ocf.editors import ObjectMetaEditor, PVCSpecEditor
from ocf.lazy_types.kubernetes import V1PersistentVolumeClaim
from ocf.objects.quantity import Quantity
from ocf.primitives.builder import IntegrationBuilder
from ocf.primitives.kind import Handlers, Kind
from ocf.primitives.mutator import BaseMutator, Edits
from ocf.primitives.resource import IntegrationResource
from ocf.primitives.status import IntegrationStatus, always_suspended, conditions_of, live_field

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
    """Records edits of a volume claim: first its metadata, then its spec."""

    edit_object_metadata = Edits(ObjectMetaEditor, "metadata")
    edit_pvc_spec = Edits(PVCSpecEditor, "spec")

    def set_storage_request(self, quantity: str | float | None) -> None:
        """Record the requested storage, as a spec edit."""
        self.edit_pvc_spec(lambda spec: spec.set_storage_request(quantity))


Mutation: TypeAlias = feature.Mutation[Mutator]
"""A mutation of a volume claim."""

Resource: TypeAlias = IntegrationResource["V1PersistentVolumeClaim", Mutator]
"""A volume claim as a resource of a component."""


# Default status handlers of a PersistentVolumeClaim, based on its phase, its conditions and its capacity.
#
# A claim stays bound while it is resized. The capacity follows at the end, so a larger request is visible as well where
# no controller expands volumes. A failed resize is tried again, and the volume can be used meanwhile.
#
# Source: the API reference, `PersistentVolumeClaimStatus`.

# The most specific one comes first: `Resizing` may stay True while one of the others is.
_CHANGING: Final = (
    "ControllerResizeError",
    "NodeResizeError",
    "ModifyVolumeError",
    "FileSystemResizePending",
    "Resizing",
    "ModifyingVolume",
)


def _observed(live: V1PersistentVolumeClaim) -> StatusReport[OperationalStatus]:
    match live.status.phase if live.status else None:
        case "Bound":
            return _bound(live)
        case "Lost":
            return StatusReport(OperationalStatus.FAILING, "PVC has lost its bound volume")
        case _:
            return StatusReport(OperationalStatus.PENDING, "Waiting for PVC to be bound")


def _bound(live: V1PersistentVolumeClaim) -> StatusReport[OperationalStatus]:
    requested = live_field(live, "spec", "resources", "requests", "storage")
    capacity = live_field(live, "status", "capacity", "storage")
    true = {condition.type: condition for condition in conditions_of(live.status) if condition.status == "True"}
    change = next((true[name] for name in _CHANGING if name in true), None)
    text = f": {change.type}: {change.text}" if change else ""
    if requested and capacity and Quantity.parse(capacity) < Quantity.parse(requested):
        return StatusReport(OperationalStatus.PENDING, f"Waiting for PVC to grow from {capacity} to {requested}{text}")
    if change:
        return StatusReport(OperationalStatus.PENDING, f"Waiting for the volume of the PVC to be changed{text}")
    volume = live.spec.volume_name if live.spec else None
    return StatusReport(OperationalStatus.OPERATIONAL, f"PVC is bound to volume {volume}" if volume else "PVC is bound")


_STATUS: Final = IntegrationStatus(_observed)

default_operational_status_handler: Final = _STATUS.operational
"""Status handler: `Operational` in phase `Bound` with the requested capacity and without a change of the volume under
way, `OperationFailing` in phase `Lost`, else `OperationPending`."""

default_grace_status_handler: Final = _STATUS.grace
"""Grace handler: `Healthy` if it is operational, `Down` in phase `Lost`, else `Degraded`."""

default_suspension_status_handler: Final = always_suspended("PVC does not require suspension actions")
"""Suspension handler: always `Suspended`."""


class Builder(IntegrationBuilder[V1PersistentVolumeClaim, Mutator]):
    """Builds a volume claim.

    Args:
        base: The desired baseline: a `V1PersistentVolumeClaim`, a manifest, or a YAML text with one document.

    Example:
        >>> metadata = {"name": "data", "namespace": "shop"}
        >>> base = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata}
        >>> large = Mutation("large", lambda m: m.set_storage_request("100Gi"))
        >>> Builder(base).with_mutation(large).build().render()["spec"]
        {'resources': {'requests': {'storage': '100Gi'}}}
    """

    kind = Kind("v1", "PersistentVolumeClaim", "V1PersistentVolumeClaim", Mutator)
    handlers = Handlers(
        status=default_operational_status_handler,
        grace=default_grace_status_handler,
        suspension=default_suspension_status_handler,
    )
