"""What would have to change so that a blocked node could be removed."""

from typing import Final

from ocf.nodegroups import Verdict
from ocf.nodegroups.scale_down import CandidateOutcome

__all__ = ["REMEDIES", "remedy"]

REMEDIES: Final = {
    "unknown": "correct the fields that are named in the problems of the plan",
    "pdb": "let the PodDisruptionBudget allow a disruption, and select each pod with one budget only",
    "local_storage": 'keep its data elsewhere, or annotate the pod with ocf.dev/safe-to-evict: "true"',
    "system_pods": "move the pod of the control plane to another node",
    "capacity": "add room on the other nodes, or request less",
    "affinity": "loosen the rules of the pod (node selector, affinity, spread), or add a node that meets them",
    "min_nodes": "lower spec.minNodes of the group",
    "cooldown": "wait until spec.scaleDownCooldown of the group is over, or shorten it",
    "protected": "remove the annotation or label that protects the node",
    "safe_to_evict": 'remove the annotation safe-to-evict: "false" of the pod',
    "bare_pod": 'run it by a controller such as a Deployment, or annotate it with ocf.dev/safe-to-evict: "true"',
    "do_not_disrupt": "remove the annotation do-not-disrupt of the pod or of the node",
    "unmanaged": "delete the Node yourself, or remove the label of the group from it",
}
"""What would have to change, by the name of the rule."""


def remedy(outcome: CandidateOutcome) -> str:
    """Return what would have to change so that a blocked node could go; empty for other nodes and rules of a user.

    Args:
        outcome: What was decided about the node.
    """
    return REMEDIES.get(outcome.reason, "") if outcome.verdict is Verdict.BLOCKED else ""
