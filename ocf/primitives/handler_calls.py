"""Calls of status handlers, with a check of the status they return.

An unknown status is rejected here, because callers could not rank it and might treat it as healthy.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from enum import StrEnum
from typing import Final, TypeVar

from ocf.concepts import StatusReport
from ocf.concepts.data import secret_reads
from ocf.errors import HandlerError

__all__ = ["call_handler", "cause_text", "is_of_secret"]

StatusT = TypeVar("StatusT", bound=StrEnum)

_OF_SECRET: Final = "v1/Secret/"  # noqa: S105 (a kind)
_WITHHELD: Final = "text withheld, since it may quote a Secret; the traceback is in the log at level DEBUG"


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
    since = secret_reads()
    try:
        report: object = handler()
    except HandlerError:
        raise
    except Exception as error:
        raise HandlerError(f"{identity}: {what} handler failed: {cause_text(identity, error, since)}") from error
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


def cause_text(identity: str, error: BaseException, since: int) -> str:
    """Return how an error names its cause, an exception in an author's function.

    Args:
        identity: Identity of the resource that the function was called for.
        error: The cause.
        since: `secret_reads` before the function was called.

    Returns:
        Its type and text. Without the text if the resource is a Secret, or the function has read a value of a Secret
        from a data cell, because the text may quote a value.

    Example:
        >>> cause_text("v1/ConfigMap/shop/settings", ValueError("invalid literal for int(): 'many'"), 0)
        "ValueError: invalid literal for int(): 'many'"
        >>> cause_text("v1/Secret/shop/login", ValueError("invalid literal for int(): 'hunter2'"), 0)
        'ValueError'
    """
    kind = type(error).__name__
    if is_of_secret(identity) or not str(error):
        return kind
    return f"{kind} ({_WITHHELD})" if secret_reads() > since else f"{kind}: {error}"
