"""The custom resources: a cluster of workers, a group of workers, a run that has a cluster, and a scaler of a group."""

from enum import StrEnum
from typing import Annotated, Final

from pydantic import Field

from ocf.runtime.crds import CamelModel, CustomResource, OwnerStatus, PrinterColumn

__all__ = ["ComputeCluster", "ComputeRun", "GroupScaler", "Result", "ScalerSpec", "WorkerGroup"]

GROUP: Final = "workers.example.com"
Count = Annotated[int, Field(ge=0, le=500)]
Seconds = Annotated[int, Field(ge=1)]


class ClusterSpec(CamelModel):
    """The desired cluster."""

    image: str
    groups: dict[str, Count] = Field(default={"default": 2}, description="The number of workers of each group.")


class ComputeCluster(CustomResource[ClusterSpec, OwnerStatus], group=GROUP, version="v1"):
    """A scheduler, and groups of workers."""


class GroupSpec(CamelModel):
    """The desired workers."""

    cluster: str = Field(description="The cluster in the same namespace whose scheduler the workers serve.")
    image: str
    replicas: Count | None = Field(default=None, description="Without it, the group keeps the workers that it has.")
    patience_seconds: Seconds = Field(
        default=60, description="How long a scheduler that does not answer delays the end of workers."
    )


class GroupStatus(OwnerStatus):
    """Who belongs to the group, stored before a worker is started or ended."""

    workers: list[str] | None = None
    made: int | None = Field(default=None, description="How many workers were ever made; no name is used again.")


class WorkerGroup(CustomResource[GroupSpec, GroupStatus], group=GROUP, version="v1"):
    """Workers of a cluster; its scheduler chooses who of them leaves."""


class Result(StrEnum):
    """How a run has ended."""

    SUCCEEDED = "Succeeded"
    FAILED = "Failed"


class RunSpec(CamelModel):
    """The desired run."""

    cluster: ClusterSpec
    image: str
    command: list[str] = Field(default_factory=list)


class RunStatus(OwnerStatus):
    """What has become of the run, stored before its cluster is deleted."""

    runner: str | None = Field(default=None, description="The uid of the pod that runs or ran.")
    result: Result | None = None


class ComputeRun(
    CustomResource[RunSpec, RunStatus],
    group=GROUP,
    version="v1",
    condition="Finished",
    columns=[PrinterColumn("Result", ".status.result")],
):
    """A pod that works with a cluster of its own, which ends with it."""


class ScalerSpec(CamelModel):
    """The limits of the number of workers."""

    group: str = Field(description="The group of workers in the same namespace.")
    minimum: Count = 0
    maximum: Count
    period_seconds: Seconds = Field(default=10, description="How often the scheduler is asked.")
    down_after_seconds: Seconds = Field(default=60, description="How long fewer workers must suffice.")


class ScalerStatus(OwnerStatus):
    """What was decided."""

    replicas: int | None = None


class GroupScaler(CustomResource[ScalerSpec, ScalerStatus], group=GROUP, version="v1"):
    """The number of workers of a group that its scheduler asks for."""
