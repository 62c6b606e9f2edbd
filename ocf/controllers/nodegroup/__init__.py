"""Controller of node groups: adds nodes for pods that do not fit, and removes nodes that are not needed.

It runs the decisions of `ocf.nodegroups` on a cluster and a provider of machines. `lifecycle` is the life of one node,
`plan` the decision about all groups, and `group_status` what is shown of it; all three are pure. `reconciler` takes
the steps and `carry_out` the decisions, in an order that makes a crash at any point harmless.
"""

from ocf.controllers.nodegroup.controller import NodeGroupController
from ocf.controllers.nodegroup.definitions import node_definition, node_group_definition
from ocf.controllers.nodegroup.manifests import NAME, NodeGroupInstallation, cluster_role, installation_manifests
from ocf.controllers.nodegroup.metrics import NodeGroupMonitor
from ocf.controllers.nodegroup.model import GROUP
from ocf.controllers.nodegroup.observation import ClusterView, read_cluster, view_of
from ocf.controllers.nodegroup.options import NodeGroupControllerOptions
from ocf.controllers.nodegroup.plan import NodeGroupPlan, make_plan

__all__ = [
    "GROUP",
    "NAME",
    "ClusterView",
    "NodeGroupController",
    "NodeGroupControllerOptions",
    "NodeGroupInstallation",
    "NodeGroupMonitor",
    "NodeGroupPlan",
    "cluster_role",
    "installation_manifests",
    "make_plan",
    "node_definition",
    "node_group_definition",
    "read_cluster",
    "view_of",
]
