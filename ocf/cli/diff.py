"""`ocf diff`: what the next reconcile would change in a cluster, object by object. Nothing is written."""

from __future__ import annotations

import asyncio
import difflib
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from ocf.cli.options import Changes, Context, Kubeconfig, Owner, Traceback
from ocf.cli.output import FAILED, as_json, exit_on_error, grid, value_text

if TYPE_CHECKING:
    from ocf.cluster import Cluster
    from ocf.component import Component, ComponentDiff, ObjectDiff, ResourceSummary
    from ocf.objects import Manifest, ObjectKey

__all__ = ["diff"]

_DIFFERENT: Final = 1
# No object has it, and no server gives it away.
_NO_UID: Final = "00000000-0000-0000-0000-000000000000"
_COLOURS: Final = {"+": typer.colors.GREEN, "-": typer.colors.RED, "@": typer.colors.CYAN}


class DiffOutput(StrEnum):
    """How a difference is shown."""

    TEXT = "text"
    JSON = "json"


def diff(  # noqa: PLR0913 (each is an option of the command line)
    target: Annotated[str, typer.Argument(metavar="MODULE:FUNCTION", help="Takes an owner, returns its components.")],
    *,
    owner: Owner,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
    explain: Annotated[bool, typer.Option("--explain", help="Say of every resource what is done, and why.")] = False,
    output: Annotated[DiffOutput, typer.Option(help="For people, or for programs.")] = DiffOutput.TEXT,
    changes: Changes = None,
    traceback: Traceback = False,
) -> None:
    """Show what the next reconcile would change in a cluster.

    The reconcile is rehearsed: every write is a dry run of the server, so defaults and admission are the cluster's. The
    file says what the owner wants; if the cluster has the owner, its uid and its status are taken from there.

    The exit status is 0 without a difference, 1 with one, and 2 if the reconcile, or this command, would fail.
    """
    with exit_on_error(traceback=traceback):
        found = asyncio.run(_diffs(target, owner, changes or [], kubeconfig, context))
        if output is DiffOutput.JSON:
            typer.echo(as_json([_to_json(each) for each in found]))
        else:
            _show(found, explain=explain)
        raise typer.Exit(_status([each.diff for each in found]))


@dataclass(frozen=True, slots=True)
class _Found:
    """What would become of one component of one owner."""

    owner: str
    component: Component
    diff: ComponentDiff


def _status(found: Sequence[ComponentDiff]) -> int:
    if any(each.problem for each in found):
        return FAILED
    return 0 if all(each.is_empty and not _early_stop(each) for each in found) else _DIFFERENT


def _early_stop(diff: ComponentDiff) -> str:
    """Say what keeps the component from what it wants, if the pass would stop early; then nothing else was compared."""
    from ocf.component import Reason

    condition = diff.result.condition if diff.result is not None else None
    if condition is None or condition.reason not in {Reason.BLOCKED, Reason.PREREQUISITE_NOT_MET}:
        return ""
    return f"{condition.reason}: {condition.message}"


async def _diffs(
    target: str, file: str, changes: Sequence[str], kubeconfig: str | None, context: str | None
) -> list[_Found]:
    from ocf.cli.component_loader import components_of, load_function, owner_name, read_owners
    from ocf.component import diff as rehearse

    function = load_function(target)
    owners = read_owners(file, changes)
    found: list[_Found] = []
    async with await connect(kubeconfig, context) as cluster:
        for owner in owners:
            live = await _with_live_metadata(owner, cluster)
            components = components_of(target, function, live)
            with _progress(sum(len(each.entries) for each in components)) as seen:
                diffs = await rehearse(components, live, cluster, seen=seen)
            name = owner_name(owner)
            found += [_Found(name, component, each) for component, each in zip(components, diffs, strict=True)]
    return found


async def connect(kubeconfig: str | None, context: str | None) -> Any:
    """Open the cluster that is meant; a separate function, so that a test can give another one."""
    from ocf.cluster.client import ApiServerCluster

    return await ApiServerCluster.connect(kubeconfig, context=context)


async def _with_live_metadata(owner: Manifest, cluster: Cluster) -> Manifest:
    """Return an owner as the file wants it, and as the cluster knows it."""
    from ocf.cli.component_loader import owner_name
    from ocf.errors import NotFoundError
    from ocf.objects import ObjectKey

    try:
        live = await cluster.get(ObjectKey.of(owner))
    except NotFoundError:
        note = f"note: {owner_name(owner)} is not in the cluster, so everything is shown as for a new owner"
        typer.secho(note, fg=typer.colors.YELLOW, err=True)
        return {**owner, "metadata": {**owner["metadata"], "uid": _NO_UID}}
    if "deletionTimestamp" in live["metadata"]:
        note = f"note: {owner_name(owner)} is being deleted; shown is what a reconcile would do if it were not"
        typer.secho(note, fg=typer.colors.YELLOW, err=True)
    given = {key: value for key, value in owner["metadata"].items() if key in {"labels", "annotations"}}
    status = {"status": live["status"]} if "status" in live else {}
    return {**owner, "metadata": {**live["metadata"], **given}, **status}


