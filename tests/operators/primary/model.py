"""The custom resource Database: a primary, its replicas, and what is remembered about them."""

from typing import Final

from pydantic import Field

from ocf.runtime.crds import CamelModel, CustomResource, OwnerStatus, PrinterColumn, QuantityText, ValidationRule, rules

__all__ = ["Database", "DatabaseSpec", "DatabaseStatus", "Volume"]

_PRIMARY: Final = PrinterColumn("Primary", ".status.primary")
_SHORT_NAME: Final = ValidationRule(
    "self.metadata.name.size() <= 40 && !self.metadata.name.contains('.')",
    message="the name is a part of the names of Services: at most 40 characters, and no dot",
)


class Volume(CamelModel):
    """The volume of each member, which cannot be changed later."""

    size: QuantityText = "1Gi"
    storage_class: str | None = Field(default=None, description="The default class of the cluster if it is not set.")


class DatabaseSpec(CamelModel):
    """The desired database."""

    image: str
    replicas: int = Field(default=2, ge=0, le=20)
    volume: Volume = Volume()
    suspended: bool = False
    promote: str | None = Field(default=None, description="The replica to promote. A change of the field is a request.")
    failover_seconds: int = Field(default=60, ge=0, description="How long the primary may be unavailable.")
    phase_seconds: int = Field(default=300, ge=1, description="How long a start, a stop or a promotion may take.")


class DatabaseStatus(OwnerStatus):
    """The roles of the members, stored before anything is done because of them."""

    primary: str | None = None
    replicas: list[str] | None = None
    promoting: str | None = Field(default=None, description="The member that becomes the primary.")
    failed: list[str] | None = Field(default=None, description="Members that go before another one is promoted.")
    last_index: int | None = Field(default=None, description="The last number in a name; none is used again.")
    handled_promote: str | None = Field(default=None, description="The last value of spec.promote that was handled.")
    volume: Volume | None = None


@rules(_SHORT_NAME)
class Database(
    CustomResource[DatabaseSpec, DatabaseStatus], group="primary.example.com", version="v1", columns=[_PRIMARY]
):
    """A database with one primary and its replicas."""
