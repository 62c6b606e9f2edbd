"""Log of requests that are not HTTP: one line each, where the HTTP library would write a traceback of itself."""

import logging

from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError

__all__ = ["request_logger"]


class _OneLine(logging.Filter):
    """Reduces the record of a malformed request to what the library says of it."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Change a record in place; keep all but those of bodies, whose error the client has received."""
        error = record.exc_info[1] if record.exc_info else None
        if isinstance(error, web.RequestPayloadError):
            return False
        if isinstance(error, HttpProcessingError):
            problem = (error.message.splitlines() or ["malformed"])[0].rstrip(":")
            record.msg, record.args = "%s: %s", (record.getMessage(), problem)
            record.exc_info = None
        return True


def request_logger() -> logging.Logger:
    """Return the logger of the HTTP library for one server."""
    logger = logging.getLogger(__name__)
    if not any(isinstance(each, _OneLine) for each in logger.filters):
        logger.addFilter(_OneLine())
    return logger
