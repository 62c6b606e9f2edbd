"""Draw docs/pictures/dashboard.svg: the panels of the Grafana dashboard, with values of a run.

    python -m scripts.record.dashboard_picture

The README's operator runs for an hour of virtual time on the embedded cluster. Prometheus's own engine, which
`oracles/promql` calls, evaluates the expression of each panel over what it exported. The drawing is ours, not
Grafana's. A run without a change of the dashboard, the operator or its metrics leaves the file as it is. Needs Go.
"""

from pathlib import Path
from typing import Final

from ocf.runtime.monitoring import dashboard
from scripts.record.dashboard_parts.drawing import draw
from scripts.record.dashboard_parts.panels import digest, filled, query_of
from scripts.record.dashboard_parts.prometheus import evaluate
from scripts.record.dashboard_parts.run import record

__all__ = ["PICTURE"]

PICTURE: Final = Path(__file__).parents[2] / "docs" / "pictures" / "dashboard.svg"


def main() -> None:
    """Run the operator, and write the picture."""
    shown = dashboard()
    panels = shown["panels"]
    results = evaluate(record(), [query_of(panel) for panel in panels])
    drawn = [filled(panel, found) for panel, found in zip(panels, results, strict=True)]
    PICTURE.write_text(draw(shown["title"], drawn, digest(panels)), encoding="utf-8")


if __name__ == "__main__":
    main()
