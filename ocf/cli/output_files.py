"""Files that commands write: complete, or not at all."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

__all__ = ["check_folder", "write_file", "written_file"]


def check_folder(path: Path, option: str) -> None:
    """Reject a file whose folder does not exist, before the work is done."""
    from ocf.errors import ConfigError

    try:
        if not path.parent.is_dir():
            raise ConfigError(f"{option}: the folder {path.parent} does not exist")
        if path.is_dir():
            raise ConfigError(f"{option}: {path} is a folder; write the name of a file")
    except OSError as error:
        raise ConfigError(f"{option}: {path} cannot be written: {error.strerror or error}") from None


def write_file(path: Path, parts: Iterable[str], option: str) -> None:
    """Write text into a file, which has all of it or is left as it was.

    Args:
        path: The file; an existing one is replaced.
    """
    with written_file(path, option) as temporary, _opened(temporary) as file:
        file.writelines(parts)


def _opened(path: Path) -> IO[str]:
    return path.open("w", encoding="utf-8", newline="")


@contextmanager
def written_file(path: Path, option: str) -> Iterator[Path]:
    """Provide a file beside another one, which it replaces if the block ends without an error.

    A device or a pipe is provided itself.
    """
    from ocf.errors import ConfigError

    try:
        if path.exists() and not path.is_file():
            yield path
            return
        path = path.resolve()
        handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
        os.close(handle)
        temporary = Path(name)
        try:
            yield temporary
            _take_over(path, temporary)
            temporary.replace(path)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
    except OSError as error:
        raise ConfigError(f"{option}: {path} cannot be written: {error.strerror or error}") from error


def _take_over(path: Path, temporary: Path) -> None:
    """Store the content of a temporary file, and give it the owner, if that is allowed, and the mode of another one."""
    with temporary.open("rb+") as file:
        os.fsync(file.fileno())
    if not path.exists():
        temporary.chmod(0o666 & ~_umask())
        return
    found = path.stat()
    if hasattr(os, "chown"):
        with suppress(PermissionError):
            os.chown(temporary, found.st_uid, found.st_gid)
    temporary.chmod(found.st_mode)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
