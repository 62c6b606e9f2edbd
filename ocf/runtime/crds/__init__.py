"""CustomResourceDefinitions from pydantic models: one declaration says what Python reads and what the server holds."""

from ocf.runtime.crds.crd import AGE, Column, Scale, Scope, Version, crd
from ocf.runtime.crds.markers import ListMap, ListSet, Preserve, QuantityText, Rule, RuleReason, rules

__all__ = [
    "AGE",
    "Column",
    "ListMap",
    "ListSet",
    "Preserve",
    "QuantityText",
    "Rule",
    "RuleReason",
    "Scale",
    "Scope",
    "Version",
    "crd",
    "rules",
]
