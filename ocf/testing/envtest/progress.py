"""Progress display of a build: bars on a terminal, one line per step elsewhere."""

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, Protocol, TypeAlias

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["Progress", "See", "shown_on"]


See: TypeAlias = Callable[[str], None]
"""Called with a line that Go printed: a compiled package or a download."""


class Progress(Protocol):
    """Display of progress."""

    def step(self, what: str, packages: int = 0) -> AbstractContextManager[See]:
        """Begin a step that ends with the block; yields the function to call with each printed line.

        Args:
            packages: Maximum number of packages to compile; 0 if unknown.
        """
        ...

    def say(self, text: str) -> None:
        """Display a message."""
        ...


def shown_on(console: "Console") -> Progress:
    """Return progress for a console: bars if it is a terminal, lines otherwise."""
    return _Bars(console) if console.is_terminal else _Lines(console)


class _Lines:
    def __init__(self, console: "Console") -> None:
        self._console = console

    @contextmanager
    def step(self, what: str, packages: int = 0) -> Iterator[See]:
        begun = time.monotonic()
        about = f", {packages} packages" if packages else ""
        self.say(f"{what}{about} ...")
        yield lambda _: None
        self.say(f"{what}: done in {time.monotonic() - begun:.0f} s")

    def say(self, text: str) -> None:
        self._console.print(text, markup=False, highlight=False, soft_wrap=True)


class _Bars(_Lines):
    @contextmanager
    def step(self, what: str, packages: int = 0) -> Iterator[See]:
        from rich.progress import BarColumn, MofNCompleteColumn, SpinnerColumn, TextColumn, TimeElapsedColumn
        from rich.progress import Progress as RichProgress

        now = TextColumn("[dim]{task.fields[now]}", markup=True)
        columns = [SpinnerColumn(), TextColumn("{task.description}", markup=False), BarColumn(), TimeElapsedColumn()]
        if packages:
            columns.insert(3, MofNCompleteColumn())
        with RichProgress(*columns, now, console=self._console) as shown:
            task = shown.add_task(what, total=packages or None, now="")

            def see(line: str) -> None:
                shown.update(task, advance=0 if line.startswith("go: ") else 1, now=line.removeprefix("go: ")[:60])

            yield see
            # Go does not print packages that it had compiled before; the step is complete nevertheless.
            shown.update(task, total=packages or 1, completed=packages or 1, now="")
