"""StatefulSet controller.

Source: pkg/controller/statefulset of Kubernetes 1.36. The retention policy of claims is not applied, and
`maxUnavailable` of the update strategy counts as 1.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from ocf.objects import Manifest, copy_json
from ocf_server.controllers.actions import Action, Event, Outcome, create, delete, update, update_status
from ocf_server.controllers.ownership import claim, controller_reference, is_deleted
from ocf_server.controllers.pods import is_available, is_finished, is_ready, next_available
from ocf_server.controllers.revisions import REVISION_LABEL, RevisionHistory, revision_history, truncated
from ocf_server.controllers.view import ClusterView

__all__ = ["reconcile_stateful_set"]

_NAME: Final = re.compile(r"(.*)-(\d+)$")
_POD_NAME: Final = "statefulset.kubernetes.io/pod-name"
_POD_INDEX: Final = "apps.kubernetes.io/pod-index"


def reconcile_stateful_set(view: ClusterView, owner: Manifest) -> Outcome:
    """Create, update or delete the next pods in order."""
    members, claims = claim(view, owner, "Pod", lambda pod: _ordinal(owner, pod) is not None)
    if claims:
        return Outcome(tuple(claims))
    if is_deleted(owner):
        return Outcome()
    history = revision_history(view, owner)
    if history.newest is None:
        return Outcome(history.actions)
    update = _Update(view, owner, history, members)
    status = update.status()
    used = [status["currentRevision"], status["updateRevision"], *map(_revision, members)]
    actions = (*update_status(owner, status), *update.actions(), *truncated(owner, history, used))
    seconds = owner["spec"].get("minReadySeconds", 0)
    return Outcome(actions, next_available(members, seconds, view.now))


def _ordinal(owner: Manifest, pod: Manifest) -> int | None:
    """Return the number of a pod that is named as one of the owner's, also as `web-007`; else None."""
    match = _NAME.fullmatch(pod["metadata"]["name"])
    return int(match[2]) if match and match[1] == owner["metadata"]["name"] else None


def _revision(pod: Manifest) -> str:
    return str((pod["metadata"].get("labels") or {}).get(REVISION_LABEL, ""))


