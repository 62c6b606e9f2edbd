"""Shapes of pods: everything about a pod that the scheduler's filters read.

Pods of one Deployment have equal shapes. All decisions are made per shape, so their cost grows with the number of
shapes instead of the number of pods.
"""

import marshal
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Final, NamedTuple

from ocf.nodegroups.snapshot.fields import Fields
from ocf.nodegroups.snapshot.node_selectors import NodeSelectorTerm, Toleration, read_terms
from ocf.nodegroups.snapshot.resources import NO_RESOURCES, Resources, pod_requests
from ocf.nodegroups.snapshot.topology import AffinityTerm, SpreadConstraint
from ocf.objects import Manifest

__all__ = ["HostPort", "PodShape", "Shapes"]


class HostPort(NamedTuple):
    """A port of a node that a pod uses.

    Args:
        protocol: `TCP`, `UDP` or `SCTP`.
        address: The address of the node; `0.0.0.0` for all of them.
    """

    port: int
    protocol: str = "TCP"
    address: str = "0.0.0.0"  # noqa: S104 (the API's value for all addresses)

    def conflicts(self, other: "HostPort") -> bool:
        """Return whether two pods on one node cannot use these ports together."""
        if (self.port, self.protocol) != (other.port, other.protocol):
            return False
        return self.address == other.address or _ALL_ADDRESSES in (self.address, other.address)


_ALL_ADDRESSES: Final = HostPort(0).address


@dataclass(frozen=True, kw_only=True)
class PodShape:
    """What the scheduler's filters read of a pod.

    Args:
        labels: The labels, sorted by name.
        requests: The effective requests.
        node_selector: `nodeSelector`, sorted by name.
        node_affinity: The terms of the required node affinity; None without it, empty if no node can match.
        affinity: The terms of the required affinity to other pods.
        anti_affinity: The terms of the required anti-affinity to other pods.
        spread: The required topology spread constraints.
        ports: The ports of the node that it uses.
        claims: The persistent volume claims that it uses.
        deleting: Whether the pod is being deleted: then topology spread does not count it.
    """

    namespace: str = "default"
    labels: tuple[tuple[str, str], ...] = ()
    requests: Resources = field(default=NO_RESOURCES._replace(pods=1))
    node_selector: tuple[tuple[str, str], ...] = ()
    node_affinity: tuple[NodeSelectorTerm, ...] | None = None
    tolerations: tuple[Toleration, ...] = ()
    affinity: tuple[AffinityTerm, ...] = ()
    anti_affinity: tuple[AffinityTerm, ...] = ()
    spread: tuple[SpreadConstraint, ...] = ()
    ports: tuple[HostPort, ...] = ()
    claims: tuple[str, ...] = ()
    deleting: bool = False

    @cached_property
    def _hash(self) -> int:
        # Without affinity and spread, which are deep; equal shapes still have equal hashes, and different ones seldom
        # collide.
        return hash((self.namespace, self.labels, self.requests, self.node_selector, self.claims, self.ports))

    def __hash__(self) -> int:
        """Return a hash that is computed once: shapes are the keys of every table."""
        return self._hash

    @cached_property
    def label_map(self) -> Mapping[str, str]:
        """The labels by name."""
        return dict(self.labels)

    @cached_property
    def node_names(self) -> frozenset[str] | None:
        """The only nodes that its node affinity names; None if it does not name nodes, empty if names conflict."""
        if not self.node_affinity:
            return None
        names: frozenset[str] = frozenset()
        for term in self.node_affinity:
            if not term.name_sets:
                return None
            # Terms are alternatives, the fields of one term all apply (PreFilter of nodeaffinity).
            names |= frozenset.intersection(*term.name_sets)
        return names

    @classmethod
    def read(
        cls, spec: Fields, *, namespace: str, labels: Mapping[str, str], status: Fields | None = None
    ) -> "PodShape":
        """Read the shape of a pod or of a pod template.

        Args:
            spec: The `spec` of the pod.
            status: Its `status` if it is on a node, for resizes in place.
        """
        affinity = spec.child("affinity")
        pods, others = affinity.child("podAffinity"), affinity.child("podAntiAffinity")
        required = "requiredDuringSchedulingIgnoredDuringExecution"
        node = affinity.child("nodeAffinity")
        return cls(
            namespace=namespace,
            labels=tuple(sorted(labels.items())),
            requests=pod_requests(spec, status),
            node_selector=tuple(sorted(spec.labels("nodeSelector").items())),
            node_affinity=read_terms(node.child(required).items("nodeSelectorTerms")) if required in node else None,
            tolerations=tuple(map(Toleration.read, spec.items("tolerations"))),
            affinity=tuple(AffinityTerm.read(term, namespace, labels) for term in pods.items(required)),
            anti_affinity=tuple(AffinityTerm.read(term, namespace, labels) for term in others.items(required)),
            spread=tuple(
                SpreadConstraint.read(each, labels)
                for each in spec.items("topologySpreadConstraints")
                if each.text("whenUnsatisfiable") == "DoNotSchedule"
            ),
            ports=_ports(spec),
        )


