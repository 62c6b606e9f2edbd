"""`ocf diff`: the changes that the next reconcile would make in a cluster. Nothing is written."""

from __future__ import annotations

import asyncio
import difflib
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click
from click.exceptions import Exit

from ocf.cli.command import Command, OneOf
from ocf.cli.exit_status import FAILED, FOUND, SUCCESS
from ocf.cli.options import (
    changes_option,
    components_argument,
    components_option,
    context_option,
    definitions_option,
    kubeconfig_option,
    owner_option,
    traceback_option,
)
from ocf.cli.output import as_json, echo, grid, value_text

if TYPE_CHECKING:
    from ocf.cli.operator_loader import ComponentSource
    from ocf.cluster import Cluster
    from ocf.component import Component, ComponentDiff, ReconcileContext
    from ocf.component.diff import ObjectDiff
    from ocf.component.summary import ResourceSummary
    from ocf.objects import Manifest, ObjectKey

__all__ = ["ComponentChanges", "changes_json", "diff", "early_stop", "next_changes"]

_COLOURS: Final = {"+": "green", "-": "red", "@": "cyan"}


class DiffOutput(StrEnum):
    """Output formats of a diff."""

    TEXT = "text"
    JSON = "json"


@click.command(cls=Command)
@components_argument
@owner_option
@components_option
@kubeconfig_option
@context_option
@click.option("--explain", is_flag=True, help="Also show the action for every resource, and its reason.")
@click.option("--output", type=OneOf(DiffOutput), default=DiffOutput.TEXT, help="text for people, json for programs.")
@changes_option
@definitions_option
@traceback_option
def diff(  # noqa: PLR0913 (each is an option of the command line)
    target: str,
    *,
    owner: tuple[str, ...],
    components: str,
    kubeconfig: str | None,
    context: str | None,
    explain: bool,
    output: DiffOutput,
    changes: tuple[str, ...],
    crd: tuple[str, ...],
) -> None:
    """Show the changes that the next reconcile would make in a cluster.

    The reconcile is a dry run: every write is a dry-run request to the API server, so defaulting and admission are
    those of the cluster. The file has the spec of the owner; its uid and status are taken from the cluster if it exists
    there.

    Example:
        ocf diff shop.operator --owner shop.yaml
    """
    from ocf.cli.operator_loader import load_components

    sources = load_components(target, components)
    found = asyncio.run(_diffs(sources, owner, changes, [Path(each) for each in crd], (kubeconfig, context)))
    if output is DiffOutput.JSON:
        click.echo(as_json([changes_json(each) for each in found]))
    else:
        _show(found, explain=explain)
    raise Exit(_status([each.diff for each in found]))


@dataclass(frozen=True, slots=True)
class ComponentChanges:
    """The diff of one component of one owner, or of what the code that returns the components writes itself."""

    owner: str
    component: Component | None
    diff: ComponentDiff


def _status(found: Sequence[ComponentDiff]) -> int:
    if any(each.problem for each in found):
        return FAILED
    return SUCCESS if all(each.is_empty and not early_stop(each) for each in found) else FOUND


def early_stop(diff: ComponentDiff) -> str:
    """Return why the reconcile would stop early; anything after that point was not compared."""
    from ocf.component import Reason
    from ocf.concepts.recorder import Why

    if diff.result is None:
        return ""
    condition, outcomes = diff.result.condition, diff.result.outcomes
    # A resource that could not be read was not compared.
    unseen = any(outcome.why in {Why.WAITING, Why.FAILED} for outcome in outcomes)
    if not unseen and condition.reason not in {Reason.BLOCKED, Reason.PREREQUISITE_NOT_MET}:
        return ""
    return f"{condition.reason}: {condition.message}"


