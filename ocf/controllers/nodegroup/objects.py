"""Objects of kind NodeGroup and VPSieNode: what they are called, and how they are read."""

import hashlib
import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Final, TypeVar

from pydantic import BaseModel, ValidationError

from ocf.controllers.nodegroup.definitions import VERSION
from ocf.controllers.nodegroup.model import GROUP, NodeGroupSpec, NodeGroupStatus
from ocf.controllers.nodegroup.node_model import VPSieNodeSpec, VPSieNodeStatus
from ocf.errors import FieldProblem
from ocf.nodegroups.snapshot.fields import Fields
from ocf.objects import Manifest, ObjectKey
from ocf.objects.model_errors import problems_of

__all__ = [
    "API_VERSION",
    "FINALIZER",
    "MEMBER_LABEL",
    "GroupObject",
    "NodeObject",
    "member_value",
    "name_prefix",
    "node_name",
    "read_group",
    "read_node",
    "reject_foreign_claims",
    "reject_second_claims",
    "twin_name",
]

API_VERSION: Final = f"{GROUP}/{VERSION}"
"""apiVersion of NodeGroup and VPSieNode."""

FINALIZER: Final = f"{GROUP}/finalizer"
"""The finalizer of both kinds: nodes are deleted before their group, and machines before their nodes."""

MEMBER_LABEL: Final = f"{GROUP}/node-group"
"""The label of Nodes whose value, `member_value`, names their group."""

_log: Final = logging.getLogger(__name__)
_LONGEST_LABEL: Final = 63
# With the digest, a name stays within the 63 characters of a label and of host names.
_LONGEST_PREFIX: Final = 40
_DIGEST: Final = 10

ModelT = TypeVar("ModelT", bound=BaseModel)


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupObject:
    """An object of kind NodeGroup.

    Args:
        spec: Its spec; None if it is not valid.
        status: Its status; empty if it has none, or one that cannot be read.
    """

    manifest: Manifest
    spec: NodeGroupSpec | None
    status: NodeGroupStatus = field(default_factory=NodeGroupStatus)
    problems: tuple[FieldProblem, ...] = ()

    @property
    def key(self) -> ObjectKey:
        """The object."""
        return ObjectKey.of(self.manifest)

    @property
    def name(self) -> str:
        """Its name in decisions: namespace and name, `default/workers`."""
        return f"{self.key.namespace}/{self.key.name}"

    @property
    def uid(self) -> str:
        """Its uid."""
        return str(self.manifest["metadata"].get("uid") or "")

    @property
    def generation(self) -> int:
        """Its generation."""
        return int(self.manifest["metadata"].get("generation") or 0)

    @property
    def ending(self) -> bool:
        """Whether it is being deleted."""
        return "deletionTimestamp" in self.manifest["metadata"]

    @property
    def member_labels(self) -> Mapping[str, str]:
        """The label of its nodes."""
        return {MEMBER_LABEL: member_value(self.key.namespace, self.key.name)}


@dataclass(slots=True, kw_only=True)
class NodeObject:
    """An object of kind VPSieNode; the manifest and the status are those of the last write.

    Args:
        spec: Its spec; None if it is not valid.
        problems: What is wrong with it; such an object is left alone.
        claimed: Whether its Node belongs to another object, which `problems` names.
    """

    manifest: Manifest
    spec: VPSieNodeSpec | None
    status: VPSieNodeStatus
    problems: tuple[FieldProblem, ...] = ()
    claimed: bool = False

    @property
    def key(self) -> ObjectKey:
        """The object."""
        return ObjectKey.of(self.manifest)

    @property
    def name(self) -> str:
        """Its name, which is the name of its machine, too."""
        return str(self.manifest["metadata"]["name"])

    @property
    def node_name(self) -> str:
        """The name of its Node; its own as long as that is not known."""
        return self.status.node_name or self.name

    @property
    def group(self) -> str:
        """The name of its group in decisions; empty if the object is not valid."""
        return f"{self.key.namespace}/{self.spec.node_group_name}" if self.spec is not None else ""

    @property
    def uid(self) -> str:
        """Its uid."""
        return str(self.manifest["metadata"].get("uid") or "")

    @property
    def ending(self) -> bool:
        """Whether it is being deleted."""
        return "deletionTimestamp" in self.manifest["metadata"]

    @property
    def leaving(self) -> bool:
        """Whether its node is on its way out, and counts for its group no more."""
        return self.ending or self.status.drain is not None or self.status.phase in ("Terminating", "Failed")

    @property
    def booting(self) -> bool:
        """Whether its node is on its way, or was ready and is missing for the moment."""
        return not self.leaving and self.status.phase in ("Pending", "Provisioning", "Joining")


def reject_second_claims(nodes: Iterable[NodeObject]) -> list[NodeObject]:
    """Return objects of kind VPSieNode in which each Node belongs to one of them: the oldest valid one.

    Objects of one name in two namespaces would otherwise share a machine, and deleting one would delete the node of the
    other group.

    Args:
        nodes: The objects; those whose Node belongs to another one are returned with a problem that names it.
    """
    owners: dict[str, NodeObject] = {}
    found = []
    for node in sorted(nodes, key=_by_age):
        owner = owners.setdefault(node.node_name, node)
        if owner is not node:
            other = f"VPSieNode {owner.key.namespace}/{owner.name} of group {owner.group or 'unknown'}"
            detail = f"node {node.node_name} belongs to {other}: delete one of the two objects"
            # In place of a problem that says less (see `reject_foreign_claims`).
            known = node.problems[:-1] if node.claimed else node.problems
            problems = (*known, FieldProblem("metadata.name", detail))
            node = replace(node, problems=problems, claimed=True)  # noqa: PLW2901 (the same one, rejected)
        found.append(node)
    return found


