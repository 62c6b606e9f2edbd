"""The custom resource Scaler: a target of any kind, what is asked how much it has to do, and the limits."""

from __future__ import annotations

from typing import Annotated, Final, Literal

from pydantic import Field

from ocf.objects import ObjectKey
from ocf.runtime.crds import CamelModel, CustomResource, ListMap, OwnerStatus, PrinterColumn, ValidationRule, rules

__all__ = [
    "Fallback",
    "MetricQuery",
    "QueueLength",
    "Scaler",
    "ScalerSpec",
    "ScalerStatus",
    "Target",
    "Trigger",
    "Window",
]

_TIME: Final = r"^([01][0-9]|2[0-3]):[0-5][0-9]$"
_LABEL: Final = r"^[a-z]([-a-z0-9]*[a-z0-9])?$"
_ONE: Final = ValidationRule(
    "[has(self.window), has(self.queue), has(self.metric)].filter(given, given).size() == 1",
    message="give exactly one of window, queue and metric",
)
_LIMITS: Final = ValidationRule(
    "self.minReplicas <= self.maxReplicas", message="minReplicas must be at most maxReplicas"
)


class Target(CamelModel):
    """The workload: any kind with a Scale."""

    api_version: str = "apps/v1"
    kind: str = "Deployment"
    name: str


class Window(CamelModel):
    """Hours of each day in which the target has at least so many replicas; they may pass midnight."""

    start: str = Field(pattern=_TIME)
    end: str = Field(pattern=_TIME)
    replicas: int = Field(ge=1)


class QueueLength(CamelModel):
    """The field `length` of a JSON document."""

    url: str
    per_replica: int = Field(ge=1)
    activation: int = Field(default=0, ge=0, description="A longer queue starts the target.")


class MetricQuery(CamelModel):
    """The first value of an instant query, in the API of Prometheus."""

    server: str
    query: str
    per_replica: int = Field(ge=1)
    activation: int = Field(default=0, ge=0, description="A larger value starts the target.")


@rules(_ONE)
class Trigger(CamelModel):
    """What is asked how much the target has to do."""

    name: str = Field(pattern=_LABEL, max_length=40)
    window: Window | None = None
    queue: QueueLength | None = None
    metric: MetricQuery | None = None

    @property
    def per_replica(self) -> int:
        """The value that one replica is enough for."""
        source = self.queue or self.metric
        return source.per_replica if source else 1

    @property
    def activation(self) -> int:
        """A larger value starts the target."""
        source = self.queue or self.metric
        return source.activation if source else 0


class Fallback(CamelModel):
    """What a trigger counts for that could not be asked for a while."""

    after_seconds: int = Field(default=120, ge=0)
    replicas: int = Field(ge=1)


@rules(_LIMITS)
class ScalerSpec(CamelModel):
    """The target and its limits."""

    target: Target
    triggers: Annotated[list[Trigger], ListMap("name")] = Field(min_length=1, max_length=20)
    poll_seconds: int = Field(default=30, ge=1)
    cooldown_seconds: int = Field(
        default=300, ge=0, description="How long all is done before the target has 0 replicas."
    )
    min_replicas: int = Field(default=0, ge=0)
    max_replicas: int = Field(default=10, ge=1)
    fallback: Fallback | None = None
    autoscaler: str | None = Field(default=None, description="The name of the HPA; one that exists is adopted.")
    suspended: bool = Field(default=False, description="Nothing is scaled, but to suspendedReplicas.")
    suspended_replicas: int | None = Field(default=None, ge=0)
    on_deletion: Literal["Keep", "Restore"] = "Keep"


class ScalerStatus(OwnerStatus):
    """What must be known in the next reconcile, too."""

    original_replicas: int | None = Field(default=None, description="What the target had before it was scaled.")
    failing: dict[str, str] | None = Field(default=None, description="Triggers to the times since which they fail.")


class Scaler(
    CustomResource[ScalerSpec, ScalerStatus],
    group="scaler.example.com",
    version="v1",
    columns=[PrinterColumn("Target", ".spec.target.name")],
):
    """A scaler of one workload."""

    @property
    def target(self) -> ObjectKey:
        """The workload."""
        found = self.spec.target
        return ObjectKey(found.api_version, found.kind, found.name, self.metadata.namespace or "")

    @property
    def autoscaler(self) -> str:
        """The name of the HPA."""
        return self.spec.autoscaler or self.metadata.name
