"""Measured use of nodes, for groups whose nodes are removed by it.

Metrics may be missing for as long as an outage lasts, and a node that was not measured never counts as idle.
"""

import logging
from collections.abc import Iterable
from typing import Any, Final

from ocf.controllers.metrics_client import NodeMetricsClient
from ocf.controllers.nodegroup.objects import GroupObject
from ocf.errors import ApiError, FieldProblem
from ocf.nodegroups.snapshot import Resources
from ocf.nodegroups.snapshot.fields import Fields
from ocf.nodegroups.snapshot.resources import to_resources

__all__ = ["measure_nodes", "read_usage", "wants_usage"]

_log: Final = logging.getLogger(__name__)
_MEASURED: Final = ("cpu", "memory")


def wants_usage(groups: Iterable[GroupObject]) -> bool:
    """Return whether a group removes nodes by their measured use.

    Args:
        groups: The groups.
    """
    return any(each.spec is not None and each.spec.scale_down_policy.utilization == "Usage" for each in groups)


def read_usage(entries: Iterable[Any]) -> dict[str, Resources]:
    """Return the measured use by the name of the node; entries that cannot be read are left out.

    Args:
        entries: NodeMetrics of metrics.k8s.io/v1beta1.

    Example:
        >>> measured = {"metadata": {"name": "n1"}, "usage": {"cpu": "250m", "memory": "1Gi"}}
        >>> read_usage([measured, {"metadata": {"name": "n2"}, "usage": {"cpu": "1"}}])
        {'n1': Resources(cpu=250, memory=1073741824, storage=0, pods=0, scalars=())}
    """
    found = {}
    for entry in entries:
        problems: list[FieldProblem] = []
        fields = Fields(entry if isinstance(entry, dict) else {}, "", problems)
        name, usage = fields.child("metadata").text("name"), fields.amounts("usage")
        if name and not problems and all(usage.get(each, -1) >= 0 for each in _MEASURED):
            found[name] = to_resources({each: usage[each] for each in _MEASURED})
    return found


async def measure_nodes(metrics: NodeMetricsClient | None, groups: Iterable[GroupObject]) -> dict[str, Resources]:
    """Return the measured use of all nodes, if a group wants it.

    Args:
        metrics: The client; None where there are no metrics.
        groups: The groups.

    Returns:
        The use by the name of the node; empty if the metrics cannot be read.
    """
    if metrics is None or not wants_usage(groups):
        return {}
    try:
        return read_usage(await metrics.node_metrics())
    except ApiError as error:
        _log.warning("the use of nodes cannot be read, and none is removed because of it: %s", error)
        return {}
