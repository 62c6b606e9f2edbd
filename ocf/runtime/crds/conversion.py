"""Conversion of objects between two neighbouring versions of a custom resource, without loss.

What the target version cannot express is kept in an annotation: the content of the object in the source version. The
conversion back merges it with what has changed since, so a client of an older version neither sees nor removes the
fields of a newer one.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from ocf.errors import FieldProblem, ManifestError
from ocf.lazy_types.pydantic import BaseModel
from ocf.objects import Manifest, read_live
from ocf.objects.json_changes import merge_changes, same_json
from ocf.objects.manifest import PREFIX
from ocf.objects.model_errors import describe_invalid
from ocf.objects.models import validate_live
from ocf.objects.paths import get_field
from ocf.runtime.crds.model_manifests import write_nullable
from ocf.runtime.running_function import name_of, running_function

if TYPE_CHECKING:
    from ocf.runtime.crds.crd import CRDVersion

__all__ = ["ANNOTATION_PREFIX", "ConversionStep", "convert_step"]

_log: Final = logging.getLogger(__name__)

ANNOTATION_PREFIX: Final = f"conversion.{PREFIX}/"
"""Prefix of the annotations that keep what a version cannot express; the name of the version follows."""

_HEAD: Final = ("apiVersion", "kind", "metadata")
_CHANGEABLE: Final = ("labels", "annotations")
_MOST_BYTES: Final = 256 * 1024  # of all annotations of an object
_NOTHING: Final[tuple[Any, ...]] = (None, "", [], {})

_Function = Callable[[Any], "BaseModel"]


@dataclass(frozen=True, slots=True)
class ConversionStep:
    """A conversion between neighbours in one direction.

    Args:
        forth: Converts from the source to the target; None if both have the same model.
        back: Converts from the target to the source; None if both have the same model.
    """

    group: str
    source: CRDVersion
    target: CRDVersion
    forth: _Function | None
    back: _Function | None

    @property
    def source_annotation(self) -> str:
        """Name of the annotation that keeps what the target version cannot express."""
        return f"{ANNOTATION_PREFIX}{self.source.name}"

    @property
    def target_annotation(self) -> str:
        """Name of the annotation that kept what the source version cannot express."""
        return f"{ANNOTATION_PREFIX}{self.target.name}"


def convert_step(manifest: Manifest, step: ConversionStep) -> Manifest:
    """Return an object in the neighbouring version.

    Args:
        manifest: The object; not changed.
    """
    api_version = f"{step.group}/{step.target.name}"
    if step.forth is None or step.back is None:
        return {**manifest, "apiVersion": api_version}
    plain, kept = _split_annotations(manifest)
    run = _Run(step, plain, step.forth, step.back)
    content = run.content
    if (saved := kept.pop(step.target_annotation, None)) is not None:
        content = run.restored(saved)
    kept.pop(step.source_annotation, None)
    if not same_json(run.mapped, run.before):
        kept[step.source_annotation] = json.dumps(run.before, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    metadata = _annotated(run.metadata(), kept, run.subject)
    return {"apiVersion": api_version, "kind": manifest["kind"], "metadata": metadata, **content}


class _Run:
    """The conversion of one object."""

    def __init__(self, step: ConversionStep, manifest: Manifest, forth: _Function, back: _Function) -> None:
        self._step, self._manifest, self._forth, self._back = step, manifest, forth, back
        self.subject: Final = _subject(manifest, step.source)
        given = self._read(manifest, step.source)
        self._given = self._written(given)
        self._made = self._called(forth, given, step.target)
        self._converted = self._written(self._made)
        self.before: Final = _content(self._given)
        self.content: Final = _content(self._converted)
        self.mapped: Final = _content(self._written(self._called(back, self._made, step.source)))

    def restored(self, saved: str) -> Manifest:
        """Return the converted content with the kept fields that have not changed since.

        Kept content that is invalid, or contradicts the present object, is not used.
        """
        target = self._step.target.model
        head = {"apiVersion": f"{self._step.group}/{self._step.target.name}", "kind": self._manifest["kind"]}
        head["metadata"] = self._manifest.get("metadata") or {}
        try:
            kept = _content(json.loads(saved))
            then = validate_live({**kept, **head}, target)
            source = self._called(self._back, then, self._step.source)
            base = _content(self._written(self._called(self._forth, source, self._step.target)))
            merged: Manifest = merge_changes(kept, base, self.content)
            read = validate_live({**merged, **head}, target)
            mapped = _content(self._written(self._called(self._back, read, self._step.source)))
        except (ValueError, TypeError, AttributeError, RecursionError, ManifestError):  # a user may have edited it
            return self.content
        return _content(self._written(read)) if same_json(mapped, self.mapped) else self.content

    def metadata(self) -> Manifest:
        """Return the metadata of the object, with the labels and annotations of the converted one if it has any."""
        original: Manifest = dict(self._manifest.get("metadata") or {})
        before, after = self._given.get("metadata"), self._converted.get("metadata")
        if "metadata" not in self._made.model_fields_set or not isinstance(after, dict):
            return original
        seen = before if isinstance(before, dict) else {}
        problems = [
            FieldProblem(f"metadata.{name}", f"{name_of(self._forth)} must not change it, was {old!r}, got {new!r}")
            for name, new in after.items()
            if name not in _CHANGEABLE and new not in _NOTHING
            for old in [original.get(name)]
            if new not in (old, seen.get(name))
        ]
        if problems:
            raise ManifestError(self.subject, problems)
        changed = {name: after[name] for name in _CHANGEABLE if isinstance(after.get(name), dict)}
        return {name: value for name, value in {**original, **changed}.items() if value or name not in changed}

    def _read(self, manifest: Manifest, version: CRDVersion) -> BaseModel:
        try:
            with running_function(f"the model {version.model.__name__}"):  # its validators are functions, too
                return read_live(manifest, version.model)
        except ManifestError as error:
            raise ManifestError(self.subject, error.problems) from None

    def _written(self, model: BaseModel) -> Manifest:
        try:
            return write_nullable(model)
        except ManifestError as error:
            raise ManifestError(self.subject, error.problems) from None

    def _called(self, function: _Function, model: BaseModel, target: CRDVersion) -> BaseModel:
        try:
            with running_function(name_of(function)):
                made = function(model)
        except ManifestError as error:
            raise ManifestError(self.subject, error.problems) from error
        except Exception as error:
            _log.exception("%s failed for %s", name_of(function), self.subject)
            text = describe_invalid(error) or f"{type(error).__name__}, see the operator's log"
            raise ManifestError(self.subject, [FieldProblem("", f"{name_of(function)} failed: {text}")]) from error
        if not isinstance(made, target.model):
            text = f"{name_of(function)} must return {target.model.__name__}, got {type(made).__name__}"
            raise ManifestError(self.subject, [FieldProblem("", text)])
        return made


def _content(written: Mapping[str, Any]) -> Manifest:
    return {name: value for name, value in written.items() if name not in _HEAD}


def _split_annotations(manifest: Manifest) -> tuple[Manifest, dict[str, str]]:
    """Return the object without the annotations of conversions, and those annotations."""
    metadata = manifest.get("metadata") or {}
    annotations: Mapping[str, str] = metadata.get("annotations") or {}
    kept = {name: value for name, value in annotations.items() if name.startswith(ANNOTATION_PREFIX)}
    if not kept:
        return manifest, kept
    others = {name: value for name, value in annotations.items() if name not in kept}
    without = {name: value for name, value in metadata.items() if name != "annotations"}
    return {**manifest, "metadata": without | ({"annotations": others} if others else {})}, kept


def _annotated(metadata: Manifest, kept: Mapping[str, str], subject: str) -> Manifest:
    if not kept:
        return metadata
    annotations = {**(metadata.get("annotations") or {}), **kept}
    size = sum(len(name.encode()) + len(value.encode()) for name, value in annotations.items())
    if size > _MOST_BYTES:
        names = ", ".join(sorted(kept))
        text = f"must have at most {_MOST_BYTES} bytes in all, got {size} with what a conversion has to keep in {names}"
        raise ManifestError(subject, [FieldProblem("metadata.annotations", text)])
    return {**metadata, "annotations": annotations}


def _subject(manifest: Manifest, version: CRDVersion) -> str:
    place = (get_field(manifest, ("metadata", part)) for part in ("namespace", "name"))
    name = "/".join(str(part) for part in place if part)
    return " ".join(filter(None, [str(manifest.get("kind") or ""), name, f"in {version.name}"]))
