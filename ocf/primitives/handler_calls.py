"""Asking a handler, and refusing an answer outside its vocabulary where it enters.

An unknown word must never travel on: further up it would have no priority, and could be read as healthy.
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
    """Call a handler and check what it answers.

    Args:
        what: What is asked for, `grace status`.
        identity: Identity of the resource, for messages.
        vocabulary: The words it may answer with; the plain text of one is taken too.
        handler: The handler, its arguments bound.

    Returns:
        Its answer, with a word of the vocabulary.

    Raises:
        HandlerError: If it raises, returns no report, or a word outside the vocabulary.
    """
    try:
        answer: object = handler()
    except HandlerError:
        raise
    except Exception as error:
        raise HandlerError(f"{identity}: {what} handler failed: {type(error).__name__}: {error}") from error
    if inspect.iscoroutine(answer):
        answer.close()
        raise HandlerError(f"{identity}: {what} handler is asynchronous; it has to return its answer")
    if not isinstance(answer, StatusReport) or not isinstance(answer.reason, str):
        raise HandlerError(f"{identity}: {what} handler must return a StatusReport, got {type(answer).__name__}")
    try:
        return StatusReport(vocabulary(answer.status), answer.reason)
    except ValueError:
        allowed = ", ".join(vocabulary)
        raise HandlerError(f'{identity}: {what} handler answered "{answer.status}"; its words are {allowed}') from None
