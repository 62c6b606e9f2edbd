"""Model of NodeGroup: fields, defaults and validation.

Where the API server checks a rule with CEL, the model checks it too, so that an object that was stored before a rule
existed is reported instead of used.
"""

from datetime import UTC, datetime
from typing import Annotated, Final, Literal, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, PlainSerializer, WithJsonSchema, model_validator
from pydantic.alias_generators import to_camel

from ocf.objects import Quantity, format_time
from ocf.objects.durations import parse_duration
from ocf.objects.manifest import PREFIX
from ocf.runtime.crds import ListMap, ListSet, ValidationRule, rules

__all__ = [
    "GROUP",
    "BlockedNode",
    "Condition",
    "Count",
    "Identifier",
    "InstanceTypeBackoff",
    "NodeGroup",
    "NodeGroupSpec",
    "NodeGroupStatus",
    "ScaleDownPolicy",
    "ScaleUpPolicy",
    "Section",
    "Taint",
    "Time",
    "TypeGapStatus",
    "UnneededNode",
]

GROUP: Final = f"autoscaling.{PREFIX}"
"""The API group of NodeGroup and VPSieNode."""

_DURATION: Final = r"^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$"
_IDENTIFIER: Final = r"^[A-Za-z0-9_-]+$"
_LABEL_KEY: Final = r"^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$"
_LABEL_VALUE: Final = r"^([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?$"
_RESERVED: Final = ("kubernetes.io", "k8s.io")


def _checked(text: str) -> str:
    parse_duration(text)
    return text


Duration = Annotated[str, Field(pattern=_DURATION, max_length=32), AfterValidator(_checked)]
"""A duration such as `90s` or `1h30m`; `ocf.objects.durations.parse_duration` reads it."""

Count = Annotated[int, Field(json_schema_extra={"format": "int32"})]
"""A number of 32 bits."""

Percent = Annotated[int, Field(ge=0, le=100, json_schema_extra={"format": "int32"})]
Identifier = Annotated[str, Field(pattern=_IDENTIFIER, min_length=1, max_length=128)]


class Section(BaseModel):
    """Immutable model whose fields have the names of the API (camel case)."""

    model_config = ConfigDict(frozen=True, alias_generator=to_camel, populate_by_name=True)


@rules(
    ValidationRule(
        "self.key.split('/').size() == 1 || !self.key.split('/')[0].endsWith('kubernetes.io')"
        " && !self.key.split('/')[0].endsWith('k8s.io')",
        message="the prefixes kubernetes.io and k8s.io are reserved",
        field_path=".key",
    )
)
class Taint(Section):
    """A taint that every node of the group gets when it joins."""

    key: str = Field(pattern=_LABEL_KEY, max_length=317, description="Key of the taint.")
    value: str = Field(default="", pattern=_LABEL_VALUE, max_length=63, description="Value of the taint.")
    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute"] = Field(description="Effect on pods.")


class ScaleUpPolicy(Section):
    """When and how nodes are added."""

    enabled: bool = Field(default=True, description="Whether nodes are added for pods that do not fit.")
    boot_timeout: Duration = Field(
        default="15m", description="Time after which a node that has not joined is given up."
    )
    startup_taints: Annotated[list[Annotated[str, Field(pattern=_LABEL_KEY, max_length=317)]], ListSet()] | None = (
        Field(
            default=None,
            max_length=64,
            description="Keys of taints that are removed from a node once it is set up; until then it is on its way.",
        )
    )
    startup_resources: Annotated[list[Annotated[str, Field(pattern=_LABEL_KEY, max_length=317)]], ListSet()] | None = (
        Field(
            default=None,
            max_length=64,
            description="Extended resources that a node reports after it is ready; until then it is on its way.",
        )
    )


