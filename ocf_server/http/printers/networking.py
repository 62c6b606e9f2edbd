"""Printers of services, endpoints, ingresses and other networking kinds."""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from ocf.objects import Manifest
from ocf_server.http.printers.text import NONE, UNKNOWN, UNSET, AgeClock, Cells, labels, selector, shortened

__all__ = [
    "endpoint_slice",
    "endpoints",
    "ingress",
    "ingress_class",
    "ip_address",
    "network_policy",
    "service",
    "service_cidr",
]

_SHOWN: Final = 3


def service(item: Manifest, clock: AgeClock) -> Cells:
    """Write the row of a Service."""
    spec = item["spec"]
    addresses = spec.get("clusterIPs") or ()
    ports = ",".join(map(_port, spec.get("ports") or ())) or NONE
    internal = addresses[0] if addresses else NONE
    kind = spec.get("type", "ClusterIP")
    row = [item["metadata"]["name"], kind, internal, _external(item), ports]
    return [*row, clock.age(item), labels(spec.get("selector"))]


def _external(item: Manifest) -> str:
    spec = item["spec"]
    own = list(spec.get("externalIPs") or ())
    match spec.get("type", "ClusterIP"):
        case "LoadBalancer":
            balanced = _addresses(item)
            return ",".join([*([balanced] if balanced else []), *own]) or "<pending>"
        case "ExternalName":
            return str(spec.get("externalName", ""))
        case "ClusterIP" | "NodePort":
            return ",".join(own) or NONE
        case _:
            return UNKNOWN


def _addresses(item: Manifest) -> str:
    found = ((item.get("status") or {}).get("loadBalancer") or {}).get("ingress") or ()
    return ",".join(one.get("ip") or one.get("hostname") or "" for one in found)


def _port(port: Mapping[str, Any]) -> str:
    node = f":{port['nodePort']}" if port.get("nodePort") else ""
    return f"{port['port']}{node}/{port.get('protocol', 'TCP')}"


def endpoints(item: Manifest, clock: AgeClock) -> Cells:
    """Write the row of Endpoints."""
    found = [text for subset in item.get("subsets") or () for text in _reached(subset)]
    return [item["metadata"]["name"], shortened(found, _SHOWN) or NONE, clock.age(item)]


def _reached(subset: Mapping[str, Any]) -> Iterable[str]:
    addresses = [one["ip"] for one in subset.get("addresses") or ()]
    ports = [one["port"] for one in subset.get("ports") or ()]
    if not ports:
        return addresses
    return [f"[{address}]:{port}" if ":" in address else f"{address}:{port}" for port in ports for address in addresses]


def endpoint_slice(item: Manifest, clock: AgeClock) -> Cells:
    """Write the row of an EndpointSlice."""
    ports = ["*" if "port" not in one else str(one["port"]) for one in item.get("ports") or ()]
    addresses = [address for one in item.get("endpoints") or () for address in one.get("addresses") or ()]
    shown = [shortened(found, _SHOWN) or UNSET for found in (ports, addresses)]
    return [item["metadata"]["name"], item["addressType"], *shown, clock.age(item)]


def ingress(item: Manifest, clock: AgeClock) -> Cells:
    """Write the row of an Ingress."""
    spec = item["spec"]
    hosts = [one["host"] for one in spec.get("rules") or () if one.get("host")]
    ports = "80, 443" if spec.get("tls") else "80"
    shown = shortened(hosts, _SHOWN) or "*"
    return [
        item["metadata"]["name"],
        spec.get("ingressClassName") or NONE,
        shown,
        _addresses(item),
        ports,
        clock.age(item),
    ]


def ingress_class(item: Manifest, clock: AgeClock) -> Cells:
    """Write the row of an IngressClass."""
    spec = item.get("spec") or {}
    given = spec.get("parameters")
    parameters = NONE
    if given:
        group = f".{given['apiGroup']}" if given.get("apiGroup") else ""
        parameters = f"{given['kind']}{group}/{given['name']}"
    return [item["metadata"]["name"], spec.get("controller", ""), parameters, clock.age(item)]


def network_policy(item: Manifest, clock: AgeClock) -> Cells:
    """Write the row of a NetworkPolicy."""
    return [item["metadata"]["name"], selector((item.get("spec") or {}).get("podSelector")), clock.age(item)]


def ip_address(item: Manifest, clock: AgeClock) -> Cells:
    """Write the row of an IPAddress; like a real API server, with an age that has no column."""
    parent = (item.get("spec") or {}).get("parentRef") or {}
    words = [parent.get(field, "") for field in ("resource", "namespace", "name")]
    group = f".{parent['group']}" if parent.get("group") else ""
    owner = f"{words[0]}{group}/{'/'.join(word for word in words[1:] if word)}"
    return [item["metadata"]["name"], owner, clock.age(item)]


def service_cidr(item: Manifest, clock: AgeClock) -> Cells:
    """Write the row of a ServiceCIDR."""
    return [item["metadata"]["name"], ",".join((item.get("spec") or {}).get("cidrs") or ()), clock.age(item)]
