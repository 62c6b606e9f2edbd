"""Writes of the controller: the Scale, retried on conflicts, and the status."""

import asyncio
import random
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import timedelta
from itertools import zip_longest
from typing import Any, Final

from ocf.autoscaling.algorithm import Status
from ocf.cluster import Cluster, Subresource
from ocf.cluster.retry import MOST_TRIES, retry_on_conflict
from ocf.concepts.backoff import with_jitter
from ocf.controllers.hpa.modes import OWN
from ocf.errors import ApiError
from ocf.objects import Manifest, ObjectKey
from ocf.schema.metric_sources import METRIC_SOURCES

__all__ = ["FIELD_MANAGER", "write_scale", "write_status"]

FIELD_MANAGER: Final = "ocf-hpa-controller"
"""The field manager of the controller."""
# The values of client-go's `retry.DefaultRetry`, which the built-in controller uses.
_PAUSE: Final = timedelta(milliseconds=10)
_JITTER: Final = 0.1
_SHOWN: Final = 2
_DEFAULT: Final = (
    {"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 80}}},
)
_NAMED: Final = frozenset({"Resource", "ContainerResource"})
_UNKNOWN: Final = "<unknown>"


async def write_scale(
    cluster: Cluster,
    target: ObjectKey,
    replicas: int,
    *,
    version: str = "",
    retry: bool = True,
    random: Callable[[], float] = random.random,
) -> None:
    """Write the replicas of a target.

    On a conflict the Scale is read and written again, five times in all, as from Kubernetes 1.34. Other errors are not
    retried.

    Args:
        cluster: The cluster of the target.
        version: The resourceVersion of the target as read; empty reads its Scale first.
        retry: Whether to write again after a conflict.
        random: Draws a number from 0 up to 1.

    Raises:
        ApiError: The error of the last attempt.
    """
    seen = version or _version(await cluster.get(target, subresource=Subresource.SCALE))

    async def read_again() -> str:
        nonlocal seen
        with suppress(ApiError):  # as the built-in controller, which then retries with the old version
            seen = _version(await cluster.get(target, subresource=Subresource.SCALE))
        await asyncio.sleep(with_jitter(_PAUSE, _JITTER, random).total_seconds())
        return seen

    async def write(version: str) -> None:
        scale = _scale(target, replicas, version)
        await cluster.update(scale, field_manager=FIELD_MANAGER, subresource=Subresource.SCALE)

    await retry_on_conflict(read_again, write, live=seen, tries=MOST_TRIES if retry else 1)


async def write_status(cluster: Cluster, manifest: Manifest, status: Status) -> None:
    """Write the status of an autoscaler; one of our own kind has the text of its metrics, too.

    Args:
        cluster: The cluster of the autoscaler.
        manifest: The autoscaler as read; if it has changed since, the write fails with a conflict.

    Raises:
        ApiError: If the API server rejects the write.
    """
    written = {**manifest, "status": status.to_manifest()}
    if manifest["kind"] == OWN[1]:
        metrics = manifest["spec"].get("metrics") or ()
        written["status"]["targets"] = _targets_text(metrics, written["status"].get("currentMetrics") or ())
    await cluster.update(written, field_manager=FIELD_MANAGER, subresource=Subresource.STATUS)


def _scale(target: ObjectKey, replicas: int, version: str) -> Manifest:
    metadata = {"name": target.name, "namespace": target.namespace, "resourceVersion": version}
    return {
        "apiVersion": target.api_version,
        "kind": target.kind,
        "metadata": metadata,
        "spec": {"replicas": replicas},
    }


def _version(scale: Manifest) -> str:
    return str(scale["metadata"].get("resourceVersion") or "")


# A printer column shows one field, so the controller writes the text that kubectl computes for its column TARGETS.
# Source: `formatHPAMetrics` in `pkg/printers/internalversion` of Kubernetes 1.36.
def _targets_text(metrics: Sequence[Manifest], current: Sequence[Manifest]) -> str:
    """Return the values of metrics as `kubectl get hpa` shows them.

    Args:
        metrics: `spec.metrics`; the default metric if there are none.
        current: `status.currentMetrics`, in the same order.

    Example:
        >>> target = {"type": "Utilization", "averageUtilization": 80}
        >>> cpu = {"type": "Resource", "resource": {"name": "cpu", "target": target}}
        >>> now = {"type": "Resource", "resource": {"name": "cpu", "current": {"averageUtilization": 75}}}
        >>> _targets_text([cpu], [now]), _targets_text([], []), _targets_text([cpu] * 5, [now])
        ('cpu: 75%/80%', 'cpu: <unknown>/80%', 'cpu: 75%/80%, cpu: <unknown>/80% + 3 more...')
    """
    # Our own kind has no defaults of the API server; `decide` sets them.
    wanted = metrics or _DEFAULT
    shown = [_metric(metric, now) for metric, now in zip_longest(wanted, current[: len(wanted)]) if metric][:_SHOWN]
    more = f" + {len(wanted) - _SHOWN} more..." if len(wanted) > _SHOWN else ""
    return ", ".join(shown) + more


def _metric(metric: Manifest, now: Manifest | None) -> str:
    kind = str(metric.get("type") or "")
    if kind not in METRIC_SOURCES:
        return "<unknown type>"
    source = METRIC_SOURCES[kind].field
    spec: Mapping[str, Any] = metric.get(source) or {}
    same = now is not None and now.get("type") == kind
    target, found = spec.get("target") or {}, ((now or {}).get(source) or {}).get("current") if same else {}
    for field, suffix, unit in (("averageUtilization", "", "%"), ("averageValue", " (avg)", ""), ("value", "", "")):
        if target.get(field) is not None:
            reached = (found or {}).get(field)
            text = f"{_UNKNOWN if reached is None else f'{reached}{unit}'}/{target[field]}{unit}"
            if kind in _NAMED:
                return f"{spec.get('name')}: {text}"
            return text + (suffix if kind in {"External", "Object"} else "")
    return f"{_UNKNOWN}/<auto>"
