"""Validation of the spec of a pod, and of pod templates.

Source: `ValidatePodSpec`, `ValidatePodTemplateSpec` and `validatePodResources` in
`pkg/apis/core/validation/validation.go` of Kubernetes. What depends on a feature gate is as Kubernetes 1.36 sets it.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, TypeAlias

from ocf.objects.field_errors import FieldError, duplicate, forbidden, invalid, not_found, not_supported, required
from ocf.objects.metadata_validation import annotation_errors, label_errors
from ocf.objects.name_validation import dns_label, dns_subdomain, qualified_name
from ocf.objects.quantity import Quantity
from ocf_server.codec.pod_totals import pod_totals
from ocf_server.validation.annotations import pod_annotation_errors, profile_match_errors
from ocf_server.validation.containers import (
    PodParts,
    all_containers,
    container_errors,
    ephemeral_container_errors,
    init_container_errors,
)
from ocf_server.validation.environment import variables_of_files
from ocf_server.validation.fields import each_problem, in_range, required_enumeration
from ocf_server.validation.go_structs import go_struct
from ocf_server.validation.pod_network import dns_errors, host_alias_errors, hostname_errors
from ocf_server.validation.resources import pod_resource_name, requirement_errors
from ocf_server.validation.scheduling import affinity_errors, spread_errors, toleration_errors
from ocf_server.validation.security import pod_security_errors
from ocf_server.validation.volumes import volume_errors
from ocf_server.validation.windows import host_process_errors, system_errors

__all__ = ["pod_spec_errors", "pod_template_errors"]

_Json: TypeAlias = Mapping[str, Any]

_HUGE: Final = "hugepages-"


def _pod_resource_errors(spec: _Json, path: str) -> Iterator[FieldError]:
    """Yield the errors of the resources of a pod at a path."""
    resources = spec.get("resources")
    if resources is None:
        return
    if spec.get("os", {}).get("name") == "windows":
        yield forbidden(path, "may not be set for a windows pod")
        return
    if resources.get("claims"):
        yield forbidden(f"{path}.claims", "claims may not be set for Resources at pod-level")
    yield from requirement_errors(resources, path, name_rule=pod_resource_name)
    for amounts, prefix in (("requests", ""), ("limits", _HUGE)):
        for name, total in sorted(pod_totals(spec, amounts).items()):
            value = (resources.get(amounts) or {}).get(name)
            if name.startswith(prefix) and value is not None and total > Quantity.parse(value):
                shown = str(Quantity.parse(value))
                detail = f"must be greater than or equal to aggregate container {amounts} of {total}"
                yield invalid(f"{path}.{amounts}[{name}]", shown, detail)
    yield from _limit_errors(spec, resources.get("limits") or {}, path)


def _limit_errors(spec: _Json, limits: _Json, path: str) -> Iterator[FieldError]:
    for index, container in enumerate(spec.get("containers") or ()):
        for name, value in sorted((container.get("resources", {}).get("limits") or {}).items()):
            if name in limits and Quantity.parse(value) > Quantity.parse(limits[name]):
                most = Quantity.parse(limits[name])
                shown = str(Quantity.parse(value))
                place = f"{path}.containers[{index}][{name}].limits"
                yield invalid(place, shown, f"must be less than or equal to pod limits of {most}")


_RESTART: Final = ("Always", "OnFailure", "Never")
_DNS: Final = ("ClusterFirstWithHostNet", "ClusterFirst", "Default", "None")
_SYSTEMS: Final = ("linux", "windows")
_LONGEST_DEADLINE: Final = 2**31 - 1


def pod_template_errors(template: _Json, path: str) -> Iterator[FieldError]:
    """Yield the errors of a pod template at a path."""
    metadata, spec = template.get("metadata") or {}, template["spec"]
    annotations = metadata.get("annotations") or {}
    # The fields are named without `metadata`, as the API server does.
    yield from label_errors(metadata.get("labels") or {}, f"{path}.labels")
    yield from annotation_errors(annotations, f"{path}.annotations")
    yield from pod_annotation_errors(annotations, spec, f"{path}.annotations")
    yield from pod_spec_errors(spec, f"{path}.spec")
    yield from profile_match_errors(annotations, spec, f"{path}.spec")
    if spec.get("ephemeralContainers"):
        yield forbidden(f"{path}.spec.ephemeralContainers", "ephemeral containers not allowed in pod template")


def pod_spec_errors(spec: _Json, path: str, *, metadata: _Json | None = None) -> Iterator[FieldError]:
    """Yield the errors of the spec of a pod.

    Args:
        spec: The spec, decoded and defaulted.
        metadata: The metadata of the pod; None for a template.

    Yields:
        The errors, in the order of the API server; of maps sorted by key.
    """
    if "terminationGracePeriodSeconds" not in spec:
        yield required(f"{path}.terminationGracePeriodSeconds")
    name = (metadata or {}).get("name", "")
    volumes, errors = volume_errors(
        spec.get("volumes", ()), f"{path}.volumes", pod_name=name, is_pod=metadata is not None
    )
    yield from errors
    claims = spec.get("resourceClaims", ())
    yield from _claim_errors(claims, f"{path}.resourceClaims")
    parts = PodParts(spec, volumes, {claim["name"] for claim in claims if claim["name"]})
    yield from container_errors(parts, f"{path}.containers")
    yield from init_container_errors(parts, f"{path}.initContainers")
    yield from ephemeral_container_errors(parts, f"{path}.ephemeralContainers")
    yield from _pod_resource_errors(spec, f"{path}.resources")
    yield from _host_network_errors(spec, f"{path}.containers", is_pod=metadata is not None)
    yield from required_enumeration(spec.get("restartPolicy"), _RESTART, f"{path}.restartPolicy")
    yield from required_enumeration(spec.get("dnsPolicy"), _DNS, f"{path}.dnsPolicy")
    yield from label_errors(spec.get("nodeSelector", {}), f"{path}.nodeSelector")
    yield from pod_security_errors(spec, f"{path}.securityContext")
    yield from affinity_errors(spec.get("affinity", {}), f"{path}.affinity")
    yield from dns_errors(spec, f"{path}.dnsConfig")
    yield from _gate_errors(spec, path)
    yield from spread_errors(spec.get("topologySpreadConstraints", ()), f"{path}.topologySpreadConstraints")
    yield from host_process_errors(spec, all_containers(spec, path), path)
    yield from _host_user_errors(spec, path)
    yield from hostname_errors(spec, path)
    yield from _name_errors(spec, path)
    yield from _system_errors(spec, path)
    yield from _file_variable_errors(spec, path)


def _claim_errors(claims: Sequence[_Json], path: str) -> Iterator[FieldError]:
    names: set[str] = set()
    sources = ("resourceClaimName", "resourceClaimTemplateName")
    for index, claim in enumerate(claims):
        place, name = f"{path}[{index}]", claim["name"]
        if not name:
            yield required(f"{place}.name")
        elif name in names:
            yield duplicate(f"{place}.name", name)
        else:
            yield from each_problem(dns_label, name, f"{place}.name")
            names.add(name)
        given = [source for source in sources if source in claim]
        shown = go_struct("PodResourceClaim", claim)
        if len(given) > 1:
            detail = "at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified"
            yield invalid(place, shown, detail)
        if not given:
            yield invalid(place, shown, "must specify one of: `resourceClaimName`, `resourceClaimTemplateName`")
        for source in given:
            yield from each_problem(dns_subdomain, claim[source], f"{place}.{source}")


def _host_network_errors(spec: _Json, path: str, *, is_pod: bool) -> Iterator[FieldError]:
    if not spec.get("hostNetwork"):
        return
    for index, container in enumerate(spec.get("containers") or ()):
        for position, port in enumerate(container.get("ports", ())):
            host = port.get("hostPort", 0)
            if (is_pod or host) and host != port["containerPort"]:
                detail = "must match `containerPort` when `hostNetwork` is true"
                yield invalid(f"{path}[{index}].ports[{position}].hostPort", host, detail)


def _gate_errors(spec: _Json, path: str) -> Iterator[FieldError]:
    for index, gate in enumerate(spec.get("readinessGates", ())):
        place = f"{path}.readinessGates[{index}].conditionType"
        yield from each_problem(qualified_name, gate.get("conditionType", ""), place)
    names: set[str] = set()
    for index, gate in enumerate(spec.get("schedulingGates", ())):
        place = f"{path}.schedulingGates[{index}]"
        yield from each_problem(qualified_name, gate["name"], place)
        if gate["name"] in names:
            yield duplicate(place, gate["name"])
        names.add(gate["name"])


def _host_user_errors(spec: _Json, path: str) -> Iterator[FieldError]:
    if spec.get("hostUsers") is not False:
        return
    for name, shown in (("hostNetwork", "hostNetwork"), ("hostPID", "HostPID"), ("hostIPC", "HostIPC")):
        if spec.get(name):
            yield forbidden(f"{path}.{shown}", "when `hostUsers` is false")
    for place, container in all_containers(spec, path):
        if container.get("volumeDevices"):
            yield forbidden(f"{place}.volumeDevices", "when `hostUsers` is false")


def _name_errors(spec: _Json, path: str) -> Iterator[FieldError]:
    for name in ("serviceAccountName", "nodeName"):
        if spec.get(name):
            yield from each_problem(dns_subdomain, spec[name], f"{path}.{name}")
    if "activeDeadlineSeconds" in spec:
        yield from in_range(spec["activeDeadlineSeconds"], 1, _LONGEST_DEADLINE, f"{path}.activeDeadlineSeconds")
    for name in ("hostname", "subdomain"):
        if spec.get(name):
            yield from each_problem(dns_label, spec[name], f"{path}.{name}")
    yield from toleration_errors(spec.get("tolerations", ()), f"{path}.tolerations")
    yield from host_alias_errors(spec.get("hostAliases", ()), f"{path}.hostAliases")
    for name in ("priorityClassName", "runtimeClassName"):
        if spec.get(name) or (name == "runtimeClassName" and name in spec):
            yield from each_problem(dns_subdomain, spec[name], f"{path}.{name}")
    if "preemptionPolicy" in spec:
        policies = ("PreemptLowerPriority", "Never")
        yield from required_enumeration(spec["preemptionPolicy"], policies, f"{path}.preemptionPolicy")
    yield from requirement_errors({"limits": spec.get("overhead", {})}, f"{path}.overhead")


def _system_errors(spec: _Json, path: str) -> Iterator[FieldError]:
    if "os" not in spec:
        return
    name = spec["os"].get("name", "")
    if not name:
        yield required(f"{path}.os.name")
    elif name not in _SYSTEMS:
        yield not_supported(f"{path}.os", name, _SYSTEMS)
    else:
        yield from system_errors(spec, all_containers(spec, path), path)


def _file_variable_errors(spec: _Json, path: str) -> Iterator[FieldError]:
    volumes = {volume["name"]: volume for volume in spec.get("volumes", ())}
    for place, container in all_containers(spec, path):
        for field, name in variables_of_files(container.get("env", ()), f"{place}.env"):
            if name not in volumes:
                yield not_found(field, name)
            elif "emptyDir" not in volumes[name]:
                yield invalid(field, name, "referenced volume must be of type emptyDir")
