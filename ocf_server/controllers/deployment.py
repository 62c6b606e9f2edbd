"""Deployment controller: which ReplicaSets to create, scale and delete.

Source: pkg/controller/deployment of Kubernetes 1.36.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from ocf.objects import Manifest, copy_json
from ocf_server.controllers.actions import Action, Event, Outcome, create, delete, update, update_status
from ocf_server.controllers.deployment_status import (
    is_complete,
    paused_conditions,
    rollout_status,
    scaling_status,
    with_progress,
)
from ocf_server.controllers.ownership import claim, controlled, controller_reference, is_deleted
from ocf_server.controllers.pods import is_finished
from ocf_server.controllers.replica_sets import (
    DESIRED,
    REVISION,
    ReplicaSets,
    revision_of,
    spec_replicas,
    with_copied_annotations,
    with_scale_annotations,
)
from ocf_server.controllers.replicas import template_hash
from ocf_server.controllers.rollout import new_replicas, old_scales, proportional_scales
from ocf_server.controllers.view import ClusterView

__all__ = ["reconcile_deployment"]

_HASH: Final = "pod-template-hash"
# MaxInt32 stands for no limit (HasRevisionHistoryLimit).
_UNLIMITED: Final = 2**31 - 1


def reconcile_deployment(view: ClusterView, owner: Manifest) -> Outcome:
    """Roll out the pod template of a Deployment, or scale its ReplicaSets."""
    found, claims = claim(view, owner, "ReplicaSet")
    if claims:
        return Outcome(tuple(claims))
    sets = ReplicaSets.of(owner, found)
    conditions = None if is_deleted(owner) else paused_conditions(view, owner)
    if conditions is not None:
        # The next reconcile, which this write starts, goes on from here.
        return Outcome(tuple(update_status(owner, {**owner["status"], "conditions": conditions})))
    return _reconcile(view, owner, sets)


def _reconcile(view: ClusterView, owner: Manifest, sets: ReplicaSets) -> Outcome:
    if is_deleted(owner):
        return Outcome(tuple(update_status(owner, scaling_status(view, owner, sets))))
    rollout = _Rollout(view, owner, sets)
    if owner["spec"].get("paused") or _is_scaling(owner, sets):
        return rollout.scale()
    if owner["spec"]["strategy"].get("type") == "Recreate":
        return rollout.recreate()
    return rollout.roll()


def _is_scaling(owner: Manifest, sets: ReplicaSets) -> bool:
    """Return whether the number of replicas has changed since the ReplicaSets were scaled."""
    desired = str(spec_replicas(owner))
    annotated = [(each["metadata"].get("annotations") or {}).get(DESIRED) for each in sets.active]
    return any(each is not None and each != desired for each in annotated)


@dataclass(frozen=True, slots=True)
class _Rollout:
    """One reconcile of a Deployment."""

    view: ClusterView
    owner: Manifest
    sets: ReplicaSets

    def roll(self) -> Outcome:
        """Reconcile by rolling update."""
        synced = self._synced()
        if synced:
            return Outcome(tuple(synced))
        new = self.sets.new
        assert new is not None  # noqa: S101 (created before)
        count = new_replicas(self.owner, self.sets)
        # One direction in each reconcile: the scale-down needs the size that the scale-up has written.
        scaled = self._scaled([(new, count)])
        if not scaled:
            scaled = self._scaled(old_scales(self.owner, self.sets))
        return self._finished(scaled)

    def recreate(self) -> Outcome:
        """Delete all old pods before new ones are created."""
        scaled = self._scaled([(each, 0) for each in self.sets.old])
        if scaled:
            return self._finished(scaled)
        if self._has_old_pods():
            return self._finished(())
        synced = self._synced()
        if synced:
            return Outcome(tuple(synced))
        new = self.sets.new
        assert new is not None  # noqa: S101 (created before)
        return self._finished(self._scaled([(new, spec_replicas(self.owner))]))

    def scale(self) -> Outcome:
        """Scale the ReplicaSets of a Deployment whose replicas were changed, or that is paused, without rolling out."""
        synced = self._synced(create_new=False)
        if synced:
            return Outcome(tuple(synced))
        scaled = self._scaled(proportional_scales(self.owner, self.sets), annotate=True)
        cleaned = self._cleaned() if self.owner["spec"].get("paused") else ()
        status = scaling_status(self.view, self.owner, self.sets)
        return Outcome((*scaled, *cleaned, *update_status(self.owner, status)))

    def _finished(self, scaled: Sequence[Action]) -> Outcome:
        status, at = rollout_status(self.view, self.owner, self.sets)
        cleaned = self._cleaned() if not scaled and is_complete(self.owner, self.owner["status"]) else ()
        return Outcome((*scaled, *cleaned, *update_status(self.owner, status)), at)

    def _synced(self, *, create_new: bool = True) -> Sequence[Action]:
        """Return the writes that create the new ReplicaSet, or bring its annotations and the revision up to date."""
        new, revision = self.sets.new, self.sets.last_old_revision + 1
        if new is None:
            return self._created(revision) if create_new else ()
        revision = max(revision, revision_of(new))
        wanted = with_copied_annotations(new, self.owner, revision)
        seconds = self.owner["spec"].get("minReadySeconds", 0)
        if seconds != wanted["spec"].get("minReadySeconds", 0):
            wanted = {**wanted, "spec": {**wanted["spec"], "minReadySeconds": seconds}}
        if wanted != new:
            return (update(wanted),)
        actions = self._with_revision(revision)
        if actions:
            return actions
        name = new["metadata"]["name"]
        found = with_progress(self.view, self.owner, "FoundNewReplicaSet", f'Found new replica set "{name}"')
        return tuple(update_status(self.owner, found)) if found is not None else ()

    def _with_revision(self, revision: int) -> Sequence[Action]:
        metadata = self.owner["metadata"]
        annotations = metadata.get("annotations") or {}
        if annotations.get(REVISION) == str(revision):
            return ()
        return (
            update({**self.owner, "metadata": {**metadata, "annotations": {**annotations, REVISION: str(revision)}}}),
        )

    def _created(self, revision: int) -> Sequence[Action]:
        owner, metadata = self.owner, self.owner["metadata"]
        template: Manifest = copy_json(owner["spec"]["template"])
        collisions = owner["status"].get("collisionCount")
        digest = template_hash(template, collisions)
        name = f"{metadata['name']}-{digest}"
        if self.view.get("ReplicaSet", metadata["namespace"], name) is not None:
            # Another object has the name: the next hash is computed with a higher count.
            return tuple(update_status(owner, {**owner["status"], "collisionCount": (collisions or 0) + 1}))
        labels = {**(template.get("metadata", {}).get("labels") or {}), _HASH: digest}
        template["metadata"] = {**template.get("metadata", {}), "labels": labels}
        selector = owner["spec"]["selector"]
        selector = {**selector, "matchLabels": {**(selector.get("matchLabels") or {}), _HASH: digest}}
        count = new_replicas(owner, self.sets)
        seconds = owner["spec"].get("minReadySeconds", 0)
        new: Manifest = {
            "apiVersion": "apps/v1",
            "kind": "ReplicaSet",
            "metadata": {
                "name": name,
                "namespace": metadata["namespace"],
                "labels": labels,
                "ownerReferences": [controller_reference(owner)],
            },
            "spec": {
                "replicas": count,
                **({"minReadySeconds": seconds} if seconds else {}),
                "selector": selector,
                "template": template,
            },
        }
        new = with_scale_annotations(with_copied_annotations(new, owner, revision), owner)
        done = Event(owner, "ScalingReplicaSet", f"Scaled up replica set {name} from 0 to {count}") if count else None
        failed = Event(owner, "ReplicaSetCreateError", f'Failed to create new replica set "{name}": {{error}}')
        progress = with_progress(
            self.view, owner, "NewReplicaSetCreated", f'Created new replica set "{name}"', always=True
        )
        return (
            create(new, done, replace(failed, warning=True)),
            *(update_status(owner, progress) if progress is not None else ()),
        )

    def _scaled(self, scales: Sequence[tuple[Manifest, int]], *, annotate: bool = False) -> Sequence[Action]:
        """Return the writes that set the replicas of ReplicaSets."""
        actions = []
        for each, count in scales:
            before = spec_replicas(each)
            if before == count and not (annotate and with_scale_annotations(each, self.owner) != each):
                continue
            direction = "up" if before < count else "down"
            name = each["metadata"]["name"]
            message = f"Scaled {direction} replica set {name} from {before} to {count}"
            event = Event(self.owner, "ScalingReplicaSet", message) if before != count else None
            changed: Manifest = {**each, "spec": {**each["spec"], "replicas": count}}
            actions.append(update(with_scale_annotations(changed, self.owner), event))
        return tuple(actions)

    def _has_old_pods(self) -> bool:
        return any(not is_finished(pod) for each in self.sets.old for pod in controlled(self.view, each, "Pod"))

    def _cleaned(self) -> Sequence[Action]:
        """Return the deletes of the oldest ReplicaSets without pods, beyond the limit of the history."""
        limit: Any = self.owner["spec"].get("revisionHistoryLimit", _UNLIMITED)
        old = [each for each in self.sets.old if not is_deleted(each)]
        surplus = len(old) - limit
        if limit == _UNLIMITED or surplus <= 0:
            return ()
        by_revision = sorted(old, key=lambda each: (revision_of(each), each["metadata"]["creationTimestamp"]))
        # One with pods is kept and uses up its place, so fewer than the surplus may be deleted (cleanupDeployment).
        return tuple(delete(each) for each in by_revision[:surplus] if _is_empty(each))


def _is_empty(each: Manifest) -> bool:
    """Return whether a ReplicaSet has and wants no pods, as observed after its last change."""
    status = each["status"]
    observed = status.get("observedGeneration", 0) >= each["metadata"]["generation"]
    return not status.get("replicas") and not spec_replicas(each) and observed
