"""Mistakes in PersistentVolumes, PersistentVolumeClaims and StorageClasses."""

from typing import Any, Final

from scripts.record.validation_cases.table import LONG, REMOVED, Table, at, together

__all__ = ["TABLES"]


def _claim(name: str, status: Any = None, **spec: Any) -> dict[str, Any]:
    full = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}, **spec}
    manifest = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": name, "namespace": "default"}}
    return {**manifest, "spec": full, **({"status": status} if status else {})}


_BOUND: Final = {"phase": "Bound", "accessModes": ["ReadWriteOnce"], "capacity": {"storage": "1Gi"}}
_SNAPSHOT: Final = {"apiGroup": "snapshot.storage.k8s.io", "kind": "VolumeSnapshot", "name": "s"}

_CLAIMS: Final = Table(
    kind="PersistentVolumeClaim",
    bases={
        "plain": _claim("data"),
        "class": _claim("data", storageClassName="fast", volumeMode="Block", volumeName="pv-1"),
        "source": _claim("data", dataSource=_SNAPSHOT),
        "selected": _claim("data", selector={"matchLabels": {"a": "b"}}),
    },
    stored={
        "pending": _claim("stored-pending", storageClassName="fast"),
        "bound": _claim("stored-bound", _BOUND, storageClassName="fast", volumeName="pv-2"),
        "no-class": _claim("stored-no-class"),
    },
    mistakes=(
        *at("spec", {}, REMOVED),
        *at("spec.accessModes", [], REMOVED, ["ReadWriteMany"], ["RWO"], ["ReadWriteOnce", "ReadOnlyMany"], [""]),
        *at("spec.accessModes", ["ReadWriteOncePod"], ["ReadWriteOncePod", "ReadWriteOnce"], ["x", "y"]),
        *at("spec.resources.requests", REMOVED),
        *at("spec.resources", {}, REMOVED, {"limits": {"storage": "2Gi"}}),
        *at("spec.resources.requests.storage", "0", "-1Gi", "x", "1.5", "100m", 5, "", "1e3", "0.5"),
        *at("spec.resources.requests.cpu", "1", "-1"),
        *at(
            "spec.resources.requests",
            {"cpu": "1"},
            {"example.com/x": "1", "storage": "1Gi"},
            {"a b": "1", "storage": "1"},
        ),
        *at("spec.resources.limits", {"storage": "1Gi"}, {"storage": "1"}, {"storage": "-1"}, {"cpu": "1"}),
        *at("spec.storageClassName", "", "UPPER", "a_b", "fast.example", LONG, REMOVED, None),
        *at("spec.volumeMode", "Filesystem", "Block", "Other", "", "block"),
        *at("spec.volumeName", "a", "A_B", ""),
        *at("spec.selector", {}, {"matchLabels": {"a b": "c"}}, {"matchLabels": {"a": "b c"}}),
        *at("spec.selector.matchExpressions", [{"key": "a", "operator": "In"}], [{"key": "a", "operator": "x"}]),
        *at(
            "spec.dataSource",
            _SNAPSHOT,
            {},
            {"kind": "PersistentVolumeClaim", "name": "x"},
            {"kind": "Pod", "name": "x"},
        ),
        *at(
            "spec.dataSource",
            {"apiGroup": "", "kind": "Pod", "name": "x"},
            {"apiGroup": "a.b", "kind": "X", "name": "y"},
        ),
        *at("spec.dataSource.name", "", REMOVED, "a/b"),
        *at("spec.dataSource.kind", "", REMOVED),
        *at("spec.dataSource.apiGroup", "", "a_b", REMOVED),
        *at("spec.dataSourceRef", _SNAPSHOT, {"kind": "Pod", "name": "x"}, {}, {"kind": "", "name": ""}),
        *at("spec.dataSourceRef", {"kind": "PersistentVolumeClaim", "name": "x"}, {**_SNAPSHOT, "namespace": "shop"}),
        *at("spec.dataSourceRef", {**_SNAPSHOT, "name": "other"}),
        *at("spec.volumeAttributesClassName", "gold", "A_B", ""),
        *at("metadata.name", "UPPER", "a_b", "a.b", LONG),
        *at("metadata.annotations", {"volume.beta.kubernetes.io/storage-class": "fast"}),
        *together(
            ("metadata.annotations", {"volume.beta.kubernetes.io/storage-class": "fast"}),
            ("spec.storageClassName", "b"),
        ),
    ),
    changes=(
        *at("spec.accessModes", ["ReadWriteMany"]),
        *at("spec.resources.requests.storage", "1023Mi", "512Mi", "1Gi", "1024Mi"),
        *at("spec.storageClassName", "slow", REMOVED, "", None),
        *at("spec.volumeMode", "Block", REMOVED),
        *at("spec.volumeName", "pv-9", "pv-2", REMOVED),
        *at("spec.selector", {"matchLabels": {"a": "b"}}),
        *at("spec.dataSource", _SNAPSHOT),
        *at("spec.volumeAttributesClassName", "gold"),
        *at("metadata.labels", {"a": "b"}),
    ),
    pairs=50,
)


def _class(name: str, **fields: Any) -> dict[str, Any]:
    metadata = {"name": name}
    return {"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": metadata, **fields}


