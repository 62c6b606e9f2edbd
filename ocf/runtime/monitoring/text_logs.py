"""Log records as lines of text, for terminals."""

import logging
from types import TracebackType
from typing import Final

from ocf.objects.printable import printable

__all__ = ["TextFormatter"]

_FORMAT: Final = "%(asctime)s %(levelname)s %(message)s"


class TextFormatter(logging.Formatter):
    r"""Formats a record as one line: time, level and message, in which names and values of objects are only shown.

    A traceback follows in lines of its own.

    Example:
        >>> record = logging.makeLogRecord({"msg": "skipped %s", "args": ("a\x1b[2J\nb",), "levelname": "INFO"})
        >>> print(TextFormatter().format(record).partition("INFO ")[2])
        skipped a\x1b[2J\nb
    """

    def __init__(self) -> None:
        super().__init__(_FORMAT)

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 (the name in the standard library)
        """Return the line of a record.

        Args:
            record: The record, with its message.
        """
        return printable(super().formatMessage(record))

    def formatException(  # noqa: N802 (the name in the standard library)
        self, ei: tuple[type[BaseException], BaseException, TracebackType | None] | tuple[None, None, None]
    ) -> str:
        """Return the lines of a traceback.

        Args:
            ei: Type, exception and traceback.
        """
        return "\n".join(map(printable, super().formatException(ei).split("\n")))
