"""Validation of Services.

Source: `validateService` in `pkg/apis/core/validation/validation.go` of Kubernetes.
"""

from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import Any, Final

from ocf.cluster.protocol import Subresource
from ocf.objects import Manifest
from ocf.objects.field_errors import FieldError, duplicate, forbidden, invalid, required
from ocf.objects.metadata_validation import label_errors
from ocf.objects.name_validation import dns_label, dns_label_prefix, dns_subdomain, qualified_name
from ocf_server.validation.addresses import address_errors, endpoint_errors, network_errors, parse_address
from ocf_server.validation.fields import (
    each_problem,
    enumeration,
    port_number,
    port_number_or_name,
    required_enumeration,
)
from ocf_server.validation.metadata import metadata_errors, metadata_update_errors
from ocf_server.validation.service_addresses import address_change_errors, cluster_address_errors, is_headless
from ocf_server.validation.validation import Validation

__all__ = ["VALIDATIONS"]

_Spec = Mapping[str, Any]

_HINTS: Final = "service.kubernetes.io/topology-aware-hints"
_MODE: Final = "service.kubernetes.io/topology-mode"
_RANGES: Final = "service.beta.kubernetes.io/load-balancer-source-ranges"
_TYPES: Final = ("ClusterIP", "ExternalName", "LoadBalancer", "NodePort")
_PROTOCOLS: Final = ("SCTP", "TCP", "UDP")
_AFFINITIES: Final = ("ClientIP", "None")
_LONGEST_AFFINITY: Final = 86400
_TRAFFIC: Final = ("Cluster", "Local")
_DISTRIBUTIONS: Final = ("PreferClose", "PreferSameZone", "PreferSameNode")
_IP_MODES: Final = ("Proxy", "VIP")
_ONLY_BALANCER: Final = "may only be used when `type` is 'LoadBalancer'"


def _create_errors(service: Manifest) -> Iterator[FieldError]:
    yield from metadata_errors(service["metadata"], dns_label, dns_label_prefix)
    yield from _service_errors(service, None)


def _update_errors(new: Manifest, old: Manifest) -> Iterator[FieldError]:
    spec, before = new["spec"], old["spec"]
    yield from metadata_update_errors(new["metadata"], old["metadata"])
    yield from address_change_errors(spec, before)
    if _is_balancer(spec) and _is_balancer(before) and spec.get(_CLASS) != before.get(_CLASS):
        yield invalid(f"spec.{_CLASS}", spec.get(_CLASS), "may not change once set")
    yield from _class_errors(spec)
    checked = _needs_health_check(spec) and _needs_health_check(before)
    if checked and spec.get("healthCheckNodePort") != before.get("healthCheckNodePort"):
        yield forbidden("spec.healthCheckNodePort", "field is immutable")
    yield from _service_errors(new, old)


_CLASS: Final = "loadBalancerClass"


def _is_balancer(spec: _Spec) -> bool:
    return spec.get("type") == "LoadBalancer"


def _needs_health_check(spec: _Spec) -> bool:
    return _is_balancer(spec) and spec.get("externalTrafficPolicy") == "Local"


def _service_errors(service: Manifest, old: Manifest | None) -> Iterator[FieldError]:
    spec, before = service["spec"], None if old is None else old["spec"]
    annotations = service["metadata"].get("annotations") or {}
    if {_HINTS, _MODE} <= annotations.keys() and annotations[_HINTS] != annotations[_MODE]:
        detail = f"must match annotations[{_HINTS}] when both are specified"
        yield invalid(f"metadata.annotations[{_MODE}]", annotations[_MODE], detail)
    ports: Sequence[_Spec] = spec.get("ports") or ()
    if not ports and not is_headless(spec) and spec.get("type") != "ExternalName":
        yield required("spec.ports")
    yield from _type_errors(spec)
    yield from _port_errors(ports)
    yield from label_errors(spec.get("selector") or {}, "spec.selector")
    yield from _affinity_errors(spec)
    yield from cluster_address_errors(spec, before)
    yield from _external_errors(spec.get("externalIPs") or (), (before or {}).get("externalIPs") or ())
    yield from required_enumeration(spec.get("type"), _TYPES, "spec.type")
    if spec.get("type") == "ClusterIP":
        for index, port in enumerate(ports):
            if port.get("nodePort"):
                yield forbidden(f"spec.ports[{index}].nodePort", "may not be used when `type` is 'ClusterIP'")
    yield from _duplicate_errors(ports)
    yield from _range_errors(service, old)
    if spec.get("allocateLoadBalancerNodePorts") is not None and not _is_balancer(spec):
        yield forbidden("spec.allocateLoadBalancerNodePorts", _ONLY_BALANCER)
    yield from _class_errors(spec)
    yield from _external_traffic_errors(spec)
    yield from _internal_traffic_errors(spec)


