"""The file kind `Recording`: what an autoscaler read, and what it did, as changes over time.

A recording is a text in JSON Lines: a header, and a `Change` for each instant at which something changed. It holds the
objects themselves, so that it can be written while it is recorded, and be used up to where it was interrupted.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, Final, Literal

from pydantic import AwareDatetime, Field, ValidationError

from ocf.objects import Manifest
from ocf.objects.field_types import FileModel
from ocf.objects.timestamps import Fraction, format_time
from ocf.simulation.input_errors import InputError, InputProblem
from ocf.simulation.load.json_rows import parse_json
from ocf.simulation.load.text_files import bounded_lines, open_text
from ocf.simulation.model_problems import model_problems
from ocf.simulation.recording.objects import difference, identity

__all__ = ["Change", "RecordingHeader", "RecordingWriter", "State", "is_recording", "read_states"]

KIND: Final = "Recording"
FORMAT: Final = 3
"""The version of the format: 1 has no nodes, and 2 no failures of metrics."""
# A line holds all objects that changed at an instant: thousands of pods.
_LONGEST_LINE: Final = 16 * 2**20


class RecordingHeader(FileModel):
    """The first line of a recording.

    Args:
        api_version: `ocf.dev/v1`.
        kind: `Recording`.
        name: Name of the HPA.
        format: Version of the format, see `FORMAT`; it was not written before version 2.
    """

    api_version: Literal["ocf.dev/v1"] = "ocf.dev/v1"
    kind: Literal["Recording"] = "Recording"
    name: Annotated[str, Field(min_length=1)]
    namespace: str = "default"
    format: Annotated[int, Field(ge=1)] = 1


class Change(FileModel):
    """A line of a recording.

    Args:
        at: When it was observed.
        changed: The objects that are new or have changed.
        removed: The identities of the objects that are gone, see `identity`.
    """

    at: AwareDatetime
    changed: tuple[dict[str, Any], ...] = ()
    removed: tuple[str, ...] = ()


@dataclass(slots=True)
class RecordingWriter:
    """Writer of the lines of a recording; only what changes is written.

    Args:
        name: Name of the HPA.
        namespace: Its namespace.

    Example:
        >>> recorder = RecordingWriter("web", "shop")
        >>> print(recorder.header())
        {"apiVersion":"ocf.dev/v1","kind":"Recording","name":"web","namespace":"shop","format":3}
        >>> pod = {"kind": "Pod", "metadata": {"name": "web-0"}}
        >>> print(recorder.line(datetime(2026, 1, 31, tzinfo=UTC), [pod]))
        {"at":"2026-01-31T00:00:00Z","changed":[{"kind":"Pod","metadata":{"name":"web-0"}}]}
        >>> recorder.line(datetime(2026, 1, 31, tzinfo=UTC), [pod])
        ''
    """

    name: str
    namespace: str
    _objects: dict[str, Manifest] = field(default_factory=dict)

    def header(self) -> str:
        """Return the first line."""
        header = RecordingHeader(name=self.name, namespace=self.namespace, format=FORMAT)
        return header.model_dump_json(by_alias=True)

    def line(self, at: datetime, objects: list[Manifest]) -> str:
        """Return the line for the objects of an instant; empty if nothing has changed.

        Args:
            at: The instant.
            objects: All objects, reduced to what is recorded.
        """
        changed, removed = difference(self._objects, objects)
        if not changed and not removed:
            return ""
        self._objects = {identity(each): each for each in objects}
        found = {"at": format_time(at, Fraction.NONZERO), "changed": changed, "removed": removed}
        return json.dumps({name: part for name, part in found.items() if part}, separators=(",", ":"))


@dataclass(frozen=True, slots=True)
class State:
    """All objects at an instant of a recording.

    Args:
        line: The line of the file.
        at: The instant.
        objects: The objects by identity; the reader changes this map for the next state.
    """

    line: int
    at: datetime
    objects: Mapping[str, Manifest]

    def of(self, kind: str) -> list[Manifest]:
        """Return the objects of a kind."""
        return [each for each in self.objects.values() if each.get("kind") == kind]


def is_recording(path: str | Path) -> bool:
    """Return whether a file is a recording, by its first line; False if it cannot be read.

    Args:
        path: The file.
    """
    file = Path(path)
    try:
        with open_text(file) as text:
            first = next(bounded_lines(text, file), "")
        found = json.loads(first)
    except (InputError, ValueError, RecursionError):
        return False
    return isinstance(found, dict) and found.get("kind") == KIND


def read_states(path: str | Path) -> Iterator[State]:
    """Yield the state after each line of a recording; only one state is held at a time.

    Args:
        path: The file; one that ends in `.gz` is decompressed.

    Raises:
        InputError: If the file cannot be read, is not a recording, has a newer format, or a line is invalid or out of
            order.
    """
    file = Path(path)
    objects: dict[str, Manifest] = {}
    last: datetime | None = None
    for line, content in _lines(file):
        if line == 1:
            _check_format(content, file)
            _parsed(RecordingHeader, content, file, line)
            continue
        change = _parsed(Change, content, file, line)
        at = change.at.astimezone(UTC)
        if last is not None and at <= last:
            detail = f"must come after the line before, {format_time(last)}, got {format_time(at)}"
            raise InputError([InputProblem(str(file), detail, line, "at")])
        last = at
        for name in change.removed:
            objects.pop(name, None)
        objects.update((identity(each), each) for each in change.changed)
        yield State(line, at, objects)
    if last is None:
        raise InputError([InputProblem(str(file), "the recording is empty: it has no line after its header")])


def _check_format(header: Any, file: Path) -> None:
    found = header.get("format") if isinstance(header, dict) else None
    if isinstance(found, int) and found > FORMAT:
        detail = f"must be at most {FORMAT}, got {found}: a newer version of ocf has written it; use that"
        raise InputError([InputProblem(str(file), detail, 1, "format")])


def _lines(file: Path) -> Iterator[tuple[int, Any]]:
    """Yield number and value of each line; the last one may have been cut off while it was written."""
    with open_text(file) as text:
        waiting: InputError | None = None
        for number, line in enumerate(bounded_lines(text, file, longest=_LONGEST_LINE), 1):
            if waiting is not None:
                raise waiting
            try:
                content = parse_json(line, str(file), before=number - 1)
            except InputError as error:
                waiting = error
            else:
                yield number, content
        if waiting is not None and waiting.problems[0].line == 1:
            raise waiting


def _parsed(model: type[Any], content: Any, file: Path, line: int) -> Any:
    if not isinstance(content, dict):
        raise InputError([InputProblem(str(file), f"must be an object, got {type(content).__name__}", line)])
    try:
        return model.model_validate(content, by_alias=True, by_name=False)
    except ValidationError as error:
        found = model_problems(error.errors(), content, model)
        raise InputError(InputProblem(str(file), each.detail, line, each.path) for each in found) from None
