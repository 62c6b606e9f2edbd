"""The page of the metrics, from the collectors that export them."""

from collections.abc import Iterator
from typing import Any, Final

from prometheus_client import CollectorRegistry

from ocf.concepts import SystemClock
from ocf.controllers.hpa.metrics import HpaMonitor
from ocf.controllers.nodegroup.metrics import NodeGroupMonitor
from ocf.runtime.monitoring import PrometheusRecorder
from ocf.runtime.operator import Lease, Sharding
from ocf.runtime.operator.options import membership
from ocf.runtime.operator.state_metrics import StateMetrics
from ocf.runtime.sharding.membership import Membership
from ocf.runtime.sharding.shard_metrics import ShardMetrics
from ocf.runtime.workqueue.metrics import QueueMetrics
from ocf_server import EmbeddedCluster

__all__ = ["page"]

_INTRODUCTION: Final = """\
# Metrics

All Prometheus metrics, by the process that exports them. [Watching an operator](../operators/observability.md) explains
how to serve, scrape and read those of an operator.
"""


def page() -> str:
    """Return the page, in Markdown."""
    parts = {
        "An operator": _of_operator(),
        "The HPA controller": _of_hpa_controller(),
        "The node-group controller": NodeGroupMonitor().registry,
    }
    return "\n".join([_INTRODUCTION, *(f"## {title}\n\n{_table(registry)}" for title, registry in parts.items())])


def _of_operator() -> CollectorRegistry:
    registry = CollectorRegistry()
    PrometheusRecorder(controller="shop", registry=registry)
    QueueMetrics(registry)
    StateMetrics(registry, "shop", SystemClock())
    ShardMetrics(registry, _shards())
    return registry


def _of_hpa_controller() -> CollectorRegistry:
    registry = HpaMonitor().registry
    ShardMetrics(registry, _shards())
    return registry


def _shards() -> Membership:
    return membership(EmbeddedCluster(), Lease("shop", "default"), Sharding(), SystemClock())


def _table(registry: CollectorRegistry) -> str:
    rows = sorted(f"| `{name}` | {kind} | {labels} | {text} |" for name, kind, labels, text in _families(registry))
    return "\n".join(["| metric | type | labels | meaning |", "| --- | --- | --- | --- |", *rows, ""])


def _families(registry: CollectorRegistry) -> Iterator[tuple[str, str, str, str]]:
    # The library has no public way to the names of labels before there are samples.
    collectors: list[Any] = list(registry._collector_to_names)  # noqa: SLF001
    for collector in collectors:
        own = getattr(collector, "_labelnames", None)
        for family in collector.describe():
            labels = own if own is not None else family._labelnames  # noqa: SLF001
            name = f"{family.name}_total" if family.type == "counter" else family.name
            yield name, family.type, ", ".join(f"`{label}`" for label in labels), " ".join(family.documentation.split())
