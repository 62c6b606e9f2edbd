"""Errors of selectors of metrics, in the words of the controller.

The API server does not check these selectors; the controller finds the errors when it converts one, and users find them
in conditions and events.

Source: `LabelSelectorAsSelector` and `labels.NewRequirement` of k8s.io/apimachinery 1.36.
"""

import json
from collections.abc import Iterator, Sequence
from typing import Final

from ocf.objects import Manifest
from ocf.objects.name_validation import label_value, qualified_name

__all__ = ["selector_error"]

_SETS: Final = frozenset({"In", "NotIn"})
_UNARY: Final = frozenset({"Exists", "DoesNotExist"})


def selector_error(selector: Manifest | None) -> str:
    """Return the error of a selector of a metric; empty if it is valid.

    Args:
        selector: The selector in object form, of the types of the API; None for a missing one.

    Example:
        >>> selector_error({"matchExpressions": [{"key": "shop", "operator": "Near"}]})
        '"Near" is not a valid label selector operator'
        >>> selector_error({"matchExpressions": [{"key": "shop", "operator": "In"}]})
        "values: Invalid value: null: for 'in', 'notin' operators, values set can't be empty"
    """
    for key, operator, values in _requirements(selector or {}):
        if operator not in _SETS | _UNARY:
            return f"{json.dumps(operator)} is not a valid label selector operator"
        errors = list(dict.fromkeys(_errors(key, operator, values)))
        if errors:
            return errors[0] if len(errors) == 1 else f"[{', '.join(errors)}]"
    return ""


def _requirements(selector: Manifest) -> Iterator[tuple[str, str, Sequence[str] | None]]:
    for key, value in (selector.get("matchLabels") or {}).items():
        yield key, "In", [value or ""]
    for expression in selector.get("matchExpressions") or ():
        yield expression.get("key") or "", expression.get("operator") or "", expression.get("values")


def _errors(key: str, operator: str, values: Sequence[str] | None) -> Iterator[str]:
    problems = qualified_name(key)
    if problems:
        yield f"key: Invalid value: {json.dumps(key)}: {'; '.join(problems)}"
    written = json.dumps(values, separators=(",", ":"))
    if operator in _SETS and not values:
        yield f"values: Invalid value: {written}: for 'in', 'notin' operators, values set can't be empty"
    if operator in _UNARY and values:
        yield f"values: Invalid value: {written}: values set must be empty for exists and does not exist"
    for position, value in enumerate(values or ()):
        problems = label_value(value)
        if problems:
            yield f"values[{position}][{key}]: Invalid value: {json.dumps(value)}: {'; '.join(problems)}"
