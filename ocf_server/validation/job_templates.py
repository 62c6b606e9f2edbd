"""Updates of the template of a Job, which may change while it is suspended.

Source: `pkg/apis/batch/validation/validation.go` of Kubernetes.
"""

from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias

from ocf.objects import Manifest
from ocf.objects.field_errors import FieldError, invalid
from ocf.objects.json_equality import equal_json
from ocf_server.validation.go_structs import go_struct

__all__ = ["template_errors"]

_Json: TypeAlias = Mapping[str, Any]


def template_errors(new: Manifest, live: Manifest) -> Iterator[FieldError]:
    """Yield the errors of changes of the template, of which a suspended Job allows some."""
    template, before = new["spec"]["template"], live["spec"]["template"]
    status = live.get("status") or {}
    suspended = bool(live["spec"].get("suspend"))
    idle = "startTime" not in status or _is_suspended(status)
    mutable = suspended and idle and not status.get("active")
    if mutable:
        before = _with_scheduling(before, template)
    if not mutable:
        if not equal_json(template, before):
            yield invalid("spec.template", go_struct("PodTemplateSpec", template), "field is immutable")
        return
    allowed = _with_resources(before["spec"], template["spec"])
    if not equal_json(template["spec"], allowed):
        yield invalid("spec.template.spec", go_struct("PodSpec", template["spec"]), "field is immutable")


def _is_suspended(status: _Json) -> bool:
    return any(
        condition.get("type") == "Suspended" and condition.get("status") == "True"
        for condition in status.get("conditions") or ()
    )


def _with_scheduling(before: _Json, template: _Json) -> dict[str, Any]:
    """Return the stored template with the scheduling directives, labels and annotations of the new one."""
    spec = dict(before["spec"])
    new = template["spec"]
    for name in ("nodeSelector", "tolerations", "schedulingGates"):
        _keep(spec, new, name)
    affinity = {name: value for name, value in spec.get("affinity", {}).items() if name != "nodeAffinity"}
    if "nodeAffinity" in new.get("affinity", {}):
        affinity["nodeAffinity"] = new["affinity"]["nodeAffinity"]
    if affinity or ("affinity" in new and "affinity" not in before["spec"]) or _stays_empty(before["spec"], new):
        spec["affinity"] = affinity
    else:
        spec.pop("affinity", None)
    metadata = dict(before.get("metadata", {}))
    for name in ("annotations", "labels"):
        _keep(metadata, template.get("metadata", {}), name)
    return {"metadata": metadata, "spec": spec}


def _stays_empty(before: _Json, after: _Json) -> bool:
    return "affinity" in before and "affinity" in after


def _with_resources(before: _Json, spec: _Json) -> dict[str, Any]:
    """Return the stored spec with the resources of the containers of the new one."""
    allowed = dict(before)
    for name in ("containers", "initContainers"):
        old, new = before.get(name) or (), spec.get(name) or ()
        if len(old) != len(new):
            continue
        merged = [
            {**first, "resources": second["resources"]} if first["name"] == second["name"] else first
            for first, second in zip(old, new, strict=True)
        ]
        if merged:
            allowed[name] = merged
    return allowed


def _keep(into: dict[str, Any], source: _Json, name: str) -> None:
    if name in source:
        into[name] = source[name]
    else:
        into.pop(name, None)
