"""The custom resource Shop, which owns the objects of the components.

The models declare only the fields that the operator reads. A reconcile works on the manifest that was read from the
cluster, so fields that these models do not declare are never lost.
"""

from enum import StrEnum

from pydantic import Field

from ocf.runtime.crds import CamelModel, CustomResource, PrinterColumn

__all__ = ["Part", "Scaling", "Shop", "ShopSpec"]


class Part(StrEnum):
    """Purpose of an object of a shop; part of its name."""

    DATABASE = "db"
    WEB = "web"
    EXPORTER = "exporter"


class Scaling(CamelModel):
    """Range in which the application is scaled."""

    min_replicas: int = Field(default=2, ge=1)
    max_replicas: int = Field(default=6, ge=1)


class ShopSpec(CamelModel):
    """Desired state of a shop."""

    version: str = Field(
        pattern=r"^\d+\.\d+\.\d+$", description="Version of the product, `2.3.0`; every version gate evaluates it."
    )
    password_secret: str = Field(
        min_length=1,
        max_length=253,
        description="Name of a Secret with the key `password`. The user creates it, the operator only reads it.",
    )
    suspended: bool = Field(default=False, description="Whether the shop is suspended.")
    exporter: bool = Field(default=False, description="Whether the metrics exporter runs beside the application.")
    scaling: Scaling = Scaling()


class Shop(
    CustomResource[ShopSpec], group="example.com", version="v1", columns=[PrinterColumn("Version", ".spec.version")]
):
    """A web shop."""

    def name_of(self, part: Part) -> str:
        """Return the name of the objects of a part."""
        return f"{self.metadata.name}-{part}"
