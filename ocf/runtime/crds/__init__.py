"""CustomResourceDefinitions generated from pydantic models, so Python and the API server use the same schema."""

from ocf.runtime.crds.crd import AGE, CRDVersion, PrinterColumn, ScaleSubresource, Scope, crd
from ocf.runtime.crds.go_duration import GoDuration
from ocf.runtime.crds.markers import ListMap, ListSet, Preserve, QuantityText, RuleReason, ValidationRule, rules
from ocf.runtime.crds.versioned_resource import Conversion, VersionedResource

__all__ = [
    "AGE",
    "CRDVersion",
    "Conversion",
    "GoDuration",
    "ListMap",
    "ListSet",
    "Preserve",
    "PrinterColumn",
    "QuantityText",
    "RuleReason",
    "ScaleSubresource",
    "Scope",
    "ValidationRule",
    "VersionedResource",
    "crd",
    "rules",
]
