"""The algorithm of the HPA controller as pure functions, from snapshot and history to a decision.

`decide` is one whole sync. Its steps can be used on their own: grouping pods, adding up requests, the replicas for one
metric, choosing between metrics, stabilization, policies, history.
"""

from ocf.autoscaling.algorithm.decide import decide
from ocf.autoscaling.algorithm.decision import Decision
from ocf.autoscaling.algorithm.history import History, Recommendation
from ocf.autoscaling.algorithm.hpa_spec import Autoscaler, Behavior, Metric, MetricTarget, ScalingPolicy, ScalingRules
from ocf.autoscaling.algorithm.metric_proposals import choose_proposal, evaluate
from ocf.autoscaling.algorithm.metric_values import read_external, read_object, read_pods, read_resource
from ocf.autoscaling.algorithm.normalize import normalize
from ocf.autoscaling.algorithm.pod import Container, Pod, Readiness
from ocf.autoscaling.algorithm.pod_groups import group_pods
from ocf.autoscaling.algorithm.pod_requests import pod_requests
from ocf.autoscaling.algorithm.replica_calculator import (
    CalculatorInputs,
    Tolerances,
    from_average,
    from_total,
    from_total_per_pod,
    from_utilization,
)
from ocf.autoscaling.algorithm.rules import Rule
from ocf.autoscaling.algorithm.scaling_policies import Limit, apply_behavior_limits, apply_limits
from ocf.autoscaling.algorithm.settings import Settings
from ocf.autoscaling.algorithm.snapshot import Sample, Scale, Snapshot, Unavailable
from ocf.autoscaling.algorithm.stabilization import Stabilization, hold, stabilize, stabilize_with_behavior
from ocf.autoscaling.algorithm.status import Status
from ocf.autoscaling.algorithm.status_builder import HpaEvent

__all__ = [
    "Autoscaler",
    "Behavior",
    "CalculatorInputs",
    "Container",
    "Decision",
    "History",
    "HpaEvent",
    "Limit",
    "Metric",
    "MetricTarget",
    "Pod",
    "Readiness",
    "Recommendation",
    "Rule",
    "Sample",
    "Scale",
    "ScalingPolicy",
    "ScalingRules",
    "Settings",
    "Snapshot",
    "Stabilization",
    "Status",
    "Tolerances",
    "Unavailable",
    "apply_behavior_limits",
    "apply_limits",
    "choose_proposal",
    "decide",
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
]
