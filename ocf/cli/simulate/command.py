"""`ocf simulate`: what an autoscaler would do under a given load, before it is applied."""

from __future__ import annotations

from enum import StrEnum

import click
from click.exceptions import Exit

from ocf.cli.command import Command, OneOf
from ocf.cli.exit_status import FOUND, INTERRUPTED
from ocf.cli.options import context_option, kubeconfig_option, traceback_option

__all__ = ["SimulateOutput", "simulate"]


class SimulateOutput(StrEnum):
    """Output formats of a simulation."""

    TEXT = "text"
    JSON = "json"


@click.command(cls=Command)
@click.argument(
    "scenario",
    nargs=-1,
    metavar="SCENARIO...",
    help="File of the scenario; several with --compare; manifests with --init.",
)
@click.option("--compare", is_flag=True, help="Compare several scenarios, of which the first is the baseline.")
@click.option(
    "--fail-if",
    multiple=True,
    metavar="EXPRESSION",
    help="Exit with status 1 if it holds, such as 'overload_time > 2%'; repeatable.",
)
@click.option(
    "--output", type=OneOf(SimulateOutput), default=SimulateOutput.TEXT, help="text for people, json for programs."
)
@click.option("--report", default="report.html", metavar="FILE", help="Write the page with the charts here.")
@click.option("--no-report", is_flag=True, help="Write no page.")
@click.option("--csv", metavar="FILE", help="Write the time series as CSV.")
@click.option("--parquet", metavar="FILE", help="Write the time series as Parquet; needs the extra parquet.")
@click.option(
    "--init",
    is_flag=True,
    help="Print a scenario for the HPA or ScaledObject in the manifests, or for the HPA --name in a cluster.",
)
@click.option("--name", metavar="NAME", help="With --init: name of the HPA.")
@click.option("--namespace", "-n", metavar="NAME", help="With --init: namespace of the HPA.")
@kubeconfig_option
@context_option
@click.option("--schema", is_flag=True, help="Print the JSON schema of a scenario, for editors.")
@traceback_option
def simulate(  # noqa: PLR0913 (each is an option of the command line)
    scenario: tuple[str, ...],
    *,
    compare: bool,
    fail_if: tuple[str, ...],
    output: SimulateOutput,
    report: str,
    no_report: bool,
    csv: str | None,
    parquet: str | None,
    init: bool,
    name: str | None,
    namespace: str | None,
    kubeconfig: str | None,
    context: str | None,
    schema: bool,
) -> None:
    """Simulate a HorizontalPodAutoscaler under a load, with the exact algorithm of the controller, without a cluster.

    Example:
        ocf simulate scenario.yaml --fail-if 'overload_time > 2%'
    """
    from ocf.cli.simulate.run import SimulateRequest, print_schema, run

    if schema:
        print_schema()
        return
    if init:
        from ocf.cli.simulate.init import print_scenario

        print_scenario(scenario, name=name, namespace=namespace, kubeconfig=kubeconfig, context=context)
        return
    request = SimulateRequest(
        files=scenario,
        compare=compare,
        fail_if=fail_if,
        as_json=output is SimulateOutput.JSON,
        report=None if no_report else report,
        csv=csv,
        parquet=parquet,
    )
    try:
        passed = run(request)
    except KeyboardInterrupt:
        click.echo("interrupted: files that are not written yet are left as they were", err=True)
        raise Exit(INTERRUPTED) from None
    if not passed:
        raise Exit(FOUND)