def _type_errors(spec: _Spec) -> Iterator[FieldError]:
    kind = spec.get("type")
    if kind in ("LoadBalancer", "NodePort") and is_headless(spec):
        yield invalid("spec.clusterIPs[0]", "None", f"may not be set to 'None' for {kind} services")
    if kind != "ExternalName":
        return
    for name in ("clusterIPs", "ipFamilies", "ipFamilyPolicy"):
        if spec.get(name) not in (None, []):
            yield forbidden(f"spec.{name}", "may not be set for ExternalName services")
    name = spec.get("externalName", "").removesuffix(".")
    if name:
        yield from each_problem(dns_subdomain, name, "spec.externalName")
    else:
        yield required("spec.externalName")


def _port_errors(ports: Sequence[_Spec]) -> Iterator[FieldError]:
    names: set[str] = set()
    for index, port in enumerate(ports):
        path, name = f"spec.ports[{index}]", port.get("name", "")
        if name:
            yield from each_problem(dns_label, name, f"{path}.name")
            if name in names:
                yield duplicate(f"{path}.name", name)
            names.add(name)
        elif len(ports) > 1:
            yield required(f"{path}.name")
        yield from port_number(port.get("port", 0), f"{path}.port")
        yield from required_enumeration(port.get("protocol"), _PROTOCOLS, f"{path}.protocol")
        yield from port_number_or_name(port.get("targetPort", 0), f"{path}.targetPort")
        if port.get("appProtocol") is not None:
            yield from each_problem(qualified_name, port["appProtocol"], f"{path}.appProtocol")


def _affinity_errors(spec: _Spec) -> Iterator[FieldError]:
    affinity, config, path = spec.get("sessionAffinity"), spec.get("sessionAffinityConfig"), "sessionAffinityConfig"
    yield from required_enumeration(affinity, _AFFINITIES, "spec.sessionAffinity")
    if affinity == "None" and config is not None:
        yield forbidden(f"spec.{path}", "must not be set when session affinity is None")
    if affinity == "ClientIP":
        seconds = config["clientIP"]["timeoutSeconds"] if config else 0
        if not 0 < seconds <= _LONGEST_AFFINITY:
            detail = f"must be greater than 0 and less than {_LONGEST_AFFINITY}"
            yield invalid(f"spec.{path}.clientIP.timeoutSeconds", seconds, detail)


def _external_errors(addresses: Sequence[str], known: Sequence[str]) -> Iterator[FieldError]:
    for index, address in enumerate(addresses):
        path = f"spec.externalIPs[{index}]"
        malformed = [] if address in known else list(address_errors(address, path))
        yield from malformed or endpoint_errors(address, path)


def _duplicate_errors(ports: Sequence[_Spec]) -> Iterator[FieldError]:
    seen: set[Hashable] = set()
    for index, port in enumerate(ports):
        key = ("nodePort", port.get("protocol"), port.get("nodePort"))
        if port.get("nodePort") and key in seen:
            yield duplicate(f"spec.ports[{index}].nodePort", port["nodePort"])
        seen.add(key)
    for index, port in enumerate(ports):
        key = ("port", port.get("protocol"), port.get("port"))
        if key in seen:
            yield duplicate(f"spec.ports[{index}]", _shown_port(port))
        seen.add(key)


def _shown_port(port: _Spec) -> dict[str, Any]:
    """Return the protocol and the number of a port as a value of the internal Go type."""
    shown = {"Name": "", "Protocol": port.get("protocol", ""), "AppProtocol": None, "Port": port.get("port", 0)}
    return {**shown, "TargetPort": 0, "NodePort": 0}


