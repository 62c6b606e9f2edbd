"""The live HPA controller: the algorithm of `ocf.autoscaling.algorithm` in a loop over a cluster.

It never shares a target with another controller. By default it runs its own kind, which the built-in controller does
not see. Where the built-in controller is switched off, it can run autoscaling/v2. In a dry run it only reads.

`plan` computes what one reconcile writes, and is pure. `parsed_autoscaler`, `target_index` and `take_over` decide
whether an autoscaler may be run.
"""

from ocf.controllers.hpa.controller import HpaController, HpaControllerOptions
from ocf.controllers.hpa.manifests import NAME, TARGETS, cluster_role
from ocf.controllers.hpa.modes import GROUP, Mode
from ocf.controllers.hpa.plan import plan, reject

__all__ = [
    "GROUP",
    "NAME",
    "TARGETS",
    "HpaController",
    "HpaControllerOptions",
    "Mode",
    "cluster_role",
    "plan",
    "reject",
]
