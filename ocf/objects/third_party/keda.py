"""Models of KEDA (`keda.sh/v1alpha1`).

Source: https://keda.sh/docs/latest/reference/scaledobject-spec/.
"""

from __future__ import annotations

from ocf.objects.third_party.base import ApiModel, ApiObject, Condition

__all__ = [
    "AuthenticationRef",
    "ScaleTargetRef",
    "ScaleTrigger",
    "ScaledObject",
    "ScaledObjectSpec",
    "ScaledObjectStatus",
]


class ScaleTargetRef(ApiModel):
    """The object that is scaled; a Deployment unless it names another kind."""

    api_version: str | None = None
    kind: str | None = None
    name: str
    env_source_container_name: str | None = None


class AuthenticationRef(ApiModel):
    """The TriggerAuthentication that a trigger uses."""

    name: str
    kind: str | None = None


class ScaleTrigger(ApiModel):
    """A source of load."""

    type: str
    name: str | None = None
    metadata: dict[str, str]
    metric_type: str | None = None
    use_cached_metrics: bool | None = None
    authentication_ref: AuthenticationRef | None = None


class ScaledObjectSpec(ApiModel):
    """Target, bounds and triggers; `advanced` and `fallback` are kept as they are."""

    scale_target_ref: ScaleTargetRef
    polling_interval: int | None = None
    cooldown_period: int | None = None
    initial_cooldown_period: int | None = None
    idle_replica_count: int | None = None
    min_replica_count: int | None = None
    max_replica_count: int | None = None
    triggers: list[ScaleTrigger]


class ScaledObjectStatus(ApiModel):
    """The conditions `Ready`, `Active`, `Fallback` and `Paused`, and the HPA that KEDA has created."""

    conditions: list[Condition] | None = None
    hpa_name: str | None = None
    paused_replica_count: int | None = None


class ScaledObject(ApiObject):
    """An autoscaler by events."""

    spec: ScaledObjectSpec
    status: ScaledObjectStatus | None = None
