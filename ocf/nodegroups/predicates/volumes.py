"""Filters for the volumes of a pod: binding, node affinity of volumes, zones, and what CSI drivers can attach.

Not checked: storage capacity of CSI drivers, disks that are named in the pod itself, limits for volumes of the kinds
before CSI, and volumes that are still attached after their pod is gone. Source: `volumerestrictions`,
`nodevolumelimits`, `volumebinding` and `volumezone` of Kubernetes 1.36.
"""

from collections.abc import Iterator, Mapping
from typing import Final

from ocf.nodegroups.predicates.reasons import BIND_CONFLICT, NODE_CONFLICT, ZONE, Misfit
from ocf.nodegroups.snapshot import Claim, ClusterSnapshot, Node, PodShape, Volume, matches_any

__all__ = ["VolumeFilter", "attached_volume", "exclusive_claims"]

_ZONE_KEYS: Final = {
    "failure-domain.beta.kubernetes.io/zone": "topology.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region": "topology.kubernetes.io/region",
    "topology.kubernetes.io/zone": "topology.kubernetes.io/zone",
    "topology.kubernetes.io/region": "topology.kubernetes.io/region",
}
_SEPARATOR: Final = "__"


def exclusive_claims(shape: PodShape, snapshot: ClusterSnapshot) -> tuple[str, ...]:
    """Return the keys of the claims of a pod that only one pod at a time may use."""
    keys = (f"{shape.namespace}/{name}" for name in shape.claims)
    return tuple(
        key for key in keys if key in snapshot.claims and "ReadWriteOncePod" in snapshot.claims[key].access_modes
    )


def attached_volume(claim_key: str, snapshot: ClusterSnapshot) -> tuple[str, str] | None:
    """Return the CSI driver of a claim and what identifies its volume; None if no driver attaches it."""
    claim = snapshot.claims.get(claim_key)
    if claim is None:
        return None
    volume = snapshot.volumes.get(claim.volume)
    if volume is not None:
        return volume.csi if volume.csi is not None and all(volume.csi) else None
    # Without a volume yet, the one that will be provisioned counts (getCSIDriverInfoFromSC).
    storage_class = snapshot.storage_classes.get(claim.storage_class)
    # No handle of a volume contains the name of a claim behind a blank.
    return (storage_class.provisioner, f"claim {claim_key}") if storage_class and storage_class.provisioner else None


