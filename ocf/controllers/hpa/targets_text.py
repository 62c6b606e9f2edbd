"""Current and desired values of the metrics as one text, for a column of `kubectl get`.

A printer column shows one field, so the controller writes the text that kubectl computes for its column TARGETS.

Source: `formatHPAMetrics` in `pkg/printers/internalversion` of Kubernetes 1.36.
"""

from collections.abc import Mapping, Sequence
from itertools import zip_longest
from typing import Any, Final

from ocf.objects import Manifest
from ocf.schema.metric_sources import METRIC_SOURCES

__all__ = ["targets_text"]

_SHOWN: Final = 2
_DEFAULT: Final = (
    {"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 80}}},
)
_NAMED: Final = frozenset({"Resource", "ContainerResource"})
_UNKNOWN: Final = "<unknown>"


def targets_text(metrics: Sequence[Manifest], current: Sequence[Manifest]) -> str:
    """Return the values of metrics as `kubectl get hpa` shows them.

    Args:
        metrics: `spec.metrics`; the default metric if there are none.
        current: `status.currentMetrics`, in the same order.

    Example:
        >>> target = {"type": "Utilization", "averageUtilization": 80}
        >>> cpu = {"type": "Resource", "resource": {"name": "cpu", "target": target}}
        >>> now = {"type": "Resource", "resource": {"name": "cpu", "current": {"averageUtilization": 75}}}
        >>> targets_text([cpu], [now]), targets_text([], []), targets_text([cpu] * 5, [now])
        ('cpu: 75%/80%', 'cpu: <unknown>/80%', 'cpu: 75%/80%, cpu: <unknown>/80% + 3 more...')
    """
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
