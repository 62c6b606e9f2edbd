"""Grafana dashboard for the metrics of an operator, generated so that it always matches the metrics."""

from typing import Any, Final, NamedTuple

from ocf.runtime.monitoring.metrics import condition_metric

__all__ = ["dashboard"]

_WIDTH: Final = 24
_HEIGHT: Final = 8
_SOURCE: Final = {"type": "prometheus", "uid": "${source}"}
_CHOSEN: Final = 'controller=~"$controller"'
_RESOURCE: Final = "component, resource, kind"
_COLUMNS: Final = {
    "kind": "Kind",
    "id": "Owner",
    "condition": "Condition",
    "status": "Status",
    "reason": "Reason",
    "controller": "Controller",
    "Value": "Age",
}


class _Panel(NamedTuple):
    title: str
    description: str
    query: str
    legend: str
    type: str = "timeseries"
    unit: str = "short"
    is_stacked: bool = False
    width: int = _WIDTH // 2


def dashboard(namespace: str = "ocf") -> dict[str, Any]:
    """Return the dashboard of an operator, to be written as JSON and imported into Grafana.

    Args:
        namespace: The namespace of its `PrometheusRecorder`.

    Raises:
        ConfigError: If the namespace cannot start the name of a metric.

    Example:
        >>> [panel["title"] for panel in dashboard("shops")["panels"]][:2]
        ['Conditions that are not True', 'Conditions by reason']
    """
    metric = condition_metric(namespace)
    return {
        "uid": f"ocf-{namespace}",
        "title": f"{namespace}: components",
        "schemaVersion": 39,
        "time": {"from": "now-6h", "to": "now"},
        "refresh": "1m",
        "templating": {"list": [_source(), _controller(metric)]},
        "panels": _placed(_panels(metric)),
    }


def _panels(metric: str) -> tuple[_Panel, ...]:
    # A former leader may still export what it last saw; the condition that changed last is the one that holds.
    latest = f"topk by (job, controller, kind, id, condition) (1, {metric}{{{_CHOSEN}}})"
    return (
        _Panel(
            "Conditions that are not True",
            "Age of every condition that is False or Unknown, oldest first.",
            f'sort_desc(time() - ({metric}{{{_CHOSEN}, status!="True"}} and {latest}))',
            "",
            type="table",
            unit="s",
            width=_WIDTH,
        ),
        _Panel(
            "Conditions by reason",
            "Number of owners by condition, status and reason.",
            f"count by (kind, condition, status, reason) ({latest})",
            "{{kind}} {{condition}} {{status}} {{reason}}",
            is_stacked=True,
        ),
        _Panel(
            "Applies of resources, by operation",
            "While everything is in sync, the only operation is none.",
            f"sum by (operation) (rate(ocf_resource_apply_total{{{_CHOSEN}}}[$__rate_interval]))",
            "{{operation}}",
            unit="ops",
        ),
        _Panel(
            "Writes, by reason",
            "The drift that caused a write.",
            f"sum by (why, {_RESOURCE}) "
            f'(rate(ocf_resource_apply_total{{{_CHOSEN}, operation!="none"}}[$__rate_interval]))',
            "{{component}} {{kind}} {{resource}}: {{why}}",
            unit="ops",
        ),
        _Panel(
            "Skipped writes, by reason",
            "Backing off: another controller reverts the writes.",
            f'sum by (why) (rate(ocf_resource_apply_total{{{_CHOSEN}, operation="none"}}[$__rate_interval]))',
            "{{why}}",
            unit="ops",
        ),
        _Panel(
            "Failures",
            "Failed applies; the conditions of the owners have the reason.",
            f"sum by ({_RESOURCE}) (rate(ocf_resource_apply_errors_total{{{_CHOSEN}}}[$__rate_interval]))",
            "{{component}} {{kind}} {{resource}}",
            unit="ops",
        ),
        _Panel(
            "Failed reconciles",
            "Reconciles that failed, retries included; the conditions and events of the owners have the errors.",
            f'sum by (controller) (rate(controller_runtime_reconcile_total{{{_CHOSEN}, result="error"}}'
            "[$__rate_interval]))",
            "{{controller}}",
            unit="ops",
        ),
        _Panel(
            "Backing off",
            "Resources whose writes wait because another controller reverts them.",
            f"sum by ({_RESOURCE}) "
            f'(increase(ocf_resource_apply_total{{{_CHOSEN}, why="backing off"}}[$__rate_interval]))',
            "{{component}} {{kind}} {{resource}}",
        ),
    )


def _placed(panels: tuple[_Panel, ...]) -> list[dict[str, Any]]:
    """Place panels in rows that are `_WIDTH` columns wide."""
    placed, x, y = [], 0, 0
    for number, panel in enumerate(panels, 1):
        if x + panel.width > _WIDTH:
            x, y = 0, y + _HEIGHT
        placed.append(_panel(number, panel, {"h": _HEIGHT, "w": panel.width, "x": x, "y": y}))
        x += panel.width
    return placed


def _panel(number: int, panel: _Panel, place: dict[str, int]) -> dict[str, Any]:
    table = panel.type == "table"
    placed: dict[str, Any] = {
        "id": number,
        "type": panel.type,
        "title": panel.title,
        "description": panel.description,
        "datasource": _SOURCE,
        "gridPos": place,
        "fieldConfig": {"defaults": {"unit": panel.unit, "custom": _style(panel)}, "overrides": []},
        "targets": [
            {
                "refId": "A",
                "expr": panel.query,
                "legendFormat": panel.legend,
                "instant": table,
                "format": "table" if table else "time_series",
            }
        ],
    }
    return {**placed, "transformations": _transformations()} if table else placed


def _style(panel: _Panel) -> dict[str, Any]:
    # Numbers of owners are often equal; without stacking, one line hides the others.
    return {"fillOpacity": 25, "stacking": {"mode": "normal", "group": "A"}} if panel.is_stacked else {}


def _transformations() -> list[dict[str, Any]]:
    """Show only some labels, in this order: the target's own labels differ from one Prometheus to another."""
    order = {name: number for number, name in enumerate(_COLUMNS)}
    return [
        {"id": "filterFieldsByName", "options": {"include": {"names": [*_COLUMNS]}}},
        {"id": "organize", "options": {"indexByName": order, "renameByName": {**_COLUMNS}, "excludeByName": {}}},
    ]


def _source() -> dict[str, Any]:
    return {"name": "source", "label": "Prometheus", "type": "datasource", "query": "prometheus"}


def _controller(metric: str) -> dict[str, Any]:
    query = f"label_values({metric}, controller)"
    return {
        "name": "controller",
        "type": "query",
        "datasource": _SOURCE,
        "query": query,
        "includeAll": True,
        "multi": True,
        "allValue": ".*",
        "refresh": 2,
    }
