"""Names, labels and ports of the objects of a cache."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from examples.memcached.model import Memcached

__all__ = [
    "EXPORTER",
    "MEMCACHED",
    "METRICS_PORT",
    "PORT",
    "TLS_PORT",
    "labels",
    "ports",
]

MEMCACHED: Final = "memcached"
EXPORTER: Final = "exporter"
PORT: Final = 11211
TLS_PORT: Final = 11212
METRICS_PORT: Final = 9150


def labels(cache: Memcached) -> dict[str, str]:
    """Return the labels that all objects of a cache have in common; they select its pods, so they never change.

    Args:
        cache: The owner.
    """
    return {
        "app.kubernetes.io/name": "memcached",
        "app.kubernetes.io/instance": cache.metadata.name,
        "app.kubernetes.io/managed-by": "memcached-operator",
    }


def ports(cache: Memcached) -> dict[str, int]:
    """Return the ports on which a pod listens, by name.

    Args:
        cache: The owner.
    """
    found = {"memcached": PORT}
    if cache.tls.enabled:
        found["memcached-tls"] = TLS_PORT
    if cache.monitoring.enabled:
        found["metrics"] = METRICS_PORT
    return found