class ScaleDownPolicy(Section):
    """When and how nodes are removed."""

    enabled: bool = Field(default=True, description="Whether nodes that are not needed are removed.")
    cpu_threshold: Percent = Field(
        default=50,
        description="A node is underutilized if less than this percentage of its CPU is used, and …",
    )
    memory_threshold: Percent = Field(default=50, description="… less than this percentage of its memory.")
    utilization: Literal["Requests", "Usage"] = Field(
        default="Requests",
        description="What the utilization is computed from: requests of pods, or measured use of nodes.",
    )
    underutilized_for: Duration = Field(
        default="10m", description="How long a node must be underutilized before it is removed."
    )
    max_empty: Count = Field(default=10, ge=0, le=1000, description="Most nodes without pods removed in one reconcile.")
    max_drained: Count = Field(default=1, ge=0, le=1000, description="Most nodes with pods removed in one reconcile.")
    drain_timeout: Duration = Field(
        default="10m", description="Time after which a drain is given up, and the node uncordoned."
    )
    consolidate: bool = Field(
        default=False, description="Whether a node is also replaced by a cheaper one on which its pods fit."
    )
    saving_threshold: Annotated[Percent, Field(ge=1)] = Field(
        default=15, description="Percentage of the price of nodes that cheaper ones have to save."
    )
    replace_after: Duration = Field(
        default="1h", description="How old a node must be before it is replaced by a cheaper one."
    )


@rules(
    ValidationRule(
        "self.minNodes <= self.maxNodes", message="minNodes must not be above maxNodes", field_path=".minNodes"
    ),
    ValidationRule(
        "!has(self.preferredInstanceType) || self.preferredInstanceType in self.offeringIDs",
        message="preferredInstanceType must be one of offeringIDs",
        field_path=".preferredInstanceType",
    ),
    ValidationRule(
        "!has(self.labels) || self.labels.all(key, key.matches('^([^/]+/)?[^/]+$')"
        " && !key.matches('^([^/]*[.])?(kubernetes|k8s)[.]io/'))",
        message="the prefixes kubernetes.io and k8s.io are reserved",
        field_path=".labels",
    ),
)
class NodeGroupSpec(Section):
    """The desired state of a node group."""

    min_nodes: Count = Field(ge=0, le=1000, description="Fewest nodes of the group.")
    max_nodes: Count = Field(ge=1, le=1000, description="Most nodes of the group.")
    datacenter_id: Identifier = Field(
        alias="datacenterID", description="Datacenter or zone in which nodes are created."
    )
    offering_ids: Annotated[list[Identifier], ListSet()] = Field(
        alias="offeringIDs",
        min_length=1,
        max_length=100,
        description="Instance types of its nodes, in order of choice.",
    )
    preferred_instance_type: Identifier | None = Field(
        default=None, description="Instance type that is used as long as it is available."
    )
    instance_selection: Literal["Preferred", "Cheapest"] = Field(
        default="Preferred",
        description="How an instance type is chosen: the preferred or first available one, or the mix of types with the"
        " lowest price that takes all pods.",
    )
    labels: dict[str, Annotated[str, Field(pattern=_LABEL_VALUE, max_length=63)]] | None = Field(
        default=None, max_length=64, description="Labels of its nodes."
    )
    taints: Annotated[list[Taint], ListMap("key", "effect")] | None = Field(
        default=None, max_length=64, description="Taints of its nodes."
    )
    scale_up_batch_size: Count = Field(
        default=0, ge=0, le=1000, description="Most nodes that are requested in one reconcile; 0 for no limit."
    )
    scale_up_cooldown: Duration = Field(
        default="0s",
        description="Time since the last scale-up before nodes are added for pods that do not fit.",
    )
    scale_down_cooldown: Duration = Field(
        default="10m", description="Time since the last scaling before a node is removed; 0s for none."
    )
    scale_up_policy: ScaleUpPolicy = Field(default=ScaleUpPolicy(), description="When and how nodes are added.")
    scale_down_policy: ScaleDownPolicy = Field(default=ScaleDownPolicy(), description="When and how nodes are removed.")

    @model_validator(mode="after")
    def _check(self) -> Self:
        problems = []
        if self.min_nodes > self.max_nodes:
            problems.append(f"minNodes must not be above maxNodes, got {self.min_nodes} and {self.max_nodes}")
        if self.preferred_instance_type not in (None, *self.offering_ids):
            problems.append(f"preferredInstanceType must be one of offeringIDs, got {self.preferred_instance_type!r}")
        reserved = [key for key in self.labels or {} if _is_reserved(key)]
        reserved += [taint.key for taint in self.taints or () if _is_reserved(taint.key)]
        problems += [f"{key!r}: the prefixes kubernetes.io and k8s.io are reserved" for key in reserved]
        if problems:
            raise ValueError("; ".join(problems))
        return self


Time = Annotated[datetime, PlainSerializer(format_time), WithJsonSchema({"type": "string", "format": "date-time"})]
"""A time with a precision of seconds."""


