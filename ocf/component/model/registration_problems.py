"""Registrations of one component that exclude each other, or whose kind excludes an option."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from ocf.component.model.registration import Registration
from ocf.component.model.resource_options import EffectiveOptions, Lifecycle, Writes

__all__ = ["registration_problems"]


def registration_problems(component: str, entries: Sequence[Registration]) -> Iterator[str]:
    """Yield what is wrong with the resources of a component, as far as their options alone do not show it."""
    yield from _duplicates(component, entries)
    yield from _shared_selectors(component, entries)
    yield from _unknown_targets(component, entries)
    yield from _unkept_values(component, entries)
    yield from _about_objects(component, entries)


def _shared_selectors(component: str, entries: Sequence[Registration]) -> Iterator[str]:
    """Yield which workloads would select the pods of each other, because none has a selector of its own."""
    defaulted = [
        entry.identity
        for entry in entries
        if entry.alive is not None
        and entry.lifecycle is Lifecycle.MANAGED
        and getattr(entry.resource, "selects_by_default", False)
    ]
    if len(defaulted) > 1:
        yield (
            f'component "{component}": {" and ".join(defaulted)} would select the same pods: set '
            "spec.selector and the labels of the pod template in all of them but one, or make them components of "
            "their own"
        )


def _unknown_targets(component: str, entries: Sequence[Registration]) -> Iterator[str]:
    """Yield which autoscalers are only read, and do not say whose replica count is to be ignored."""
    for entry in entries:
        is_reference = getattr(entry.resource, "is_reference", False)
        if entry.scaler is not None and entry.lifecycle is Lifecycle.READ_ONLY and is_reference:
            yield (
                f'resource "{entry.identity}" in component "{component}": spec: required value: an '
                "autoscaler that is only read needs its target, whose replica count the component then leaves to it"
            )


def _unkept_values(component: str, entries: Sequence[Registration]) -> Iterator[str]:
    """Yield which resources are written in a way that their kind excludes."""
    for entry in entries:
        subject = f'resource "{entry.identity}" in component "{component}"'
        options = {
            "recreate_on_immutable_change": entry.options.recreate_on_immutable_change,
            "recreate_when_changed": entry.options.recreate_when_changed,
        }
        for name, value in options.items() if entry.generated else ():
            if value:
                yield (
                    f"{subject}: {name} is mutually exclusive with generated values, which a recreated object would "
                    "not have"
                )
        if entry.once is not None and entry.options.writes is not Writes.ALL:
            yield f'{subject}: writes="{entry.options.writes}" is mutually exclusive with run_once'


def _about_objects(component: str, entries: Sequence[Registration]) -> Iterator[str]:
    """Yield which options of external resources are about objects of the cluster."""
    default = EffectiveOptions()
    for entry in entries:
        if entry.external is None:
            continue
        names = [name for name in _OF_OBJECTS if getattr(entry.options, name) != getattr(default, name)]
        if names:
            what = "it is not an object of the cluster"
            yield f'resource "{entry.identity}" in component "{component}" does not take {", ".join(names)}: {what}'


_OF_OBJECTS: Final = (
    "ignore_fields",
    "set_once",
    "writes",
    "on_conflict",
    "propagation",
    "unowned",
    "delete_with_owner",
    "block_on_foreign_controller",
    "recreate_on_immutable_change",
    "recreate_when_changed",
    "only_if_served",
    "held_for_cleanup",
    "rollout",
)


def _duplicates(component: str, entries: Sequence[Registration]) -> Iterator[str]:
    seen: dict[str, Registration] = {}
    for entry in entries:
        first = seen.setdefault(entry.identity, entry)
        if first is not entry:
            options = _option_text(entry) if _option_text(entry) != _option_text(first) else ""
            yield f'duplicate resource "{entry.identity}" in component "{component}"{options}'


def _option_text(entry: Registration) -> str:
    """Return the options of a registration as text, for an error about two registrations of one object."""
    deleted, read = (
        str(entry.lifecycle is lifecycle).lower() for lifecycle in (Lifecycle.DELETED, Lifecycle.READ_ONLY)
    )
    return f" (delete={deleted}, readOnly={read}, mode={entry.options.participation})"
