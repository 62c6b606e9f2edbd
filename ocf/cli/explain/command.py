"""`ocf explain`: the decision of an autoscaler with what would change it, or why an owner is not ready."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from ocf.cli.command import Command, OneOf
from ocf.cli.explain.owner_command import ExplainOutput, OwnerOutput, explain_owner, instant, period, watched
from ocf.cli.explain.question import owner_question
from ocf.cli.options import (
    autoscaler_namespace_option,
    context_option,
    feature_gate_option,
    kubeconfig_option,
    kubernetes_version_option,
    traceback_option,
)
from ocf.cli.output import as_json, echo, terminal, wrapped

if TYPE_CHECKING:
    from ocf.autoscaling.algorithm import Settings
    from ocf.autoscaling.explain.explanation import Explanation
    from ocf.autoscaling.explain.text import Section
    from ocf.cli.explain.from_cluster import Observed
    from ocf.cli.explain.surroundings import Surroundings

__all__ = ["explain"]

_KINDS: Final = ("hpa", "horizontalpodautoscaler", "horizontalpodautoscalers")
_INDENT: Final = "  "


@click.command(cls=Command)
@click.argument(
    "words",
    nargs=-1,
    metavar="[KIND/]NAME",
    help="An owner, such as shop/corner or shop corner; or an autoscaler, as NAME or hpa/NAME, which is optional if "
    "the files hold only one.",
)
@click.option("--all", "every", is_flag=True, help="Explain all owners of a KIND, those with the most trouble first.")
@click.option(
    "--file", "-f", multiple=True, metavar="FILE", help="Read the objects from files instead of a cluster; repeatable."
)
@autoscaler_namespace_option
@kubeconfig_option
@context_option
@click.option(
    "--components",
    default="",
    metavar="MODULE[:NAME]",
    help="Of an owner in a cluster: the code of its operator, as for ocf diff, to show also what its next reconcile "
    "would write, what has set these fields, and which gates are closed. Writes are dry runs.",
)
@click.option("--own-kind", is_flag=True, help="In a cluster: explain a HorizontalAutoscaler of ocf hpa-controller.")
@click.option(
    "--watch",
    is_flag=False,
    flag_value="",
    metavar="[DURATION]",
    help="Of an owner: show what changes until it is ready. Of an autoscaler: collect the history first, for a "
    "DURATION such as 5m.",
)
@click.option(
    "--timeout", metavar="DURATION", help="With --watch of an owner: the time to wait, such as 5m; default: no limit."
)
@click.option("--now", metavar="TIME", help="With files: the time of the sync, such as 2026-01-31T12:00:00Z.")
@kubernetes_version_option
@feature_gate_option
@click.option("--tolerance", metavar="RATIO", help="Tolerance of the controller; default: 0.1.")
@click.option("--sync-period", metavar="DURATION", help="Sync period of the controller; default: 15s.")
@click.option(
    "--downscale-stabilization", metavar="DURATION", help="Scale-down window if the HPA has none; default: 5m."
)
@click.option(
    "--cpu-initialization-period",
    metavar="DURATION",
    help="Time after its start in which a pod's cpu may be ignored; default: 5m.",
)
@click.option(
    "--initial-readiness-delay",
    metavar="DURATION",
    help="Time after its start in which an unready pod counts as not ready yet; default: 30s.",
)
@click.option(
    "--scale-up-limit-factor",
    metavar="FACTOR",
    help="Factor by which one sync may scale up without a behavior; default: 2.",
)
@click.option(
    "--scale-up-limit-minimum",
    metavar="PODS",
    help="Replicas that one sync may scale up to without a behavior; default: 4.",
)
@click.option(
    "--output", type=OneOf(ExplainOutput), default=ExplainOutput.TEXT, help="text for people, json for programs."
)
@click.option(
    "--picture",
    metavar="FILE",
    help="Also write a page with the explanation and a picture (.html), or the picture alone (.svg): of an owner what "
    "belongs to it, of an autoscaler a chart.",
)
@click.option("--role", is_flag=True, help="Print a Role with the rights that it needs in a cluster, and nothing else.")
@traceback_option
def explain(  # noqa: PLR0913 (each is an option of the command line)
    words: tuple[str, ...],
    *,
    every: bool,
    file: tuple[str, ...],
    namespace: str | None,
    kubeconfig: str | None,
    context: str | None,
    components: str,
    own_kind: bool,
    watch: str | None,
    timeout: str | None,
    now: str | None,
    kubernetes_version: str | None,
    feature_gate: tuple[str, ...],
    tolerance: str | None,
    sync_period: str | None,
    downscale_stabilization: str | None,
    cpu_initialization_period: str | None,
    initial_readiness_delay: str | None,
    scale_up_limit_factor: str | None,
    scale_up_limit_minimum: str | None,
    output: ExplainOutput,
    picture: str | None,
    role: bool,
) -> None:
    """Explain why an owner is not ready, or the current decision of a HorizontalPodAutoscaler.

    Of an owner of any kind, the first sentence names the cause, and a tree shows what belongs to it. Of the Lease of an
    operator, it shows which process leads, or which replica holds which slots of the owners. Of an autoscaler,
    the reasons and what would change its decision are shown; its history is known to the controller only: possible
    values are derived from the status, and --watch for as long as the longest window makes it known.

    With --file no cluster is needed. In a cluster nothing is written. With --watch, the exit status is 0 once the owner
    is ready, and 1 if it fails for good, is deleted, or is not ready in time.

    Example:
        ocf explain -f web.yaml -f busy.yaml
    """
    words, watch = watched(words, watch)
    question = owner_question(words, every=every)
    if question is not None:
        question = replace(question, files=file, namespace=namespace, components=components)
        question = replace(question, kubeconfig=kubeconfig, context=context)
        explain_owner(question, OwnerOutput(output, picture, now, watch, timeout))
        return
    from ocf.errors import ConfigError

    if timeout is not None:
        raise ConfigError("--timeout is for owners; --watch DURATION of an autoscaler ends by itself")
    if components:
        raise ConfigError("--components is for owners: write KIND/NAME")
    name = _name(words)
    if role:
        _print_role(namespace, kubeconfig, context)
        return
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
    settings = _settings(kubernetes_version, feature_gate, numbers, periods)
    _check(name, file, watch, now, picture)
    if file:
        found, around = _of_files(file, name, settings, now, kubernetes_version, feature_gate)
        observed = None
    else:
        found, observed = _of_cluster(str(name), namespace, kubeconfig, context, watch, settings, own_kind=own_kind)
        if observed.forbidden:
            _show_partly(observed, output)
        around = observed.surroundings
    if around is not None:
        found = found.among(owner=around.owner, written_by=around.written_by)
    if picture is not None:
        from ocf.cli.explain.picture import save

        save(found, Path(picture), reported=_reported(found, observed, around))
    if output is ExplainOutput.JSON:
        click.echo(as_json(_to_json(found, observed, around)))
    else:
        _show(found, _reported(found, observed, around))


def _check(name: str | None, file: Sequence[str], watch: str | None, now: str | None, picture: str | None) -> None:
    """Reject combinations of options before anything is read."""
    from ocf.errors import ConfigError

    if watch is not None and not watch:
        raise ConfigError("--watch of an autoscaler needs a DURATION, such as 5m")
    if not file and name is None:
        raise ConfigError("no autoscaler given: write its NAME in the cluster, or files with -f FILE")
    if file and watch is not None:
        raise ConfigError("--watch needs a cluster; in files, write the history as `history` of a Snapshot")
    if not file and now is not None:
        raise ConfigError("--now needs files; a cluster is always read now")
    if picture is not None:
        from ocf.cli.explain.picture import check

        check(Path(picture))


def _print_role(namespace: str | None, kubeconfig: str | None, context: str | None) -> None:
    from ocf.cli.autoscaler_clients import context_namespace
    from ocf.cli.explain.role import role
    from ocf.objects import dump_document

    click.echo(dump_document(role(namespace or context_namespace(kubeconfig, context))), nl=False)


def _name(words: Sequence[str]) -> str | None:
    """Return the name of the autoscaler: kubectl's `hpa NAME` and `hpa/NAME` name it as well."""
    from ocf.errors import ConfigError

    parts = [part for word in words for part in word.split("/")]
    if len(parts) > 1 and parts[0].lower() in _KINDS:
        parts = parts[1:]
    if len(parts) > 1 or not all(parts):
        what = "KIND/NAME for an owner, NAME or hpa/NAME for an autoscaler"
        raise ConfigError(f'invalid arguments "{" ".join(words)}": write {what}')
    return parts[0] if parts else None


