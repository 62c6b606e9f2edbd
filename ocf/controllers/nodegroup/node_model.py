"""Model of VPSieNode: one node of a group, from its request to the deletion of its machine."""

from datetime import datetime
from typing import Final, Literal

from pydantic import BaseModel, Field

from ocf.controllers.nodegroup.model import Count, Identifier, Section, Time

__all__ = ["DrainBackoff", "DrainStatus", "Phase", "PlacedPod", "VPSieNode", "VPSieNodeSpec", "VPSieNodeStatus"]

Phase = Literal["Pending", "Provisioning", "Joining", "Ready", "Draining", "Terminating", "Failed"]
"""Phase of a node, in this order; any of them may become `Failed`, which ends in `Terminating`."""


class PlacedPod(Section):
    """A pod for which a decision found a place on a node that there was."""

    pod: str = Field(description="Namespace and name of the pod.")
    node: str = Field(description="Name of the node.")


class VPSieNodeSpec(Section):
    """One node of a group; written by the controller."""

    node_group_name: str = Field(description="Name of its group.")
    instance_type: Identifier = Field(description="Its instance type.")
    datacenter_id: Identifier = Field(alias="datacenterID", description="Its datacenter or zone.")
    pods: list[str] | None = Field(
        default=None, max_length=1000, description="Pods for which it was requested, as namespace and name."
    )
    placed_pods: list[PlacedPod] | None = Field(
        default=None, max_length=1000, description="Pods for which the same decision found a place on other nodes."
    )


class DrainStatus(Section):
    """A drain that has begun and not ended."""

    started_at: Time = Field(description="When it began.")
    phase: Literal["cordon", "evict", "wait", "delete", "uncordon", "done", "gave_up"] = Field(
        description="How far it is."
    )
    message: str = Field(default="", description="What it waits for.")
    cordoned: bool = Field(
        default=False, description="Whether the controller cordoned the Node; only then does it uncordon it."
    )
    pod: str = Field(default="", description="A pod that it waits for, as namespace and name.")
    waiting_since: Time | None = Field(default=None, description="Since when it waits for this pod.")


class DrainBackoff(Section):
    """Drains of a node that were given up."""

    failures: Count = Field(description="How many in a row.")
    until: Time = Field(description="Until when the node is not drained again.")
    message: str = Field(default="", description="Why the last one was given up.")


# Those of drains are bounded where they are used.
_TIMES: Final = (
    "requested_at",
    "accepted_at",
    "running_at",
    "joined_at",
    "ready_at",
    "unready_since",
    "unlisted_since",
    "failed_at",
    "terminating_at",
)


class VPSieNodeStatus(Section):
    """What has happened to a node so far."""

    phase: Phase = "Pending"
    node_name: str = Field(default="", description="Name of the Node, once it is known.")
    machine_id: str = Field(default="", description="Identifier of the machine at the provider, once it is known.")
    requested_at: Time | None = Field(default=None, description="When the machine was requested.")
    accepted_at: Time | None = Field(default=None, description="When the provider accepted the request.")
    excluded_machines: list[str] | None = Field(
        default=None, description="Machines that existed before, where the provider does not keep names."
    )
    running_at: Time | None = Field(default=None, description="When the provider first reported it as running.")
    joined_at: Time | None = Field(default=None, description="When its Node was first seen.")
    ready_at: Time | None = Field(default=None, description="When its Node was first ready.")
    unready_since: Time | None = Field(
        default=None, description="Since when its Node is missing or not ready; only once it was ready."
    )
    unlisted_since: Time | None = Field(
        default=None, description="Since when the provider does not list its machine; only once the machine was known."
    )
    failed_at: Time | None = Field(default=None, description="When it failed.")
    drain: DrainStatus | None = Field(default=None, description="Its drain; absent if it is not being drained.")
    drain_backoff: DrainBackoff | None = Field(
        default=None, description="Its drains that were given up; absent without any."
    )
    terminating_at: Time | None = Field(default=None, description="When the deletion of its machine began.")
    last_error: str = Field(default="", description="The last failure.")
    observed_generation: int = Field(default=0, json_schema_extra={"format": "int64"})

    def until(self, now: datetime) -> "VPSieNodeStatus":
        """Return the status with instants of the future moved to now: a clock was set back, or a user wrote them."""
        later = {name: now for name in _TIMES if (at := getattr(self, name)) is not None and at > now}
        return self.model_copy(update=later) if later else self


class VPSieNode(BaseModel):
    """A node of a node group, from its request to the deletion of its machine."""

    spec: VPSieNodeSpec
    status: VPSieNodeStatus | None = None
