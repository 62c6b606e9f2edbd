"""The ReplicaSets of a Deployment: the new one, the old ones, their annotations.

Source: pkg/controller/deployment/util/deployment_util.go of Kubernetes 1.36.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from ocf.objects import Manifest
from ocf.objects.json_equality import equal_json
from ocf_server.controllers.replicas import resolve_fenceposts

__all__ = [
    "DESIRED",
    "MAX",
    "REVISION",
    "ReplicaSets",
    "max_surge",
    "max_unavailable",
    "revision_of",
    "spec_replicas",
    "with_copied_annotations",
    "with_scale_annotations",
]

REVISION: Final = "deployment.kubernetes.io/revision"
DESIRED: Final = "deployment.kubernetes.io/desired-replicas"
MAX: Final = "deployment.kubernetes.io/max-replicas"
_HISTORY: Final = "deployment.kubernetes.io/revision-history"
_NOT_COPIED: Final = frozenset(
    {
        "kubectl.kubernetes.io/last-applied-configuration",
        REVISION,
        _HISTORY,
        DESIRED,
        MAX,
        "deprecated.deployment.rollback.to",
    }
)
_HASH: Final = "pod-template-hash"


@dataclass(frozen=True, slots=True)
class ReplicaSets:
    """The ReplicaSets of a Deployment.

    Args:
        new: The one with the template of the Deployment; None if it does not exist.
        old: The others, from the oldest to the newest.
    """

    new: Manifest | None
    old: tuple[Manifest, ...]

    @classmethod
    def of(cls, owner: Manifest, found: Iterable[Manifest]) -> "ReplicaSets":
        """Return the ReplicaSets of a Deployment, sorted by age."""
        ordered = sorted(found, key=lambda each: (each["metadata"]["creationTimestamp"], each["metadata"]["name"]))
        template = _without_hash(owner["spec"]["template"])
        # The oldest one, should several have the template (FindNewReplicaSet).
        new = next((each for each in ordered if equal_json(_without_hash(each["spec"]["template"]), template)), None)
        return cls(new, tuple(each for each in ordered if each is not new))

    @property
    def all(self) -> tuple[Manifest, ...]:
        """All ReplicaSets, the new one last."""
        return (*self.old, self.new) if self.new is not None else self.old

    @property
    def active(self) -> tuple[Manifest, ...]:
        """Those that want pods."""
        return tuple(each for each in self.all if spec_replicas(each) > 0)

    @property
    def last_old_revision(self) -> int:
        """The highest revision of the old ones; 0 if there is none."""
        return max(map(revision_of, self.old), default=0)


def spec_replicas(manifest: Manifest) -> int:
    """Return the desired number of pods of a workload."""
    count: int = manifest["spec"].get("replicas", 1)
    return count


def revision_of(manifest: Manifest) -> int:
    """Return the revision of a ReplicaSet; 0 if it has none."""
    text = (manifest["metadata"].get("annotations") or {}).get(REVISION, "0")
    return int(text) if text.isdecimal() else 0


def max_surge(owner: Manifest) -> int:
    """Return the number of pods that a rollout may have in excess; 0 without a rolling update."""
    return _fenceposts(owner)[0]


def max_unavailable(owner: Manifest) -> int:
    """Return the number of pods that may be unavailable in a rollout; 0 without a rolling update."""
    # An absolute `maxUnavailable` may be larger than the Deployment.
    return min(_fenceposts(owner)[1], spec_replicas(owner))


def _fenceposts(owner: Manifest) -> tuple[int, int]:
    strategy = owner["spec"].get("strategy") or {}
    replicas = spec_replicas(owner)
    if strategy.get("type") != "RollingUpdate" or replicas == 0:
        return 0, 0
    rolling = strategy.get("rollingUpdate") or {}
    return resolve_fenceposts(rolling.get("maxSurge"), rolling.get("maxUnavailable"), replicas)


def with_copied_annotations(replica_set: Manifest, owner: Manifest, revision: int) -> Manifest:
    """Return the new ReplicaSet with the annotations of its Deployment and its revision.

    Args:
        revision: The revision that it should have at least.
    """
    metadata = replica_set["metadata"]
    before = metadata.get("annotations") or {}
    given = (owner["metadata"].get("annotations") or {}).items()
    annotations = {**before, **{name: value for name, value in given if name not in _NOT_COPIED}}
    old = before.get(REVISION)
    if old is None or revision_of(replica_set) < revision:
        annotations[REVISION] = str(revision)
        if old is not None:
            history = before.get(_HISTORY)
            annotations[_HISTORY] = f"{history},{old}" if history else old
    return {**replica_set, "metadata": {**metadata, "annotations": annotations}}


def with_scale_annotations(replica_set: Manifest, owner: Manifest) -> Manifest:
    """Return a ReplicaSet with the size of its Deployment in its annotations."""
    metadata, desired = replica_set["metadata"], spec_replicas(owner)
    sizes = {DESIRED: str(desired), MAX: str(desired + max_surge(owner))}
    return {**replica_set, "metadata": {**metadata, "annotations": {**(metadata.get("annotations") or {}), **sizes}}}


def _without_hash(template: Manifest) -> Manifest:
    metadata = template.get("metadata") or {}
    labels = {name: value for name, value in (metadata.get("labels") or {}).items() if name != _HASH}
    rest = {name: value for name, value in metadata.items() if name not in ("labels", "creationTimestamp")}
    return {"metadata": {**rest, "labels": labels}, "spec": template.get("spec") or {}}
