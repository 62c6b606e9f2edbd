"""Allocation of cluster IPs and node ports of Services.

Source: `pkg/registry/core/service` of Kubernetes, for a cluster with one range of IPv4 addresses and the default range
of node ports. A real API server allocates values at random. The embedded one allocates the first free value, so that
the same requests give the same values. Allocated fields have no owner: they are set after the computation of the
managed fields.
"""

from collections.abc import Mapping
from typing import Any, Final

from ocf.errors import FieldProblem
from ocf.objects import Manifest
from ocf_server.api.status_errors import invalid
from ocf_server.registry.service_addresses import allocate_addresses, set_families
from ocf_server.registry.service_ports import WITH_NODE_PORTS, allocate_ports, checks_health, node_ports
from ocf_server.registry.storage import Storage

__all__ = ["allocate"]

_EXTERNAL: Final = "ExternalName"
_ADDRESSES: Final = ("clusterIP", "clusterIPs")
_OMITTED: Final = frozenset({*_ADDRESSES, "ipFamilies", "ports", "healthCheckNodePort"})  # if they are empty

_Spec = dict[str, Any]


def allocate(store: Storage, new: Manifest, live: Manifest | None, *, dry_run: bool) -> None:
    """Set the cluster IPs, the IP families and the node ports of a Service.

    Args:
        store: The stored objects; values of other Services are not allocated again.
        new: The Service, defaulted; its spec is replaced.
        live: The live Service, whose allocated values are kept; None for a new Service.
        dry_run: Whether the Service is not stored; the range of node ports is not checked then.

    Raises:
        InvalidError: If a requested value cannot be allocated.
        ApiError: If a requested port for health checks, or one node port for two ports, cannot be allocated (500).
    """
    spec: _Spec = {**new["spec"], "ports": [dict(port) for port in new["spec"].get("ports") or ()]}
    before = live["spec"] if live else None
    if before is not None:
        _keep_allocated(spec, before)
    # Before the allocation: `clusterIP` and `clusterIPs` are one value in two forms, which old and new clients set.
    _complete_addresses(spec, before)
    name = new["metadata"].get("name", "")
    errors = set_families(spec, before) or allocate_addresses(spec, before, store, dry_run=dry_run)
    errors = errors or allocate_ports(spec, before, store, dry_run=dry_run)
    if errors:
        raise invalid("Service", name, [FieldProblem(error.path, error.message) for error in errors])
    if before is not None:
        _drop_unused(spec, before)
    if spec["type"] == _EXTERNAL:
        # The API server validates it, and stores it for no such Service.
        _remove(spec, "internalTrafficPolicy")
    new["spec"] = {key: value for key, value in spec.items() if value or key not in _OMITTED}


def _keep_allocated(spec: _Spec, before: Mapping[str, Any]) -> None:
    """Copy allocated values that a client omits from an update."""
    if _EXTERNAL not in (spec["type"], before["type"]):
        for name in _ADDRESSES:
            if not spec.get(name) and before.get(name):
                spec[name] = before[name]
    if spec["type"] in WITH_NODE_PORTS and before["type"] in WITH_NODE_PORTS:
        known = {port.get("name", ""): port.get("nodePort") for port in before.get("ports") or ()}
        # A port that the client gives to another entry is not copied back to the first.
        used = set(node_ports(before)) & set(node_ports(spec))
        for port in spec["ports"]:
            number = known.get(port.get("name", ""))
            if not port.get("nodePort") and number and number not in used:
                port["nodePort"] = number
    if checks_health(spec) and checks_health(before) and not spec.get("healthCheckNodePort"):
        spec["healthCheckNodePort"] = before.get("healthCheckNodePort")


def _complete_addresses(spec: _Spec, before: Mapping[str, Any] | None) -> None:
    """Set the list of cluster IPs for clients that set only the single field, and the other way round."""
    address, addresses = spec.get("clusterIP", ""), spec.get("clusterIPs")
    if before is None:
        if address and not addresses:
            spec["clusterIPs"] = [address]
        return
    known, same = before.get("clusterIP", ""), (addresses or []) == (before.get("clusterIPs") or [])
    if address == known:
        if not addresses and before.get("clusterIPs"):
            spec["clusterIPs"] = before["clusterIPs"]
    elif same:
        spec["clusterIPs"] = [address] if address else None


def _drop_unused(spec: _Spec, before: Mapping[str, Any]) -> None:
    """Remove the values that the new type of a Service cannot have, if the update does not change them."""
    if spec["type"] == _EXTERNAL and before["type"] != _EXTERNAL:
        if all(_same(spec, before, name) for name in _ADDRESSES):
            _remove(spec, *_ADDRESSES)
        _remove(spec, *(name for name in ("ipFamilies", "ipFamilyPolicy") if _same(spec, before, name)))
    lost_ports = before["type"] in WITH_NODE_PORTS and spec["type"] not in WITH_NODE_PORTS
    if lost_ports and set(node_ports(spec)) <= set(node_ports(before)):
        for port in spec["ports"]:
            port.pop("nodePort", None)
    if checks_health(before) and not checks_health(spec) and _same(spec, before, "healthCheckNodePort"):
        _remove(spec, "healthCheckNodePort")
    if before["type"] == "LoadBalancer" and spec["type"] != "LoadBalancer":
        names = ("allocateLoadBalancerNodePorts", "loadBalancerClass")
        _remove(spec, *(name for name in names if _same(spec, before, name)))
    if _is_external(before) and not _is_external(spec) and _same(spec, before, "externalTrafficPolicy"):
        _remove(spec, "externalTrafficPolicy")


def _same(spec: Mapping[str, Any], before: Mapping[str, Any], name: str) -> bool:
    return (spec.get(name) or None) == (before.get(name) or None)


def _remove(spec: _Spec, *names: str) -> None:
    for name in names:
        spec.pop(name, None)


def _is_external(spec: Mapping[str, Any]) -> bool:
    return spec["type"] in WITH_NODE_PORTS or (spec["type"] == "ClusterIP" and bool(spec.get("externalIPs")))
