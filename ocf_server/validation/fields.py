"""Rules for single fields that several kinds share, with the texts of the API server.

Each function yields the errors of a value at a path. Sources: `pkg/apis/core/validation/validation.go` of Kubernetes,
and `pkg/util/validation` and `pkg/apis/meta/v1/validation` of apimachinery.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from ocf.errors import ManifestError
from ocf.objects.field_errors import FieldError, duplicate, forbidden, invalid, not_supported, required
from ocf.objects.json_equality import equal_json
from ocf.objects.metadata_validation import label_errors
from ocf.objects.name_validation import NameRule, label_value, qualified_name
from ocf.objects.quantity import Quantity
from ocf.objects.selectors import LabelSelector

__all__ = [
    "duplicates",
    "each_problem",
    "enumeration",
    "immutable",
    "in_range",
    "label_selector",
    "matches",
    "nonnegative",
    "percent",
    "port_name",
    "port_number",
    "port_number_or_name",
    "positive",
    "positive_int_or_percent",
    "pull_policy",
    "quantity_not_negative",
    "required_enumeration",
    "requirement_names",
    "requirement_values",
    "shown_selector",
]

_NEGATIVE: Final = "must be greater than or equal to 0"
_NOT_POSITIVE: Final = "must be greater than zero"
_IMMUTABLE: Final = "field is immutable"
_LARGEST_PORT: Final = 65535
_LONGEST_PORT_NAME: Final = 15
_PERCENT: Final = "[0-9]+%"
_is_percent: Final = re.compile(_PERCENT).fullmatch
_has_port_characters: Final = re.compile("[-a-z0-9]+").fullmatch
_has_letter: Final = re.compile("[a-z]").search


def each_problem(rule: NameRule, value: str, path: str) -> Iterator[FieldError]:
    """Yield the problems that a rule for texts finds."""
    return (invalid(path, value, problem) for problem in rule(value))


def nonnegative(value: int | None, path: str) -> Iterator[FieldError]:
    """Yield an error if a number is negative; a missing one is valid."""
    if value is not None and value < 0:
        yield invalid(path, value, _NEGATIVE)


def positive(value: int, path: str) -> Iterator[FieldError]:
    """Yield an error if a number is not positive."""
    if value <= 0:
        yield invalid(path, value, _NOT_POSITIVE)


def in_range(value: int, lowest: int, highest: int, path: str) -> Iterator[FieldError]:
    """Yield an error if a number is not between two numbers."""
    if not lowest <= value <= highest:
        yield invalid(path, value, f"must be between {lowest} and {highest}, inclusive")


def quantity_not_negative(value: str | float, path: str) -> Iterator[FieldError]:
    """Yield an error if a quantity is negative."""
    quantity = Quantity.parse(value)
    if quantity.nano < 0:
        yield invalid(path, str(quantity), _NEGATIVE)


def immutable(new: Any, old: Any, path: str, *, shown: Any = None) -> Iterator[FieldError]:
    """Yield an error if an update changes a field.

    Args:
        new: The new value; None if it is missing, which is the same as an empty list or map.
        shown: The new value as the message prints it; None for the value itself.
    """
    if not equal_json(_without_empty(new), _without_empty(old)):
        yield invalid(path, new if shown is None else shown, _IMMUTABLE, as_json=True)


def _without_empty(value: Any) -> Any:
    # Go's semantic comparison treats nil and empty lists and maps as equal.
    return None if value in ([], {}) else value


def matches(selector: Mapping[str, Any] | None, labels: Mapping[str, str]) -> bool | None:
    """Return whether a label selector matches labels; a missing one matches nothing; None if it is malformed."""
    if selector is None:
        return False
    try:
        return LabelSelector.of(selector).matches(labels)
    except ManifestError:
        return None


def shown_selector(selector: Mapping[str, Any] | None) -> Any:
    """Return a label selector with its fields in the order in which messages print them.

    Example:
        >>> shown_selector({"matchExpressions": [], "matchLabels": {"b": "1", "a": "2"}})
        {'matchLabels': {'a': '2', 'b': '1'}}
    """
    if selector is None:
        return None
    shown: dict[str, Any] = {}
    if selector.get("matchLabels"):
        shown["matchLabels"] = dict(sorted(selector["matchLabels"].items()))
    if selector.get("matchExpressions"):
        shown["matchExpressions"] = [_shown_requirement(each) for each in selector["matchExpressions"]]
    return shown


def _shown_requirement(expression: Mapping[str, Any]) -> dict[str, Any]:
    shown = {name: expression.get(name, "") for name in ("key", "operator")}
    return {**shown, "values": expression["values"]} if expression.get("values") else shown


def enumeration(value: str | None, supported: Sequence[str], path: str) -> Iterator[FieldError]:
    """Yield an error if a text is not one of the supported values; a missing one is valid.

    Args:
        supported: The values, in the order of the message.
    """
    if value is not None and value not in supported:
        yield not_supported(path, value, supported)


def required_enumeration(value: str | None, supported: Sequence[str], path: str) -> Iterator[FieldError]:
    """Yield an error if a text is missing, or not one of the supported values."""
    if not value:
        yield required(path)
    else:
        yield from enumeration(value, supported, path)


def pull_policy(value: str, path: str) -> Iterator[FieldError]:
    """Yield an error if a text is not a policy for pulling images."""
    return required_enumeration(value, ("Always", "IfNotPresent", "Never"), path)


def duplicates(items: Sequence[Any], key: str, path: str) -> Iterator[FieldError]:
    """Yield an error for each item of a list whose `key` has the value of an earlier item.

    Example:
        >>> [str(error) for error in duplicates([{"name": "a"}, {"name": "a"}], "name", "spec.ports")]
        ['spec.ports[1].name: Duplicate value: "a"']
    """
    seen: set[Any] = set()
    for index, item in enumerate(items):
        if item.get(key) in seen:
            yield duplicate(f"{path}[{index}].{key}", item[key])
        seen.add(item.get(key))


def port_number(value: int, path: str) -> Iterator[FieldError]:
    """Yield an error if a number is not that of a port."""
    return in_range(value, 1, _LARGEST_PORT, path)


def port_name(text: str) -> list[str]:
    """Return the problems of the name of a port (IANA service name)."""
    found = []
    if len(text.encode(errors="surrogatepass")) > _LONGEST_PORT_NAME:
        found.append(f"must be no more than {_LONGEST_PORT_NAME} characters")
    if not _has_port_characters(text):
        found.append("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)")
    if not _has_letter(text):
        found.append("must contain at least one letter (a-z)")
    if "--" in text:
        found.append("must not contain consecutive hyphens")
    if text.startswith("-") or text.endswith("-"):
        found.append("must not begin or end with a hyphen")
    return found


def port_number_or_name(value: int | str, path: str) -> Iterator[FieldError]:
    """Yield the errors of a port that is given as a number or as a name."""
    if isinstance(value, str):
        return each_problem(port_name, value, path)
    return port_number(value, path)


def percent(text: str) -> list[str]:
    """Return the problems of a percentage."""
    rule = "a valid percent string must be a numeric string followed by an ending '%'"
    form = f"(e.g. '1%',  or '93%', regex used for validation is '{_PERCENT}')"
    return [] if _is_percent(text) else [f"{rule} {form}"]


def positive_int_or_percent(value: int | str, path: str) -> Iterator[FieldError]:
    """Yield the errors of a value that is a number from 0 or a percentage."""
    if isinstance(value, str):
        return (invalid(path, value, problem, as_json=True) for problem in percent(value))
    return nonnegative(value, path)


def label_selector(selector: Mapping[str, Any], path: str, *, any_value: bool = False) -> Iterator[FieldError]:
    """Yield the errors of a label selector.

    Args:
        any_value: Whether values of expressions may be invalid values of labels.

    Yields:
        The errors, in the order of the API server.
    """
    yield from label_errors(selector.get("matchLabels") or {}, f"{path}.matchLabels")
    for index, expression in enumerate(selector.get("matchExpressions") or ()):
        yield from _requirement(expression, f"{path}.matchExpressions[{index}]", any_value=any_value)


def _requirement(expression: Mapping[str, Any], path: str, *, any_value: bool) -> Iterator[FieldError]:
    found = requirement_values(expression, path)
    if found is None:
        operator = expression.get("operator", "")
        found = iter([invalid(f"{path}.operator", operator, "not a valid selector operator", as_json=True)])
    yield from found
    yield from requirement_names(expression, path, any_value=any_value)


def requirement_values(expression: Mapping[str, Any], path: str) -> Iterator[FieldError] | None:
    """Return the errors in the number of values of a requirement of a label or node selector.

    Returns:
        The errors; None if the operator is none of a label selector.
    """
    operator, values = expression.get("operator", ""), expression.get("values") or ()
    if operator in ("In", "NotIn"):
        detail = "must be specified when `operator` is 'In' or 'NotIn'"
        return iter(() if values else [required(f"{path}.values", detail)])
    if operator in ("Exists", "DoesNotExist"):
        detail = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
        return iter([forbidden(f"{path}.values", detail)] if values else ())
    return None


def requirement_names(expression: Mapping[str, Any], path: str, *, any_value: bool) -> Iterator[FieldError]:
    """Yield the errors of the key and the values of a requirement of a label or node selector.

    Args:
        any_value: Whether its values may be invalid values of labels.
    """
    yield from each_problem(qualified_name, expression.get("key", ""), f"{path}.key")
    for index, value in enumerate(() if any_value else expression.get("values") or ()):
        yield from each_problem(label_value, value, f"{path}.values[{index}]")