def reject_foreign_claims(nodes: Iterable[NodeObject], joined: Mapping[str, Manifest]) -> list[NodeObject]:
    """Return objects of kind VPSieNode in which none that has requested no machine yet has the name of a foreign Node.

    A Node would otherwise be set up, drained and deleted because of a name.

    Args:
        nodes: The objects; those with the name of a foreign Node are returned with a problem that names it.
        joined: The Nodes by name.
    """
    return [_without_foreign(node, joined.get(node.name)) for node in nodes]


def _without_foreign(node: NodeObject, joined: Manifest | None) -> NodeObject:
    status, spec = node.status, node.spec
    if joined is None or status.requested_at is not None or status.node_name or status.phase != "Pending":
        return node
    labels = Fields(joined, "", []).child("metadata").labels("labels")
    # Set on the Nodes of this controller: that of an object whose status was lost.
    if spec is not None and labels.get(MEMBER_LABEL) == member_value(node.key.namespace, spec.node_group_name):
        return node
    detail = (
        f"a Node {node.name} exists, and it does not have the label {MEMBER_LABEL} of the group, "
        "so nothing shows that it is the node of this object: delete the object"
    )
    return replace(node, problems=(*node.problems, FieldProblem("metadata.name", detail)), claimed=True)


def _by_age(node: NodeObject) -> tuple[bool, str, str, str]:
    created = str(node.manifest["metadata"].get("creationTimestamp") or "")
    # A valid object is never rejected in favour of one that cannot be run.
    return bool(node.problems), created, node.key.namespace, node.name


def member_value(namespace: str, name: str) -> str:
    """Return the value of `MEMBER_LABEL` for a group; hashed if it would be too long.

    Example:
        >>> member_value("default", "workers"), len(member_value("default", "w" * 63))
        ('default.workers', 63)
    """
    # A namespace contains no dot, so that no two groups have the same value.
    value = f"{namespace}.{name}"
    return value if len(value) <= _LONGEST_LABEL else f"{value[: _LONGEST_LABEL - _DIGEST - 1]}-{_digest(value)}"


def node_name(group: GroupObject, now: datetime, number: int) -> str:
    """Return the name of a new node; the same for the same reconcile, and never used again."""
    return f"{name_prefix(group.key.name)}-{_digest(f'{group.uid}/{now.isoformat()}/{number}')}"


def twin_name(group: GroupObject, machine: str) -> str:
    """Return the name of the object of a second machine that was created for a request.

    Args:
        machine: The id of the machine.
    """
    return f"{name_prefix(group.key.name)}-{_digest(f'{group.uid}/{machine}')}"


def name_prefix(group: str) -> str:
    """Return what the names of all nodes of a group begin with, before the last hyphen.

    Args:
        group: The name of the group, without its namespace.
    """
    return group[:_LONGEST_PREFIX].rstrip("-.")


def read_group(manifest: Manifest) -> GroupObject:
    """Parse an object of kind NodeGroup; never fails.

    Example:
        >>> group = read_group({"metadata": {"name": "g"}, "spec": {"minNodes": 3, "maxNodes": 2,
        ...     "datacenterID": "fra", "offeringIDs": ["small"]}})
        >>> group.spec, str(group.problems[0])
        (None, 'spec: minNodes must not be above maxNodes, got 3 and 2')
    """
    spec, problems = _read(NodeGroupSpec, manifest, "spec")
    return GroupObject(manifest=manifest, spec=spec, status=_read_status(manifest), problems=problems)


def _read_status(manifest: Manifest) -> NodeGroupStatus:
    """Return the status of a group without the fields and list items that cannot be read, which are logged."""
    # A user corrects a spec, but not a status: the rest of it still steers scaling.
    value: Any = manifest.get("status")
    try:
        return NodeGroupStatus.model_validate({} if value is None else value)
    except ValidationError as error:
        wrong = {each["loc"][:2] or ("",) for each in error.errors()}
    _, problems = _read(NodeGroupStatus, manifest, "status")
    metadata = manifest["metadata"]
    _log.warning(
        "NodeGroup %s/%s: what cannot be read of the status is left out: %s",
        metadata.get("namespace", ""),
        metadata.get("name", ""),
        "; ".join(map(str, problems)),
    )
    kept = {}
    for name, part in value.items() if isinstance(value, dict) else ():
        if isinstance(part, list) and (name,) not in wrong:
            kept[name] = [each for number, each in enumerate(part) if (name, number) not in wrong] or None
        elif all(where[0] != name for where in wrong):
            kept[name] = part
    try:
        return NodeGroupStatus.model_validate(kept)
    except ValidationError:
        return NodeGroupStatus()


def read_node(manifest: Manifest) -> NodeObject:
    """Parse an object of kind VPSieNode; never fails."""
    spec, problems = _read(VPSieNodeSpec, manifest, "spec")
    status, wrong = _read(VPSieNodeStatus, manifest, "status")
    return NodeObject(manifest=manifest, spec=spec, status=status or VPSieNodeStatus(), problems=(*problems, *wrong))


def _read(model: type[ModelT], manifest: Manifest, part: str) -> tuple[ModelT | None, tuple[FieldProblem, ...]]:
    value: Any = manifest.get(part)
    try:
        return model.model_validate({} if value is None else value), ()
    except ValidationError as error:
        found = problems_of(error.errors(), {} if value is None else value, model)
        return None, tuple(
            FieldProblem(f"{part}.{each.path}", each.detail)
            if each.path
            else FieldProblem(part, each.detail.removesuffix(", got a mapping"))
            for each in found
        )


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:_DIGEST]