class VolumeFilter:
    """The filters for the volumes of pods of one shape."""

    def __init__(self, shape: PodShape, snapshot: ClusterSnapshot) -> None:
        self._snapshot = snapshot
        self._bound: list[Claim] = []
        self._delayed: list[Claim] = []
        self.rejected: Misfit | None = None
        """Why the pod fits no node at all; None if it depends on the node."""
        for name in shape.claims:
            problem = self._add(shape.namespace, name)
            if problem is not None:
                self.rejected = problem
                return
        missing = [claim.volume for claim in self._bound if claim.volume not in snapshot.volumes]
        if missing:
            self.rejected = Misfit("VolumeZone", (f'persistentvolume "{missing[0]}" not found',))
        # Small claims first: they get the small volumes.
        self._delayed.sort(key=lambda claim: (claim.size, claim.name))

    @property
    def by_labels(self) -> bool:
        """Whether the verdict depends only on the labels of a node."""
        return not any(claim.selected_node for claim in self._delayed)

    def keys(self) -> Iterator[str]:
        """Yield the labels of nodes that the verdict depends on."""
        yield from _ZONE_KEYS
        for volume in self._snapshot.volumes.values():
            for term in volume.node_affinity or ():
                yield from (each.key for each in term.expressions)
        for claim in self._delayed:
            for topology in self._snapshot.storage_classes[claim.storage_class].topologies:
                yield from topology

    def check(self, node: Node) -> Misfit | None:
        """Return why the volumes cannot be used on a node; None if they can."""
        reasons = tuple(reason for reason in (self._check_bound(node), self._check_delayed(node)) if reason)
        return Misfit("VolumeBinding", reasons) if reasons else self._check_zones(node)

    def _add(self, namespace: str, name: str) -> Misfit | None:
        claim = self._snapshot.claims.get(f"{namespace}/{name}")
        if claim is None:
            return _rejected(f'persistentvolumeclaim "{name}" not found')
        if claim.phase == "Lost":
            return _rejected(f'persistentvolumeclaim "{name}" bound to non-existent persistentvolume "{claim.volume}"')
        if claim.deleting:
            return _rejected(f'persistentvolumeclaim "{name}" is being deleted')
        if claim.bound:
            self._bound.append(claim)
            return None
        storage_class = self._snapshot.storage_classes.get(claim.storage_class)
        if claim.volume or storage_class is None or not storage_class.delayed:
            return _rejected("pod has unbound immediate PersistentVolumeClaims")
        self._delayed.append(claim)
        return None

    def _check_bound(self, node: Node) -> str | None:
        for claim in self._bound:
            if not _is_reachable(self._snapshot.volumes[claim.volume], node):
                return NODE_CONFLICT
        return None

    def _check_delayed(self, node: Node) -> str | None:
        chosen: set[str] = set()
        for claim in self._delayed:
            if claim.selected_node and claim.selected_node != node.name:
                return BIND_CONFLICT
            # Once provisioning has begun for a node, no other volume is taken.
            volume = None if claim.selected_node else self._matching(claim, node, chosen)
            if volume is not None:
                # Two claims of one pod need two volumes.
                chosen.add(volume.name)
            elif not self._can_provision(claim, node):
                return BIND_CONFLICT
        return None

    def _matching(self, claim: Claim, node: Node, chosen: set[str]) -> Volume | None:
        own = f"{claim.namespace}/{claim.name}"
        smallest: Volume | None = None
        for volume in self._snapshot.volumes.values():
            if volume.name in chosen or volume.claim not in ("", own) or volume.deleting:
                continue
            if volume.storage_class != claim.storage_class or volume.size < claim.size or volume.mode != claim.mode:
                continue
            reachable = _is_reachable(volume, node)
            # A volume that is reserved for the claim is the only choice, even if a better one is free.
            if volume.claim == own:
                return volume if reachable else None
            if volume.phase != "Available" or (claim.selector and not claim.selector.matches(volume.labels)):
                continue
            if not reachable or not set(claim.access_modes) <= set(volume.access_modes):
                continue
            if smallest is None or volume.size < smallest.size:
                smallest = volume
        return smallest

    def _can_provision(self, claim: Claim, node: Node) -> bool:
        storage_class = self._snapshot.storage_classes[claim.storage_class]
        if not storage_class.provisioner:
            return False
        topologies = storage_class.topologies
        return not topologies or any(
            all(node.labels.get(key) in values for key, values in topology.items()) for topology in topologies
        )

    def _check_zones(self, node: Node) -> Misfit | None:
        # A cluster without zones ignores the labels of volumes (Filter of volumezone).
        if not any(key in node.labels for key in _ZONE_KEYS):
            return None
        for claim in self._bound:
            for key, values in _zones(self._snapshot.volumes[claim.volume].labels):
                if node.labels.get(key, node.labels.get(_ZONE_KEYS[key])) not in values:
                    return Misfit("VolumeZone", (ZONE,), (f"volume {claim.volume} is in {'/'.join(sorted(values))}",))
        return None


def _is_reachable(volume: Volume, node: Node) -> bool:
    # As in the scheduler, a volume knows only the labels of nodes.
    return volume.node_affinity is None or matches_any(volume.node_affinity, node.name, node.labels)


def _zones(labels: Mapping[str, str]) -> Iterator[tuple[str, frozenset[str]]]:
    for key in _ZONE_KEYS:
        values = frozenset(labels[key].split(_SEPARATOR)) if key in labels else frozenset()
        # An empty zone makes the label invalid, and it is ignored.
        if values and "" not in values:
            yield key, values


def _rejected(reason: str) -> Misfit:
    return Misfit("VolumeBinding", (reason,))
