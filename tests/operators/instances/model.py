"""The custom resources: instances of a server of dashboards, and the folders, sources and dashboards in them."""

from typing import Final

from kubernetes.client import V1LabelSelector
from pydantic import Field

from ocf.primitives.external import Record
from ocf.runtime.crds import CamelModel, CustomResource, OwnerStatus, PrinterColumn, ValidationRule, rules

__all__ = [
    "API_VERSION",
    "Content",
    "ContentStatus",
    "Dashboard",
    "DashboardSpec",
    "Deployed",
    "Entry",
    "External",
    "Folder",
    "FolderSpec",
    "Instance",
    "InstanceSpec",
    "InstanceStatus",
    "Placement",
    "Source",
    "SourceSpec",
]

_GROUP: Final = "panels.example.com"
API_VERSION: Final = f"{_GROUP}/v1"
_UID: Final = r"^[a-zA-Z0-9_-]{1,40}$"


def _one_of(*fields: str) -> ValidationRule:
    given = " + ".join(f"(has(self.{field}) ? 1 : 0)" for field in fields)
    return ValidationRule(f"{given} == 1", message=f"exactly one of {', '.join(fields)} must be set")


class Entry(CamelModel):
    """An entry of a Secret or a ConfigMap in the same namespace."""

    name: str
    key: str


class Deployed(CamelModel):
    """A server that runs in the cluster."""

    image: str = "panels:1"
    settings: dict[str, str] = Field(default_factory=dict, description="A change restarts the server.")


class External(CamelModel):
    """A server that the user runs outside of the operator."""

    secret_name: str = Field(description="A Secret with the entries url, user and password.")


@rules(_one_of("deployed", "external"))
class InstanceSpec(CamelModel):
    """The desired server."""

    deployed: Deployed | None = None
    external: External | None = None


class InstanceStatus(OwnerStatus):
    """The server as it was observed."""

    url: str | None = Field(default=None, description="Where it is, set once it was ready for the first time.")


class Instance(CustomResource[InstanceSpec, InstanceStatus], group=_GROUP, version="v1"):
    """A server of dashboards."""

    @property
    def login_name(self) -> str:
        """Name of the Secret with the credentials."""
        return self.spec.external.secret_name if self.spec.external else f"{self.metadata.name}-login"

    @property
    def service_url(self) -> str | None:
        """Where a server in the cluster is; None for an external one, whose Secret has the URL."""
        return f"http://{self.metadata.name}.{self.metadata.namespace}.svc:3000" if self.spec.deployed else None


class Placement(CamelModel):
    """What a thing in a server is called, and in which servers it is."""

    instances: V1LabelSelector | None = Field(default=None, description="Selects the instances.")
    everywhere: bool = Field(default=False, description="Whether instances of all namespaces are selected.")
    uid: str | None = Field(default=None, pattern=_UID, description="By default that of this object.")
    resync_minutes: int = Field(default=10, ge=1, description="How often changes of others are looked for.")


class ContentStatus(OwnerStatus):
    """The instances in which a thing is."""

    external: dict[str, Record] = Field(default_factory=dict)


class FolderSpec(Placement):
    """The desired folder."""

    title: str


class SourceSpec(Placement):
    """The desired source of data."""

    title: str
    url: str
    password: Entry | None = Field(default=None, description="An entry of a Secret.")


@rules(_one_of("inline", "configMap", "url"))
class DashboardSpec(Placement):
    """The desired dashboard."""

    folder: str | None = Field(
        default=None, description="Name of a Folder of this namespace; the dashboard is only where that is, too."
    )
    inline: str | None = Field(default=None, description="The content, in JSON.")
    config_map: Entry | None = Field(default=None, description="An entry of a ConfigMap with the content.")
    url: str | None = Field(default=None, pattern="^https?://[^/]+/", description="Where the content is fetched.")


_UID_COLUMN: Final = PrinterColumn("UID", ".spec.uid")


class Folder(CustomResource[FolderSpec, ContentStatus], group=_GROUP, version="v1", columns=[_UID_COLUMN]):
    """A folder of dashboards."""


class Source(CustomResource[SourceSpec, ContentStatus], group=_GROUP, version="v1", columns=[_UID_COLUMN]):
    """A source of the data of dashboards."""


class Dashboard(CustomResource[DashboardSpec, ContentStatus], group=_GROUP, version="v1", columns=[_UID_COLUMN]):
    """A dashboard."""


Content = Folder | Source | Dashboard
"""What is in servers."""
