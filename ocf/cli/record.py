"""`ocf record`: what an autoscaler reads and does, as a file that can be replayed and explained."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TextIO

import typer

from ocf.cli.options import AutoscalerNamespace, Context, Kubeconfig, Traceback
from ocf.cli.output import exit_on_error

if TYPE_CHECKING:
    from datetime import timedelta

__all__ = ["record"]

_STDOUT = "-"


def record(  # noqa: PLR0913 (each is an option of the command line)
    name: Annotated[str, typer.Argument(metavar="NAME", help="Name of the HorizontalPodAutoscaler.")],
    *,
    output: Annotated[
        str, typer.Option("--output", "-o", metavar="FILE", help="File to write, which must not exist; - for stdout.")
    ],
    namespace: AutoscalerNamespace = None,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
    every: Annotated[str, typer.Option(metavar="DURATION", help="Time between two reads.")] = "15s",
    duration: Annotated[
        str | None, typer.Option("--for", metavar="DURATION", help="How long to record; default: until interrupted.")
    ] = None,
    traceback: Traceback = False,
) -> None:
    """Record a HorizontalPodAutoscaler of a cluster: its spec, Scale, pods and metrics, as they change.

    The file can be replayed by `ocf simulate`, with other settings, too, and explained at any instant by
    `ocf explain -f`. Nothing is written to the cluster. A recording that is interrupted can be used up to there.
    """
    with exit_on_error(traceback=traceback):
        period = None if duration is None else _duration("--for", duration)
        seconds = _duration("--every", every)
        with _opened(output) as file, suppress(KeyboardInterrupt):
            asyncio.run(_record(name, namespace, kubeconfig, context, file, seconds, period))


def _duration(option: str, text: str) -> timedelta:
    from ocf.errors import ConfigError
    from ocf.objects.durations import parse_duration

    try:
        found = parse_duration(text)
    except ValueError as error:
        raise ConfigError(f"{option} {error}") from None
    if not found:
        raise ConfigError(f"{option} must be more than 0s, got {text!r}")
    return found


@contextmanager
def _opened(output: str) -> Iterator[TextIO]:
    """Open the file; one that is still empty in the end is removed."""
    from ocf.errors import ConfigError

    if output == _STDOUT:
        yield sys.stdout
        return
    path = Path(output)
    try:
        file = path.open("x", encoding="utf-8")
    except FileExistsError:
        raise ConfigError(f"{output} exists already: name a new file") from None
    except OSError as error:
        raise ConfigError(f"{output} cannot be written: {error.strerror}") from None
    try:
        with file:
            yield file
    finally:
        with suppress(FileNotFoundError):
            if path.stat().st_size == 0:
                path.unlink()


async def _record(  # noqa: PLR0917 (the options of the command line)
    name: str,
    namespace: str | None,
    kubeconfig: str | None,
    context: str | None,
    file: TextIO,
    every: timedelta,
    period: timedelta | None,
) -> None:
    from ocf.cli import record_run
    from ocf.cli.autoscaler_clients import context_namespace

    where = namespace or context_namespace(kubeconfig, context)
    async with record_run.open_recorded(kubeconfig, context, name, where) as source:
        await record_run.record(
            source, file, every=every, period=period, warn=lambda text: typer.secho(f"warning: {text}", err=True)
        )
