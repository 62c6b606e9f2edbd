"""Names, labels and ports of the objects of a cache."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from examples.memcached.model import Memcached

__all__ = [
    "EXPORTER",
    "MEMCACHED",
    "METRICS_PORT",
    "PORT",
    "TLS_PORT",
    "labels",
    "named",
    "ports",
]

MEMCACHED: Final = "memcached"
EXPORTER: Final = "exporter"
PORT: Final = 11211
TLS_PORT: Final = 11212
METRICS_PORT: Final = 9150


def labels(cache: Memcached) -> dict[str, str]:
    """Return the labels of all objects of a cache; they select its pods, so they never change.

    Args:
        cache: The owner.
    """
    return {
        "app.kubernetes.io/name": "memcached",
        "app.kubernetes.io/instance": cache.metadata.name,
        "app.kubernetes.io/managed-by": "memcached-operator",
    }


def named(cache: Memcached, more: Mapping[str, str] | None = None) -> dict[str, Any]:
    """Return the metadata of an object of a cache, with the name and namespace of the cache.

    Args:
        cache: The owner.
        more: Additional labels; the labels of `labels` take precedence.
    """
    metadata = {"name": cache.metadata.name, "namespace": cache.metadata.namespace}
    return {**metadata, "labels": {**(more or {}), **labels(cache)}}


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
