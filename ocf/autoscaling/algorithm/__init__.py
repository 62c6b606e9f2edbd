"""The algorithm of the HPA controller as pure functions, from snapshot and history to a decision.

`decide` is one whole sync. Its steps can be used on their own: grouping pods, adding up requests, the replicas for one
metric, choosing between metrics, stabilization, policies, history.
"""

from ocf.autoscaling.algorithm.decide import decide, tolerances_of
from ocf.autoscaling.algorithm.decision import Decision, SyncError
from ocf.autoscaling.algorithm.early_exit import early_exit_rule
from ocf.autoscaling.algorithm.history import History, Recommendation, ScaleEvent
from ocf.autoscaling.algorithm.hpa_spec import Autoscaler, Behavior, Metric, MetricTarget, ScalingPolicy, ScalingRules
from ocf.autoscaling.algorithm.metric_proposals import Combination, Failure, MetricOutcome, choose_proposal, evaluate
from ocf.autoscaling.algorithm.metric_values import read_external, read_object, read_pods, read_resource
from ocf.autoscaling.algorithm.normalize import downscale_window, normalize
from ocf.autoscaling.algorithm.pod import Container, Pod, PodLevelResources, Readiness
from ocf.autoscaling.algorithm.pod_groups import PodGroups, group_pods
from ocf.autoscaling.algorithm.pod_requests import pod_requests
from ocf.autoscaling.algorithm.replica_calculator import (
    Calculation,
    CalculatorInputs,
    Tolerances,
    average_of_totals,
    from_average,
    from_total,
    from_total_per_pod,
    from_utilization,
    utilization_of_totals,
)
from ocf.autoscaling.algorithm.rules import Rule
from ocf.autoscaling.algorithm.scaling_policies import Allowance, Limit, apply_behavior_limits, apply_limits
from ocf.autoscaling.algorithm.settings import Settings
from ocf.autoscaling.algorithm.snapshot import (
    MetricValues,
    Sample,
    Scale,
    Snapshot,
    Unavailable,
)
from ocf.autoscaling.algorithm.stabilization import Stabilization, hold, stabilize, stabilize_with_behavior
from ocf.autoscaling.algorithm.status import HpaCondition, MetricStatus, Status
from ocf.autoscaling.algorithm.status_builder import HpaEvent
from ocf.autoscaling.algorithm.trace import Trace

__all__ = [
    "Allowance",
    "Autoscaler",
    "Behavior",
    "Calculation",
    "CalculatorInputs",
    "Combination",
    "Container",
    "Decision",
    "Failure",
    "History",
    "HpaCondition",
    "HpaEvent",
    "Limit",
    "Metric",
    "MetricOutcome",
    "MetricStatus",
    "MetricTarget",
    "MetricValues",
    "Pod",
    "PodGroups",
    "PodLevelResources",
    "Readiness",
    "Recommendation",
    "Rule",
    "Sample",
    "Scale",
    "ScaleEvent",
    "ScalingPolicy",
    "ScalingRules",
    "Settings",
    "Snapshot",
    "Stabilization",
    "Status",
    "SyncError",
    "Tolerances",
    "Trace",
    "Unavailable",
    "apply_behavior_limits",
    "apply_limits",
    "average_of_totals",
    "choose_proposal",
    "decide",
    "downscale_window",
    "early_exit_rule",
    "evaluate",
    "from_average",
    "from_total",
    "from_total_per_pod",
    "from_utilization",
    "group_pods",
    "hold",
    "normalize",
    "pod_requests",
    "read_external",
    "read_object",
    "read_pods",
    "read_resource",
    "stabilize",
    "stabilize_with_behavior",
    "tolerances_of",
    "utilization_of_totals",
]
