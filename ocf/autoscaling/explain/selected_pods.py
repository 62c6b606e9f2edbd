"""Pods that the selector matches and that are not those of the target at rest, and what they do to the proposal.

The controller counts by labels: pods of another workload, both generations of a rollout, and pods that have ended count
as long as the selector matches them. What they change is computed: the algorithm runs once more without them.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Final, NamedTuple

from ocf.autoscaling.algorithm import Autoscaler, Decision, History, Pod, Scale, Settings, Snapshot, decide
from ocf.autoscaling.algorithm.history import ZERO_TIME
from ocf.autoscaling.algorithm.pod_groups import count_ready_pods
from ocf.autoscaling.algorithm.replica_calculator import Calculation
from ocf.autoscaling.explain.formatting import listed, replica_count

__all__ = ["OddPods", "odd_pods", "wanted_by", "without_pods", "workload_of"]

_HASHES: Final = {"pod-template-hash": "Deployment", "rollouts-pod-template-hash": "Rollout"}
"""The label with the hash in the name of a pod's ReplicaSet, and what the ReplicaSet belongs to."""
_BUILT_IN: Final = frozenset({"Deployment", "StatefulSet", "ReplicaSet", "ReplicationController"})
# Their pods belong to a ReplicaSet with a suffix.
_ROLLING: Final = frozenset({"Deployment", "Rollout"})
_ENDED: Final = ("Succeeded",)


class OddPods(NamedTuple):
    """Pods that are not those of the target at rest.

    Args:
        text: A clause that says whose pods they are.
        pods: Their names; empty if only their number is known.
        wanted: The proposal of the metrics with them; None if the metrics make none.
        without: The proposal without them; None if the metrics make none, or if it is not known which pods they are.
        matters: Whether they change the proposal.
    """

    text: str
    pods: tuple[str, ...]
    wanted: int | None
    without: int | None
    matters: bool


def odd_pods(decision: Decision, history: History, settings: Settings) -> Iterator[OddPods]:
    """Find the pods that the selector matches and that are not those of the target at rest.

    Args:
        history: The history that it used.
        settings: The controller's settings.

    Yields:
        One per kind: pods of other workloads, pods that have ended, and pods beyond the replicas.
    """
    snapshot = decision.snapshot
    scale = snapshot.scale
    if not isinstance(scale, Scale) or not snapshot.pods:
        return
    foreign = _foreign(snapshot.autoscaler, snapshot.pods)
    matched = len(snapshot.pods)
    strangers = tuple(each.name for pods in foreign.values() for each in pods)
    if strangers:
        owners = " and ".join(
            f"{workload} ({listed([each.name for each in pods])})" for workload, pods in foreign.items()
        )
        text = (
            f"{_of(len(strangers), matched)} that the selector matches {_belong(len(strangers))} to {owners}, not to"
            f" {snapshot.autoscaler.kind} {snapshot.autoscaler.target}"
        )
        yield _effect(decision, strangers, text, history, settings)
    own = [each for each in snapshot.pods if each.name not in strangers]
    ended = tuple(each.name for each in own if each.phase in _ENDED)
    if ended:
        has, counts = ("has", "counts") if len(ended) == 1 else ("have", "count")
        text = f"{_of(len(ended), matched)} {has} ended (phase Succeeded) and still {counts} ({listed(ended)})"
        yield _effect(decision, ended, text, history, settings)
    living = [each for each in own if each.phase not in {"Failed", *_ENDED} and not each.deleted]
    # A replica of another kind may be several pods.
    if strangers or len(living) <= scale.replicas or snapshot.autoscaler.kind not in {*_BUILT_IN, *_ROLLING}:
        return
    yield from _surplus(decision, living, scale, history, settings)


def _surplus(
    decision: Decision, living: Sequence[Pod], scale: Scale, history: History, settings: Settings
) -> Iterator[OddPods]:
    """Yield the pods beyond the replicas: of a rollout, or of owners that are not known."""
    autoscaler = decision.snapshot.autoscaler
    generations: dict[str, list[Pod]] = {}
    for each in living:
        generations.setdefault(each.owner, []).append(each)
    counted = f"{len(living)} pods count for {replica_count(scale.replicas)}"
    if len(generations) > 1 and all(each.startswith("ReplicaSet/") for each in generations):
        orphans = _orphans(generations, scale)
        if orphans:
            names = tuple(each.name for owner in orphans for each in generations[owner])
            sets = " and ".join(each.replace("/", " ") for each in orphans)
            text = (
                f"{_of(len(names), len(living))} that the selector matches {_belong(len(names))} to {sets}"
                f" ({listed(names)}), but {autoscaler.kind} {autoscaler.target} has only the other {scale.observed}:"
                " their ReplicaSet was deleted without them, unless that status is outdated"
            )
            yield _effect(decision, names, text, history, settings)
            return
        # What remains after the rollout, or after it is given up: a generation that never becomes ready does not.
        ordered = sorted(generations, key=lambda owner: _rank(generations[owner]), reverse=True)
        sets = " and ".join(f"{len(generations[each])} of {each.replace('/', ' ')}" for each in ordered)
        order = [each for owner in ordered for each in generations[owner]]
        surplus = tuple(each.name for each in order[scale.replicas :])
        left_out = f"{len(surplus)} more than the replicas ({listed(surplus)})"
        text = f"{counted}, because a rollout is in progress: {sets}, {left_out}"
        yield _effect(decision, surplus, text, history, settings)
        return
    if len(living) <= scale.observed:
        created = f"{autoscaler.kind} {autoscaler.target} has created {scale.observed}"
        text = f"{counted} ({created}), as during a rollout or just after a scale-down"
    else:
        others = len(living) - max(scale.replicas, scale.observed)
        text = (
            f"the selector matches {len(living)} pods, but {autoscaler.kind} {autoscaler.target} has {scale.observed}:"
            f" {others} {_belong(others)} to another workload with the same labels, unless that status is outdated"
        )
    yield OddPods(text, (), wanted_by(decision), None, _counts_too_many(decision, scale))


