"""`ocf validate`: validation of autoscalers in files, with the messages of the API server."""

from __future__ import annotations

import click
from click.exceptions import Exit

from ocf.cli.command import Command, OneOf
from ocf.cli.options import feature_gate_option, files_argument, kubernetes_version_option, traceback_option
from ocf.cli.validation_output import ReportFormat
from ocf.cli.validation_run import FailOn, LowestSeverity, Request, run

__all__ = ["validate"]


@click.command(cls=Command)
@files_argument
@click.option("--lint", is_flag=True, help="Also report settings that the server accepts and that cause problems.")
@click.option(
    "--severity",
    type=OneOf(LowestSeverity),
    default=LowestSeverity.WARNING,
    help="With --lint: lowest severity that is reported.",
)
@click.option("--disable", multiple=True, metavar="CODE", help="With --lint: do not report this code; repeatable.")
@click.option(
    "--fail-on",
    type=OneOf(FailOn),
    default=FailOn.ERROR,
    help="Lowest severity for which the exit status is 1; the server's errors always count.",
)
@click.option("--update-from", multiple=True, metavar="FILE", help="Stored objects: validate as an update of these.")
@kubernetes_version_option
@feature_gate_option
@click.option(
    "--output",
    type=OneOf(ReportFormat),
    default=ReportFormat.TEXT,
    help="Output format; github prints annotations for a workflow.",
)
@traceback_option
def validate(  # noqa: PLR0913 (each is an option of the command line)
    files: tuple[str, ...],
    *,
    lint: bool,
    severity: LowestSeverity,
    disable: tuple[str, ...],
    fail_on: FailOn,
    update_from: tuple[str, ...],
    kubernetes_version: str | None,
    feature_gate: tuple[str, ...],
    output: ReportFormat,
) -> None:
    """Validate HorizontalPodAutoscalers like the API server, without a server.

    Objects of other kinds, templates and other YAML are passed over; a summary counts them. A file that cannot be read
    does not prevent the validation of the others.

    Example:
        ocf validate --lint web.yaml
    """
    request = Request(
        files=files,
        lint=lint,
        severity=severity,
        disable=disable,
        fail_on=fail_on,
        update_from=update_from,
        kubernetes_version=kubernetes_version,
        feature_gate=feature_gate,
        output=output,
    )
    raise Exit(run(request))
