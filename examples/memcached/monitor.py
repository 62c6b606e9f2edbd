"""The ServiceMonitor, by which Prometheus finds the exporter: a kind that not every cluster has."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from examples.memcached.model import ServiceMonitorSettings
from examples.memcached.naming import labels, named
from ocf.feature import BooleanGate
from ocf.objects import Manifest
from ocf.primitives import unstructured

if TYPE_CHECKING:
    from examples.memcached.model import Memcached
    from ocf.concepts import Resource
    from ocf.feature import Gate

__all__ = ["DEFINITION", "monitor", "monitored"]

DEFINITION: Final[Manifest] = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "servicemonitors.monitoring.coreos.com"},
    "spec": {
        "group": "monitoring.coreos.com",
        "names": {
            "kind": "ServiceMonitor",
            "listKind": "ServiceMonitorList",
            "plural": "servicemonitors",
            "singular": "servicemonitor",
        },
        "scope": "Namespaced",
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
            }
        ],
    },
}
"""What the kind is called and where it lives, for privileges and for trying things out; Prometheus brings the rest."""


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
