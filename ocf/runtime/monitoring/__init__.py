"""Metrics, alert rules, dashboard, probes, and JSON and text logs of an operator."""

from ocf.runtime.monitoring.alerts import alert_rules
from ocf.runtime.monitoring.dashboard import dashboard
from ocf.runtime.monitoring.json_logs import JsonFormatter
from ocf.runtime.monitoring.metrics import PrometheusRecorder, render_metrics

__all__ = [
    "JsonFormatter",
    "PrometheusRecorder",
    "alert_rules",
    "dashboard",
    "render_metrics",
]
