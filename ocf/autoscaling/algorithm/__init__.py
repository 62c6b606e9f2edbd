"""The controller's algorithm as pure functions: what it sees and remembers goes in, what it would do and say comes out.

`decide` is one whole round. The layers below it can be used on their own: grouping pods, adding up requests, replicas
for one metric, combining metrics, stabilization, policies, history.
"""

from ocf.autoscaling.algorithm.decide import decide, tolerances_of
from ocf.autoscaling.algorithm.decision import Decision, Error
from ocf.autoscaling.algorithm.early_exit import shortcut
from ocf.autoscaling.algorithm.history import History, Recommendation, ScaleEvent
from ocf.autoscaling.algorithm.hpa_spec import Autoscaler, Behavior, Metric, Policy, Rules, Target
from ocf.autoscaling.algorithm.metric_proposals import Combination, Failure, Outcome, combine, evaluate
from ocf.autoscaling.algorithm.metric_values import read_external, read_object, read_pods, read_resource
from ocf.autoscaling.algorithm.normalize import downscale_window, normalized
from ocf.autoscaling.algorithm.pod_groups import Groups, group
from ocf.autoscaling.algorithm.pod_requests import requested
from ocf.autoscaling.algorithm.replica_calculator import (
    Calculation,
    Count,
    Tolerances,
    from_average,
    from_total,
    from_total_per_pod,
    from_utilization,
)
from ocf.autoscaling.algorithm.rules import Rule
from ocf.autoscaling.algorithm.scaling_policies import Allowance, Limit, limited, limited_by_behavior
from ocf.autoscaling.algorithm.settings import Features, Settings
from ocf.autoscaling.algorithm.snapshot import (
    Container,
    Pod,
    Readiness,
    Reading,
    Sample,
    Scale,
    Snapshot,
    Unavailable,
    WholePod,
)
from ocf.autoscaling.algorithm.stabilization import Stabilization, hold_down, hold_in_envelope
from ocf.autoscaling.algorithm.status import Condition, MetricStatus, Status
from ocf.autoscaling.algorithm.status_builder import Event
from ocf.autoscaling.algorithm.trace import Trace

__all__ = [
    "Allowance",
    "Autoscaler",
    "Behavior",
    "Calculation",
    "Combination",
    "Condition",
    "Container",
    "Count",
    "Decision",
    "Error",
    "Event",
    "Failure",
    "Features",
    "Groups",
    "History",
    "Limit",
    "Metric",
    "MetricStatus",
    "Outcome",
    "Pod",
    "Policy",
    "Readiness",
    "Reading",
    "Recommendation",
    "Rule",
    "Rules",
    "Sample",
    "Scale",
    "ScaleEvent",
    "Settings",
    "Snapshot",
    "Stabilization",
    "Status",
    "Target",
    "Tolerances",
    "Trace",
    "Unavailable",
    "WholePod",
    "combine",
    "decide",
    "downscale_window",
    "evaluate",
    "from_average",
    "from_total",
    "from_total_per_pod",
    "from_utilization",
    "group",
    "hold_down",
    "hold_in_envelope",
    "limited",
    "limited_by_behavior",
    "normalized",
    "read_external",
    "read_object",
    "read_pods",
    "read_resource",
    "requested",
    "shortcut",
    "tolerances_of",
]
