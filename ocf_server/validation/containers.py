"""Validation of the containers of a pod.

Source: `validateContainers`, `validateInitContainers` and `validateEphemeralContainers` in
`pkg/apis/core/validation/validation.go` of Kubernetes.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from ocf.objects.field_errors import (
    FieldError,
    duplicate,
    forbidden,
    invalid,
    not_found,
    required,
    too_many,
)
from ocf.objects.name_validation import dns_label
from ocf_server.validation.environment import variable_errors, variable_source_errors
from ocf_server.validation.fields import (
    each_problem,
    enumeration,
    port_name,
    port_number,
    pull_policy,
    required_enumeration,
)
from ocf_server.validation.handlers import lifecycle_errors, probe_errors
from ocf_server.validation.mounts import device_errors, mount_errors
from ocf_server.validation.resources import requirement_errors
from ocf_server.validation.security import container_security_errors

__all__ = [
    "PodParts",
    "all_containers",
    "container_errors",
    "ephemeral_container_errors",
    "image_errors",
    "init_container_errors",
]

_Json: TypeAlias = Mapping[str, Any]

_LISTS: Final = ("initContainers", "containers", "ephemeralContainers")
_MESSAGE_POLICIES: Final = ("File", "FallbackToLogsOnError")
_PROTOCOLS: Final = ("SCTP", "TCP", "UDP")
_RESTART_POLICIES: Final = ("Always", "Never", "OnFailure")
_RESTART_ACTIONS: Final = ("Restart", "RestartAllContainers")
_MOST_RULES: Final = 20
_MOST_CODES: Final = 255
_NOT_EPHEMERAL: Final = (
    "ports",
    "resources",
    "resizePolicy",
    "restartPolicy",
    "restartPolicyRules",
    "livenessProbe",
    "readinessProbe",
    "startupProbe",
    "lifecycle",
)
_WITHOUT_RESTART: Final = ("lifecycle", "livenessProbe", "readinessProbe", "startupProbe")


@dataclass(frozen=True, slots=True)
class PodParts:
    """The parts of a pod that the rules of its containers depend on."""

    spec: _Json
    volumes: Mapping[str, _Json]
    claims: Collection[str]

    @property
    def grace_period(self) -> int | None:
        """The grace period in seconds."""
        return self.spec.get("terminationGracePeriodSeconds")

    @property
    def host_users(self) -> bool:
        """Whether the pod uses the user namespace of its node."""
        return self.spec.get("hostUsers") is not False


def all_containers(spec: _Json, path: str) -> list[tuple[str, _Json]]:
    """Return the containers of a pod with their fields: init containers, containers, ephemeral containers."""
    return [
        (f"{path}.{name}[{index}]", container)
        for name in _LISTS
        for index, container in enumerate(spec.get(name) or ())
    ]


def container_errors(parts: PodParts, path: str) -> Iterator[FieldError]:
    """Yield the errors of the containers of a pod at a path."""
    containers: Sequence[_Json] = parts.spec.get("containers") or ()
    if not containers:
        yield required(path)
        return
    names: set[str] = set()
    for index, container in enumerate(containers):
        place = f"{path}[{index}]"
        yield from _common_errors(container, parts, place)
        if container["name"] in names:
            yield duplicate(f"{place}.name", container["name"])
        names.add(container["name"])
        yield from lifecycle_errors(container.get("lifecycle", {}), parts.grace_period, f"{place}.lifecycle")
        yield from probe_errors(container, parts.grace_period, place)
        yield from _restart_errors(container, place)
    yield from _host_port_errors(enumerate(containers), path)


def init_container_errors(parts: PodParts, path: str) -> Iterator[FieldError]:
    """Yield the errors of the init containers of a pod at a path."""
    names = {container["name"] for container in parts.spec.get("containers") or ()}
    for index, container in enumerate(parts.spec.get("initContainers") or ()):
        place = f"{path}[{index}]"
        yield from _common_errors(container, parts, place)
        yield from _restart_errors(container, place, rules_alone=False)
        if container["name"] in names:
            yield duplicate(f"{place}.name", container["name"])
        elif container["name"]:
            names.add(container["name"])
        # They run one after the other, so that only the ports of one container conflict.
        yield from _host_port_errors([(0, container)], path)
        if container.get("restartPolicy") == "Always":
            yield from lifecycle_errors(container.get("lifecycle", {}), parts.grace_period, f"{place}.lifecycle")
            yield from probe_errors(container, parts.grace_period, place)
        else:
            for name in _WITHOUT_RESTART:
                if name in container:
                    yield forbidden(
                        f"{place}.{name}", "may not be set for init containers without restartPolicy=Always"
                    )
            yield from _init_resize_errors(container, place)


def _init_resize_errors(container: _Json, path: str) -> Iterator[FieldError]:
    for index, policy in enumerate(container.get("resizePolicy", ())):
        if policy.get("restartPolicy") == "RestartContainer":
            detail = "must not be set to 'RestartContainer' for non-sidecar initContainers"
            place = f"{path}.resizePolicy[{index}].restartPolicy"
            yield invalid(place, policy["restartPolicy"], detail, as_json=True)


def ephemeral_container_errors(parts: PodParts, path: str) -> Iterator[FieldError]:
    """Yield the errors of the ephemeral containers of a pod at a path."""
    others = {container["name"] for name in _LISTS[:2] for container in parts.spec.get(name) or ()}
    names = set(others)
    for index, container in enumerate(parts.spec.get("ephemeralContainers") or ()):
        place = f"{path}[{index}]"
        yield from _common_errors(container, parts, place)
        yield from image_errors(container, place)
        if container["name"] in names:
            yield duplicate(f"{place}.name", container["name"])
        names.add(container["name"])
        target = container.get("targetContainerName", "")
        if target and target not in others:
            yield not_found(f"{place}.targetContainerName", target)
        for name in _NOT_EPHEMERAL:
            if container.get(name):
                yield forbidden(f"{place}.{name}", "cannot be set for an Ephemeral Container")
        for position, mount in enumerate(container.get("volumeMounts", ())):
            for name in ("subPath", "subPathExpr"):
                if mount.get(name):
                    field = f"{place}.volumeMounts[{position}].{name}"
                    yield forbidden(field, "cannot be set for an Ephemeral Container")


def image_errors(container: _Json, path: str) -> Iterator[FieldError]:
    """Yield an error if the image of a container of a pod, not of a template, has blanks around it."""
    image = container.get("image", "")
    if image != image.strip():
        yield invalid(f"{path}.image", image, "must not have leading or trailing whitespace")


def _common_errors(container: _Json, parts: PodParts, path: str) -> Iterator[FieldError]:
    if container["name"]:
        yield from each_problem(dns_label, container["name"], f"{path}.name")
    else:
        yield required(f"{path}.name")
    if not container.get("image"):
        yield required(f"{path}.image")
    policy = container.get("terminationMessagePolicy")
    yield from required_enumeration(policy, _MESSAGE_POLICIES, f"{path}.terminationMessagePolicy")
    yield from _port_errors(container.get("ports", ()), f"{path}.ports")
    yield from variable_errors(container.get("env", ()), f"{path}.env")
    yield from variable_source_errors(container.get("envFrom", ()), f"{path}.envFrom")
    yield from mount_errors(container, parts.volumes, f"{path}.volumeMounts")
    yield from device_errors(container, parts.volumes, f"{path}.volumeDevices")
    yield from pull_policy(container.get("imagePullPolicy", ""), f"{path}.imagePullPolicy")
    yield from requirement_errors(container.get("resources", {}), f"{path}.resources", claims=parts.claims)
    never = parts.spec.get("restartPolicy") == "Never"
    yield from _resize_errors(container.get("resizePolicy", ()), f"{path}.resizePolicy", never=never)
    if "securityContext" in container:
        context = container["securityContext"]
        yield from container_security_errors(context, f"{path}.securityContext", host_users=parts.host_users)


def _port_errors(ports: Sequence[_Json], path: str) -> Iterator[FieldError]:
    names: set[str] = set()
    for index, port in enumerate(ports):
        place, name = f"{path}[{index}]", port.get("name", "")
        found = list(each_problem(port_name, name, f"{place}.name")) if name else []
        if not found and name in names:
            found.append(duplicate(f"{place}.name", name))
        elif not found and name:
            names.add(name)
        yield from found
        if port["containerPort"]:
            yield from port_number(port["containerPort"], f"{place}.containerPort")
        else:
            yield required(f"{place}.containerPort")
        if port.get("hostPort"):
            yield from port_number(port["hostPort"], f"{place}.hostPort")
        yield from required_enumeration(port.get("protocol"), _PROTOCOLS, f"{place}.protocol")


def _host_port_errors(containers: Any, path: str) -> Iterator[FieldError]:
    used: set[str] = set()
    for index, container in containers:
        for position, port in enumerate(container.get("ports", ())):
            if not port.get("hostPort"):
                continue
            address = f"{port.get('protocol', '')}/{port.get('hostIP', '')}/{port['hostPort']}"
            if address in used:
                yield duplicate(f"{path}[{index}].ports[{position}].hostPort", address)
            used.add(address)


def _resize_errors(policies: Sequence[_Json], path: str, *, never: bool) -> Iterator[FieldError]:
    seen: set[str] = set()
    for index, policy in enumerate(policies):
        resource, restart = policy.get("resourceName", ""), policy.get("restartPolicy", "")
        if resource in seen:
            yield duplicate(f"{path}[{index}]", resource)
        seen.add(resource)
        yield from required_enumeration(resource, ("cpu", "memory"), path)
        yield from required_enumeration(restart, ("NotRequired", "RestartContainer"), path)
        if never and restart != "NotRequired":
            detail = "must be 'NotRequired' when pod `restartPolicy` is 'Never'"
            yield invalid(path, restart, detail, as_json=True)


def _restart_errors(container: _Json, path: str, *, rules_alone: bool = True) -> Iterator[FieldError]:
    """Yield the errors of the restart policy; `rules_alone` is whether rules without a policy are validated."""
    policy, rules = container.get("restartPolicy"), container.get("restartPolicyRules") or ()
    if policy is None:
        if rules:
            yield required(f"{path}.restartPolicy", "must specify restartPolicy when restart rules are used")
        if not rules_alone:
            return
    else:
        yield from enumeration(policy, _RESTART_POLICIES, f"{path}.restartPolicy")
    if len(rules) > _MOST_RULES:
        yield too_many(f"{path}.restartPolicyRules", len(rules), _MOST_RULES)
    for index, rule in enumerate(rules):
        yield from _restart_rule_errors(rule, f"{path}.restartPolicyRules[{index}]")


def _restart_rule_errors(rule: _Json, path: str) -> Iterator[FieldError]:
    yield from enumeration(rule.get("action", ""), _RESTART_ACTIONS, f"{path}.action")
    codes = rule.get("exitCodes")
    if codes is None:
        yield required(f"{path}.exitCodes", "must be specified")
        return
    yield from enumeration(codes.get("operator", ""), ("In", "NotIn"), f"{path}.exitCodes.operator")
    if len(codes.get("values") or ()) > _MOST_CODES:
        yield too_many(f"{path}.exitCodes.values", len(codes["values"]), _MOST_CODES)
