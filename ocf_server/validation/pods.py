"""Validation of pods and pod templates.

Source: `ValidatePodCreate` and `ValidatePodUpdate` in `pkg/apis/core/validation/validation.go` of Kubernetes.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, TypeAlias

from ocf.cluster.protocol import Subresource
from ocf.objects import Manifest, copy_json
from ocf.objects.field_errors import FieldError, forbidden, invalid, required
from ocf.objects.json_equality import equal_json
from ocf_server.validation.annotations import (
    annotation_update_errors,
    pod_annotation_errors,
    profile_match_errors,
)
from ocf_server.validation.containers import image_errors
from ocf_server.validation.fields import in_range
from ocf_server.validation.go_structs import go_diff, go_struct
from ocf_server.validation.metadata import metadata_errors, metadata_update_errors
from ocf_server.validation.pod_spec import pod_spec_errors, pod_template_errors
from ocf_server.validation.pod_status import pod_status_errors
from ocf_server.validation.scheduling import toleration_errors
from ocf_server.validation.validation import Validation

__all__ = ["VALIDATIONS"]

_Json: TypeAlias = Mapping[str, Any]

_LARGEST: Final = 2**31 - 1
_DEADLINE: Final = "activeDeadlineSeconds"
_GRACE: Final = "terminationGracePeriodSeconds"
_UPDATABLE: Final = (
    "`spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,"
    "`spec.tolerations` (only additions to existing tolerations),"
    "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)"
)
_REQUIRED_TERMS: Final = "requiredDuringSchedulingIgnoredDuringExecution"


def _pod_errors(pod: Manifest) -> Iterator[FieldError]:
    metadata, spec = pod["metadata"], pod["spec"]
    yield from metadata_errors(metadata)
    yield from pod_annotation_errors(metadata.get("annotations") or {}, spec, "metadata.annotations")
    yield from pod_spec_errors(spec, "spec", metadata=metadata)
    if not spec.get("serviceAccountName"):
        yield from _token_errors(spec)
    for name in ("containers", "initContainers"):
        for index, container in enumerate(spec.get(name) or ()):
            yield from image_errors(container, f"spec.{name}[{index}]")


def _token_errors(spec: _Json) -> Iterator[FieldError]:
    for index, volume in enumerate(spec.get("volumes", ())):
        for position, source in enumerate(volume.get("projected", {}).get("sources") or ()):
            if "serviceAccountToken" in source:
                path = f"spec.volumes[{index}].projected.sources[{position}].serviceAccountToken"
                yield forbidden(path, "must not be specified when serviceAccountName is not set")


def _create_errors(pod: Manifest) -> Iterator[FieldError]:
    spec = pod["spec"]
    yield from _pod_errors(pod)
    if spec.get("ephemeralContainers"):
        yield forbidden("spec.ephemeralContainers", "cannot be set on create")
    if spec.get("nodeName") and spec.get("schedulingGates"):
        yield forbidden("spec.nodeName", "cannot be set until all schedulingGates have been cleared")
    yield from profile_match_errors(pod["metadata"].get("annotations") or {}, spec, "spec")


def _update_errors(new: Manifest, live: Manifest) -> Iterator[FieldError]:
    yield from metadata_update_errors(new["metadata"], live["metadata"])
    yield from _pod_errors(new)
    yield from annotation_update_errors(new, live, "metadata.annotations")
    spec, before = new["spec"], live["spec"]
    for name in ("containers", "initContainers"):
        path, after = f"spec.{name}", spec.get(name) or ()
        if len(after) != len(before.get(name) or ()):
            yield forbidden(path, "pod updates may not add or remove containers")
            return
        for index, container in enumerate(after):
            if not container.get("image"):
                yield required(f"{path}[{index}].image")
            yield from image_errors(container, f"{path}[{index}]")
    problem = _deadline_error(spec.get(_DEADLINE), before.get(_DEADLINE))
    if problem is not None:
        yield problem
        if _DEADLINE in spec:
            return
    yield from _toleration_errors(spec.get("tolerations", ()), before.get("tolerations", ()))
    yield from _added_gate_errors(spec.get("schedulingGates", ()), before.get("schedulingGates", ()))
    yield from _change_errors(spec, before)


def _deadline_error(after: int | None, before: int | None) -> FieldError | None:
    path = f"spec.{_DEADLINE}"
    if after is None:
        detail = "must not update from a positive integer to nil value"
        return None if before is None else invalid(path, None, detail)
    wrong = next(in_range(after, 0, _LARGEST, path), None)
    if wrong is None and before is not None and before < after:
        return invalid(path, after, "must be less than or equal to previous value")
    return wrong


def _toleration_errors(after: Sequence[_Json], before: Sequence[_Json]) -> Iterator[FieldError]:
    kept = [_without_seconds(toleration) for toleration in after]
    if any(_without_seconds(toleration) not in kept for toleration in before):
        detail = "existing toleration can not be modified except its tolerationSeconds"
        yield forbidden("spec.tolerations", detail)
        return
    yield from toleration_errors(after, "spec.tolerations")


def _without_seconds(toleration: _Json) -> dict[str, Any]:
    return {name: value for name, value in toleration.items() if name != "tolerationSeconds"}


def _added_gate_errors(after: Sequence[_Json], before: Sequence[_Json]) -> Iterator[FieldError]:
    known = {gate["name"] for gate in before}
    for index, gate in enumerate(after):
        if gate["name"] not in known:
            detail = f"only deletion is allowed, but found new scheduling gate '{gate['name']}'"
            yield forbidden(f"spec.schedulingGates[{index}].name", detail)


def _change_errors(spec: _Json, before: _Json) -> Iterator[FieldError]:
    """Yield the errors of changes of a spec other than those of the fields that may change."""
    if equal_json(spec, before):
        return
    rest: dict[str, Any] = copy_json(spec)
    for name in ("containers", "initContainers"):
        for container, old in zip(rest.get(name) or (), before.get(name) or (), strict=True):
            _keep(container, old, "image")
    for name in (_DEADLINE, "schedulingGates", "tolerations"):
        _keep(rest, before, name)
    if before.get(_GRACE, 0) < 0 and rest.get(_GRACE) == 1:
        _keep(rest, before, _GRACE)
    if before.get("schedulingGates"):
        yield from _node_selection_errors(rest, before)
    if not equal_json(rest, before):
        detail = f"pod updates may not change fields other than {_UPDATABLE}\n{go_diff('PodSpec', before, rest)}"
        yield forbidden("spec", detail)


def _keep(new: dict[str, Any], old: _Json, name: str) -> None:
    if name in old:
        new[name] = old[name]
    else:
        new.pop(name, None)


def _node_selection_errors(rest: dict[str, Any], before: _Json) -> Iterator[FieldError]:
    """Yield the errors of changes of the node selection of a pod with scheduling gates; restore the old one."""
    selector, old = rest.get("nodeSelector", {}), before.get("nodeSelector", {})
    if any(selector.get(key) != value for key, value in old.items()):
        detail = "only additions to spec.nodeSelector are allowed (no mutations or deletions)"
        yield invalid("spec.nodeSelector", dict(sorted(selector.items())) or None, detail)
    _keep(rest, before, "nodeSelector")
    affinity, old_affinity = rest.get("affinity", {}), before.get("affinity", {})
    if equal_json(affinity.get("nodeAffinity"), old_affinity.get("nodeAffinity")):
        return
    yield from _term_errors(_terms(affinity), _terms(old_affinity))
    restored = {name: value for name, value in affinity.items() if name != "nodeAffinity"}
    if "nodeAffinity" in old_affinity:
        restored["nodeAffinity"] = old_affinity["nodeAffinity"]
    if restored or "affinity" in before:
        rest["affinity"] = restored
    else:
        rest.pop("affinity", None)


def _terms(affinity: _Json) -> list[_Json]:
    terms: list[_Json] = affinity.get("nodeAffinity", {}).get(_REQUIRED_TERMS, {}).get("nodeSelectorTerms") or []
    return terms


def _term_errors(after: Sequence[_Json], before: Sequence[_Json]) -> Iterator[FieldError]:
    path = f"spec.affinity.nodeAffinity.{_REQUIRED_TERMS}.nodeSelectorTerms"
    if before and len(after) != len(before):
        shown = [go_struct("NodeSelectorTerm", term) for term in after] or None
        yield invalid(path, shown, "no additions/deletions to non-empty NodeSelectorTerms list are allowed")
        return
    for index, (new, old) in enumerate(zip(after, before, strict=False)):
        if not _only_adds(new, old):
            shown = go_struct("NodeSelectorTerm", new)
            yield invalid(f"{path}[{index}]", shown, "only additions are allowed (no mutations or deletions)")


def _only_adds(new: _Json, old: _Json) -> bool:
    names = ("matchExpressions", "matchFields")
    if not any(old.get(name) for name in names):
        return not any(new.get(name) for name in names)
    return all(equal_json((new.get(name) or [])[: len(old.get(name) or ())], old.get(name) or []) for name in names)


def _status_errors(new: Manifest, live: Manifest) -> Iterator[FieldError]:
    yield from metadata_update_errors(new["metadata"], live["metadata"])
    yield from annotation_update_errors(new, live, "metadata.annotations")
    yield from pod_status_errors(new, live)


def _ephemeral_errors(new: Manifest, live: Manifest) -> Iterator[FieldError]:
    yield from metadata_update_errors(new["metadata"], live["metadata"])
    yield from _pod_errors(new)
    yield from annotation_update_errors(new, live, "metadata.annotations")


def _resize_errors(new: Manifest, live: Manifest) -> Iterator[FieldError]:
    yield from metadata_update_errors(new["metadata"], live["metadata"])
    yield from _pod_errors(new)


_PARTS: Final = {
    Subresource.STATUS: _status_errors,
    Subresource.EPHEMERAL_CONTAINERS: _ephemeral_errors,
    Subresource.RESIZE: _resize_errors,
}
"""Rules for the subresources of a pod; what they may change is validated by the subresources themselves."""


def _template_create_errors(template: Manifest) -> Iterator[FieldError]:
    yield from metadata_errors(template["metadata"])
    yield from pod_template_errors(template["template"], "template")


def _template_update_errors(new: Manifest, live: Manifest) -> Iterator[FieldError]:
    yield from metadata_update_errors(new["metadata"], live["metadata"])
    yield from pod_template_errors(new["template"], "template")


VALIDATIONS: Final = {
    "Pod": Validation(_create_errors, _update_errors, _PARTS),
    "PodTemplate": Validation(_template_create_errors, _template_update_errors),
}
