"""The ServiceMonitor, by which Prometheus finds the exporter: a kind that not every cluster has."""

from __future__ import annotations

from typing import TYPE_CHECKING

from examples.memcached.model import ServiceMonitorSettings
from examples.memcached.naming import labels, named
from ocf.feature import BooleanGate
from ocf.primitives import unstructured

if TYPE_CHECKING:
    from examples.memcached.model import Memcached
    from ocf.concepts import Resource
    from ocf.feature import Gate

__all__ = ["monitor", "monitored"]


def monitored(cache: Memcached) -> Gate:
    """Return the gate of the monitor: there has to be an exporter, and the user has to ask for it."""
    return BooleanGate(cache.monitoring.enabled).when(cache.monitoring.service_monitor is not None)


def monitor(cache: Memcached) -> Resource:
    """Describe what is scraped, and how often.

    Args:
        cache: The owner.
    """
    settings = cache.monitoring.service_monitor or ServiceMonitorSettings()
    endpoint = {"port": "metrics", "interval": settings.interval, "scrapeTimeout": settings.scrape_timeout}
    base = {
        "apiVersion": "monitoring.coreos.com/v1",
        "kind": "ServiceMonitor",
        "metadata": named(cache, settings.additional_labels),
        "spec": {
            "selector": {"matchLabels": labels(cache)},
            "namespaceSelector": {"matchNames": [cache.metadata.namespace]},
            "endpoints": [endpoint],
        },
    }
    return unstructured.StaticBuilder(base).build()
