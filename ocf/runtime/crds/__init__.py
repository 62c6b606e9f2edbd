"""CustomResourceDefinitions from pydantic models: one declaration says what Python reads and what the server holds."""

from ocf.runtime.crds.crd import AGE, CRDVersion, PrinterColumn, ScaleSubresource, Scope, crd
from ocf.runtime.crds.markers import ListMap, ListSet, Preserve, QuantityText, RuleReason, ValidationRule, rules

__all__ = [
    "AGE",
    "CRDVersion",
    "ListMap",
    "ListSet",
    "Preserve",
    "PrinterColumn",
    "QuantityText",
    "RuleReason",
    "ScaleSubresource",
    "Scope",
    "ValidationRule",
    "crd",
    "rules",
]
