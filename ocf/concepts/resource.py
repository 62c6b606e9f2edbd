"""Protocols of a resource, one per capability.

A component checks which of these protocols a resource satisfies. Only `Resource` is mandatory; a resource without a
status is static and ready as soon as it exists. At most one of the three status protocols is used, checked in the order
alive, operational, completable.

Methods have no side effects, except that `extract_data` fills data cells: they take what was observed and return a
result. So a resource can be used by any number of reconciles, also concurrently. Live objects are passed as manifests;
a resource converts them to models for the handlers of its author.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple, Protocol, Self, runtime_checkable

from ocf.concepts.data import Data
from ocf.concepts.provenance import Provenance
from ocf.concepts.status import (
    AliveStatus,
    ApplyOperation,
    CompletionStatus,
    GraceStatus,
    GuardStatus,
    OperationalStatus,
    StatusReport,
    SuspensionStatus,
)
from ocf.objects import Manifest, ObjectKey
from ocf.objects.owned_paths import OwnedPath

__all__ = [
    "Alive",
    "Clearing",
    "Completable",
    "DataConsumer",
    "DataProducer",
    "DataRead",
    "Explainable",
    "Generating",
    "Graceful",
    "Guardable",
    "MutationInspector",
    "ObjectDefaults",
    "Operational",
    "PodSource",
    "Previewable",
    "Rendering",
    "Resource",
    "ResourceBuilder",
    "RunsOnce",
    "ScaleTarget",
    "Scaler",
    "Suspendable",
]


@runtime_checkable
class Resource(Protocol):
    """An object that a component manages or reads."""

    @property
    def key(self) -> ObjectKey:
        """The API version, kind, namespace and name of the object."""
        ...

    @property
    def identity(self) -> str:
        """The key as text, `apps/v1/Deployment/shop/backend`."""
        ...

    def render(self, *, suspended: bool = False, ignore_fields: Collection[tuple[str, ...]] = ()) -> Manifest:
        """Return the desired object: the baseline after all mutations that fire and the suspension edit, if requested.

        Args:
            suspended: Whether to apply the suspension edit.
            ignore_fields: Fields that another controller sets. Values from baseline and mutations are removed; only
                the suspension edit can set them.

        Raises:
            MutationError: If a mutation or an edit fails; the baseline is not changed.
        """
        ...


@dataclass(frozen=True, slots=True)
class ObjectDefaults:
    """What a component gives an object where its baseline has nothing.

    Args:
        namespace: Namespace of an object that is not cluster-scoped; empty for none.
        owner: The owner, whose name the object takes; None for no name. A cluster-scoped object does not take the name
            of an owner in a namespace, because owners of other namespaces may have the same name.
        selector: Labels that a selector of pods requires; empty for no selector.
        by_name: Whether kind and name suffice, because the component only reads, deletes or orphans the object.
    """

    namespace: str = ""
    owner: ObjectKey | None = None
    selector: Mapping[str, str] = field(default_factory=dict)
    by_name: bool = False


@runtime_checkable
class ResourceBuilder(Protocol):
    """A builder of a resource, which a component can complete and build."""

    def with_defaults(self, defaults: ObjectDefaults) -> Self:
        """Set what the object gets where its baseline has nothing."""
        ...

    def build(self) -> Resource:
        """Return the resource.

        Raises:
            BuildError: If any setting is invalid.
        """
        ...


@runtime_checkable
class Alive(Protocol):
    """A resource that runs until it is deleted."""

    def alive_status(self, operation: ApplyOperation, live: Manifest) -> StatusReport[AliveStatus]:
        """Return the status of the live object, given what this reconcile did to it."""
        ...


@runtime_checkable
class Operational(Protocol):
    """A resource that another controller makes operational."""

    def operational_status(self, operation: ApplyOperation, live: Manifest) -> StatusReport[OperationalStatus]:
        """Return the status of the live object, given what this reconcile did to it."""
        ...


@runtime_checkable
class Completable(Protocol):
    """A resource that runs to completion."""

    def completion_status(self, operation: ApplyOperation, live: Manifest) -> StatusReport[CompletionStatus]:
        """Return the status of the live object, given what this reconcile did to it."""
        ...


@runtime_checkable
class RunsOnce(Protocol):
    """A task that is not run again once it has finished, although its object may be deleted then."""

    @property
    def run_key(self) -> str:
        """The key of the run, a label value; another one is another run. Empty for a task that is not run once."""
        ...

    @property
    def expiry(self) -> tuple[tuple[str, ...], Any] | None:
        """A field and the value after which the object of a finished run may be deleted; None keeps it."""
        ...

    def run_of(self, live: Manifest) -> str:
        """Return the key of the run that the live object is; empty if it was created without one."""
        ...

    def has_finished(self, live: Manifest) -> bool:
        """Return whether the run has ended for good, with success or not."""
        ...


@runtime_checkable
class Graceful(Protocol):
    """A resource with a status after the grace period."""

    def grace_status(self, live: Manifest) -> StatusReport[GraceStatus]:
        """Return the status of the live object after the grace period; it must not depend on time."""
        ...


@runtime_checkable
class PodSource(Protocol):
    """A resource whose object may have pods, which say why it is not ready."""

    def pod_selector(self, live: Manifest) -> str:
        """Return the label selector of the pods of the live object; empty if it has none."""
        ...

    def lacks_pods(self, live: Manifest, pods: Sequence[Manifest]) -> bool:
        """Return whether the live object has fewer pods than it should have."""
        ...

    def pod_cause(self, pods: Sequence[Manifest]) -> str:
        """Return why pods are not ready; empty if that is not known."""
        ...

    def refusal_cause(self, events: Sequence[Manifest], now: datetime) -> str:
        """Return why no pods are created, by events about the live object; empty if that is not known."""
        ...


@runtime_checkable
class Suspendable(Protocol):
    """A resource that can be suspended."""

    def delete_on_suspend(self) -> bool:
        """Return whether suspending deletes the object; it must not depend on the live object."""
        ...

    def suspension_status(self, live: Manifest) -> StatusReport[SuspensionStatus]:
        """Return the suspension status of the live object."""
        ...


@runtime_checkable
class Guardable(Protocol):
    """A resource that may have to wait before it is reconciled."""

    def guard_status(self) -> StatusReport[GuardStatus]:
        """Return whether the resource may be reconciled now."""
        ...


@dataclass(frozen=True, slots=True)
class DataRead:
    """A declared read of a cell.

    Args:
        optional: Whether the data is optional; a required read blocks the resource until the cell is set.
    """

    cell: Data[Any]
    optional: bool = False


@runtime_checkable
class DataProducer(Protocol):
    """A resource that fills data cells from the live object."""

    @property
    def produced_data(self) -> Sequence[Data[Any]]:
        """The cells it fills, each once, in order of declaration."""
        ...

    def extract_data(self, live: Manifest) -> None:
        """Fill the cells, in order of declaration, up to the first failure."""
        ...


@runtime_checkable
class DataConsumer(Protocol):
    """A resource that reads data cells."""

    @property
    def consumed_data(self) -> Sequence[DataRead]:
        """The declared reads, in order of declaration."""
        ...


@dataclass(frozen=True, slots=True)
class ScaleTarget:
    """The target of a scaler.

    Args:
        key: The object that is scaled.
        path: The field of the object that the scaler sets, in API spelling.
    """

    key: ObjectKey
    path: tuple[str, ...] = ("spec", "replicas")


@runtime_checkable
class Scaler(Protocol):
    """A resource that sets the replica count of another resource, which therefore is an ignored field of the latter."""

    def scale_target(self, rendered: Manifest | None = None) -> ScaleTarget | None:
        """Return the scale target; None while there is no target.

        Args:
            rendered: The object as rendered in this reconcile; None if it was not rendered yet.
        """
        ...


class Rendering(NamedTuple):
    """A rendered object, and the fields that its edits have set to None.

    Attributes:
        manifest: The object; it does not have these fields.
        cleared: The places of the fields.
    """

    manifest: Manifest
    cleared: tuple[OwnedPath, ...] = ()


@runtime_checkable
class Clearing(Protocol):
    """A resource whose edits clear fields, whichever client set them in the live object."""

    def rendering(self, *, suspended: bool = False, ignore_fields: Collection[tuple[str, ...]] = ()) -> Rendering:
        """Return what `render` returns for the same arguments, with the fields that are cleared.

        Args:
            suspended: Whether the suspended form is rendered.
            ignore_fields: Ignored fields, which are not cleared.
        """
        ...


@runtime_checkable
class Generating(Protocol):
    """A resource with values that are generated once, and that the object keeps."""

    @property
    def generated(self) -> Mapping[tuple[str, ...], Callable[[], Mapping[tuple[str, ...], Any]]]:
        """The fields, and the function that returns a new value of each, as JSON, by field; an error quotes no value.

        Fields with the same function are generated together.
        """
        ...


@runtime_checkable
class MutationInspector(Protocol):
    """A resource that lists its mutations and those that fire; for tests and tools."""

    @property
    def registered_mutations(self) -> Sequence[str]:
        """Names of all mutations, in order of registration, whether their gates are open or not."""
        ...

    def firing_set(self) -> Sequence[str]:
        """Return the names of the mutations whose gate is absent or enabled, in order of registration."""
        ...


@runtime_checkable
class Previewable(Protocol):
    """A resource whose rendered object can be read as a model; for tests and tools."""

    def preview(self, *, ignore_fields: Collection[tuple[str, ...]] = ()) -> Any:
        """Return what `render` returns for the same arguments, as a model of the client.

        Args:
            ignore_fields: Ignored fields.
        """
        ...


@runtime_checkable
class Explainable(Protocol):
    """A resource that reports the source of each field of its rendered object."""

    def explain(self, *, suspended: bool = False, ignore_fields: Collection[tuple[str, ...]] = ()) -> Provenance:
        """Return the provenance of the object that `render` returns for the same arguments.

        Args:
            suspended: Whether to apply the suspension edit.
            ignore_fields: Fields that another controller sets.

        Raises:
            MutationError: If a mutation or an edit fails.
        """
        ...
