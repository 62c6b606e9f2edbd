"""DaemonSet controller.

Source: pkg/controller/daemon of Kubernetes 1.36. A rolling update with `maxSurge` replaces one pod after another, as
with a `maxUnavailable` of 1.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from ocf.objects import Manifest
from ocf_server.controllers.actions import Action, Event, Outcome, create, delete, update_status
from ocf_server.controllers.ownership import claim, is_deleted
from ocf_server.controllers.pods import is_available, is_finished, is_ready, next_available, pod_from_template
from ocf_server.controllers.replicas import scaled_value
from ocf_server.controllers.revisions import REVISION_LABEL, revision_history, truncated
from ocf_server.controllers.view import ClusterView

__all__ = ["reconcile_daemon_set"]

_GENERATION_LABEL: Final = "pod-template-generation"
_GENERATION: Final = "deprecated.daemonset.template.generation"
# AddOrUpdateDaemonPodTolerations.
_TOLERATED: Final = (
    ("not-ready", "NoExecute"),
    ("unreachable", "NoExecute"),
    ("disk-pressure", "NoSchedule"),
    ("memory-pressure", "NoSchedule"),
    ("pid-pressure", "NoSchedule"),
    ("unschedulable", "NoSchedule"),
)


def reconcile_daemon_set(view: ClusterView, owner: Manifest) -> Outcome:
    """Create and delete pods so that each node that they fit has one; replace old ones by the update strategy."""
    pods, claims = claim(view, owner, "Pod")
    if claims:
        return Outcome(tuple(claims))
    if is_deleted(owner):
        return Outcome()
    history = revision_history(view, owner)
    if history.newest is None:
        return Outcome(history.actions)
    run = _Run(view, owner, history.newest, _by_node(pods), _wanted_nodes(view, owner))
    hashes = {*map(_hash, pods), _hash(history.newest)}
    used = [each["metadata"]["name"] for each in history.revisions if _hash(each) in hashes]
    # No pod is replaced while one is missing: the numbers of a rollout would be wrong.
    actions = tuple(run.manage()) or tuple(run.roll())
    seconds = owner["spec"].get("minReadySeconds", 0)
    writes = (*update_status(owner, run.status()), *actions, *truncated(owner, history, used))
    return Outcome(writes, next_available(pods, seconds, view.now))


def _hash(manifest: Manifest) -> str:
    return str((manifest["metadata"].get("labels") or {}).get(REVISION_LABEL, ""))


def _by_node(pods: Iterable[Manifest]) -> dict[str, list[Manifest]]:
    """Return the pods of each node, oldest first."""
    found: dict[str, list[Manifest]] = {}
    for pod in sorted(pods, key=lambda each: (each["metadata"]["creationTimestamp"], each["metadata"]["name"])):
        found.setdefault(_target(pod), []).append(pod)
    return found


def _target(pod: Manifest) -> str:
    """Return the node of a pod, or the one that it is made for."""
    if pod["spec"].get("nodeName"):
        return str(pod["spec"]["nodeName"])
    affinity = (pod["spec"].get("affinity") or {}).get("nodeAffinity") or {}
    required: Manifest = affinity.get("requiredDuringSchedulingIgnoredDuringExecution") or {}
    names = [
        name
        for term in required.get("nodeSelectorTerms") or ()
        for field in term.get("matchFields") or ()
        for name in field.get("values") or ()
    ]
    return str(names[0]) if names else ""


def _wanted_nodes(view: ClusterView, owner: Manifest) -> Mapping[str, bool]:
    """Return the nodes that may run a pod, each with whether a pod is also created there.

    A pod that exists stays on a node with an untolerated taint of the effect NoSchedule, but none is created.
    """
    # Imported on first use, because the import is slow.
    from ocf.nodegroups.predicates.static import matches_node_affinity
    from ocf.nodegroups.snapshot import DaemonSet, Node, untolerated

    shape, fixed = DaemonSet.of(owner).shape, owner["spec"]["template"]["spec"].get("nodeName")
    wanted = {}
    for node in map(Node.of, view.objects("Node")):
        if (fixed and fixed != node.name) or not matches_node_affinity(shape, node):
            continue
        taints = [taint for taint in node.taints if taint.effect == "NoExecute"]
        if untolerated(taints, shape.tolerations) is None:
            wanted[node.name] = untolerated(node.taints, shape.tolerations) is None
    return wanted


@dataclass(frozen=True, slots=True)
class _Run:
    """One reconcile of a DaemonSet."""

    view: ClusterView
    owner: Manifest
    revision: Manifest
    by_node: Mapping[str, list[Manifest]]
    wanted: Mapping[str, bool]

    def manage(self) -> Iterator[Action]:
        """Yield the creates of missing pods and the deletes of surplus ones."""
        for node in sorted({*self.wanted, *self.by_node}):
            pods = self.by_node.get(node, [])
            if not pods:
                if self.wanted[node]:
                    yield self._create(node)
                continue
            kept = False
            for pod in pods:
                if is_deleted(pod):
                    continue
                if node not in self.wanted or is_finished(pod) or kept:
                    yield self._delete(pod)
                else:
                    kept = True

    def roll(self) -> Iterator[Action]:
        """Yield the deletes of the old pods that a rolling update replaces now."""
        strategy = self.owner["spec"].get("updateStrategy") or {}
        if strategy.get("type") == "OnDelete":
            return
        unavailable, candidates = 0, []
        for node in sorted(self.by_node):
            pod = self.by_node[node][0]
            if not self._is_available(pod):
                unavailable += 1
                if not self._is_updated(pod) and not is_deleted(pod):
                    yield self._delete(pod)
            # Only these count against `maxUnavailable`: the old pods that are unavailable are replaced at once, as they
            # serve no requests.
            elif not self._is_updated(pod):
                candidates.append(pod)
        rolling = strategy.get("rollingUpdate") or {}
        most = scaled_value(rolling.get("maxUnavailable", 1), sum(self.wanted.values()), round_up=True) or 1
        for pod in candidates[: max(0, most - unavailable)]:
            yield self._delete(pod)

    def status(self) -> Manifest:
        """Return the status."""
        desired = {node for node, runs in self.wanted.items() if runs}
        placed = {node: pods[0] for node, pods in self.by_node.items()}
        scheduled = [placed[node] for node in sorted(desired) if node in placed]
        available = sum(map(self._is_available, scheduled))
        counts = {
            "updatedNumberScheduled": sum(map(self._is_updated, scheduled)),
            "numberAvailable": available,
            "numberUnavailable": len(desired) - available,
        }
        collisions = self.owner["status"].get("collisionCount")
        return {
            **({"collisionCount": collisions} if collisions else {}),
            "currentNumberScheduled": len(scheduled),
            "numberMisscheduled": len(placed.keys() - desired),
            "desiredNumberScheduled": len(desired),
            "numberReady": sum(map(is_ready, scheduled)),
            "observedGeneration": self.owner["metadata"]["generation"],
            **{name: count for name, count in counts.items() if count},
        }

    def _is_updated(self, pod: Manifest) -> bool:
        return _hash(pod) == _hash(self.revision)

    def _is_available(self, pod: Manifest) -> bool:
        seconds = self.owner["spec"].get("minReadySeconds", 0)
        return not is_deleted(pod) and is_available(pod, seconds, self.view.now)

    def _create(self, node: str) -> Action:
        annotations = self.owner["metadata"].get("annotations") or {}
        generation = annotations.get(_GENERATION, str(self.revision["revision"]))
        labels = {_GENERATION_LABEL: generation, REVISION_LABEL: _hash(self.revision)}
        pod = pod_from_template(self.owner, self.owner["spec"]["template"], labels)
        spec: dict[str, Any] = pod["spec"]
        affinity = spec.get("affinity") or {}
        fields = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]}
        # The node was chosen by the terms of the template, so the name of the node replaces them.
        required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [fields]}}
        spec["affinity"] = {**affinity, "nodeAffinity": {**(affinity.get("nodeAffinity") or {}), **required}}
        spec["tolerations"] = _tolerations(spec)
        done = Event(self.owner, "SuccessfulCreate", "Created pod: {name}")
        failed = Event(self.owner, "FailedCreate", "Error creating: {error}", warning=True)
        return create(pod, done, failed)

    def _delete(self, pod: Manifest) -> Action:
        return delete(pod, Event(self.owner, "SuccessfulDelete", "Deleted pod: {name}"))


def _tolerations(spec: Manifest) -> list[Manifest]:
    tolerated = [*_TOLERATED, *([("network-unavailable", "NoSchedule")] if spec.get("hostNetwork") else [])]
    added = [{"key": f"node.kubernetes.io/{key}", "operator": "Exists", "effect": effect} for key, effect in tolerated]
    given = spec.get("tolerations") or []
    return [*given, *(each for each in added if each not in given)]
