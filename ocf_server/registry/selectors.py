"""Label selectors and field selectors of requests, combined into one predicate."""

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

from ocf.errors import ManifestError
from ocf.objects import Manifest
from ocf.objects.selectors import LabelSelector, parse_field_selector
from ocf.schema.builtin import ApiResource
from ocf_server.api.status_errors import bad_request
from ocf_server.registry.selectable_fields import selectable

__all__ = ["Predicate", "selection", "selector_text"]

Predicate: TypeAlias = Callable[[Manifest], bool]
"""Function that returns whether an object is selected."""


def selection(resource: ApiResource, label_selector: str, field_selector: str) -> Predicate | None:
    """Parse the selectors of a request.

    Args:
        label_selector: The label selector, `app=web,tier in (front,back),!canary`; empty selects everything.
        field_selector: The field selector, `metadata.name=web`; empty selects everything.

    Returns:
        The predicate of both selectors, or None if they select everything.

    Raises:
        BadRequestError: If a selector is malformed, or contains a field that the kind does not support.
    """
    predicates = [found for found in (_by_labels(label_selector), _by_fields(resource, field_selector)) if found]
    if len(predicates) <= 1:
        return predicates[0] if predicates else None
    return lambda manifest: all(predicate(manifest) for predicate in predicates)


def _by_labels(text: str) -> Predicate | None:
    try:
        selector = LabelSelector.parse(text)
    except ManifestError as error:
        problem = "; ".join(map(str, error.problems))
        raise bad_request(f"unable to parse requirement: {problem}") from error
    if not selector.requirements:
        return None
    return lambda manifest: selector.matches(manifest["metadata"].get("labels") or {})


def _by_fields(resource: ApiResource, text: str) -> Predicate | None:
    try:
        terms = parse_field_selector(text)
    except ManifestError as error:
        problem = "; ".join(map(str, error.problems))
        raise bad_request(f"invalid field selector: {problem}") from error
    reads = [(selectable(resource, term.path), term.value, term.operator == "=") for term in terms]
    if not reads:
        return None
    return lambda manifest: all((read(manifest) == value) is wanted for read, value, wanted in reads)


_OPERATORS: Final = {"In": "in", "NotIn": "notin"}


def selector_text(selector: Mapping[str, Any] | None) -> str:
    """Return the text of a label selector.

    Unlike `LabelSelector`, this does not validate the selector: a Scale contains the text of any stored selector.

    Args:
        selector: A label selector with `matchLabels` and `matchExpressions`.

    Returns:
        The text, in the form of `status.selector` of a Scale.

    Example:
        >>> selector_text({"matchLabels": {"app": "web"}, "matchExpressions": [{"key": "tier", "operator": "Exists"}]})
        'app=web,tier'
    """
    if not selector:
        return ""
    terms = [(key, f"{key}={value}") for key, value in (selector.get("matchLabels") or {}).items()]
    expressions = selector.get("matchExpressions") or ()
    terms.extend((expression["key"], _expression_text(expression)) for expression in expressions)
    return ",".join(text for _, text in sorted(terms, key=lambda term: term[0]))


def _expression_text(expression: Mapping[str, Any]) -> str:
    key, operator = expression["key"], expression["operator"]
    if operator in _OPERATORS:
        return f"{key} {_OPERATORS[operator]} ({','.join(sorted(expression.get('values') or ()))})"
    return f"!{key}" if operator == "DoesNotExist" else str(key)
