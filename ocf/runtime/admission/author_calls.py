"""Calls of the author's functions of webhooks: whatever they return or raise is answered."""

from __future__ import annotations

import logging
from collections.abc import Callable, Coroutine, Iterator
from inspect import isawaitable
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeVar

from ocf.component.author_code import is_cancelled
from ocf.runtime.admission.requests import NestedTooDeeplyError, UnreadableError, WebhookError
from ocf.runtime.running_function import name_of, running_function

if TYPE_CHECKING:
    from ocf.cluster import Cluster
    from ocf.runtime.admission.requests import AdmissionRequest
    from ocf.runtime.admission.webhooks import Webhook

__all__ = ["Calls", "DirectCalls", "all_of", "author_failure", "await_function", "call_function", "type_name"]

T = TypeVar("T")

_log: Final = logging.getLogger(__name__)


class Calls(Protocol):
    """Where the functions of a webhook run."""

    @property
    def cluster(self) -> Cluster | None:
        """The cluster that functions get; None if none of them takes it."""
        ...

    async def in_thread(self, function: Callable[[], T]) -> T:
        """Call a plain function, which may be slow or never return."""
        ...

    async def in_loop(self, name: str, coroutine: Coroutine[Any, Any, T]) -> T:
        """Await a coroutine of the author, which may be slow or never return.

        Args:
            name: Name of its function.
        """
        ...


class DirectCalls:
    """Calls plain functions in the thread of the caller."""

    cluster = None

    async def in_thread(self, function: Callable[[], T]) -> T:
        """Call a plain function."""
        return function()

    async def in_loop(self, name: str, coroutine: Coroutine[Any, Any, T]) -> T:
        """Await a coroutine of the author."""
        del name
        return await coroutine


def all_of(function: Callable[..., Any], *arguments: Any) -> Any:
    """Call a function that may be a generator."""
    found = function(*arguments)
    return list(found) if isinstance(found, Iterator) else found


async def _ended(coroutine: Coroutine[Any, Any, T]) -> T:
    """Await a coroutine; SystemExit in a task would end the process, which serves other webhooks as well."""
    try:
        return await coroutine
    except (SystemExit, KeyboardInterrupt) as error:
        raise _ProcessEndError(type_name(error)) from error


class _ProcessEndError(Exception):
    """A function raised what ends a process; the text is the type of the error."""


async def await_function(
    webhook: Webhook[Any], function: Callable[..., Any], request: AdmissionRequest[Any], calls: Calls
) -> Any:
    """Await a coroutine function of the full forms."""
    name = name_of(function)
    arguments = (request, calls.cluster) if webhook.takes_cluster(function) else (request,)
    try:
        return await calls.in_loop(name, _ended(function(*arguments)))
    except BaseException as error:
        if is_cancelled(error) or isinstance(error, WebhookError | UnreadableError | NestedTooDeeplyError):
            raise
        raise author_failure(name, error) from error


def call_function(function: Callable[..., Any], *arguments: Any) -> Any:
    """Call a plain function; an awaitable that it returns is an error."""
    name = name_of(arguments[0] if function is all_of else function)
    try:
        with running_function(name):
            made = function(*arguments)
    except BaseException as error:
        if is_cancelled(error) or isinstance(error, WebhookError | UnreadableError | NestedTooDeeplyError):
            raise
        raise author_failure(name, error) from error
    if isawaitable(made):
        close = getattr(made, "close", None)
        if close is not None:
            close()
        raise WebhookError(f"{name} returned an awaitable: make it a coroutine function (async def)")
    return made


def author_failure(name: str, error: BaseException) -> WebhookError:
    """Log the error of an author's function; return what the response shows of it."""
    _log.error("%s failed", name, exc_info=error)
    kind = str(error) if isinstance(error, _ProcessEndError) else type_name(error)
    return WebhookError(f"{name} failed with {kind}, see the operator's log")


def type_name(value: object) -> str:
    """Return the name of the type of a value."""
    return type(value).__name__
