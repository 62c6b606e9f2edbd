"""Allocation of cluster IPs and node ports of Services.

A real API server allocates them at random. The embedded one allocates the first free value, so that the same requests
give the same addresses. Allocated fields have no owner: they are set after the computation of the managed fields.
"""

from collections.abc import Iterator
from ipaddress import IPv4Address
from typing import Any, Final

from ocf.embedded.registry.storage import Storage
from ocf.objects import Manifest

__all__ = ["allocate"]

_FIRST_ADDRESS: Final = IPv4Address("10.96.0.1")
_FIRST_NODE_PORT: Final = 30000
_WITH_ADDRESS: Final = ("ClusterIP", "NodePort", "LoadBalancer")
_WITH_NODE_PORTS: Final = ("NodePort", "LoadBalancer")
_ADDRESS_FIELDS: Final = ("clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy")


def allocate(store: Storage, new: Manifest, live: Manifest | None) -> None:
    """Set the cluster IP and the node ports of a Service.

    Args:
        store: The stored objects; values of other Services are not allocated again.
        new: The Service, defaulted; it is changed.
        live: The live Service, whose allocated values are kept; None for a new Service.
    """
    spec = new["spec"] = dict(new["spec"])
    before = live["spec"] if live else {}
    if spec["type"] in _WITH_ADDRESS:
        _keep(spec, before)
        _allocate_address(spec, store)
    else:
        _release(spec, before)
    spec_ports = spec.get("ports", ())
    if spec["type"] in _WITH_NODE_PORTS and spec.get("allocateLoadBalancerNodePorts", True):
        spec["ports"] = list(_with_node_ports(spec_ports, before.get("ports", ()), store))
    elif before.get("type") in _WITH_NODE_PORTS:
        taken = {port.get("nodePort") for port in before.get("ports", ())}
        spec["ports"] = [
            {key: value for key, value in port.items() if key != "nodePort" or value not in taken}
            for port in spec_ports
        ]


def _keep(spec: dict[str, Any], before: dict[str, Any]) -> None:
    if before.get("type") in _WITH_ADDRESS and spec.get("clusterIP") in (None, "", before.get("clusterIP")):
        for name in _ADDRESS_FIELDS:
            if name in before and not spec.get(name):
                spec[name] = before[name]


def _release(spec: dict[str, Any], before: dict[str, Any]) -> None:
    for name in _ADDRESS_FIELDS:
        if name in before and spec.get(name) == before[name]:
            del spec[name]


def _allocate_address(spec: dict[str, Any], store: Storage) -> None:
    if not spec.get("clusterIP"):
        taken = {service["spec"].get("clusterIP") for _, service in store.objects(("", "Service"))}
        address = _FIRST_ADDRESS
        while str(address) in taken:
            address += 1
        spec["clusterIP"] = str(address)
    spec.setdefault("clusterIPs", [spec["clusterIP"]])
    # The endpoints of a headless Service without a selector are unknown, so it gets both IP families.
    dual = spec["clusterIP"] == "None" and not spec.get("selector")
    spec.setdefault("ipFamilyPolicy", "RequireDualStack" if dual else "SingleStack")
    spec.setdefault("ipFamilies", ["IPv4", "IPv6"] if dual else ["IPv4"])


def _with_node_ports(ports: Any, before: Any, store: Storage) -> Iterator[dict[str, Any]]:
    known = {(port["port"], port.get("protocol")): port.get("nodePort") for port in before}
    taken = {
        port.get("nodePort")
        for _, service in store.objects(("", "Service"))
        for port in service["spec"].get("ports", ())
    }
    free = _FIRST_NODE_PORT
    for port in ports:
        number = port.get("nodePort") or known.get((port["port"], port.get("protocol")))
        while not number:
            number, free = (0 if free in taken else free), free + 1
        yield {**port, "nodePort": number}
