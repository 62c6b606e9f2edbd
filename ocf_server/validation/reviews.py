"""Validation of reviews of access, which the API server answers and does not store.

Source: `pkg/apis/authorization/validation/validation.go` of Kubernetes.
"""

from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import Any, Final

from ocf.objects import Manifest
from ocf.objects.field_errors import FieldError, invalid, required
from ocf.schema.builtin import ApiResource, struct
from ocf_server.validation.fields import requirement_names, requirement_values

__all__ = ["REVIEW_RULES", "review_resource"]

_SPEC: Final = "spec"
_RESOURCE: Final = f"{_SPEC}.resourceAttributes"
_OTHER: Final = f"{_SPEC}.nonResourceAttributes"


def _self_errors(review: Manifest) -> Iterator[FieldError]:
    yield from _attribute_errors(review.get("spec") or {})
    yield from _metadata_errors(review["metadata"])


def _subject_errors(review: Manifest) -> Iterator[FieldError]:
    yield from _spec_errors(review.get("spec") or {})
    yield from _metadata_errors(review["metadata"])


def _local_errors(review: Manifest) -> Iterator[FieldError]:
    spec, metadata = review.get("spec") or {}, review["metadata"]
    yield from _spec_errors(spec)
    if metadata.keys() - {"managedFields", "namespace"}:
        yield invalid("metadata", metadata, "must be empty except for namespace")
    if (attributes := spec.get("resourceAttributes")) is not None:
        namespace = attributes.get("namespace", "")
        if namespace != metadata.get("namespace", ""):
            yield invalid(f"{_RESOURCE}.namespace", namespace, "must match metadata.namespace")
    if (other := spec.get("nonResourceAttributes")) is not None:
        yield invalid(_OTHER, _internal(other), "disallowed on this kind of request")


def _metadata_errors(metadata: Mapping[str, Any]) -> Iterator[FieldError]:
    if metadata.keys() - {"managedFields"}:
        yield invalid("metadata", metadata, "must be empty")


def _spec_errors(spec: Mapping[str, Any]) -> Iterator[FieldError]:
    yield from _alternatives(spec)
    if not spec.get("user") and not spec.get("groups"):
        yield invalid(f"{_SPEC}.user", spec.get("user", ""), "at least one of user or group must be specified")
    yield from _selector_errors(spec.get("resourceAttributes") or {})


def _attribute_errors(spec: Mapping[str, Any]) -> Iterator[FieldError]:
    yield from _alternatives(spec)
    yield from _selector_errors(spec.get("resourceAttributes") or {})


def _alternatives(spec: Mapping[str, Any]) -> Iterator[FieldError]:
    resource, other = spec.get("resourceAttributes"), spec.get("nonResourceAttributes")
    if resource is not None and other is not None:
        yield invalid(_OTHER, _internal(other), "cannot be specified in combination with resourceAttributes")
    if resource is None and other is None:
        detail = "exactly one of nonResourceAttributes or resourceAttributes must be specified"
        yield invalid(_RESOURCE, None, detail)


def _internal(attributes: Mapping[str, Any]) -> dict[str, str]:
    """Return the attributes as messages show them, with the names of the fields in Go."""
    return {"Path": attributes.get("path", ""), "Verb": attributes.get("verb", "")}


def _selector_errors(attributes: Mapping[str, Any]) -> Iterator[FieldError]:
    for name, requirement in (("fieldSelector", _field_requirement), ("labelSelector", _label_requirement)):
        selector, path = attributes.get(name), f"{_RESOURCE}.{name}"
        if selector is None:
            continue
        raw, requirements = selector.get("rawSelector", ""), selector.get("requirements") or ()
        if raw and requirements:
            yield invalid(f"{path}.rawSelector", raw, "may not specified at the same time as requirements")
        if not raw and not requirements:
            detail = f"when {path} is specified, requirements or rawSelector is required"
            yield required(f"{path}.requirements", detail)
        for index, expression in enumerate(requirements):
            yield from requirement(expression, f"{path}.requirements[{index}]")


def _field_requirement(expression: Mapping[str, Any], path: str) -> Iterator[FieldError]:
    if not expression.get("key"):
        yield required(f"{path}.key", "must be specified")
    # An operator of a later release is not an error.
    yield from requirement_values(expression, path) or ()


def _label_requirement(expression: Mapping[str, Any], path: str) -> Iterator[FieldError]:
    yield from requirement_values(expression, path) or ()
    yield from requirement_names(expression, path, any_value=False)


REVIEW_RULES: Final[Mapping[str, Callable[[Manifest], Iterator[FieldError]]]] = {
    "SelfSubjectAccessReview": _self_errors,
    "SubjectAccessReview": _subject_errors,
    "LocalSubjectAccessReview": _local_errors,
}
"""The errors of a review by kind, those of the spec first."""

_KINDS: Final[Mapping[tuple[str, str], bool]] = {
    ("authentication", "SelfSubjectReview"): False,
    ("authentication", "TokenReview"): False,
    ("authorization", "LocalSubjectAccessReview"): True,
    ("authorization", "SelfSubjectAccessReview"): False,
    ("authorization", "SelfSubjectRulesReview"): False,
    ("authorization", "SubjectAccessReview"): False,
}
"""The reviews, by package and kind, and whether they are in namespaces."""


@cache
def review_resource(group: str, version: str, kind: str) -> ApiResource | None:
    """Return a kind of reviews; None if there is no such kind.

    Example:
        >>> found = review_resource("authorization.k8s.io", "v1", "SubjectAccessReview")
        >>> found.plural if found else ""
        'subjectaccessreviews'
    """
    package = group.removesuffix(".k8s.io")
    namespaced = _KINDS.get((package, kind))
    if namespaced is None or (group, version) != (f"{package}.k8s.io", "v1"):
        return None
    singular = kind.lower()
    return ApiResource(
        group,
        version,
        kind,
        f"{singular}s",
        singular,
        namespaced,
        subresources=frozenset(),
        verbs=frozenset({"create"}),
        type=struct(f"{package}.{version}.{kind}"),
    )
