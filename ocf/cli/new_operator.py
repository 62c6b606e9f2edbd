"""`ocf new operator`: write a project."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from ocf.cli.new_files import NewFiles, run_python, write_files
from ocf.cli.options import Traceback
from ocf.cli.output import echo, exit_on_error

if TYPE_CHECKING:
    from ocf.scaffold import OperatorProject

__all__ = ["new_operator"]

_NOTE: Final = (
    "Versions with which this project was made, from the environment of `ocf new`: hashes and other platforms are",
    "not known without an index. `make lock` resolves them anew, with hashes.",
)


def new_operator(  # noqa: PLR0913 (each is an option of the command line)
    name: Annotated[str, typer.Argument(metavar="NAME", help="Name of the operator, such as shop-operator.")],
    *,
    kind: Annotated[
        str, typer.Option("--kind", metavar="KIND", help="Kind of the resource; default: from the name.")
    ] = "",
    group: Annotated[str, typer.Option("--group", metavar="GROUP", help="API group of the resource.")] = "example.com",
    version: Annotated[
        str, typer.Option("--version", metavar="VERSION", help="API version of the resource.")
    ] = "v1alpha1",
    cluster_scoped: Annotated[
        bool, typer.Option("--cluster-scoped", help="The resource has no namespace; its objects have one.")
    ] = False,
    webhooks: Annotated[
        bool, typer.Option("--webhooks", help="Default and validate the resource in webhooks.")
    ] = False,
    kopf: Annotated[bool, typer.Option("--kopf", help="Run the operator in a kopf process.")] = False,
    leader_election: Annotated[
        bool, typer.Option("--leader-election/--no-leader-election", help="Run two processes, of which one works.")
    ] = True,
    autoscaling: Annotated[
        bool, typer.Option("--autoscaling", help="Add a HorizontalPodAutoscaler to the resource.")
    ] = False,
    directory: Annotated[
        Path | None, typer.Option("--directory", "-d", metavar="DIR", help="Folder of the project; default: NAME.")
    ] = None,
    traceback: Traceback = False,
) -> None:
    """Write the project of a new operator: code, tests, manifests, image, CI.

    Its tests, types and style pass as it is written, and `ocf dev` runs it. No file is overwritten.

    Example:
        ocf new operator shop-operator --kind Shop --group example.com
    """
    with exit_on_error(traceback=traceback):
        from importlib.metadata import packages_distributions

        from ocf.scaffold import OperatorProject

        project = OperatorProject(
            name=name,
            kind=kind,
            group=group,
            version=version,
            cluster_scoped=cluster_scoped,
            webhooks=webhooks,
            kopf=kopf,
            leader_election=leader_election,
            autoscaling=autoscaling,
            taken=frozenset(packages_distributions()),
        )
        folder = directory or Path(name)
        written = _write(project, folder)
        echo(f"wrote {written} files into {folder}; next:")
        echo(f"  cd {folder}")
        typer.echo("  python -m pytest   # with ocf[testing]")
        sample = f"samples/{project.owner_kind.lower()}.yaml"
        echo(f"  ocf dev {project.package} --controllers all --apply {sample}")


def _write(project: OperatorProject, folder: Path) -> int:
    texts = NewFiles(_texts(project))
    return write_files(folder, texts, lambda made: _generate(project, made))


def _texts(project: OperatorProject) -> dict[str, str]:
    from importlib.metadata import version

    from ocf.scaffold import closure, lock_file, render_operator

    extras = [extra for extra, wanted in (("admission", project.webhooks), ("kopf", project.kopf)) if wanted]
    ocf = f"ocf[{','.join(extras)}]" if extras else "ocf"
    locks = {
        "requirements/operator.lock": lock_file(closure([ocf]), _NOTE),
        "requirements/dev.lock": lock_file(closure([ocf, "ocf[testing]", "mypy", "ruff"]), _NOTE),
    }
    return render_operator(project, requirement=f"{ocf}>={version('ocf')}", locks=locks)


def _generate(project: OperatorProject, folder: Path) -> None:
    """Write what follows from the project's code: manifests, chart and goldens, in a process of its own."""
    program = "from ocf.cli.new_operator_generated import main; main()"
    run_python(program, [project.package, *project.manifest_options], folder)
