"""Registered resources of a component, their concepts, and their order."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import cache
from typing import Any, Final, NamedTuple, TypeGuard

from ocf.component.model.common_metadata import NO_METADATA, CommonMetadata
from ocf.component.model.resource_options import EffectiveOptions, Lifecycle
from ocf.concepts import (
    Alive,
    Completable,
    Data,
    DataConsumer,
    DataProducer,
    Graceful,
    Guardable,
    Operational,
    Resource,
    Scaler,
    ScaleTarget,
    Suspendable,
)
from ocf.concepts.external import GROUP, ExternalResource
from ocf.concepts.resource import (
    Clearing,
    Generating,
    MutationInspector,
    PodSource,
    Previewable,
    Rendering,
    ResourceBuilder,
    RunsOnce,
)
from ocf.lazy_types.signatures import annotated_names
from ocf.objects import Manifest, ObjectKey
from ocf.objects.manifest import split_api_version
from ocf.objects.owned_paths import OwnedPath
from ocf.schema.builtin import builtin_resource

__all__ = [
    "Registration",
    "ScaleTargets",
    "find_scale_targets",
    "is_builder",
    "is_resource",
    "scalers_first",
    "shared_problem",
]

_CONCEPTS: Final[Mapping[str, object]] = {
    "alive": Alive,
    "operational": Operational,
    "completable": Completable,
    "once": RunsOnce,
    "graceful": Graceful,
    "guardable": Guardable,
    "suspendable": Suspendable,
    "pod_source": PodSource,
    "producer": DataProducer,
    "consumer": DataConsumer,
    "scaler": Scaler,
    "inspector": MutationInspector,
    "previewable": Previewable,
    "clearing": Clearing,
    "generating": Generating,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Registration:
    """A registered resource, its options and its concepts.

    A resource is a value, so everything here is computed once, when it is registered, and not in every reconcile.

    Args:
        label: Value of the `resource` label of metrics: the one that the author set, or the kind in lower case.
        cells_read: Data cells that it reads, optional ones included.
        alive: The resource, if it has the concept; likewise the others.
        once: The resource, if it is a task with the key of a run.
        external: The resource, if it is outside of the cluster.
        place: Its place in the order of registration, among objects and external resources.
    """

    resource: Resource
    options: EffectiveOptions
    key: ObjectKey
    unversioned: tuple[str, str, str, str]
    identity: str
    label: str
    cells_read: frozenset[Data[Any]] = frozenset()
    cells_filled: frozenset[Data[Any]] = frozenset()
    common: CommonMetadata = NO_METADATA
    alive: Alive | None = None
    operational: Operational | None = None
    completable: Completable | None = None
    once: RunsOnce | None = None
    graceful: Graceful | None = None
    guardable: Guardable | None = None
    suspendable: Suspendable | None = None
    pod_source: PodSource | None = None
    producer: DataProducer | None = None
    consumer: DataConsumer | None = None
    scaler: Scaler | None = None
    inspector: MutationInspector | None = None
    previewable: Previewable | None = None
    clearing: Clearing | None = None
    generating: Generating | None = None
    external: ExternalResource[Any, Any] | None = None
    place: int = 0

    @classmethod
    def of(
        cls, resource: Resource, options: EffectiveOptions, *, common: CommonMetadata = NO_METADATA, place: int = 0
    ) -> Registration:
        """Register a resource."""
        # A class that has a concept has all of its members, so the resource can be given as each of them.
        concepts: dict[str, Any] = dict.fromkeys(_concepts_of(type(resource)), resource)
        if "once" in concepts and not ("completable" in concepts and concepts["once"].run_key):
            del concepts["once"]
        producer: DataProducer | None = concepts.get("producer")
        consumer: DataConsumer | None = concepts.get("consumer")
        key = resource.key
        external = resource if isinstance(resource, ExternalResource) else None
        metrics_identifier: str = getattr(resource, "metrics_identifier", "")
        return cls(
            resource=resource,
            options=options,
            key=key,
            # No object of the cluster has this group, whatever its kind is called.
            unversioned=key.unversioned if external is None else (GROUP, *key.unversioned[1:]),
            identity=resource.identity,
            label=metrics_identifier.strip() or key.kind.lower(),
            cells_read=frozenset(read.cell for read in consumer.consumed_data) if consumer else frozenset(),
            cells_filled=frozenset(producer.produced_data) if producer else frozenset(),
            common=common,
            external=external,
            place=place,
            **concepts,
        )

    @property
    def awaits_deletion(self) -> bool:
        """Whether its object is left alone while it is being deleted, and created again after that.

        Any other object goes on as it is declared: it may be in use for as long as a finalizer holds it, and its
        controller may need a correction to let it go. The controllers of the workloads of Kubernetes ignore the spec
        of one that is being deleted, and a member of a rollout would be changed out of its turn. One that is only
        updated is not created again, and its labels select it to the end.
        """
        options, key = self.options, self.key
        if options.updates_only:
            return False
        if options.recreates or options.rollout is not None:
            return True
        is_builtin = builtin_resource(*split_api_version(key.api_version), key.kind) is not None
        return self.alive is not None and is_builtin

    def render(self, *, suspended: bool = False, ignore_fields: Collection[tuple[str, ...]] = ()) -> Manifest:
        """Return the desired object, with the labels and annotations that the component adds."""
        return self.rendering(suspended=suspended, ignore_fields=ignore_fields).manifest

    def rendering(self, *, suspended: bool = False, ignore_fields: Collection[tuple[str, ...]] = ()) -> Rendering:
        """Return the desired object, and the fields that its edits clear."""
        cleared: tuple[OwnedPath, ...] = ()
        rendered: Any
        if self.clearing is not None:
            rendered, cleared = self.clearing.rendering(suspended=suspended, ignore_fields=ignore_fields)
        else:
            rendered = self.resource.render(suspended=suspended, ignore_fields=ignore_fields)
        # A resource of the user's own may return anything; the caller checks it.
        if self.common and isinstance(rendered, dict):
            rendered = self.common.added_to(rendered, ignore_fields)
        return Rendering(rendered, cleared)

    @property
    def generated(self) -> Mapping[tuple[str, ...], Callable[[], Mapping[tuple[str, ...], Any]]]:
        """The fields whose values are generated once, and the source of each, as of `Generating`."""
        return self.generating.generated if self.generating is not None else {}

    def generated_beside(self, declared: Callable[[tuple[str, ...]], object]) -> list[tuple[str, ...]]:
        """Return the fields that are generated: none with a declared value, nor what belongs together with one."""
        left_out = [source for path, source in self.generated.items() if declared(path) is not None]
        return [path for path, source in self.generated.items() if source not in left_out]

    @property
    def is_nowhere(self) -> bool:
        """Whether it is an external resource without a target."""
        return self.external is not None and self.external.targets == ()

    @property
    def lifecycle(self) -> Lifecycle:
        """What the component does with its object."""
        return self.options.lifecycle


def is_resource(value: object) -> bool:
    """Return whether a value is a resource."""
    return _satisfies(type(value), Resource) or isinstance(value, Resource)  # type: ignore[arg-type]  # it is hashable


def is_builder(value: object) -> TypeGuard[ResourceBuilder]:
    """Return whether a value is the builder of a resource."""
    kind = type(value)
    # Checking an instance takes as long as building a small resource, and most values are resources.
    return _satisfies(kind, ResourceBuilder) or (not _satisfies(kind, Resource) and isinstance(value, ResourceBuilder))  # type: ignore[arg-type]  # they are hashable


@cache
def _concepts_of(kind: type) -> tuple[str, ...]:
    """Return the names of the fields of a registration for the concepts that a class of resources has."""
    names = tuple(name for name, concept in _CONCEPTS.items() if _satisfies(kind, concept))
    if _definer(kind, "render") is _definer(kind, "rendering"):
        return names
    # A class of the user's own that changes what a primitive renders.
    return tuple(name for name in names if name != "clearing")


def _definer(kind: type, method: str) -> type | None:
    """Return the class of which an object of another class has a method."""
    return next((base for base in kind.__mro__ if method in vars(base)), None)


@cache
def _satisfies(kind: type, concept: object) -> bool:
    """Return whether a class has the members of a concept; checking an instance would evaluate its properties."""
    declared = {name for base in kind.__mro__ for name in annotated_names(base)}
    members = [name for name in vars(concept) if not name.startswith("_")]
    return all(hasattr(kind, member) or member in declared for member in members)


class ScaleTargets(NamedTuple):
    """Targets of the scalers of a component.

    Attributes:
        targets: Target of each scaler, by identity of the scaler.
        rendered: The scalers that were rendered to find their targets, by identity; empty if data cells may still
            change how they are rendered.
        ignored: Ignored fields of each scaled resource, declared ones included, by identity.
    """

    targets: dict[str, ScaleTarget]
    rendered: dict[str, Rendering]
    ignored: dict[str, tuple[tuple[str, ...], ...]]


def find_scale_targets(
    entries: Sequence[Registration], naming: Callable[[Registration], AbstractContextManager[None]]
) -> ScaleTargets:
    """Return the targets of the scalers among the entries, read-only scalers included."""
    scaling = ScaleTargets({}, {}, {})
    # A data cell that is filled later in the reconcile may change how an object is rendered.
    is_final = not any(entry.cells_filled for entry in entries)
    for entry in entries:
        if entry.scaler is None or entry.options.lifecycle not in {Lifecycle.MANAGED, Lifecycle.READ_ONLY}:
            continue
        if getattr(entry.resource, "is_reference", False):
            # Only the metadata of an autoscaler is updated, which others have made for a target of theirs.
            continue
        with naming(entry):
            if is_final:
                scaling.rendered[entry.identity] = entry.rendering()
            known = scaling.rendered.get(entry.identity)
            target = entry.scaler.scale_target(known.manifest if known is not None else None)
        if target is not None:
            scaling.targets[entry.identity] = target
            unversioned = target.key.unversioned
            for other in entries:
                # A count that is set once is sent at creation, and ignored from then on in any case.
                if other.unversioned == unversioned and target.path not in other.options.set_once:
                    before = scaling.ignored.get(other.identity, other.options.ignore_fields)
                    scaling.ignored[other.identity] = tuple(dict.fromkeys([*before, target.path]))
    return scaling


def scalers_first(entries: Sequence[Registration], targets: dict[str, ScaleTarget]) -> list[Registration]:
    """Return the entries with every scaler directly before its target, and otherwise in order of registration.

    A scaler that reads data of its target, or of a resource between the two, keeps its place.
    """
    ordered: list[Registration] = []
    waiting = list(entries)
    while waiting:
        entry = waiting.pop(0)
        scalers = [
            other
            for at, other in enumerate(waiting)
            if (target := targets.get(other.identity))
            and target.key.unversioned == entry.unversioned
            and other.cells_read.isdisjoint(*(earlier.cells_filled for earlier in (entry, *waiting[:at])))
        ]
        waiting = [other for other in waiting if other not in scalers]
        ordered += [*scalers, entry]
    return ordered


def shared_problem(entry: Registration, name: str, other: str) -> str:
    """Return the problem of a resource that two components of one owner manage, and what to do."""
    return (
        f'resource {entry.identity} is managed by component "{name}" and by component "{other}": '
        "register it in one of them, and in the other one with read_only or delete_when, if at all"
    )
