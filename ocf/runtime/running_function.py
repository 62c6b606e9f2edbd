"""Name of the function that a thread runs, for messages about calls that do not return."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

__all__ = ["RunningFunction", "name_of", "running_function", "shown_in"]


@dataclass(slots=True)
class RunningFunction:
    """The function that runs now.

    Args:
        name: Its name; empty while no function of the operator's author runs.
    """

    name: str = ""


_shown: ContextVar[RunningFunction | None] = ContextVar("shown", default=None)


def shown_in(shown: RunningFunction) -> None:
    """Show in an object which function runs, in the context of the caller.

    Args:
        shown: Changed by `running_function`.
    """
    _shown.set(shown)


@contextmanager
def running_function(name: str) -> Iterator[None]:
    """Show a function as the running one for as long as the block runs.

    Example:
        >>> shown = RunningFunction()
        >>> shown_in(shown)
        >>> with running_function("validate"):
        ...     print(shown.name)
        validate
        >>> shown.name
        ''
    """
    shown = _shown.get()
    if shown is None:
        yield
        return
    before, shown.name = shown.name, name
    try:
        yield
    finally:
        shown.name = before


def name_of(function: Callable[..., Any]) -> str:
    """Return the name of a function; that of its type if it has none."""
    return str(getattr(function, "__qualname__", type(function).__name__))
