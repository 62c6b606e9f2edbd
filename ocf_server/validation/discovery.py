"""Validation of EndpointSlices.

Source: `pkg/apis/discovery/validation/validation.go` of Kubernetes. `deprecatedTopology` is not validated, because the
API server removes it.
"""

from collections.abc import Iterator, Mapping, Sequence
from ipaddress import IPv4Address, IPv6Address
from typing import Any, Final

from ocf.objects import Manifest
from ocf.objects.field_errors import FieldError, duplicate, invalid, required, too_many
from ocf.objects.name_validation import NameRule, dns_label, dns_subdomain, label_value, qualified_name
from ocf_server.validation.addresses import address_errors, endpoint_errors, parse_address
from ocf_server.validation.fields import duplicates, each_problem, enumeration, immutable, required_enumeration
from ocf_server.validation.metadata import metadata_errors
from ocf_server.validation.validation import Validation

__all__ = ["VALIDATIONS"]

_TYPES: Final = ("FQDN", "IPv4", "IPv6")
_PROTOCOLS: Final = ("SCTP", "TCP", "UDP")
# maxAddresses, maxPorts, maxEndpoints, maxZoneHints and maxNodeHints of pkg/apis/discovery/validation.
_MOST_ADDRESSES: Final = 100
_MOST_PORTS: Final = 20_000
_MOST_ENDPOINTS: Final = 1000
_MOST_HINTS: Final = 8
_FEWEST_SEGMENTS: Final = 2
_FAMILIES: Final[Mapping[str, type[IPv4Address] | type[IPv6Address]]] = {"IPv4": IPv4Address, "IPv6": IPv6Address}


def _slice_errors(manifest: Manifest, old: Manifest | None = None) -> Iterator[FieldError]:
    yield from metadata_errors(manifest["metadata"])
    kind = manifest.get("addressType", "")
    yield from required_enumeration(kind, _TYPES, "addressType")
    yield from _port_errors(manifest.get("ports") or ())
    endpoints = manifest.get("endpoints") or ()
    # Endpoints that were stored under older rules may stay.
    if old is None or endpoints != (old.get("endpoints") or ()):
        yield from _endpoints_errors(endpoints, kind)


def _slice_update_errors(new: Manifest, old: Manifest) -> Iterator[FieldError]:
    yield from _slice_errors(new, old)
    yield from immutable(new.get("addressType", ""), old.get("addressType", ""), "addressType")


def _port_errors(ports: Sequence[Mapping[str, Any]]) -> Iterator[FieldError]:
    if len(ports) > _MOST_PORTS:
        yield too_many("ports", len(ports), _MOST_PORTS)
        return
    seen = set()
    for index, port in enumerate(ports):
        name, path = port.get("name", ""), f"ports[{index}]"
        if name:
            yield from each_problem(dns_label, name, f"{path}.name")
        if name in seen:
            yield duplicate(f"{path}.name", name)
        seen.add(name)
        yield from enumeration(port.get("protocol"), _PROTOCOLS, f"{path}.protocol")
        if port.get("appProtocol") is not None:
            yield from each_problem(qualified_name, port["appProtocol"], f"{path}.appProtocol")


def _endpoints_errors(endpoints: Sequence[Mapping[str, Any]], kind: str) -> Iterator[FieldError]:
    if len(endpoints) > _MOST_ENDPOINTS:
        yield too_many("endpoints", len(endpoints), _MOST_ENDPOINTS)
        return
    for index, endpoint in enumerate(endpoints):
        yield from _endpoint_errors(endpoint, kind, f"endpoints[{index}]")


def _endpoint_errors(endpoint: Mapping[str, Any], kind: str, path: str) -> Iterator[FieldError]:
    addresses = endpoint.get("addresses") or ()
    if not addresses:
        yield required(f"{path}.addresses", "must contain at least 1 address")
    elif len(addresses) > _MOST_ADDRESSES:
        yield too_many(f"{path}.addresses", len(addresses), _MOST_ADDRESSES)
    for index, address in enumerate(addresses):
        yield from _address_errors(address, kind, f"{path}.addresses", index)
    if endpoint.get("nodeName") is not None:
        yield from each_problem(dns_subdomain, endpoint["nodeName"], f"{path}.nodeName")
    if endpoint.get("hostname") is not None:
        yield from each_problem(dns_label, endpoint["hostname"], f"{path}.hostname")
    if endpoint.get("hints") is not None:
        yield from _hint_errors(endpoint["hints"], f"{path}.hints")


def _address_errors(address: str, kind: str, path: str, index: int) -> Iterator[FieldError]:
    if kind == "FQDN":
        yield from _domain_errors(address, f"{path}[{index}]")
    elif kind in _FAMILIES:
        malformed = list(address_errors(address, f"{path}[{index}]", canonical=kind == "IPv6"))
        yield from malformed
        if not malformed:
            if not isinstance(parse_address(address), _FAMILIES[kind]):
                yield invalid(path, address, f"must be an {kind} address")
            yield from endpoint_errors(address, f"{path}[{index}]")


def _domain_errors(domain: str, path: str) -> Iterator[FieldError]:
    name = domain.removesuffix(".")
    problems = dns_subdomain(name)
    if not domain:
        yield required(path)
    elif problems:
        yield invalid(path, name, ",".join(problems))
    elif name.count(".") + 1 < _FEWEST_SEGMENTS:
        yield invalid(path, name, "should be a domain with at least two segments separated by dots")
    else:
        for label in name.split("."):
            if problems := dns_label(label):
                yield invalid(path, label, ",".join(problems))
                return


def _hint_errors(hints: Mapping[str, Any], path: str) -> Iterator[FieldError]:
    rules: tuple[tuple[str, NameRule], ...] = (("forZones", label_value), ("forNodes", dns_subdomain))
    for field, rule in rules:
        entries = hints.get(field) or ()
        if len(entries) > _MOST_HINTS:
            yield too_many(f"{path}.{field}", len(entries), _MOST_HINTS)
            return
        known = list(duplicates(entries, "name", f"{path}.{field}"))
        for index, entry in enumerate(entries):
            place = f"{path}.{field}[{index}].name"
            yield from (error for error in known if error.path == place)
            yield from each_problem(rule, entry.get("name", ""), place)


VALIDATIONS: Final = {"EndpointSlice.discovery.k8s.io": Validation(_slice_errors, _slice_update_errors)}
