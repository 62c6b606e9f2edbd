"""`ocf preview`: the objects that a component would apply, and the origin of each field, without a cluster."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ocf.cli.command import Command, OneOf
from ocf.cli.options import (
    changes_option,
    components_argument,
    components_option,
    definitions_option,
    objects_option,
    owner_option,
    traceback_option,
)
from ocf.cli.output import as_json, echo, grid, value_text

if TYPE_CHECKING:
    from ocf.cli.operator_loader import ComponentSource
    from ocf.component import Component
    from ocf.concepts.provenance import Provenance
    from ocf.objects import Manifest

__all__ = ["PreviewOutput", "preview"]


class PreviewOutput(StrEnum):
    """Output formats of a preview."""

    YAML = "yaml"
    JSON = "json"
    TEXT = "text"
    PICTURE = "picture"
    MERMAID = "mermaid"


@click.command(cls=Command)
@components_argument
@owner_option
@components_option
@click.option("--explain", is_flag=True, help="Show for each field what set it.")
@click.option(
    "--output",
    type=OneOf(PreviewOutput),
    help="Output format; default: yaml, or text with --explain. Of one owner also its components with their gates, "
    "guards and data: picture writes SVG, mermaid a flowchart.",
)
@changes_option
@definitions_option
@objects_option
@click.option(
    "--data",
    multiple=True,
    metavar="NAME=VALUE",
    help="Fill a data cell that is known only during a reconcile; repeatable.",
)
@click.option("--show-secrets", is_flag=True, help="Do not redact the values of Secrets.")
@traceback_option
def preview(  # noqa: PLR0913 (each is an option of the command line)
    target: str,
    *,
    owner: tuple[str, ...],
    components: str,
    explain: bool,
    output: PreviewOutput | None,
    changes: tuple[str, ...],
    crd: tuple[str, ...],
    objects: tuple[str, ...],
    data: tuple[str, ...],
    show_secrets: bool,
) -> None:
    """Show the objects that components would apply. No cluster is needed.

    The objects are those of a running component, even if it is suspended, without the owner reference. Components that
    read a cluster get one with the objects of --objects; what they write themselves is not stored.

    Example:
        ocf preview shop.operator --owner shop.yaml --explain
    """
    from ocf.cli.operator_loader import load_components

    sources = load_components(target, components)
    pairs = asyncio.run(_components(sources, owner, changes, [Path(each) for each in crd], objects))
    _note_suspended(pairs)
    with _with_data_hint(), _fill_data([component for _, component in pairs], data):
        if output is PreviewOutput.PICTURE or output is PreviewOutput.MERMAID:
            _draw(pairs, output, explain=explain)
        elif explain:
            _explain(pairs, output or PreviewOutput.TEXT)
        else:
            _show(pairs, output or PreviewOutput.YAML, show_secrets=show_secrets)


def _draw(pairs: Sequence[tuple[str, Component]], output: PreviewOutput, *, explain: bool) -> None:
    """Print the components of one owner as a picture."""
    from ocf.errors import ConfigError
    from ocf.ownership.diagram import to_mermaid
    from ocf.ownership.picture import standalone_svg
    from ocf.runtime.component_diagram import component_diagram

    owners = list(dict.fromkeys(owner for owner, _ in pairs))
    if explain:
        raise ConfigError(f"--explain shows fields: give --output text, json or yaml, not {output}")
    if len(owners) != 1:
        raise ConfigError(f"--output {output} shows one owner with components, got {len(owners)}")
    diagram = component_diagram(owners[0], [component for _, component in pairs])
    click.echo(to_mermaid(diagram) if output is PreviewOutput.MERMAID else standalone_svg(diagram).rstrip())


def _note_suspended(pairs: Sequence[tuple[str, Component]]) -> None:
    """Print a note for each component that is suspended or disabled now."""
    for owner, component in pairs:
        state = "suspended" if component.suspended else ""
        if component.gate is not None and not component.gate.enabled():
            state = "disabled by its gate"
        if state:
            note = f"note: component {component.name} of {owner} is {state}; these objects are applied while it runs"
            echo(note, color="yellow", err=True)


@contextmanager
def _with_data_hint() -> Iterator[None]:
    """Add to an error about an empty data cell how to fill it."""
    from ocf.errors import ConfigError, DataNotExtractedError

    try:
        yield
    except ConfigError as error:
        cause: BaseException | None = error
        while cause is not None and not isinstance(cause, DataNotExtractedError):
            cause = cause.__cause__
        if cause is None:
            raise
        raise ConfigError(f"{error}; without a reconcile, fill it with --data {cause.name}=VALUE") from error


async def _components(
    sources: Sequence[ComponentSource],
    files: Sequence[str],
    changes: Sequence[str],
    definitions: Sequence[Path],
    objects: Sequence[str],
) -> list[tuple[str, Component]]:
    """Return the components of all owners, each with the name of its owner."""
    from ocf.cli.component_loader import owner_name
    from ocf.cli.given_cluster import given_components
    from ocf.cli.owner_check import load_owners

    owners = await load_owners(sources, files, changes, definitions)
    for owner in owners:
        for source in sources:
            if source.reconciles(owner):
                source.note_unreconciled(owner, "these objects are applied once the pause ends")
    pairs: list[tuple[str, Component]] = []
    for _, owner, components in await given_components(sources, owners, definitions, objects):
        pairs += [(owner_name(owner), component) for component in components]
    return pairs


def _fill_data(components: Sequence[Component], given: Sequence[str]) -> ExitStack:
    """Fill data cells by name until the returned stack is closed."""
    from ocf.cli.component_loader import parse_value
    from ocf.errors import ConfigError

    entries = [entry for component in components for entry in (*component.entries, *component.external)]
    cells = [cell for entry in entries for cell in entry.cells_read | entry.cells_filled]
    stack = ExitStack()
    for each in given:
        name, equals, value = each.partition("=")
        named = [cell for cell in dict.fromkeys(cells) if cell.name == name]
        if not equals or not named:
            known = ", ".join(sorted({cell.name for cell in cells})) or "none"
            raise ConfigError(f'invalid data "{each}": write NAME=VALUE; the data cells are: {known}')
        for cell in named:
            stack.enter_context(cell.seeded(parse_value(value)))
    return stack


def _show(pairs: Sequence[tuple[str, Component]], output: PreviewOutput, *, show_secrets: bool) -> None:
    from ocf.objects import dump_document
    from ocf.objects.printable import printable
    from ocf.objects.redaction import redacted

    rendered = [
        (owner, component, [each if show_secrets else redacted(each) for each in _with_generated(component)])
        for owner, component in pairs
    ]
    outside = [(owner, component, component.render_external()) for owner, component in pairs]
    if output is PreviewOutput.JSON:
        items = [manifest for _, _, manifests in rendered for manifest in manifests]
        external = [manifest for _, _, manifests in outside for manifest in manifests]
        more = {"external": external} if external else {}
        click.echo(as_json({"apiVersion": "v1", "kind": "List", "items": items, **more}))
    elif output is PreviewOutput.YAML:
        for owner, component, manifests in rendered:
            for manifest in manifests:
                head = printable(f"# component {component.name} of {owner}")
                click.echo(f"---\n{head}\n{dump_document(manifest)}", nl=False)
        for owner, component, manifests in outside:
            for manifest in manifests:
                # As a comment, because it is not an object of the cluster, which `kubectl apply` would reject.
                head = f"outside of the cluster, component {component.name} of {owner}"
                lines = [printable(head), *dump_document(manifest).splitlines()]
                click.echo("---\n" + "".join(f"# {line}\n" for line in lines), nl=False)
    else:
        for owner, component, manifests in rendered:
            _overview(owner, component, manifests)


def _with_generated(component: Component) -> Iterator[Manifest]:
    """Yield the objects, with a word in place of each value that is generated."""
    from ocf.objects import ObjectKey
    from ocf.objects.paths import get_field, with_field
    from ocf.objects.redaction import GENERATED

    entries = {entry.key: entry for entry in component.entries}
    for manifest in component.render():
        entry = entries[ObjectKey.of(manifest)]
        shown = manifest
        for path in entry.generated_beside(partial(get_field, manifest)):
            shown = with_field(shown, path, GENERATED)
        yield shown


def _overview(owner: str, component: Component, manifests: Sequence[Manifest]) -> None:
    from ocf.objects import ObjectKey

    applied = {str(ObjectKey.of(manifest)) for manifest in manifests}
    rows = [
        (
            entry.identity,
            _state(entry) if entry.identity in applied else str(entry.lifecycle),
            ", ".join(_applied_mutations(entry)),
        )
        for entry in component.entries
    ]
    rows += [(entry.identity, f"{entry.lifecycle}, outside of the cluster", "") for entry in component.external]
    grid(f"component {component.name} of {owner}", ("resource", "state", "active mutations"), rows)


def _state(entry: Any) -> str:
    """Return which writes are sent for an object that is managed."""
    return "applied" if entry.options.writes == "all" else str(entry.options.writes)


def _applied_mutations(entry: Any) -> Sequence[str]:
    found: Sequence[str] = entry.inspector.firing_set() if entry.inspector is not None else ()
    return found


def _explain(pairs: Sequence[tuple[str, Component]], output: PreviewOutput) -> None:
    from ocf.objects import dump_document

    explained = [(owner, component, component.explain()) for owner, component in pairs]
    if output is PreviewOutput.TEXT:
        for owner, component, provenances in explained:
            for provenance in provenances:
                _fields(f"{provenance.resource}, component {component.name} of {owner}", provenance)
        return
    found = [
        {"owner": owner, "component": component.name, **_to_json(provenance)}
        for owner, component, provenances in explained
        for provenance in provenances
    ]
    if output is PreviewOutput.JSON:
        click.echo(as_json(found))
    else:
        click.echo("".join(f"---\n{dump_document(each)}" for each in found), nl=False)


def _fields(title: str, provenance: Provenance) -> None:
    rows = []
    for origin in (*provenance.fields, *provenance.removed):
        removed = origin.settings[-1].removed
        was = origin.previous
        rows.append(
            (
                origin.path,
                "(removed)" if removed else value_text(origin.value),
                str(origin.source),
                "" if was is None else f"{'(removed)' if was.removed else value_text(was.value)} by {was.source}",
            )
        )
    grid(title, ("field", "value", "set by", "was"), rows)
    if provenance.mutations:
        grid(
            "mutations",
            ("name", "effect", "because"),
            [(m.name, str(m.effect), m.reason) for m in provenance.mutations],
        )


def _to_json(provenance: Provenance) -> dict[str, Any]:
    """Return the provenance of an object as JSON values."""
    return {
        "resource": provenance.resource,
        "fields": [_origin(origin) for origin in provenance.fields],
        "removed": [_origin(origin) for origin in provenance.removed],
        "mutations": [{"name": m.name, "effect": str(m.effect), "reason": m.reason} for m in provenance.mutations],
    }


def _origin(origin: Any) -> dict[str, Any]:
    settings = [
        {"by": str(each.source), **({"removed": True} if each.removed else {"value": each.value})}
        for each in origin.settings
    ]
    return {"path": origin.path, "settings": settings}