@dataclass(frozen=True, slots=True)
class _Update:
    """One reconcile of a StatefulSet."""

    view: ClusterView
    owner: Manifest
    history: RevisionHistory
    pods: Sequence[Manifest]

    @property
    def update_revision(self) -> str:
        """Name of the newest revision."""
        assert self.history.newest is not None  # noqa: S101 (checked by the caller)
        return str(self.history.newest["metadata"]["name"])

    @property
    def current_revision(self) -> str:
        """Name of the revision before the update that is under way; the newest one if there is none."""
        known = self.owner["status"].get("currentRevision")
        names = {each["metadata"]["name"] for each in self.history.revisions}
        return known if known in names else self.update_revision

    @property
    def ordinals(self) -> range:
        """The ordinals that pods should have."""
        start = (self.owner["spec"].get("ordinals") or {}).get("start", 0)
        return range(start, start + self.owner["spec"].get("replicas", 1))

    def status(self) -> Manifest:
        """Return the status."""
        seconds = self.owner["spec"].get("minReadySeconds", 0)
        created = [pod for pod in self.pods if pod["status"].get("phase")]
        alive = [pod for pod in created if not is_deleted(pod)]
        ready = [pod for pod in created if pod["status"]["phase"] == "Running" and is_ready(pod)]
        current, newest = self.current_revision, self.update_revision
        updated = sum(_revision(pod) == newest for pod in alive)
        available = sum(is_available(pod, seconds, self.view.now) for pod in ready)
        # The update is over: its revision becomes the current one.
        if self._rolls() and updated == len(created) == len(ready):
            current = newest
        counts = {
            "readyReplicas": len(ready),
            "currentReplicas": sum(_revision(pod) == current for pod in alive),
            "updatedReplicas": updated,
        }
        return {
            "observedGeneration": self.owner["metadata"]["generation"],
            "replicas": len(created),
            **{name: count for name, count in counts.items() if count},
            "currentRevision": current,
            "updateRevision": newest,
            "collisionCount": self.owner["status"].get("collisionCount", 0),
            "availableReplicas": available,
        }

    def actions(self) -> Iterator[Action]:
        """Yield the creates and deletes that are due; with ordered pods, at most one at a time."""
        by_ordinal = {_ordinal(self.owner, pod): pod for pod in self.pods}
        parallel = self.owner["spec"].get("podManagementPolicy") == "Parallel"
        for ordinal in self.ordinals:
            pod = by_ordinal.get(ordinal)
            action = self._replica(ordinal, pod)
            yield from action
            if not parallel and (action or pod is None or not self._is_healthy(pod)):
                return
            if pod is not None and not action:
                yield from self._identified(pod, ordinal)
        condemned = sorted(
            (each for each in by_ordinal if each is not None and each not in self.ordinals), reverse=True
        )
        for ordinal in condemned:
            pod = by_ordinal[ordinal]
            if not is_deleted(pod):
                yield self._delete(pod)
            if not parallel:
                return
        yield from self._updates(by_ordinal)

    def _replica(self, ordinal: int, pod: Manifest | None) -> tuple[Action, ...]:
        if pod is None:
            return (*self._claims(ordinal), self._create(ordinal))
        if is_finished(pod) and not is_deleted(pod):
            return (self._delete(pod),)
        return ()

    def _identified(self, pod: Manifest, ordinal: int) -> Iterator[Action]:
        """Yield the update that gives a pod the labels of its identity, which one that was adopted may lack."""
        name, labels = pod["metadata"]["name"], pod["metadata"].get("labels") or {}
        if labels.get(_POD_NAME) != name and name == f"{self.owner['metadata']['name']}-{ordinal}":
            labels = {**labels, _POD_NAME: name, _POD_INDEX: str(ordinal)}
            done, _ = self._events("Update", f"Pod {name} in StatefulSet {self.owner['metadata']['name']}")
            yield update({**pod, "metadata": {**pod["metadata"], "labels": labels}}, done)

    def _updates(self, by_ordinal: dict[int | None, Manifest]) -> Iterator[Action]:
        """Yield the delete of the next pod that a rolling update replaces, from the highest ordinal on."""
        if not self._rolls():
            return
        # The partition counts replicas, not ordinals.
        first = self.ordinals.start + (self._rolling or {}).get("partition", 0)
        for ordinal in reversed(self.ordinals):
            pod = by_ordinal.get(ordinal)
            if pod is None or ordinal < first:
                return
            if _revision(pod) != self.update_revision and not is_deleted(pod):
                yield self._delete(pod)
                return
            if not self._is_healthy(pod):
                return

    @property
    def _rolling(self) -> Mapping[str, Any] | None:
        rolling: Mapping[str, Any] | None = self.owner["spec"].get("updateStrategy", {}).get("rollingUpdate")
        return rolling

    def _rolls(self) -> bool:
        return bool(self.owner["spec"].get("updateStrategy", {}).get("type") == "RollingUpdate")

    def _is_healthy(self, pod: Manifest) -> bool:
        running = pod["status"].get("phase") == "Running" and not is_deleted(pod)
        return running and is_available(pod, self.owner["spec"].get("minReadySeconds", 0), self.view.now)

    def _template(self, ordinal: int) -> tuple[Manifest, str]:
        """Return the template and the revision for a new pod."""
        name, newest = self.current_revision, self.update_revision
        # A pod below the partition stays at the current revision. Without a partition (the default is 0), so does one
        # that the update has not reached (newVersionedStatefulSetPod).
        rolling = self._rolling
        count = self.owner["status"].get("currentReplicas", 0) if rolling is None else rolling.get("partition", 0)
        kept = ordinal < self.ordinals.start + count
        if not self._rolls() or not kept or name == newest:
            return self.owner["spec"]["template"], newest
        revision = next(each for each in self.history.revisions if each["metadata"]["name"] == name)
        template = {key: value for key, value in revision["data"]["spec"]["template"].items() if key != "$patch"}
        return template, name

    def _create(self, ordinal: int) -> Action:
        metadata = self.owner["metadata"]
        name = f"{metadata['name']}-{ordinal}"
        template, revision = self._template(ordinal)
        given = template.get("metadata") or {}
        labels = {**(given.get("labels") or {}), _POD_INDEX: str(ordinal), REVISION_LABEL: revision, _POD_NAME: name}
        annotations = given.get("annotations")
        spec: dict[str, Any] = copy_json(template["spec"])
        claims = {each["metadata"]["name"]: self._claim_name(each, ordinal) for each in self._claim_templates()}
        if claims:
            # A claim replaces a volume of its name in the template.
            volumes = [each for each in spec.get("volumes") or () if each["name"] not in claims]
            mounted = [{"name": each, "persistentVolumeClaim": {"claimName": claims[each]}} for each in claims]
            spec["volumes"] = [*mounted, *volumes]
        spec["hostname"] = name
        if self.owner["spec"].get("serviceName"):
            spec["subdomain"] = self.owner["spec"]["serviceName"]
        pod = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "name": name,
                "generateName": f"{metadata['name']}-",
                "namespace": metadata["namespace"],
                "labels": labels,
                **({"annotations": dict(annotations)} if annotations else {}),
                "ownerReferences": [controller_reference(self.owner)],
            },
            "spec": spec,
        }
        done, failed = self._events("Create", f"Pod {name} in StatefulSet {metadata['name']}")
        return create(pod, done, failed)

    def _claims(self, ordinal: int) -> Iterator[Action]:
        """Yield the creates of the claims that a pod needs and that do not exist."""
        metadata = self.owner["metadata"]
        labels = self.owner["spec"]["selector"].get("matchLabels") or {}
        for each in self._claim_templates():
            name = self._claim_name(each, ordinal)
            if self.view.get("PersistentVolumeClaim", metadata["namespace"], name) is not None:
                continue
            given = {key: value for key, value in each["metadata"].items() if key in ("annotations", "labels")}
            given["labels"] = {**(given.get("labels") or {}), **labels}
            body = {
                "apiVersion": "v1",
                "kind": "PersistentVolumeClaim",
                "metadata": {**given, "name": name, "namespace": metadata["namespace"]},
                "spec": each["spec"],
            }
            pod = f"{metadata['name']}-{ordinal}"
            message = f"Create Claim {name} Pod {pod} in StatefulSet {metadata['name']} success"
            yield create(body, Event(self.owner, "SuccessfulCreate", message))

    def _claim_templates(self) -> Sequence[Manifest]:
        return self.owner["spec"].get("volumeClaimTemplates") or ()

    def _claim_name(self, template: Manifest, ordinal: int) -> str:
        return f"{template['metadata']['name']}-{self.owner['metadata']['name']}-{ordinal}"

    def _delete(self, pod: Manifest) -> Action:
        name = pod["metadata"]["name"]
        done, _ = self._events("Delete", f"Pod {name} in StatefulSet {self.owner['metadata']['name']}")
        return delete(pod, done)

    def _events(self, verb: str, what: str) -> tuple[Event, Event]:
        done = Event(self.owner, f"Successful{verb}", f"{verb} {what} successful")
        failed = Event(self.owner, f"Failed{verb}", f"{verb} {what} failed error: {{error}}", warning=True)
        return done, failed
