"""`ocf manifests`: write the manifests that install an operator, or check that a folder is current."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click
from click.exceptions import Exit

from ocf.cli.command import Command, Number, OneOf
from ocf.cli.exit_status import FOUND
from ocf.cli.options import (
    components_option,
    definitions_option,
    objects_option,
    sample_owner_option,
    target_argument,
    traceback_option,
)
from ocf.cli.output import echo
from ocf.cli.output_files import write_file
from ocf.errors import ConfigError
from ocf.manifests import Format

if TYPE_CHECKING:
    from ocf.cli.operator_loader import ComponentSource
    from ocf.component import Component
    from ocf.manifests import Installation, InstallOptions
    from ocf.manifests.install_options import Project
    from ocf.manifests.rendering import Rendering
    from ocf.objects import Manifest

__all__ = ["manifests"]

_PROJECT: Final = "pyproject.toml"
_OPTION: Final = "--directory"


class ShardedBy(StrEnum):
    """What the processes divide the owners by."""

    UID = "uid"
    NAMESPACE = "namespace"


@click.command(cls=Command)
@target_argument
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
@sample_owner_option
@components_option
@objects_option
@definitions_option
@click.option("--namespace", default="", metavar="NAME", help="Namespace of the process; default: its name.")
@click.option(
    "--image", default="", metavar="IMAGE", help="Image; default: the first operator's name and the project's version."
)
@click.option("--replicas", type=Number(1), default=1, metavar="COUNT", help="Number of processes.")
@click.option("--leader-election/--no-leader-election", default=True, help="Elect a leader among the processes.")
@click.option(
    "--sharding", type=OneOf(ShardedBy), default=None, help="Divide the owners among the processes; default: one works."
)
@click.option("--watch-namespace", multiple=True, metavar="NAME", help="Namespace to watch; repeatable; default: all.")
@click.option("--page", is_flag=True, help="Serve the page of owners and reconciles in each process.")
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
    components: str,
    objects: tuple[str, ...],
    crd: tuple[str, ...],
    namespace: str,
    image: str,
    replicas: int,
    leader_election: bool,
    sharding: ShardedBy | None,
    watch_namespace: tuple[str, ...],
    page: bool,
    kopf: bool,
    owner_references_enforced: bool,
) -> None:
    """Write the manifests that install the operators of a module, in one process, into a folder.

    CustomResourceDefinition, roles, Deployment, webhooks, network policy, and for Prometheus and Grafana a service
    monitor, alerts and a dashboard. Version, description, authors and links come from the table `project` of the
    pyproject.toml of the working directory, if there is one.

    Example:
        ocf manifests shop.operator --directory deploy --owner shop.yaml
    """
    from ocf.cli.admission_check import check_admission
    from ocf.manifests import InstallOptions, render
    from ocf.schema.rest_mapping import guessed_mapping

    options = InstallOptions(
        namespace=namespace,
        image=image,
        replicas=replicas,
        leader_election=leader_election,
        sharding=sharding.value if sharding is not None else "",
        watch_namespaces=watch_namespace,
        page=page,
        kopf=kopf,
        owner_references_enforced=owner_references_enforced,
        project=_project(Path(_PROJECT)),
    )
    installation = _installation(target, options, owner, components, objects, [Path(each) for each in crd])
    for api_version, kind in installation.undefined_kinds:
        guess = guessed_mapping(api_version, kind)
        note = (
            f'no definition of {api_version} {kind} is given, so its privileges are for "{guess.plural}" in namespaces'
        )
        echo(f"note: {note}; if that is wrong, give it with --crd FILE", color="yellow", err=True)
    checked = [*installation.webhooks(), *installation.policy_objects()]
    asyncio.run(check_admission(checked, installation.known_definitions))
    findings = (*installation.webhook_findings(), *installation.impersonation_findings())
    for finding in (*findings, *_policy_notes(installation, layout)):
        echo(f"note: {finding}", color="yellow", err=True)
    rendering = render(installation, layout)
    if check:
        _check(directory, rendering)
    else:
        _write(directory, rendering, installation.name)


def _policy_notes(installation: Installation, layout: Format) -> Iterator[str]:
    """Yield what keeps admission policies from being enforced."""
    mutating = [policy.name for policy in installation.policies if policy.mutations]
    if mutating and layout is not Format.HELM:
        yield f"the mutations of {', '.join(mutating)} need Kubernetes 1.36 or newer, which serves them as v1"
    if mutating and layout is Format.HELM:
        yield f"the mutations of {', '.join(mutating)} need Kubernetes 1.36; before it, 1.34 with v1beta1 enabled"
    if installation.policies and layout is Format.OLM:
        yield (
            "OLM does not install admission policies, so policies.yaml is not a part of the bundle: apply it with "
            f"kubectl; it leaves out the namespace {installation.namespace} as that of the operator"
        )


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


def _installation(  # noqa: PLR0917 (what the command was given)
    target: str,
    options: InstallOptions,
    owners: Sequence[str],
    function: str,
    objects: Sequence[str],
    crd: Sequence[Path],
) -> Installation:
    """Return the installation of operators; a function returns their components, unless its name is empty."""
    from ocf.cli.manifest_files import read_manifests
    from ocf.cli.operator_loader import load_operators, operator_sources
    from ocf.manifests import Installation

    operators = load_operators(target)
    way_out = "" if owners else "without --owner, the sample has nothing but a name: give complete ones, --owner FILE"
    sources = operator_sources(operators, function, way_out=way_out)
    samples, found = asyncio.run(_components(sources, owners, objects, crd))
    first, *others = zip(operators, found, strict=True)
    return Installation(*first, options, samples, others=others, used_definitions=tuple(read_manifests(crd)))


async def _components(
    sources: Sequence[ComponentSource], files: Sequence[str], objects: Sequence[str], crd: Sequence[Path]
) -> tuple[list[Manifest], list[list[Component]]]:
    """Return the sample owners, and the components of each operator for them."""
    from ocf.cli.given_cluster import given_components
    from ocf.cli.owner_check import load_owners
    from ocf.objects import ObjectKey

    given = await load_owners(sources, files, definitions=crd)
    samples = list({ObjectKey.of(one): one for source in sources for one in _samples(source, given)}.values())
    found: list[list[Component]] = [[] for _ in sources]
    for source, _, components in await given_components(sources, samples, crd, objects):
        found[sources.index(source)] += components
    return samples, found


def _samples(source: ComponentSource, given: Sequence[Manifest]) -> Iterator[Manifest]:
    """Yield the samples of an operator, or one with nothing but its name; in a namespace, if their kind has one."""
    from ocf.schema.rest_mapping import rest_mapping

    operator = source.operator
    if operator is None:
        return
    api_version, kind = operator.owner_kind
    found = [owner for owner in given if source.reconciles(owner)] or [
        {"apiVersion": api_version, "kind": kind, "metadata": {"name": "example"}}
    ]
    is_namespaced = rest_mapping(api_version, kind, source.definitions).namespaced
    place = {"namespace": "default"} if is_namespaced else {}
    for owner in found:
        yield {**owner, "metadata": {**place, **owner["metadata"]}}


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


def _write(directory: Path, rendering: Rendering, operator: str) -> None:
    """Write the files; before that, reject a folder with files of the user or of another operator in their place."""
    from ocf.manifests import differences
    from ocf.manifests.folder import generated_for, note

    existing = _read(directory, rendering)
    foreign = [path for path in rendering.generated if path in existing and not generated_for(existing[path])]
    if foreign:
        raise ConfigError(
            f"{directory} has files of its own where manifests would be written: {', '.join(foreign)}; "
            f'move them, choose another folder, or add "{note(operator)}" to their first line to have them replaced'
        )
    others = {path: other for path, text in existing.items() if (other := generated_for(text)) not in ("", operator)}
    if others:
        names = ", ".join(sorted(set(others.values())))
        raise ConfigError(
            f"{directory} has the manifests of operator {names}: {', '.join(others)}; choose another folder for "
            f"operator {operator}, or delete them if it replaces that operator"
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
