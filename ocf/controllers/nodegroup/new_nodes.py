"""New nodes of a group: their specs, with the pods that their decision placed."""

from typing import Final

from ocf.controllers.nodegroup.group_decision import GroupDecision
from ocf.controllers.nodegroup.model import NodeGroupSpec
from ocf.controllers.nodegroup.node_model import PlacedPod, VPSieNodeSpec

__all__ = ["new_node_specs"]

# As the definition allows.
_MOST_PODS: Final = 1000


def new_node_specs(group: str, spec: NodeGroupSpec, decided: GroupDecision) -> list[VPSieNodeSpec]:
    """Return the specs of the nodes that a decision adds.

    Each carries the pods for which it is requested, so that the decision holds while it starts. The first one also
    carries the pods for which the decision found a place on nodes that there are: without them, the next decision could
    place these pods in another order, and need one more node.

    Args:
        group: The name of the group.
        spec: Its spec.
        decided: The decision about it.
    """
    own: dict[str, list[str]] = {new.name: [] for new in decided.add}
    others: list[PlacedPod] = []
    for pod, node in sorted(decided.placements.items()):
        if node in own:
            own[node].append(pod)
        elif node in decided.known_nodes:
            others.append(PlacedPod(pod=pod, node=node))
    return [
        VPSieNodeSpec.model_validate(
            {
                "nodeGroupName": group,
                "instanceType": new.template.instance_type,
                "datacenterID": new.template.zone or spec.datacenter_id,
                "pods": own[new.name][:_MOST_PODS] or None,
                "placedPods": (others[:_MOST_PODS] or None) if number == 0 else None,
            }
        )
        for number, new in enumerate(decided.add)
    ]
