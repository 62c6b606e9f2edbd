"""Validation of the status of Pods.

Source: `ValidatePodStatusUpdate` in `pkg/apis/core/validation/validation.go` of Kubernetes.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, TypeAlias

from ocf.objects import Manifest
from ocf.objects.field_errors import FieldError, duplicate, forbidden, internal, invalid, required
from ocf.objects.name_validation import dns_label, dns_subdomain, qualified_name
from ocf_server.validation.addresses import address_errors, parse_address
from ocf_server.validation.container_statuses import container_status_errors, resource_status_errors
from ocf_server.validation.fields import each_problem, immutable

__all__ = ["pod_status_errors"]

_Json: TypeAlias = Mapping[str, Any]

_SYSTEM_CONDITIONS: Final = frozenset({"PodScheduled", "Ready", "Initialized"})
_FAMILIES: Final = 2
_ONE_PER_FAMILY: Final = "may specify no more than one IP for each IP family"


def pod_status_errors(new: Manifest, live: Manifest) -> Iterator[FieldError]:
    """Yield the errors of an update of the status of a Pod.

    Args:
        new: The Pod with the new status.

    Yields:
        The errors, in the order of the API server, without those of the metadata.
    """
    spec, status, before = new["spec"], new.get("status", {}), live.get("status", {})
    yield from _condition_errors(status.get("conditions") or (), "status.conditions")
    yield from _nominated_errors(status.get("nominatedNodeName", ""), before, spec)
    yield from _generation_errors(status, "status")
    yield from immutable(status.get("qosClass", ""), before.get("qosClass", ""), "status.qosClass")
    yield from container_status_errors(spec, status, before)
    yield from _claim_errors(status.get("resourceClaimStatuses") or (), spec, "status.resourceClaimStatuses")
    if (extended := status.get("extendedResourceClaimStatus")) is not None:
        yield from _extended_errors(extended, spec, "status.extendedResourceClaimStatus")
    yield from _address_list_errors(status, before, "podIPs")
    host_addresses = status.get("hostIPs") or ()
    if host_addresses and host_addresses[0]["ip"] != status.get("hostIP", ""):
        yield invalid("status.hostIPs[0].ip", host_addresses[0]["ip"], "must be equal to `hostIP`")
    yield from _address_list_errors(status, before, "hostIPs")
    yield from resource_status_errors(spec, status)


def _condition_errors(conditions: Sequence[_Json], path: str) -> Iterator[FieldError]:
    for index, condition in enumerate(conditions):
        yield from _generation_errors(condition, f"{path}[{index}]")
        if condition.get("type", "") not in _SYSTEM_CONDITIONS:
            yield from each_problem(qualified_name, condition.get("type", ""), f"{path}[{index}].Type")


def _generation_errors(part: _Json, path: str) -> Iterator[FieldError]:
    generation = part.get("observedGeneration", 0)
    if generation < 0:
        yield invalid(f"{path}.observedGeneration", generation, "must be a non-negative integer")


def _nominated_errors(name: str, before: _Json, spec: _Json) -> Iterator[FieldError]:
    path = "status.nominatedNodeName"
    if name and name != before.get("nominatedNodeName", ""):
        yield from each_problem(dns_subdomain, name, path)
        if spec.get("nodeName"):
            yield forbidden(path, "may not be set on pods that are already bound to a node")


def _claim_errors(claims: Sequence[_Json], spec: _Json, path: str) -> Iterator[FieldError]:
    known = {claim["name"] for claim in spec.get("resourceClaims") or ()}
    for index, claim in enumerate(claims):
        name = claim.get("name", "")
        if name not in known:
            yield invalid(f"{path}[{index}].name", name, "must match the name of an entry in `spec.resourceClaims`")
        if any(name == other.get("name", "") for other in claims[:index]):
            yield duplicate(f"{path}[{index}].name", name)
        if claim.get("resourceClaimName") is not None:
            yield from each_problem(dns_subdomain, claim["resourceClaimName"], f"{path}[{index}].resourceClaimName")


def _extended_errors(status: _Json, spec: _Json, path: str) -> Iterator[FieldError]:
    mappings = status.get("requestMappings") or ()
    if not mappings:
        yield required(f"{path}.requestMappings", "at least one request mapping is required")
    containers = {each["name"]: each for name in ("initContainers", "containers") for each in spec.get(name) or ()}
    for index, mapping in enumerate(mappings):
        place = f"{path}.requestMappings[{index}]"
        yield from _mapping_errors(mapping, containers, place)
        yield from each_problem(dns_label, mapping.get("requestName", ""), f"{path}.requestName")
        if mapping in mappings[:index]:
            for name in ("containerName", "resourceName", "requestName"):
                yield duplicate(f"{place}.{name}", mapping.get(name, ""))
    claim = status.get("resourceClaimName", "")
    if claim:
        yield from each_problem(dns_subdomain, claim, f"{path}.resourceClaimName")
    else:
        yield required(f"{path}.resourceClaimName")


def _mapping_errors(mapping: _Json, containers: Mapping[str, _Json], path: str) -> Iterator[FieldError]:
    container, resource = containers.get(mapping.get("containerName", "")), mapping.get("resourceName", "")
    if container is None:
        detail = "must match the name of an entry in spec.initContainers.name or spec.containers.name"
        yield invalid(f"{path}.containerName", mapping.get("containerName", ""), detail)
    elif resource not in container.get("resources", {}).get("requests", {}):
        detail = (
            "must match the extended resource name of an entry in spec.initContainers.resources.requests or "
            "spec.containers.resources.requests"
        )
        yield invalid(f"{path}.resourceName", resource, detail)


def _address_list_errors(status: _Json, before: _Json, name: str) -> Iterator[FieldError]:
    """Yield the errors of a list of addresses; a malformed one that is stored may stay."""
    path = f"status.{name}"
    addresses = [each.get("ip", "") for each in status.get(name) or ()]
    known = {each.get("ip", "") for each in before.get(name) or ()}
    for index, address in enumerate(addresses):
        if address not in known:
            yield from address_errors(address, f"{path}[{index}]")
    if len(addresses) > 1:
        yield from _family_errors(addresses, path)


def _family_errors(addresses: Sequence[str], path: str) -> Iterator[FieldError]:
    parsed = [parse_address(address) for address in addresses]
    wrong = next((index for index, address in enumerate(parsed) if address is None), None)
    if wrong is not None:
        problem = f"invalid IP[{wrong}]: {addresses[wrong]}"
        yield internal(path, f"failed to check for dual stack with error:{problem}")
    families = {address.version for address in parsed if address is not None}
    if wrong is not None or len(families) < _FAMILIES or len(addresses) > _FAMILIES:
        yield invalid(path, [{"IP": address} for address in addresses], _ONE_PER_FAMILY)
