"""Filters whose verdict depends on the node alone, not on the pods that are on nodes.

Nodes that are equal in everything that a shape asks for share one verdict, so that 5,000 nodes of a few kinds cost a
few evaluations per shape.
"""

from typing import Final

from ocf.nodegroups.predicates.reasons import NODE_AFFINITY, TAINT, UNSCHEDULABLE, Misfit
from ocf.nodegroups.predicates.volumes import VolumeFilter
from ocf.nodegroups.snapshot import ClusterSnapshot, Node, PodShape, Taint, matches_any, untolerated

__all__ = ["StaticFilter", "matches_node_affinity"]

_CORDON: Final = Taint("node.kubernetes.io/unschedulable")
_CONFLICT: Final = Misfit("NodeAffinity", ("pod affinity terms conflict",))
_OTHER_NODE: Final = Misfit("NodeAffinity", ("node(s) didn't satisfy plugin(s) [NodeAffinity]",))


def matches_node_affinity(shape: PodShape, node: Node) -> bool:
    """Return whether a node matches the node selector and the required node affinity of a shape."""
    labels = node.labels
    if any(labels.get(key) != value for key, value in shape.node_selector):
        return False
    return shape.node_affinity is None or matches_any(shape.node_affinity, node.name, labels)


class StaticFilter:
    """The filters for nodes by themselves, for pods of one shape."""

    def __init__(self, shape: PodShape, snapshot: ClusterSnapshot) -> None:
        self._shape = shape
        self._volumes = VolumeFilter(shape, snapshot) if shape.claims else None
        self.rejected: Misfit | None = None
        """Why the pod fits no node at all; None if it depends on the node."""
        if shape.node_names is not None and not shape.node_names:
            self.rejected = _CONFLICT
        elif self._volumes is not None and self._volumes.rejected is not None:
            self.rejected = self._volumes.rejected
        self._keys = self._label_keys()
        self._verdicts: dict[object, bool] = {}

    def is_ok(self, node: Node, kind: int) -> bool:
        """Return whether a node passes; nodes that are equal in what the shape asks for are evaluated once.

        Args:
            kind: A number that nodes share only if they have equal taints and are equally cordoned.
        """
        keys = self._keys
        if keys is None:
            return self.check(node) is None
        labels = node.labels
        source: object = (kind, *[labels.get(key) for key in keys]) if keys else kind
        verdict = self._verdicts.get(source)
        if verdict is None:
            verdict = self._verdicts[source] = self.check(node) is None
        return verdict

    def check(self, node: Node) -> Misfit | None:
        """Return why a node is rejected by the node filters or the volume filters; None if it is not."""
        return self.check_node(node) or self.check_volumes(node)

    def check_node(self, node: Node) -> Misfit | None:
        """Return why a node is rejected by the filters that the scheduler runs before those for ports."""
        shape = self._shape
        if self.rejected is not None:
            return self.rejected
        # Before all other filters: NodeAffinity narrows the nodes in PreFilter already.
        if shape.node_names is not None and node.name not in shape.node_names:
            return _OTHER_NODE
        if node.unschedulable and not any(each.tolerates(_CORDON) for each in shape.tolerations):
            return Misfit("NodeUnschedulable", (UNSCHEDULABLE,))
        taint = untolerated(node.taints, shape.tolerations) if node.taints else None
        if taint is not None:
            return Misfit("TaintToleration", (TAINT,), (_shown(taint),))
        if (shape.node_selector or shape.node_affinity is not None) and not matches_node_affinity(shape, node):
            return Misfit("NodeAffinity", (NODE_AFFINITY,))
        return None

    def check_volumes(self, node: Node) -> Misfit | None:
        """Return why a node is rejected by the filters for volumes, which the scheduler runs after the resources."""
        return None if self._volumes is None else self._volumes.check(node)

    def _label_keys(self) -> tuple[str, ...] | None:
        """Return the labels that the verdict depends on; None if it also depends on the name."""
        keys = {key for key, _ in self._shape.node_selector}
        for term in self._shape.node_affinity or ():
            # A verdict about a name is shared with no other node.
            if term.names or term.name_sets:
                return None
            keys.update(each.key for each in term.expressions)
        if self._volumes is not None and self._volumes.rejected is None:
            if not self._volumes.by_labels:
                return None
            keys.update(self._volumes.keys())
        return tuple(sorted(keys))


def _shown(taint: Taint) -> str:
    return f"taint {taint.key}{'=' if taint.value else ''}{taint.value}:{taint.effect}"