async def _diffs(
    sources: Sequence[ComponentSource],
    files: Sequence[str],
    changes: Sequence[str],
    definitions: Sequence[Path],
    address: tuple[str | None, str | None],
) -> list[ComponentChanges]:
    """Return the diffs of all components of all owners; `address` is the kubeconfig and its context."""
    from ocf.cli.component_loader import owner_name
    from ocf.cli.owner_check import load_owners

    owners = await load_owners(sources, files, changes, definitions)
    found: list[ComponentChanges] = []
    async with await connect(*address) as cluster:
        for owner in owners:
            reconciling = [source for source in sources if source.reconciles(owner)]
            live = await _with_live_metadata(owner, cluster, reconciling)
            name = owner_name(owner)
            for source in reconciling:
                found += await next_changes(name, source, live, cluster)
    return found


async def next_changes(name: str, source: ComponentSource, owner: Manifest, cluster: Cluster) -> list[ComponentChanges]:
    """Return what the next reconcile of an owner would change: one for each component, which may read the cluster.

    The first one is without a component if the code that returns the components writes something itself.

    Args:
        name: What the owner is called in output.
    """
    from ocf.component import diff as dry_run
    from ocf.component.model.ownership import DEFAULT_OPERATOR

    operator = source.operator
    built: list[Component] = []
    with ExitStack() as stack:
        shown: list[Callable[[ObjectKey], None]] = []

        async def find(context: ReconcileContext) -> Sequence[Component]:
            built.extend(await source.components(owner, context))
            seen = stack.enter_context(_progress(sum(len(each.entries) for each in built)))
            if seen is not None:
                shown.append(seen)
            return built

        def looked_at(key: ObjectKey) -> None:
            for seen in shown:
                seen(key)

        diffs = await dry_run(
            find,
            owner,
            cluster,
            operator=operator.name if operator is not None else DEFAULT_OPERATOR,
            former_managers=operator.former_managers if operator is not None else (),
            seen=looked_at,
        )
    own = [None] * (len(diffs) - len(built))
    return [ComponentChanges(name, component, each) for component, each in zip((*own, *built), diffs, strict=True)]


async def connect(kubeconfig: str | None, context: str | None) -> Any:
    """Connect to the cluster; a function of its own so that tests can replace it."""
    from ocf.cluster.client import ApiServerCluster

    return await ApiServerCluster.connect(kubeconfig, context=context)


async def _with_live_metadata(owner: Manifest, cluster: Cluster, sources: Sequence[ComponentSource]) -> Manifest:
    """Return an owner with the spec of the file, and the metadata and status of the cluster."""
    from ocf.cli.component_loader import NO_UID, owner_name, with_stored_metadata
    from ocf.errors import NotFoundError
    from ocf.objects import ObjectKey

    try:
        live = await cluster.get(ObjectKey.of(owner))
    except NotFoundError:
        note = f"note: {owner_name(owner)} is not in the cluster, so the changes are those for a new owner"
        echo(note, color="yellow", err=True)
        return {**owner, "metadata": {**owner["metadata"], "uid": NO_UID}}
    if "deletionTimestamp" in live["metadata"]:
        note = f"note: {owner_name(owner)} is being deleted; the changes are those of a reconcile without the deletion"
        echo(note, color="yellow", err=True)
    paused = {**owner, "metadata": live["metadata"]}
    for source in sources:
        source.note_unreconciled(paused, "the changes are those of the reconcile that follows the pause")
    return with_stored_metadata(owner, live)


@contextmanager
def _progress(total: int) -> Iterator[Callable[[ObjectKey], None] | None]:
    """Show the progress in a terminal, if there is more than one object."""
    if total < 2 or not _is_terminal():  # noqa: PLR2004 (one object needs no bar)
        yield None
        return
    from rich.console import Console
    from rich.progress import Progress

    looked_at: set[ObjectKey] = set()
    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("dry run", total=total)

        def seen(key: ObjectKey) -> None:
            looked_at.add(key)
            bar.update(task, completed=len(looked_at), description=key.kind)

        yield seen


def _is_terminal() -> bool:
    return sys.stderr.isatty()


