"""Reports of simulated runs: an HTML page, text for a terminal, and tables."""

from ocf.simulation.report.page import to_html
from ocf.simulation.report.reported import Reported

__all__ = ["Reported", "to_html"]
