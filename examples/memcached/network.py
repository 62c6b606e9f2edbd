"""The Service of a cache, and the NetworkPolicy that restricts its clients."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from examples.memcached.naming import labels, ports
from ocf.feature import BooleanGate
from ocf.objects import write_model
from ocf.primitives import networkpolicy
from ocf.primitives import service as service_kind

if TYPE_CHECKING:
    from examples.memcached.model import Memcached
    from ocf.feature import Gate

__all__ = ["access", "restricted", "service"]


def service(cache: Memcached) -> service_kind.Builder:
    """Return the headless Service: clients resolve all pods and choose among them.

    Args:
        cache: The owner.
    """
    metadata: dict[str, Any] = {"name": cache.metadata.name}
    if cache.spec.service and cache.spec.service.annotations:
        metadata["annotations"] = cache.spec.service.annotations
    base = {
        "metadata": metadata,
        "spec": {
            "clusterIP": "None",
            "selector": labels(cache),
            "ports": [
                {"name": name, "port": port, "targetPort": name, "protocol": "TCP"}
                for name, port in ports(cache).items()
            ],
        },
    }
    return service_kind.Builder(base)


def restricted(cache: Memcached) -> Gate:
    """Return the gate of the NetworkPolicy."""
    return BooleanGate(cache.access.enabled)


def access(cache: Memcached) -> networkpolicy.Builder:
    """Return the NetworkPolicy: the allowed clients, and the ports they may connect to.

    Args:
        cache: The owner.
    """
    rule: dict[str, Any] = {"ports": [{"port": port, "protocol": "TCP"} for port in ports(cache).values()]}
    if cache.access.allowed_sources:
        rule["from"] = [write_model(peer) for peer in cache.access.allowed_sources]
    base = {
        "metadata": {"name": cache.metadata.name},
        "spec": {
            "podSelector": {"matchLabels": labels(cache)},
            "policyTypes": ["Ingress"],
            "ingress": [rule],
        },
    }
    return networkpolicy.Builder(base)
