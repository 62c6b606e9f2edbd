"""What is registered in a component, and in which order it is worked through."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import cache
from typing import Any, NamedTuple, TypeVar, cast

from ocf.component.model.resource_options import EffectiveOptions, Lifecycle
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
from ocf.objects import Manifest, ObjectKey

ConceptT = TypeVar("ConceptT")

__all__ = ["Registration", "ScaleTargets", "find_scale_targets", "ignored_fields", "is_resource", "scalers_first"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Registration:
    """A resource, how the component treats it, and what it can do.

    What it can do is found out once, when it is registered: asking a protocol takes longer than the answer.

    Args:
        resource: The resource.
        options: How the component treats it.
        alive: The resource, if it is alive; likewise the others.
    """

    resource: Resource
    options: EffectiveOptions = field(default_factory=EffectiveOptions)
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
    def of(cls, resource: Resource, options: EffectiveOptions) -> Registration:
        """Register a resource.

        Args:
            resource: The resource.
            options: How the component treats it.
        """
        return cls(
            resource=resource,
            options=options,
            alive=_as(resource, Alive),
            operational=_as(resource, Operational),
            completable=_as(resource, Completable),
            graceful=_as(resource, Graceful),
            guardable=_as(resource, Guardable),
            suspendable=_as(resource, Suspendable),
            producer=_as(resource, DataProducer),
            consumer=_as(resource, DataConsumer),
            scaler=_as(resource, Scaler),
            inspector=_as(resource, MutationInspector),
        )

    @property
    def lifecycle(self) -> Lifecycle:
        """What becomes of its object."""
        return self.options.lifecycle

    @property
    def identity(self) -> str:
        """Identity of the resource."""
        return self.resource.identity

    @property
    def label(self) -> str:
        """What the resource is called in metrics: what its author chose, or its kind in lower case."""
        chosen: str = getattr(self.resource, "metrics_identifier", "")
        return chosen.strip() or self.resource.key.kind.lower()

    @property
    def cells_read(self) -> frozenset[Data[Any]]:
        """The data that it reads, needed or not."""
        return frozenset(read.cell for read in self.consumer.consumed_data) if self.consumer else frozenset()

    @property
    def cells_filled(self) -> frozenset[Data[Any]]:
        """The data that it produces."""
        return frozenset(self.producer.produced_data) if self.producer else frozenset()


def is_resource(value: object) -> bool:
    """Tell whether a value is a resource."""
    return _satisfies(type(value), Resource) or isinstance(value, Resource)  # type: ignore[arg-type]  # it is hashable


def _as(resource: Resource, concept: Callable[..., ConceptT]) -> ConceptT | None:
    """Return the resource as one of a concept; None if it is none."""
    return cast("ConceptT", resource) if _satisfies(type(resource), concept) else None


@cache
def _satisfies(kind: type, concept: object) -> bool:
    """Tell whether a class has what a concept demands; asking an instance would evaluate its properties."""
    annotated = (vars(base).get("__annotations__") for base in kind.__mro__)
    # Of some built-in types, that of modules among them, the attribute is no mapping.
    declared = {name for names in annotated if isinstance(names, dict) for name in names}
    members = [name for name in vars(concept) if not name.startswith("_")]
    return all(hasattr(kind, member) or member in declared for member in members)


class ScaleTargets(NamedTuple):
    """What the scalers of a component scale, and what was rendered to find out.

    Attributes:
        targets: Identity of the scaler to its target.
        rendered: Identity of the scaler to its object, where nothing in this pass can change how it is rendered.
    """

    targets: dict[str, ScaleTarget]
    rendered: dict[str, Manifest]


def find_scale_targets(
    entries: Sequence[Registration], naming: Callable[[Registration], AbstractContextManager[None]]
) -> ScaleTargets:
    """Find out what the scalers among the entries scale, those that are only read included.

    Args:
        entries: The entries of a component.
        naming: Names the entry in whatever is raised because of it.
    """
    scaling = ScaleTargets({}, {})
    # Where data flows, an object may be rendered differently later in the pass.
    settled = not any(entry.cells_filled for entry in entries)
    for entry in entries:
        if entry.scaler is None or entry.lifecycle not in {Lifecycle.MANAGED, Lifecycle.READ_ONLY}:
            continue
        with naming(entry):
            if settled:
                scaling.rendered[entry.identity] = entry.resource.render()
            target = entry.scaler.scale_target(scaling.rendered.get(entry.identity))
        if target is not None:
            scaling.targets[entry.identity] = target
    return scaling


def ignored_fields(entry: Registration, targets: dict[str, ScaleTarget]) -> tuple[tuple[str, ...], ...]:
    """Return the fields of a resource that are left to others: the declared ones, and those its scalers set.

    Args:
        entry: The entry.
        targets: What the component's scalers scale.
    """
    scaled = [target.path for target in targets.values() if _same_object(target.key, entry.resource.key)]
    return tuple(dict.fromkeys([*entry.options.ignore_fields, *scaled]))


def scalers_first(entries: Sequence[Registration], targets: dict[str, ScaleTarget]) -> list[Registration]:
    """Put every scaler directly before its target; everything else stays in order of registration.

    So does a scaler that reads data of its target, or of a resource between the two.

    Args:
        entries: The entries, in order of registration.
        targets: What the component's scalers scale.
    """
    ordered: list[Registration] = []
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
