"""What is registered in a component, and in which order it is worked through."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any

from ocf.component.options import Fate, Options
from ocf.concepts import (
    Alive,
    Completable,
    Data,
    DataConsumer,
    DataProducer,
    Graceful,
    Guardable,
    MutationInspector,
    Operational,
    Resource,
    Scaler,
    ScaleTarget,
    Suspendable,
)
from ocf.objects import ObjectKey

__all__ = ["Entry", "fields_left", "scale_targets", "scalers_first"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A resource, how the component treats it, and what it can do.

    What it can do is found out once, when it is registered: asking a protocol takes longer than the answer.

    Args:
        resource: The resource.
        options: How the component treats it.
        alive: The resource, if it is alive; likewise the others.
    """

    resource: Resource
    options: Options = field(default_factory=Options)
    alive: Alive | None = None
    operational: Operational | None = None
    completable: Completable | None = None
    graceful: Graceful | None = None
    guardable: Guardable | None = None
    suspendable: Suspendable | None = None
    producer: DataProducer | None = None
    consumer: DataConsumer | None = None
    scaler: Scaler | None = None
    inspector: MutationInspector | None = None

    @classmethod
    def of(cls, resource: Resource, options: Options) -> Entry:
        """Register a resource.

        Args:
            resource: The resource.
            options: How the component treats it.
        """
        return cls(
            resource=resource,
            options=options,
            alive=resource if isinstance(resource, Alive) else None,
            operational=resource if isinstance(resource, Operational) else None,
            completable=resource if isinstance(resource, Completable) else None,
            graceful=resource if isinstance(resource, Graceful) else None,
            guardable=resource if isinstance(resource, Guardable) else None,
            suspendable=resource if isinstance(resource, Suspendable) else None,
            producer=resource if isinstance(resource, DataProducer) else None,
            consumer=resource if isinstance(resource, DataConsumer) else None,
            scaler=resource if isinstance(resource, Scaler) else None,
            inspector=resource if isinstance(resource, MutationInspector) else None,
        )

    @property
    def fate(self) -> Fate:
        """What becomes of its object."""
        return self.options.fate

    @property
    def identity(self) -> str:
        """Identity of the resource."""
        return self.resource.identity

    @property
    def cells_read(self) -> frozenset[Data[Any]]:
        """The data that it reads, needed or not."""
        return frozenset(read.cell for read in self.consumer.consumed_data) if self.consumer else frozenset()

    @property
    def cells_filled(self) -> frozenset[Data[Any]]:
        """The data that it produces."""
        return frozenset(self.producer.produced_data) if self.producer else frozenset()


def scale_targets(
    entries: Iterable[Entry], naming: Callable[[Entry], AbstractContextManager[None]]
) -> dict[str, ScaleTarget]:
    """Find out what the scalers among the entries scale, those that are only read included.

    Args:
        entries: The entries of a component.
        naming: Names the entry in whatever is raised because of it.

    Returns:
        Identity of the scaler to its target.
    """
    found: dict[str, ScaleTarget] = {}
    for entry in entries:
        if entry.scaler is None or entry.fate not in {Fate.MANAGED, Fate.READ_ONLY}:
            continue
        with naming(entry):
            target = entry.scaler.scale_target()
        if target is not None:
            found[entry.identity] = target
    return found


def fields_left(entry: Entry, targets: dict[str, ScaleTarget]) -> tuple[tuple[str, ...], ...]:
    """Return the fields of a resource that are left to others: the declared ones, and those its scalers set.

    Args:
        entry: The entry.
        targets: What the component's scalers scale.
    """
    scaled = [target.path for target in targets.values() if _same_object(target.key, entry.resource.key)]
    return tuple(dict.fromkeys([*entry.options.leaves, *scaled]))


def scalers_first(entries: Sequence[Entry], targets: dict[str, ScaleTarget]) -> list[Entry]:
    """Put every scaler directly before its target; everything else stays in order of registration.

    So does a scaler that reads data of its target, or of a resource between the two.

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
            for at, other in enumerate(waiting)
            if (target := targets.get(other.identity))
            and _same_object(target.key, entry.resource.key)
            and other.cells_read.isdisjoint(*(passed.cells_filled for passed in (entry, *waiting[:at])))
        ]
        waiting = [other for other in waiting if other not in scalers]
        ordered += [*scalers, entry]
    return ordered


def _same_object(target: ObjectKey, key: ObjectKey) -> bool:
    """Compare as an autoscaler does: the version of the API makes no other object, only its group does."""
    group, other = (one.api_version.rpartition("/")[0] for one in (target, key))
    return (group, target.kind, target.name, target.namespace) == (other, key.kind, key.name, key.namespace)
