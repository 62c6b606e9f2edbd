"""`ocf simulate`: what an autoscaler would do under a given load, before it is applied."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from ocf.cli.exit_status import FOUND, INTERRUPTED
from ocf.cli.options import Context, Kubeconfig, Traceback
from ocf.cli.output import exit_on_error

__all__ = ["SimulateOutput", "simulate"]


class SimulateOutput(StrEnum):
    """Output formats of a simulation."""

    TEXT = "text"
    JSON = "json"


def simulate(  # noqa: PLR0913 (each is an option of the command line)
    scenario: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="SCENARIO...", help="File of the scenario; several with --compare; manifests with --init."
        ),
    ] = None,
    *,
    compare: Annotated[
        bool, typer.Option("--compare", help="Compare several scenarios, of which the first is the baseline.")
    ] = False,
    fail_if: Annotated[
        list[str] | None,
        typer.Option(
            metavar="EXPRESSION", help="Exit with status 1 if it holds, such as 'overload_time > 2%'; repeatable."
        ),
    ] = None,
    output: Annotated[SimulateOutput, typer.Option(help="text for people, json for programs.")] = SimulateOutput.TEXT,
    report: Annotated[str, typer.Option(metavar="FILE", help="Write the page with the charts here.")] = "report.html",
    no_report: Annotated[bool, typer.Option("--no-report", help="Write no page.")] = False,
    csv: Annotated[str | None, typer.Option(metavar="FILE", help="Write the time series as CSV.")] = None,
    parquet: Annotated[
        str | None, typer.Option(metavar="FILE", help="Write the time series as Parquet; needs the extra parquet.")
    ] = None,
    init: Annotated[
        bool, typer.Option("--init", help="Print a scenario for the HPA in the manifests, or for --name in a cluster.")
    ] = False,
    name: Annotated[str | None, typer.Option("--name", metavar="NAME", help="With --init: name of the HPA.")] = None,
    namespace: Annotated[
        str | None, typer.Option("--namespace", "-n", metavar="NAME", help="With --init: namespace of the HPA.")
    ] = None,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
    schema: Annotated[bool, typer.Option("--schema", help="Print the JSON schema of a scenario, for editors.")] = False,
    traceback: Traceback = False,
) -> None:
    """Simulate a HorizontalPodAutoscaler under a load, with the exact algorithm of the controller, without a cluster.

    Example:
        ocf simulate scenario.yaml --fail-if 'overload_time > 2%'
    """
    with exit_on_error(traceback=traceback):
        from ocf.cli.simulate_run import Request, print_schema, run

        files = scenario or []
        if schema:
            print_schema()
            return
        if init:
            from ocf.cli.simulate_init import print_scenario

            print_scenario(files, name=name, namespace=namespace, kubeconfig=kubeconfig, context=context)
            return
        request = Request(
            files=tuple(files),
            compare=compare,
            fail_if=tuple(fail_if or ()),
            as_json=output is SimulateOutput.JSON,
            report=None if no_report else report,
            csv=csv,
            parquet=parquet,
        )
        try:
            passed = run(request)
        except KeyboardInterrupt:
            typer.echo("interrupted: files that are not written yet are left as they were", err=True)
            raise typer.Exit(INTERRUPTED) from None
        if not passed:
            raise typer.Exit(FOUND)