def _ports(spec: Fields) -> tuple[HostPort, ...]:
    host_network = spec.flag("hostNetwork")
    sidecars = [each for each in spec.items("initContainers") if each.text("restartPolicy") == "Always"]
    found = []
    for container in (*sidecars, *spec.items("containers")):
        for port in container.items("ports"):
            # The API server sets hostPort for pods on the host network; a template of a DaemonSet has none.
            number = port.integer("hostPort") or (port.integer("containerPort") if host_network else 0)
            if number > 0:
                found.append(HostPort(number, port.text("protocol") or "TCP", port.text("hostIP") or _ALL_ADDRESSES))
    return tuple(dict.fromkeys(found))


class Shapes:
    """Table of shapes, so that each distinct pod is read once and equal shapes are one object."""

    def __init__(self) -> None:
        self._by_source: dict[bytes, PodShape] = {}
        self._shapes: dict[PodShape, PodShape] = {}

    def read(self, pod: Manifest, fields: Fields, *, claims: tuple[str, ...], deleting: bool, bound: bool) -> PodShape:
        """Return the shape of a pod.

        Args:
            pod: The pod, or a pod template with a namespace.
            fields: The same, for problems.
            claims: The claims that it uses.
            deleting: Whether it is being deleted.
            bound: Whether it is on a node.
        """
        source = _source(pod, claims, deleting=deleting, bound=bound)
        known = self._by_source.get(source) if source else None
        if known is not None:
            return known
        before = len(fields.problems)
        metadata = fields.child("metadata")
        shape = PodShape.read(
            fields.child("spec"),
            namespace=metadata.text("namespace") or "default",
            labels=metadata.labels("labels"),
            status=fields.child("status") if bound else None,
        )
        shape = self.intern(replace(shape, claims=claims, deleting=deleting))
        # A pod with problems is read again each time, because its problems have to be reported again.
        if source and len(fields.problems) == before:
            self._by_source[source] = shape
        return shape

    def __len__(self) -> int:
        return len(self._shapes)

    def keep(self, shapes: Iterable[PodShape]) -> None:
        """Forget all other shapes.

        Args:
            shapes: The shapes that are in use.
        """
        self._shapes = {shape: shape for shape in shapes}
        self._by_source = {source: shape for source, shape in self._by_source.items() if shape in self._shapes}

    def intern(self, shape: PodShape) -> PodShape:
        """Return the known shape that equals this one, or this one if it is new."""
        return self._shapes.setdefault(shape, shape)


_CONTAINER_FIELDS: Final = ("name", "resources", "ports", "restartPolicy")
_SPEC_FIELDS: Final = (
    "resources",
    "overhead",
    "nodeSelector",
    "affinity",
    "tolerations",
    "topologySpreadConstraints",
    "hostNetwork",
)


def _source(pod: Manifest, claims: tuple[str, ...], *, deleting: bool, bound: bool) -> bytes | None:
    """Return a key that equal pods share, much cheaper than reading the pod; None for a pod with invalid fields."""
    try:
        metadata, spec = pod.get("metadata") or {}, pod.get("spec") or {}
        parts: list[Any] = [metadata.get("namespace"), metadata.get("labels"), list(claims), deleting]
        parts += [spec.get(key) for key in _SPEC_FIELDS]
        for kind in ("containers", "initContainers"):
            parts.append([[each.get(key) for key in _CONTAINER_FIELDS] for each in spec.get(kind) or ()])
        if bound:
            parts.append(_resize_source(pod.get("status") or {}))
        # Version 2 has no references, which would depend on the identity of equal parts.
        return marshal.dumps(parts, 2)
    except (AttributeError, TypeError, ValueError):
        return None


def _resize_source(status: Manifest) -> list[Any]:
    found: list[Any] = [status.get("resources"), status.get("allocatedResources")]
    for kind in ("containerStatuses", "initContainerStatuses"):
        found += [
            [each.get("name"), each.get("resources"), each.get("allocatedResources")] for each in status.get(kind) or ()
        ]
    pending = [each.get("reason") for each in status.get("conditions") or () if each.get("type") == "PodResizePending"]
    return [*found, *pending]
