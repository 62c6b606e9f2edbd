"""Text files of any size, read line by line within limits."""

import gzip
import io
import stat
import zlib
from codecs import getincrementaldecoder
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, Final, TextIO, cast

from ocf.objects.file_problems import file_problem
from ocf.simulation.input_errors import InputError, InputProblem

__all__ = ["BY_LINES", "MAX_JSON_BYTES", "bounded_lines", "open_text", "read_bounded"]

MAX_JSON_BYTES: Final = 64 * 2**20
"""Largest text that is read at once."""
BY_LINES: Final = "write it as CSV or JSON Lines, which are read line by line"
"""What to do with a series that is too long to be read at once."""
# A row of numbers has some ten characters, so a longer line is of another kind of file.
_LONGEST_LINE: Final = 64 * 2**10


@contextmanager
def open_text(file: Path) -> Iterator[TextIO]:
    """Open a text in UTF-8; one that ends in `.gz` is decompressed while it is read."""
    try:
        # A pipe might never end, and reading of a device may have effects.
        if not stat.S_ISREG(file.stat().st_mode):
            raise InputError([InputProblem(str(file), "must be a file, not a folder, a pipe or a device")])
        with file.open("rb") as opened:
            raw = _decompressed(opened, file)
            # Spreadsheets begin a CSV file with a byte order mark.
            with io.TextIOWrapper(raw, encoding="utf-8-sig") as text:
                yield text
    except UnicodeDecodeError as error:
        detail = f"must be a text in UTF-8, got the byte 0x{error.object[error.start]:02x}: {error.reason}"
        raise InputError([InputProblem(str(file), detail, _undecodable_line(file))]) from None
    except (gzip.BadGzipFile, zlib.error, EOFError) as error:
        raise InputError([InputProblem(str(file), f"must be a gzip file: {error}")]) from None
    except OSError as error:
        raise InputError([InputProblem(str(file), f"cannot be read: {file_problem(str(file), error)}")]) from None
    except ValueError:
        if "\0" not in str(file):
            raise
        raise InputError([InputProblem(str(file), "cannot be read: a null character in its name")]) from None


def _decompressed(opened: BinaryIO, file: Path) -> BinaryIO:
    return cast("BinaryIO", gzip.GzipFile(fileobj=opened)) if file.suffix == ".gz" else opened


def _undecodable_line(file: Path) -> int:
    """Return the line of the first byte that is not UTF-8; the text is read again up to there."""
    decoder, line = getincrementaldecoder("utf-8")(), 1
    with file.open("rb") as opened:
        raw = _decompressed(opened, file)
        try:
            while chunk := raw.read(_LONGEST_LINE):
                line += decoder.decode(chunk).count("\n")
        except UnicodeDecodeError as error:
            return line + error.object.count(b"\n", 0, error.start)
    return line


def bounded_lines(text: TextIO, file: Path, longest: int = _LONGEST_LINE) -> Iterator[str]:
    """Yield the lines of a text without their ends; none is read beyond the limit."""
    number = 0
    rest = ""
    while chunk := text.read(_LONGEST_LINE):
        lines = f"{rest}{chunk}".split("\n")
        rest = lines.pop()
        yield from lines
        number += len(lines)
        if len(rest) > longest:
            detail = f"longer than {longest} characters: is this a text with a row in each line?"
            raise InputError([InputProblem(str(file), detail, line=number + 1)])
    if rest:
        yield rest


def read_bounded(file: Path, advice: str = "is it another file?") -> str:
    """Return a whole text."""
    with open_text(file) as text:
        found = text.read(MAX_JSON_BYTES + 1)
    if len(found) > MAX_JSON_BYTES:
        limit = MAX_JSON_BYTES // 2**20
        detail = f"longer than {limit} MiB: {advice}"
        raise InputError([InputProblem(str(file), detail)])
    return found
