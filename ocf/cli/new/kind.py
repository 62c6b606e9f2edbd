"""`ocf new kind`: write the kind of another project's custom resource into a project."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from ocf.cli.command import Command
from ocf.cli.new.files import NewFiles, write_files
from ocf.cli.options import context_option, kubeconfig_option, traceback_option
from ocf.cli.output import echo
from ocf.errors import ConfigError

if TYPE_CHECKING:
    from ocf.objects import Manifest
    from ocf.scaffold import KindOptions
    from ocf.scaffold.foreign_kind import ForeignKind, KindFiles

__all__ = ["new_kind"]

_DEFINITION: Final = "CustomResourceDefinition"
_SHOWN: Final = 5
"""Objects that the error of files without a definition names."""
_NOT_PACKAGES: Final = frozenset({"tests", "docs", "examples", "scripts", "benchmarks", "deploy"})
_KINDS: Final = '"""Kinds of other projects."""\n'


@click.command(cls=Command)
@click.argument(
    "files",
    nargs=-1,
    metavar="FILE...",
    help="YAML or JSON files with CustomResourceDefinitions, folders of them, or - for the standard input.",
)
@click.option(
    "--from-cluster",
    multiple=True,
    metavar="NAME",
    help="Read the CustomResourceDefinition NAME, such as certificates.cert-manager.io, from the cluster; repeatable.",
)
@click.option(
    "--kind", multiple=True, metavar="KIND", help="Write this kind only; repeatable. Default: all of the files."
)
@click.option("--version", default="", metavar="VERSION", help="API version; default: the one that kubectl prefers.")
@click.option(
    "--ready",
    default="",
    metavar="TYPE",
    help="Condition that is True once an object works; default: by the columns of the definition.",
)
@click.option(
    "--failing", default="", metavar="TYPE", help="Condition that is True while its controller fails; default: none."
)
@click.option("--sample", default="", metavar="FILE", help="Objects for the tests; default: the smallest ones.")
@click.option(
    "--directory", "-d", type=Path, default=Path(), metavar="DIR", help="Folder of the project; created if missing."
)
@click.option(
    "--package", default="", metavar="NAME", help="Package of the kinds; default: kinds, in the package of the project."
)
@click.option("--force", is_flag=True, help="Write the models anew; other files that exist are kept.")
@kubeconfig_option
@context_option
@traceback_option
def new_kind(  # noqa: PLR0913 (each is an option of the command line)
    files: tuple[str, ...],
    *,
    from_cluster: tuple[str, ...],
    kind: tuple[str, ...],
    version: str,
    ready: str,
    failing: str,
    sample: str,
    directory: Path,
    package: str,
    force: bool,
    kubeconfig: str | None,
    context: str | None,
) -> None:
    """Write the kind of another project's custom resource: typed models, a declaration, tests.

    The models follow the schema of its CustomResourceDefinition. No file is overwritten, except for the models with
    --force. No code is executed: read the files before you run their tests, if you do not know the author.

    Example:
        ocf new kind crontabs.yaml
    """
    from ocf.scaffold import foreign_kinds, render_kind

    definitions = _definitions(files) if files else []
    if from_cluster:
        definitions += asyncio.run(_of_cluster(from_cluster, kubeconfig, context))
    if not files and not from_cluster:
        raise ConfigError("pass files with CustomResourceDefinitions, or --from-cluster NAME for one of a cluster")
    for option, value in (("--kubeconfig", kubeconfig), ("--context", context)):
        if value is not None and not from_cluster:
            raise ConfigError(f"{option}: has no effect without --from-cluster: no cluster is read")
    options = _options(directory, package, ready, failing)
    samples = _read([sample] if sample else [])
    made = [
        (found, render_kind(found, options, _sample_of(found, samples)))
        for found in foreign_kinds(definitions, kinds=kind, version=version)
    ]
    if force:
        _reject_what_is_kept(made, options, directory, has_sample=bool(sample))
    written = _write([each for _, each in made], options, directory, force=force)
    echo(f"wrote {written} files into {directory}:")
    for found, each in made:
        echo(f"  {each.module}: {found.kind} of {found.api_version}")
    click.echo("next: python -m pytest tests/kinds   # with ocf[testing]")


def _definitions(files: Sequence[str]) -> list[Manifest]:
    """Return the CustomResourceDefinitions of files; other objects beside them are passed over."""
    documents = _documents(files)
    found = [manifest for _, manifest in documents if manifest.get("kind") == _DEFINITION]
    if not found:
        seen = "; ".join(f"{place} has {manifest.get('kind')}" for place, manifest in documents[:_SHOWN])
        more = f"; and {len(documents) - _SHOWN} more" if len(documents) > _SHOWN else ""
        raise ConfigError(f"expected the manifest of a {_DEFINITION}: {seen or 'the files have no objects'}{more}")
    return found


def _read(files: Sequence[str]) -> list[Manifest]:
    """Return the objects of files."""
    return [manifest for _, manifest in _documents(files)]


def _documents(files: Sequence[str]) -> list[tuple[str, Manifest]]:
    """Return the objects of files, each with its place: file, document, and the path in a List."""
    from ocf.cli.manifest_files import read_documents

    found: list[tuple[str, Manifest]] = []
    for document in read_documents(files):
        if document.manifest is None:
            raise ConfigError(f"{document.file}:{document.line}: {document.problem}")
        found.append((document.place, document.manifest))
    return found


async def _of_cluster(names: Sequence[str], kubeconfig: str | None, context: str | None) -> list[Manifest]:
    from ocf.cli.diff import connect
    from ocf.objects import ObjectKey

    async with await connect(kubeconfig, context) as cluster:
        return [
            await cluster.get(ObjectKey("apiextensions.k8s.io/v1", _DEFINITION, name)) for name in dict.fromkeys(names)
        ]


def _sample_of(kind: ForeignKind, samples: Sequence[Manifest]) -> Manifest | None:
    """Return the object of a kind, without what the API server sets, and in a namespace."""
    from ocf.objects.manifest import SERVER_METADATA

    for manifest in samples:
        if (manifest.get("apiVersion"), manifest.get("kind")) == (kind.api_version, kind.kind):
            metadata = {
                name: value for name, value in (manifest.get("metadata") or {}).items() if name not in SERVER_METADATA
            }
            if not kind.cluster_scoped:
                metadata.setdefault("namespace", "default")
            sample = {**{name: value for name, value in manifest.items() if name != "status"}, "metadata": metadata}
            if problems := list(_sample_problems(kind, sample)):
                raise ConfigError(f"--sample: the sample is not valid: {kind.kind}: {'; '.join(problems)}")
            return sample
    if samples:
        seen = ", ".join(f"{each.get('kind')} of {each.get('apiVersion')}" for each in samples)
        raise ConfigError(f"--sample: expected a {kind.kind} of {kind.api_version}, got {seen}")
    return None


def _sample_problems(kind: ForeignKind, sample: Manifest) -> Iterator[str]:
    """Yield what the API server rejects, apart from CEL rules."""
    from ocf_server.apiextensions import schema_faults

    if not isinstance(name := sample["metadata"].get("name"), str) or not name:
        yield f"metadata.name: must be a name, got {name!r}"
    parts = {field: value for field, value in sample.items() if field not in {"apiVersion", "kind", "metadata"}}
    yield from (str(fault.problem) for fault in schema_faults(parts, kind.schema))


def _options(directory: Path, package: str, ready: str, failing: str) -> KindOptions:
    from importlib.metadata import packages_distributions

    from ocf.scaffold import KindOptions

    root, found = _package_of(directory) if (directory / "pyproject.toml").exists() else (directory, "")
    if not package and (directory / "pyproject.toml").exists() and not found:
        raise ConfigError(f"{directory} does not have exactly one package; name one with --package, such as shop.kinds")
    package = package or (f"{found}.kinds" if found else "kinds")
    folder = (root.relative_to(directory) / package.replace(".", "/")).as_posix()
    top = package.partition(".")[0]
    taken = () if _is_in_project(top, root) else packages_distributions()
    return KindOptions(package=package, folder=folder, ready=ready, failing=failing, taken=frozenset(taken))


def _is_in_project(package: str, root: Path) -> bool:
    """Return whether an installed package is that of the project; it is not imported."""
    from importlib.util import find_spec

    try:
        spec = find_spec(package)
    except (ImportError, ValueError):  # no name of a package, which `KindOptions` reports
        return False
    folders = (spec.submodule_search_locations or ()) if spec is not None else ()
    return any(Path(folder).resolve() == (root / package).resolve() for folder in folders)


def _package_of(directory: Path) -> tuple[Path, str]:
    """Return the folder with the packages of a project, and the name of its package; empty if there is not one."""
    root = directory / "src" if (directory / "src").is_dir() else directory
    found = [each.parent.name for each in root.glob("*/__init__.py") if each.parent.name not in _NOT_PACKAGES]
    return root, found[0] if len(found) == 1 else ""


def _reject_what_is_kept(
    made: Sequence[tuple[ForeignKind, KindFiles]], options: KindOptions, directory: Path, *, has_sample: bool
) -> None:
    """Raise an error if a file that is kept does not have what an option, or the definition, asks for."""
    from ocf.scaffold.foreign_kind.project import kept_problems

    problems: list[str] = []
    for kind, files in made:
        paths = [path for path in files.texts.keys() - files.generated if (directory / path).is_file()]
        kept = {path: (directory / path).read_text(encoding="utf-8", errors="replace") for path in paths}
        problems += kept_problems(kept, files, kind, options, has_sample=has_sample)
    if problems:
        raise ConfigError("; ".join(problems))


def _write(made: Sequence[KindFiles], options: KindOptions, directory: Path, *, force: bool) -> int:
    """Write the files of all kinds. None of them is imported: they follow from a text that anybody may have written."""
    kinds = f"{options.place}/__init__.py"
    texts = {path: text for each in made for path, text in each.texts.items()}
    generated = {path for each in made for path in each.generated}
    files = NewFiles(
        {kinds: _KINDS, **texts},
        replaced=generated if force else (),
        optional={kinds, *(texts.keys() - generated if force else ())},
        hint="--force writes the models anew, and keeps the other files",
    )
    return write_files(directory, files)
