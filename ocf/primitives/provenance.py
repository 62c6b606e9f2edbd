"""Provenance of a rendered object: the source of each field and the effect of each mutation."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from ocf.concepts import Effect, MutationEffect, Provenance, ProvenanceTrace, SourceKind
from ocf.feature import BooleanGate, VersionGate

if TYPE_CHECKING:
    from ocf.concepts import Source
    from ocf.feature import Gate, Mutation
    from ocf.objects import Manifest

__all__ = ["closed_because", "explanation"]


def explanation(
    identity: str, mutations: Sequence[Mutation[Any]], steps: Iterable[tuple[Source, Manifest]]
) -> Provenance:
    """Return the provenance of an object from the steps of its rendering: each source, and the object after it."""
    trace = ProvenanceTrace()
    changed: dict[str, list[bool]] = defaultdict(list)
    for source, manifest in steps:
        did = trace.step(manifest, source)
        if source.kind is SourceKind.MUTATION:
            changed[source.mutation].append(did)
    effects = tuple(_effect(mutation, changed[mutation.name]) for mutation in mutations)
    return Provenance(identity, trace.fields, trace.removed, effects)


def _effect(mutation: Mutation[Any], changed: Sequence[bool]) -> MutationEffect:
    if not mutation.fires():
        return MutationEffect(mutation.name, Effect.CLOSED, closed_because(mutation.feature))
    if any(changed):
        return MutationEffect(mutation.name, Effect.CHANGED)
    why = "the object already had all its values" if changed else "it recorded no edit"
    return MutationEffect(mutation.name, Effect.NOTHING, why)


def closed_because(gate: Gate | None) -> str:
    """Return why a closed gate is closed.

    Example:
        >>> closed_because(VersionGate("2.0.9", ">= 2.1", "< 3"))
        'version 2.0.9 is not ">= 2.1"'
        >>> closed_because(VersionGate("2.0.9", ">= 2.0").when(False))
        'switched off'
    """
    match gate:
        case VersionGate():
            asked = (
                (one, VersionGate(gate.version, one, ignore_vendor_suffix=gate.ignore_vendor_suffix))
                for one in gate.constraints
            )
            against = [f'version {gate.version} is not "{one}"' for one, alone in asked if not alone.enabled()]
            return " and ".join([*against, *([] if gate.switched_on else ["switched off"])])
        case BooleanGate():
            return "switched off"
        case _:
            return f"{type(gate).__name__} is closed"