def _show(found: Sequence[ComponentChanges], *, explain: bool) -> None:
    for each in found:
        what = (
            "the function that returns the components" if each.component is None else f"component {each.component.name}"
        )
        title = f"{what} of {each.owner}"
        stopped = early_stop(each.diff)
        _line(f"# {title}{': no changes' if each.diff.is_empty and not stopped else ''}")
        if stopped:
            _line(f"# the reconcile would stop early, {stopped}", "yellow")
        for changed in each.diff.objects:
            _object(changed)
        for ignored in each.diff.ignored:
            owners = f", set by {' and '.join(ignored.managers)}" if ignored.managers else ""
            _line(f"# {ignored.resource}: {ignored.path} is ignored: {value_text(ignored.value)}{owners}")
        for conflict in each.diff.conflicts:
            _line(
                f'# {conflict.resource}: {conflict.path} is owned by "{conflict.manager}", which on_conflict protects'
            )
        for resource in each.diff.unregistered:
            _line(f"# {resource} stays: the component applied it, and does not register it any more", "yellow")
        if each.diff.unregistered:
            _line("# with_prune() of the component's builder deletes such objects", "yellow")
        if each.diff.problem:
            _line(f"# the reconcile would fail: {each.diff.problem}", "red")
        if explain:
            _print_summaries(title, each)


def _object(changed: ObjectDiff) -> None:
    from ocf.component.diff import DiffVerb

    reasons = f": {', '.join(changed.reasons)}" if changed.reasons else ""
    _line(f"# {changed.verb} {changed.resource}{reasons}")
    if changed.before == changed.after and changed.resource.startswith("external/"):
        _line("# no value that is shown changes")
    elif changed.before == changed.after:
        _line("# no value changes, only the field ownership")
    elif changed.verb is not DiffVerb.DELETE:
        for line in _unified(changed):
            _line(line, _COLOURS.get(line[0]))
    for field in changed.fields:
        if field.source:
            _line(f"# {field.path} is set by {field.source}")
    for taken in changed.taken:
        _line(f'# {taken.path} is taken over from "{taken.manager}"')


def _unified(changed: ObjectDiff) -> Iterator[str]:
    from ocf.objects import dump_document

    before, after = (
        [] if each is None else dump_document(_sorted(each)).rstrip("\n").split("\n")
        for each in (changed.before, changed.after)
    )
    live, following = (f"{side} {changed.resource}" for side in ("live", "next"))
    return difflib.unified_diff(before, after, live, following, lineterm="")


def _sorted(value: Any) -> Any:
    """Sort keys, so that lines differ in content only."""
    if isinstance(value, dict):
        return {key: _sorted(value[key]) for key in sorted(value)}
    return [_sorted(item) for item in value] if isinstance(value, list) else value


def _print_summaries(title: str, each: ComponentChanges) -> None:
    rows = [
        (summary.resource, summary.action, "; ".join((summary.because, *summary.fields)), summary.report)
        for summary in _summaries(each)
    ]
    if rows:
        grid(title, ("resource", "action", "because", "reports"), rows)


def _summaries(each: ComponentChanges) -> Sequence[ResourceSummary]:
    from ocf.component import summarize

    if each.component is None or each.diff.result is None:
        return ()
    return summarize(each.component, each.diff.result)


def _line(text: str, colour: str | None = None) -> None:
    echo(text, color=colour)


def changes_json(each: ComponentChanges) -> dict[str, Any]:
    """Return the changes of a component as JSON values."""
    result = each.diff.result
    return {
        "owner": each.owner,
        "component": each.diff.component,
        "differs": not each.diff.is_empty,
        "halt": early_stop(each.diff),
        "problem": each.diff.problem,
        "objects": [asdict(one) for one in each.diff.objects],
        "ignored": [asdict(one) for one in each.diff.ignored],
        "conflicts": [asdict(one) for one in each.diff.conflicts],
        "unregistered": list(each.diff.unregistered),
        "condition": result.condition.to_manifest() if result is not None else None,
        "resources": [asdict(summary) for summary in _summaries(each)],
    }
