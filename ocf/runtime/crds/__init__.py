"""CustomResourceDefinitions generated from pydantic models, so Python and the API server use the same schema."""

from typing import TYPE_CHECKING

from ocf.lazy_exports import lazy_exports
from ocf.runtime.crds.crd import CRDVersion, PrinterColumn, ScaleSubresource, Scope, crd
from ocf.runtime.crds.go_duration import GoDuration
from ocf.runtime.crds.markers import ListMap, ListSet, Preserve, QuantityText, ValidationRule, rules
from ocf.runtime.crds.versioned_resource import Conversion, VersionedResource

if TYPE_CHECKING:
    from ocf.runtime.crds.custom_resource import CamelModel, CustomResource, OwnerMetadata, OwnerStatus
    from ocf.runtime.crds.storage_migration import migrate_storage, migration_rules

__all__ = [
    "CRDVersion",
    "CamelModel",
    "Conversion",
    "CustomResource",
    "GoDuration",
    "ListMap",
    "ListSet",
    "OwnerMetadata",
    "OwnerStatus",
    "Preserve",
    "PrinterColumn",
    "QuantityText",
    "ScaleSubresource",
    "Scope",
    "ValidationRule",
    "VersionedResource",
    "crd",
    "migrate_storage",
    "migration_rules",
    "rules",
]

# Clients of a cluster are imported only where objects are migrated, and models of the client where a model needs them.
__getattr__ = lazy_exports(
    __name__,
    {
        "CamelModel": "custom_resource",
        "CustomResource": "custom_resource",
        "OwnerMetadata": "custom_resource",
        "OwnerStatus": "custom_resource",
        "migrate_storage": "storage_migration",
        "migration_rules": "storage_migration",
    },
)
