"""Editor of the spec of a PersistentVolumeClaim."""

from __future__ import annotations

from ocf.editors.editor import Editor
from ocf.editors.resource_quantities import set_resource
from ocf.lazy_types.kubernetes import V1PersistentVolumeClaimSpec

__all__ = ["PVCSpecEditor"]


class PVCSpecEditor(Editor[V1PersistentVolumeClaimSpec]):
    """Edits the spec of a PersistentVolumeClaim.

    After creation, the API server only accepts a larger storage request of a bound claim, and another
    `volumeAttributesClassName`; everything else is immutable.

    Source: https://kubernetes.io/docs/reference/kubernetes-api/config-and-storage-resources/persistent-volume-claim-v1/.

    Args:
        raw: The live spec.

    Example:
        >>> from kubernetes.client import V1PersistentVolumeClaimSpec
        >>> spec = PVCSpecEditor(V1PersistentVolumeClaimSpec())
        >>> spec.set_storage_request("10Gi")
        >>> spec.set_access_modes(["ReadWriteOnce"])
        >>> spec.raw.resources.requests, spec.raw.access_modes
        ({'storage': '10Gi'}, ['ReadWriteOnce'])
    """

    __slots__ = ()

    def set_storage_request(self, quantity: str | float | None) -> None:
        """Set how much storage the claim requests; it cannot be reduced after creation.

        Args:
            quantity: Quantity as a string (`10Gi`) or a number of bytes. None removes the request.

        Raises:
            QuantityError: If the quantity is invalid.
        """
        set_resource(self._raw, "requests", "storage", quantity)

    def set_access_modes(self, modes: list[str] | None) -> None:
        """Set how nodes and pods may mount the volume; it cannot be changed after creation.

        Args:
            modes: `ReadWriteOnce`, `ReadOnlyMany`, `ReadWriteMany` or `ReadWriteOncePod`; replaces the whole list.
                None unsets the field.
        """
        self._raw.access_modes = modes

    def set_storage_class_name(self, name: str | None) -> None:
        """Set the storage class; it cannot be changed after creation.

        Args:
            name: Name of a StorageClass; an empty text requests a volume without a class. None unsets the field; the
                default class of the cluster then applies.
        """
        self._raw.storage_class_name = name

    def set_volume_mode(self, mode: str | None) -> None:
        """Set the kind of volume; it cannot be changed after creation.

        Args:
            mode: `Filesystem` or `Block`. None unsets the field; the API server then uses `Filesystem`.
        """
        self._raw.volume_mode = mode

    def set_volume_name(self, name: str | None) -> None:
        """Set the volume that the claim has to be bound to; it cannot be changed after creation.

        Args:
            name: Name of a PersistentVolume. None unsets the field; the control plane then chooses a volume.
        """
        self._raw.volume_name = name
