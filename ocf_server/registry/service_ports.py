"""Allocation of the node ports of a Service, and of its port for health checks.

Source: `pkg/registry/core/service/storage/alloc.go` and `pkg/registry/core/service/portallocator` of Kubernetes.
"""

from collections.abc import Collection, Mapping
from typing import Any, Final

from ocf.errors import ApiError, api_error
from ocf.objects.field_errors import FieldError, invalid
from ocf_server.registry.storage import Storage

__all__ = ["WITH_NODE_PORTS", "allocate_ports", "checks_health", "node_ports"]

WITH_NODE_PORTS: Final = ("NodePort", "LoadBalancer")
"""The types of Services with node ports."""

# The default of `--service-node-port-range`.
_FIRST: Final = 30000
_LAST: Final = 32767
_OUTSIDE: Final = f"provided port is not in the valid range. The range of valid ports is {_FIRST}-{_LAST}"
_TAKEN: Final = "provided port is already allocated"

_Spec = Mapping[str, Any]


def node_ports(spec: _Spec) -> list[int]:
    """Return the node ports of a Service."""
    return [port["nodePort"] for port in spec.get("ports") or () if port.get("nodePort")]


def checks_health(spec: _Spec) -> bool:
    """Return whether a Service has a node port for health checks."""
    return spec["type"] == "LoadBalancer" and spec.get("externalTrafficPolicy") == "Local"


def allocate_ports(spec: dict[str, Any], before: _Spec | None, store: Storage, *, dry_run: bool) -> list[FieldError]:
    """Allocate the ports that a Service requests, and those that it needs.

    Args:
        spec: The spec; its ports are changed.
        before: The stored spec; None for a new Service.
        dry_run: Whether the Service is not stored; the range is not checked then.

    Returns:
        The error of a port that cannot be allocated; empty if there is none.

    Raises:
        ApiError: If the port for health checks cannot be allocated, or an update requests a port twice (500).
    """
    ports = _Ports(store, node_ports(spec), dry_run=dry_run)
    if spec["type"] in WITH_NODE_PORTS:
        errors = _allocate_each(spec, () if before is None else node_ports(before), ports, unique=before is not None)
        if errors:
            return errors
    if checks_health(spec) and not (before is not None and checks_health(before)):
        _allocate_health(spec, ports)
    return []


class _Ports:
    """The ports that are taken."""

    def __init__(self, store: Storage, requested: Collection[int], *, dry_run: bool) -> None:
        specs = [service["spec"] for _, service in store.objects(("", "Service"))]
        self._taken = {port for spec in specs for port in (*node_ports(spec), spec.get("healthCheckNodePort"))}
        self._requested = frozenset(requested)
        self._dry_run = dry_run

    def take(self, port: int) -> str:
        """Take a port; return the problem, or an empty text."""
        if not self._dry_run and not _FIRST <= port <= _LAST:
            return _OUTSIDE
        if port in self._taken:
            return _TAKEN
        self._taken.add(port)
        return ""

    def next(self) -> int:
        """Take the first free port."""
        for port in range(_FIRST, _LAST + 1):
            if port not in self._taken and port not in self._requested:
                self._taken.add(port)
                return port
        raise _internal("failed to allocate a nodePort: range is full")


def _internal(problem: str) -> ApiError:
    return api_error(f"Internal error occurred: {problem}", code=500, reason="InternalError")


def _allocate_each(spec: dict[str, Any], known: Collection[int], ports: _Ports, *, unique: bool) -> list[FieldError]:
    """Allocate node ports; ports of the same number share one, and `known` ones are allocated already."""
    automatic = spec["type"] == "NodePort" or spec.get("allocateLoadBalancerNodePorts", True)
    by_number: dict[int, int] = {}
    seen: set[tuple[str, int]] = set()
    for index, port in enumerate(spec["ports"]):
        number, requested = port.get("port", 0), port.get("nodePort", 0)
        if not requested and not automatic:
            continue
        if not requested and not unique:
            same = (each["nodePort"] for each in spec["ports"] if each.get("port") == number and each.get("nodePort"))
            requested = by_number.get(number) or next(same, 0)
        if requested and requested not in known and requested not in by_number.values():
            if problem := ports.take(requested):
                return [invalid(f"spec.ports[{index}].nodePort", requested, problem)]
        elif requested and not unique and by_number.get(number) != requested:
            return [invalid(f"spec.ports[{index}].nodePort", requested, _TAKEN)]
        port["nodePort"] = requested or ports.next()
        # Ports of one number share a node port in a create (initNodePorts), and never in an update (updateNodePorts).
        by_number[number if not unique else -index] = port["nodePort"]
        key = (port.get("protocol", ""), port["nodePort"])
        if unique and key in seen:
            raise api_error(f"duplicate nodePort: {{{key[0]} {key[1]}}}", code=500)
        seen.add(key)
    return []


def _allocate_health(spec: dict[str, Any], ports: _Ports) -> None:
    requested = spec.get("healthCheckNodePort", 0)
    if not requested:
        spec["healthCheckNodePort"] = ports.next()
    elif problem := ports.take(requested):
        raise _internal(f"failed to allocate requested HealthCheck NodePort {requested}: {problem}")
