"""Report of `ocf nodegroups try`: its steps as a table, or as JSON."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

from ocf.cli.output import as_json as to_json
from ocf.cli.output import echo, grid
from ocf.cli.owner_check import InvalidObjectsError
from ocf.errors import ConfigError

if TYPE_CHECKING:
    from ocf.cli.nodegroups.trial import Trial
    from ocf.cli.nodegroups.trial_steps import Step

__all__ = ["print_trial"]

_HOUR: Final = 3600
_MINUTE: Final = 60


def print_trial(files: Sequence[str], types: str, length: str, boot_time: str, *, as_json: bool) -> bool:
    """Run a trial, and print what happened.

    Args:
        files: Files with groups, workloads, and what belongs to them.
        types: File with the instance types.
        length: How much virtual time passes.

    Returns:
        Whether all pods run at the end.
    """
    from ocf.cli.nodegroups.providers import read_types_of, types_document
    from ocf.cli.nodegroups.trial import run_trial
    from ocf.cli.nodegroups.trial_checks import type_problems, unpriced_of
    from ocf.cli.nodegroups.trial_files import read_trial_files

    if not files:
        raise ConfigError("try needs files with a NodeGroup and the workloads to try it with, and --types")
    if not types:
        raise ConfigError("--types must name a file with the instance types of the simulated cloud")
    given = read_trial_files(files)
    for note in given.notes():
        echo(note, color="yellow", err=True)
    catalog, times = read_types_of(types), (_duration("--for", length), _duration("--boot-time", boot_time))
    unpriced = unpriced_of(types_document(types))
    if problems := [problem for each in given.documents for problem in type_problems(each, catalog, unpriced)]:
        raise InvalidObjectsError(problems)
    if unpriced:
        without = ", ".join(f"{name} in {zone}" for name, zone in sorted(unpriced))
        echo(f"{types}: no price of {without}: costs are not known", color="yellow", err=True)
    with _without_log_lines():
        trial = run_trial(given, catalog, *times)
    if as_json:
        echo_json(trial)
    else:
        _print_table(trial)
    return not trial.waiting


@contextmanager
def _without_log_lines() -> Iterator[None]:
    """Suppress the log lines of events while the block runs: the steps contain them."""
    from ocf.controllers.nodegroup import reporter

    def rejects(_: logging.LogRecord) -> bool:
        return False

    logger = logging.getLogger(reporter.__name__)
    logger.addFilter(rejects)
    try:
        yield
    finally:
        logger.removeFilter(rejects)


def echo_json(trial: Trial) -> None:
    """Print a trial as JSON."""
    import click

    click.echo(to_json(_as_json(trial)))


def _as_json(trial: Trial) -> dict[str, Any]:
    return {
        "seconds": trial.length.total_seconds(),
        "steps": [
            {"at": int(each.at.total_seconds()), "object": each.object, "text": each.text} for each in trial.steps
        ],
        "pods": [{"name": name, "runs": pod.runs, "text": pod.text} for name, pod in sorted(trial.pods.items())],
        "nodes": [{"name": name, "instanceType": kind} for name, kind in sorted(trial.nodes.items())],
        "pricePerHour": round(trial.hourly, 6),
        "cost": round(trial.cost, 6),
    }


def _print_table(trial: Trial) -> None:
    rows = [(_time(each.at), text, each.text) for each, text in _merged(trial.steps)]
    grid("steps", ("time", "object", "what happens"), rows)
    running = len(trial.pods) - len(trial.waiting)
    types = ", ".join(f"{list(trial.nodes.values()).count(each)} {each}" for each in sorted({*trial.nodes.values()}))
    echo(
        f"after {_time(trial.length)}: {running} of {len(trial.pods)} pods run or have succeeded;"
        f" nodes: {types or 'none'}, {trial.hourly:.4g} an hour; cost so far: {trial.cost:.4g}"
    )
    for name, why in sorted(trial.waiting.items()):
        echo(f"pod {name} does not run: {why}", color="red")


def _merged(steps: Sequence[Step]) -> Iterator[tuple[Step, str]]:
    """Yield steps, those of one second that differ only in the object as one, with the text for the objects."""
    groups: dict[tuple[str, str, str], list[Step]] = {}
    for each in steps:
        kind = each.object.partition(" ")[0]
        groups.setdefault((_time(each.at), kind, each.text), []).append(each)
    for group in groups.values():
        more = f" and {len(group) - 1} more" if len(group) > 1 else ""
        yield group[0], f"{group[0].object}{more}"


def _time(at: timedelta) -> str:
    seconds = int(at.total_seconds())
    hours, rest = divmod(seconds, _HOUR)
    minutes, seconds = divmod(rest, _MINUTE)
    return f"{hours}:{minutes:02}:{seconds:02}"


def _duration(option: str, text: str) -> timedelta:
    from ocf.objects.durations import parse_duration

    try:
        found = parse_duration(text)
    except ValueError as error:
        raise ConfigError(f"{option}: {error}") from error
    if not found:
        raise ConfigError(f"{option}: must be more than 0, got {text}")
    return found
