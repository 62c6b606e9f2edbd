"""Validation of the options of pods on Windows nodes.

Source: `validateWindowsSecurityContextOptions`, `validateWindowsHostProcessPod`, `validateWindows` and `validateLinux`
in `pkg/apis/core/validation/validation.go` of Kubernetes.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, TypeAlias

from ocf.objects.field_errors import FieldError, forbidden, invalid
from ocf.objects.name_validation import dns_subdomain

__all__ = ["host_process_errors", "system_errors", "windows_options_errors"]

_Json: TypeAlias = Mapping[str, Any]
_Containers: TypeAlias = Sequence[tuple[str, _Json]]

# maxGMSACredentialSpecLength, maxRunAsUserNameDomainLength and maxRunAsUserNameUserLength.
_LARGEST_SPEC: Final = 64 * 1024
_DOMAIN_END: Final = 256
_LONGEST_USER: Final = 104
_has_control: Final = re.compile(r"[\x00-\x1f\x7f]").search
_is_net_bios: Final = re.compile(r'[^\\/:\*\?"<>|\.][^\\/:\*\?"<>|]{0,14}').fullmatch
_LABEL: Final = "[a-zA-Z0-9](?:[a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?"
_is_domain: Final = re.compile(rf"{_LABEL}(?:\.{_LABEL})*").fullmatch
_is_dots: Final = re.compile(r"[\. ]+").fullmatch
_has_forbidden: Final = re.compile(r'["/\\:;|=,\+\*\?<>@\[\]]').search
_POD_LINUX: Final = (
    "appArmorProfile",
    "seLinuxOptions",
    "seccompProfile",
    "fsGroup",
    "fsGroupChangePolicy",
    "sysctls",
    "runAsUser",
    "runAsGroup",
    "supplementalGroups",
    "supplementalGroupsPolicy",
    "seLinuxChangePolicy",
)
_CONTAINER_LINUX: Final = (
    "appArmorProfile",
    "seLinuxOptions",
    "seccompProfile",
    "capabilities",
    "readOnlyRootFilesystem",
    "privileged",
    "allowPrivilegeEscalation",
    "procMount",
    "runAsUser",
    "runAsGroup",
)


def windows_options_errors(options: _Json | None, path: str) -> Iterator[FieldError]:
    """Yield the errors of the Windows options of a security context; None if there are none."""
    if options is None:
        return
    if "gmsaCredentialSpecName" in options:
        name = options["gmsaCredentialSpecName"]
        for problem in dns_subdomain(name):
            yield invalid(f"{path}.gmsaCredentialSpecName", name, problem, as_json=True)
    if "gmsaCredentialSpec" in options:
        yield from _credential_errors(options["gmsaCredentialSpec"], f"{path}.gmsaCredentialSpec")
    if "runAsUserName" in options:
        name = options["runAsUserName"]
        for problem in _user_problems(name):
            yield invalid(f"{path}.runAsUserName", name, f"runAsUserName{problem}", as_json=True)


def _credential_errors(credential: str, path: str) -> Iterator[FieldError]:
    if not credential:
        yield invalid(path, credential, "gmsaCredentialSpec cannot be an empty string", as_json=True)
    elif len(credential.encode(errors="surrogatepass")) > _LARGEST_SPEC:
        yield invalid(path, credential, "gmsaCredentialSpec size must be under 64 KiB", as_json=True)


def _user_problems(name: str) -> Iterator[str]:
    parts = name.split("\\")
    if not name:
        yield " cannot be an empty string"
    elif _has_control(name):
        yield " cannot contain control characters"
    elif len(parts) > 2:  # noqa: PLR2004
        yield " cannot contain more than one backslash"
    else:
        yield from _parts_problems(parts)


def _parts_problems(parts: list[str]) -> Iterator[str]:
    domain, user = ("", parts[0]) if len(parts) == 1 else parts
    if len(domain) >= _DOMAIN_END:
        yield f"'s Domain length must be under {_DOMAIN_END} characters"
    if len(parts) > 1 and not _is_net_bios(domain) and not _is_domain(domain):
        yield "'s Domain doesn't match the NetBios nor the DNS format"
    if not user:
        yield "'s User cannot be empty"
    elif len(user) > _LONGEST_USER:
        yield f"'s User length must not be longer than {_LONGEST_USER} characters"
    if _is_dots(user):
        yield "'s User cannot contain only periods or spaces"
    if _has_forbidden(user):
        yield "'s User cannot contain the following characters: \"/\\:;|=,+*?<>@[]"


def _host_process(holder: _Json) -> bool | None:
    value: bool | None = holder.get("securityContext", {}).get("windowsOptions", {}).get("hostProcess")
    return value


def host_process_errors(spec: _Json, containers: _Containers, path: str) -> Iterator[FieldError]:
    """Yield the errors of a pod with containers in the namespaces of a Windows node.

    Args:
        containers: All its containers, with their fields.
    """
    of_pod, count = _host_process(spec), 0
    for place, container in containers:
        own = _host_process(container)
        if of_pod is not None and own is not None and of_pod != own:
            shown = "true" if of_pod else "false"
            detail = f"pod hostProcess value must be identical if both are specified, was {shown}"
            yield invalid(f"{place}.securityContext.windowsOptions.hostProcess", own, detail)
        count += bool(of_pod if own is None else own)
    if not count:
        return
    if count != len(containers):
        detail = "If pod contains any hostProcess containers then all containers must be HostProcess containers"
        yield invalid(path, "", detail)
    if not spec.get("hostNetwork"):
        detail = "hostNetwork must be true if pod contains any hostProcess containers"
        yield invalid(f"{path}.hostNetwork", value=False, detail=detail)


def system_errors(spec: _Json, containers: _Containers, path: str) -> Iterator[FieldError]:
    """Yield the errors of fields that the operating system of a pod does not have.

    Args:
        spec: The spec of the pod, with a valid `os`.
        containers: All its containers, with their fields.
    """
    context = spec.get("securityContext", {})
    if spec["os"]["name"] == "linux":
        holders = [(path, spec), *containers]
        for place, holder in holders:
            if "windowsOptions" in holder.get("securityContext", {}):
                detail = "windows options cannot be set for a linux pod"
                yield forbidden(f"{place}.securityContext.windowsOptions", detail)
        return
    own = [f"securityContext.{name}" for name in _POD_LINUX[:2] if name in context]
    own += [name for name in ("hostUsers", "hostPID", "hostIPC") if spec.get(name) or name in spec]
    own += [f"securityContext.{name}" for name in _POD_LINUX[2:6] if name in context]
    own += [name for name in ("shareProcessNamespace",) if name in spec]
    own += [f"securityContext.{name}" for name in _POD_LINUX[6:] if name in context]
    for name in own:
        yield forbidden(f"{path}.{name}", "cannot be set for a windows pod")
    for place, container in containers:
        for name in _CONTAINER_LINUX:
            if name in container.get("securityContext", {}):
                yield forbidden(f"{place}.securityContext.{name}", "cannot be set for a windows pod")
