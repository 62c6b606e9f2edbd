"""Files of `ocf nodegroups try`: which of their objects take part."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from ocf.cli.manifest_files import Document, read_documents
from ocf.cli.nodegroups.trial_checks import annotation_problems, kind_problem, place_of
from ocf.cli.owner_check import InvalidObjectsError
from ocf.cli.validate.places import find_place
from ocf.errors import ConfigError
from ocf.objects.manifest import SERVER_METADATA, split_api_version
from ocf.objects.owner_references import controller_of
from ocf.objects.suggestions import nearest

if TYPE_CHECKING:
    from ocf.objects import Manifest

__all__ = ["LeftOut", "TrialFiles", "read_trial_files"]

# What users write; all other objects follow from these.
_WORKLOADS: Final = (
    ("apps/v1", "Deployment"),
    ("apps/v1", "ReplicaSet"),
    ("apps/v1", "StatefulSet"),
    ("batch/v1", "Job"),
    ("scheduling.k8s.io/v1", "PriorityClass"),
)
_OTHER_KIND: Final = "of kinds that have no part in it"
_CREATED: Final = "that their controllers create"
_STARTED: Final = "of node groups, which start empty"
_MEANINGS: Final = {
    "HorizontalPodAutoscaler": "of autoscalers: replicas stay as written",
    "HorizontalAutoscaler": "of autoscalers: replicas stay as written",
    "ScaledObject": "of autoscalers: replicas stay as written",
    "ScaledJob": "of autoscalers: replicas stay as written",
    "VerticalPodAutoscaler": "that change requests: requests stay as written",
    "CronJob": "that start Jobs: no Job starts; add a Job to try one",
    "ReplicationController": "that create pods elsewhere: they have no pods here; write a Deployment to try them",
    "LimitRange": "that limit namespaces: they set no defaults and no limits here",
    "ResourceQuota": "that limit namespaces: they set no defaults and no limits here",
}
"""What it means that objects of a kind are left out."""


@dataclass(frozen=True, slots=True)
class LeftOut:
    """Objects of one kind that do not take part.

    Args:
        objects: How many.
        reason: Why, and what that means.
    """

    kind: str
    objects: int
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialFiles:
    """The objects of files.

    Args:
        documents: Those that take part.
        left_out: Those that do not, in the order of the files.
    """

    documents: Sequence[Document]
    left_out: Sequence[LeftOut]

    @property
    def namespaces(self) -> Sequence[str]:
        """The namespaces of the objects."""
        found = {_metadata(each.manifest or {}).get("namespace") for each in self.documents}
        return sorted(str(each) for each in found if each)

    def notes(self) -> Iterator[str]:
        """Yield a line for each reason why objects do not take part."""
        for reason in dict.fromkeys(each.reason for each in self.left_out):
            kinds = sorted((each.kind, each.objects) for each in self.left_out if each.reason == reason)
            yield f"left out: objects {reason}: {', '.join(f'{count} {kind}' for kind, count in kinds)}"


def read_trial_files(files: Sequence[str]) -> TrialFiles:
    """Read files, and leave out what has no part in a trial.

    Raises:
        ConfigError: If a document cannot be read, an object has no name or an invalid field, two objects are the same
            one, or there is no node group. It has all problems of one sort.
    """
    from ocf.controllers.nodegroup.cluster_reader import KINDS
    from ocf.controllers.nodegroup.objects import API_VERSION

    taking_part = {*KINDS, *_WORKLOADS}
    documents = list(read_documents(files))
    _raise(_unreadable(each) for each in documents if each.manifest is None)
    known = {_identity(each.manifest) for each in documents if each.manifest is not None}
    kept: list[Document] = []
    left_out: dict[tuple[str, str], int] = {}
    problems: list[str] = []
    for each in documents:
        manifest = each.manifest or {}
        kind = str(manifest.get("kind"))
        if _kind(manifest) not in taking_part and (problem := kind_problem(each, taking_part)):
            problems.append(problem)
        elif reason := _reason(manifest, known, taking_part):
            left_out[kind, reason] = left_out.get((kind, reason), 0) + 1
        elif problem := _name_problem(each):
            problems.append(problem)
        else:
            kept.append(each)
    _raise([*problems, *_repeated(kept), *(problem for each in kept for problem in _object_problems(each))])
    if not any(_kind(each.manifest or {}) == (API_VERSION, "NodeGroup") for each in kept):
        names = ", ".join(files)
        raise ConfigError(f"{names}: must contain an object of kind NodeGroup of {API_VERSION}, the group to try")
    priorities = _priorities(kept)
    _raise(problem for each in kept for problem in _priority_problems(each, priorities))
    counted = [LeftOut(kind, count, reason) for (kind, reason), count in left_out.items()]
    documents = [each._replace(manifest=_as_written(each, priorities)) for each in kept]
    return TrialFiles(documents=documents, left_out=counted)


def _raise(problems: Iterable[str]) -> None:
    found = list(problems)
    if found:
        raise InvalidObjectsError(found)


def _unreadable(document: Document) -> str:
    """Return why a document cannot be read, with the line of the problem alone."""
    line = find_place(document, "").line
    return f"{document.file}:{line}: {document.problem.replace(f'line {line}: ', '', 1)}"


def _name_problem(document: Document) -> str:
    name = _metadata(document.manifest or {}).get("name")
    if isinstance(name, str) and name:
        return ""
    return f"{place_of(document, 'metadata.name')}: must be a string, got {name!r}"


def _repeated(documents: Sequence[Document]) -> Iterator[str]:
    """Yield the objects that an earlier one of the same identity would be replaced by."""
    first: dict[tuple[str, str, str, str], Document] = {}
    for each in documents:
        manifest = each.manifest or {}
        group = split_api_version(str(manifest["apiVersion"]))[0]
        other = first.setdefault((group, *_identity(manifest)), each)
        if other is not each:
            place = f"{other.file}:{find_place(other, '').line}"
            yield f"{place_of(each, 'metadata.name')}: {place} has the same object: rename or remove one of them"


def _reason(manifest: Manifest, known: set[tuple[str, str, str]], taking_part: Collection[tuple[str, str]]) -> str:
    """Return why an object does not take part, and what that means; empty if it does."""
    from ocf.controllers.nodegroup.objects import MEMBER_LABEL

    if _kind(manifest) not in taking_part:
        return _MEANINGS.get(str(manifest.get("kind")), _OTHER_KIND)
    metadata = _metadata(manifest)
    if manifest["kind"] == "VPSieNode" or MEMBER_LABEL in (metadata.get("labels") or {}):
        return _STARTED
    owner = controller_of(manifest)
    if owner is not None and (owner.kind, str(metadata.get("namespace") or "default"), owner.name) in known:
        return _CREATED
    return ""


def _object_problems(document: Document) -> Iterator[str]:
    manifest = document.manifest or {}
    owner = controller_of(manifest)
    if owner is not None:
        yield (
            f"{place_of(document, 'metadata.ownerReferences')}: its controller, {owner}, is not in the files: add it,"
            " or remove the field"
        )
    yield from annotation_problems(document)
    yield from _problems(document)


def _problems(document: Document) -> Iterator[str]:
    """Yield the invalid fields of an object that decide where pods fit, also in the template of its pods."""
    from ocf.controllers.nodegroup.observation import view_of
    from ocf.nodegroups import Catalog

    manifest = document.manifest or {}
    spec = manifest.get("spec")
    template = spec.get("template") if isinstance(spec, dict) and _kind(manifest) in _WORKLOADS else None
    if isinstance(template, dict):
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": manifest["metadata"], "spec": template.get("spec")}
        found, above = view_of([pod]), "spec.template."
    else:
        found, above = view_of([manifest]), ""
    for rejected in found.snapshot(Catalog()).rejected:
        for each in rejected.problems:
            path = f"{above}{each.path}"
            yield f"{place_of(document, path)}: {each.detail}"


def _priorities(documents: Iterable[Document]) -> Mapping[str, int]:
    """Return the priority by the name of its class, and that of pods without a class by an empty name."""
    from ocf_server.validation.priority_classes import SYSTEM

    found: dict[str, int] = dict(SYSTEM)
    for each in documents:
        manifest = each.manifest or {}
        if manifest["kind"] == "PriorityClass" and isinstance(manifest.get("value"), int):
            names = [manifest["metadata"]["name"], *([""] if manifest.get("globalDefault") is True else [])]
            found |= dict.fromkeys(names, manifest["value"])
    return found


def _pod_spec(manifest: Manifest) -> tuple[str, Mapping[str, Any]]:
    """Return the path and the value of the spec of the pods of an object; an empty one if it has no pods."""
    spec = manifest.get("spec")
    path = "spec"
    if manifest["kind"] != "Pod":
        template = spec.get("template") if isinstance(spec, dict) else None
        spec, path = template.get("spec") if isinstance(template, dict) else None, "spec.template.spec"
    return path, spec if isinstance(spec, dict) else {}


def _priority_problems(document: Document, priorities: Mapping[str, int]) -> Iterator[str]:
    path, spec = _pod_spec(document.manifest or {})
    name = spec.get("priorityClassName")
    if name and name not in priorities:
        found = nearest(str(name), filter(None, priorities))
        hint = f', did you mean "{found}"?' if found else "; add it"
        where = place_of(document, f"{path}.priorityClassName")
        yield f"{where}: the PriorityClass {name!r} is not in the files{hint}"


def _as_written(document: Document, priorities: Mapping[str, int]) -> Manifest:
    """Return an object as its user would have written it, without what the API server has added.

    Pods get the priority of their class, which an admission plugin sets in a cluster.
    """
    manifest = document.manifest or {}
    metadata = {key: value for key, value in manifest["metadata"].items() if key not in SERVER_METADATA}
    written = {**manifest, "metadata": metadata}
    _, spec = _pod_spec(manifest)
    priority = priorities.get(str(spec.get("priorityClassName") or ""))
    if not spec or priority is None or "priority" in spec:
        return written
    changed = {**spec, "priority": priority}
    if manifest["kind"] == "Pod":
        return {**written, "spec": changed}
    return {**written, "spec": {**manifest["spec"], "template": {**manifest["spec"]["template"], "spec": changed}}}


def _kind(manifest: Manifest) -> tuple[str, str]:
    return str(manifest.get("apiVersion")), str(manifest.get("kind"))


def _identity(manifest: Manifest) -> tuple[str, str, str]:
    metadata = _metadata(manifest)
    return str(manifest.get("kind")), str(metadata.get("namespace") or "default"), str(metadata.get("name"))


def _metadata(manifest: Manifest) -> Mapping[str, Any]:
    found = manifest.get("metadata")
    return found if isinstance(found, dict) else {}
