"""`ocf manifests`: write the manifests that install an operator, or check that a folder is current."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click
from click.exceptions import Exit

from ocf.cli.command import Command, Number, OneOf
from ocf.cli.exit_status import FOUND
from ocf.cli.options import traceback_option
from ocf.cli.output import echo
from ocf.cli.output_files import write_file
from ocf.errors import ConfigError
from ocf.manifests import Format

if TYPE_CHECKING:
    from ocf.component import Component
    from ocf.manifests import InstallOptions
    from ocf.manifests.install_options import Project
    from ocf.manifests.rendering import Rendering
    from ocf.objects import Manifest
    from ocf.runtime.operator import Operator

__all__ = ["manifests"]

_PROJECT: Final = "pyproject.toml"
_OPTION: Final = "--directory"


@click.command(cls=Command)
@click.argument(
    "target",
    metavar="MODULE[:NAME]",
    help="The operator: shop.operator, shop/operator.py or shop, optionally with its name.",
)
@click.option(
    "--directory", "-d", type=Path, required=True, metavar="DIR", help="Folder of the files; created if missing."
)
@click.option(
    "layout",
    "--format",
    type=OneOf(Format),
    default=Format.KUSTOMIZE,
    help="A kustomization, a Helm chart, or a bundle for OLM.",
)
@click.option("--check", is_flag=True, help="Write nothing; exit with status 1 if a file is not current.")
@click.option(
    "--owner",
    multiple=True,
    metavar="FILE",
    help="Sample owners: the privileges follow from their components; a file or a folder.",
)
@click.option(
    "--components",
    metavar="MODULE:FUNCTION",
    help="Function without parameters that returns components in every state.",
)
@click.option("--namespace", default="", metavar="NAME", help="Namespace of the operator; default: its name.")
@click.option(
    "--image", default="", metavar="IMAGE", help="Image; default: the operator's name and the project's version."
)
@click.option("--replicas", type=Number(1), default=1, metavar="COUNT", help="Number of processes; one reconciles.")
@click.option("--leader-election/--no-leader-election", default=True, help="Elect a leader among the processes.")
@click.option("--watch-namespace", multiple=True, metavar="NAME", help="Namespace to watch; repeatable; default: all.")
@click.option("--kopf", is_flag=True, help="Also grant what kopf requires, for a kopf process.")
@click.option(
    "--owner-references-enforced",
    is_flag=True,
    help="Also grant what the plugin OwnerReferencesPermissionEnforcement requires, as on OpenShift.",
)
@traceback_option
def manifests(  # noqa: PLR0913 (each is an option of the command line)
    target: str,
    *,
    directory: Path,
    layout: Format,
    check: bool,
    owner: tuple[str, ...],
    components: str | None,
    namespace: str,
    image: str,
    replicas: int,
    leader_election: bool,
    watch_namespace: tuple[str, ...],
    kopf: bool,
    owner_references_enforced: bool,
) -> None:
    """Write the manifests that install an operator into a folder.

    CustomResourceDefinition, roles, Deployment, webhooks, network policy, and for Prometheus and Grafana a service
    monitor, alerts and a dashboard. Version, description, authors and links come from the table `project` of the
    pyproject.toml of the working directory, if there is one.

    Example:
        ocf manifests shop.operator --directory deploy --owner shop.yaml
    """
    from ocf.manifests import InstallOptions

    options = InstallOptions(
        namespace=namespace,
        image=image,
        replicas=replicas,
        leader_election=leader_election,
        watch_namespaces=watch_namespace,
        kopf=kopf,
        owner_references_enforced=owner_references_enforced,
        project=_project(Path(_PROJECT)),
    )
    rendering = _render(target, layout, options, owner, components)
    if check:
        _check(directory, rendering)
    else:
        _write(directory, rendering)


def _project(path: Path) -> Project:
    import tomllib

    from ocf.manifests.install_options import Project

    try:
        table = tomllib.loads(path.read_text(encoding="utf-8")).get("project", {})
    except FileNotFoundError:
        return Project()
    except (OSError, ValueError) as error:
        raise ConfigError(f"{path} cannot be read: {error}") from error
    return Project.of_pyproject(table)


def _render(
    target: str, layout: Format, options: InstallOptions, owners: Sequence[str], function: str | None
) -> Rendering:
    from ocf.cli.operator_loader import load_operator
    from ocf.manifests import Installation, render

    operator = load_operator(target)
    samples = _samples(owners, operator)
    states = _called(function) if function else _components(operator, samples)
    return render(Installation(operator, states, options, samples), layout)


def _samples(paths: Sequence[str], operator: Operator[Any]) -> list[Manifest]:
    """Return the owners of files, or one with nothing but its name."""
    from ocf.cli.manifest_files import read_documents
    from ocf.schema.rest_mapping import rest_mapping

    api_version, kind = operator.owner_kind
    found = []
    for document in read_documents(paths):
        if document.manifest is None:
            raise ConfigError(f"{document.file}: {document.problem}")
        if (document.manifest.get("apiVersion"), document.manifest.get("kind")) == operator.owner_kind:
            found.append(document.manifest)
    if paths and not found:
        raise ConfigError(f"--owner: {', '.join(paths)} contains no {kind} of {api_version}")
    found = found or [{"apiVersion": api_version, "kind": kind, "metadata": {"name": "example"}}]
    is_namespaced = rest_mapping(api_version, kind, operator.all_definitions).namespaced
    place = {"namespace": "default"} if is_namespaced else {}
    return [{**owner, "metadata": {**place, **owner["metadata"]}} for owner in found]


def _components(operator: Operator[Any], owners: Sequence[Manifest]) -> list[Component]:
    from ocf.cli.operator_loader import operator_components, require_no_context

    require_no_context(operator, "give a function that returns them in every state, --components MODULE:FUNCTION")

    async def call(owner: Manifest) -> Sequence[Component]:
        return await operator_components(operator, owner, way_out="give complete sample owners: --owner FILE")

    return [component for owner in owners for component in asyncio.run(call(owner))]


def _called(target: str) -> list[Component]:
    """Return the components that a function of the operator's code returns."""
    from ocf.cli.component_loader import find_attribute, import_by_name, one_line, source_location
    from ocf.component import Component

    module, colon, name = target.partition(":")
    if not module or not colon or not name:
        raise ConfigError(f'--components: invalid function "{target}": write MODULE:FUNCTION')
    try:
        found = find_attribute(target, import_by_name(module), name)()
        several = [found] if isinstance(found, Component) else list(found)
    except ConfigError:
        raise
    except Exception as error:
        raise ConfigError(f"{target} failed: {one_line(error)}{source_location(error)}") from error
    for each in several:
        if not isinstance(each, Component):
            raise ConfigError(f"{target} must return components, got an object of type {type(each).__name__}")
    return several


