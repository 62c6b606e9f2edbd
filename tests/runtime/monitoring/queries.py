"""The expressions of the dashboard and of the alerting rules, and what was recorded about them."""

from pathlib import Path
from typing import Any, Final

import yaml

from ocf.runtime.monitoring import alert_rules, dashboard

__all__ = ["EXPRESSIONS", "PANELS", "QUERIES", "RECORDED", "RULES", "SCHEMA", "sent"]

SCHEMA: Final = Path(__file__).parent / "recorded" / "grafana_dashboard.schema.json"
"""The schema of Grafana's dashboards; `scripts/record_dashboard.py` writes it."""
RECORDED: Final = Path(__file__).parent / "recorded" / "promql.json"
"""What Prometheus's parser makes of each expression; `scripts/record_dashboard.py` writes it."""

RULES: Final[list[dict[str, Any]]] = [
    rule for group in yaml.safe_load(alert_rules())["groups"] for rule in group["rules"]
]
PANELS: Final[list[dict[str, Any]]] = dashboard()["panels"]
QUERIES: Final[dict[str, str]] = {
    **{str(rule["alert"]): str(rule["expr"]) for rule in RULES},
    **{str(panel["title"]): str(panel["targets"][0]["expr"]) for panel in PANELS},
}
"""Expressions by the name of the alert or the title of the panel."""

# Grafana replaces its variables before Prometheus sees an expression.
_VARIABLES: Final = {"$__rate_interval": "4m", "$controller": ".*"}


def sent(expression: str) -> str:
    """Return an expression as Prometheus gets it."""
    for variable, value in _VARIABLES.items():
        expression = expression.replace(variable, value)
    return expression


EXPRESSIONS: Final = [sent(each) for each in QUERIES.values()]
