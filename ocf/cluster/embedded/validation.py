"""The refusals worth having: names, labels, finalizers, owner references, and the fields that must not change.

This is not the whole validation of a real server: what the kinds demand of their specs is mostly not checked. What is
checked is refused with the code, the reason and the text of the real one.
"""

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any, Final

from ocf.cluster.embedded.compare import equal_json
from ocf.cluster.embedded.configurations import configuration_problems
from ocf.cluster.embedded.custom import count_problems, custom_update_problems, definition_problems, schema_faults
from ocf.cluster.embedded.failures import go_json
from ocf.cluster.embedded.schema import Resource
from ocf.cluster.protocol import Subresource
from ocf.errors import FieldProblem
from ocf.objects import Manifest

__all__ = ["create_problems", "update_problems"]

_AUTOSCALER: Final = "HorizontalPodAutoscaler.autoscaling"
_DEFINITION: Final = "CustomResourceDefinition.apiextensions.k8s.io"
_LABEL: Final = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN: Final = rf"{_LABEL}(\.{_LABEL})*"
_NAME_PART: Final = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"

_ENDS: Final = "must start and end with an alphanumeric character"
_RULE: Final = "regex used for validation is"
_SUBDOMAIN_TEXT: Final = (
    f"a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and {_ENDS} "
    f"(e.g. 'example.com', {_RULE} '{_SUBDOMAIN}')"
)
_LABEL_TEXT: Final = (
    f"a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and {_ENDS} "
    f"(e.g. 'my-name',  or '123-abc', {_RULE} '{_LABEL}')"
)
_NAME_PART_TEXT: Final = (
    f"name part must consist of alphanumeric characters, '-', '_' or '.', and {_ENDS} "
    f"(e.g. 'MyName',  or 'my.name',  or '123-abc', {_RULE} '{_NAME_PART}')"
)
_LABEL_VALUE_TEXT: Final = (
    f"a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and {_ENDS} "
    f"(e.g. 'MyValue',  or 'my_value',  or '12345', {_RULE} '({_NAME_PART})?')"
)

_LONGEST_LABEL: Final = 63
_LONGEST_SUBDOMAIN: Final = 253
_STANDARD_FINALIZERS: Final = frozenset({"orphan", "foregroundDeletion", "kubernetes"})
_PATH_NAMES: Final = frozenset({"rbac.authorization.k8s.io"})


def _matches(pattern: str, text: str) -> bool:
    return re.fullmatch(pattern, text) is not None


def _name_faults(name: str, resource: Resource) -> Iterator[str]:
    if resource.group in _PATH_NAMES:
        if name in (".", ".."):
            yield f"may not be '{name}'"
        yield from (f"may not contain '{bad}'" for bad in ("/", "%") if bad in name)
        return
    if resource.group_kind in ("Service", "Namespace"):
        limit, pattern, text = _LONGEST_LABEL, _LABEL, _LABEL_TEXT
    else:
        limit, pattern, text = _LONGEST_SUBDOMAIN, _SUBDOMAIN, _SUBDOMAIN_TEXT
    if len(name) > limit:
        yield f"must be no more than {limit} bytes"
    if not _matches(pattern, name):
        yield "must not contain dots" if pattern == _LABEL and _matches(_SUBDOMAIN, name) else text


@lru_cache(maxsize=4096)
def _qualified_name_faults(name: str) -> tuple[str, ...]:
    return tuple(_faults_of_qualified_name(name))


def _faults_of_qualified_name(name: str) -> Iterator[str]:
    prefix, slash, part = name.rpartition("/")
    if slash and not _matches(_SUBDOMAIN, prefix):
        yield f"prefix part {_SUBDOMAIN_TEXT}" if prefix else "prefix part must be non-empty"
    if not part:
        yield "name part must be non-empty"
    elif len(part) > _LONGEST_LABEL:
        yield "name part must be no more than 63 bytes"
    if not _matches(_NAME_PART, part):
        yield _NAME_PART_TEXT


def _invalid(path: str, value: Any, problem: str) -> FieldProblem:
    return FieldProblem(path, f"Invalid value: {go_json(value)}: {problem}")


def _metadata_problems(metadata: Mapping[str, Any], resource: Resource) -> Iterator[FieldProblem]:
    name, prefix = metadata.get("name", ""), metadata.get("generateName", "")
    if prefix:
        # What follows the prefix is never the fault, so the prefix may end in a dash.
        for fault in _name_faults(prefix + "x", resource):
            yield _invalid("metadata.generateName", prefix, fault)
    if not name:
        yield FieldProblem("metadata.name", "Required value: name or generateName is required")
    else:
        for fault in _name_faults(name, resource):
            yield _invalid("metadata.name", name, fault)
    yield from _label_problems(metadata)
    yield from _owner_problems(metadata.get("ownerReferences") or [])
    yield from _finalizer_problems(metadata.get("finalizers") or [])


@lru_cache(maxsize=4096)
def _label_value_faults(value: str) -> tuple[str, ...]:
    long = ("must be no more than 63 bytes",) if len(value) > _LONGEST_LABEL else ()
    return (*long, _LABEL_VALUE_TEXT) if value and not _matches(_NAME_PART, value) else long


