"""Subresources through which a client writes a part of an object: what each may change, and what of it is validated.

Source: the strategies in pkg/registry of Kubernetes 1.36 (core/pod, core/namespace, certificates/certificates).
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

from ocf.cluster.protocol import Subresource
from ocf.errors import FieldProblem
from ocf.objects import Manifest
from ocf.objects.json_equality import equal_json
from ocf.objects.name_validation import qualified_name
from ocf.schema.builtin import ApiResource
from ocf_server.api.status_errors import go_json
from ocf_server.managedfields.fieldset import FieldSet
from ocf_server.registry import certificate_requests, pod_resizes

__all__ = ["PARTS", "ObjectPart", "part_of"]

Kind: TypeAlias = tuple[str, str]


@dataclass(frozen=True, slots=True)
class ObjectPart:
    """A part of an object with its own endpoint.

    Args:
        kept: Returns the new object with everything else as it was: takes the new object, the live one and the time.
        problems: Yields what is invalid in the new object: takes the new object and the live one.
        ignored: Fields that a write does not own; of a pod, it owns also those that it cannot change.
    """

    kept: Callable[[Manifest, Manifest, str], Manifest]
    problems: Callable[[Manifest, Manifest], Iterator[FieldProblem]]
    ignored: FieldSet = field(default_factory=dict)


_METADATA: Final = ("labels", "annotations", "finalizers", "ownerReferences", "deletionTimestamp")


def with_metadata_of(new: Manifest, live: Manifest) -> dict[str, Any]:
    """Return the metadata of a write that may not change labels, annotations, finalizers and owners."""
    metadata = {name: value for name, value in new["metadata"].items() if name not in _METADATA}
    return metadata | {name: live["metadata"][name] for name in _METADATA if name in live["metadata"]}


def _ephemeral(new: Manifest, live: Manifest, _now: str) -> Manifest:
    spec = {name: value for name, value in live["spec"].items() if name != "ephemeralContainers"}
    if wanted := new["spec"].get("ephemeralContainers"):
        spec["ephemeralContainers"] = wanted
    # From the live object: whatever else a client sends to this subresource is ignored without an error.
    return {**live, "metadata": with_metadata_of(new, live), "spec": spec}


def _ephemeral_problems(new: Manifest, live: Manifest) -> Iterator[FieldProblem]:
    path = "spec.ephemeralContainers"
    found = {container["name"]: container for container in new["spec"].get("ephemeralContainers") or ()}
    for old in live["spec"].get("ephemeralContainers") or ():
        name = old["name"]
        if name not in found:
            yield FieldProblem(path, f'Forbidden: existing ephemeral containers "{name}" may not be removed\n')
        elif not equal_json(found[name], old):
            from ocf_server.validation.go_structs import go_diff

            text = f'existing ephemeral containers "{name}" may not be changed'
            yield FieldProblem(path, f"Forbidden: {text}\n{go_diff('EphemeralContainer', old, found[name])}")


def _resized(new: Manifest, live: Manifest, _now: str) -> Manifest:
    kept = pod_resizes.resized(new["spec"], live["spec"])
    return new if kept is None else {**live, "metadata": with_metadata_of(new, live), "spec": kept}


def _finalized(new: Manifest, live: Manifest, _now: str) -> Manifest:
    return {**new, "status": live["status"]} if "status" in live else new


def _finalizer_problems(new: Manifest, _live: Manifest) -> Iterator[FieldProblem]:
    for index, name in enumerate(new["spec"].get("finalizers") or []):
        path = f"spec.finalizers[{index}]"
        yield from (FieldProblem(path, f"Invalid value: {go_json(name)}: {text}") for text in qualified_name(name))
        if "/" not in name and name not in _STANDARD:
            detail = "name is neither a standard finalizer name nor is it fully qualified"
            yield FieldProblem(path, f"Invalid value: {go_json(name)}: {detail}")


_STANDARD: Final = ("kubernetes", "orphan", "foregroundDeletion")
_POD: Final[Kind] = ("", "Pod")
_CERTIFICATE_REQUEST: Final[Kind] = ("certificates.k8s.io", "CertificateSigningRequest")

PARTS: Final[Mapping[tuple[Kind, Subresource], ObjectPart]] = {
    (_POD, Subresource.EPHEMERAL_CONTAINERS): ObjectPart(_ephemeral, _ephemeral_problems),
    (_POD, Subresource.RESIZE): ObjectPart(_resized, pod_resizes.problems),
    (("", "Namespace"), Subresource.FINALIZE): ObjectPart(_finalized, _finalizer_problems, {"f:status": {}}),
    (_CERTIFICATE_REQUEST, Subresource.APPROVAL): ObjectPart(
        certificate_requests.approved,
        certificate_requests.approval_problems,
        {"f:spec": {}, "f:status": {"f:certificate": {}}},
    ),
    (_CERTIFICATE_REQUEST, Subresource.STATUS): ObjectPart(
        certificate_requests.with_status,
        certificate_requests.status_problems,
        {"f:spec": {}, "f:status": {"f:conditions": {}}},
    ),
}
"""The parts, by kind and subresource."""


def part_of(resource: ApiResource, subresource: Subresource | None) -> ObjectPart | None:
    """Return the part of an object that a subresource writes; None for the object itself and for other subresources."""
    return PARTS.get(((resource.group, resource.kind), subresource)) if subresource else None
