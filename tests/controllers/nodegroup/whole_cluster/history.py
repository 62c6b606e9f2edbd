"""Invariants over the history of a cluster with node groups."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final, TypeAlias

from ocf.objects import Manifest
from ocf.objects.conditions import is_condition_true
from ocf.objects.owner_references import controller_of
from ocf.objects.selectors import LabelSelector
from tests.controllers.change_history import Change, in_order

__all__ = ["KINDS", "OURS", "State", "is_serving", "lines", "violations"]

API: Final = "autoscaling.ocf.dev/v1alpha1"
OURS: Final = (("autoscaling/v2", "HorizontalPodAutoscaler"), (API, "NodeGroup"), (API, "VPSieNode"))
KINDS: Final = (
    ("v1", "Node"),
    ("v1", "Pod"),
    ("apps/v1", "Deployment"),
    ("policy/v1", "PodDisruptionBudget"),
    *OURS,
)
EVICTED: Final = "EvictionByEvictionAPI"

State: TypeAlias = dict[tuple[str, str], Manifest]
"""The objects at one resource version, by kind and uid."""


def lines(changes: Iterable[Change]) -> list[str]:
    """Return a line for each change: what happened, and what the invariants and the controllers depend on."""
    return [_line(change) for change in in_order(changes)]


def _line(change: Change) -> str:
    found = change.object
    spec, status = found.get("spec") or {}, found.get("status") or {}
    ready = is_condition_true(status.get("conditions"), "Ready")
    facts = {
        "node": spec.get("nodeName"),
        "replicas": spec.get("replicas"),
        "phase": status.get("phase"),
        "drain": (status.get("drain") or {}).get("phase"),
        "unneeded": [each["name"] for each in status.get("unneeded") or ()],
        "blocked": [f"{each['name']}: {each['reason']}" for each in status.get("blocked") or ()],
        "decision": status.get("lastDecision"),
        "ready": "yes" if ready else status.get("readyReplicas"),
        "unschedulable": spec.get("unschedulable"),
    }
    text = ", ".join(f"{name} {value}" for name, value in facts.items() if value)
    what = "deleted" if change.deleted else "ending" if "deletionTimestamp" in found["metadata"] else "stored"
    return f"{change.version} {found['kind']} {_name(found)} {what}: {text}"


Invariant: TypeAlias = Callable[[State, Change, State], Iterator[str]]


def violations(changes: Iterable[Change], *, failed: Sequence[str] = ()) -> list[str]:
    """Return what must never happen, and did.

    Args:
        changes: The changes, in any order.
        failed: Names of the Nodes that failed: what ran on them is lost with them.
    """
    found: list[str] = []
    state: State = {}
    for change in in_order(changes):
        after = {**state, change.id: change.object}
        if change.deleted:
            del after[change.id]
        for invariant in (
            _evictions_keep_budgets,
            _nodes_are_empty(failed),
            _nodes_have_objects,
            _groups_keep_their_bounds,
        ):
            found += [f"{change.version}: {problem}" for problem in invariant(state, change, after)]
        state = after
    return found


def _evictions_keep_budgets(before: State, change: Change, after: State) -> Iterator[str]:
    """An eviction leaves as many healthy pods as each disruption budget demands."""
    pod, known = change.object, before.get(change.id)
    if not _is_evicted(pod) or (known is not None and _is_evicted(known)):
        return
    for budget in _of(after, "PodDisruptionBudget"):
        if not _selects(budget, pod):
            continue
        healthy = sum(is_serving(each) for each in _of(after, "Pod") if _selects(budget, each))
        if healthy < budget["spec"]["minAvailable"]:
            yield f"the eviction of {_name(pod)} left {healthy} healthy pods of {budget['spec']['minAvailable']}"


def _nodes_are_empty(failed: Sequence[str]) -> Invariant:
    def check(_: State, change: Change, after: State) -> Iterator[str]:
        """A Node is deleted once its pods have left, unless it failed."""
        name = _name(change.object)
        if change.object["kind"] != "Node" or not change.deleted or name in failed:
            return
        for pod in _of(after, "Pod"):
            owner = controller_of(pod)
            is_local = owner is not None and owner.kind in ("DaemonSet", "Node")
            if pod["spec"].get("nodeName") == name and not is_local:
                yield f"Node {name} was deleted with pod {_name(pod)} on it"

    return check


def _nodes_have_objects(before: State, change: Change, after: State) -> Iterator[str]:
    """A Node appears after its VPSieNode, and disappears before it."""
    kind, name = change.object["kind"], _name(change.object)
    if kind == "Node" and change.id not in before and name not in map(_name, _of(after, "VPSieNode")):
        yield f"Node {name} was created without VPSieNode"
    if kind == "VPSieNode" and change.deleted and name in map(_name, _of(after, "Node")):
        yield f"VPSieNode {name} was removed before its Node"


def _groups_keep_their_bounds(before: State, change: Change, after: State) -> Iterator[str]:
    """A node is added only below the maximum of its group; nodes that leave do not count."""
    if change.object["kind"] != "VPSieNode" or change.id in before:
        return
    for group in _of(after, "NodeGroup"):
        staying = sum(_stays(each) for each in _of(after, "VPSieNode"))
        if staying > group["spec"]["maxNodes"]:
            yield f"VPSieNode {_name(change.object)} is number {staying} of {group['spec']['maxNodes']}"


def _of(state: State, kind: str) -> list[Manifest]:
    return [each for (its_kind, _), each in state.items() if its_kind == kind]


def _name(manifest: Manifest) -> str:
    return str(manifest["metadata"]["name"])


def _selects(budget: Manifest, pod: Manifest) -> bool:
    same = budget["metadata"]["namespace"] == pod["metadata"]["namespace"]
    return same and LabelSelector.of(budget["spec"]["selector"]).matches(pod["metadata"].get("labels") or {})


def is_serving(pod: Manifest) -> bool:
    """Return whether a pod is ready and is not being deleted."""
    ready = is_condition_true((pod.get("status") or {}).get("conditions"), "Ready")
    return ready and "deletionTimestamp" not in pod["metadata"]


def _is_evicted(manifest: Manifest) -> bool:
    conditions = (manifest.get("status") or {}).get("conditions") or ()
    reasons = {each.get("reason") for each in conditions if each.get("type") == "DisruptionTarget"}
    return manifest["kind"] == "Pod" and EVICTED in reasons and "deletionTimestamp" in manifest["metadata"]


def _stays(node: Manifest) -> bool:
    status = node.get("status") or {}
    leaving = status.get("phase") in ("Failed", "Terminating") or "drain" in status
    return not leaving and "deletionTimestamp" not in node["metadata"]
