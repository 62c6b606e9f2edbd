"""`ocf validate`: validation of autoscalers in files, with the messages of the API server."""

from __future__ import annotations

from typing import Annotated

import typer

from ocf.cli.options import FeatureGateFlags, Files, KubernetesVersion, Traceback
from ocf.cli.output import exit_on_error
from ocf.cli.validation_output import ReportFormat
from ocf.cli.validation_run import FailOn, LowestSeverity, Request, run

__all__ = ["validate"]


def validate(  # noqa: PLR0913 (the options of the command)
    files: Files,
    *,
    lint: Annotated[
        bool, typer.Option("--lint", help="Also report settings that the server accepts and that cause problems.")
    ] = False,
    severity: Annotated[
        LowestSeverity, typer.Option(help="With --lint: lowest severity that is reported.")
    ] = LowestSeverity.WARNING,
    disable: Annotated[
        list[str] | None, typer.Option(metavar="CODE", help="With --lint: do not report this code; repeatable.")
    ] = None,
    fail_on: Annotated[
        FailOn, typer.Option(help="Lowest severity for which the exit status is 1; the server's errors always count.")
    ] = FailOn.ERROR,
    update_from: Annotated[
        list[str] | None, typer.Option(metavar="FILE", help="Stored objects: validate as an update of these.")
    ] = None,
    kubernetes_version: KubernetesVersion = None,
    feature_gate: FeatureGateFlags = None,
    output: Annotated[
        ReportFormat, typer.Option(help="Output format; github prints annotations for a workflow.")
    ] = ReportFormat.TEXT,
    traceback: Traceback = False,
) -> None:
    """Validate HorizontalPodAutoscalers like the API server, without a server.

    Objects of other kinds, templates and other YAML are passed over; a summary counts them. A file that cannot be read
    does not prevent the validation of the others.

    Example:
        ocf validate --lint web.yaml
    """
    with exit_on_error(traceback=traceback):
        request = Request(
            files=files,
            lint=lint,
            severity=severity,
            disable=disable or (),
            fail_on=fail_on,
            update_from=update_from or (),
            kubernetes_version=kubernetes_version,
            feature_gate=feature_gate or (),
            output=output,
        )
        raise typer.Exit(run(request))
