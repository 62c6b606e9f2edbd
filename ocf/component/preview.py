"""Rendering of a component without a cluster: its objects, who set their fields, and its mutations."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel

from ocf.component.model.ownership import sendable
from ocf.component.model.registration import find_scale_targets
from ocf.component.model.resource_options import Lifecycle
from ocf.concepts import Explainable
from ocf.concepts.provenance import FieldOrigin, Provenance, Setting, Source, SourceKind
from ocf.concepts.provenance_trace import ProvenanceTrace
from ocf.errors import ConfigError, MutationError
from ocf.objects.models import validate_kept
from ocf.objects.paths import format_path
from ocf.objects.redaction import GENERATED

if TYPE_CHECKING:
    from ocf.component.model.registration import Registration
    from ocf.objects import Manifest

__all__ = [
    "explain",
    "explain_entry",
    "firing_set",
    "preview",
    "previewing",
    "registered_mutations",
    "render",
    "render_external",
]


def render(entries: Sequence[Registration]) -> list[Manifest]:
    """Render the managed resources as they are applied while the component is not suspended.

    Args:
        entries: The resources of a component, in order of registration.

    Raises:
        ConfigError: Naming the resource that cannot be rendered.
    """
    ignored = find_scale_targets(entries, previewing).ignored
    return [_rendered(entry, ignored.get(entry.identity, entry.options.ignore_fields)) for entry in _managed(entries)]


def render_external(entries: Sequence[Registration]) -> list[Manifest]:
    """Render what is desired outside of the cluster, each in the form of an object; nothing is called.

    Args:
        entries: The external resources of a component.

    Raises:
        ConfigError: Naming the resource that cannot be rendered.
    """
    rendered: list[Manifest] = []
    for entry in _managed(entries):
        with previewing(entry):
            rendered.append(entry.resource.render())
    return rendered


def preview(entries: Sequence[Registration]) -> list[Any]:
    """Render the managed resources as `render` does, as models where a resource has one.

    Args:
        entries: The resources of a component, in order of registration.

    Raises:
        ConfigError: Naming the resource that cannot be rendered.
    """
    ignored = find_scale_targets(entries, previewing).ignored
    return [_modelled(entry, ignored.get(entry.identity, entry.options.ignore_fields)) for entry in _managed(entries)]


def explain(entries: Sequence[Registration]) -> tuple[Provenance, ...]:
    """Explain who set each field of what `render` returns: one explanation per managed resource, in the same order.

    Args:
        entries: The resources of a component, in order of registration.

    Raises:
        ConfigError: Naming the resource that cannot be rendered.
    """
    ignored = find_scale_targets(entries, previewing).ignored
    return tuple(
        explain_entry(entry, ignored.get(entry.identity, entry.options.ignore_fields)) for entry in _managed(entries)
    )


def explain_entry(
    entry: Registration, ignore_fields: tuple[tuple[str, ...], ...], *, suspended: bool = False
) -> Provenance:
    """Return the provenance of the fields of one applied object.

    Args:
        entry: The resource; one without `explain` is the source of all of its fields.
        ignore_fields: Its ignored fields.
        suspended: Whether the suspended form is explained.

    Raises:
        ConfigError: Naming the resource, if it cannot be rendered.
    """
    with previewing(entry):
        if isinstance(entry.resource, Explainable):
            explained = entry.resource.explain(suspended=suspended, ignore_fields=ignore_fields)
            if entry.common:
                explained = _completed(explained, entry.render(suspended=suspended, ignore_fields=ignore_fields))
            return _with_generated(_sent(explained), entry)
        trace = ProvenanceTrace()
        trace.step(entry.resource.render(suspended=suspended, ignore_fields=ignore_fields), Source(SourceKind.RESOURCE))
        return _sent(Provenance(entry.identity, trace.fields))


def _with_generated(explanation: Provenance, entry: Registration) -> Provenance:
    """Add the fields that are generated, unless something else declares them."""
    known = {origin.path: origin for origin in explanation.fields}
    setting = Setting(Source(SourceKind.GENERATED), GENERATED)
    paths = entry.generated_beside(lambda path: known.get(format_path(path)))
    found = [FieldOrigin(format_path(path), (setting,)) for path in paths]
    return replace(explanation, fields=(*explanation.fields, *found))


def _completed(explanation: Provenance, rendered: Manifest) -> Provenance:
    """Add the fields of the rendered object that the component has added."""
    source = Source(SourceKind.COMPONENT)
    trace = ProvenanceTrace()
    trace.step(rendered, source)
    known = {origin.path: origin for origin in explanation.fields}
    removed = {origin.path: origin for origin in explanation.removed}
    fields: list[FieldOrigin] = []
    for added in trace.fields:
        before = removed.pop(added.path).settings if added.path in removed else ()
        fields.append(known.get(added.path) or FieldOrigin(added.path, (*before, *added.settings)))
    return replace(explanation, fields=tuple(fields), removed=tuple(removed.values()))


def _sent(explanation: Provenance) -> Provenance:
    """Move fields that only the API server sets to the removed ones, because they are never sent."""
    unsent = Setting(Source(SourceKind.NEVER_SENT), removed=True)
    kept: list[FieldOrigin] = []
    dropped: list[FieldOrigin] = []
    for origin in explanation.fields:
        if _is_sent(origin.path):
            kept.append(origin)
        else:
            dropped.append(FieldOrigin(origin.path, (*origin.settings, unsent)))
    return replace(explanation, fields=tuple(kept), removed=(*explanation.removed, *dropped))


def _is_sent(path: str) -> bool:
    root, key = (*re.split(r"[.\[]", path), "")[:2]
    return key in sendable({"metadata": {key: None}})["metadata"] if root == "metadata" else root != "status"


def registered_mutations(entries: Iterable[Registration]) -> tuple[str, ...]:
    """Return the names of the mutations of all managed resources, each once, whether or not their gates are open.

    Args:
        entries: The resources of a component, in order of registration.
    """
    inspectors = (entry.inspector for entry in _managed(entries) if entry.inspector is not None)
    return tuple(dict.fromkeys(name for inspector in inspectors for name in inspector.registered_mutations))


def firing_set(entries: Iterable[Registration]) -> tuple[str, ...]:
    """Return the names of the mutations of all managed resources whose gates are open, each once.

    Args:
        entries: The resources of a component, in order of registration.

    Raises:
        ConfigError: If a gate fails; names the resource and the mutation.
    """
    names: dict[str, None] = {}
    for entry in _managed(entries):
        try:
            names |= dict.fromkeys(entry.inspector.firing_set() if entry.inspector is not None else ())
        except Exception as error:
            raise ConfigError(f'firing set for resource "{entry.identity}": {_describe(error)}') from error
    return tuple(names)


def _managed(entries: Iterable[Registration]) -> Iterator[Registration]:
    return (entry for entry in entries if entry.lifecycle is Lifecycle.MANAGED)


def _modelled(entry: Registration, ignore_fields: tuple[tuple[str, ...], ...]) -> Any:
    if entry.previewable is None:
        return _rendered(entry, ignore_fields)
    with previewing(entry):
        previewed: Any = entry.previewable.preview(ignore_fields=ignore_fields)
        if entry.common and isinstance(previewed, BaseModel):
            return validate_kept(entry.render(ignore_fields=ignore_fields), type(previewed))
        return previewed


def _rendered(entry: Registration, ignore_fields: tuple[tuple[str, ...], ...]) -> Manifest:
    with previewing(entry):
        rendered: object = entry.render(ignore_fields=ignore_fields)
    if not isinstance(rendered, dict):
        raise ConfigError(f'preview resource "{entry.identity}": returned {_shown(rendered)}')
    return sendable(rendered)


@contextmanager
def previewing(entry: Registration) -> Iterator[None]:
    """Name the resource in every error of the block, whatever the author's code raises."""
    try:
        yield
    except Exception as error:
        raise ConfigError(f'preview resource "{entry.identity}": {_describe(error)}') from error


def _shown(rendered: object) -> str:
    return "None" if rendered is None else f"{type(rendered).__name__}, expected a manifest"


def _describe(error: Exception) -> str:
    """Return the text of a cause without the name of the resource."""
    return error.problem if isinstance(error, MutationError) else str(error)
