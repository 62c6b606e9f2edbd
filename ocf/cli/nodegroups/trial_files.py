"""Files of `ocf nodegroups try`: which of their objects take part."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from ocf.cli.manifest_files import Document, read_documents
from ocf.cli.owner_check import InvalidObjectsError
from ocf.errors import ConfigError
from ocf.objects.manifest import SERVER_METADATA
from ocf.objects.owner_references import controller_of

if TYPE_CHECKING:
    from ocf.objects import Manifest

__all__ = ["TrialFiles", "read_trial_files"]

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


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialFiles:
    """The objects of files.

    Args:
        documents: Those that take part.
        left_out: How many of each kind do not take part, by the reason.
    """

    documents: Sequence[Document]
    left_out: Mapping[str, Mapping[str, int]]

    @property
    def namespaces(self) -> Sequence[str]:
        """The namespaces of the objects."""
        found = {_metadata(each.manifest or {}).get("namespace") for each in self.documents}
        return sorted(str(each) for each in found if each)

    def notes(self) -> Iterator[str]:
        """Yield a line for each reason why objects do not take part."""
        for reason, kinds in self.left_out.items():
            counted = ", ".join(f"{count} {kind}" for kind, count in sorted(kinds.items()))
            yield f"left out: objects {reason}: {counted}"


def read_trial_files(files: Sequence[str]) -> TrialFiles:
    """Read files, and leave out what has no part in a trial.

    Raises:
        ConfigError: If a document cannot be read, an object has no name or an invalid field, or there is no node group.
    """
    from ocf.controllers.nodegroup.cluster_reader import KINDS

    taking_part = {*KINDS, *_WORKLOADS}
    documents = list(read_documents(files))
    known = {_identity(each.manifest) for each in documents if each.manifest is not None}
    kept: list[Document] = []
    left_out: dict[str, dict[str, int]] = {}
    for each in documents:
        if each.manifest is None:
            raise ConfigError(f"{each.file}:{each.line}: {each.problem}")
        kind = str(each.manifest.get("kind"))
        reason = _reason(each.manifest, known) if _kind(each.manifest) in taking_part else _OTHER_KIND
        if reason:
            counts = left_out.setdefault(reason, {})
            counts[kind] = counts.get(kind, 0) + 1
            continue
        name = _metadata(each.manifest).get("name")
        if not isinstance(name, str) or not name:
            raise ConfigError(f"{each.file}:{each.line}: {kind}: metadata.name: must be a string, got {name!r}")
        kept.append(each._replace(manifest=_as_written(each)))
    if problems := [problem for each in kept for problem in _problems(each)]:
        raise InvalidObjectsError(problems)
    if not any((each.manifest or {}).get("kind") == "NodeGroup" for each in kept):
        raise ConfigError(f"{', '.join(files)}: must contain an object of kind NodeGroup, the group to try")
    return TrialFiles(documents=kept, left_out=left_out)


def _reason(manifest: Manifest, known: set[tuple[str, str, str]]) -> str:
    """Return why an object of a kind that takes part does not; empty if it does."""
    from ocf.controllers.nodegroup.objects import MEMBER_LABEL

    metadata = _metadata(manifest)
    if manifest["kind"] == "VPSieNode" or MEMBER_LABEL in (metadata.get("labels") or {}):
        return _STARTED
    owner = controller_of(manifest)
    if owner is not None and (owner.kind, str(metadata.get("namespace") or "default"), owner.name) in known:
        return _CREATED
    return ""


def _problems(document: Document) -> Iterator[str]:
    """Yield the invalid fields of an object that decide where pods fit, also in the template of its pods."""
    from ocf.cli.validate.places import find_place
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
            line = find_place(document, path).line
            yield f"{document.file}:{line}: {manifest['kind']} {manifest['metadata']['name']}: {path}: {each.detail}"


def _as_written(document: Document) -> Manifest:
    """Return an object as its user would have written it, without what the API server has added."""
    manifest = document.manifest or {}
    owner = controller_of(manifest)
    if owner is not None:
        name = f"{manifest['kind']} {manifest['metadata']['name']}"
        raise ConfigError(
            f"{document.file}:{document.line}: {name}: metadata.ownerReferences: its controller, {owner}, is not in the"
            " files: add it, or remove the field"
        )
    metadata = {key: value for key, value in manifest["metadata"].items() if key not in SERVER_METADATA}
    return {**manifest, "metadata": metadata}


def _kind(manifest: Manifest) -> tuple[str, str]:
    return str(manifest.get("apiVersion")), str(manifest.get("kind"))


def _identity(manifest: Manifest) -> tuple[str, str, str]:
    metadata = _metadata(manifest)
    return str(manifest.get("kind")), str(metadata.get("namespace") or "default"), str(metadata.get("name"))


def _metadata(manifest: Manifest) -> Mapping[str, Any]:
    found = manifest.get("metadata")
    return found if isinstance(found, dict) else {}
