"""Controller of node groups: adds nodes for pods that do not fit, and removes nodes that are not needed.

It runs the decisions of `ocf.nodegroups` on a cluster and a provider of machines. `lifecycle` is the life of one node,
`plan` the decision about all groups, and `group_status` what is shown of it; all three are pure. `reconciler` takes
the steps and `carry_out` the decisions, in an order that makes a crash at any point harmless.
"""

from ocf.controllers.nodegroup.controller import NodeGroupController
from ocf.controllers.nodegroup.definitions import node_definition, node_group_definition
from ocf.controllers.nodegroup.manifests import NAME, cluster_role
from ocf.controllers.nodegroup.model import GROUP

__all__ = [
    "GROUP",
    "NAME",
    "NodeGroupController",
    "cluster_role",
    "node_definition",
    "node_group_definition",
]