def _orphans(generations: Mapping[str, Sequence[Pod]], scale: Scale) -> list[str]:
    """Return the owners whose pods the target does not count: all but those with as many pods as it has created."""
    surplus = sum(map(len, generations.values())) - scale.observed
    ordered = sorted(generations, key=lambda owner: _rank(generations[owner]))
    # The fewest owners for each number of pods: there may be too many ReplicaSets to try every combination.
    fewest: dict[int, list[str]] = {0: []}
    for owner in ordered:
        for pods, owners in [*fewest.items()]:
            more = pods + len(generations[owner])
            if more <= surplus and len(owners) + 1 < len(fewest.get(more, ordered)):
                fewest[more] = [*owners, owner]
    return fewest.get(surplus, [])


def _rank(pods: Sequence[Pod]) -> tuple[bool, datetime]:
    """Return whether a generation has pods that are ready, and when its newest one started."""
    return count_ready_pods(pods) > 0, max(each.started or ZERO_TIME for each in pods)


def _counts_too_many(decision: Decision, scale: Scale) -> bool:
    """Return whether the chosen metric multiplies by more pods than there are replicas."""
    chosen = decision.trace.chosen
    result = None if chosen is None else chosen.result
    if not isinstance(result, Calculation):
        return False
    counted = result.counted or result.ready or (0 if result.groups is None else result.groups.ready)
    return counted > scale.replicas


def _effect(decision: Decision, names: tuple[str, ...], text: str, history: History, settings: Settings) -> OddPods:
    """Run the algorithm without some pods, and compare."""
    remaining = without_pods(decision.snapshot, names)
    before = wanted_by(decision)
    if not remaining.pods:
        return OddPods(text, names, before, None, matters=False)
    after = wanted_by(decide(remaining, history, settings=settings, now=decision.trace.now))
    return OddPods(text, names, before, after, matters=after is not None and before != after)


def without_pods(snapshot: Snapshot, names: Iterable[str]) -> Snapshot:
    """Return a snapshot without some pods and their samples."""
    dropped = set(names)
    values = [
        {name: sample for name, sample in each.items() if name not in dropped} if isinstance(each, Mapping) else each
        for each in snapshot.metric_values
    ]
    pods = tuple(each for each in snapshot.pods if each.name not in dropped)
    return replace(snapshot, pods=pods, metric_values=tuple(values))


def wanted_by(decision: Decision) -> int | None:
    """Return the proposal of the metrics; None if they make none."""
    found = decision.trace.combination
    return None if found is None else found.replicas


def _foreign(autoscaler: Autoscaler, pods: Sequence[Pod]) -> dict[str, list[Pod]]:
    """Return the pods of other workloads by workload."""
    # Pods written by hand have no owners, and of a kind of another controller it is not known what it creates.
    if autoscaler.kind not in {*_BUILT_IN, *_ROLLING} or not any(each.owner for each in pods):
        return {}
    target = (autoscaler.kind, autoscaler.target)
    found: dict[str, list[Pod]] = {}
    for each in pods:
        kind, name = workload_of(each, autoscaler.kind)
        if (kind, name) != target:
            found.setdefault(f"{kind} {name}" if kind else "no workload", []).append(each)
    return found


def workload_of(pod: Pod, rolling: str = "Deployment") -> tuple[str, str]:
    """Return kind and name of the workload of a pod: that of its ReplicaSet where it has one.

    Args:
        rolling: The kind that a ReplicaSet with a hash in its name belongs to, if it is not a ReplicaSet's own.
    """
    kind, _, name = pod.owner.partition("/")
    if kind != "ReplicaSet" or rolling == "ReplicaSet":
        return kind, name
    for label, above in _HASHES.items():
        if label in pod.labels:
            return above, name.removesuffix(f"-{pod.labels[label]}")
    return rolling if rolling in _ROLLING else "Deployment", name.rpartition("-")[0] or name


def _of(count: int, matched: int) -> str:
    return f"{count} of the {matched} pods" if matched > 1 else "the only pod"


def _belong(count: int) -> str:
    return "belongs" if count == 1 else "belong"
