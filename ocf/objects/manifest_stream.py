"""The objects of a text as `kubectl` reads them: documents of YAML, JSON, JSON Lines, and the items of lists."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from ocf.errors import ConfigError
from ocf.objects.documents import load_as_kubectl

if TYPE_CHECKING:
    from ocf.objects.manifest import Manifest

__all__ = ["STDIN", "Document", "document_parts", "documents_in", "opened"]

STDIN: Final = "-"
"""The name of the standard input."""

_HPA_LIST: Final = "HorizontalPodAutoscalerList"
_HPA_VERSIONS: Final = frozenset({"autoscaling/v1", "autoscaling/v2"})
# `kubectl` reads a List of a version that the API server serves; groups with a dot may be those of custom resources.
_LIST_VERSIONS: Final = frozenset({"v1", "/v1", "apps/v1", "autoscaling/v1", "autoscaling/v2", "batch/v1", "policy/v1"})
# Three dashes in the first column start a document everywhere, even inside a block scalar.
_SEPARATOR: Final = re.compile(r"^---(?=\s|$)[^\S\n]*", re.MULTILINE)
_UTF16: Final = (b"\xff\xfe", b"\xfe\xff")
_VISIBLE: Final = re.compile(r"\S")
_BESIDE: Final = re.compile(r"^---[^\S\n]+[^\s#]", re.MULTILINE)
_DIRECTIVE: Final = re.compile(r"(?:\s|#[^\n]*\n)*%")
_MARK: Final = "\ufeff"
_REPLACEMENT: Final = "\ufffd"


class Document(NamedTuple):
    """One object of a file, or the reason why it cannot be read.

    Args:
        file: The file as given by the user; `-` is the standard input.
        number: Index of the document in the file, from 1; 0 for the file as a whole.
        manifest: The object; None if it cannot be read.
        problem: Why it cannot be read; empty if it can.
        text: The text of the document; empty if the file cannot be read.
        path: Field of the document with the object, `items[2]` in a list; empty if it is the whole document.
        warnings: What kubectl passes over in silence, such as the first one of duplicate keys.
    """

    file: str
    number: int = 0
    line: int = 1
    manifest: Manifest | None = None
    problem: str = ""
    text: str = ""
    path: str = ""
    warnings: tuple[str, ...] = ()

    @property
    def place(self) -> str:
        """File, document and path in it, for messages; the file alone for the file as a whole.

        Example:
            >>> Document("shops.yaml", 2, path="items[0]").place
            'shops.yaml: document 2, items[0]'
        """
        file = "the standard input" if self.file == STDIN else self.file
        return f"{file}: document {self.number}{self.path and f', {self.path}'}" if self.number else file


def documents_in(file: str, data: bytes) -> Iterator[Document]:
    """Read the content of a file."""
    encoding = "utf-16" if data.startswith(_UTF16) else "utf-8-sig"
    try:
        text, damaged = data.decode(encoding), False
    except UnicodeDecodeError:
        text, damaged = data.decode(encoding, errors="replace"), True
    beside = {text.count("\n", 0, found.start()) + 1 for found in _BESIDE.finditer(text)}
    for number, (line, part) in enumerate(document_parts(text), 1):
        document = Document(file=file, number=number, line=line, text=part)
        if line in beside:
            problem = f"line {line}: kubectl accepts only a comment beside `---`; write the rest on the next line"
            yield document._replace(problem=problem)
            continue
        if damaged and _REPLACEMENT in part:
            at = line + part.count("\n", 0, part.index(_REPLACEMENT))
            name = encoding.removesuffix("-sig").upper()
            document = document._replace(warnings=(f"line {at}: not {name}; kubectl replaces the bytes by U+FFFD",))
        yield from _read(document)


def _read(document: Document) -> Iterator[Document]:
    try:
        manifest, warnings = load_as_kubectl(document.text)
    except ConfigError as error:
        values = list(_json_values(document.text))
        if len(values) > 1:
            for line, value in values:
                yield from _read(document._replace(line=document.line + line, text=value))
        elif _DIRECTIVE.match(document.text):
            line = document.line + document.text.count("\n", 0, document.text.index("%"))
            problem = f"line {line}: kubectl cannot read a directive such as `%YAML 1.2`; remove the line"
            yield document._replace(problem=problem)
        else:
            yield document._replace(problem=_with_file_line(str(error), document.line))
        return
    if manifest is not None:
        found = tuple(_with_file_line(warning, document.line) for warning in warnings)
        yield from opened(document._replace(manifest=manifest, warnings=(*document.warnings, *found)))


def _json_values(text: str) -> Iterator[tuple[int, str]]:
    """Yield the values of JSON Lines, each with its line, from 0; a line that is not JSON is a value, too."""
    import json

    decoder = json.JSONDecoder()
    found = _VISIBLE.search(text)
    line = counted = 0
    while found is not None and (counted > 0 or found[0] == "{"):
        start = found.start()
        try:
            _, end = decoder.raw_decode(text, start)
        except (ValueError, RecursionError):
            if counted == 0:
                return
            end = text.find("\n", start)
            end = len(text) if end < 0 else end
        line += text.count("\n", counted, start)
        # Blanks in front keep the columns of the file.
        yield line, " " * (start - text.rfind("\n", 0, start) - 1) + text[start:end]
        line += text.count("\n", start, end)
        counted = end
        found = _VISIBLE.search(text, end)


def document_parts(text: str) -> Iterator[tuple[int, str]]:
    r"""Yield the documents of a text that are not empty, each with its first line.

    Example:
        >>> list(document_parts("a: 1\n---\n# empty\n---\nb: 2"))
        [(1, 'a: 1\n'), (4, '\nb: 2')]
    """
    separators = list(_SEPARATOR.finditer(text))
    starts = [0, *(separator.end() for separator in separators)]
    ends = [*(separator.start() for separator in separators), len(text)]
    line, counted = 1, 0
    for start, end in zip(starts, ends, strict=True):
        line += text.count("\n", counted, start)
        counted = start
        if not _is_empty(text[start:end]):
            part = text[start:end]
            # Blanks in front keep the columns of what begins beside a separator.
            beside = start - text.rfind("\n", 0, start) - 1 if part[0] in "{[" else 0
            yield line, " " * beside + (part.replace(_MARK, "", 1) if part.lstrip().startswith(_MARK) else part)


def _is_empty(part: str) -> bool:
    """Return whether a document has only blank lines and comments."""
    lines = (line.strip(f"{_MARK} \t\r") for line in part.splitlines())
    return all(not line or line.startswith("#") for line in lines)


def opened(document: Document) -> Iterator[Document]:
    """Yield the objects of a list such as `List`, each with its path, or the document if it is not a list."""
    manifest = document.manifest or {}
    kind, items = manifest.get("kind"), manifest.get("items")
    if not isinstance(kind, str) or not kind.endswith("List") or not isinstance(items, list):
        yield document
        return
    problem = _list_problem(kind, manifest.get("apiVersion"))
    if problem:
        yield document._replace(problem=problem, manifest=None)
        return
    # As in the client: an item of a list such as HorizontalPodAutoscalerList may leave out its kind and version, but
    # not one of them.
    typed = {"apiVersion": manifest["apiVersion"], "kind": kind.removesuffix("List")} if kind != "List" else {}
    # The API server reads an item in its own version, but no list of a version that it does not serve.
    unserved = typed if kind == _HPA_LIST and manifest["apiVersion"] not in _HPA_VERSIONS else {}
    for position, item in enumerate(items):
        path = f"{document.path}.items[{position}]".removeprefix(".")
        problem = _item_problem(item, typed.get("kind"))
        if problem:
            yield document._replace(problem=f"{path}: {problem}", manifest=None)
        else:
            yield from opened(document._replace(manifest={**item, **_added(item, typed), **unserved}, path=path))


def _added(item: Manifest, typed: dict[str, Any]) -> dict[str, Any]:
    return {} if item.get("apiVersion") or item.get("kind") else typed


def _list_problem(kind: str, version: object) -> str:
    """Return why kubectl does not read a list; empty if it does."""
    if not version:
        return f"apiVersion is missing: kubectl does not read a {kind} without it"
    group = str(version).rpartition("/")[0]
    if kind != "List" or version in _LIST_VERSIONS or ("." in group and "/" not in group):
        return ""
    return f"{version!r:.80} is not a version of the API server: write apiVersion: v1 for kind: List"


def _item_problem(item: object, kind: str | None) -> str:
    """Return why kubectl does not read an item of a list; empty if it does.

    Args:
        kind: The kind of all items; None in a `List`.
    """
    if not isinstance(item, dict):
        return f"items of a List must be objects, got {type(item).__name__}"
    if kind is None and not item:
        return "is empty: kubectl does not read a List with such an item; remove it"
    if item.get("kind") == "List":
        return "kubectl does not read a List in a List; write its items into the outer one"
    if kind is not None and item.get("kind") not in {None, kind}:
        return f"a {kind}List has only items of kind {kind}, got {item['kind']!r}; write kind: List"
    return ""


def _with_file_line(problem: str, line: int) -> str:
    """Convert line numbers of a document to those of the file."""
    problem = problem.removeprefix("document: ")
    return re.sub(r"\bline (\d+)", lambda found: f"line {int(found[1]) + line - 1}", problem)
