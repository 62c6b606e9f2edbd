"""Documents of files and folders; a document that cannot be read does not prevent reading the others."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ocf.errors import ConfigError
from ocf.objects import load_document

if TYPE_CHECKING:
    from ocf.objects import Manifest

__all__ = ["STDIN", "Document", "read_documents"]

STDIN: Final = "-"

_SUFFIXES: Final = frozenset({".json", ".yaml", ".yml"})
_LONGEST: Final = 256 * 2**20
# Three dashes in the first column start a document everywhere, even inside a block scalar.
_SEPARATOR: Final = re.compile(r"^---(?=\s|$)[^\S\n]*", re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """One object of a file, or the reason why it cannot be read.

    Args:
        file: The file as given by the user; `-` is the standard input.
        number: Index of the document in the file, from 1; 0 for the file as a whole.
        line: First line of the document, from 1.
        manifest: The object; None if it cannot be read.
        problem: Why it cannot be read; empty if it can.
    """

    file: str
    number: int = 0
    line: int = 1
    manifest: Manifest | None = None
    problem: str = ""


def read_documents(paths: Iterable[str]) -> Iterator[Document]:
    """Read files, and the files in folders. The objects of a `List` are read like separate documents.

    Args:
        paths: Files, folders, or `-` for the standard input.

    Yields:
        Every object, and every document that cannot be read, in order.
    """
    for path in paths:
        for file in _files(path):
            yield from _of(file)


def _files(path: str) -> list[str]:
    if path == STDIN or not Path(path).is_dir():
        return [path]
    return sorted(str(each) for each in Path(path).rglob("*") if each.suffix in _SUFFIXES and each.is_file())


def _of(file: str) -> Iterator[Document]:
    try:
        text = _text(file)
    except OSError as error:
        yield Document(file=file, problem=f"cannot be read: {error.strerror}")
        return
    except UnicodeDecodeError as error:
        yield Document(file=file, problem=f"invalid text: byte {error.start + 1} is not UTF-8")
        return
    if len(text) > _LONGEST:
        yield Document(file=file, problem=f"longer than {_LONGEST} characters")
        return
    for number, (line, part) in enumerate(_parts(text), 1):
        document = Document(file=file, number=number, line=line)
        try:
            yield from _items(replace(document, manifest=load_document(part)))
        except ConfigError as error:
            yield replace(document, problem=_with_file_line(str(error), line))


def _text(file: str) -> str:
    if file == STDIN:
        return sys.stdin.read(_LONGEST + 1)
    with Path(file).open("rb") as opened:
        return opened.read(_LONGEST + 1).decode("utf-8-sig")


def _parts(text: str) -> Iterator[tuple[int, str]]:
    """Yield the documents that are not empty, each with its first line."""
    separators = list(_SEPARATOR.finditer(text))
    starts = [0, *(separator.end() for separator in separators)]
    ends = [*(separator.start() for separator in separators), len(text)]
    line, counted = 1, 0
    for start, end in zip(starts, ends, strict=True):
        line += text.count("\n", counted, start)
        counted = start
        if not _is_empty(text[start:end]):
            yield line, text[start:end]


def _is_empty(part: str) -> bool:
    lines = (line.strip() for line in part.splitlines())
    return all(not line or line.startswith("#") for line in lines)


def _items(document: Document) -> Iterator[Document]:
    manifest = document.manifest or {}
    items = manifest.get("items")
    if manifest.get("kind") == "List" and isinstance(items, list):
        for item in items:
            if isinstance(item, dict):
                yield replace(document, manifest=item)
            else:
                yield replace(
                    document, problem=f"items of a List must be objects, got {type(item).__name__}", manifest=None
                )
    else:
        yield document


def _with_file_line(problem: str, line: int) -> str:
    """Convert line numbers of a document to those of the file."""
    problem = problem.removeprefix("document: ")
    return re.sub(r"\bline (\d+)", lambda found: f"line {int(found[1]) + line - 1}", problem)
