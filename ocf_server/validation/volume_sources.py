"""Validation of the sources of volumes, one rule for each.

Source: `validateVolumeSource` in `pkg/apis/core/validation/validation.go` of Kubernetes.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, TypeAlias

from ocf.objects.field_errors import FieldError, forbidden, invalid, not_supported, required, too_long
from ocf.objects.name_validation import dns_label, dns_subdomain
from ocf.objects.quantity import Quantity
from ocf_server.validation.claims import claim_template_errors
from ocf_server.validation.downward import file_errors
from ocf_server.validation.fields import each_problem, enumeration, in_range, pull_policy
from ocf_server.validation.file_paths import descending_path, file_mode, no_backsteps
from ocf_server.validation.projections import item_errors, projected_errors

__all__ = ["SOURCE_RULES"]

_Json: TypeAlias = Mapping[str, Any]
_Rule: TypeAlias = Callable[[_Json, str], Iterator[FieldError]]

_HOST_PATH_TYPES: Final = (
    "",
    "BlockDevice",
    "CharDevice",
    "Directory",
    "DirectoryOrCreate",
    "File",
    "FileOrCreate",
    "Socket",
)
_LONGEST_DRIVER: Final = 63
_ISCSI_NAMES: Final = {
    "iqn": re.compile(r"iqn\.\d{4}-\d{2}\.([A-Za-z0-9.-]+)(:[^,;*&$|\s]+)$"),
    "eui": re.compile(r"^eui.[A-Za-z0-9]{16}$"),
    "naa": re.compile(r"^naa.[A-Za-z0-9]{32}$"),
}
_RESERVED: Final = (".kubernetes.io", ".k8s.io")
_CACHING_MODES: Final = ("None", "ReadOnly", "ReadWrite")
_DISK_KINDS: Final = ("Dedicated", "Managed", "Shared")
_MANAGED_DISK: Final = "/subscriptions/{sub-id}/resourcegroups/{group-name}/providers/microsoft.compute/disks/{disk-id}"
_BLOB: Final = "https://{account-name}.blob.core.windows.net/{container-name}/{disk-name}.vhd"


def _requires(*names: str) -> _Rule:
    """Return the rule that fields are set."""

    def rule(source: _Json, path: str) -> Iterator[FieldError]:
        return (required(f"{path}.{name}") for name in names if not source.get(name))

    return rule


def _empty_dir(source: _Json, path: str) -> Iterator[FieldError]:
    if Quantity.parse(source.get("sizeLimit", "0")).nano < 0:
        yield forbidden(f"{path}.sizeLimit", "SizeLimit field must be a valid resource quantity")


def _host_path(source: _Json, path: str) -> Iterator[FieldError]:
    if not source.get("path"):
        yield required(f"{path}.path")
        return
    yield from no_backsteps(source["path"], f"{path}.path")
    yield from enumeration(source.get("type"), _HOST_PATH_TYPES, f"{path}.type")


def _git_repo(source: _Json, path: str) -> Iterator[FieldError]:
    yield from _requires("repository")(source, path)
    yield from descending_path(source.get("directory", ""), f"{path}.directory")


def _disk(name: str) -> _Rule:
    """Return the rule of a disk with partitions."""

    def rule(source: _Json, path: str) -> Iterator[FieldError]:
        yield from _requires(name)(source, path)
        if not 0 <= source.get("partition", 0) <= 255:  # noqa: PLR2004
            yield invalid(f"{path}.partition", source["partition"], "must be between 1 and 255, inclusive")

    return rule


def _files(name: str) -> _Rule:
    """Return the rule of a volume with the entries of an object."""

    def rule(source: _Json, path: str) -> Iterator[FieldError]:
        yield from _requires(name)(source, path)
        yield from file_mode(source.get("defaultMode"), f"{path}.defaultMode")
        for index, item in enumerate(source.get("items", ())):
            yield from item_errors(item, f"{path}.items[{index}]")

    return rule


def _nfs(source: _Json, path: str) -> Iterator[FieldError]:
    yield from _requires("server", "path")(source, path)
    if not source.get("path", "").startswith("/"):
        yield invalid(f"{path}.path", source.get("path", ""), "must be an absolute path")


def _iscsi(source: _Json, path: str) -> Iterator[FieldError]:
    yield from _requires("targetPortal", "iqn")(source, path)
    if source.get("iqn"):
        yield from _iscsi_name(source["iqn"], f"{path}.iqn")
    yield from in_range(source.get("lun", 0), 0, 255, f"{path}.lun")
    if (source.get("chapAuthDiscovery") or source.get("chapAuthSession")) and "secretRef" not in source:
        yield required(f"{path}.secretRef")
    if "initiatorName" in source:
        yield from _iscsi_name(source["initiatorName"], f"{path}.initiatorname")


def _iscsi_name(name: str, path: str) -> Iterator[FieldError]:
    form = _ISCSI_NAMES.get(name[:3])
    if form is None:
        yield invalid(path, name, "must be valid format starting with iqn, eui, or naa")
    elif not form.search(name):
        yield invalid(path, name, "must be valid format")


def _flocker(source: _Json, path: str) -> Iterator[FieldError]:
    name, uuid = source.get("datasetName", ""), source.get("datasetUUID", "")
    if not name and not uuid:
        yield required(path, "one of datasetName and datasetUUID is required")
    if name and uuid:
        yield invalid(path, "resource", "datasetName and datasetUUID can not be specified simultaneously")
    if "/" in name:
        yield invalid(f"{path}.datasetName", name, "must not contain '/'")


def _cinder(source: _Json, path: str) -> Iterator[FieldError]:
    yield from _requires("volumeID")(source, path)
    if "secretRef" in source:
        yield from _requires("name")(source["secretRef"], f"{path}.secretRef")


def _downward(source: _Json, path: str) -> Iterator[FieldError]:
    yield from file_mode(source.get("defaultMode"), f"{path}.defaultMode")
    for file in source.get("items", ()):
        yield from file_errors(file, path)


def _fibre_channel(source: _Json, path: str) -> Iterator[FieldError]:
    names, ids = source.get("targetWWNs") or [], source.get("wwids") or []
    if not names and not ids:
        yield required(f"{path}.targetWWNs", "must specify either targetWWNs or wwids, but not both")
    if names and ids:
        yield invalid(f"{path}.targetWWNs", names, "targetWWNs and wwids can not be specified simultaneously")
    if names and "lun" not in source:
        yield required(f"{path}.lun", "lun is required if targetWWNs is specified")
    elif names:
        yield from in_range(source["lun"], 0, 255, f"{path}.lun")


def _flex_volume(source: _Json, path: str) -> Iterator[FieldError]:
    yield from _requires("driver")(source, path)
    for key in sorted(source.get("options", ())):
        if f".{key.partition('/')[0].lower()}".endswith(_RESERVED):
            yield invalid(f"{path}.options[{key}]", key, "kubernetes.io and k8s.io namespaces are reserved")


def _azure_disk(source: _Json, path: str) -> Iterator[FieldError]:
    yield from _requires("diskName", "diskURI")(source, path)
    yield from enumeration(source.get("cachingMode"), _CACHING_MODES, f"{path}.cachingMode")
    kind, uri = source.get("kind"), source.get("diskURI", "")
    yield from enumeration(kind, _DISK_KINDS, f"{path}.kind")
    start, form = ("/subscriptions/", _MANAGED_DISK) if kind == "Managed" else ("https://", _BLOB)
    if kind is not None and not uri.startswith(start):
        yield not_supported(f"{path}.diskURI", uri, [form])


def _storage_os(source: _Json, path: str) -> Iterator[FieldError]:
    if not source.get("volumeName"):
        yield required(f"{path}.volumeName")
    for name in ("volumeName", "volumeNamespace"):
        if source.get(name):
            yield from each_problem(dns_label, source[name], f"{path}.{name}")
    if "secretRef" in source:
        yield from _requires("name")(source["secretRef"], f"{path}.secretRef")


def _csi(source: _Json, path: str) -> Iterator[FieldError]:
    driver = source.get("driver", "")
    if not driver:
        yield required(f"{path}.driver")
    else:
        if len(driver.encode(errors="surrogatepass")) > _LONGEST_DRIVER:
            yield too_long(f"{path}.driver", _LONGEST_DRIVER)
        yield from (invalid(f"{path}.driver", driver, problem) for problem in dns_subdomain(driver.lower()))
    if "nodePublishSecretRef" not in source:
        return
    secret = source["nodePublishSecretRef"].get("name", "")
    if secret:
        yield from each_problem(dns_subdomain, secret, f"{path}.name")
    else:
        yield required(f"{path}.nodePublishSecretRef.name")


def _ephemeral(source: _Json, path: str) -> Iterator[FieldError]:
    if "volumeClaimTemplate" in source:
        yield from claim_template_errors(source["volumeClaimTemplate"], f"{path}.volumeClaimTemplate")
    else:
        yield required(f"{path}.volumeClaimTemplate")


def _image(source: _Json, path: str) -> Iterator[FieldError]:
    return pull_policy(source.get("pullPolicy", ""), f"{path}.pullPolicy")


SOURCE_RULES: Final[Mapping[str, _Rule]] = {
    "emptyDir": _empty_dir,
    "hostPath": _host_path,
    "gitRepo": _git_repo,
    "gcePersistentDisk": _disk("pdName"),
    "awsElasticBlockStore": _disk("volumeID"),
    "secret": _files("secretName"),
    "nfs": _nfs,
    "iscsi": _iscsi,
    "glusterfs": _requires("endpoints", "path"),
    "flocker": _flocker,
    "persistentVolumeClaim": _requires("claimName"),
    "rbd": _requires("monitors", "image"),
    "cinder": _cinder,
    "cephfs": _requires("monitors"),
    "quobyte": _requires("volume"),
    "downwardAPI": _downward,
    "fc": _fibre_channel,
    "flexVolume": _flex_volume,
    "configMap": _files("name"),
    "azureFile": _requires("secretName", "shareName"),
    "vsphereVolume": _requires("volumePath"),
    "photonPersistentDisk": _requires("pdID"),
    "portworxVolume": _requires("volumeID"),
    "azureDisk": _azure_disk,
    "storageos": _storage_os,
    "projected": projected_errors,
    "scaleIO": _requires("gateway", "system", "volumeName"),
    "csi": _csi,
    "ephemeral": _ephemeral,
    "image": _image,
}
"""The sources of volumes, in the order in which the API server validates them."""
"""The rule of each source, in the order of the API server; it yields the errors of a source at a field."""
