"""Log records as JSON lines, for machines that collect them.

What `ocf` logs carries its facts as extras of the record (`component`, `condition`, `resource`), not only in the
sentence; this formatter keeps them apart. Of an exception it writes type and message and where it was raised, no
traceback: lines of code tell nothing to whoever reads a thousand of these, and what local variables hold is nobody's
business.
"""

import json
import logging
from datetime import UTC, datetime
from pathlib import PurePath
from traceback import walk_tb
from typing import Any, Final

__all__ = ["JsonFormatter"]

_STANDARD: Final = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}
# Deeper chains than this are loops.
_DEEPEST: Final = 10


class JsonFormatter(logging.Formatter):
    """Formats a record as one line of JSON: `time`, `level`, `logger`, `message`, its extras, and `error`.

    An extra that has the name of one of these fields gets an underscore behind it. What JSON cannot express is
    written as text.

    Example:
        >>> record = logging.makeLogRecord({"name": "ocf.component", "levelname": "INFO", "created": 1769860800.0,
        ...                                 "msg": "skipped %s", "args": ("it",), "component": "web"})
        >>> print(JsonFormatter().format(record))
        {"time": "2026-01-31T12:00:00.000Z", "level": "info", "logger": "ocf.component",
         "message": "skipped it", "component": "web"}
    """

    def format(self, record: logging.LogRecord) -> str:
        """Format a record.

        Args:
            record: Any record.

        Returns:
            One line, without its end.
        """
        line: dict[str, Any] = {
            "time": _written(record.created),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        if record.exc_info and record.exc_info[1] is not None:
            line["error"] = _described(record.exc_info[1])
        for name, value in vars(record).items():
            if name not in _STANDARD:
                line[f"{name}_" if name in {*line, "error"} else name] = value
        return json.dumps(line, default=str, ensure_ascii=False, skipkeys=True)


def _written(created: float) -> str:
    return datetime.fromtimestamp(created, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _described(error: BaseException) -> dict[str, Any]:
    described: dict[str, Any] = {"type": type(error).__name__, "message": str(error)}
    for frame, number in walk_tb(error.__traceback__):
        # The last one stays: where it was raised.
        described["at"] = f"{PurePath(frame.f_code.co_filename).name}:{number} in {frame.f_code.co_name}"
    if notes := getattr(error, "__notes__", []):
        described["notes"] = list(notes)
    if causes := _causes(error):
        described["causes"] = [f"{type(cause).__name__}: {cause}" for cause in causes]
    return described


def _causes(error: BaseException) -> list[BaseException]:
    """Return what led to an error, nearest first."""
    found: list[BaseException] = []
    cause: BaseException | None = error
    while cause is not None and len(found) < _DEEPEST:
        cause = cause.__cause__ or (None if cause.__suppress_context__ else cause.__context__)
        if cause is not None:
            found.append(cause)
    return found
