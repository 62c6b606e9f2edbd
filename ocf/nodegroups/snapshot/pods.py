"""Pods of a snapshot."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from typing import Final

from ocf.nodegroups.snapshot.fields import Fields, ObjectFields, read_object
from ocf.nodegroups.snapshot.shapes import PodShape, Shapes
from ocf.objects import Manifest, parse_time
from ocf.objects.owner_references import ControllerReference

__all__ = ["PodTable", "SnapshotPod", "read_time"]

_MIRROR: Final = "kubernetes.io/config.mirror"
_FINISHED: Final = frozenset({"Succeeded", "Failed"})


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotPod:
    """A pod.

    Args:
        shape: What the scheduler's filters read of it.
        node_name: The node that it is on; empty for a pending pod.
        phase: `Pending`, `Running`, `Succeeded`, `Failed` or `Unknown`.
        controller: The owner that controls it; None for a bare pod.
        gated: Whether scheduling gates keep it back.
        local_volumes: The volumes whose content is lost when the pod leaves its node: `emptyDir` and `hostPath`.
        uid: Its uid; empty if it is not known.
        ready: Whether its condition `Ready` is True.
        nominated: The node that the scheduler has chosen for a pending pod: it takes the pod once others have left it.
        rejection: Why the scheduler found no node for a pending pod; empty if it has not said so.
        rejected_at: When it said so for the first time.
    """

    name: str
    shape: PodShape
    node_name: str = ""
    phase: str = "Running"
    annotations: Mapping[str, str] = field(default_factory=dict)
    controller: ControllerReference | None = None
    priority: int = 0
    gated: bool = False
    local_volumes: tuple[str, ...] = ()
    uid: str = ""
    ready: bool = True
    nominated: str = ""
    rejection: str = ""
    rejected_at: datetime | None = None

    @property
    def namespace(self) -> str:
        """Its namespace."""
        return self.shape.namespace

    @property
    def key(self) -> str:
        """Namespace and name, `shop/web-0`."""
        return f"{self.shape.namespace}/{self.name}"

    @property
    def deleting(self) -> bool:
        """Whether it is being deleted."""
        return self.shape.deleting

    @property
    def finished(self) -> bool:
        """Whether it has ended, and uses no resources any more."""
        return self.phase in _FINISHED

    @property
    def mirror(self) -> bool:
        """Whether it is the mirror of a static pod, which cannot be evicted."""
        return _MIRROR in self.annotations

    @property
    def of_daemon_set(self) -> bool:
        """Whether a DaemonSet controls it."""
        return self.controller is not None and self.controller.kind == "DaemonSet"

    @classmethod
    def of(cls, pod: Manifest, shapes: Shapes | None = None) -> "SnapshotPod":
        """Parse a Pod.

        Args:
            pod: The manifest, as the API server returns it.
            shapes: The table of shapes of the snapshot; by default a new one.

        Raises:
            ManifestError: If fields are invalid; it contains all of them with their paths.

        Example:
            >>> containers = [{"name": "web", "resources": {"requests": {"cpu": "250m"}}}]
            >>> SnapshotPod.of({"metadata": {"name": "web-0"}, "spec": {"containers": containers}}).shape.requests.cpu
            250
        """
        return read_object("Pod", pod, partial(cls._read, pod, Shapes() if shapes is None else shapes))

    @classmethod
    def _read(cls, manifest: Manifest, shapes: Shapes, pod: ObjectFields) -> "SnapshotPod":
        spec, node_name = pod.spec, pod.spec.text("nodeName")
        claims, local = _volumes(spec, pod.name)
        rejection, rejected_at = ("", None) if node_name else _rejection(pod.status)
        return cls(
            name=pod.name,
            shape=shapes.read(manifest, pod.top, claims=claims, deleting=pod.deleting, bound=bool(node_name)),
            node_name=node_name,
            phase=pod.status.text("phase") or "Pending",
            annotations=pod.metadata.labels("annotations"),
            controller=_controller(pod.metadata),
            priority=spec.integer("priority"),
            gated=any(True for _ in spec.items("schedulingGates")),
            local_volumes=local,
            uid=pod.metadata.text("uid"),
            ready=any(
                each.text("type") == "Ready" and each.text("status") == "True"
                for each in pod.status.items("conditions")
            ),
            nominated="" if node_name else pod.status.text("nominatedNodeName"),
            rejection=rejection,
            rejected_at=rejected_at,
        )


@dataclass(frozen=True, slots=True)
class PodTable:
    """The pods of a snapshot by key and by node, without finished ones.

    Args:
        by_key: The pods by key, sorted.
        on_node: The pods of each node by its name, sorted by key.
    """

    by_key: Mapping[str, SnapshotPod]
    on_node: Mapping[str, tuple[SnapshotPod, ...]]

    @classmethod
    def of(cls, pods: Iterable[SnapshotPod]) -> "PodTable":
        """Return the table of pods, in whatever order they are given."""
        by_key = {pod.key: pod for pod in pods if not pod.finished}
        by_key = {key: by_key[key] for key in sorted(by_key)}
        on_node: dict[str, list[SnapshotPod]] = {}
        for pod in by_key.values():
            if pod.node_name:
                on_node.setdefault(pod.node_name, []).append(pod)
        return cls(by_key, {name: tuple(found) for name, found in on_node.items()})


def read_time(fields: Fields, key: str) -> datetime | None:
    """Return a timestamp; None if it is missing."""
    text = fields.text(key)
    if not text:
        return None
    try:
        return parse_time(text)
    except ValueError as error:
        fields.reject(str(error), key)
        return None


def _rejection(status: Fields) -> tuple[str, datetime | None]:
    """Return why and since when the scheduler finds no node."""
    for each in status.items("conditions"):
        if (each.text("type"), each.text("reason")) == ("PodScheduled", "Unschedulable"):
            return each.text("message"), read_time(each, "lastTransitionTime")
    return "", None


def _controller(metadata: Fields) -> ControllerReference | None:
    for each in metadata.items("ownerReferences"):
        if each.flag("controller"):
            return ControllerReference(*(each.text(key) for key in ("apiVersion", "kind", "name", "uid")))
    return None


def _volumes(spec: Fields, pod: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the claims and the local volumes."""
    claims, local = [], []
    for volume in spec.items("volumes"):
        name = volume.text("name")
        if "persistentVolumeClaim" in volume:
            claims.append(volume.child("persistentVolumeClaim").text("claimName"))
        elif "ephemeral" in volume:
            # The name that the ephemeral volume controller gives the claim of a generic ephemeral volume.
            claims.append(f"{pod}-{name}")
        # An empty map is a volume, too.
        elif volume.value.get("emptyDir") is not None or volume.value.get("hostPath") is not None:
            local.append(name)
    return tuple(dict.fromkeys(claims)), tuple(local)