def _settings(
    version: str | None, switches: Sequence[str], numbers: dict[str, str | None], periods: dict[str, str | None]
) -> Settings:
    from ocf.autoscaling import FeatureGates
    from ocf.autoscaling.algorithm import Settings
    from ocf.cli.validate.report import gates_of

    gates = gates_of(version, switches)
    features = FeatureGates.for_release(version) if version else FeatureGates()
    features = features._replace(scale_to_zero=gates.scale_to_zero, configurable_tolerance=gates.configurable_tolerance)
    options: dict[str, Any] = {name: _number(name, text) for name, text in numbers.items() if text is not None}
    options |= {name: period(name, text) for name, text in periods.items() if text is not None}
    return Settings(features=features, **options)


def _number(name: str, text: str) -> float:
    from ocf.errors import ConfigError

    try:
        return float(text)
    except ValueError:
        raise ConfigError(f"--{name.replace('_', '-')} must be a number like 0.1, got {text!r}") from None


def _of_files(  # noqa: PLR0917 (the options of the command line)
    files: Sequence[str],
    name: str | None,
    settings: Settings,
    now: str | None,
    version: str | None,
    switches: Sequence[str],
) -> tuple[Explanation, Surroundings | None]:
    from ocf.autoscaling import explain as explanations
    from ocf.cli.explain.from_files import read_input
    from ocf.cli.validate.report import gates_of

    inputs = read_input(files, name, gates=gates_of(version, switches), now=None if now is None else instant(now))
    for note in inputs.notes:
        echo(f"note: {note}", color="yellow", err=True)
    if inputs.own_settings is not None:
        from ocf.controllers.hpa.settings import override_settings

        settings = override_settings(settings, inputs.own_settings)
    if inputs.history is not None:
        found = explanations.explain(inputs.snapshot, inputs.history, settings=settings, now=inputs.now)
        return found, inputs.surroundings
    known = explanations.KnownHistory(
        inputs.snapshot.status, inputs.now, created=inputs.created, scaled_up=inputs.scaled_up
    )
    return explanations.explain_unknown(inputs.snapshot, known, settings=settings, now=inputs.now), inputs.surroundings


