"""Validation of objects: names, labels, finalizers, owner references, and immutable fields.

This is only a part of the validation of a real API server: most rules for the specs of built-in kinds are missing. The
errors of the implemented rules have the code, the reason and the text of a real API server.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final, cast

from ocf.cluster.protocol import Subresource
from ocf.embedded.api.status_errors import go_json
from ocf.embedded.apiextensions import count_problems, custom_update_problems, definition_problems, schema_faults
from ocf.embedded.registry.object_parts import part_of
from ocf.embedded.registry.webhook_configurations import admission_problems
from ocf.embedded.validation import create_errors, update_errors
from ocf.errors import FieldProblem
from ocf.objects import Manifest
from ocf.objects.data_validation import config_map_errors, secret_errors, secret_type_errors
from ocf.objects.json_equality import equal_json
from ocf.objects.metadata_validation import creation_errors, standard_finalizer_errors
from ocf.objects.name_validation import (
    NameRule,
    dns_label,
    dns_label_prefix,
    dns_subdomain,
    dns_subdomain_prefix,
    path_segment,
    path_segment_prefix,
)
from ocf.schema.builtin import ApiResource

__all__ = ["create_problems", "update_problems"]

_AUTOSCALER: Final = "HorizontalPodAutoscaler.autoscaling"
_DEFINITION: Final = "CustomResourceDefinition.apiextensions.k8s.io"
_PATH_NAMES: Final = frozenset({"rbac.authorization.k8s.io"})

_ENTRY_RULES: Final = {"ConfigMap": (config_map_errors,), "Secret": (secret_errors, secret_type_errors)}


def _name_rules(resource: ApiResource) -> tuple[NameRule, NameRule]:
    """Return the rules of a kind for names, and for the prefixes of generated names."""
    if resource.group in _PATH_NAMES:
        return path_segment, path_segment_prefix
    if resource.group_kind in ("Service", "Namespace"):
        return dns_label, dns_label_prefix
    return dns_subdomain, dns_subdomain_prefix


def _invalid(path: str, value: Any, problem: str) -> FieldProblem:
    return FieldProblem(path, f"Invalid value: {go_json(value)}: {problem}")


def _metadata_problems(metadata: Manifest, resource: ApiResource) -> Iterator[FieldProblem]:
    errors = [*creation_errors(metadata, *_name_rules(resource))]
    if resource.schema is None:
        # Custom resources accept any qualified name as a finalizer.
        errors += standard_finalizer_errors(metadata)
    return (FieldProblem(error.path, error.message) for error in errors)


def create_problems(manifest: Manifest, resource: ApiResource) -> list[FieldProblem]:
    """Validate a new object.

    Args:
        manifest: The object.
        resource: Its kind.

    Returns:
        The violations; empty if the object is valid.
    """
    known = create_errors(manifest, resource.group_kind)
    if known is not None:
        return [FieldProblem(error.path, error.message) for error in known]
    problems = [*_metadata_problems(manifest["metadata"], resource), *_body_problems(manifest, resource)]
    return [*problems, *_rule_problems(manifest, None, resource, problems)]


def update_problems(
    manifest: Manifest, live: Manifest, resource: ApiResource, subresource: Subresource | None
) -> list[FieldProblem]:
    """Validate an update of an object.

    Args:
        manifest: The new object.
        live: The live object.
        resource: Its kind.
        subresource: Subresource of the request; None for the object itself.

    Returns:
        The violations; empty if the new object is valid.
    """
    known = update_errors(manifest, live, resource.group_kind, subresource)
    if known is not None:
        return [FieldProblem(error.path, error.message) for error in known]
    problems = [
        *_metadata_problems(manifest["metadata"], resource),
        *_new_finalizer_problems(manifest["metadata"], live["metadata"]),
        *_deletion_problems(manifest["metadata"], live["metadata"]),
    ]
    if part := part_of(resource, subresource):
        return [*problems, *part.problems(manifest, live)]
    if resource.schema is not None:
        problems += custom_update_problems(manifest, live, resource.schema, subresource)
        problems += _count_problems(manifest, resource, spec=subresource is None)
        return [*problems, *_rule_problems(manifest, live, resource, problems)]
    if resource.group_kind == _DEFINITION:
        return problems if subresource else [*problems, *definition_problems(manifest, live)]
    if resource.group_kind == _AUTOSCALER:
        return problems if subresource else [*problems, *_autoscaler_problems(manifest, live)]
    if resource.group_kind == "Service" and subresource is Subresource.STATUS:
        return [*problems, *_balancer_problems(manifest)]
    return [*problems, *_body_problems(manifest, resource), *_immutable_problems(manifest, live, resource)]


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


def _balancer_problems(service: Manifest) -> Iterator[FieldProblem]:
    if service["status"].get("loadBalancer", {}).get("ingress") and service["spec"].get("type") != "LoadBalancer":
        detail = "Forbidden: may only be used when `spec.type` is 'LoadBalancer'"
        yield FieldProblem("status.loadBalancer.ingress", detail)


_SELECTED: Final = frozenset(
    {("apps", "Deployment"), ("apps", "ReplicaSet"), ("apps", "StatefulSet"), ("apps", "DaemonSet")}
)


def _body_problems(manifest: Manifest, resource: ApiResource) -> Iterator[FieldProblem]:
    if resource.schema is not None:
        yield from (fault.problem for fault in schema_faults(manifest, resource.schema))
        yield from _count_problems(manifest, resource)
    elif resource.group_kind == _DEFINITION:
        yield from definition_problems(manifest, None)
    elif resource.group == "admissionregistration.k8s.io":
        yield from admission_problems(manifest)
    elif resource.group_kind == _AUTOSCALER:
        yield from _autoscaler_problems(manifest, None)
    elif resource.group_kind in _ENTRY_RULES:
        for rule in _ENTRY_RULES[resource.group_kind]:
            yield from (FieldProblem(error.path, error.message) for error in rule(manifest))
    elif (resource.group, resource.kind) in _SELECTED:
        yield from _selector_problems(manifest["spec"])
        replicas = manifest["spec"].get("replicas", 0)
        if replicas < 0:
            yield _invalid("spec.replicas", replicas, "must be greater than or equal to 0")


def _rule_problems(
    manifest: Manifest, live: Manifest | None, resource: ApiResource, problems: list[FieldProblem]
) -> list[FieldProblem]:
    if resource.rules is None:
        return []
    from ocf.embedded.cel import Rules, broken_rules

    return broken_rules(cast("Rules", resource.rules), manifest, live, problems)


def _count_problems(manifest: Manifest, resource: ApiResource, *, spec: bool = True) -> Iterator[FieldProblem]:
    if resource.scale is not None:
        yield from count_problems(manifest, resource.scale, spec=spec)


def _autoscaler_problems(manifest: Manifest, live: Manifest | None) -> Iterator[FieldProblem]:
    if live is not None and equal_json(manifest["spec"], live["spec"]):
        # The same spec was valid when it was stored.
        return
    from ocf.autoscaling import validate_spec

    for error in validate_spec(_autoscaler_spec(manifest), None if live is None else _autoscaler_spec(live)):
        yield FieldProblem(error.path, error.message)


def _autoscaler_spec(manifest: Manifest) -> Manifest:
    """Return the spec in `autoscaling/v2`, the version of the rules, for a request in any version."""
    from ocf.autoscaling.api.v1_conversion import to_v2

    spec: Manifest = manifest["spec"]
    if manifest["apiVersion"] == "autoscaling/v1":
        spec = to_v2(manifest, defaults=False)["spec"]
    return spec


def _selector_problems(spec: Mapping[str, Any]) -> Iterator[FieldProblem]:
    selector = spec.get("selector")
    wanted = selector.get("matchLabels") or {} if selector else {}
    if selector is None:
        yield FieldProblem("spec.selector", "Required value")
    elif not wanted and not selector.get("matchExpressions"):
        yield _invalid("spec.selector", selector, "empty selector is invalid for deployment")
    labels = spec["template"]["metadata"].get("labels", {})
    if selector is None or any(labels.get(key) != value for key, value in wanted.items()):
        problem = "`selector` does not match template `labels`"
        yield _invalid("spec.template.metadata.labels", labels or None, problem)
    yield from _container_problems(spec["template"]["spec"].get("containers") or [])


def _container_problems(containers: list[dict[str, Any]]) -> Iterator[FieldProblem]:
    path = "spec.template.spec.containers"
    if not containers:
        yield FieldProblem(path, "Required value")
    for index, container in enumerate(containers):
        for name in ("name", "image"):
            if not container.get(name):
                yield FieldProblem(f"{path}[{index}].{name}", "Required value")


def _immutable_problems(manifest: Manifest, live: Manifest, resource: ApiResource) -> Iterator[FieldProblem]:
    if (resource.group, resource.kind) in _SELECTED and resource.kind != "StatefulSet":
        selector = manifest["spec"].get("selector")
        if selector != live["spec"].get("selector"):
            yield _invalid("spec.selector", selector, "field is immutable")
    if (resource.group, resource.kind) == ("", "Secret") and manifest.get("type") != live.get("type"):
        yield _invalid("type", manifest.get("type"), "field is immutable")
    if live.get("immutable") is True and resource.kind in ("ConfigMap", "Secret"):
        if manifest.get("immutable") is not True:
            yield FieldProblem("immutable", "Forbidden: field is immutable when `immutable` is set")
        for name in ("data", "binaryData"):
            if manifest.get(name) != live.get(name):
                yield FieldProblem(name, "Forbidden: field is immutable when `immutable` is set")
