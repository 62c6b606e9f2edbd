"""Files of a new project or kind: made beside their folder, then moved into it, all of them or none."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ocf.errors import ConfigError

__all__ = ["NewFiles", "run_python", "write_files"]

_SHOWN: Final = 5


@dataclass(frozen=True, slots=True)
class NewFiles:
    """Files to write."""

    texts: Mapping[str, str]
    replaced: Collection[str] = ()
    optional: Collection[str] = ()
    hint: str = "use another folder"


def write_files(folder: Path, files: NewFiles, generate: Callable[[Path], None] | None = None) -> int:
    """Write files into a folder; an error leaves nothing behind.

    Args:
        generate: Adds files that follow from the others, in the folder where they are made; None if there are none.
    """
    _reject_existing(folder, [path for path in files.texts if _is_new(files, path)], files.hint)
    place = folder if folder.exists() else folder.absolute().parent
    try:
        place.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".ocf-new-", dir=place) as scratch:
            made = Path(scratch, "project")
            for path, text in files.texts.items():
                (made / path).parent.mkdir(parents=True, exist_ok=True)
                (made / path).write_text(text, encoding="utf-8")
            if generate is not None:
                generate(made)
            for path in files.optional:
                if (folder / path).exists():
                    (made / path).unlink(missing_ok=True)
            paths = sorted(path.relative_to(made) for path in made.rglob("*") if path.is_file())
            _reject_existing(folder, [str(path) for path in paths if _is_new(files, path.as_posix())], files.hint)
            if not folder.exists():
                made.rename(folder)
            else:
                _move(made, folder, paths, files.replaced)
    except OSError as error:
        raise ConfigError(f"{folder} cannot be written: {error.strerror or error}") from error
    return len(paths)


def _is_new(files: NewFiles, path: str) -> bool:
    return path not in files.replaced and path not in files.optional


def run_python(program: str, arguments: Sequence[str], folder: Path) -> None:
    """Run code of a new project in a process of its own, in its folder."""
    command = [sys.executable, "-c", program, *arguments]
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1", "PYTHONSAFEPATH": "1"}
    done = subprocess.run(  # noqa: S603 (ourselves)
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise ConfigError(f"the project cannot be generated: {(done.stderr or done.stdout).strip()}")


def _reject_existing(folder: Path, paths: Sequence[str], hint: str) -> None:
    existing = sorted(path for path in paths if (folder / path).exists() or (folder / path).is_symlink())
    if folder.exists() and not folder.is_dir():
        raise ConfigError(f"{folder} is not a folder")
    if existing:
        more = len(existing) - _SHOWN
        names = ", ".join(existing[:_SHOWN]) + (f" and {more} more" if more > 0 else "")
        raise ConfigError(f"{folder} has these files already, and none is overwritten: {names}; {hint}")


def _move(made: Path, folder: Path, paths: Sequence[Path], replaced: Collection[str]) -> None:
    """Move files into an existing folder; an error removes those that were new. Existing ones are replaced last."""
    old = [path for path in paths if path.as_posix() in replaced]
    moved: list[Path] = []
    try:
        for path in (path for path in paths if path not in old):
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            os.link(made / path, folder / path)  # fails if another process has created the file meanwhile
            moved.append(folder / path)
        for path in old:
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (made / path).replace(folder / path)
    except BaseException:
        for path in moved:
            path.unlink(missing_ok=True)
        raise
