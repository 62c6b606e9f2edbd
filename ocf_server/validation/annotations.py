"""Validation of annotations with a meaning for pods.

Source: `ValidatePodSpecificAnnotations`, `validateSeccompAnnotationsAndFields` and
`validateAppArmorAnnotationsAndFieldsMatchOnCreate` in `pkg/apis/core/validation/validation.go` of Kubernetes. The
tolerations that the annotations of old releases contain are not checked.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final, TypeAlias

from ocf.objects.field_errors import FieldError, forbidden, invalid
from ocf_server.validation.containers import all_containers
from ocf_server.validation.file_paths import descending_path

__all__ = ["annotation_update_errors", "pod_annotation_errors", "profile_match_errors"]

_Json: TypeAlias = Mapping[str, Any]

_MIRROR: Final = "kubernetes.io/config.mirror"
_DELETION_COST: Final = "controller.kubernetes.io/pod-deletion-cost"
_is_cost: Final = re.compile(r"0|-?[1-9][0-9]*").fullmatch
_INT32: Final = range(-(2**31), 2**31)
_SECCOMP_POD: Final = "seccomp.security.alpha.kubernetes.io/pod"
_SECCOMP_CONTAINER: Final = "container.seccomp.security.alpha.kubernetes.io/"
_SECCOMP_NAMES: Final = ("runtime/default", "docker/default", "unconfined")
_APPARMOR: Final = "container.apparmor.security.beta.kubernetes.io/"
_FILE: Final = "localhost/"
_TYPES: Final[Mapping[str, Mapping[str, tuple[str, ...]]]] = {
    "seccomp": {"Unconfined": ("unconfined",), "RuntimeDefault": ("runtime/default", "docker/default")},
    "apparmor": {"Unconfined": ("unconfined",), "RuntimeDefault": ("runtime/default",)},
}


def pod_annotation_errors(annotations: Mapping[str, str], spec: _Json, path: str) -> Iterator[FieldError]:
    """Yield the errors of annotations of a pod or a pod template at a path."""
    if _MIRROR in annotations and not spec.get("nodeName"):
        detail = "must set spec.nodeName if mirror pod annotation is set"
        yield invalid(f"{path}[{_MIRROR}]", annotations[_MIRROR], detail)
    cost = annotations.get(_DELETION_COST, "0")
    if not _is_cost(cost) or int(cost) not in _INT32:
        yield invalid(f"{path}[{_DELETION_COST}]", cost, "must be a 32bit integer")
    # That of the pod first, as the API server does.
    for key, value in sorted(annotations.items(), key=lambda pair: (pair[0] != _SECCOMP_POD, pair[0])):
        if key == _SECCOMP_POD or key.startswith(_SECCOMP_CONTAINER):
            yield from _seccomp_name_errors(value, f"{path}.{key}")
    for key, value in sorted(annotations.items()):
        if key.startswith(_APPARMOR):
            yield from _apparmor_name_errors(key.removeprefix(_APPARMOR), value, spec, f"{path}[{key}]")


def _seccomp_name_errors(value: str, path: str) -> Iterator[FieldError]:
    if value.startswith(_FILE):
        yield from descending_path(value.removeprefix(_FILE), path)
    elif value not in _SECCOMP_NAMES:
        yield invalid(path, value, "must be a valid seccomp profile")


def _apparmor_name_errors(name: str, value: str, spec: _Json, path: str) -> Iterator[FieldError]:
    if all(container["name"] != name for _, container in all_containers(spec, "spec")):
        yield invalid(path, name, "container not found")
    if value not in ("", "runtime/default", "unconfined") and not value.startswith(_FILE):
        yield invalid(path, value, f'invalid AppArmor profile name: "{value}"')


def profile_match_errors(annotations: Mapping[str, str], spec: _Json, path: str) -> Iterator[FieldError]:
    """Yield the errors of security profiles in the spec at a path that differ from those in annotations."""
    of_pod = spec.get("securityContext", {})
    profile = of_pod.get("seccompProfile")
    if profile is not None:
        place = f"{path}.securityContext.seccompProfile"
        yield from _match_errors("seccomp", annotations.get(_SECCOMP_POD), profile, place)
    for place, container in all_containers(spec, path):
        own = container.get("securityContext", {}).get("seccompProfile")
        if own is not None:
            value = annotations.get(_SECCOMP_CONTAINER + container["name"])
            yield from _match_errors("seccomp", value, own, f"{place}.securityContext.seccompProfile")
    if spec.get("os", {}).get("name") == "windows":
        return
    for place, container in all_containers(spec, path):
        own = container.get("securityContext", {}).get("appArmorProfile", of_pod.get("appArmorProfile"))
        if own is not None:
            value = annotations.get(_APPARMOR + container["name"])
            yield from _match_errors("apparmor", value, own, f"{place}.securityContext.appArmorProfile")


def _match_errors(what: str, value: str | None, profile: _Json, path: str) -> Iterator[FieldError]:
    if value is None:
        return
    kind = profile.get("type", "")
    if kind == "Localhost" and value.startswith(_FILE):
        if value.removeprefix(_FILE) != profile.get("localhostProfile"):
            yield forbidden(f"{path}.localhostProfile", f"{what} profile in annotation and field must match")
    elif kind == "Localhost" or (kind in _TYPES[what] and value not in _TYPES[what][kind]):
        yield forbidden(f"{path}.type", f"{what} type in annotation and field must match")


def annotation_update_errors(new: _Json, live: _Json, path: str) -> Iterator[FieldError]:
    """Yield the errors of an update of the annotations of a pod."""
    after, before = new["metadata"].get("annotations") or {}, live["metadata"].get("annotations") or {}
    for changed, verb in ((before, "remove or update"), (after, "add")):
        for key in sorted(changed):
            if after.get(key) == before.get(key) or (verb == "add" and key in before):
                continue
            if key.startswith(_APPARMOR):
                yield forbidden(f"{path}[{key}]", f"may not {verb} AppArmor annotations")
            if key == _MIRROR:
                yield forbidden(f"{path}[{key}]", f"may not {verb} mirror pod annotation")
    yield from pod_annotation_errors(after, new["spec"], path)
