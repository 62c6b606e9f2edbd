"""`ocf record`: what an autoscaler reads and does, as a file that can be replayed and explained.

It follows an autoscaler of a cluster, or reads a range of time from Prometheus.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

import click

from ocf.cli.command import Command
from ocf.cli.options import autoscaler_namespace_option, context_option, kubeconfig_option, traceback_option
from ocf.cli.output import echo
from ocf.cli.times import positive_duration

if TYPE_CHECKING:
    from datetime import timedelta

__all__ = ["record"]

_STDOUT = "-"
_TIME = "RFC 3339, or a duration before now, such as 2h."


@click.command(cls=Command)
@click.argument("name", metavar="[NAME]", required=False, help="Name of the HorizontalPodAutoscaler; none with --all.")
@click.option(
    "--output", "-o", required=True, metavar="FILE", help="File to write, which must not exist; - for stdout."
)
@autoscaler_namespace_option
@kubeconfig_option
@context_option
@click.option(
    "--all",
    "is_all",
    is_flag=True,
    help="Write one scenario of all HPAs as they are now, on the nodes: of --namespace, or of the cluster.",
)
@click.option("--every", metavar="DURATION", help="Time between two reads; default: 15s.")
@click.option("duration", "--for", metavar="DURATION", help="How long to record; default: until interrupted.")
@click.option("--prometheus", metavar="URL", help="Read a range of time from this Prometheus, not from a cluster.")
@click.option("--start", metavar="TIME", help=f"With --prometheus: begin of the range. {_TIME}")
@click.option("--end", metavar="TIME", help="With --prometheus: end of the range; default: now.")
@click.option("--step", metavar="DURATION", help="With --prometheus: time between two instants; default: 30s.")
@click.option(
    "--window", metavar="DURATION", help="With --prometheus: time over which the use of cpu is averaged; default: 2m."
)
@click.option(
    "--manifest", metavar="FILE", help="With --prometheus: the HPA, for what kube-state-metrics does not have of it."
)
@click.option(
    "--pods", metavar="REGEX", help="With --prometheus: names of its pods; default: those that its target has created."
)
@click.option("--bearer-token-file", metavar="FILE", help="With --prometheus: file with a token.")
@click.option("--username", metavar="NAME", help="With --prometheus: user.")
@click.option("--password-file", metavar="FILE", help="With --prometheus: file with the password of the user.")
@click.option(
    "--header",
    multiple=True,
    metavar="NAME:VALUE",
    help="With --prometheus: another header, such as a tenant; repeatable.",
)
@click.option("--ca-file", metavar="FILE", help="With --prometheus: certificates of its authorities.")
@traceback_option
def record(  # noqa: PLR0913 (each is an option of the command line)
    name: str | None,
    *,
    is_all: bool,
    output: str,
    namespace: str | None,
    kubeconfig: str | None,
    context: str | None,
    every: str | None,
    duration: str | None,
    prometheus: str | None,
    start: str | None,
    end: str | None,
    step: str | None,
    window: str | None,
    manifest: str | None,
    pods: str | None,
    bearer_token_file: str | None,
    username: str | None,
    password_file: str | None,
    header: tuple[str, ...],
    ca_file: str | None,
) -> None:
    """Record a HorizontalPodAutoscaler of a cluster: its spec, Scale, pods and metrics, as they change.

    The file can be replayed by `ocf simulate`, with other settings, too, and explained at any instant by
    `ocf explain -f`. Nothing is written to the cluster. A recording that is interrupted can be used up to there. With
    --prometheus, a past range of time is read from the series of kube-state-metrics and of the kubelets. With --all,
    one scenario of all HPAs is written, which run together on the nodes of the cluster.

    Example:
        ocf record web --namespace shop --output web.jsonl
    """
    if is_all:
        given = {"NAME": name, "--prometheus": prometheus, "--every": every, "--for": duration}
        _record_everything(given, output, namespace, kubeconfig, context)
        return
    if name is None:
        raise click.UsageError("Missing argument 'NAME': the HorizontalPodAutoscaler, or --all for all of them.")
    _check_source(
        prometheus,
        {"--kubeconfig": kubeconfig, "--context": context, "--for": duration, "--every": every},
        {
            "--start": start,
            "--end": end,
            "--step": step,
            "--window": window,
            "--manifest": manifest,
            "--pods": pods,
            "--bearer-token-file": bearer_token_file,
            "--username": username,
            "--password-file": password_file,
            "--header": header,
            "--ca-file": ca_file,
        },
    )
    if prometheus is not None:
        from ocf.cli.record.range import RangeRequest, record_from_prometheus

        request = RangeRequest(
            url=prometheus,
            name=name,
            namespace=namespace or "default",
            output=output,
            start=start,
            end=end or "0s",
            step=positive_duration("--step", step or "30s"),
            window=positive_duration("--window", window or "2m"),
            manifest=manifest,
            pods=pods,
            bearer_token_file=bearer_token_file,
            username=username,
            password_file=password_file,
            headers=header,
            ca_file=ca_file,
        )
        record_from_prometheus(request)
        return
    period = None if duration is None else positive_duration("--for", duration)
    seconds = positive_duration("--every", every or "15s")
    with _opened(output) as file, suppress(KeyboardInterrupt):
        asyncio.run(_record(name, namespace, kubeconfig, context, file, seconds, period))


def _record_everything(
    given: Mapping[str, object], output: str, namespace: str | None, kubeconfig: str | None, context: str | None
) -> None:
    from ocf.errors import ConfigError

    ignored = [option for option, value in given.items() if value]
    if ignored:
        raise ConfigError(f"{', '.join(ignored)}: not with --all, which reads all HPAs of a cluster once")
    with _opened(output) as file:
        text, notes = asyncio.run(_everything(namespace or "", kubeconfig, context))
        file.write(text)
    for note in notes:
        echo(f"note: {note}", err=True)


async def _everything(namespace: str, kubeconfig: str | None, context: str | None) -> tuple[str, list[str]]:
    """Read all HPAs; a function of its own so that tests can replace it."""
    from ocf.cli.record.everything import everything
    from ocf.cluster.client import ApiServerCluster

    async with await ApiServerCluster.connect(kubeconfig, context=context) as cluster:
        return await everything(cluster, namespace)


def _check_source(prometheus: str | None, of_cluster: Mapping[str, object], of_range: Mapping[str, object]) -> None:
    """Reject options that have no effect on the source of the recording."""
    from ocf.errors import ConfigError

    options = of_range if prometheus is None else of_cluster
    ignored = [name for name, value in options.items() if value]
    if ignored and prometheus is not None:
        raise ConfigError(f"{', '.join(ignored)}: not with --prometheus, which reads no cluster")
    if ignored:
        raise ConfigError(f"{', '.join(ignored)}: only with --prometheus")


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
        yield file
    except BaseException:
        with suppress(OSError):  # the disk may be full, which is the error already
            file.close()
        raise
    else:
        file.close()
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
    from ocf.cli.autoscaler_clients import context_namespace
    from ocf.cli.record import cluster

    where = namespace or context_namespace(kubeconfig, context)
    async with cluster.open_recorded(kubeconfig, context, name, where) as source:
        await cluster.record(
            source, file, every=every, period=period, warn=lambda text: echo(f"warning: {text}", err=True)
        )
