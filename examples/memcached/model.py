"""Models of the custom resource Memcached, for Python and for the schema of the API server.

`ocf.runtime.crds` generates the CustomResourceDefinition from these models, so types, bounds, patterns, defaults and
descriptions are written once. Every section is frozen: defaulting creates new ones. Only constant defaults are declared
here; `examples.memcached.defaulting` sets those that depend on other fields.
"""

from typing import Annotated, Final, Literal, TypeAlias

from kubernetes.client import (
    V1NetworkPolicyPeer,
    V1PodSecurityContext,
    V1ResourceRequirements,
    V1SecurityContext,
    V1TopologySpreadConstraint,
    V2HorizontalPodAutoscalerBehavior,
    V2MetricSpec,
)
from pydantic import Field

from ocf.runtime.crds import CamelModel, CustomResource, OwnerStatus, PrinterColumn

__all__ = [
    "EXPORTER_IMAGE",
    "GROUP",
    "IMAGE",
    "VERSION",
    "Autoscaling",
    "DisruptionBudget",
    "GracefulShutdown",
    "HighAvailability",
    "Memcached",
    "MemcachedSpec",
    "MemcachedStatus",
    "Monitoring",
    "NetworkAccess",
    "Sasl",
    "SecretReference",
    "Security",
    "ServerSettings",
    "ServiceMonitorSettings",
    "ServiceSettings",
    "Tls",
]

GROUP: Final = "memcached.c5c3.io"
VERSION: Final = "v1alpha1"
IMAGE: Final = "memcached:1.6"
EXPORTER_IMAGE: Final = "prom/memcached-exporter:v0.15.4"

# Counts are 32-bit integers in the API; the API server rejects larger ones in the generated objects.
Count: TypeAlias = Annotated[int, Field(json_schema_extra={"format": "int32"})]
_MOST: Final = 2**31 - 1


class ServerSettings(CamelModel):
    """Command-line settings of memcached."""

    max_memory_mb: Count = Field(
        default=64, ge=16, le=65536, alias="maxMemoryMB", description="Memory for items, in MB (-m)."
    )
    max_connections: Count = Field(default=1024, ge=1, le=65536, description="Connections at a time (-c).")
    threads: Count = Field(default=4, ge=1, le=128, description="Worker threads (-t).")
    max_item_size: str = Field(
        default="1m", pattern="^[0-9]+(k|m)$", description="The largest item, `512k` or `2m` (-I)."
    )
    verbosity: Count = Field(default=0, ge=0, le=2, description="How much it logs: 0, 1 (-v) or 2 (-vv).")
    extra_args: list[str] | None = Field(default=None, description="Further arguments, after all others.")


class DisruptionBudget(CamelModel):
    """The PodDisruptionBudget: at most one of the two limits; without either, one pod stays available."""

    enabled: bool = Field(default=False, description="Whether there is a PodDisruptionBudget.")
    min_available: int | str | None = Field(default=None, description="How many pods stay: a count, or `50%`.")
    max_unavailable: int | str | None = Field(default=None, description="How many pods may be gone: a count, or `50%`.")


class GracefulShutdown(CamelModel):
    """Delayed termination of a pod."""

    enabled: bool = Field(default=False, description="Whether connections are given time to go elsewhere.")
    pre_stop_delay_seconds: Count = Field(default=10, ge=1, le=300, description="How long memcached goes on serving.")
    termination_grace_period_seconds: int = Field(
        default=30,
        ge=1,
        le=600,
        json_schema_extra={"format": "int64"},
        description="When the pod is killed at the latest.",
    )


class HighAvailability(CamelModel):
    """Settings that keep the cache available when a node fails or is drained."""

    anti_affinity_preset: Literal["soft", "hard"] = Field(
        default="soft", description="Whether pods should (soft) or must (hard) run on different nodes."
    )
    topology_spread_constraints: list[V1TopologySpreadConstraint] | None = Field(
        default=None, description="How pods spread over zones and the like."
    )
    pod_disruption_budget: DisruptionBudget | None = None
    graceful_shutdown: GracefulShutdown | None = None


class ServiceMonitorSettings(CamelModel):
    """The ServiceMonitor, which makes Prometheus scrape the exporter."""

    additional_labels: dict[str, str] | None = Field(default=None, description="Labels by which Prometheus selects it.")
    interval: str = Field(default="30s", description="How often it is scraped.")
    scrape_timeout: str = Field(default="10s", description="How long a scrape may take.")


class Monitoring(CamelModel):
    """The exporter beside memcached."""

    enabled: bool = Field(default=False, description="Whether the exporter runs in every pod.")
    exporter_image: str = Field(default=EXPORTER_IMAGE, description="Its image.")
    exporter_resources: V1ResourceRequirements | None = None
    service_monitor: ServiceMonitorSettings | None = Field(
        default=None, description="A ServiceMonitor for it; needs monitoring to be enabled."
    )


class SecretReference(CamelModel):
    """A Secret of the same namespace."""

    name: str = Field(default="", description="Its name.")


class Sasl(CamelModel):
    """Authentication with passwords."""

    enabled: bool = Field(default=False, description="Whether clients have to log in.")
    credentials_secret_ref: SecretReference = Field(
        default=SecretReference(), description="The Secret with the key `password-file`."
    )


