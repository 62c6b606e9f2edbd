"""Check for CEL rules in a schema, which avoids the import of the CEL implementation if there are none."""

from collections.abc import Mapping
from typing import Any, Final

__all__ = ["RULES", "has_rules"]

RULES: Final = "x-kubernetes-validations"
"""The field of a schema that contains its CEL rules."""


def has_rules(schema: Mapping[str, Any]) -> bool:
    """Return whether a schema, or a schema in it, contains CEL rules.

    Example:
        >>> has_rules({"properties": {"size": {"x-kubernetes-validations": [{"rule": "self > 1"}]}}})
        True
    """
    items, extra = schema.get("items"), schema.get("additionalProperties")
    below = [*(schema.get("properties") or {}).values(), *(each for each in (items, extra) if isinstance(each, dict))]
    return bool(schema.get(RULES)) or any(map(has_rules, below))
