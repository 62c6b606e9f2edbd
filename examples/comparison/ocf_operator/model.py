"""Model of the custom resource Site."""

from pydantic import Field

from ocf.runtime.crds import CamelModel, CustomResource

__all__ = ["Site", "SiteSpec"]


class SiteSpec(CamelModel):
    """Desired state."""

    version: str = Field(default="1.1.0", pattern=r"^[0-9]+\.[0-9]+\.[0-9]+$", description="Version of the product.")
    greeting: str = Field(default="Hello, world!", description="Text that is served.")
    replicas: int = Field(default=2, ge=1, le=100, description="Number of pods, the lowest one with an autoscaler.")
    max_replicas: int | None = Field(default=None, ge=1, le=100, description="Highest number; sets an autoscaler up.")
    suspended: bool = Field(default=False, description="Whether no pods should run.")


class Site(CustomResource[SiteSpec], group="ocf.comparison.example.com", version="v1"):
    """A text that is served by pods."""

    spec: SiteSpec = SiteSpec()
