"""A plan as text and as JSON: what each group does, and why pods and nodes stay as they are."""

from collections.abc import Iterator
from typing import Any, Final

from ocf.controllers.nodegroup.objects import GroupObject, NodeObject
from ocf.controllers.nodegroup.observation import ClusterView
from ocf.controllers.nodegroup.plan import NodeGroupPlan
from ocf.nodegroups.scale_down import CandidateOutcome, Verdict

__all__ = ["NEW_NODE", "REMEDIES", "outcome_text", "plan_json", "plan_lines", "pod_lines", "pod_texts"]

NEW_NODE: Final = " (a new node)"
"""The end of the text of a pod that goes to a node that the plan adds."""

REMEDIES: Final = {
    "unknown": "correct the fields that are named in the problems of the plan",
    "pdb": "let the PodDisruptionBudget allow a disruption, and select each pod with one budget only",
    "local_storage": 'keep its data elsewhere, or annotate the pod with ocf.dev/safe-to-evict: "true"',
    "system_pods": 'move the pod to another node, or annotate it with ocf.dev/safe-to-evict: "true"',
    "capacity": "add room on the other nodes, or request less",
    "affinity": "loosen the rules of the pod (node selector, affinity, spread), or add a node that meets them",
    "min_nodes": "lower spec.minNodes of the group",
    "cooldown": "wait until spec.scaleDownCooldown of the group is over, or shorten it",
    "protected": "remove the annotation or label that protects the node",
    "safe_to_evict": 'remove the annotation safe-to-evict: "false" of the pod',
    "bare_pod": 'run it by a controller such as a Deployment, or annotate it with ocf.dev/safe-to-evict: "true"',
    "do_not_disrupt": "remove the annotation do-not-disrupt of the pod or of the node",
    "drain": "wait until then, or delete its VPSieNode to drain it at once",
    "undeletable": "wait for the end of the rollout at the provider, or end the pause",
    "unmanaged": "delete the Node yourself, or remove the label of the group from it",
}
"""What would have to change, by the name of the rule."""


def plan_lines(view: ClusterView, plan: NodeGroupPlan, *, explain: bool = False) -> Iterator[str]:
    """Yield a plan as lines of text."""
    for name, group in view.groups.items():
        decided = plan.groups.get(name)
        if decided is None:
            why = "it is being deleted" if group.ending else _problems(group)
            yield f"{name}: left alone: {why}"
            continue
        up = decided.scale_up
        yield f"{name}: {up.current} nodes, {plan.ready(name)} ready, {up.desired} desired: {decided.text}"
    if not view.groups:
        yield "there are no node groups"
    for name, node in view.nodes.items():
        if node.problems:
            yield f"VPSieNode {name}: left alone: {_problems(node)}"
    yield from plan.decision.problems
    if explain:
        yield from pod_lines(plan)
        yield from (f"node {each.node}: {outcome_text(each)}" for each in plan.decision.scale_down.outcomes)
        if plan.decision.scale_down.stopped:
            yield f"no node is removed: {plan.decision.scale_down.stopped}"


def plan_json(view: ClusterView, plan: NodeGroupPlan) -> dict[str, Any]:
    """Return a plan as JSON."""
    return {
        "groups": [
            {
                "name": name,
                "current": decided.scale_up.current,
                "desired": decided.scale_up.desired,
                "ready": plan.ready(name),
                "decision": decided.outcome,
                "reason": decided.reason,
                "text": decided.text,
                "add": [
                    {"instanceType": each.template.instance_type, "zone": each.template.zone} for each in decided.add
                ],
                "remove": [each.node for each in decided.removals],
            }
            for name, decided in plan.groups.items()
        ],
        "leftAlone": [
            {"name": name, "problems": list(map(str, group.problems))}
            for name, group in view.groups.items()
            if name not in plan.groups
        ],
        "nodesLeftAlone": [
            {"name": name, "problems": list(map(str, node.problems))}
            for name, node in view.nodes.items()
            if node.problems
        ],
        "placements": dict(sorted(_placements(plan).items())),
        "unplaced": [
            {"pods": [pod.key for pod in each.pods], "reason": each.reason, "never": each.never}
            for each in plan.decision.scale_up.unplaced
        ],
        "nodes": [
            {
                "name": each.node,
                "group": each.group,
                "verdict": each.verdict.value,
                "reason": each.reason,
                "message": each.message,
                "pod": each.pod,
                "remedy": _remedy(each),
            }
            for each in plan.decision.scale_down.outcomes
        ],
        "stopped": plan.decision.scale_down.stopped,
        "problems": list(plan.decision.problems),
    }


def pod_lines(plan: NodeGroupPlan) -> Iterator[str]:
    """Yield for each pending pod where it goes, or why it goes nowhere."""
    return (f"pod {key}: {text}" for key, text in pod_texts(plan))


def pod_texts(plan: NodeGroupPlan) -> Iterator[tuple[str, str]]:
    """Yield the key of each pending pod, and where it goes, or why it goes nowhere."""
    for key, node in sorted(_placements(plan).items()):
        new = "" if node in plan.snapshot.nodes else NEW_NODE
        yield key, f"goes to {node}{new}"
    for each in plan.decision.scale_up.unplaced:
        for pod in each.pods:
            yield pod.key, f"{'never fits' if each.never else 'has no place'}: {each.reason}"


def _placements(plan: NodeGroupPlan) -> dict[str, str]:
    return {**plan.decision.nominated, **plan.decision.scale_up.placements}


def outcome_text(outcome: CandidateOutcome) -> str:
    """Return what happens to a node, why, and what would let it go."""
    message = f": {outcome.message}" if outcome.message else ""
    pod = f" ({outcome.pod})" if outcome.pod else ""
    found = _remedy(outcome)
    change = f"; to let it go: {found}" if found else ""
    return f"{outcome.verdict.value}: {outcome.reason}{message}{pod}{change}"


def _problems(found: GroupObject | NodeObject) -> str:
    return "; ".join(map(str, found.problems))


def _remedy(outcome: CandidateOutcome) -> str:
    """Return what would have to change so that a blocked node could go; empty for other nodes and rules of a user."""
    return REMEDIES.get(outcome.reason, "") if outcome.verdict is Verdict.BLOCKED else ""
