"""Node groups as the algorithm sees them, from objects of kind NodeGroup, and their status in both directions.

What steers scaling is read from the status and written back to it in every reconcile, so that a restart or another
leader changes no decision.
"""

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final, TypeVar

from pydantic import BaseModel, ValidationError

from ocf.controllers.nodegroup.definitions import VERSION
from ocf.controllers.nodegroup.model import (
    GROUP,
    InstanceTypeBackoff,
    NodeGroupSpec,
    NodeGroupStatus,
    UnneededNode,
    VPSieNodeSpec,
    VPSieNodeStatus,
)
from ocf.errors import FieldProblem
from ocf.nodegroups import GroupStatus, NodeGroup, ScaleDownPolicy, TypeChoice
from ocf.nodegroups.model import FIRST_BACKOFF, LONGEST_BACKOFF, Refusal
from ocf.nodegroups.snapshot.node_selectors import Taint
from ocf.objects import Manifest, ObjectKey
from ocf.objects.durations import parse_duration
from ocf.objects.model_errors import problems_of

__all__ = [
    "API_VERSION",
    "FINALIZER",
    "MEMBER_LABEL",
    "GroupObject",
    "NodeObject",
    "backoffs",
    "member_value",
    "node_name",
    "read_group",
    "read_node",
    "to_group",
    "to_group_status",
    "unneeded",
]

API_VERSION: Final = f"{GROUP}/{VERSION}"
"""apiVersion of NodeGroup and VPSieNode."""

FINALIZER: Final = f"{GROUP}/finalizer"
"""The finalizer of both kinds: nodes are deleted before their group, and machines before their nodes."""

MEMBER_LABEL: Final = f"{GROUP}/node-group"
"""The label of Nodes whose value, `member_value`, names their group."""

_LONGEST_LABEL: Final = 63
_LONGEST_PREFIX: Final = 40
_DIGEST: Final = 10

ModelT = TypeVar("ModelT", bound=BaseModel)


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupObject:
    """An object of kind NodeGroup.

    Args:
        manifest: The object as read.
        spec: Its spec; None if it is not valid.
        status: Its status; empty if it has none, or one that cannot be read.
        problems: What is wrong with the spec.
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
        manifest: The object.
        spec: Its spec; None if it is not valid.
        status: Its status.
        problems: What is wrong with it; such an object is left alone.
    """

    manifest: Manifest
    spec: VPSieNodeSpec | None
    status: VPSieNodeStatus
    problems: tuple[FieldProblem, ...] = ()

    @property
    def key(self) -> ObjectKey:
        """The object."""
        return ObjectKey.of(self.manifest)

    @property
    def name(self) -> str:
        """Its name, which is the name of its machine, too."""
        return str(self.manifest["metadata"]["name"])

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


def member_value(namespace: str, name: str) -> str:
    """Return the value of `MEMBER_LABEL` for a group; hashed if it would be too long.

    Args:
        namespace: The namespace of the group.
        name: The name of the group.

    Example:
        >>> member_value("default", "workers"), len(member_value("default", "w" * 63))
        ('default.workers', 63)
    """
    # A namespace contains no dot, so that no two groups have the same value.
    value = f"{namespace}.{name}"
    return value if len(value) <= _LONGEST_LABEL else f"{value[: _LONGEST_LABEL - _DIGEST - 1]}-{_digest(value)}"


def node_name(group: GroupObject, now: datetime, number: int) -> str:
    """Return the name of a new node; the same for the same reconcile, and never used again.

    Args:
        group: Its group.
        now: The time of the reconcile.
        number: The number of the node in this reconcile.
    """
    return f"{group.key.name[:_LONGEST_PREFIX].rstrip('-.')}-{_digest(f'{group.uid}/{now.isoformat()}/{number}')}"


def read_group(manifest: Manifest) -> GroupObject:
    """Parse an object of kind NodeGroup; never fails.

    Args:
        manifest: The object.

    Example:
        >>> group = read_group({"metadata": {"name": "g"}, "spec": {"minNodes": 3, "maxNodes": 2,
        ...     "datacenterID": "fra", "offeringIDs": ["small"]}})
        >>> group.spec, str(group.problems[0])
        (None, 'spec: minNodes must not be above maxNodes, got 3 and 2')
    """
    spec, problems = _read(NodeGroupSpec, manifest, "spec")
    status, _ = _read(NodeGroupStatus, manifest, "status")
    return GroupObject(manifest=manifest, spec=spec, status=status or NodeGroupStatus(), problems=problems)


