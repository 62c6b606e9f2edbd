"""`ocf tune`: the settings of an autoscaler that are best under given loads."""

from __future__ import annotations

from typing import Annotated

import typer

from ocf.cli.exit_status import FOUND, INTERRUPTED
from ocf.cli.options import Traceback
from ocf.cli.output import echo, exit_on_error
from ocf.cli.simulate import SimulateOutput

__all__ = ["tune"]


def tune(  # noqa: PLR0913 (each is an option of the command line)
    scenario: Annotated[
        list[str] | None, typer.Argument(metavar="SCENARIO...", help="Files of scenarios with the same HPA.")
    ] = None,
    *,
    search: Annotated[
        list[str] | None,
        typer.Option(
            metavar="FILE|SETTING",
            help="File of a search, or a field and its values, such as spec.minReplicas=2..8; repeatable.",
        ),
    ] = None,
    objective: Annotated[
        list[str] | None,
        typer.Option(metavar="MEASURE", help="Measure to minimize; MEASURE:max maximizes it; repeatable."),
    ] = None,
    require: Annotated[
        list[str] | None,
        typer.Option(metavar="EXPRESSION", help="Condition to meet, such as 'overload_time < 1%'; repeatable."),
    ] = None,
    across: Annotated[
        str | None, typer.Option(metavar="NAME", help="Objective over several scenarios: mean (default) or worst.")
    ] = None,
    sampler: Annotated[
        str, typer.Option(metavar="NAME", help="auto, grid, tpe, nsga2 or random; all but grid need the extra tune.")
    ] = "auto",
    trials: Annotated[
        int, typer.Option(min=1, metavar="NUMBER", help="Number of candidates; a grid has all of them.")
    ] = 200,
    batch: Annotated[
        int, typer.Option(min=1, metavar="NUMBER", help="Number of candidates that are chosen at once.")
    ] = 32,
    seed: Annotated[int, typer.Option(min=0, metavar="NUMBER", help="Seed of random choices.")] = 0,
    holdout: Annotated[
        str, typer.Option(metavar="SHARE", help="Share of the time at the end that the search does not see.")
    ] = "25%",
    jobs: Annotated[
        int | None, typer.Option(min=1, metavar="NUMBER", help="Number of processes; default: one per processor.")
    ] = None,
    dask: Annotated[
        str | None, typer.Option(metavar="ADDRESS", help="Run on this Dask cluster; needs the extra dask.")
    ] = None,
    state: Annotated[
        str | None, typer.Option(metavar="FILE", help="Keep evaluations here, and go on with those that it has.")
    ] = None,
    write: Annotated[str | None, typer.Option(metavar="FILE", help="Write the manifest of the winner.")] = None,
    output: Annotated[SimulateOutput, typer.Option(help="text for people, json for programs.")] = SimulateOutput.TEXT,
    report: Annotated[str, typer.Option(metavar="FILE", help="Write the page with the front here.")] = "tuning.html",
    no_report: Annotated[bool, typer.Option("--no-report", help="Write no page.")] = False,
    schema: Annotated[bool, typer.Option("--schema", help="Print the JSON schema of a search, for editors.")] = False,
    traceback: Traceback = False,
) -> None:
    """Search for the settings of a HorizontalPodAutoscaler that are best under given loads, without a cluster.

    Example:
        ocf tune scenario.yaml --search spec.minReplicas=2..4 --sampler grid
    """
    with exit_on_error(traceback=traceback):
        from ocf.cli.tune_run import Request, print_schema, run

        if schema:
            print_schema()
            return
        request = Request(
            files=tuple(scenario or ()),
            search=tuple(search or ()),
            objectives=tuple(objective or ()),
            require=tuple(require or ()),
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
            raise typer.Exit(INTERRUPTED) from None
        if not found:
            raise typer.Exit(FOUND)
