"""Explanations of decisions: reasons, thresholds for another result, and the range that an unknown history leaves open.

`explain` and `explain_unknown` run the algorithm. `render` and `render_text` render the explanation for people,
`to_json` for programs, and `to_html` is a page of all of it.
"""

from ocf.autoscaling.explain.chart_svg import standalone_svg
from ocf.autoscaling.explain.explanation import explain, explain_unknown
from ocf.autoscaling.explain.levers import levers
from ocf.autoscaling.explain.page import to_html
from ocf.autoscaling.explain.stabilization_holds import Hold
from ocf.autoscaling.explain.text import render
from ocf.autoscaling.explain.to_json import to_json
from ocf.autoscaling.explain.uncertainty import KnownHistory

__all__ = [
    "Hold",
    "KnownHistory",
    "explain",
    "explain_unknown",
    "levers",
    "render",
    "standalone_svg",
    "to_html",
    "to_json",
]