_EARLIEST: Final = datetime(1970, 1, 1, tzinfo=UTC)
_LATEST: Final = datetime(9000, 1, 1, tzinfo=UTC)


def _calculable(at: datetime) -> datetime:
    if at.tzinfo is None or not _EARLIEST <= at < _LATEST:
        raise ValueError("must be a time with a time zone, from the year 1970 to 8999")
    return at


def _measurable(text: str) -> str:
    Quantity.parse(text)
    return text


# Decisions add durations to these times, and compare them.
_SteeringTime = Annotated[Time, AfterValidator(_calculable)]
_Amount = Annotated[str, AfterValidator(_measurable)]


class Condition(Section):
    """A condition, as `metav1.Condition`."""

    type: str
    status: Literal["True", "False", "Unknown"]
    reason: str
    message: str = ""
    last_transition_time: Time
    observed_generation: int = Field(default=0, json_schema_extra={"format": "int64"})


class BlockedNode(Section):
    """A node that would be removed if a rule did not forbid it."""

    name: str = Field(description="Name of the node.")
    reason: str = Field(description="The rule that forbids it.")
    message: str = Field(default="", description="Why it does.")


class InstanceTypeBackoff(Section):
    """An instance type that the provider has refused."""

    instance_type: str = Field(description="Name of the instance type.")
    until: _SteeringTime = Field(description="When it is requested again.")
    failures: Count = Field(default=1, description="How many times in a row it was refused.")
    message: str = Field(default="", description="What the provider answered.")


class UnneededNode(Section):
    """A node that is underutilized."""

    name: str = Field(description="Name of the node.")
    since: _SteeringTime = Field(description="Since when it is underutilized without interruption.")


class TypeGapStatus(Section):
    """What nodes of an instance type lack of what the type promises."""

    instance_type: str = Field(description="Name of the instance type.")
    resources: dict[str, _Amount] | None = Field(default=None, description="What pods can request, where it is less.")
    labels: dict[str, str] | None = Field(default=None, description="Labels that nodes lack.")
    taints: list[str] | None = Field(
        default=None, description="Taints that nodes have beyond those of the group, as key=value:effect."
    )
    overhead: dict[str, _Amount] | None = Field(
        default=None, description="What pods of each node use beyond the templates of DaemonSets."
    )
    pod: str = Field(default="", description="A pod for which no node of the type is added because of it, if any.")
    failures: Count = Field(default=1, description="How many times in a row new nodes were not as promised.")
    until: _SteeringTime | None = Field(default=None, description="Until when this counts, once there is no such node.")


class NodeGroupStatus(Section):
    """The observed state of a node group, and all that steers its scaling."""

    current_nodes: Count = Field(default=0, description="Nodes of the group, those that have not joined yet included.")
    desired_nodes: Count = Field(default=0, description="How many nodes the group should have.")
    ready_nodes: Count = Field(default=0, description="Nodes that are ready.")
    last_scale_time: _SteeringTime | None = Field(default=None, description="When a node was last added or removed.")
    last_scale_up_time: _SteeringTime | None = Field(default=None, description="When a node was last added.")
    last_scale_down_time: _SteeringTime | None = Field(default=None, description="When a node was last removed.")
    last_decision: str = Field(default="", description="What was decided last, and why.")
    unneeded: Annotated[list[UnneededNode], ListMap("name")] | None = None
    replaced: list[str] | None = Field(default=None, description="The nodes that cheaper ones are to replace.")
    blocked: Annotated[list[BlockedNode], ListMap("name")] | None = None
    backoffs: Annotated[list[InstanceTypeBackoff], ListMap("instanceType")] | None = None
    type_gaps: Annotated[list[TypeGapStatus], ListMap("instanceType")] | None = None
    conditions: Annotated[list[Condition], ListMap("type")] | None = None
    observed_generation: int = Field(default=0, json_schema_extra={"format": "int64"})


class NodeGroup(BaseModel):
    """A group of nodes that grows and shrinks with what runs on it."""

    spec: NodeGroupSpec
    status: NodeGroupStatus | None = None


def _is_reserved(key: str) -> bool:
    prefix, slash, _ = key.rpartition("/")
    return bool(slash) and any(prefix == each or prefix.endswith(f".{each}") for each in _RESERVED)
