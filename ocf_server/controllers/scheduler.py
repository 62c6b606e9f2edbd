"""Simulated scheduler: binds each pod to the node with the fewest pods among those that the filters accept.

The filters are those of `ocf.nodegroups`. There is no scoring, no preemption and no scheduler configuration.
"""

from collections.abc import Iterable
from typing import Final

from ocf.errors import OcfError
from ocf.objects import Manifest
from ocf.objects.conditions import find_condition
from ocf_server.controllers.actions import Action, Event, Outcome, Write, update_status
from ocf_server.controllers.ownership import is_deleted
from ocf_server.controllers.pods import is_finished
from ocf_server.controllers.view import ClusterView

__all__ = ["SCHEDULER_NAME", "is_unscheduled", "reconcile_scheduling"]

SCHEDULER_NAME: Final = "default-scheduler"


def is_unscheduled(pod: Manifest) -> bool:
    """Return whether this scheduler has to bind a pod."""
    spec = pod["spec"]
    if spec.get("nodeName") or spec.get("schedulingGates") or is_deleted(pod) or is_finished(pod):
        return False
    return bool(spec.get("schedulerName", SCHEDULER_NAME) == SCHEDULER_NAME)


def reconcile_scheduling(view: ClusterView, _cluster: Manifest) -> Outcome:
    """Bind all pods that wait for a node, by priority and age, or report why no node accepts them."""
    pods = view.objects("Pod")
    waiting = [pod for pod in pods if is_unscheduled(pod)]
    if not waiting:
        return Outcome()
    waiting.sort(key=_turn)
    placement = _Placement(view, pods)
    actions: list[Action] = []
    events: list[Event] = []
    for pod in waiting:
        node, problem = placement.choose(pod)
        if node:
            actions.append(_binding(pod, node))
        # Otherwise the write would be a change, and the change would start this again.
        elif not _is_reported(pod, problem):
            actions += update_status(pod, _unschedulable(view, pod, problem))
            events.append(Event(pod, "FailedScheduling", problem, warning=True))
    return Outcome(tuple(actions), events=tuple(events))


def _turn(pod: Manifest) -> tuple[int, str, int]:
    # As the plugin PrioritySort. The version decides between pods of one second, the resolution of timestamps.
    metadata = pod["metadata"]
    return -pod["spec"].get("priority", 0), metadata["creationTimestamp"], int(metadata["resourceVersion"])


def _binding(pod: Manifest, node: str) -> Action:
    metadata = pod["metadata"]
    name = f"{metadata['namespace']}/{metadata['name']}"
    identity = {key: metadata[key] for key in ("name", "namespace", "uid")}
    binding = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": identity,
        "target": {"kind": "Node", "name": node},
    }
    return Action(Write.BIND, binding, Event(pod, "Scheduled", f"Successfully assigned {name} to {node}"))


class _Placement:
    """The nodes with their pods, and with those that are bound to them on the way."""

    def __init__(self, view: ClusterView, pods: Iterable[Manifest]) -> None:
        # Imported on first use, because the import is slow.
        from ocf.nodegroups.predicates import ClusterState
        from ocf.nodegroups.snapshot import ClusterSnapshot

        snapshot = ClusterSnapshot.of(
            nodes=view.objects("Node"),
            pods=(each for each in pods if each["spec"].get("nodeName")),
            claims=view.objects("PersistentVolumeClaim"),
            volumes=view.objects("PersistentVolume"),
            storage_classes=view.objects("StorageClass"),
            namespaces=view.objects("Namespace"),
        )
        self._state = ClusterState(snapshot)
        self._counts = [len(snapshot.pods_on(node.name)) for node in self._state.nodes]

    def choose(self, manifest: Manifest) -> tuple[str, str]:
        """Place a pod; return the name of its node, or an empty name and the reason."""
        from ocf.nodegroups.predicates import count_reasons, explain
        from ocf.nodegroups.snapshot import SnapshotPod

        state = self._state
        if not state.nodes:
            return "", "no nodes available to schedule pods"
        try:
            shape = SnapshotPod.of(manifest).shape
        except OcfError as error:
            return "", str(error)
        fitting = [index for index in range(len(state.nodes)) if explain(shape, index, state) is None]
        if not fitting:
            reasons = ", ".join(f"{count} {reason}" for reason, count in count_reasons(shape, state).items())
            return "", f"0/{len(state.nodes)} nodes are available: {reasons}."
        # By name if equal, so that a run can be repeated.
        chosen = min(fitting, key=lambda index: (self._counts[index], state.nodes[index].name))
        state.place(shape, chosen)
        self._counts[chosen] += 1
        return state.nodes[chosen].name, ""


def _is_reported(pod: Manifest, problem: str) -> bool:
    known = find_condition(pod["status"].get("conditions"), "PodScheduled")
    return known is not None and known.get("message") == problem


def _unschedulable(view: ClusterView, pod: Manifest, problem: str) -> Manifest:
    conditions = pod["status"].get("conditions") or []
    known = find_condition(conditions, "PodScheduled")
    since = known["lastTransitionTime"] if known and known["status"] == "False" else view.timestamp
    new = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": problem}
    others = [each for each in conditions if each is not known]
    return {**pod["status"], "conditions": [*others, {**new, "lastTransitionTime": since}]}
