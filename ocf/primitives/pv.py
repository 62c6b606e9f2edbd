"""The PersistentVolume (`v1`, cluster-scoped): operational, graceful, not affected by suspension.

It is operational while it is available or bound. The control plane sets `spec.claimRef` when it binds the volume; leave
the field out of the baseline, or set only the namespace and the name of the claim that the volume is reserved for.

The source of the volume is immutable after creation.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, TypeAlias

from ocf import feature
from ocf.concepts import OperationalStatus, StatusReport
from ocf.editors import ObjectMetaEditor, PVSpecEditor
from ocf.lazy_types.kubernetes import V1PersistentVolume
from ocf.primitives.builder import IntegrationBuilder
from ocf.primitives.kind import Handlers, Kind
from ocf.primitives.mutator import BaseMutator, Edits
from ocf.primitives.resource import IntegrationResource
from ocf.primitives.status import IntegrationStatus

__all__ = [
    "Builder",
    "Mutation",
    "Mutator",
    "Resource",
    "default_grace_status_handler",
    "default_operational_status_handler",
]


class Mutator(BaseMutator):
    """Records edits of a volume: first its metadata, then its spec."""

    edit_object_metadata = Edits(ObjectMetaEditor, "metadata")
    edit_pv_spec = Edits(PVSpecEditor, "spec")

    def set_storage_class_name(self, name: str | None) -> None:
        """Record the storage class, as a spec edit; None unsets the field."""
        self.edit_pv_spec(lambda spec: spec.set_storage_class_name(name))

    def set_reclaim_policy(self, policy: str | None) -> None:
        """Record what happens to the volume when its claim is deleted, as a spec edit; None unsets the field."""
        self.edit_pv_spec(lambda spec: spec.set_persistent_volume_reclaim_policy(policy))

    def set_mount_options(self, options: list[str] | None) -> None:
        """Record the mount options, as a spec edit; None unsets the field."""
        self.edit_pv_spec(lambda spec: spec.set_mount_options(options))


Mutation: TypeAlias = feature.Mutation[Mutator]
"""A mutation of a volume."""

Resource: TypeAlias = IntegrationResource["V1PersistentVolume", Mutator]
"""A volume as a resource of a component."""


# Default status handlers of a PersistentVolume, based on its phase (API reference, `PersistentVolumeStatus`).

_BY_PHASE: Final[Mapping[str, StatusReport[OperationalStatus]]] = {
    "Available": StatusReport(OperationalStatus.OPERATIONAL, "PersistentVolume is available"),
    "Bound": StatusReport(OperationalStatus.OPERATIONAL, "PersistentVolume is bound to a claim"),
    "Pending": StatusReport(OperationalStatus.PENDING, "PersistentVolume is pending"),
    "Released": StatusReport(OperationalStatus.FAILING, "PersistentVolume has been released and is not yet reclaimed"),
    "Failed": StatusReport(OperationalStatus.FAILING, "PersistentVolume reclamation has failed"),
}


def _observed(live: V1PersistentVolume) -> StatusReport[OperationalStatus]:
    phase = (live.status.phase if live.status else None) or ""
    return _BY_PHASE.get(phase) or StatusReport(OperationalStatus.PENDING, f'PersistentVolume phase is "{phase}"')


_STATUS: Final = IntegrationStatus(_observed)

default_operational_status_handler: Final = _STATUS.operational
"""Status handler: `Operational` in the phases `Available` and `Bound`, `OperationFailing` in the phases `Released` and
`Failed`, else `OperationPending`."""

default_grace_status_handler: Final = _STATUS.grace
"""Grace handler: `Healthy` in the phases `Available` and `Bound`, `Down` in the phases `Released` and `Failed`, else
`Degraded`."""


class Builder(IntegrationBuilder[V1PersistentVolume, Mutator]):
    """Builds a volume.

    Args:
        base: The desired baseline: a `V1PersistentVolume`, a manifest, or a YAML text with one document.

    Example:
        >>> spec = {"capacity": {"storage": "10Gi"}, "hostPath": {"path": "/data"}}
        >>> base = {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "data"}, "spec": spec}
        >>> kept = Mutation("kept", lambda m: m.set_reclaim_policy("Retain"))
        >>> Builder(base).with_mutation(kept).build().render()["spec"]["persistentVolumeReclaimPolicy"]
        'Retain'
    """

    kind = Kind("v1", "PersistentVolume", "V1PersistentVolume", Mutator, cluster_scoped=True)
    handlers = Handlers(
        status=default_operational_status_handler,
        grace=default_grace_status_handler,
    )
