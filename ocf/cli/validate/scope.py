"""Documents that `ocf validate` passes over, with the reason, and how many there are.

An ordinary repository has more YAML than manifests: workflows, templates, patches, pages. They are passed over, so
that a command over the whole repository fails only for autoscalers; a summary counts them, so that a run in which
nothing was validated does not look like a success.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from enum import StrEnum
from functools import lru_cache
from itertools import groupby
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final

from ocf.autoscaling.api.kinds import kind_problem
from ocf.cli.validate.report import KIND
from ocf.errors import ConfigError
from ocf.objects.documents import load_documents
from ocf.objects.paths import get_field

if TYPE_CHECKING:
    from pathlib import Path

    from ocf.cli.manifest_files import Document
    from ocf.cli.validate.report import ValidationReport

__all__ = ["PassedOver", "ValidationScope", "excuse"]

# Compiled on first use: most files need neither.
_PLACEHOLDER: Final = r"\{\{|\{%|\$\{|\$\(|<%"
_TEMPLATE: Final = r"(?m)^[^#\n]*(?:\{\{|\{%|<%)"
_KUSTOMIZATIONS: Final = ("kustomization.yaml", "kustomization.yml", "Kustomization")
_MOST_KINDS: Final = 5
_MOST_PARENTS: Final = 4


class PassedOver(StrEnum):
    """Reason why a document is not validated."""

    OTHER_KIND = "of other kinds"
    HELM = "Helm templates"
    TEMPLATE = "templates"
    PATCH = "Kustomize patches"
    UNREADABLE = "that Kubernetes cannot read"


_NOTES: Final = {
    PassedOver.HELM: "a Helm template; validate what `helm template` renders",
    PassedOver.TEMPLATE: "a template; validate what it renders to",
    PassedOver.PATCH: "a Kustomize patch; validate what `kubectl kustomize` builds",
}


class ValidationScope:
    """What was validated, and what was passed over.

    Attributes:
        unread: Number of files and folders that cannot be read, or are empty folders.
    """

    def __init__(self) -> None:
        self.valid = 0
        self.invalid = 0
        self.unread = 0
        self.passed_over: Counter[PassedOver] = Counter()
        self.kinds: Counter[str] = Counter()
        self.notes: dict[tuple[str, PassedOver], str] = {}
        self.warnings: dict[tuple[str, str], None] = {}

    def select(self, documents: Iterable[Document]) -> Iterator[Document]:
        """Yield the documents that have to be validated, and count the others.

        kubectl stops at a document that it cannot read, so that one is validated, too, if the file has an autoscaler.
        """
        for _, group in groupby(documents, key=attrgetter("file")):
            of_file = list(map(_read_as_item, group))
            meant = [each.manifest is not None and _is_meant(each.manifest) for each in of_file]
            applied = any(meant)
            for document, is_meant in zip(of_file, meant, strict=True):
                if is_meant or self._covers(document, applied=applied):
                    self.warnings |= dict.fromkeys((document.file, warning) for warning in document.warnings)
                    yield document

    def _covers(self, document: Document, *, applied: bool) -> bool:
        """Return whether a document that is no autoscaler has to be validated; otherwise count it."""
        if document.manifest is not None:
            self.kinds[str(document.manifest.get("kind") or "none")] += 1
            self.passed_over[PassedOver.OTHER_KIND] += 1
            return False
        if _is_unread(document):
            return True  # a file or folder that cannot be read may contain anything
        from ocf.cli.validate.places import has_plain_keys, names_autoscaler

        if re.search(_TEMPLATE, document.text) and not has_plain_keys(document.text):
            self._pass_over(document, _template(document))
            return False
        if applied or names_autoscaler(document.text):
            return True
        self._pass_over(document, PassedOver.UNREADABLE)
        return False

    def counts(self, report: ValidationReport) -> bool:
        """Return whether the errors of a report count, and count the report.

        The errors of a template are those of its placeholders, and a Kustomize patch is only a part of an object.
        """
        reason = None if report.valid else excuse(report.document)
        if reason is not None:
            self._pass_over(report.document, reason)
            return False
        if _is_unread(report.document):
            self.unread += 1
        elif report.valid:
            self.valid += 1
        else:
            self.invalid += 1
        return True

    def _pass_over(self, document: Document, reason: PassedOver) -> None:
        self.passed_over[reason] += 1
        self.notes.setdefault((document.file, reason), _NOTES.get(reason, document.problem))

    def lines(self) -> Iterator[str]:
        """Yield the notes, and the summary."""
        for file, warning in self.warnings:
            yield f"note: {file}: {warning}"
        for (file, _), note in self.notes.items():
            yield f"note: {file}: passed over: {note}"
        total = self.valid + self.invalid
        result = f": {self.valid} valid, {self.invalid} invalid" if total else ""
        yield f"validated {_plural(total, KIND)}{result}"
        if self.unread:
            yield f"nothing could be validated in {_plural(self.unread, 'file or folder', 'files or folders')}"
        if self.passed_over:
            parts = [f"{self.passed_over[reason]} {reason}" for reason in PassedOver if self.passed_over[reason]]
            if self.kinds:
                parts[0] += f" ({_most_common(self.kinds)})"
            yield f"passed over {_plural(self.passed_over.total(), 'document')}: {', '.join(parts)}"


def _read_as_item(document: Document) -> Document:
    """Return an item of a list that is no autoscaler and has no kind or version as what kubectl cannot read."""
    manifest = document.manifest
    if manifest is None or not document.path or _is_meant(manifest):
        return document
    missing = next((field for field in ("kind", "apiVersion") if not manifest.get(field)), "")
    if not missing:
        return document
    problem = f"{document.path}.{missing} is missing: kubectl does not read a List with such an item"
    return document._replace(manifest=None, problem=problem)


def _is_meant(manifest: dict[str, Any]) -> bool:
    return manifest.get("kind") == KIND or kind_problem(manifest) is not None


def _plural(count: int, noun: str, several: str = "") -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {several or f'{noun}s'}"


def _is_unread(document: Document) -> bool:
    return document.manifest is None and document.number == 0 and not document.text


def _most_common(kinds: Counter[str]) -> str:
    shown = ", ".join(f"{count} {kind}" for kind, count in kinds.most_common(_MOST_KINDS))
    return f"{shown}, …" if len(kinds) > _MOST_KINDS else shown


def excuse(document: Document) -> PassedOver | None:
    """Return why the errors of an autoscaler are not those of an object that a user applies; None if they are."""
    manifest = document.manifest
    if manifest is None:
        return None
    named = [get_field(manifest, ("metadata", field)) for field in ("name", "namespace")]
    if any(re.search(_PLACEHOLDER, text) for text in _texts([manifest.get("spec"), *named])):
        return _template(document)
    from pathlib import Path

    return PassedOver.PATCH if _is_patch(Path(document.file).resolve()) else None


def _is_patch(file: Path) -> bool:
    """Return whether a kustomization uses a file as a patch: one in its folder, in a folder above, or beside these."""
    for folder in file.parents[:_MOST_PARENTS]:
        if any(file in _patches(each) for each in (folder, *_kustomized_in(folder))):
            return True
    return False


@lru_cache(maxsize=256)
def _kustomized_in(folder: Path) -> frozenset[Path]:
    """Return the folders in a folder that have a kustomization; each is asked, and there may be thousands."""
    return frozenset(each.parent for name in _KUSTOMIZATIONS for each in folder.glob(f"*/{name}"))


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for each in value.values() if isinstance(value, dict) else value:
            yield from _texts(each)


def _template(document: Document) -> PassedOver:
    from pathlib import Path

    return PassedOver.HELM if _is_in_chart(Path(document.file).resolve().parent) else PassedOver.TEMPLATE


@lru_cache(maxsize=256)
def _is_in_chart(folder: Path) -> bool:
    folders = (folder, *folder.parents)
    return any(each.name == "templates" and (each.parent / "Chart.yaml").is_file() for each in folders)


@lru_cache(maxsize=256)
def _patches(folder: Path) -> frozenset[Path]:
    """Return the files that the kustomization of a folder uses as patches."""
    found: set[Path] = set()
    for name in _KUSTOMIZATIONS:
        try:
            documents = load_documents((folder / name).read_text(encoding="utf-8"))
        except (OSError, ValueError, ConfigError):
            continue
        for document in documents:
            listed = [*_list(document, "patches"), *_list(document, "patchesStrategicMerge")]
            paths = [each.get("path") if isinstance(each, dict) else each for each in listed]
            found |= {(folder / path).resolve() for path in paths if isinstance(path, str) and "\n" not in path}
    return frozenset(found)


def _list(document: dict[str, Any], name: str) -> list[Any]:
    found = document.get(name)
    return found if isinstance(found, list) else []
