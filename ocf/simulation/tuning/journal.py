"""The journal of a search: evaluations in a file, so that an interrupted search can go on.

The file is JSON Lines: a header with hashes of the inputs, and a line for each evaluation. It is only appended to. A
line that was cut off, because the process was killed or the disk was full, is ignored and replaced.
"""

import json
import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Final, Self

from ocf.errors import ConfigError
from ocf.simulation.tuning.evaluating import Evaluation

__all__ = ["Journal"]

_FORMAT: Final = "ocf.dev/tuning/v1"
# An evaluation has some kilobytes, so a longer line is of another kind of file.
_LONGEST: Final = 1_000_000


class Journal:
    """A file of evaluations, or none.

    Args:
        path: The file; it is created, or continued. None: nothing is kept.
        inputs: Hashes of the inputs by name; a file of other inputs is rejected.
    """

    def __init__(self, path: Path | None, inputs: Mapping[str, str]) -> None:
        self._path = path
        self._known: dict[str, Evaluation] = {}
        self._file: IO[bytes] | None = None
        if path is not None:
            try:
                self._open(path, {"format": _FORMAT, **inputs})
            except OSError as error:
                self._close()
                raise self._failed(error) from error

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._close()

    def _close(self) -> None:
        if self._file is not None:
            # What could not be written was reported when it was added.
            with suppress(OSError):
                self._file.close()

    def __len__(self) -> int:
        """Number of evaluations in the file."""
        return len(self._known)

    def get(self, key: str) -> Evaluation | None:
        """Return an evaluation; None if it is not known."""
        return self._known.get(key)

    def add(self, key: str, evaluation: Evaluation) -> None:
        """Add an evaluation."""
        self._known[key] = evaluation
        if self._file is not None:
            try:
                self._file.write(_line({"key": key, **evaluation.to_json()}))
                self._file.flush()
            except OSError as error:
                raise self._failed(error) from error

    def sync(self) -> None:
        """Write everything to the disk."""
        if self._file is not None:
            try:
                os.fsync(self._file.fileno())
            except OSError as error:
                raise self._failed(error) from error

    def _open(self, path: Path, header: Mapping[str, Any]) -> None:
        end = self._read(path, header) if path.exists() else 0
        self._file = path.open("r+b" if end else "wb")
        self._file.seek(end)
        self._file.truncate()
        if end == 0:
            self._file.write(_line(header))
            self._file.flush()

    def _read(self, path: Path, header: Mapping[str, Any]) -> int:
        """Read all complete lines, and return where they end."""
        end = 0
        with path.open("rb") as file:
            while (line := file.readline(_LONGEST)).endswith(b"\n"):
                value = self._parsed(line, first=end == 0)
                if end == 0:
                    self._check(value, header)
                else:
                    self._known[value["key"]] = Evaluation.of_json(value)
                end += len(line)
            if end == 0 and not _line(header).startswith(line):
                # Anything but a header that was cut off is another file, which must not be overwritten.
                self._check(self._parsed(line, first=True), header)
        return end

    def _parsed(self, line: bytes, *, first: bool) -> Any:
        try:
            value = json.loads(line)
        except ValueError:
            value = None
        if not isinstance(value, dict) or (not first and "key" not in value):
            raise ConfigError(f"--state: {self._path} is not the state of a search: name another file")
        return value

    def _check(self, found: Mapping[str, Any], header: Mapping[str, Any]) -> None:
        if found.get("format") != _FORMAT:
            raise ConfigError(f"--state: {self._path} is not the state of a search: name another file")
        differing = [name for name, value in header.items() if found.get(name) != value]
        if differing:
            raise ConfigError(
                f"--state: {self._path} is the state of another search, with another {' and '.join(differing)}: go on"
                " with the same inputs, or name another file"
            )

    def _failed(self, error: OSError) -> ConfigError:
        kept = f"; {len(self)} evaluations are known" if self._file is not None else ""
        return ConfigError(f"--state: {self._path} cannot be written: {error.strerror or error}{kept}")


def _line(value: Mapping[str, Any]) -> bytes:
    return json.dumps(value, separators=(",", ":"), allow_nan=False).encode() + b"\n"
