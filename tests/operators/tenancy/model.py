"""The custom resource: a tenant, which owns namespaces."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Final, Literal

from pydantic import Field

from ocf.runtime.crds import CamelModel, CustomResource, OwnerStatus, Preserve, PrinterColumn, Scope

__all__ = ["API_VERSION", "LABEL", "Account", "Owner", "Tenant", "TenantSpec", "TenantStatus"]

_GROUP: Final = "tenancy.example.com"
API_VERSION: Final = f"{_GROUP}/v1"
LABEL: Final = f"{_GROUP}/tenant"


class Owner(CamelModel):
    """A user or a group that makes namespaces of the tenant, and administers them."""

    kind: Literal["User", "Group"] = "User"
    name: str = Field(min_length=1)


class Account(CamelModel):
    """The ServiceAccount with whose rights the objects of a tenant are written."""

    name: str
    namespace: str


class TenantSpec(CamelModel):
    """What a tenant may do; an empty list of names allows each name."""

    owners: list[Owner] = Field(default_factory=list)
    registries: list[str] = Field(default_factory=list, description="Hosts of images, such as registry.example.com.")
    storage_classes: list[str] = Field(default_factory=list)
    priority_classes: list[str] = Field(default_factory=list)
    node_selector: dict[str, str] = Field(default_factory=dict, description="Nodes on which its pods run.")
    quota: dict[str, str] = Field(default_factory=dict, description="Limits of the sum over its namespaces.")
    container_defaults: dict[str, str] = Field(default_factory=dict, description="Limits of containers without any.")
    max_namespaces: int | None = Field(default=None, ge=0)
    labels: dict[str, str] = Field(default_factory=dict, description="Labels of its namespaces.")
    objects: list[Annotated[dict[str, Any], Preserve()]] = Field(
        default_factory=list, description="Objects in each of its namespaces, written as the account."
    )
    account: Account | None = None
    cordoned: bool = Field(default=False, description="Nothing is created or changed in its namespaces.")


class TenantStatus(OwnerStatus):
    """The namespaces of a tenant, and what has failed in each."""

    namespaces: list[str] | None = None
    size: int | None = None
    failures: dict[str, str] | None = None


class Tenant(
    CustomResource[TenantSpec, TenantStatus],
    group=_GROUP,
    version="v1",
    scope=Scope.CLUSTER,
    columns=[PrinterColumn("Namespaces", ".status.size", type="integer")],
):
    """A tenant of the cluster."""

    def is_owned_by(self, user: str, groups: Sequence[str]) -> bool:
        """Return whether a user makes namespaces of the tenant."""
        names = {"User": [user], "Group": groups}
        return any(owner.name in names[owner.kind] for owner in self.spec.owners)
