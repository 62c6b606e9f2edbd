"""Storage of a snapshot: claims, volumes and storage classes."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from ocf.nodegroups.snapshot.fields import NANO, Fields, ObjectFields, read_object
from ocf.nodegroups.snapshot.node_selectors import NodeSelectorTerm, read_terms
from ocf.objects import Manifest
from ocf.objects.selectors import LabelSelector

__all__ = ["AttachLimits", "Claim", "StorageClass", "Volume"]

_BETA_CLASS = "volume.beta.kubernetes.io/storage-class"
_SELECTED_NODE = "volume.kubernetes.io/selected-node"
_BOUND = "pv.kubernetes.io/bind-completed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """A persistent volume claim.

    Args:
        volume: `spec.volumeName`; empty if no volume is chosen.
        bound: Whether the binding is complete.
        storage_class: Its class; empty for none.
        access_modes: The access modes that it wants.
        selected_node: The node for which its volume is being provisioned; empty for none.
        size: The bytes that it wants.
        selector: The selector of volumes; None for all.
        mode: `Filesystem` or `Block`.
        phase: `Pending`, `Bound` or `Lost`.
        deleting: Whether it is being deleted.
    """

    namespace: str = "default"
    name: str
    volume: str = ""
    bound: bool = False
    storage_class: str = ""
    access_modes: tuple[str, ...] = ()
    selected_node: str = ""
    size: int = 0
    selector: LabelSelector | None = None
    mode: str = "Filesystem"
    phase: str = "Bound"
    deleting: bool = False

    @classmethod
    def of(cls, claim: Manifest) -> "Claim":
        """Parse a PersistentVolumeClaim.

        Raises:
            ManifestError: If fields are invalid.
        """
        return read_object("PersistentVolumeClaim", claim, cls._read)

    @classmethod
    def _read(cls, claim: ObjectFields) -> "Claim":
        spec, annotations = claim.spec, claim.metadata.labels("annotations")
        return cls(
            namespace=claim.namespace,
            name=claim.name,
            volume=spec.text("volumeName"),
            # Both, as the scheduler demands (isPVCFullyBound): a volume name alone may be a wish of the user.
            bound=bool(spec.text("volumeName")) and _BOUND in annotations,
            storage_class=_class_of(claim),
            access_modes=spec.texts("accessModes"),
            selected_node=annotations.get(_SELECTED_NODE, ""),
            size=spec.child("resources").amounts("requests").get("storage", 0) // NANO,
            selector=spec.selector("selector") if spec.value.get("selector") is not None else None,
            mode=spec.text("volumeMode") or "Filesystem",
            phase=claim.status.text("phase") or "Pending",
            deleting=claim.deleting,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Volume:
    """A persistent volume.

    Args:
        labels: Its labels; those for zone and region limit the nodes.
        node_affinity: The terms of its required node affinity; None without it.
        storage_class: Its class; empty for none.
        access_modes: The access modes that it has.
        size: Its bytes.
        claim: The claim that it is reserved for, `shop/data-0`; empty for none.
        mode: `Filesystem` or `Block`.
        phase: `Available`, `Bound`, `Released` or `Failed`.
        local: Whether its content is on one node.
        deleting: Whether it is being deleted.
        csi: Its CSI driver and its handle there; None for a volume of another kind.
    """

    name: str
    labels: Mapping[str, str] = field(default_factory=dict)
    node_affinity: tuple[NodeSelectorTerm, ...] | None = None
    storage_class: str = ""
    access_modes: tuple[str, ...] = ()
    size: int = 0
    claim: str = ""
    mode: str = "Filesystem"
    phase: str = "Available"
    local: bool = False
    deleting: bool = False
    csi: tuple[str, str] | None = None

    @classmethod
    def of(cls, volume: Manifest) -> "Volume":
        """Parse a PersistentVolume.

        Raises:
            ManifestError: If fields are invalid.
        """
        return read_object("PersistentVolume", volume, cls._read, namespaced=False)

    @classmethod
    def _read(cls, volume: ObjectFields) -> "Volume":
        spec = volume.spec
        affinity, claim, csi = spec.child("nodeAffinity"), spec.child("claimRef"), spec.child("csi")
        return cls(
            name=volume.name,
            labels=volume.metadata.labels("labels"),
            node_affinity=(
                read_terms(affinity.child("required").items("nodeSelectorTerms")) if "required" in affinity else None
            ),
            storage_class=_class_of(volume),
            access_modes=spec.texts("accessModes"),
            size=spec.amounts("capacity").get("storage", 0) // NANO,
            claim=f"{claim.text('namespace')}/{claim.text('name')}" if claim.text("name") else "",
            mode=spec.text("volumeMode") or "Filesystem",
            phase=volume.status.text("phase") or "Pending",
            local="local" in spec or "hostPath" in spec,
            deleting=volume.deleting,
            csi=(csi.text("driver"), csi.text("volumeHandle")) if "csi" in spec else None,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class StorageClass:
    """A storage class.

    Args:
        provisioner: The provisioner; empty if volumes are not provisioned on demand.
        delayed: Whether a volume is bound only when the first pod is scheduled.
        topologies: The allowed topologies: for each alternative the allowed values by label.
    """

    name: str
    provisioner: str = ""
    delayed: bool = False
    topologies: tuple[Mapping[str, frozenset[str]], ...] = ()

    @classmethod
    def of(cls, storage_class: Manifest) -> "StorageClass":
        """Parse a StorageClass.

        Raises:
            ManifestError: If fields are invalid.
        """
        return read_object("StorageClass", storage_class, cls._read, namespaced=False)

    @classmethod
    def _read(cls, storage_class: ObjectFields) -> "StorageClass":
        fields = storage_class.top
        provisioner = fields.text("provisioner")
        return cls(
            name=storage_class.name,
            provisioner="" if provisioner == "kubernetes.io/no-provisioner" else provisioner,
            delayed=fields.text("volumeBindingMode") == "WaitForFirstConsumer",
            topologies=tuple(map(_topology, fields.items("allowedTopologies"))),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class AttachLimits:
    """How many volumes the CSI drivers can attach to a node, from its CSINode.

    Args:
        name: The name of the node.
        counts: The most volumes by driver; drivers without a limit are left out.
    """

    name: str
    counts: tuple[tuple[str, int], ...] = ()

    @classmethod
    def of(cls, csi_node: Manifest) -> "AttachLimits":
        """Parse a CSINode.

        Raises:
            ManifestError: If fields are invalid.
        """
        return read_object("CSINode", csi_node, cls._read, namespaced=False)

    @classmethod
    def _read(cls, csi_node: ObjectFields) -> "AttachLimits":
        counts = {
            each.text("name"): each.child("allocatable").integer("count")
            for each in csi_node.spec.items("drivers")
            if "count" in each.child("allocatable")
        }
        return cls(name=csi_node.name, counts=tuple(sorted(counts.items())))


def _class_of(found: ObjectFields) -> str:
    """Return the storage class of a claim or a volume; the annotation is older than the field, and wins."""
    return found.metadata.labels("annotations").get(_BETA_CLASS) or found.spec.text("storageClassName")


def _topology(term: Fields) -> Mapping[str, frozenset[str]]:
    found: dict[str, frozenset[str]] = {}
    for each in term.items("matchLabelExpressions"):
        key, values = each.text("key"), frozenset(each.texts("values"))
        # Requirements of one term all apply.
        found[key] = found[key] & values if key in found else values
    return found
