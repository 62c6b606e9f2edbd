"""`ocf new`: write a project."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from ocf.cli.options import Traceback
from ocf.cli.output import exit_on_error
from ocf.errors import ConfigError

if TYPE_CHECKING:
    from ocf.scaffold import OperatorProject

__all__ = ["new"]

_SHOWN: Final = 5
_NOTE: Final = (
    "Versions with which this project was made, from the environment of `ocf new`: hashes and other platforms are",
    "not known without an index. `make lock` resolves them anew, with hashes.",
)


class ProjectType(StrEnum):
    """Types of projects."""

    OPERATOR = "operator"


def new(  # noqa: PLR0913 (each is an option of the command line)
    what: Annotated[ProjectType, typer.Argument(help="What to write: a project of an operator.")],  # noqa: ARG001
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
        typer.echo(f"wrote {written} files into {folder}; next:")
        typer.echo(f"  cd {folder}")
        typer.echo("  python -m pytest   # with ocf[testing]")
        sample = f"samples/{project.owner_kind.lower()}.yaml"
        typer.echo(f"  ocf dev {project.package} --controllers all --apply {sample}")


def _write(project: OperatorProject, folder: Path) -> int:
    """Write the project beside its folder first, so that an error leaves nothing half-written."""
    texts = _texts(project)
    _reject_existing(folder, texts)
    place = folder if folder.exists() else folder.absolute().parent
    try:
        place.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".ocf-new-", dir=place) as scratch:
            made = Path(scratch, "project")
            for path, text in texts.items():
                (made / path).parent.mkdir(parents=True, exist_ok=True)
                (made / path).write_text(text, encoding="utf-8")
            _generate(project, made)
            paths = sorted(path.relative_to(made) for path in made.rglob("*") if path.is_file())
            _reject_existing(folder, dict.fromkeys(map(str, paths), ""))
            if not folder.exists():
                made.rename(folder)
            else:
                _move(made, folder, paths)
    except OSError as error:
        raise ConfigError(f"{folder} cannot be written: {error.strerror or error}") from error
    return len(paths)


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
    program = "from ocf.cli.new_generated import main; main()"
    command = [sys.executable, "-c", program, project.package, *project.manifest_options]
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1", "PYTHONSAFEPATH": "1"}
    done = subprocess.run(  # noqa: S603 (ourselves)
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise ConfigError(f"the project cannot be generated: {(done.stderr or done.stdout).strip()}")


def _reject_existing(folder: Path, texts: Mapping[str, str]) -> None:
    existing = sorted(path for path in texts if (folder / path).exists() or (folder / path).is_symlink())
    if folder.exists() and not folder.is_dir():
        raise ConfigError(f"{folder} is not a folder")
    if existing:
        more = len(existing) - _SHOWN
        names = ", ".join(existing[:_SHOWN]) + (f" and {more} more" if more > 0 else "")
        raise ConfigError(f"{folder} has these files already, and none is overwritten: {names}; use another folder")


def _move(made: Path, folder: Path, paths: list[Path]) -> None:
    """Move files into an existing folder; an error removes those that were moved."""
    moved: list[Path] = []
    try:
        for path in paths:
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            os.link(made / path, folder / path)  # fails if another process has created the file meanwhile
            moved.append(folder / path)
    except BaseException:
        for path in moved:
            path.unlink(missing_ok=True)
        raise
