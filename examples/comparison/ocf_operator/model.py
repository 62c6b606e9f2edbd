"""Models of the custom resource Site, and its definition."""

from typing import Annotated, Final

from kubernetes.client import V1Condition
from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

from ocf.runtime.crds import AGE, CRDVersion, ListMap, PrinterColumn, crd

__all__ = ["DEFINITION", "Site", "SiteSpec"]


class _Section(BaseModel):
    """Immutable model whose fields have the names of the API."""

    model_config = ConfigDict(frozen=True, alias_generator=to_camel, populate_by_name=True)


class SiteSpec(_Section):
    """Desired state."""

    version: str = Field(
        default="1.1.0",
        pattern=r"^[0-9]+\.[0-9]+\.[0-9]+$",
        description="Version of the product, which decides about its features.",
    )
    greeting: str = Field(default="Hello, world!", description="Text that is served.")
    replicas: int = Field(default=2, ge=1, le=100, description="Number of pods, the lowest one with an autoscaler.")
    max_replicas: int | None = Field(
        default=None, ge=1, le=100, description="Highest number of pods; sets an autoscaler up."
    )
    suspended: bool = Field(default=False, description="Whether no pods should run.")


class SiteStatus(_Section):
    """Observed state."""

    conditions: Annotated[list[V1Condition], ListMap("type")] | None = None


class Metadata(_Section):
    """Metadata that the operator reads."""

    name: str
    namespace: str


class Site(_Section):
    """A text that is served by pods."""

    metadata: Metadata
    spec: SiteSpec = SiteSpec()
    status: SiteStatus | None = None


_READY: Final = ".status.conditions[?(@.type=='Ready')]"
_COLUMNS: Final = (PrinterColumn("Ready", f"{_READY}.status"), PrinterColumn("Reason", f"{_READY}.reason"), AGE)
DEFINITION: Final = crd("ocf.comparison.example.com", CRDVersion("v1", Site, columns=_COLUMNS))
