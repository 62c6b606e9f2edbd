"""How an operator runs: what it counts, tells and publishes about itself."""

from ocf.runtime.alerts import alert_rules
from ocf.runtime.combining import Words, combined, worded
from ocf.runtime.dashboard import dashboard
from ocf.runtime.events import Drop, EventPoster, posting
from ocf.runtime.logs import JsonFormatter
from ocf.runtime.metrics import Exposition, PrometheusRecorder, exposition

__all__ = [
    "Drop",
    "EventPoster",
    "Exposition",
    "JsonFormatter",
    "PrometheusRecorder",
    "Words",
    "alert_rules",
    "combined",
    "dashboard",
    "exposition",
    "posting",
    "worded",
]
