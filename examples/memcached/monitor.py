"""The ServiceMonitor, which makes Prometheus scrape the exporter; not every cluster has this kind."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from examples.memcached.model import ServiceMonitorSettings
from examples.memcached.naming import labels
from ocf.feature import BooleanGate
from ocf.objects import Manifest
from ocf.primitives import unstructured

if TYPE_CHECKING:
    from examples.memcached.model import Memcached
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
"""Names and scope of the kind, for policy rules and embedded clusters; the Prometheus operator installs its own."""


def monitored(cache: Memcached) -> Gate:
    """Return the gate of the monitor, which is open if the exporter is enabled and `serviceMonitor` is set."""
    return BooleanGate(cache.monitoring.enabled).when(cache.monitoring.service_monitor is not None)


def monitor(cache: Memcached) -> unstructured.StaticBuilder:
    """Return the ServiceMonitor: the endpoint that is scraped, and the interval.

    Args:
        cache: The owner.
    """
    settings = cache.monitoring.service_monitor or ServiceMonitorSettings()
    endpoint = {"port": "metrics", "interval": settings.interval, "scrapeTimeout": settings.scrape_timeout}
    base = {
        "apiVersion": "monitoring.coreos.com/v1",
        "kind": "ServiceMonitor",
        "metadata": {
            "name": cache.metadata.name,
            "labels": {**(settings.additional_labels or {}), **labels(cache)},
        },
        "spec": {
            "selector": {"matchLabels": labels(cache)},
            "namespaceSelector": {"matchNames": [cache.metadata.namespace]},
            "endpoints": [endpoint],
        },
    }
    return unstructured.StaticBuilder(base)
