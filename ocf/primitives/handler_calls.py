"""Calls of status handlers, with a check of the status they return.

An unknown status is rejected here, because callers could not rank it and might treat it as healthy.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from enum import StrEnum
from typing import TypeVar

from ocf.concepts import StatusReport
from ocf.errors import HandlerError

__all__ = ["call_handler"]

StatusT = TypeVar("StatusT", bound=StrEnum)


def call_handler(
    what: str, identity: str, vocabulary: type[StatusT], handler: Callable[[], StatusReport[StatusT]]
) -> StatusReport[StatusT]:
    """Return the report of a handler.

    Args:
        what: The requested status, `grace status`.
        identity: Identity of the resource, for messages.
        vocabulary: The statuses it may return; their plain strings are accepted too.
        handler: The handler, with its arguments bound.

    Returns:
        The report, with a status of the vocabulary.

    Raises:
        HandlerError: If the handler raises, does not return a report, or returns a status outside the vocabulary.
    """
    try:
        report: object = handler()
    except HandlerError:
        raise
    except Exception as error:
        raise HandlerError(f"{identity}: {what} handler failed: {type(error).__name__}: {error}") from error
    if inspect.iscoroutine(report):
        report.close()
        raise HandlerError(f"{identity}: {what} handler is asynchronous; it has to return its answer")
    if not isinstance(report, StatusReport) or not isinstance(report.reason, str):
        raise HandlerError(f"{identity}: {what} handler must return a StatusReport, got {type(report).__name__}")
    try:
        return StatusReport(vocabulary(report.status), report.reason)
    except ValueError:
        allowed = ", ".join(vocabulary)
        raise HandlerError(f'{identity}: {what} handler returned "{report.status}", must be one of {allowed}') from None
