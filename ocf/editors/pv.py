"""Editor of the spec of a PersistentVolume."""

from __future__ import annotations

from ocf.editors.editor import Editor
from ocf.editors.keyed_lists import ensure_entry, remove_entry
from ocf.editors.model_values import own_or_none
from ocf.editors.resource_quantities import quantity_text
from ocf.lazy_types.kubernetes import V1PersistentVolumeSpec, V1VolumeNodeAffinity

__all__ = ["PVSpecEditor"]


class PVSpecEditor(Editor[V1PersistentVolumeSpec]):
    """Edits the spec of a PersistentVolume; set the source of the volume, such as `csi`, in the baseline.

    Source: https://kubernetes.io/docs/reference/kubernetes-api/config-and-storage-resources/persistent-volume-v1/.

    Args:
        raw: The live spec.

    Example:
        >>> from kubernetes.client import V1PersistentVolumeSpec
        >>> spec = PVSpecEditor(V1PersistentVolumeSpec())
        >>> spec.set_storage_capacity("10Gi")
        >>> spec.set_persistent_volume_reclaim_policy("Retain")
        >>> spec.raw.capacity, spec.raw.persistent_volume_reclaim_policy
        ({'storage': '10Gi'}, 'Retain')
    """

    __slots__ = ()

    def set_storage_capacity(self, quantity: str | float | None) -> None:
        """Set the storage capacity; other entries of the capacity stay as they are.

        Args:
            quantity: Quantity as a string (`10Gi`) or a number of bytes. None removes the entry.

        Raises:
            QuantityError: If the quantity is invalid.
        """
        if quantity is None:
            remove_entry(self._raw, "capacity", "storage")
        else:
            ensure_entry(self._raw, "capacity", "storage", quantity_text("capacity[storage]", quantity))

    def set_access_modes(self, modes: list[str] | None) -> None:
        """Set how nodes and pods may mount the volume.

        Args:
            modes: `ReadWriteOnce`, `ReadOnlyMany`, `ReadWriteMany` or `ReadWriteOncePod`; replaces the whole list.
                None unsets the field.
        """
        self._raw.access_modes = modes

    def set_persistent_volume_reclaim_policy(self, policy: str | None) -> None:
        """Set what happens to the volume when its claim is deleted.

        Args:
            policy: `Retain`, `Delete` or `Recycle`. None unsets the field; the API server then uses `Retain`.
        """
        self._raw.persistent_volume_reclaim_policy = policy

    def set_storage_class_name(self, name: str | None) -> None:
        """Set the storage class that claims of this volume have to request.

        Args:
            name: Name of a StorageClass. None unsets the field; the volume then belongs to no class.
        """
        self._raw.storage_class_name = name

    def set_mount_options(self, options: list[str] | None) -> None:
        """Set the options with which nodes mount the volume.

        Args:
            options: Options, `["hard", "nfsvers=4.1"]`; replaces the whole list. None unsets the field.
        """
        self._raw.mount_options = options

    def set_volume_mode(self, mode: str | None) -> None:
        """Set the kind of volume; it cannot be changed after creation.

        Args:
            mode: `Filesystem` or `Block`. None unsets the field; the API server then uses `Filesystem`.
        """
        self._raw.volume_mode = mode

    def set_node_affinity(self, affinity: V1VolumeNodeAffinity | None) -> None:
        """Set the nodes that can access the volume.

        Args:
            affinity: Replaces the whole affinity; a copy is stored. None unsets the field.

        Raises:
            ConfigError: If the argument is not a node affinity of a volume.
        """
        self._raw.node_affinity = own_or_none(self._raw, "node_affinity", affinity)