@contextmanager
def _progress(total: int) -> Iterator[Callable[[ObjectKey], None] | None]:
    """Show how far it is, if there is something to wait for and somebody who sees it."""
    if total < 2 or not _is_terminal():  # noqa: PLR2004 (one object needs no bar)
        yield None
        return
    from rich.console import Console
    from rich.progress import Progress

    looked_at: set[ObjectKey] = set()
    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("asking the server", total=total)

        def seen(key: ObjectKey) -> None:
            looked_at.add(key)
            bar.update(task, completed=len(looked_at), description=key.kind)

        yield seen


def _is_terminal() -> bool:
    return sys.stderr.isatty()


def _show(found: Sequence[_Found], *, explain: bool) -> None:
    for each in found:
        title = f"component {each.component.name} of {each.owner}"
        halt = _early_stop(each.diff)
        _line(f"# {title}{': no difference' if each.diff.is_empty and not halt else ''}")
        if halt:
            _line(f"# the reconcile would stop early, {halt}", typer.colors.YELLOW)
        for changed in each.diff.objects:
            _object(changed)
        for left in each.diff.ignored:
            owners = f", set by {' and '.join(left.managers)}" if left.managers else ""
            _line(f"# {left.resource}: {left.path} is left to others: {value_text(left.value)}{owners}")
        for conflict in each.diff.conflicts:
            _line(f'# {conflict.resource}: {conflict.path} belongs to "{conflict.manager}", and may not be taken')
        if each.diff.problem:
            _line(f"# the reconcile would fail: {each.diff.problem}", typer.colors.RED)
        if explain:
            _print_summaries(title, each)


def _object(changed: ObjectDiff) -> None:
    from ocf.component import Verb

    reasons = f": {', '.join(changed.reasons)}" if changed.reasons else ""
    _line(f"# {changed.verb} {changed.resource}{reasons}")
    if changed.before == changed.after:
        _line("# no value changes, only who owns it")
    elif changed.verb is not Verb.DELETE:
        for line in _unified(changed):
            _line(line, _COLOURS.get(line[0]))
    for field in changed.fields:
        if field.source:
            _line(f"# {field.path} is set by {field.source}")
    for taken in changed.taken:
        _line(f'# {taken.path} is taken from "{taken.manager}"')


def _unified(changed: ObjectDiff) -> Iterator[str]:
    from ocf.objects import dump_document

    before, after = (
        [] if each is None else dump_document(_sorted(each)).rstrip("\n").split("\n")
        for each in (changed.before, changed.after)
    )
    live, following = (f"{word} {changed.resource}" for word in ("live", "next"))
    return difflib.unified_diff(before, after, live, following, lineterm="")


def _sorted(value: Any) -> Any:
    """Put keys in order, so that no line differs only because it stands elsewhere."""
    if isinstance(value, dict):
        return {key: _sorted(value[key]) for key in sorted(value)}
    return [_sorted(item) for item in value] if isinstance(value, list) else value


def _print_summaries(title: str, each: _Found) -> None:
    rows = [
        (account.resource, account.action, "; ".join((account.because, *account.fields)), account.report)
        for account in _summaries(each)
    ]
    if rows:
        grid(title, ("resource", "action", "because", "reports"), rows)


def _summaries(each: _Found) -> Sequence[ResourceSummary]:
    from ocf.component import summarize

    return summarize(each.component, each.diff.result) if each.diff.result is not None else ()


def _line(text: str, colour: str | None = None) -> None:
    # Colours are left out where nobody sees them.
    typer.secho(text, fg=colour)


def _to_json(each: _Found) -> dict[str, Any]:
    result = each.diff.result
    return {
        "owner": each.owner,
        "component": each.diff.component,
        "differs": not each.diff.is_empty,
        "halt": _early_stop(each.diff),
        "problem": each.diff.problem,
        "objects": [asdict(one) for one in each.diff.objects],
        "left": [asdict(one) for one in each.diff.ignored],
        "conflicts": [asdict(one) for one in each.diff.conflicts],
        "condition": result.condition.to_manifest() if result is not None else None,
        "resources": [asdict(account) for account in _summaries(each)],
    }