def _of_cluster(  # noqa: PLR0917 (the options of the command line)
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

    from ocf.autoscaling import explain as explanations
    from ocf.cli.explain.from_cluster import observe

    length = None if watch is None else period("watch", watch)
    found = asyncio.run(observe(name, namespace, kubeconfig, context, length, settings, own_kind=own_kind))
    explanation = explanations.explain_unknown(found.snapshot, found.known, settings=found.settings, now=found.now)
    return explanation, found


def _show_partly(observed: Observed, output: ExplainOutput) -> None:
    """Show what is known without the inputs of a sync, and fail."""
    from ocf.cli.explain.partial_page import partial_page
    from ocf.cli.explain.watch import InputsForbiddenError

    if output is ExplainOutput.TEXT:
        _show_sections(partial_page(observed))
    raise InputsForbiddenError(observed.snapshot, observed.forbidden)


def _to_json(found: Explanation, observed: Observed | None, around: Surroundings | None) -> dict[str, Any]:
    from ocf.autoscaling.explain import to_json
    from ocf.cli.explain.answers import answers

    return {
        **to_json(found),
        "observed": None if observed is None else observed.to_json(),
        "answers": None if around is None else {each.key: each.text for each in answers(found, around)},
    }


def _reported(found: Explanation, observed: Observed | None, around: Surroundings | None) -> list[Section]:
    """Return the sections after the result: the answers, and what the controller last reported."""
    from ocf.autoscaling.explain.text import Section
    from ocf.cli.explain.answers import answers_section

    sections = [] if around is None else [answers_section(found, around)]
    if observed is not None:
        sections.append(Section("What the controller last reported", tuple(observed.lines())))
    return sections


def _show(found: Explanation, seen: Sequence[Section]) -> None:
    from ocf.autoscaling.explain import render
    from ocf.autoscaling.explain.timeline import bounded_timelines, render_text

    first, *rest = render(found)
    width, unicode = terminal()
    _show_sections((first, *seen, *rest))
    for title, window in bounded_timelines(found):
        echo()
        echo(title, bold=True)
        for line in render_text(window, width=width - len(_INDENT), unicode=unicode):
            echo(f"{_INDENT}{line}")


def _show_sections(sections: Iterable[Section]) -> None:
    width, _ = terminal()
    for position, section in enumerate(sections):
        if position:
            echo()
        for part in wrapped(section.title, width, indent=""):
            echo(part, bold=True)
        for line in section.lines:
            for part in wrapped(line, width):
                echo(part)
