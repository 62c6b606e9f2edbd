"""Operators that are started again whenever their code has changed.

The version that ran last goes on while the files have an error, so that there is always something to look at.
"""

from __future__ import annotations

import asyncio
import signal
from asyncio import Event
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

from ocf.cli.component_loader import one_line, source_location
from ocf.cli.source_code import Files, LoadedCode, SourceCode, next_files
from ocf.errors import ConfigError, OcfError

if TYPE_CHECKING:
    from ocf.runtime.operator import Operator

__all__ = ["Reloading"]

_GOES_ON: Final = "the operators of before go on until a save repairs it"
_STOPPED: Final = "no operator runs until a save repairs it"
_MOST_NAMES: Final = 3

T = TypeVar("T")


class Reloading:
    """Runs each version of the code until there is another one.

    Args:
        source: The code.
        start: Runs operators for as long as the block runs; yields a function that returns once they have started.
        reloaded: Called with the names of the files that have changed, once the operators of a version have started.
        failed: Called with the error of a version, and what runs now.
    """

    def __init__(
        self,
        source: SourceCode,
        start: Callable[[Sequence[Operator[Any]]], AbstractAsyncContextManager[Callable[[], Awaitable[None]]]],
        reloaded: Callable[[str], None],
        failed: Callable[[str], None],
    ) -> None:
        self._source = source
        self._start = start
        self._reloaded = reloaded
        self._failed = failed
        self._files: Files = {}
        self._changed = ""

    async def run(self, first: LoadedCode, stop: Event) -> None:
        """Run until stopped.

        Args:
            first: The version to start with, as it was just loaded.

        Raises:
            Exception: If the first version cannot be started.
        """
        following: LoadedCode | None = first
        self._files = self._source.files()
        good: LoadedCode | None = None
        while following is not None:
            version = following
            try:
                async with self._start(version.operators) as started, _task(self._next(stop, _GOES_ON)) as change:
                    # A start may never end, so a save and a signal are heeded meanwhile.
                    async with _task(started()) as start:
                        both: list[asyncio.Future[Any]] = [start, change]
                        await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
                        if start.done():
                            start.result()
                            if good is not None and good is not version:
                                self._reloaded(self._changed)
                            good = version
                    following = await change
            except Exception as error:
                if good is None:
                    raise
                consequence = _STOPPED if version is good else _GOES_ON
                self._failed(f"{_problem(error)}; {consequence}")
                if version is good:
                    following = await self._next(stop, _STOPPED)
                else:
                    self._source.use(good)
                    following = good

    async def _next(self, stop: Event, consequence: str) -> LoadedCode | None:
        """Return the next version that can be loaded; None if stopped."""
        while (files := await next_files(self._source.files, self._files, stop)) is not None:
            changed = [path for path in self._files.keys() | files.keys() if self._files.get(path) != files.get(path)]
            self._changed = _names(changed)
            loaded = None
            try:
                with _interruptible():
                    loaded = self._source.load()
            except Exception as error:  # noqa: BLE001 (whatever the code raises, the next save may repair it)
                self._failed(f"{_problem(error)}; {consequence}")
            # What is saved during the load is another version; what was not looked at before is not a change.
            self._files = {path: files.get(path, stamp) for path, stamp in self._source.files().items()}
            if loaded is not None:
                return loaded
        return None


@asynccontextmanager
async def _task(work: Awaitable[T]) -> AsyncIterator[asyncio.Future[T]]:
    """Run a task during a block, which cancels it if it has not ended."""
    task = asyncio.ensure_future(work)
    try:
        yield task
    finally:
        task.cancel()
        await asyncio.wait([task])


def _problem(error: Exception) -> str:
    """Return an error as one line, with the place in the operator's code unless the text has it."""
    return one_line(error) if isinstance(error, OcfError) else f"{one_line(error)}{source_location(error)}"


def _names(paths: Iterable[Path]) -> str:
    """Return the names of files, relative to the working directory, of the first few."""
    here = Path.cwd()
    found = sorted(str(each.relative_to(here) if each.is_relative_to(here) else each) for each in paths)
    more = f" and {len(found) - _MOST_NAMES} more" if len(found) > _MOST_NAMES else ""
    return ", ".join(found[:_MOST_NAMES]) + more


@contextmanager
def _interruptible() -> Iterator[None]:
    """Let signals interrupt code that does not return while it is imported; they still reach the event loop."""
    previous = {each: signal.signal(each, signal.default_int_handler) for each in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    except KeyboardInterrupt:
        raise ConfigError("interrupted while the code was imported") from None
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
