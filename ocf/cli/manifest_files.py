"""Documents of files and folders, read as kubectl reads them.

A document that cannot be read does not prevent reading the others, while kubectl stops there.
"""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Final

from ocf.errors import ConfigError
from ocf.objects.file_problems import file_problem
from ocf.objects.manifest_stream import STDIN, Document, document_parts, documents_in, opened

if TYPE_CHECKING:
    from pathlib import Path

    from ocf.objects import Manifest

__all__ = ["STDIN", "Document", "document_parts", "documents_in", "opened", "read_documents", "read_manifests"]

_SUFFIXES: Final = frozenset({".json", ".yaml", ".yml"})
_LONGEST: Final = 256 * 2**20


def read_documents(paths: Iterable[str]) -> Iterator[Document]:
    """Read files, and the YAML and JSON files in folders.

    Hidden folders in a folder are left out. The objects of a list, such as `List` or `HorizontalPodAutoscalerList`, are
    read like separate documents, and so are the values of JSON Lines. Texts are UTF-8, or UTF-16 with a byte order
    mark; as in kubectl, what is neither becomes U+FFFD.

    Args:
        paths: Files, folders, or `-` for the standard input.
    """
    for path in paths:
        if path == STDIN or not os.path.isdir(path):  # noqa: PTH112 (pathlib is imported for folders only)
            yield from _of(path)
            continue
        files, problems = _files(path)
        yield from problems
        for file in files:
            yield from _of(file)
        if not files and not problems:
            yield Document(file=path, problem="the folder contains no YAML or JSON files")


def _files(folder: str) -> tuple[list[str], list[Document]]:
    """Return the files of a folder in order, and the folders in it that cannot be read."""
    from pathlib import Path

    found: list[str] = []
    errors: list[OSError] = []
    for parent, folders, names in os.walk(folder, onerror=errors.append):
        folders[:] = (each for each in folders if not each.startswith("."))
        paths = (Path(parent, name) for name in names)
        found += (str(path) for path in paths if path.suffix in _SUFFIXES and _may_be_file(path))
    return sorted(found), [_unreadable(str(error.filename), error) for error in errors]


def _may_be_file(path: Path) -> bool:
    """Return False for a pipe or a device; reading reports a file that cannot be accessed, and a broken link."""
    try:
        return stat.S_ISREG(path.stat().st_mode)
    except FileNotFoundError:
        # Hidden ones are the locks of an editor: Emacs makes `.#corner.yaml`, which links to the name of a process.
        return not path.name.startswith(".")
    except OSError:
        return True


def _unreadable(file: str, error: OSError) -> Document:
    return Document(file=file, problem=f"cannot be read: {file_problem(file, error)}")


def _of(file: str) -> Iterator[Document]:
    try:
        data = _bytes(file)
    except OSError as error:
        yield _unreadable(file, error)
        return
    if len(data) > _LONGEST:
        yield Document(file=file, problem=f"longer than {_LONGEST} bytes")
        return
    yield from documents_in(file, data)


def _bytes(file: str) -> bytes:
    if file == STDIN:
        return sys.stdin.buffer.read(_LONGEST + 1)
    with open(file, "rb") as opened:  # noqa: PTH123 (likewise)
        return opened.read(_LONGEST + 1)


def read_manifests(files: Iterable[Path]) -> Iterator[Manifest]:
    """Read all documents of some files."""
    from ocf.errors import ManifestError
    from ocf.objects.documents import load_documents

    for file in files:
        try:
            yield from load_documents(file.read_text(encoding="utf-8"))
        except OSError as error:
            raise ConfigError(f"{file} cannot be read: {file_problem(str(file), error)}") from error
        except UnicodeDecodeError as error:
            raise ConfigError(f"{file} cannot be read: {error}") from error
        except ManifestError as error:
            raise ConfigError(f"{file}: {error}") from error
