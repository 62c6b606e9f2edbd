"""`ocf explain`: what an autoscaler does now, why, and what would have to change."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from ocf.cli.options import Context, FeatureGateFlags, Kubeconfig, KubernetesVersion, Traceback
from ocf.cli.output import as_json, exit_on_error

if TYPE_CHECKING:
    from ocf.autoscaling.algorithm import Settings
    from ocf.autoscaling.explain import Explanation
    from ocf.cli.explain.from_cluster import Observed

__all__ = ["ExplainOutput", "explain"]

_WIDTH: Final = 80
_INDENT: Final = "  "


class ExplainOutput(StrEnum):
    """How an explanation is shown."""

    TEXT = "text"
    JSON = "json"


def explain(  # noqa: PLR0913 (each is an option of the command line)
    name: Annotated[
        str | None, typer.Argument(metavar="NAME", help="The autoscaler; with one in the files, it is that one.")
    ] = None,
    *,
    file: Annotated[
        list[str] | None,
        typer.Option("--file", "-f", metavar="FILE", help="Explain what files say, without a cluster; repeatable."),
    ] = None,
    namespace: Annotated[
        str | None, typer.Option("--namespace", "-n", metavar="NAME", help="The context's by default.")
    ] = None,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
    own_kind: Annotated[
        bool, typer.Option("--own-kind", help="In a cluster: a HorizontalAutoscaler, as ocf hpa-controller runs it.")
    ] = False,
    watch: Annotated[
        str | None, typer.Option(metavar="DURATION", help="Collect the history for so long first, such as 5m.")
    ] = None,
    now: Annotated[
        str | None, typer.Option(metavar="TIME", help="With files: when, such as 2026-01-31T12:00:00Z.")
    ] = None,
    kubernetes_version: KubernetesVersion = None,
    feature_gate: FeatureGateFlags = None,
    tolerance: Annotated[str | None, typer.Option(metavar="RATIO", help="The controller's, 0.1 by default.")] = None,
    sync_period: Annotated[str | None, typer.Option(metavar="DURATION", help="15s by default.")] = None,
    downscale_stabilization: Annotated[str | None, typer.Option(metavar="DURATION", help="5m by default.")] = None,
    cpu_initialization_period: Annotated[str | None, typer.Option(metavar="DURATION", help="5m by default.")] = None,
    initial_readiness_delay: Annotated[str | None, typer.Option(metavar="DURATION", help="30s by default.")] = None,
    scale_up_limit_factor: Annotated[str | None, typer.Option(metavar="FACTOR", help="2 by default.")] = None,
    scale_up_limit_minimum: Annotated[str | None, typer.Option(metavar="PODS", help="4 by default.")] = None,
    output: Annotated[ExplainOutput, typer.Option(help="For people, or for programs.")] = ExplainOutput.TEXT,
    picture: Annotated[
        str | None,
        typer.Option(
            metavar="FILE", help="Also draw the recommendation window: .svg, .png or .html; needs the extra plots."
        ),
    ] = None,
    traceback: Traceback = False,
) -> None:
    """Explain what a HorizontalPodAutoscaler does now, and what would have to change for something else.

    With files it needs no cluster. In a cluster, nothing is written; what only the controller knows is bounded from
    what its status says, and is known after --watch for as long as the longest window.
    """
    with exit_on_error(traceback=traceback):
        numbers = {
            "tolerance": tolerance,
            "scale_up_limit_factor": scale_up_limit_factor,
            "scale_up_limit_minimum": scale_up_limit_minimum,
        }
        periods = {
            "sync_period": sync_period,
            "downscale_stabilization": downscale_stabilization,
            "cpu_initialization_period": cpu_initialization_period,
            "initial_readiness_delay": initial_readiness_delay,
        }
        settings = _settings(kubernetes_version, feature_gate or [], numbers, periods)
        _check(name, file, watch, now, picture)
        if file:
            found, observed = _of_files(file, name, settings, now, kubernetes_version, feature_gate or []), None
        else:
            found, observed = _of_cluster(str(name), namespace, kubeconfig, context, watch, settings, own_kind=own_kind)
        if picture is not None:
            from ocf.cli.explain.chart import save

            save(found, Path(picture))
        if output is ExplainOutput.JSON:
            typer.echo(as_json(_plain(found, observed)))
        else:
            _show(found, observed)


def _check(name: str | None, file: list[str] | None, watch: str | None, now: str | None, picture: str | None) -> None:
    """Refuse what does not go together, before anything is asked of anybody."""
    from ocf.errors import ConfigError

    if not file and name is None:
        raise ConfigError("which autoscaler? give its NAME in the cluster, or files with -f FILE")
    if file and watch is not None:
        raise ConfigError("--watch needs a cluster; files say what was remembered as `history` of a Situation")
    if not file and now is not None:
        raise ConfigError("--now is for files; a cluster is looked at now")
    if picture is not None:
        from ocf.cli.explain.chart import check

        check(Path(picture))


def _settings(
    version: str | None, switches: list[str], numbers: dict[str, str | None], periods: dict[str, str | None]
) -> Settings:
    from dataclasses import replace

    from ocf.autoscaling import FeatureGates
    from ocf.autoscaling.algorithm import Settings
    from ocf.cli.validation_report import gates_of

    gates = gates_of(version, switches)
    features = replace(
        FeatureGates.for_release(version) if version else FeatureGates(),
        scale_to_zero=gates.scale_to_zero,
        configurable_tolerance=gates.configurable_tolerance,
    )
    given: dict[str, Any] = {name: _number(name, text) for name, text in numbers.items() if text is not None}
    given |= {name: _period(name, text) for name, text in periods.items() if text is not None}
    return Settings(features=features, **given)


def _number(name: str, text: str) -> float:
    from ocf.errors import ConfigError

    try:
        return float(text)
    except ValueError:
        raise ConfigError(f"--{name.replace('_', '-')} must be a number like 0.1, not {text!r}") from None


def _period(name: str, text: str) -> timedelta:
    from ocf.errors import ConfigError
    from ocf.objects.durations import parse_duration

    try:
        return parse_duration(text)
    except ValueError as error:
        raise ConfigError(f"--{name.replace('_', '-')} {error}") from None


def _of_files(  # noqa: PLR0917 (what the command line says)
    files: list[str], name: str | None, settings: Settings, now: str | None, version: str | None, switches: list[str]
) -> Explanation:
    from ocf.autoscaling import explain as explaining
    from ocf.cli.explain.from_files import read_given
    from ocf.cli.validation_report import gates_of

    given = read_given(files, name, gates=gates_of(version, switches), now=None if now is None else _instant(now))
    for note in given.notes:
        typer.secho(f"note: {note}", fg=typer.colors.YELLOW, err=True)
    if given.own_settings is not None:
        from ocf.controllers.hpa.settings import override_settings

        settings = override_settings(settings, given.own_settings)
    if given.history is not None:
        return explaining.explain(given.snapshot, given.history, settings=settings, now=given.now)
    known = explaining.KnownHistory(given.snapshot.status, given.now)
    return explaining.explain_unknown(given.snapshot, known, settings=settings, now=given.now)


def _instant(text: str) -> datetime:
    from ocf.errors import ConfigError
    from ocf.objects.timestamps import parse_time

    try:
        return parse_time(text).astimezone(UTC)
    except ValueError:
        raise ConfigError(f"--now must be a time like 2026-01-31T12:00:00Z, not {text!r}") from None


def _of_cluster(  # noqa: PLR0917 (what the command line says)
    name: str,
    namespace: str | None,
    kubeconfig: str | None,
    context: str | None,
    watch: str | None,
    settings: Settings,
    *,
    own_kind: bool,
) -> tuple[Explanation, Observed]:
    import asyncio

    from ocf.autoscaling import explain as explaining
    from ocf.cli.explain.from_cluster import observed

    period = None if watch is None else _period("watch", watch)
    found = asyncio.run(observed(name, namespace, kubeconfig, context, period, settings, own_kind=own_kind))
    explained = explaining.explain_unknown(found.snapshot, found.known, settings=found.settings, now=found.now)
    return explained, found


def _plain(found: Explanation, observed: Observed | None) -> dict[str, Any]:
    from ocf.autoscaling.explain import to_json

    return {**to_json(found), "observed": None if observed is None else observed.plain()}


def _show(found: Explanation, observed: Observed | None) -> None:
    from ocf.autoscaling.explain import Section, render

    first, *rest = render(found)
    seen = [] if observed is None else [Section("What the controller last said", tuple(observed.lines()))]
    width, fine = _terminal()
    for section in (first, *seen, *rest):
        if section is not first:
            typer.echo()
        for part in _broken(section.title, width, indent=""):
            typer.secho(part, bold=True)
        for line in section.lines:
            for part in _broken(line, width):
                typer.echo(part)
    for title, lines in _pictures(found, width, fine=fine):
        typer.secho(f"\n{title}", bold=True)
        for line in lines:
            typer.echo(f"{_INDENT}{line}")


def _terminal() -> tuple[int, bool]:
    """Return how wide the output is, and whether it knows more than ASCII."""
    import shutil

    encoding = (getattr(sys.stdout, "encoding", None) or "").lower()
    width = min(120, shutil.get_terminal_size((_WIDTH, 24)).columns) if sys.stdout.isatty() else _WIDTH
    return width, encoding.startswith("utf")


def _broken(line: str, width: int, *, indent: str = _INDENT) -> list[str]:
    """Break a line between words; what goes on is indented further."""
    import textwrap

    text = line.lstrip()
    start = indent + line[: len(line) - len(text)]
    if len(start) + len(text) <= width:
        return [start + text]
    return textwrap.wrap(
        text,
        width,
        initial_indent=start,
        subsequent_indent=start + _INDENT,
        break_long_words=False,
        break_on_hyphens=False,
    )


def _pictures(found: Explanation, width: int, *, fine: bool) -> Iterator[tuple[str, list[str]]]:
    """Yield pictures of the window; of both ends of what is possible, where it is not known."""
    from ocf.autoscaling.explain import render_text, timeline

    sides = [("The recommendation window", found)]
    if not found.exact and found.most is not None:
        title = "The recommendation window, if the history permits the {}"
        sides = [(title.format("fewest"), found), (title.format("most"), found.most)]
    for title, side in sides:
        window = timeline(side)
        if window is not None:
            yield title, list(render_text(window, width=width - len(_INDENT), fine=fine))