def _check(directory: Path, rendering: Rendering) -> None:
    from ocf.manifests import differences

    found = differences(rendering.generated, _read(directory, rendering))
    for each in found:
        for line in str(each).split("\n"):
            echo(line)
    if found:
        echo(f"{directory} is not current: {len(found)} of {len(rendering.generated)} files differ")
        raise Exit(FOUND)
    echo(f"{directory} is current: {len(rendering.generated)} files")


def _write(directory: Path, rendering: Rendering) -> None:
    """Write the files; refuse to replace a file that the user wrote, before anything is written."""
    from ocf.manifests import differences
    from ocf.manifests.folder import NOTE, is_generated

    existing = _read(directory, rendering)
    foreign = [path for path in rendering.generated if path in existing and not is_generated(existing[path])]
    if foreign:
        raise ConfigError(
            f"{directory} has files of its own where manifests would be written: {', '.join(foreign)}; "
            f'move them, choose another folder, or add "{NOTE}" to their first line to have them replaced'
        )
    changed = differences(rendering.generated, existing)
    created = {path: text for path, text in rendering.initial.items() if not (directory / path).exists()}
    for each in changed:
        if each.path in rendering.generated:
            _write_text(directory / each.path, rendering.generated[each.path])
        else:
            (directory / each.path).unlink()
        echo(f"{'wrote' if each.path in rendering.generated else 'removed'} {directory / each.path}")
    for path, text in created.items():
        _write_text(directory / path, text)
        echo(f"wrote {directory / path}, which is yours from now on")
    if not changed and not created:
        echo(f"{directory} is current: {len(rendering.generated)} files")


def _write_text(path: Path, text: str) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigError(f"{_OPTION}: {path.parent} cannot be created: {error.strerror or error}") from error
    write_file(path, [text], _OPTION)


def _read(directory: Path, rendering: Rendering) -> dict[str, str]:
    """Read the files that would be written, and those in the same folders."""
    folders = {(directory / path).parent for path in rendering.generated}
    wanted = {directory / path for path in rendering.generated}
    files = {file for folder in folders if folder.is_dir() for file in folder.iterdir() if file.is_file()}
    found = {}
    for file in sorted(files | {file for file in wanted if file.exists()}):
        try:
            found[file.relative_to(directory).as_posix()] = file.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            found[file.relative_to(directory).as_posix()] = ""
        except OSError as error:
            raise ConfigError(f"{_OPTION}: {file} cannot be read: {error.strerror or error}") from error
    return found
