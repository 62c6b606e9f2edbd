"""The Deployment: a baseline for every cache, and one mutation for each optional feature."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from examples.memcached import features, secrets
from examples.memcached.model import ServerSettings
from examples.memcached.naming import MEMCACHED, PORT, labels
from ocf.objects import write_model
from ocf.primitives import deployment

if TYPE_CHECKING:
    from collections.abc import Mapping

    from examples.memcached.model import Memcached
    from ocf.concepts import Data

__all__ = ["arguments", "server"]


def server(cache: Memcached, cells: Mapping[str, Data[secrets.Entries]]) -> deployment.Builder:
    """Return the Deployment.

    Args:
        cache: The owner.
        cells: Content of the Secrets that the pods read, by name.
    """
    return (
        deployment.Builder(_base(cache))
        .with_optional_data(*cells.values())
        .with_mutation(
            features.version_label(cache),
            features.placement(cache),
            features.graceful_shutdown(cache),
            features.sasl(cache),
            features.tls(cache),
            features.extra_arguments(cache),  # after all that add arguments: the user's come last
            features.exporter(cache),
            features.hardening(cache),  # after all that add containers
            features.restart(cache),
            secrets.rolling(cells),
        )
    )


def arguments(settings: ServerSettings) -> list[str]:
    """Return the command-line arguments of memcached.

    Args:
        settings: The user's settings.

    Example:
        >>> arguments(ServerSettings(verbosity=1))
        ['-m', '64', '-c', '1024', '-t', '4', '-I', '1m', '-v']
    """
    wanted: dict[str, object] = {
        "-m": settings.max_memory_mb,
        "-c": settings.max_connections,
        "-t": settings.threads,
        "-I": settings.max_item_size,
    }
    pairs = [text for flag, value in wanted.items() for text in (flag, str(value))]
    return [*pairs, f"-{'v' * settings.verbosity}"] if settings.verbosity else pairs


def _base(cache: Memcached) -> dict[str, Any]:
    """Return the baseline of every cache; the component omits the replica count while an autoscaler owns it."""
    rolling = {"maxSurge": 1, "maxUnavailable": 0}
    return {
        "metadata": {"name": cache.metadata.name},
        "spec": {
            "replicas": cache.replicas,
            "selector": {"matchLabels": labels(cache)},
            "strategy": {"type": "RollingUpdate", "rollingUpdate": rolling},
            "template": {"metadata": {"labels": labels(cache)}, "spec": {"containers": [_container(cache)]}},
        },
    }


def _container(cache: Memcached) -> dict[str, Any]:
    resources = cache.spec.resources
    asked = {"resources": write_model(resources)} if resources else {}
    listening = {"tcpSocket": {"port": MEMCACHED}}
    return {
        "name": MEMCACHED,
        "image": cache.spec.image,
        "args": arguments(cache.server),
        "ports": [{"name": MEMCACHED, "containerPort": PORT, "protocol": "TCP"}],
        "livenessProbe": {**listening, "initialDelaySeconds": 10, "periodSeconds": 10},
        "readinessProbe": {**listening, "initialDelaySeconds": 5, "periodSeconds": 5},
        **asked,
    }
