"""Metrics of the slots of a process and of their number of replicas, computed at each scrape."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from prometheus_client.core import GaugeMetricFamily

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry

    from ocf.runtime.sharding.membership import Membership

__all__ = ["ShardMetrics"]


class ShardMetrics:
    """What a process holds among the replicas, as metrics."""

    def __init__(self, registry: CollectorRegistry, shards: Membership) -> None:
        self._shards = shards
        registry.register(self)

    def describe(self) -> Iterator[GaugeMetricFamily]:
        """Yield the gauges without samples, so that a registry rejects duplicates."""
        yield from _gauges()

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """Yield the gauges with their present values."""
        holds, replicas, selects = _gauges()
        slots = self._shards.slots
        held, name = slots.held, slots.lease.name
        for slot in range(slots.sharding.slots):
            holds.add_metric((name, str(slot)), float(slot in held))
        replicas.add_metric((name,), len(self._shards.replicas))
        for (api_version, kind), by_server in slots.by_server.items():
            selects.add_metric((name, api_version, kind), float(by_server))
        yield from (holds, replicas, selects)


def _gauges() -> tuple[GaugeMetricFamily, ...]:
    return (
        GaugeMetricFamily(
            "ocf_slot_held", "Whether this replica holds a slot of the owners: 1, or 0.", labels=("name", "slot")
        ),
        GaugeMetricFamily("ocf_replicas", "Replicas that divide the owners, as this one sees them.", labels=("name",)),
        GaugeMetricFamily(
            "ocf_sharded_by_server",
            "Whether the API server sends only the objects in the slots of this replica: 1, or 0.",
            labels=("name", "api_version", "kind"),
        ),
    )
