"""What is registered in a component, and in which order it is worked through."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ocf.concepts import Resource, Scaler, ScaleTarget
from ocf.objects import ObjectKey

__all__ = ["Entry", "fields_left", "scale_targets", "scalers_first"]


@dataclass(frozen=True, slots=True)
class Entry:
    """A resource and how the component treats it.

    Args:
        resource: The resource.
        leaves: Fields of its object that somebody outside sets.
    """

    resource: Resource
    leaves: tuple[tuple[str, ...], ...] = ()


def scale_targets(entries: Sequence[Entry]) -> dict[str, ScaleTarget]:
    """Find out what the scalers among the entries scale.

    Args:
        entries: The entries of a component.

    Returns:
        Identity of the scaler to its target.

    Raises:
        OcfError: If a scaler cannot be rendered.
    """
    found: dict[str, ScaleTarget] = {}
    for resource in (entry.resource for entry in entries):
        target = resource.scale_target() if isinstance(resource, Scaler) else None
        if target is not None:
            found[resource.identity] = target
    return found


def fields_left(entry: Entry, targets: dict[str, ScaleTarget]) -> tuple[tuple[str, ...], ...]:
    """Return the fields of a resource that are left to others: the declared ones, and those its scalers set.

    Args:
        entry: The entry.
        targets: What the component's scalers scale.
    """
    scaled = [target.path for target in targets.values() if _same_object(target.key, entry.resource.key)]
    return tuple(dict.fromkeys([*entry.leaves, *scaled]))


def scalers_first(entries: Sequence[Entry], targets: dict[str, ScaleTarget]) -> list[Entry]:
    """Put every scaler directly before its target; everything else stays in order of registration.

    Args:
        entries: The entries, in order of registration.
        targets: What the component's scalers scale.
    """
    ordered: list[Entry] = []
    waiting = list(entries)
    while waiting:
        entry = waiting.pop(0)
        scalers = [
            other
            for other in waiting
            if (target := targets.get(other.resource.identity)) and _same_object(target.key, entry.resource.key)
        ]
        waiting = [other for other in waiting if other not in scalers]
        ordered += [*scalers, entry]
    return ordered


def _same_object(target: ObjectKey, key: ObjectKey) -> bool:
    """Compare as an autoscaler does: the version of the API makes no other object, only its group does."""
    group, other = (one.api_version.rpartition("/")[0] for one in (target, key))
    return (group, target.kind, target.name, target.namespace) == (other, key.kind, key.name, key.namespace)