class Tls(CamelModel):
    """Encryption of connections."""

    enabled: bool = Field(default=False, description="Whether memcached speaks TLS.")
    certificate_secret_ref: SecretReference = Field(
        default=SecretReference(), description="The Secret with the keys `tls.crt` and `tls.key`."
    )
    enable_client_cert: bool = Field(
        default=False, description="Whether clients show a certificate of `ca.crt` of the Secret."
    )


class NetworkAccess(CamelModel):
    """The NetworkPolicy."""

    enabled: bool = Field(default=False, description="Whether there is a NetworkPolicy.")
    allowed_sources: list[V1NetworkPolicyPeer] | None = Field(
        default=None, description="From where; everywhere if empty."
    )


class Security(CamelModel):
    """Security contexts, authentication, encryption and network access."""

    pod_security_context: V1PodSecurityContext | None = None
    container_security_context: V1SecurityContext | None = None
    sasl: Sasl | None = None
    tls: Tls | None = None
    network_policy: NetworkAccess | None = None


class Autoscaling(CamelModel):
    """The HorizontalPodAutoscaler; while it is enabled, it owns the replica count of the Deployment."""

    enabled: bool = Field(default=False, description="Whether there is a HorizontalPodAutoscaler.")
    min_replicas: Count | None = Field(default=None, ge=1, le=_MOST, description="The lowest count; 1 if absent.")
    max_replicas: Count | None = Field(
        default=None, ge=1, le=_MOST, description="The highest count; required while enabled."
    )
    metrics: list[V2MetricSpec] | None = Field(
        default=None, description="What it scales by; 80 % of the cpu if absent."
    )
    behavior: V2HorizontalPodAutoscalerBehavior | None = Field(
        default=None, description="How fast it scales; with 300 s of stabilization on the way down if absent."
    )


class ServiceSettings(CamelModel):
    """The Service."""

    annotations: dict[str, str] | None = Field(default=None, description="Its annotations.")


class MemcachedSpec(CamelModel):
    """Desired state of the cache."""

    replicas: Count | None = Field(
        default=None, ge=0, le=64, description="Number of pods while autoscaling is not enabled."
    )
    image: str = Field(default=IMAGE, description="The image of memcached.")
    resources: V1ResourceRequirements | None = None
    memcached: ServerSettings | None = None
    high_availability: HighAvailability | None = None
    monitoring: Monitoring | None = None
    security: Security | None = None
    autoscaling: Autoscaling | None = None
    service: ServiceSettings | None = None
    suspended: bool = Field(default=False, description="Whether the cache is suspended: no pods, and no autoscaler.")


class MemcachedStatus(OwnerStatus):
    """Observed state of the cache."""

    ready_replicas: Count | None = Field(default=None, description="How many pods serve.")
    observed_generation: int | None = Field(
        default=None,
        json_schema_extra={"format": "int64"},
        description="The generation of the spec that the status describes.",
    )
    server_list: list[str] | None = Field(
        default=None, description="Where clients find the cache; absent while it is not ready."
    )


class Memcached(
    CustomResource[MemcachedSpec, MemcachedStatus],
    group=GROUP,
    version=VERSION,
    short_names=["mc"],
    condition="",
    columns=[PrinterColumn("Replicas", ".spec.replicas"), PrinterColumn("Ready", ".status.readyReplicas")],
):
    """A cache, with the fields that the operator reads."""

    spec: MemcachedSpec = MemcachedSpec()

    @property
    def autoscaled(self) -> bool:
        """Whether the autoscaler owns the replica count: only if the section exists and is enabled."""
        return self.spec.autoscaling is not None and self.spec.autoscaling.enabled

    @property
    def replicas(self) -> int:
        """The replica count without autoscaling."""
        return 1 if self.spec.replicas is None else self.spec.replicas

    # Every section is optional; an absent section is the same as one with nothing enabled.

    @property
    def server(self) -> ServerSettings:
        """Command-line settings of memcached."""
        return self.spec.memcached or ServerSettings()

    @property
    def availability(self) -> HighAvailability:
        """Settings for high availability."""
        return self.spec.high_availability or HighAvailability()

    @property
    def budget(self) -> DisruptionBudget:
        """Settings of the PodDisruptionBudget."""
        return self.availability.pod_disruption_budget or DisruptionBudget()

    @property
    def shutdown(self) -> GracefulShutdown:
        """Delayed termination of a pod."""
        return self.availability.graceful_shutdown or GracefulShutdown()

    @property
    def monitoring(self) -> Monitoring:
        """The exporter."""
        return self.spec.monitoring or Monitoring()

    @property
    def security(self) -> Security:
        """Security contexts, authentication, encryption and network access."""
        return self.spec.security or Security()

    @property
    def sasl(self) -> Sasl:
        """Authentication with passwords."""
        return self.security.sasl or Sasl()

    @property
    def tls(self) -> Tls:
        """Encryption of connections."""
        return self.security.tls or Tls()

    @property
    def access(self) -> NetworkAccess:
        """The NetworkPolicy."""
        return self.security.network_policy or NetworkAccess()
