"""Command `python -m benchmarks`."""

import argparse
import gc
import signal
import sys
import threading
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager
from pathlib import Path
from types import FrameType
from typing import Final

from rich.console import Console
from rich.progress import track

from benchmarks import (
    admitting,
    bursts,
    cached_objects,
    caches,
    clusters,
    commands,
    controlling,
    converging,
    deciding,
    defining,
    fleet,
    gates,
    hour,
    hpa,
    imports,
    karpenter,
    live_controllers,
    machine,
    nodegroup_controller,
    nodegroups,
    page,
    parts,
    reconciling,
    rendering,
    serving,
    simulation,
)
from benchmarks.figures import Case, Count, Figure, Suite, counted, timed
from benchmarks.report import as_json, as_markdown, print_table, with_figures
from benchmarks.timer import calls_for, sample

_SUITES: Final = (
    rendering.suite,
    deciding.suite,
    controlling.suite,
    live_controllers.suite,
    gates.suite,
    imports.suite,
    reconciling.suite,
    fleet.suite,
    page.suite,
    parts.suite,
    hpa.suite,
    commands.suite,
    clusters.suite,
    serving.suite,
    defining.suite,
    admitting.suite,
    cached_objects.suite,
    caches.suite,
    converging.suite,
    hour.suite,
    bursts.suite,
    nodegroups.suite,
    nodegroup_controller.suite,
    karpenter.suite,
    simulation.suite,
)
# What takes a smaller part where nothing is judged but that it runs.
_QUICK: Final[dict[object, Callable[[], AbstractContextManager[Suite]]]] = {
    controlling.suite: controlling.small_suite,
    live_controllers.suite: live_controllers.small_suite,
    fleet.suite: fleet.small_suite,
    page.suite: page.small_suite,
    commands.suite: commands.small_suite,
    clusters.suite: clusters.small_suite,
    serving.suite: serving.small_suite,
    defining.suite: defining.small_suite,
    admitting.suite: admitting.small_suite,
    cached_objects.suite: cached_objects.small_suite,
    caches.suite: caches.small_suite,
    converging.suite: converging.small_suite,
    hour.suite: hour.small_suite,
    bursts.suite: bursts.small_suite,
    nodegroups.suite: nodegroups.small_suite,
    nodegroup_controller.suite: nodegroup_controller.small_suite,
    karpenter.suite: karpenter.small_suite,
    simulation.suite: simulation.small_suite,
}
_ROUNDS: Final = 15
_FEWEST_ROUNDS: Final = 5
_FOR_ROUNDS: Final = 150
"""Seconds after which no further round begins; a slow machine has fewer rounds, but never less than the fewest."""
_LONGEST: Final = 900
"""Seconds that a sample or a count may take; waits for programs have limits of their own, which say what for."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print, and return the exit status: 1 if a limit is missed."""
    parser = _parser()
    wanted = parser.parse_args(arguments)
    if wanted.page is not None:
        try:
            with_figures(wanted.page.read_text(encoding="utf-8"), "")
        except (OSError, ValueError) as problem:
            parser.error(f"--page {wanted.page}: {problem}")
    with ExitStack() as stack:
        made = [_QUICK.get(suite, suite) if wanted.quick else suite for suite in _SUITES]
        suites = [stack.enter_context(suite()) for suite in made]
        try:
            suites = _chosen(suites, wanted.only)
        except ValueError as problem:
            parser.error(str(problem))
        # What is loaded by now stays loaded, and the collection before each sample need not walk it. A caller who has
        # set objects aside keeps them there.
        if not gc.get_freeze_count():
            gc.freeze()
            stack.callback(gc.unfreeze)
        figures = _measured(suites, rounds=1 if wanted.quick else _ROUNDS, judged=not wanted.quick)
    if wanted.page is not None:
        page = with_figures(wanted.page.read_text(encoding="utf-8"), as_markdown(machine.describe(), figures))
        wanted.page.write_text(page, encoding="utf-8")
    if wanted.output == "json":
        print(as_json(machine.describe(), figures))
    elif wanted.output == "markdown":
        print(as_markdown(machine.describe(), figures))
    else:
        print_table(machine.describe(), figures)
    missed = [figure.name for figure in figures if figure.holds is False]
    if missed:
        print(f"limit missed: {', '.join(missed)}", file=sys.stderr)
    return 1 if missed else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description="Measure how long things take, and judge it; the exit status is 1 if a limit is missed.",
    )
    parser.add_argument(
        "-k",
        "--only",
        action="append",
        default=[],
        metavar="NAME",
        help="only this benchmark, or this suite (the part of the name before the dot); may be given several times",
    )
    parser.add_argument(
        "-o", "--output", choices=("table", "markdown", "json"), default="table", help="default: %(default)s"
    )
    parser.add_argument(
        "--page", type=Path, help="also write the figures into this page in Markdown, between its markers"
    )
    parser.add_argument(
        "--quick",
        action="store_true",
        help="one short round, without judging times: only shows that everything runs and that the counts hold",
    )
    return parser


