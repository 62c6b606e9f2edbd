"""Validation of the statuses of the containers of a Pod.

Source: `ValidateContainerStateTransition` and `validateContainerStatusAllocatedResourcesStatus` in
`pkg/apis/core/validation/validation.go` of Kubernetes, and `ContainerShouldRestart` in `pkg/api/v1/pod/util.go`.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, TypeAlias

from ocf.objects.field_errors import FieldError, duplicate, forbidden, invalid, not_supported, required, too_long
from ocf_server.validation.fields import in_range

__all__ = ["container_status_errors", "resource_status_errors"]

_Json: TypeAlias = Mapping[str, Any]

_EPHEMERAL: Final = "ephemeralContainerStatuses"
_LISTS: Final = {"containerStatuses": "containers", "initContainerStatuses": "initContainers", _EPHEMERAL: ""}
_HEALTH: Final = ("Healthy", "Unhealthy", "Unknown")
_LONGEST_MESSAGE: Final = 1024
# MaxInt32 (IsValidUserID, IsValidGroupID).
_LARGEST_ID: Final = 2**31 - 1
_CLAIM: Final = "claim:"
_CLAIM_FORMAT: Final = (
    "must match one of the container's resource claims in a format 'claim:<claimName>/<request>' or "
    "'claim:<claimName>' if request is empty"
)


def container_status_errors(spec: _Json, status: _Json, before: _Json) -> Iterator[FieldError]:
    """Yield the errors of containers that are not terminated any more, although they are not restarted."""
    for name, containers in _LISTS.items():
        if name != _EPHEMERAL and _all_restart(spec):
            continue
        # Of equal names the first status counts.
        new = {each.get("name", ""): each for each in reversed(status.get(name) or ())}
        known = {each["name"]: each for each in spec.get(containers) or ()}
        for index, old in enumerate(before.get(name) or ()):
            code = _exit_code(old)
            after = new.get(old.get("name", ""))
            if code is None or after is None or _exit_code(after) is not None:
                continue
            container = known.get(old.get("name", ""))
            if container is None or not _restarts(container, spec, code):
                yield forbidden(f"status.{name}[{index}].state", "may not be transitioned to non-terminated state")


def _exit_code(status: _Json) -> int | None:
    """Return the exit code of a terminated container; None for another one."""
    terminated = status.get("state", {}).get("terminated")
    return None if terminated is None else int(terminated.get("exitCode", 0))


def _all_restart(spec: _Json) -> bool:
    """Return whether a rule of a container restarts all containers."""
    rules = (
        rule
        for name in ("initContainers", "containers")
        for container in spec.get(name) or ()
        for rule in container.get("restartPolicyRules") or ()
    )
    return any(rule.get("action") == "RestartAllContainers" for rule in rules)


def _restarts(container: _Json, spec: _Json, code: int) -> bool:
    policy = container.get("restartPolicy")
    if policy is not None and _matches_rule(container, code):
        return True
    effective = policy if policy in ("Always", "OnFailure", "Never") else spec.get("restartPolicy")
    return effective == "Always" or (effective == "OnFailure" and code != 0)


def _matches_rule(container: _Json, code: int) -> bool:
    for rule in container.get("restartPolicyRules") or ():
        codes = rule.get("exitCodes")
        if codes is not None and (code in (codes.get("values") or ())) is (codes["operator"] == "In"):
            return True
    return False


def resource_status_errors(spec: _Json, status: _Json) -> Iterator[FieldError]:
    """Yield the errors of the users and of the allocated resources of containers."""
    windows = spec.get("os", {}).get("name") == "windows"
    for name in _LISTS:
        for index, container in enumerate(status.get(name) or ()):
            user = container.get("user", {}).get("linux")
            if user is not None:
                yield from _user_errors(user, f"status.{name}[{index}].user.linux", windows=windows)
    for name, containers in _LISTS.items():
        known = {each["name"]: each for each in spec.get(containers) or ()}
        for index, container in enumerate(status.get(name) or ()):
            path = f"status.{name}[{index}].allocatedResourcesStatus"
            allocated = container.get("allocatedResourcesStatus") or ()
            if name != _EPHEMERAL:
                yield from _allocated_errors(allocated, known.get(container.get("name", "")), path)
            elif allocated:
                yield forbidden(path, "must not be specified in container status")


def _user_errors(user: _Json, path: str, *, windows: bool) -> Iterator[FieldError]:
    if windows:
        yield forbidden(path, "cannot be set for a windows pod")
        return
    for name in ("uid", "gid"):
        yield from in_range(user.get(name, 0), 0, _LARGEST_ID, f"{path}.{name}")
    for index, group in enumerate(user.get("supplementalGroups") or ()):
        yield from in_range(group, 0, _LARGEST_ID, f"{path}.supplementalGroups[{index}]")


def _allocated_errors(allocated: Sequence[_Json], container: _Json | None, path: str) -> Iterator[FieldError]:
    for index, each in enumerate(allocated):
        name = each.get("name", "")
        resources = {} if container is None else container.get("resources", {})
        # Statuses of containers that the spec does not have are accepted.
        if container is not None and name.startswith(_CLAIM):
            if name not in map(_claim_name, resources.get("claims") or ()):
                yield invalid(f"{path}[{index}].name", name, _CLAIM_FORMAT)
        elif container is not None and name not in resources.get("requests", {}):
            yield invalid(f"{path}[{index}].name", name, "must match one of the container's resource requests")
        yield from _health_errors(each.get("resources") or (), f"{path}[{index}].resources")


def _claim_name(claim: _Json) -> str:
    request = claim.get("request", "")
    return f"{_CLAIM}{claim['name']}{'/' if request else ''}{request}"


def _health_errors(resources: Sequence[_Json], path: str) -> Iterator[FieldError]:
    for index, resource in enumerate(resources):
        place, message = f"{path}[{index}]", resource.get("message")
        if resource.get("health", "") not in _HEALTH:
            yield not_supported(f"{place}.health", resource.get("health", ""), _HEALTH)
        if message is not None and not message:
            yield required(f"{place}.message", "must be non-empty if specified")
        elif message is not None and len(message.encode()) > _LONGEST_MESSAGE:
            yield too_long(f"{place}.message", _LONGEST_MESSAGE)
        if any(resource.get("resourceID", "") == other.get("resourceID", "") for other in resources[:index]):
            yield duplicate(f"{place}.resourceID", resource.get("resourceID", ""))