_CLASSES: Final = Table(
    kind="StorageClass",
    bases={"plain": _class("fast", provisioner="example.com/disk", parameters={"type": "ssd"})},
    stored={"plain": _class("stored", provisioner="example.com/disk", parameters={"type": "ssd"})},
    mistakes=(
        *at("provisioner", "", REMOVED, "UP.example/x", "a b", "kubernetes.io/no-provisioner", "a/b/c"),
        *at("parameters", {}, {"": "x"}, {"a": "x" * 262144}, {f"p{i}": "x" for i in range(513)}, REMOVED),
        *at("reclaimPolicy", "Retain", "Recycle", "Other", "", "delete", REMOVED),
        *at("volumeBindingMode", "WaitForFirstConsumer", "Other", "", REMOVED),
        *at("allowVolumeExpansion", True, "x"),
        *at("mountOptions", ["ro"], [""], []),
        *at("allowedTopologies", [], [{}], [{"matchLabelExpressions": []}], [{"matchLabelExpressions": [{}]}]),
        *at(
            "allowedTopologies",
            [{"matchLabelExpressions": [{"key": "zone", "values": ["a"]}]}],
            [{"matchLabelExpressions": [{"key": "zone", "values": ["a", "a"]}]}],
            [{"matchLabelExpressions": [{"key": "zone", "values": []}]}],
            [{"matchLabelExpressions": [{"key": "a b", "values": ["a"]}]}],
            [{"matchLabelExpressions": [{"key": "z", "values": ["a"]}, {"key": "z", "values": ["b"]}]}],
            [{"matchLabelExpressions": [{"key": "z", "values": ["a"]}]}] * 2,
        ),
        *at("metadata.name", "a_b"),
    ),
    changes=(
        *at("provisioner", "example.com/other", ""),
        *at("parameters", {}, {"type": "hdd"}, REMOVED),
        *at("reclaimPolicy", "Retain", REMOVED),
        *at("volumeBindingMode", "WaitForFirstConsumer"),
        *at("allowVolumeExpansion", True),
        *at("mountOptions", ["ro"]),
    ),
    pairs=15,
)


def _volume(name: str, **spec: Any) -> dict[str, Any]:
    full = {"accessModes": ["ReadWriteOnce"], "capacity": {"storage": "1Gi"}, **spec}
    return {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": name}, "spec": full}


_CSI: Final = {"driver": "disk.example.com", "volumeHandle": "v-1"}
_SECRET: Final = {"name": "s", "namespace": "default"}

_VOLUMES: Final = Table(
    kind="PersistentVolume",
    bases={
        "path": _volume("pv", hostPath={"path": "/data"}),
        "csi": _volume("pv-csi", csi=_CSI, volumeMode="Block", storageClassName="fast"),
    },
    stored={
        "path": _volume("stored-path", hostPath={"path": "/data"}),
        "csi": _volume("stored-csi", csi=_CSI, volumeMode="Block", storageClassName="fast"),
        "attributes": _volume("stored-attributes", csi=_CSI, volumeAttributesClassName="gold"),
        "nfs": _volume("stored-nfs", nfs={"server": "nfs.example.com", "path": "/"}, mountOptions=["hard"]),
    },
    mistakes=(
        *at("spec.accessModes", [], REMOVED, ["ReadWriteMany"], ["RWO"], ["ReadWriteOncePod", "ReadWriteOnce"]),
        *at("spec.persistentVolumeReclaimPolicy", "Retain", "Recycle", "Other", "", REMOVED),
        *at("spec.hostPath", REMOVED),
        *at("spec.nfs", {"server": "nfs.example.com", "path": "/"}),
        *together(("spec.local", {"path": "/mnt"}), ("spec.nfs", {"server": "nfs.example.com", "path": "/"})),
        *at("spec.storageClassName", "", "UPPER", "a_b", LONG),
        *at("spec.volumeMode", "Filesystem", "Block", "Other", ""),
        *at("spec.volumeAttributesClassName", "gold", "UPPER", ""),
        *at("metadata.name", "a_b"),
    ),
    changes=(
        *at("spec.hostPath", {"path": "/other"}, {"path": "/data", "type": "Directory"}, {"path": "/data", "type": ""}),
        *at("spec.csi", {**_CSI, "volumeHandle": "v-2"}, {**_CSI, "readOnly": True}, {**_CSI, "readOnly": False}),
        *at("spec.csi", {**_CSI, "controllerExpandSecretRef": _SECRET}, {**_CSI, "nodeStageSecretRef": _SECRET}),
        *at("spec.nfs", {"server": "other.example.com", "path": "/"}),
        *together(("spec.nfs", REMOVED), ("spec.hostPath", {"path": "/data"})),
        *at("spec.volumeMode", "Filesystem", "Block", REMOVED),
        *at("spec.volumeAttributesClassName", "silver", REMOVED),
        *at("spec.capacity.storage", "2Gi"),
        *at("spec.persistentVolumeReclaimPolicy", "Delete"),
        *at("spec.mountOptions", ["ro"]),
    ),
    pairs=30,
)

TABLES: Final = (_CLAIMS, _CLASSES, _VOLUMES)
