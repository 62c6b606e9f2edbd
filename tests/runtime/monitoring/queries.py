"""The expressions of the dashboard and of the alerting rules, and what was recorded about them."""

from pathlib import Path
from typing import Any, Final

import yaml

from ocf.runtime.monitoring import alert_rules, dashboard

__all__ = ["EXPRESSIONS", "PANELS", "QUERIES", "RECORDED", "RULES", "SCHEMA", "sent"]

SCHEMA: Final = Path(__file__).parent / "recorded" / "grafana_dashboard.schema.json"
"""The schema of Grafana's dashboards; `scripts/record/dashboard.py` writes it."""
RECORDED: Final = Path(__file__).parent / "recorded" / "promql.json"
"""What Prometheus's parser makes of each expression; `scripts/record/dashboard.py` writes it."""

RULES: Final[list[dict[str, Any]]] = [
    rule for group in yaml.safe_load(alert_rules())["groups"] for rule in group["rules"]
]
PANELS: Final[list[dict[str, Any]]] = dashboard()["panels"]
QUERIES: Final[dict[str, str]] = {
    **{str(rule["alert"]): str(rule["expr"]) for rule in RULES},
    **{str(panel["title"]): str(panel["targets"][0]["expr"]) for panel in PANELS},
}
"""Expressions by the name of the alert or the title of the panel."""


def sent(expression: str, *, rate_interval: str = "4m") -> str:
    """Return an expression as Prometheus gets it: Grafana has replaced its variables.

    Args:
        expression: The expression of the dashboard or of an alert.
        rate_interval: What Grafana computes for `$__rate_interval`: four times the scrape interval, or more.
    """
    return expression.replace("$__rate_interval", rate_interval).replace("$controller", ".*")


EXPRESSIONS: Final = [sent(each) for each in QUERIES.values()]
