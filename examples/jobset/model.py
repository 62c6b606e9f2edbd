"""The custom resource JobSet: the fields that the controller reads, and their defaults.

Templates of Jobs and claims have no schema here: they are passed on as the user wrote them, also with fields that only
a newer API server knows.
"""

from typing import Annotated, Any, Final, Literal, TypeAlias

from pydantic import Field

from ocf.runtime.crds import CamelModel, CustomResource, ListMap, OwnerStatus, Preserve, PrinterColumn

__all__ = ["PREFIX", "Action", "FailureRule", "JobSet", "JobSetStatus", "ReplicatedJob", "ReplicatedJobStatus"]

PREFIX: Final = "jobset.sigs.k8s.io/"  # of labels and annotations

Template: TypeAlias = Annotated[dict[str, Any], Preserve()]

# What a failed Job leads to.
Action: TypeAlias = Literal[
    "FailJobSet", "RestartJobSet", "RestartJobSetAndIgnoreMaxRestarts", "RestartJob", "RestartJobAndIgnoreMaxRestarts"
]


class Dependency(CamelModel):
    """What an earlier replicated Job must have reached."""

    name: str
    status: Literal["Ready", "Complete"]


class ReplicatedJob(CamelModel):
    """Jobs of one template."""

    name: str
    group_name: str = "default"
    replicas: int = Field(default=1, ge=0)
    template: Template
    depends_on: list[Dependency] = Field(default=[])


class Network(CamelModel):
    """How the pods find each other."""

    hostnames: bool = Field(default=True, alias="enableDNSHostnames")
    subdomain: str = Field(default="", description="Name of the headless Service; that of the JobSet if it is empty.")
    publish_not_ready_addresses: bool = True


class SuccessPolicy(CamelModel):
    """When the JobSet is complete."""

    operator: Literal["All", "Any"] = "All"
    target_replicated_jobs: list[str] = Field(default=[], description="Which replicated Jobs count; all if empty.")


class FailureRule(CamelModel):
    """An action for some failures."""

    name: str = Field(default="", pattern="^([A-Za-z][A-Za-z0-9_,:]*)?$", description="Part of a condition's reason.")
    action: Action
    on_job_failure_reasons: list[str] = Field(default=[])
    on_job_failure_message_patterns: list[str] = Field(default=[])
    target_replicated_jobs: list[str] = Field(default=[])


class FailurePolicy(CamelModel):
    """What a failed Job leads to: the action of the first rule that matches, or else a restart."""

    max_restarts: int = 0
    restart_strategy: str = "Recreate"
    rules: list[FailureRule] = Field(default=[])


class StartupPolicy(CamelModel):
    """Whether a replicated Job waits until those before it have started."""

    startup_policy_order: Literal["AnyOrder", "InOrder"]


class Coordinator(CamelModel):
    """The pod whose address all Jobs get."""

    replicated_job: str
    job_index: int = 0
    pod_index: int = 0


class Retention(CamelModel):
    """What becomes of claims."""

    when_deleted: Literal["Delete", "Retain"] = "Delete"


class VolumeClaimPolicy(CamelModel):
    """Claims that all Jobs share."""

    templates: list[Template] = Field(default=[])
    retention_policy: Retention = Retention()


class JobSetSpec(CamelModel):
    """Desired state of a JobSet."""

    replicated_jobs: Annotated[list[ReplicatedJob], ListMap("name")] = Field(default=[])
    network: Network = Network()
    success_policy: SuccessPolicy = SuccessPolicy()
    failure_policy: FailurePolicy | None = None
    startup_policy: StartupPolicy | None = None
    suspend: bool = False
    coordinator: Coordinator | None = None
    managed_by: str | None = None
    ttl_seconds_after_finished: int | None = Field(default=None, ge=0)
    volume_claim_policies: list[VolumeClaimPolicy] = Field(default=[])

    @property
    def is_in_order(self) -> bool:
        """Whether replicated Jobs start one after another."""
        return self.startup_policy is not None and self.startup_policy.startup_policy_order == "InOrder"


class ReplicatedJobStatus(CamelModel):
    """Numbers of Jobs of the present attempt, by state, and the restarts of single Jobs."""

    name: str
    ready: int = 0
    succeeded: int = 0
    failed: int = 0
    active: int = 0
    suspended: int = 0
    job_restarts: list[int] | None = None
    job_restarts_count_towards_max: list[int] | None = None

    @property
    def started(self) -> int:
        """How many have started, whatever has become of them."""
        return self.ready + self.succeeded + self.failed


class JobSetStatus(OwnerStatus):
    """Observed state of a JobSet."""

    restarts: int = Field(default=0, description="How often all Jobs were replaced by those of another attempt.")
    restarts_count_towards_max: int = Field(default=0, description="Those that count towards `maxRestarts`.")
    terminal_state: str | None = None
    replicated_jobs_status: list[ReplicatedJobStatus] = Field(default=[])

    @property
    def counted_restarts(self) -> int:
        """All restarts that count towards `maxRestarts`, those of single Jobs included."""
        single = (sum(one.job_restarts_count_towards_max or ()) for one in self.replicated_jobs_status)
        return self.restarts_count_towards_max + sum(single)

    def restarts_of(self, name: str, index: int) -> int:
        """Return the restarts of a single Job."""
        return sum(sum((one.job_restarts or [])[index:][:1]) for one in self.replicated_jobs_status if one.name == name)


class JobSet(
    CustomResource[JobSetSpec, JobSetStatus],
    group="jobset.x-k8s.io",
    version="v1alpha2",
    condition="",
    columns=[PrinterColumn("TerminalState", ".status.terminalState"), PrinterColumn("Restarts", ".status.restarts")],
):
    """Jobs that start, fail, restart and end together."""

    @property
    def is_foreign(self) -> bool:
        """Whether another controller manages it."""
        return self.spec.managed_by not in {None, f"{PREFIX}jobset-controller"}
