"""The live HPA controller: the algorithm of `ocf.autoscaling.algorithm` in a loop over a cluster.

It never shares a target with another controller. By default it runs its own kind, which the built-in controller does
not see. Where the built-in controller is switched off, it can run autoscaling/v2. In a dry run it only reads.

`plan` computes what one reconcile writes, and is pure. `parsed_autoscaler`, `target_index` and `status_writers` decide
whether an autoscaler may be run.
"""

from ocf.controllers.hpa.controller import HpaController, HpaControllerOptions
from ocf.controllers.hpa.dry_run import DryRunResult
from ocf.controllers.hpa.manifests import (
    NAME,
    TARGETS,
    HpaInstallation,
    ScalableResource,
    cluster_role,
    installation_manifests,
)
from ocf.controllers.hpa.metrics import HpaMonitor
from ocf.controllers.hpa.modes import BUILT_IN, GROUP, OWN, Mode
from ocf.controllers.hpa.parsed_autoscaler import ParsedAutoscaler, parse_autoscaler, to_autoscaling_v2
from ocf.controllers.hpa.plan import AutoscalerPhase, Plan, plan, reject
from ocf.controllers.hpa.settings import override_settings
from ocf.controllers.hpa.status_writer import FIELD_MANAGER, write_scale, write_status
from ocf.controllers.hpa.status_writers import StatusWrite, last_foreign_write
from ocf.controllers.hpa.target_index import TargetIndex, TargetUser

__all__ = [
    "BUILT_IN",
    "FIELD_MANAGER",
    "GROUP",
    "NAME",
    "OWN",
    "TARGETS",
    "AutoscalerPhase",
    "DryRunResult",
    "HpaController",
    "HpaControllerOptions",
    "HpaInstallation",
    "HpaMonitor",
    "Mode",
    "ParsedAutoscaler",
    "Plan",
    "ScalableResource",
    "StatusWrite",
    "TargetIndex",
    "TargetUser",
    "cluster_role",
    "installation_manifests",
    "last_foreign_write",
    "override_settings",
    "parse_autoscaler",
    "plan",
    "reject",
    "to_autoscaling_v2",
    "write_scale",
    "write_status",
]