def read_node(manifest: Manifest) -> NodeObject:
    """Parse an object of kind VPSieNode; never fails.

    Args:
        manifest: The object.
    """
    spec, problems = _read(VPSieNodeSpec, manifest, "spec")
    status, wrong = _read(VPSieNodeStatus, manifest, "status")
    return NodeObject(manifest=manifest, spec=spec, status=status or VPSieNodeStatus(), problems=(*problems, *wrong))


def to_group(found: GroupObject, spec: NodeGroupSpec) -> NodeGroup:
    """Return a group for the algorithm.

    Args:
        found: The object.
        spec: Its spec.
    """
    down = spec.scale_down_policy
    return NodeGroup(
        name=found.name,
        min_nodes=spec.min_nodes,
        max_nodes=spec.max_nodes,
        instance_types=tuple(spec.offering_ids),
        preferred=spec.preferred_instance_type or "",
        zones=(spec.datacenter_id,),
        labels=dict(spec.labels or {}),
        taints=tuple(Taint(each.key, each.value, each.effect) for each in spec.taints or ()),
        member_labels=found.member_labels,
        choice=TypeChoice.CHEAPEST if spec.instance_selection == "Cheapest" else TypeChoice.PREFERRED,
        grows=spec.scale_up_policy.enabled,
        batch_size=spec.scale_up_batch_size,
        scale_up_cooldown=parse_duration(spec.scale_up_cooldown),
        scale_down=ScaleDownPolicy(
            enabled=down.enabled,
            cpu_threshold=down.cpu_threshold,
            memory_threshold=down.memory_threshold,
            duration=parse_duration(down.underutilized_for),
            cooldown=parse_duration(spec.scale_down_cooldown),
            most_empty=down.max_empty,
            most_with_pods=down.max_drained,
            consolidate=down.consolidate,
        ),
    )


def to_group_status(found: GroupObject, spec: NodeGroupSpec, draining: Iterable[str] = ()) -> GroupStatus:
    """Return what steers the scaling of a group, from its stored status.

    Args:
        found: The object.
        spec: Its spec.
        draining: The names of its nodes that are on their way out.
    """
    stored = found.status
    return GroupStatus(
        last_scale_up=stored.last_scale_up_time,
        last_scale_down=stored.last_scale_down_time,
        low_since={each.name: each.since for each in stored.unneeded or ()},
        refusals=tuple(
            Refusal(each.instance_type, spec.datacenter_id, each.until - _wait(each.failures), each.until)
            for each in stored.backoffs or ()
        ),
        draining=frozenset(draining),
    )


def unneeded(status: GroupStatus) -> list[UnneededNode] | None:
    """Return the underutilized nodes for the stored status.

    Args:
        status: What steers scaling.
    """
    return [UnneededNode(name=name, since=since) for name, since in sorted(status.low_since.items())] or None


def backoffs(
    status: GroupStatus, stored: NodeGroupStatus, messages: Mapping[str, str]
) -> list[InstanceTypeBackoff] | None:
    """Return the refused instance types for the stored status.

    Args:
        status: What steers scaling.
        stored: The status as stored before.
        messages: Why each type was refused in this reconcile, by its name.
    """
    before = {each.instance_type: each for each in stored.backoffs or ()}
    found = [_backoff(each, before.get(each.instance_type), messages) for each in status.refusals]
    return sorted(found, key=lambda each: each.instance_type) or None


def _backoff(refusal: Refusal, before: InstanceTypeBackoff | None, messages: Mapping[str, str]) -> InstanceTypeBackoff:
    if before is not None and refusal.instance_type not in messages:
        return before.model_copy(update={"until": refusal.until})
    return InstanceTypeBackoff(
        instance_type=refusal.instance_type,
        until=refusal.until,
        failures=1 if before is None else before.failures + 1,
        message=messages.get(refusal.instance_type, ""),
    )


def _wait(failures: int) -> timedelta:
    """Return how long a type is left alone after so many refusals in a row."""
    doubled: timedelta = FIRST_BACKOFF * 2 ** min(max(failures - 1, 0), 10)
    return min(doubled, LONGEST_BACKOFF)


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
