"""`ocf new operator`: write a project."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from ocf.cli.command import Command
from ocf.cli.new.files import NewFiles, run_python, write_files
from ocf.cli.options import traceback_option
from ocf.cli.output import echo

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ocf.scaffold import OperatorProject

__all__ = ["new_operator", "write_generated"]

_NOTE: Final = (
    "Versions with which this project was made, from the environment of `ocf new`: hashes and other platforms are",
    "not known without an index. `make lock` resolves them anew, with hashes.",
)


@click.command(cls=Command)
@click.argument("name", metavar="NAME", help="Name of the operator, such as shop-operator.")
@click.option("--kind", default="", metavar="KIND", help="Kind of the resource; default: from the name.")
@click.option("--group", default="example.com", metavar="GROUP", help="API group of the resource.")
@click.option("--version", default="v1alpha1", metavar="VERSION", help="API version of the resource.")
@click.option("--cluster-scoped", is_flag=True, help="The resource has no namespace; its objects have one.")
@click.option("--webhooks", is_flag=True, help="Default and validate the resource in webhooks.")
@click.option("--kopf", is_flag=True, help="Run the operator in a kopf process.")
@click.option("--leader-election/--no-leader-election", default=True, help="Run two processes, of which one works.")
@click.option("--autoscaling", is_flag=True, help="Add a HorizontalPodAutoscaler to the resource.")
@click.option("--directory", "-d", type=Path, metavar="DIR", help="Folder of the project; default: NAME.")
@traceback_option
def new_operator(  # noqa: PLR0913 (each is an option of the command line)
    name: str,
    *,
    kind: str,
    group: str,
    version: str,
    cluster_scoped: bool,
    webhooks: bool,
    kopf: bool,
    leader_election: bool,
    autoscaling: bool,
    directory: Path | None,
) -> None:
    """Write the project of a new operator: code, tests, manifests, image, CI.

    Its tests, types and style pass as it is written, and `ocf dev` runs it. No file is overwritten.

    Example:
        ocf new operator shop-operator --kind Shop --group example.com
    """
    from importlib.metadata import packages_distributions

    from ocf.scaffold import OperatorProject

    _check_packages({"--kopf": "kopf" if kopf else "", "--webhooks": "admission" if webhooks else ""})
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
    if (source := _editable_source()) is not None:
        echo(f"  pip wheel --no-deps --wheel-dir wheels {source}   # ocf is editable, and no index has it")
    click.echo("  pip install --find-links wheels --requirement requirements/dev.lock")
    click.echo("  make check")
    sample = f"samples/{project.owner_kind.lower()}.yaml"
    echo(f"  ocf dev {project.package} --reload --controllers all --apply {sample}")


def _check_packages(extras: Mapping[str, str]) -> None:
    """Reject an option whose extra is not installed: the project could not run, and its lock files would lack it.

    Args:
        extras: Option to its extra; empty for one that is not given.

    Raises:
        ConfigError: If packages of an extra are missing.
    """
    from ocf.errors import ConfigError
    from ocf.scaffold.locked_versions import missing

    for option, extra in extras.items():
        if extra and (names := missing([f"ocf[{extra}]"])):
            raise ConfigError(f"{option} needs {', '.join(names)}: install it with pip install 'ocf[{extra}]'")


def _editable_source() -> Path | None:
    """Return the checkout of an editable `ocf`, whose wheel has to be built for the project."""
    from importlib.metadata import distribution

    from ocf.scaffold.installed_wheel import source_folder

    return source_folder(distribution("ocf"))


def _write(project: OperatorProject, folder: Path) -> int:
    texts = NewFiles(_texts(project))
    return write_files(folder, texts, lambda made: _generate(project, made))


def _texts(project: OperatorProject) -> dict[str, str]:
    from importlib.metadata import version

    from ocf.scaffold import render_operator
    from ocf.scaffold.locked_versions import closure, lock_file

    extras = [extra for extra, wanted in (("admission", project.webhooks), ("kopf", project.kopf)) if wanted]
    ocf = f"ocf[{','.join(extras)}]" if extras else "ocf"
    locks = {
        "requirements/operator.lock": lock_file(closure([ocf]), _NOTE),
        "requirements/dev.lock": lock_file(closure([ocf, "ocf[testing]", "mypy", "ruff"]), _NOTE),
    }
    return render_operator(project, requirement=f"{ocf}>={version('ocf')}", locks=locks)


def _generate(project: OperatorProject, folder: Path) -> None:
    """Write the wheel of `ocf`, and what follows from the project's code, in a process of its own."""
    from importlib.metadata import distribution

    from ocf.scaffold.installed_wheel import write_wheel

    write_wheel(distribution("ocf"), folder / "wheels")
    program = "from ocf.cli.new.operator import write_generated; write_generated()"
    run_python(program, [project.package, *project.manifest_options], folder)


def write_generated() -> None:
    """Write the files of a new project that follow from its code: manifests, chart and goldens.

    Run in the project's folder; the arguments of the process are the package and the options of `ocf manifests`.
    """
    from ocf.cli.app import app
    from ocf.cli.component_loader import import_by_name

    package, *options = sys.argv[1:]
    for layout in (["--directory=deploy"], ["--directory=deploy/chart", "--format=helm"]):
        app(["manifests", package, *options, *layout], standalone_mode=False)
    for case in import_by_name("tests.matrix").MATRIX.cases():
        case.check(update=True)
