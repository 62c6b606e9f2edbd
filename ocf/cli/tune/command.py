"""`ocf tune`: the settings of an autoscaler that are best under given loads."""

from __future__ import annotations

import click
from click.exceptions import Exit

from ocf.cli.command import Command, Number, OneOf
from ocf.cli.exit_status import FOUND, INTERRUPTED
from ocf.cli.options import traceback_option
from ocf.cli.output import echo
from ocf.cli.simulate.command import SimulateOutput

__all__ = ["tune"]


@click.command(cls=Command)
@click.argument("scenario", nargs=-1, metavar="SCENARIO...", help="Files of scenarios with the same HPA.")
@click.option(
    "--search",
    multiple=True,
    metavar="FILE|SETTING",
    help="File of a search, or a field and its values, such as spec.minReplicas=2..8; repeatable.",
)
@click.option(
    "--objective", multiple=True, metavar="MEASURE", help="Measure to minimize; MEASURE:max maximizes it; repeatable."
)
@click.option(
    "--require",
    multiple=True,
    metavar="EXPRESSION",
    help="Condition to meet, such as 'overload_time < 1%'; repeatable.",
)
@click.option("--across", metavar="NAME", help="Objective over several scenarios: mean (default) or worst.")
@click.option(
    "--sampler",
    default="auto",
    metavar="NAME",
    help="auto, grid, tpe, nsga2 or random; all but grid need the extra tune.",
)
@click.option(
    "--trials", type=Number(1), default=200, metavar="NUMBER", help="Number of candidates; a grid has all of them."
)
@click.option(
    "--batch", type=Number(1), default=32, metavar="NUMBER", help="Number of candidates that are chosen at once."
)
@click.option("--seed", type=Number(0), default=0, metavar="NUMBER", help="Seed of random choices.")
@click.option(
    "--holdout", default="25%", metavar="SHARE", help="Share of the time at the end that the search does not see."
)
@click.option("--jobs", type=Number(1), metavar="NUMBER", help="Number of processes; default: one per processor.")
@click.option("--dask", metavar="ADDRESS", help="Run on this Dask cluster; needs the extra dask.")
@click.option("--state", metavar="FILE", help="Keep evaluations here, and go on with those that it has.")
@click.option("--write", metavar="FILE", help="Write the manifest of the winner.")
@click.option(
    "--output", type=OneOf(SimulateOutput), default=SimulateOutput.TEXT, help="text for people, json for programs."
)
@click.option("--report", default="tuning.html", metavar="FILE", help="Write the page with the front here.")
@click.option("--no-report", is_flag=True, help="Write no page.")
@click.option("--schema", is_flag=True, help="Print the JSON schema of a search, for editors.")
@traceback_option
def tune(  # noqa: PLR0913 (each is an option of the command line)
    scenario: tuple[str, ...],
    *,
    search: tuple[str, ...],
    objective: tuple[str, ...],
    require: tuple[str, ...],
    across: str | None,
    sampler: str,
    trials: int,
    batch: int,
    seed: int,
    holdout: str,
    jobs: int | None,
    dask: str | None,
    state: str | None,
    write: str | None,
    output: SimulateOutput,
    report: str,
    no_report: bool,
    schema: bool,
) -> None:
    """Search for the settings of a HorizontalPodAutoscaler that are best under given loads, without a cluster.

    Example:
        ocf tune scenario.yaml --search spec.minReplicas=2..4 --sampler grid
    """
    from ocf.cli.tune.run import TuneRequest, print_schema, run

    if schema:
        print_schema()
        return
    request = TuneRequest(
        files=scenario,
        search=search,
        objectives=objective,
        require=require,
        across=across,
        sampler=sampler,
        trials=trials,
        batch=batch,
        seed=seed,
        holdout=holdout,
        jobs=jobs,
        dask=dask,
        state=state,
        write=write,
        as_json=output is SimulateOutput.JSON,
        report=None if no_report else report,
    )
    try:
        found = run(request)
    except KeyboardInterrupt:
        kept = f": run the same command to go on with the evaluations in {state}" if state else ""
        echo(f"interrupted{kept}", err=True)
        raise Exit(INTERRUPTED) from None
    if not found:
        raise Exit(FOUND)
