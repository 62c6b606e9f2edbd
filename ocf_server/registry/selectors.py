"""Label selectors, field selectors and shard selectors of requests, combined into one predicate.

Every kind supports name and namespace in field selectors, some kinds more. The fields are those of a real API server
with its exceptions: a Namespace, for example, does not support `metadata.namespace`. Source:
https://kubernetes.io/docs/concepts/overview/working-with-objects/field-selectors/#list-of-supported-fields.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

from ocf.errors import ApiError, ManifestError
from ocf.objects import Manifest
from ocf.objects.selectors import LabelSelector, parse_field_selector
from ocf.objects.shards import ShardSelector
from ocf.schema.builtin import ApiResource
from ocf_server.api.status_errors import bad_request

__all__ = ["Predicate", "selection", "selector_text"]

Predicate: TypeAlias = Callable[[Manifest], bool]
"""Function that returns whether an object is selected."""


def selection(
    resource: ApiResource, label_selector: str, field_selector: str, shards: ShardSelector | None = None
) -> Predicate | None:
    """Parse the selectors of a request.

    Args:
        label_selector: The label selector, `app=web,tier in (front,back),!canary`; empty selects everything.
        field_selector: The field selector, `metadata.name=web`; empty selects everything.
        shards: The shard selector; None selects everything.

    Returns:
        The predicate of all selectors, or None if they select everything.

    Raises:
        BadRequestError: If a selector is malformed, or contains a field that the kind does not support.
    """
    predicates = [found for found in (_by_labels(label_selector), _by_fields(resource, field_selector)) if found]
    if shards is not None:
        predicates.append(shards.matches)
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
    reads = [(_selectable(resource, term.path), term.value, term.operator == "=") for term in terms]
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
        # labels.Requirement keeps its values sorted.
        return f"{key} {_OPERATORS[operator]} ({','.join(sorted(expression.get('values') or ()))})"
    return f"!{key}" if operator == "DoesNotExist" else str(key)


_Read: TypeAlias = Callable[[Manifest], str]

_PLACE: Final = ("metadata.name", "metadata.namespace")
_UNSUPPORTED: Final = "field label not supported: {}"

_POD: Final = (
    "spec.nodeName",
    "spec.restartPolicy",
    "spec.schedulerName",
    "spec.serviceAccountName",
    "spec.hostNetwork",
    "status.phase",
    "status.podIP",
    "status.podIPs",
    "status.nominatedNodeName",
)
_ABOUT: Final = ("kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath")
_EVENT: Final = (
    *(f"involvedObject.{name}" for name in _ABOUT),
    "reason",
    "reportingComponent",
    "source",
    "type",
)
_NEW_EVENT: Final = (*(f"regarding.{name}" for name in _ABOUT), "reason", "reportingController", "type")

_FIELDS: Final[Mapping[tuple[str, str], tuple[str, ...]]] = {
    ("", "Event"): (*_PLACE, *_EVENT),
    ("", "Namespace"): ("metadata.name", "status.phase"),
    ("", "Node"): ("metadata.name", "spec.unschedulable"),
    ("", "Pod"): (*_PLACE, *_POD),
    ("", "ReplicationController"): (*_PLACE, "status.replicas"),
    ("", "Secret"): (*_PLACE, "type"),
    ("", "Service"): (*_PLACE, "spec.clusterIP", "spec.type"),
    ("batch", "Job"): (*_PLACE, "status.successful"),
    ("certificates.k8s.io", "CertificateSigningRequest"): ("metadata.name", "spec.signerName"),
    ("events.k8s.io", "Event"): (*_PLACE, *_NEW_EVENT),
    ("resource.k8s.io", "ResourceSlice"): ("metadata.name", "spec.nodeName", "spec.driver"),
}
_MESSAGES: Final[Mapping[tuple[str, str], str]] = {
    ("batch", "Job"): 'field label "{}" not supported for Job',
    ("resource.k8s.io", "ResourceSlice"): "field label not supported for resource.k8s.io/v1, Kind=ResourceSlice: {}",
}
_NUMBERS: Final = frozenset({"status.replicas", "status.successful"})
_FLAGS: Final = frozenset({"spec.hostNetwork", "spec.unschedulable"})
_ALIASES: Final[Mapping[str, str]] = {"spec.host": "spec.nodeName", "status.successful": "status.succeeded"}


def _selectable(resource: ApiResource, path: str) -> _Read:
    """Return a function that reads a field as text; raise BadRequestError if the kind does not support it."""
    key = (resource.group, resource.kind)
    known = _FIELDS.get(key)
    place = _PLACE if resource.namespaced or not resource.custom else _PLACE[:1]
    allowed = (*place, *resource.selectable) if known is None else known
    # Old clients of v1 send this name, and the conversion function of pods still accepts it.
    if key == ("", "Pod") and path == "spec.host":
        path = _ALIASES[path]
    if path not in allowed:
        raise _unsupported_field(resource, path, allowed)
    if path == "source":
        return _source
    names = _ALIASES.get(path, path).split(".")
    missing = "0" if path in _NUMBERS else "false" if path in _FLAGS else ""
    return lambda manifest: _text(manifest, names, missing)


def _unsupported_field(resource: ApiResource, path: str, allowed: tuple[str, ...]) -> ApiError:
    key = (resource.group, resource.kind)
    if key in _FIELDS:
        return bad_request(_MESSAGES.get(key, _UNSUPPORTED).format(path))
    if resource.custom:
        return bad_request(_UNSUPPORTED.format(path))
    names = ", ".join(f'"{name}"' for name in allowed)
    return bad_request(f'"{path}" is not a known field selector: only {names}')


def _text(manifest: Manifest, names: list[str], missing: str) -> str:
    value: Any = manifest
    for name in names:
        value = value.get(name) if isinstance(value, dict) else None
    if value is None:
        return missing
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list):
        # A real API server compares only the first of the addresses of a Pod.
        return str(value[0].get("ip", "")) if value and isinstance(value[0], dict) else missing
    return str(value)


def _source(manifest: Manifest) -> str:
    component = (manifest.get("source") or {}).get("component")
    return str(component or manifest.get("reportingComponent") or "")
