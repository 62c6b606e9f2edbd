"""Validation of objects: metadata, custom resources, and the built-in kinds with an own way of validation.

Most built-in kinds are validated by `ocf_server.validation`. Of those that it lacks, only the metadata is validated.
The errors have the code, the reason and the text of a real API server.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final, cast

from ocf.cluster.protocol import Subresource
from ocf.errors import FieldProblem
from ocf.objects import Manifest
from ocf.objects.json_equality import equal_json
from ocf.objects.metadata_validation import creation_errors, standard_finalizer_errors
from ocf.objects.name_validation import dns_subdomain, dns_subdomain_prefix, path_segment, path_segment_prefix
from ocf.schema.builtin import ApiResource
from ocf_server.api.status_errors import go_json
from ocf_server.apiextensions import count_problems, custom_update_problems, definition_problems, schema_faults
from ocf_server.registry.api_services import API_SERVICE, api_service_problems
from ocf_server.registry.object_parts import part_of
from ocf_server.registry.webhook_configurations import admission_problems
from ocf_server.validation import create_errors, update_errors

__all__ = ["create_problems", "update_problems"]

_AUTOSCALER: Final = "HorizontalPodAutoscaler.autoscaling"
_DEFINITION: Final = "CustomResourceDefinition.apiextensions.k8s.io"


def _invalid(path: str, value: Any, problem: str) -> FieldProblem:
    return FieldProblem(path, f"Invalid value: {go_json(value)}: {problem}")


def _metadata_problems(metadata: Manifest, resource: ApiResource) -> Iterator[FieldProblem]:
    errors = [*creation_errors(metadata, *_NAMES.get(resource.group_kind, (dns_subdomain, dns_subdomain_prefix)))]
    if resource.schema is None and resource.group_kind != _DEFINITION:
        # Custom resources and their definitions accept any qualified name as a finalizer.
        errors += standard_finalizer_errors(metadata)
    return (FieldProblem(error.path, error.message) for error in errors)


_NAMES: Final = {"APIService.apiregistration.k8s.io": (path_segment, path_segment_prefix)}
"""Rules for names, and for their prefixes, of kinds whose names need not be DNS subdomains: `v1.` is an APIService."""


def create_problems(manifest: Manifest, resource: ApiResource) -> list[FieldProblem]:
    """Validate a new object.

    Returns:
        The violations; empty if the object is valid.
    """
    known = create_errors(manifest, resource.group_kind)
    if known is not None:
        return [FieldProblem(error.path, error.message) for error in known]
    problems = [*_metadata_problems(manifest["metadata"], resource), *_body_problems(manifest, resource)]
    # Rules last: CEL runs only on what the schema has accepted.
    return [*problems, *_rule_problems(manifest, None, resource, problems)]


def update_problems(
    manifest: Manifest, live: Manifest, resource: ApiResource, subresource: Subresource | None
) -> list[FieldProblem]:
    """Validate an update of an object.

    Args:
        subresource: Subresource of the request; None for the object itself.

    Returns:
        The violations; empty if the new object is valid.
    """
    known, part = update_errors(manifest, live, resource.group_kind, subresource), part_of(resource, subresource)
    if known is not None:
        found = [FieldProblem(error.path, error.message) for error in known]
        return [*found, *part.problems(manifest, live)] if part else found
    problems = [
        *_metadata_problems(manifest["metadata"], resource),
        *_new_finalizer_problems(manifest["metadata"], live["metadata"]),
        *_deletion_problems(manifest["metadata"], live["metadata"]),
    ]
    if part:
        return [*problems, *part.problems(manifest, live)]
    if resource.schema is not None:
        problems += custom_update_problems(manifest, live, resource.schema, subresource)
        problems += _count_problems(manifest, resource, spec=subresource is None)
        return [*problems, *_rule_problems(manifest, live, resource, problems)]
    return problems if subresource else [*problems, *_builtin_problems(manifest, live, resource)]


def _builtin_problems(manifest: Manifest, live: Manifest, resource: ApiResource) -> Iterator[FieldProblem]:
    if resource.group_kind == _DEFINITION:
        yield from definition_problems(manifest, live)
    elif resource.group_kind == _AUTOSCALER:
        yield from _autoscaler_problems(manifest, live, resource)
    else:
        yield from _body_problems(manifest, resource)


def _new_finalizer_problems(new: Mapping[str, Any], live: Mapping[str, Any]) -> Iterator[FieldProblem]:
    if "deletionTimestamp" not in live:
        return
    known = live.get("finalizers") or []
    added = sorted(set(new.get("finalizers") or ()) - set(known))
    if added:
        names = ", ".join(f'"{name}"' for name in added)
        detail = (
            f"no new finalizers can be added if the object is being deleted, found new finalizers []string{{{names}}}"
        )
        yield FieldProblem("metadata.finalizers", f"Forbidden: {detail}")


def _deletion_problems(new: Mapping[str, Any], live: Mapping[str, Any]) -> Iterator[FieldProblem]:
    for name in ("deletionTimestamp", "deletionGracePeriodSeconds"):
        if new.get(name) != live.get(name):
            yield _invalid(f"metadata.{name}", new.get(name), "field is immutable")


def _body_problems(manifest: Manifest, resource: ApiResource) -> Iterator[FieldProblem]:
    if resource.schema is not None:
        yield from (fault.problem for fault in schema_faults(manifest, resource.schema))
        yield from _count_problems(manifest, resource)
    elif resource.group_kind == _DEFINITION:
        yield from definition_problems(manifest, None)
    elif (resource.group, resource.kind) == API_SERVICE:
        yield from api_service_problems(manifest)
    elif resource.group == "admissionregistration.k8s.io":
        yield from admission_problems(manifest)
    elif resource.group_kind == _AUTOSCALER:
        yield from _autoscaler_problems(manifest, None, resource)


def _rule_problems(
    manifest: Manifest, live: Manifest | None, resource: ApiResource, problems: list[FieldProblem]
) -> list[FieldProblem]:
    if resource.rules is None:
        return []
    from ocf_server.cel import Rules, broken_rules

    return broken_rules(cast("Rules", resource.rules), manifest, live, problems)


def _count_problems(manifest: Manifest, resource: ApiResource, *, spec: bool = True) -> Iterator[FieldProblem]:
    if resource.scale is not None:
        yield from count_problems(manifest, resource.scale, spec=spec)


def _autoscaler_problems(manifest: Manifest, live: Manifest | None, resource: ApiResource) -> Iterator[FieldProblem]:
    if live is not None and equal_json(manifest["spec"], live["spec"]):
        # The same spec was valid when it was stored.
        return
    from ocf.autoscaling.validation.validation import validate_spec

    old = None if live is None else _autoscaler_spec(live)
    for error in validate_spec(_autoscaler_spec(manifest), old, gates=resource.release.autoscaling()):
        yield FieldProblem(error.path, error.message)


def _autoscaler_spec(manifest: Manifest) -> Manifest:
    """Return the spec in `autoscaling/v2`, the version of the rules, for a request in any version."""
    from ocf.autoscaling.api.v1_conversion import to_v2

    spec: Manifest = manifest["spec"]
    if manifest["apiVersion"] == "autoscaling/v1":
        spec = to_v2(manifest, defaults=False)["spec"]
    return spec