def _range_errors(service: Manifest, old: Manifest | None) -> Iterator[FieldError]:
    spec, before = service["spec"], old["spec"] if old else {}
    ranges = spec.get("loadBalancerSourceRanges") or ()
    text = (service["metadata"].get("annotations") or {}).get(_RANGES)
    # The API server writes the name of the Go field in the path.
    path = "spec.LoadBalancerSourceRanges" if ranges else f"metadata.annotations[{_RANGES}]"
    if (ranges or text is not None) and not _is_balancer(spec):
        yield forbidden(path, _ONLY_BALANCER)
    if ranges:
        known = {each.strip() for each in before.get("loadBalancerSourceRanges") or ()}
        for index, each in enumerate(ranges):
            if each.strip() not in known:
                yield from network_errors(each.strip(), f"{path}[{index}]")
    elif text and text != ((old or service)["metadata"].get("annotations") or {}).get(_RANGES if old else ""):
        for each in text.strip().split(",") if text.strip() else ():
            yield from network_errors(each.strip(), path)


def _class_errors(spec: _Spec) -> Iterator[FieldError]:
    name = spec.get(_CLASS)
    if name is None:
        return
    if _is_balancer(spec):
        yield from each_problem(qualified_name, name, f"spec.{_CLASS}")
    else:
        yield forbidden(f"spec.{_CLASS}", _ONLY_BALANCER)


def _external_traffic_errors(spec: _Spec) -> Iterator[FieldError]:
    kind, policy, path = spec.get("type"), spec.get("externalTrafficPolicy") or "", "spec.externalTrafficPolicy"
    if kind in ("LoadBalancer", "NodePort") or (kind == "ClusterIP" and spec.get("externalIPs")):
        yield from required_enumeration(policy, _TRAFFIC, path)
    elif policy:
        yield invalid(path, policy, "may only be set for externally-accessible services", as_json=True)
    number, path = spec.get("healthCheckNodePort", 0), "spec.healthCheckNodePort"
    if not _needs_health_check(spec):
        if number:
            detail = "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'"
            yield invalid(path, number, detail)
    elif number:
        yield from port_number(number, path)
    else:
        yield required(path)


def _internal_traffic_errors(spec: _Spec) -> Iterator[FieldError]:
    policy, path = spec.get("internalTrafficPolicy"), "spec.internalTrafficPolicy"
    if policy is None and spec.get("type") in ("NodePort", "LoadBalancer", "ClusterIP"):
        yield required(path)
    yield from enumeration(policy, _TRAFFIC, path)
    yield from enumeration(spec.get("trafficDistribution"), _DISTRIBUTIONS, "spec.trafficDistribution")


def _status_errors(new: Manifest, old: Manifest) -> Iterator[FieldError]:
    yield from metadata_update_errors(new["metadata"], old["metadata"])
    entries, known = (
        ((manifest.get("status") or {}).get("loadBalancer") or {}).get("ingress") or () for manifest in (new, old)
    )
    path = "status.loadBalancer.ingress"
    if entries and not _is_balancer(new["spec"]):
        yield forbidden(path, "may only be used when `spec.type` is 'LoadBalancer'")
        return
    accepted = {entry.get("ip") for entry in known}
    for index, entry in enumerate(entries):
        yield from _entry_errors(entry, f"{path}[{index}]", accepted)


def _entry_errors(entry: _Spec, path: str, accepted: set[Any]) -> Iterator[FieldError]:
    address, mode, host = entry.get("ip"), entry.get("ipMode"), entry.get("hostname")
    if address and address not in accepted:
        yield from address_errors(address, f"{path}.ip")
    if mode is None and address:
        yield required(f"{path}.ipMode", "must be specified when `ip` is set")
    elif mode is not None and not address:
        yield forbidden(f"{path}.ipMode", "may not be specified when `ip` is not set")
    else:
        yield from enumeration(mode, _IP_MODES, f"{path}.ipMode")
    if host:
        yield from each_problem(dns_subdomain, host, f"{path}.hostname")
        if parse_address(host) is not None:
            yield invalid(f"{path}.hostname", host, "must be a DNS name, not an IP address")


VALIDATIONS: Final = {"Service": Validation(_create_errors, _update_errors, {Subresource.STATUS: _status_errors})}