def _chosen(suites: Iterable[Suite], only: Sequence[str]) -> list[Suite]:
    """Keep what was asked for by name, and what its ratios need.

    Raises:
        ValueError: If a name is unknown.
    """
    suites = list(suites)
    if not only:
        return suites
    known = [each.name for suite in suites for each in suite]
    for name in only:
        if not any(_is_called(each, name) for each in known):
            raise ValueError(f'no benchmark is called "{name}"; there are {", ".join(known)}')
    return [_with_yardsticks(suite, only) for suite in suites]


def _with_yardsticks(suite: Suite, only: Sequence[str]) -> Suite:
    chosen = {each.name for each in suite if any(_is_called(each.name, name) for name in only)}
    yardsticks = {each.against for each in suite if each.name in chosen}
    return [each for each in suite if each.name in chosen | yardsticks]


def _is_called(name: str, wanted: str) -> bool:
    return name == wanted or name.startswith(f"{wanted}.")


def _measured(suites: Sequence[Suite], *, rounds: int, judged: bool) -> list[Figure]:
    """Measure every case in every round, so that a slow second of the machine meets all of them alike."""
    cases = [each for suite in suites for each in suite if isinstance(each, Case)]
    calls: dict[str, int] = {}
    for case in cases:
        with _limited(case.name):
            calls[case.name] = calls_for(case.measure) if judged else 1
    samples: dict[str, list[float]] = {case.name: [] for case in cases}
    with closing(_shown([f"round {each + 1} of {rounds}" for each in range(rounds)], "measuring")) as shown_rounds:
        began = time.monotonic()
        for made in range(rounds):
            if made >= _FEWEST_ROUNDS and time.monotonic() - began > _FOR_ROUNDS:
                break
            next(shown_rounds)
            for turn in range(max((case.turns for case in cases), default=0) if judged else 1):
                for case in cases:
                    if case.turns > turn:
                        with _limited(case.name):
                            samples[case.name].append(sample(case.measure, calls[case.name], collect=judged))
    figures = {each.name: timed(each, samples, judged=judged) for each in cases}
    counts = [(each, suite) for suite in suites for each in suite if isinstance(each, Count)]
    # Programs are started for some of them, which takes minutes.
    shown = _shown([f"count {each.name}" for each, _ in counts], "counting")
    for (each, suite), _ in zip(counts, shown, strict=True):
        with _limited(each.name):
            figures[each.name] = counted(each, suite)
    return [figures[each.name] for suite in suites for each in suite]


def _shown(steps: Sequence[str], what: str) -> Generator[str, None, None]:
    """Show on stderr how far it is: a bar on a screen, one line per step anywhere else."""
    console = Console(stderr=True)
    if console.is_terminal:
        yield from track(steps, description=what, console=console, transient=True)
    else:
        for each in steps:
            console.print(each)
            yield each


@contextmanager
def _limited(name: str) -> Iterator[None]:
    """Raise a TimeoutError, where it waits, if a sample or a count has not ended within `_LONGEST`."""

    def end(_signum: int, _frame: FrameType | None) -> None:
        raise TimeoutError(f"{name} has not ended within {_LONGEST} s")

    # Only the main thread is interrupted; nothing else measures, but tests may.
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGALRM, end)
    # A caller, such as pytest, may have a limit of its own.
    left, _ = signal.setitimer(signal.ITIMER_REAL, _LONGEST)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
        signal.setitimer(signal.ITIMER_REAL, left)


if __name__ == "__main__":
    sys.exit(main())
