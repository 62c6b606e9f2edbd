"""Log records as JSON lines, for log collectors.

Records of `ocf` have extras (`component`, `condition`, `resource`) in addition to the message; this formatter writes
them as fields. Of an exception it writes type, message and position, not the traceback: logs are searched by fields,
and a traceback may contain secrets.
"""

import json
import logging
from datetime import UTC, datetime
from pathlib import PurePath
from traceback import walk_tb
from typing import Any, Final

from pythonjsonlogger.json import JsonFormatter as BaseFormatter

from ocf.concepts.tracing import trace_fields
from ocf.objects.printable import printable_json
from ocf.objects.timestamps import Fraction, format_time

__all__ = ["JsonFormatter"]

# The library does not reserve it before Python 3.12; a record may come from another process.
_TASK_NAME: Final = "taskName"
# Deeper chains than this are loops.
_DEEPEST: Final = 10
_ENCODER: Final = json.JSONEncoder(default=str, ensure_ascii=False, skipkeys=True)


class JsonFormatter(BaseFormatter):
    """Formats a record as one line of JSON: `time`, `level`, `logger`, `message`, its extras, and `error`.

    While a span is active, `trace_id` and `span_id` name it.

    An extra that has the name of one of these fields gets an underscore appended. Values that JSON cannot express are
    written as text.

    Args:
        *_arguments: Format, date format and style, as `logging.config` passes them; ignored, the fields are fixed.
        **_options: The same as keyword arguments; ignored.

    Example:
        >>> record = logging.makeLogRecord({"name": "ocf.component", "levelname": "INFO", "created": 1769860800.0,
        ...                                 "msg": "skipped %s", "args": ("it",), "component": "web"})
        >>> print(JsonFormatter().format(record))
        {"time": "2026-01-31T12:00:00.000Z", "level": "info", "logger": "ocf.component",
         "message": "skipped it", "component": "web"}
    """

    def __init__(self, *_arguments: object, **_options: object) -> None:
        super().__init__(json_serializer=_serialized)
        self.reserved_attrs.add(_TASK_NAME)

    def add_fields(self, log_data: dict[str, Any], record: logging.LogRecord, message_dict: dict[str, Any]) -> None:
        """Add the fields of a record to its line.

        Args:
            log_data: The line; changed in place.
            message_dict: Fields that the library adds: tracebacks, and messages that are dictionaries; ignored.
        """
        del message_dict
        log_data |= {
            "time": _timestamp(record.created),
            "level": record.levelname.lower(),
            "logger": record.name,
            # The library has formatted it, except a dictionary.
            "message": record.getMessage() if isinstance(record.msg, dict) else record.message,
        }
        if record.exc_info and record.exc_info[1] is not None:
            log_data["error"] = _described(record.exc_info[1])
        log_data |= trace_fields()
        for name, value in vars(record).items():
            if name not in self.reserved_attrs:
                log_data[f"{name}_" if name in log_data or name == "error" else name] = value

    def formatException(self, ei: object) -> str:  # noqa: N802 (the name in the standard library)
        """Return an empty string: tracebacks are not written.

        Args:
            ei: Type, exception and traceback.
        """
        del ei
        return ""


def _serialized(line: Any, **_options: object) -> str:
    """Return a line as JSON; `json.dumps` with options would make a new encoder for each line."""
    return printable_json(_ENCODER.encode(line))


def _timestamp(created: float) -> str:
    return format_time(datetime.fromtimestamp(created, UTC), Fraction.MILLISECONDS)


def _described(error: BaseException) -> dict[str, Any]:
    described: dict[str, Any] = {"type": type(error).__name__, "message": str(error)}
    for frame, number in walk_tb(error.__traceback__):
        # The last frame is the one that raised.
        described["at"] = f"{PurePath(frame.f_code.co_filename).name}:{number} in {frame.f_code.co_name}"
    if notes := getattr(error, "__notes__", []):
        described["notes"] = list(notes)
    if causes := _causes(error):
        described["causes"] = [f"{type(cause).__name__}: {cause}" for cause in causes]
    return described


def _causes(error: BaseException) -> list[BaseException]:
    """Return the causes of an error, the nearest first."""
    found: list[BaseException] = []
    cause: BaseException | None = error
    while cause is not None and len(found) < _DEEPEST:
        cause = cause.__cause__ or (None if cause.__suppress_context__ else cause.__context__)
        if cause is not None:
            found.append(cause)
    return found
