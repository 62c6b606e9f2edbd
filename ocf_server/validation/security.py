"""Validation of security contexts of pods and containers.

Source: `ValidateSecurityContext` and `validatePodSpecSecurityContext` in `pkg/apis/core/validation/validation.go` of
Kubernetes. Options of Windows are checked by `windows`.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final, TypeAlias

from ocf.objects.field_errors import FieldError, duplicate, invalid, not_supported, required, too_long
from ocf_server.validation.fields import enumeration, in_range
from ocf_server.validation.file_paths import descending_path
from ocf_server.validation.go_structs import go_struct
from ocf_server.validation.windows import windows_options_errors

__all__ = ["container_security_errors", "pod_security_errors"]

_Json: TypeAlias = Mapping[str, Any]

# MaxInt32 (IsValidUserID, IsValidGroupID).
_LARGEST_ID: Final = 2**31 - 1
_PROFILES: Final = ("Localhost", "RuntimeDefault", "Unconfined")
# PATH_MAX without its last byte.
_LONGEST_PROFILE: Final = 4095
_SEGMENT: Final = "[a-z0-9]([-_a-z0-9]*[a-z0-9])?"
_SYSCTL: Final = rf"({_SEGMENT}[\./])*{_SEGMENT}"
# SysctlMaxLength.
_LONGEST_SYSCTL: Final = 253
_is_sysctl: Final = re.compile(_SYSCTL).fullmatch
_IPC: Final = ("kernel.sem",)
_IPC_STARTS: Final = ("kernel.shm", "kernel.msg", "fs.mqueue.")


def container_security_errors(context: _Json, path: str, *, host_users: bool) -> Iterator[FieldError]:
    """Yield the errors of the security context of a container.

    Args:
        host_users: Whether the pod uses the user namespace of its node.
    """
    for name in ("runAsUser", "runAsGroup"):
        yield from _id_errors(context.get(name), f"{path}.{name}")
    yield from _proc_mount_errors(context.get("procMount"), f"{path}.procMount", host_users=host_users)
    yield from _seccomp_errors(context.get("seccompProfile"), f"{path}.seccompProfile")
    if context.get("allowPrivilegeEscalation") is False:
        if context.get("privileged"):
            detail = "cannot set `allowPrivilegeEscalation` to false and `privileged` to true"
            yield invalid(path, go_struct("SecurityContext", context), detail)
        for name in context.get("capabilities", {}).get("add", ()):
            if name == "CAP_SYS_ADMIN":
                detail = "cannot set `allowPrivilegeEscalation` to false and `capabilities.Add` CAP_SYS_ADMIN"
                yield invalid(path, go_struct("SecurityContext", context), detail)
    yield from windows_options_errors(context.get("windowsOptions"), f"{path}.windowsOptions")
    yield from _apparmor_errors(context.get("appArmorProfile"), f"{path}.appArmorProfile")


def _id_errors(value: int | None, path: str) -> Iterator[FieldError]:
    if value is not None:
        yield from in_range(value, 0, _LARGEST_ID, path)


def _proc_mount_errors(value: str | None, path: str, *, host_users: bool) -> Iterator[FieldError]:
    yield from enumeration(value, ("Default", "Unmasked"), path)
    if value == "Unmasked" and host_users:
        yield invalid(path, value, "`hostUsers` must be false to use `Unmasked`", as_json=True)


def _seccomp_errors(profile: _Json | None, path: str) -> Iterator[FieldError]:
    if profile is None:
        return
    kind, file = profile.get("type", ""), profile.get("localhostProfile")
    if not kind:
        yield required(f"{path}.type", "type is required when seccompProfile is set")
    else:
        yield from enumeration(kind, _PROFILES, f"{path}.type")
    if kind != "Localhost":
        if file is not None:
            shown = go_struct("SeccompProfile", profile)
            yield invalid(f"{path}.localhostProfile", shown, "can only be set when seccomp type is Localhost")
    elif file is None:
        yield required(f"{path}.localhostProfile", "must be set when seccomp type is Localhost")
    else:
        yield from descending_path(file, f"{path}.localhostProfile")


def _apparmor_errors(profile: _Json | None, path: str) -> Iterator[FieldError]:
    if profile is None:
        return
    kind, file = profile.get("type", ""), profile.get("localhostProfile")
    place = f"{path}.localhostProfile"
    if not kind:
        yield required(f"{path}.type", "type is required when appArmorProfile is set")
    elif kind == "Localhost":
        yield from _apparmor_file_errors(file, place)
    elif kind not in _PROFILES:
        yield not_supported(f"{path}.type", kind, _PROFILES)
    elif file is not None:
        yield invalid(place, file, "can only be set when AppArmor type is Localhost", as_json=True)


def _apparmor_file_errors(file: str | None, path: str) -> Iterator[FieldError]:
    if file is None or not file:
        yield required(path, "must be set when AppArmor type is Localhost")
        return
    if file.strip() != file:
        yield invalid(path, file, "must not be padded with whitespace")
    if len(file.encode(errors="surrogatepass")) > _LONGEST_PROFILE:
        yield too_long(path, _LONGEST_PROFILE)


def pod_security_errors(spec: _Json, path: str) -> Iterator[FieldError]:
    """Yield the errors of the security context of a pod."""
    context = spec.get("securityContext") or {}
    for name in ("fsGroup", "runAsUser", "runAsGroup"):
        yield from _id_errors(context.get(name), f"{path}.{name}")
    for index, group in enumerate(context.get("supplementalGroups", ())):
        yield from _id_errors(group, f"{path}.supplementalGroups[{index}]")
    if spec.get("shareProcessNamespace") and spec.get("hostPID"):
        detail = "ShareProcessNamespace and HostPID cannot both be enabled"
        yield invalid(f"{path}.shareProcessNamespace", value=True, detail=detail)
    yield from _sysctl_errors(context.get("sysctls", ()), spec, f"{path}.sysctls")
    changes = ("Always", "OnRootMismatch")
    yield from enumeration(context.get("fsGroupChangePolicy"), changes, f"{path}.fsGroupChangePolicy")
    yield from _seccomp_errors(context.get("seccompProfile"), f"{path}.seccompProfile")
    yield from windows_options_errors(context.get("windowsOptions"), f"{path}.windowsOptions")
    yield from _apparmor_errors(context.get("appArmorProfile"), f"{path}.appArmorProfile")
    policies = ("Merge", "Strict")
    yield from enumeration(context.get("supplementalGroupsPolicy"), policies, f"{path}.supplementalGroupsPolicy")
    # The value MountOption needs the feature gate SELinuxMount, which is off by default.
    yield from enumeration(context.get("seLinuxChangePolicy"), ("Recursive",), f"{path}.seLinuxChangePolicy")


def _sysctl_errors(sysctls: Any, spec: _Json, path: str) -> Iterator[FieldError]:
    seen: set[str] = set()
    for index, sysctl in enumerate(sysctls):
        name, place = sysctl.get("name", ""), f"{path}[{index}].name"
        if not name:
            yield required(place)
        elif len(name) > _LONGEST_SYSCTL or not _is_sysctl(name):
            yield invalid(place, name, f"must have at most {_LONGEST_SYSCTL} characters and match regex ^{_SYSCTL}$")
        elif name in seen:
            yield duplicate(place, name)
        seen.add(name)
        yield from _host_sysctl_errors(name, spec, place)


def _host_sysctl_errors(name: str, spec: _Json, path: str) -> Iterator[FieldError]:
    first = re.search(r"[./]", name)
    dotted = name.replace("/", ".") if first is not None and first.group() == "/" else name
    if spec.get("hostNetwork") and dotted.startswith("net."):
        yield invalid(path, name, "may not be specified when 'hostNetwork' is true")
    elif spec.get("hostIPC") and (dotted in _IPC or dotted.startswith(_IPC_STARTS)):
        yield invalid(path, name, "may not be specified when 'hostIPC' is true")
