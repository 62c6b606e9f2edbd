"""Validation of PersistentVolumes, except for the fields inside of their sources, their capacity and node affinity.

Source: `ValidatePersistentVolume` in `pkg/apis/core/validation/validation.go` of Kubernetes.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from ocf.objects import Manifest
from ocf.objects.field_errors import FieldError, forbidden, required
from ocf.objects.name_validation import dns_subdomain
from ocf_server.validation.fields import each_problem, enumeration, immutable
from ocf_server.validation.go_structs import go_diff, go_struct
from ocf_server.validation.metadata import metadata_errors
from ocf_server.validation.validation import Validation

__all__ = ["VALIDATIONS"]

_SOURCE: Final = "PersistentVolumeSource"
_SOURCES: Final = (
    "hostPath",
    "gcePersistentDisk",
    "awsElasticBlockStore",
    "glusterfs",
    "flocker",
    "nfs",
    "rbd",
    "quobyte",
    "cephfs",
    "iscsi",
    "cinder",
    "fc",
    "flexVolume",
    "azureFile",
    "vsphereVolume",
    "photonPersistentDisk",
    "portworxVolume",
    "azureDisk",
    "scaleIO",
    "local",
    "storageos",
    "csi",
)
"""The sources in the order in which the API server checks them."""
_ACCESS_MODES: Final = ("ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod")
_ONE_POD: Final = "ReadWriteOncePod"
_RECLAIM: Final = ("Delete", "Recycle", "Retain")
_VOLUME_MODES: Final = ("Block", "Filesystem")


def _volume_errors(volume: Manifest) -> Iterator[FieldError]:
    yield from metadata_errors(volume["metadata"])
    spec: Mapping[str, Any] = volume.get("spec") or {}
    yield from _access_errors(spec.get("accessModes") or ())
    yield from enumeration(
        spec.get("persistentVolumeReclaimPolicy") or None, _RECLAIM, "spec.persistentVolumeReclaimPolicy"
    )
    found = [name for name in _SOURCES if spec.get(name) is not None]
    yield from (forbidden(f"spec.{name}", "may not specify more than 1 volume type") for name in found[1:])
    if not found:
        yield required("spec", "must specify a volume type")
    if spec.get("storageClassName"):
        yield from each_problem(dns_subdomain, spec["storageClassName"], "spec.storageClassName")
    yield from enumeration(spec.get("volumeMode"), _VOLUME_MODES, "spec.volumeMode")
    yield from _attributes_errors(spec)


def _access_errors(modes: Any) -> Iterator[FieldError]:
    if not modes:
        yield required("spec.accessModes")
    for mode in modes:
        yield from enumeration(mode, _ACCESS_MODES, "spec.accessModes")
    if _ONE_POD in modes and any(mode in _ACCESS_MODES and mode != _ONE_POD for mode in modes):
        yield forbidden("spec.accessModes", "may not use ReadWriteOncePod with other access modes")


def _attributes_errors(spec: Mapping[str, Any]) -> Iterator[FieldError]:
    name = spec.get("volumeAttributesClassName")
    if name is None:
        return
    if name:
        yield from each_problem(dns_subdomain, name, "spec.volumeAttributesClassName")
    else:
        yield required("spec.volumeAttributesClassName", "an empty string is disallowed")
    if spec.get("csi") is None:
        yield required("spec.csi", "has to be specified when using volumeAttributesClassName")


def _volume_update_errors(new: Manifest, old: Manifest) -> Iterator[FieldError]:
    # The API server validates the new object twice, and returns each cause twice.
    yield from _volume_errors(new)
    yield from _volume_errors(new)
    before, after = dict(old["spec"]), _without_first_secret(new["spec"], old["spec"])
    if go_struct(_SOURCE, before) != go_struct(_SOURCE, after):
        diff = go_diff(_SOURCE, before, after)
        yield forbidden(
            "spec.persistentvolumesource", f"spec.persistentvolumesource is immutable after creation\n{diff}"
        )
    yield from immutable(new["spec"].get("volumeMode"), old["spec"].get("volumeMode"), "volumeMode")
    if before.get("volumeAttributesClassName") is not None and after.get("volumeAttributesClassName") is None:
        yield forbidden("spec.volumeAttributesClassName", "update from non-nil value to nil is forbidden")


def _without_first_secret(new: Mapping[str, Any], old: Mapping[str, Any]) -> dict[str, Any]:
    """Return the new spec without a Secret for the expansion, which may be set once."""
    after, known = new.get("csi"), old.get("csi")
    if after is None or known is None or known.get("controllerExpandSecretRef") is not None:
        return dict(new)
    return {**new, "csi": {name: value for name, value in after.items() if name != "controllerExpandSecretRef"}}


VALIDATIONS: Final = {"PersistentVolume": Validation(_volume_errors, _volume_update_errors)}
