"""Edits of files that make HPAs of a beta those of autoscaling/v2; comments, order and other documents are kept."""

from __future__ import annotations

import codecs
import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from ocf.autoscaling.api.betas import METRIC_LISTS, as_v2
from ocf.autoscaling.api.kinds import HPA_KIND
from ocf.cli.manifest_files import STDIN, documents_in, read_documents
from ocf.cli.output_files import written_file
from ocf.cli.validate.metric_edits import Edit, added_field, aliases_in, comments_in, source_edits
from ocf.errors import ConfigError
from ocf.objects.paths import get_field
from ocf.objects.yaml_places import YamlNode, split_path

if TYPE_CHECKING:
    from ocf.cli.manifest_files import Document
    from ocf.objects import Manifest

__all__ = ["Fixed", "fix_files"]

_TEMPLATE: Final = re.compile(r"""^[^\S\n]*apiVersion:[^\S\n]*["']?(autoscaling/v2beta[12])\b""", re.MULTILINE)


class Fixed(NamedTuple):
    """What was done with a file.

    Args:
        text: A line for the user.
        done: Whether all of its HPAs are of autoscaling/v2 now.
    """

    text: str
    done: bool


def fix_files(paths: Iterable[str]) -> Iterator[Fixed]:
    """Edit the files in which an HPA is of a beta, or has metrics of one; yield what was done with each.

    A file is only written if it then holds what it should, and what it held otherwise; it is replaced at once. Of
    several names of a file, such as symbolic links, the first one counts.

    Raises:
        ConfigError: If a path is the standard input, or a file cannot be written.
    """
    paths = list(paths)
    if STDIN in paths:
        raise ConfigError("--fix edits files; give the name of a file in place of the standard input")
    by_file: dict[str, dict[str, list[Document]]] = {}
    for document in read_documents(paths):
        names = by_file.setdefault(os.path.realpath(document.file), {})
        names.setdefault(document.file, []).append(document)
    for file, documents in (next(iter(names.items())) for names in by_file.values()):
        old = [
            each for each in documents if each.manifest is not None and _converted(each.manifest) is not each.manifest
        ]
        if old:
            places = ", ".join(f"{each.path or f'document {each.number}'}" for each in old)
            problem = _fix(Path(file), documents, old)
            result = f"cannot be edited in place{problem}; write autoscaling/v2 by hand"
            yield Fixed(
                f"{file}: {places}: {result if problem is not None else 'written as autoscaling/v2'}", problem is None
            )
        yield from (Fixed(f"{file}: {each}", done=False) for each in _templates(documents))


def _templates(documents: Iterable[Document]) -> Iterator[str]:
    """Yield the documents that cannot be read and have an API version of a beta."""
    for document in documents:
        found = _TEMPLATE.search(document.text) if document.manifest is None else None
        if found is not None:
            line = document.line + document.text.count("\n", 0, found.start(1))
            yield (
                f"document {document.number}: line {line}: {found[1]} in what is not YAML, such as a template, is not "
                "edited; write autoscaling/v2 by hand"
            )


def _converted(manifest: Manifest) -> Manifest:
    return as_v2(manifest) if manifest.get("kind") == HPA_KIND else manifest


def _fix(path: Path, documents: list[Document], old: list[Document]) -> str | None:
    """Edit a file; return why it would not hold what it should, None if it does.

    Args:
        old: The documents with an HPA of a beta.
    """
    data = path.read_bytes()
    encoding = "utf-16" if data.startswith((b"\xff\xfe", b"\xfe\xff")) else "utf-8"
    if data.startswith(codecs.BOM_UTF8):
        encoding = "utf-8-sig"
    try:
        text = data.decode(encoding)
    except UnicodeDecodeError:
        return ": it is not UTF-8"
    for whole in (False, True):
        edited = _edited(text, documents, whole=whole).encode(encoding)
        if _holds(list(documents_in(str(path), edited)), documents):
            with written_file(path, "--fix") as temporary:
                temporary.write_bytes(edited)
            return None
    names = (
        f"{name} on line {document.line - 1 + line}"
        for text, document in {each.text: each for each in old}.items()
        for name, line in aliases_in(text).items()
    )
    shown = ", ".join(f"*{each}" for each in names)
    return f" because of aliases: {shown}" if shown else ""


def _edited(text: str, documents: list[Document], *, whole: bool) -> str:
    edits: list[Edit] = []
    lines = [0, *(found.end() for found in re.finditer("\n", text))]
    for document in documents:
        if document.manifest is not None:
            edits += (_in_file(edit, document, lines) for edit in _edits(document, document.manifest, whole=whole))
    for start, end, new in sorted(set(edits), reverse=True):
        text = f"{text[:start]}{new}{text[end:]}"
    return text


def _holds(found: list[Document], before: list[Document]) -> bool:
    """Return whether a file holds the converted objects, the others as they were, and all comments."""
    wanted = [None if each.manifest is None else _converted(each.manifest) for each in before]
    if [each.manifest for each in found] != wanted:
        return False
    return _comments(found) == _comments(before)


def _comments(documents: list[Document]) -> list[str]:
    """Return the comments of a file; the items of a list have the text of their document each."""
    texts = dict.fromkeys((each.number, each.text) for each in documents)
    return sorted(comment for _, text in texts for comment in comments_in(text))


def _in_file(edit: Edit, document: Document, lines: list[int]) -> Edit:
    """Return an edit at its place in the file; columns are those of the document."""

    def place(at: int) -> int:
        line = document.text.count("\n", 0, at)
        column = at - document.text.rfind("\n", 0, at) - 1
        return lines[document.line - 1 + line] + column

    return edit._replace(start=place(edit.start), end=place(edit.end))


def _edits(document: Document, manifest: Manifest, *, whole: bool) -> Iterator[Edit]:
    """Yield the edits of an object.

    Args:
        whole: Write the new fields as they are, without the text and the comments of the old ones.
    """
    wanted = _converted(manifest)
    root = YamlNode.root(document.text)
    found = None if root is None else root.descend(split_path(document.path))
    if wanted is manifest or found is None or not found.exact:
        return
    version = found.child("apiVersion")
    if version is not None and manifest["apiVersion"] != wanted["apiVersion"]:
        quote = version.node.style or ""
        yield Edit(version.node.start_mark.index, version.node.end_mark.index, f"{quote}{wanted['apiVersion']}{quote}")
    for part, name, _ in METRIC_LISTS:
        lists = [get_field(each, (part, name)) or () for each in (manifest, wanted)]
        for number, (old, new) in enumerate(zip(*lists, strict=True)):
            for source in new if new != old else ():
                place = found.descend((part, name, number, source))
                if new[source] != old[source] and place.exact:
                    metric = found.descend((part, name, number)).node.start_mark.index
                    yield from source_edits(document.text, place.node, metric, (old[source], new[source]), whole=whole)
    spec, behavior = found.child("spec"), get_field(wanted, ("spec", "behavior"))
    if spec is not None and spec.node.value and behavior != get_field(manifest, ("spec", "behavior")):
        yield added_field(document.text, spec.node, "behavior", behavior)
