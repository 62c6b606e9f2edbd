"""Calls of status handlers, with a check of the status they return.

An unknown status is rejected here, because callers could not rank it and might treat it as healthy.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from enum import StrEnum
from typing import Final, TypeVar

from ocf.concepts import StatusReport
from ocf.concepts.data import has_read_secret
from ocf.errors import HandlerError

__all__ = ["call_handler", "cause_text", "is_of_secret"]

StatusT = TypeVar("StatusT", bound=StrEnum)

_OF_SECRET: Final = "v1/Secret/"  # noqa: S105 (a kind)
_WITHHELD: Final = "text withheld, since a value of a Secret was read; the traceback is in the log at level DEBUG"


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
        raise HandlerError(f"{identity}: {what} handler failed: {cause_text(identity, error)}") from error
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


def is_of_secret(identity: str) -> bool:
    """Return whether a resource is a Secret.

    Args:
        identity: Identity of the resource.
    """
    return identity.startswith(_OF_SECRET)


def cause_text(identity: str, error: BaseException) -> str:
    """Return how an error names its cause, an exception in an author's function.

    Args:
        identity: Identity of the resource that the function was called for.
        error: The cause.

    Returns:
        Its type and text. Only the type for a Secret, and after a value of a Secret was read from a data cell, because
        the text may quote a value.

    Example:
        >>> cause_text("v1/ConfigMap/shop/settings", ValueError("invalid literal for int(): 'many'"))
        "ValueError: invalid literal for int(): 'many'"
        >>> cause_text("v1/Secret/shop/login", ValueError("invalid literal for int(): 'hunter2'"))
        'ValueError'
    """
    kind = type(error).__name__
    if is_of_secret(identity) or not str(error):
        return kind
    return f"{kind} ({_WITHHELD})" if has_read_secret() else f"{kind}: {error}"
