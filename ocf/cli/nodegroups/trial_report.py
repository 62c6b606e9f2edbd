"""Report of `ocf nodegroups try`: its steps as a table, or as JSON."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

import click

from ocf.cli.output import as_json as to_json
from ocf.cli.output import echo, grid
from ocf.cli.owner_check import InvalidObjectsError
from ocf.cli.times import positive_duration
from ocf.errors import ConfigError

if TYPE_CHECKING:
    from ocf.cli.nodegroups.trial import NodeResult, Trial, TrialSettings
    from ocf.cli.nodegroups.trial_files import TrialFiles
    from ocf.cli.nodegroups.trial_steps import Step

__all__ = ["StepTable", "print_trial"]

_HOUR: Final = 3600
_MINUTE: Final = 60
# Names of nodes and pods rarely make a row wider than those before.
_LEAST_WIDTH: Final = 36


def print_trial(files: Sequence[str], types: str, length: str, boot_time: str, *, as_json: bool) -> bool:
    """Run a trial, and print what happened.

    Args:
        files: Files with groups, workloads, and what belongs to them.
        types: File with the instance types.
        length: How much virtual time passes.

    Returns:
        Whether all pods run at the end.
    """
    from ocf.cli.nodegroups.trial import run_trial
    from ocf.cli.nodegroups.trial_checks import type_problems
    from ocf.cli.nodegroups.trial_files import read_trial_files

    if not files:
        raise ConfigError("try needs files with a NodeGroup and the workloads to try it with, and --types")
    if not types:
        raise ConfigError("--types must name a file with the instance types of the simulated cloud")
    given = read_trial_files(files)
    for note in given.notes():
        echo(note, color="yellow", err=True)
    settings = _settings(types, positive_duration("--for", length), positive_duration("--boot-time", boot_time))
    if problems := [each for one in given.documents for each in type_problems(one, settings.types, settings.unpriced)]:
        raise InvalidObjectsError(problems)
    table = StepTable()
    with _without_log_lines():
        trial = run_trial(given, settings, (lambda *_: None) if as_json else table.add)
    if as_json:
        click.echo(to_json(_as_json(trial, given)))
    else:
        table.flush(trial.owners)
        _print_end(trial)
    return all(pod.runs for pod in trial.pods.values())


def _settings(types: str, length: timedelta, boot_time: timedelta) -> TrialSettings:
    from ocf.cli.nodegroups.providers import read_types_of, types_document
    from ocf.cli.nodegroups.trial import TrialSettings
    from ocf.cli.nodegroups.trial_checks import unpriced_of

    catalog = read_types_of(types)
    unpriced = unpriced_of(types_document(types))
    if unpriced:
        without = ", ".join(f"{name} in {zone}" for name, zone in sorted(unpriced))
        echo(f"{types}: no price of {without}: what such nodes cost is unknown", color="yellow", err=True)
    return TrialSettings(types=catalog, unpriced=unpriced, length=length, boot_time=boot_time)


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


def _as_json(trial: Trial, files: TrialFiles) -> dict[str, Any]:
    return {
        "seconds": trial.length.total_seconds(),
        "leftOut": [{"kind": each.kind, "count": each.objects, "reason": each.reason} for each in files.left_out],
        "steps": [
            {"at": int(each.at.total_seconds()), "kind": each.kind, "object": each.object, "what": each.what}
            | {**each.fields, "text": each.text}
            for each in trial.steps
        ],
        "pods": [
            {"name": name, "runs": pod.runs, "node": pod.node, "state": pod.state, "text": pod.text}
            for name, pod in sorted(trial.pods.items())
        ],
        "nodes": [_node_json(each) for each in trial.nodes],
        "pricePerHour": _rounded(trial.hourly),
        "cost": _rounded(trial.cost),
        "peakNodes": trial.peak_nodes,
        "peakPricePerHour": _rounded(trial.peak_hourly),
    }


def _node_json(node: NodeResult) -> dict[str, Any]:
    return {
        "name": node.name,
        "group": node.group,
        "instanceType": node.instance_type,
        "zone": node.zone,
        "price": node.price,
        "readyAt": None if node.ready_at is None else int(node.ready_at.total_seconds()),
        "cpuPercent": _rounded(node.cpu),
        "memoryPercent": _rounded(node.memory),
        "pods": list(node.pods),
        "stays": node.stays,
    }


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 6)


class StepTable:
    """Prints steps as they happen; those of one second and one workload that are equal are one row."""

    def __init__(self) -> None:
        self._second: list[Step] = []
        self._width = 0

    def add(self, step: Step, owners: Mapping[str, str]) -> None:
        """Add a step, and print those of the second before.

        Args:
            owners: The workload of each pod, and the group of each node.
        """
        if not self._second or _time(self._second[0].at) != _time(step.at):
            self.flush(owners)
        self._second.append(step)

    def flush(self, owners: Mapping[str, str]) -> None:
        """Print the steps that are not printed."""
        if not self._width:
            self._width = _LEAST_WIDTH
            self._print("time", "object", "what happens")
        rows: dict[tuple[str, str, str], list[str]] = {}
        for each in self._second:
            apart = owners.get(each.object, "") if each.kind != "group" else each.object
            rows.setdefault((each.kind, apart, each.text), []).append(each.object)
        cells = [(_objects(kind, owner, names), text) for (kind, owner, text), names in rows.items()]
        self._width = max(self._width, *(len(cell) for cell, _ in cells), 0)
        for cell, text in cells:
            self._print(_time(self._second[0].at), cell, text)
        self._second = []

    def _print(self, time: str, cell: str, text: str) -> None:
        echo(f"{time:<7}  {cell:<{self._width}}  {text}")


def _objects(kind: str, owner: str, names: Sequence[str]) -> str:
    """Return the text for objects of one owner."""
    if len(names) == 1:
        return f"{kind} {names[0]}"
    return (
        f"{len(names)} pods of {owner}" if kind == "pod" and owner else f"{kind} {names[0]} and {len(names) - 1} more"
    )


def _print_end(trial: Trial) -> None:
    waiting = {name: pod for name, pod in trial.pods.items() if not pod.runs}
    kinds = [each.instance_type for each in trial.nodes]
    types = ", ".join(f"{kinds.count(each)} {each}" for each in sorted({*kinds}))
    running = len(trial.pods) - len(waiting)
    echo(
        f"after {_time(trial.length)}: {running} of {len(trial.pods)} pods run or have succeeded;"
        f" nodes: {types or 'none'}, {_cost(trial.hourly)} an hour; most at once: {trial.peak_nodes},"
        f" {_cost(trial.peak_hourly)} an hour; cost so far: {_cost(trial.cost)}"
    )
    if trial.nodes:
        headings = ("node", "type", "datacenter", "CPU", "memory", "pods", "why it stays")
        grid("nodes", headings, [_node_row(each) for each in trial.nodes])
    reasons: dict[tuple[str, str], list[str]] = {}
    for name, pod in sorted(waiting.items()):
        reasons.setdefault((trial.owners.get(name, ""), "; ".join(sorted(pod.text.split("; ")))), []).append(name)
    for (owner, _), names in reasons.items():
        verb = "does not run" if len(names) == 1 else "do not run"
        echo(f"{_objects('pod', owner, names)} {verb}: {waiting[names[0]].text}", color="red")


def _node_row(node: NodeResult) -> tuple[str, ...]:
    use = ("" if each is None else f"{each:.0f} %" for each in (node.cpu, node.memory))
    return (node.name, node.instance_type, node.zone, *use, str(len(node.pods)), node.stays)


def _cost(value: float | None) -> str:
    return "unknown" if value is None else f"{value:.4g}"


def _time(at: timedelta) -> str:
    seconds = int(at.total_seconds())
    hours, rest = divmod(seconds, _HOUR)
    minutes, seconds = divmod(rest, _MINUTE)
    return f"{hours}:{minutes:02}:{seconds:02}"