def _label_problems(metadata: Mapping[str, Any]) -> Iterator[FieldProblem]:
    for key, value in (metadata.get("labels") or {}).items():
        for fault in _qualified_name_faults(key):
            yield _invalid("metadata.labels", key, fault)
        for fault in _label_value_faults(value):
            yield _invalid("metadata.labels", value, fault)
    for key in metadata.get("annotations") or {}:
        for fault in _qualified_name_faults(key.lower()):
            yield _invalid("metadata.annotations", key, fault)


def _owner_problems(owners: list[dict[str, Any]]) -> Iterator[FieldProblem]:
    controllers = [f"{owner.get('kind')}/{owner.get('name')}" for owner in owners if owner.get("controller")]
    if len(controllers) > 1:
        problem = (
            "Only one reference can have Controller set to true. "
            f'Found "true" in references for {controllers[0]} and {controllers[1]}'
        )
        yield _invalid("metadata.ownerReferences", owners, problem)
    for owner in owners:
        for field, problem in (
            ("apiVersion", "version must not be empty"),
            ("kind", "must not be empty"),
            ("name", "must not be empty"),
            ("uid", "must not be empty"),
        ):
            if not owner.get(field):
                yield _invalid(f"metadata.ownerReferences.{field}", owner.get(field, ""), problem)


def _finalizer_problems(finalizers: list[str]) -> Iterator[FieldProblem]:
    for index, name in enumerate(finalizers):
        for fault in _qualified_name_faults(name):
            yield _invalid("metadata.finalizers", name, fault)
        if "/" not in name and name not in _STANDARD_FINALIZERS:
            problem = "name is neither a standard finalizer name nor is it fully qualified"
            yield _invalid(f"metadata.finalizers[{index}]", name, problem)
    if "orphan" in finalizers and "foregroundDeletion" in finalizers:
        problem = "finalizer orphan and foregroundDeletion cannot be both set"
        yield _invalid("metadata.finalizers", finalizers, problem)


def create_problems(manifest: Manifest, resource: Resource) -> list[FieldProblem]:
    """Check an object that is about to be created.

    Args:
        manifest: The object.
        resource: Its kind.

    Returns:
        What is wrong with it.
    """
    return [*_metadata_problems(manifest["metadata"], resource), *_body_problems(manifest, resource)]


def update_problems(
    manifest: Manifest, live: Manifest, resource: Resource, subresource: Subresource | None
) -> list[FieldProblem]:
    """Check an object that is about to replace another.

    Args:
        manifest: The new object.
        live: The one it replaces.
        resource: Its kind.
        subresource: What the request goes through.

    Returns:
        What is wrong with it.
    """
    problems = [
        *_metadata_problems(manifest["metadata"], resource),
        *_new_finalizer_problems(manifest["metadata"], live["metadata"]),
        *_deletion_problems(manifest["metadata"], live["metadata"]),
    ]
    if resource.schema is not None:
        problems += custom_update_problems(manifest, live, resource.schema, subresource)
        return [*problems, *_count_problems(manifest, resource, spec=subresource is None)]
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


def _body_problems(manifest: Manifest, resource: Resource) -> Iterator[FieldProblem]:
    if resource.schema is not None:
        yield from (fault.problem for fault in schema_faults(manifest, resource.schema))
        yield from _count_problems(manifest, resource)
    elif resource.group_kind == _DEFINITION:
        yield from definition_problems(manifest, None)
    elif resource.group == "admissionregistration.k8s.io" and "webhooks" in manifest:
        yield from configuration_problems(manifest)
    elif resource.group_kind == _AUTOSCALER:
        yield from _autoscaler_problems(manifest, None)
    elif (resource.group, resource.kind) in _SELECTED:
        yield from _selector_problems(manifest["spec"])
        replicas = manifest["spec"].get("replicas", 0)
        if replicas < 0:
            yield _invalid("spec.replicas", replicas, "must be greater than or equal to 0")


def _count_problems(manifest: Manifest, resource: Resource, *, spec: bool = True) -> Iterator[FieldProblem]:
    if resource.scale is not None:
        yield from count_problems(manifest, resource.scale, spec=spec)


def _autoscaler_problems(manifest: Manifest, live: Manifest | None) -> Iterator[FieldProblem]:
    if live is not None and equal_json(manifest["spec"], live["spec"]):
        # It was judged when it was stored.
        return
    from ocf.autoscaling import validate_spec

    for error in validate_spec(_autoscaler_spec(manifest), None if live is None else _autoscaler_spec(live)):
        yield FieldProblem(error.path, error.message)


def _autoscaler_spec(manifest: Manifest) -> Manifest:
    """Return the spec as the rules know it: in the second version, whatever version the request is in."""
    from ocf.autoscaling import default
    from ocf.autoscaling.v1 import to_v2

    spec: Manifest = manifest["spec"]
    if manifest["apiVersion"] == "autoscaling/v1":
        spec = default(to_v2(manifest))["spec"]
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


def _immutable_problems(manifest: Manifest, live: Manifest, resource: Resource) -> Iterator[FieldProblem]:
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
