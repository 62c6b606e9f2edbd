"""The limit of open files of this process.

Each watch needs a connection, and each connection is an open file. Many systems start processes with a soft limit of
1024, for programs that use `select`; asyncio does not. Go raises the limit to the hard one at the start of each program
since 1.19 (https://go.dev/doc/go1.19#runtime), and restores it for programs that it starts.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable
from functools import cache, partial
from typing import Final, TypeAlias

__all__ = ["open_files_hint", "open_files_limit", "raise_open_files", "restore_open_files"]

_log: Final = logging.getLogger(__name__)
_OPEN_MAX: Final = 10_240  # the maximum of macOS (setrlimit(2)), also where the hard limit is unlimited
_UNLIMITED: Final = 2**20
_Limits: TypeAlias = tuple[int, int]


def raise_open_files() -> None:
    """Raise the soft limit of open files to the hard limit, where the platform has one and permits it.

    Example:
        >>> raise_open_files()
    """
    if sys.platform == "win32":
        return
    import resource

    soft, hard = _limits_at_start()
    if soft == hard:
        return
    for wanted in (hard, max(soft, _OPEN_MAX)):
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
        except (OSError, ValueError) as error:
            _log.debug("the soft limit of open files cannot be raised from %s to %s: %s", soft, wanted, error)
        else:
            return


def restore_open_files() -> Callable[[], None] | None:
    """Return a function that sets the limit of the start again, for a child process; None if it has not changed.

    A program may have been built for the usual limit: one with `select` fails with more than 1024 files, and some
    programs close every possible file at their start.
    """
    if sys.platform == "win32":
        return None
    import resource

    original = _limits_at_start()
    if _limits()[0] == original[0]:
        return None
    return partial(resource.setrlimit, resource.RLIMIT_NOFILE, original)


def open_files_limit() -> int:
    """Return how many files the process may open (`RLIMIT_NOFILE`); a large number if there is no limit."""
    if sys.platform == "win32":
        return _UNLIMITED
    import resource

    soft = _limits()[0]
    return _UNLIMITED if soft == resource.RLIM_INFINITY else soft


def open_files_hint() -> str:
    """Return what to do when the process has no more files, for a message."""
    advice = "raise the limit of the process (ulimit -n), or watch fewer kinds and namespaces"
    if sys.platform == "win32":
        return advice
    return f"the limit is {_limits()[0]}; {advice}"


@cache
def _limits_at_start() -> _Limits:
    """Return the limits as they were at the first call, before this module changed them."""
    return _limits()


def _limits() -> _Limits:
    import resource

    return resource.getrlimit(resource.RLIMIT_NOFILE)
