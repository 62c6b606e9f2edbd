"""What `ocf explain` does for an owner: the checks of its options, and the output."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click
from click.exceptions import Exit

from ocf.cli.exit_status import FOUND
from ocf.cli.output import as_json, echo, grid, terminal, wrapped
from ocf.errors import ConfigError
from ocf.objects.durations import parse_duration
from ocf.objects.timestamps import parse_time

if TYPE_CHECKING:
    from ocf.cli.explain.question import OwnerQuestion

__all__ = ["ExplainOutput", "OwnerOutput", "explain_owner", "instant", "period", "watched"]

_INDENT: Final = "  "
_OF_OWNERS: Final = frozenset(
    [
        "components",
        "context",
        "every",
        "file",
        "kubeconfig",
        "namespace",
        "now",
        "output",
        "picture",
        "timeout",
        "traceback",
        "watch",
        "words",
    ]
)


class ExplainOutput(StrEnum):
    """Output formats of an explanation."""

    TEXT = "text"
    JSON = "json"


@dataclass(frozen=True, slots=True)
class OwnerOutput:
    """How an owner is explained, as the options give it; None for an option that is not given.

    Args:
        picture: File of the picture.
        now: Time of the files.
        watch: Empty to follow until it is ready.
        timeout: For how long to follow.
    """

    output: ExplainOutput
    picture: str | None = None
    now: str | None = None
    watch: str | None = None
    timeout: str | None = None


def watched(words: Sequence[str], watch: str | None) -> tuple[tuple[str, ...], str | None]:
    """Return the arguments and the value of `--watch`: a word after it that is no duration is an argument."""
    if watch and not (watch[:1].isdigit() and "/" not in watch):
        return (*words, watch), ""
    return tuple(words), watch


def explain_owner(question: OwnerQuestion, how: OwnerOutput) -> None:
    """Print the explanation of an owner, or of all of a kind.

    Raises:
        Exit: With status 1, if it was followed and is not ready at the end.
    """
    from ocf.cli.explain.owner import check_picture, followed_answer, owner_answer, save_picture

    _check(question, how)
    limit = None if how.timeout is None else period("timeout", how.timeout)
    at = None if how.now is None else instant(how.now)
    if question.is_lease:
        _explain_lease(question, at, how)
        return
    if how.picture is not None:
        check_picture(question, Path(how.picture))
    problem = ""
    if how.watch is None:
        answer = owner_answer(question, at)
    else:
        end, answer = followed_answer(question, _show_progress, limit)
        problem = end.value
    if how.picture is not None:
        save_picture(answer, Path(how.picture))
    if how.output is ExplainOutput.JSON:
        click.echo(as_json(answer.to_json()))
    else:
        width, _ = terminal()
        for number, (depth, line) in enumerate(answer.lines()):
            for part in wrapped(line, width, indent=_INDENT * depth):
                echo(part, bold=number == 0)
    if problem:
        echo(f"{f'{question.kind} {question.name}'.strip()} {problem}", err=True)
        raise Exit(FOUND)


def _explain_lease(question: OwnerQuestion, now: datetime | None, how: OwnerOutput) -> None:
    """Print who holds a Lease, and which slots of the owners, if it is that of several replicas."""
    from ocf.cli.explain.lease import HEADINGS, read_lease

    found = read_lease(question, now)
    if how.output is ExplainOutput.JSON:
        click.echo(as_json(found.to_json()))
        return
    if not found.by:
        echo(found.sentence, bold=True)
        return
    grid(found.sentence, HEADINGS, found.rows())
    width, _ = terminal()
    for remark in found.remarks():
        for part in wrapped(remark, width, indent=""):
            echo(part)


def _check(question: OwnerQuestion, how: OwnerOutput) -> None:
    """Reject options that are for autoscalers, and combinations that do not fit."""
    given = click.get_current_context()
    for name in given.params:
        if name not in _OF_OWNERS and given.get_parameter_source(name) is click.core.ParameterSource.COMMANDLINE:
            option = f"--{name.replace('_', '-')}"
            raise ConfigError(f"{option} is for autoscalers, not for {question.kind}: write hpa/NAME, or leave it out")
    if how.now is not None and not question.files:
        raise ConfigError("--now needs files; a cluster is always read now")
    if question.components and (question.files or not question.name or how.watch is not None):
        raise ConfigError("--components explains one owner in a cluster: leave out --file, --all and --watch")
    if how.watch is None and how.timeout is not None:
        raise ConfigError("--timeout needs --watch")
    if how.watch:
        raise ConfigError(f"--watch of an owner takes no duration: write --watch --timeout {how.watch}")
    if how.watch is not None and question.files:
        raise ConfigError("--watch needs a cluster; files do not change")
    if question.is_lease and (question.components or how.picture is not None or how.watch is not None):
        raise ConfigError("a Lease is only shown: leave out --components, --picture and --watch")


def _show_progress(line: str) -> None:
    """Print what has changed to the standard error, because the explanation follows on the standard output."""
    width, _ = terminal()
    for part in wrapped(line, width, indent=""):
        echo(part, err=True)


def instant(text: str) -> datetime:
    """Return the time of `--now`."""
    try:
        return parse_time(text).astimezone(UTC)
    except ValueError:
        raise ConfigError(f"--now must be a time like 2026-01-31T12:00:00Z, got {text!r}") from None


def period(name: str, text: str) -> timedelta:
    """Return the duration of an option."""
    try:
        return parse_duration(text)
    except ValueError as error:
        raise ConfigError(f"--{name.replace('_', '-')} {error}") from None
