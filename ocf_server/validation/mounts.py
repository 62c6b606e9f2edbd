"""Validation of volumes and block devices that a container uses.

Source: `ValidateVolumeMounts` and `ValidateVolumeDevices` in `pkg/apis/core/validation/validation.go` of Kubernetes.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final, TypeAlias

from ocf.objects.field_errors import FieldError, forbidden, invalid, not_found, required
from ocf_server.validation.fields import enumeration
from ocf_server.validation.file_paths import descending_path

__all__ = ["device_errors", "mount_errors"]

_Json: TypeAlias = Mapping[str, Any]

_PROPAGATIONS: Final = ("Bidirectional", "HostToContainer", "None")
_RECURSIVE: Final = ("Disabled", "Enabled", "IfPossible")


def mount_errors(container: _Json, volumes: Mapping[str, _Json], path: str) -> Iterator[FieldError]:
    """Yield the errors of the volume mounts of a container.

    Args:
        volumes: The valid volumes of the pod by name.
        path: Field of the mounts. The API server names it, not the mount, in some of the errors.
    """
    devices = {device["name"]: device["devicePath"] for device in container.get("volumeDevices", ())}
    used: set[str] = set()
    for index, mount in enumerate(container.get("volumeMounts", ())):
        place, name, directory = f"{path}[{index}]", mount["name"], mount["mountPath"]
        if not name:
            yield required(f"{place}.name")
        if name not in volumes:
            yield not_found(f"{place}.name", name)
        if not directory:
            yield required(f"{place}.mountPath")
        if directory in used:
            yield invalid(f"{place}.mountPath", directory, "must be unique")
        used.add(directory)
        if name in devices:
            yield invalid(f"{place}.name", name, "must not already exist in volumeDevices")
        if directory in devices.values():
            yield invalid(f"{place}.mountPath", directory, "must not already exist as a path in volumeDevices")
        yield from _part_errors(mount, path, place)
        yield from _propagation_errors(mount, container, f"{path}.mountPropagation")
        yield from _recursive_errors(mount, f"{path}.recursiveReadOnly")


def _part_errors(mount: _Json, path: str, place: str) -> Iterator[FieldError]:
    part, expression = mount.get("subPath", ""), mount.get("subPathExpr", "")
    if part:
        yield from descending_path(part, f"{path}.subPath")
    if expression:
        if part:
            yield invalid(f"{place}.subPathExpr", expression, "subPathExpr and subPath are mutually exclusive")
        yield from descending_path(expression, f"{path}.subPathExpr")


def _propagation_errors(mount: _Json, container: _Json, path: str) -> Iterator[FieldError]:
    propagation = mount.get("mountPropagation")
    yield from enumeration(propagation, _PROPAGATIONS, path)
    if propagation == "Bidirectional" and not container.get("securityContext", {}).get("privileged"):
        yield forbidden(path, "Bidirectional mount propagation is available only to privileged containers")


def _recursive_errors(mount: _Json, path: str) -> Iterator[FieldError]:
    recursive = mount.get("recursiveReadOnly")
    yield from enumeration(recursive, _RECURSIVE, path)
    if recursive in ("Enabled", "IfPossible"):
        if not mount.get("readOnly"):
            yield forbidden(path, "may only be specified when readOnly is true")
        if mount.get("mountPropagation") not in (None, "None"):
            yield forbidden(path, "may only be specified when mountPropagation is None or not specified")


def device_errors(container: _Json, volumes: Mapping[str, _Json], path: str) -> Iterator[FieldError]:
    """Yield the errors of the block devices of a container.

    Args:
        volumes: The valid volumes of the pod by name.
    """
    mounts = {mount["name"]: mount["mountPath"] for mount in container.get("volumeMounts", ())}
    names: set[str] = set()
    paths: set[str] = set()
    for index, device in enumerate(container.get("volumeDevices", ())):
        place, name, file = f"{path}[{index}]", device["name"], device["devicePath"]
        yield from _device_name_errors(name, names, volumes, f"{place}.name")
        yield from _device_path_errors(file, paths, f"{place}.devicePath")
        if name in mounts:
            yield invalid(f"{place}.name", name, "must not already exist in volumeMounts")
        if file in mounts.values():
            yield invalid(f"{place}.devicePath", file, "must not already exist as a path in volumeMounts")
        names.add(name)


def _device_name_errors(name: str, names: set[str], volumes: Mapping[str, _Json], path: str) -> Iterator[FieldError]:
    if not name:
        yield required(path)
    elif name in names:
        yield invalid(path, name, "must be unique")
    if name not in volumes:
        yield not_found(path, name)
    elif "persistentVolumeClaim" not in volumes[name] and "ephemeral" not in volumes[name]:
        detail = "can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode"
        yield invalid(path, name, detail)


def _device_path_errors(file: str, paths: set[str], path: str) -> Iterator[FieldError]:
    if not file:
        yield required(path)
    if file in paths:
        yield invalid(path, file, "must be unique")
    if ".." in file.split("/"):
        yield invalid(path, file, "can not contain backsteps ('..')")
    else:
        paths.add(file)
