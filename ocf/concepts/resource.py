"""What a resource can be: small protocols, one per concept.

A component finds out what a resource can do by asking which of these it satisfies. Only `Resource` is mandatory; one
that reports no status is static and ready by existing. Of the three status concepts a resource has at most one that
counts, tried in the order alive, operational, completable.

Every method is pure: it takes what was observed and returns an answer, so a resource can be used for any number of
passes and by several at once. Live objects come as manifests; a resource turns them into models for the handlers its
author wrote.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

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

__all__ = [
    "Alive",
    "Completable",
    "DataConsumer",
    "DataProducer",
    "DataRead",
    "Explainable",
    "Graceful",
    "Guardable",
    "MutationInspector",
    "Operational",
    "Previewable",
    "Resource",
    "ScaleTarget",
    "Scaler",
    "Suspendable",
]


@runtime_checkable
class Resource(Protocol):
    """An object that a component wants to exist."""

    @property
    def key(self) -> ObjectKey:
        """What the object is called."""
        ...

    @property
    def identity(self) -> str:
        """The key as text, `apps/v1/Deployment/shop/backend`."""
        ...

    def render(self, *, suspended: bool = False, ignore_fields: Collection[tuple[str, ...]] = ()) -> Manifest:
        """Return the desired object: the baseline, all mutations that fire, and last the suspension edit if asked for.

        Args:
            suspended: Whether the suspension edit is wanted.
            ignore_fields: Fields that another writer sets. What baseline and mutations set there is dropped; only the
                suspension edit may still set them.

        Raises:
            MutationError: If a mutation or an edit fails; the baseline is as before.
        """
        ...


@runtime_checkable
class Alive(Protocol):
    """Runs for as long as it is wanted."""

    def alive_status(self, operation: ApplyOperation, live: Manifest) -> StatusReport[AliveStatus]:
        """Judge the live object, knowing what this pass did to it."""
        ...


@runtime_checkable
class Operational(Protocol):
    """Depends on another controller to come to life."""

    def operational_status(self, operation: ApplyOperation, live: Manifest) -> StatusReport[OperationalStatus]:
        """Judge the live object, knowing what this pass did to it."""
        ...


@runtime_checkable
class Completable(Protocol):
    """Runs to its end."""

    def completion_status(self, operation: ApplyOperation, live: Manifest) -> StatusReport[CompletionStatus]:
        """Judge the live object, knowing what this pass did to it."""
        ...


@runtime_checkable
class Graceful(Protocol):
    """Can say how bad it is once the grace period is over."""

    def grace_status(self, live: Manifest) -> StatusReport[GraceStatus]:
        """Judge the live object; no timing belongs in here."""
        ...


@runtime_checkable
class Suspendable(Protocol):
    """Can be put to sleep."""

    def delete_on_suspend(self) -> bool:
        """Return whether suspending deletes the object; must not depend on the live object."""
        ...

    def suspension_status(self, live: Manifest) -> StatusReport[SuspensionStatus]:
        """Judge how far the live object is from being suspended."""
        ...


@runtime_checkable
class Guardable(Protocol):
    """May have to wait for something before it is reconciled."""

    def guard_status(self) -> StatusReport[GuardStatus]:
        """Tell whether the resource may be reconciled now."""
        ...


@dataclass(frozen=True, slots=True)
class DataRead:
    """A declared read of a cell.

    Args:
        cell: The cell.
        optional: Whether the resource can do without; a read that is not optional blocks until the cell is set.
    """

    cell: Data[Any]
    optional: bool = False


@runtime_checkable
class DataProducer(Protocol):
    """Fills data cells from the live object."""

    @property
    def produced_data(self) -> Sequence[Data[Any]]:
        """The cells it fills, each once, in order of declaration."""
        ...

    def extract_data(self, live: Manifest) -> None:
        """Fill the cells, in order of declaration; the first failure stops."""
        ...


@runtime_checkable
class DataConsumer(Protocol):
    """Reads data cells."""

    @property
    def consumed_data(self) -> Sequence[DataRead]:
        """The declared reads, in order of declaration."""
        ...


@dataclass(frozen=True, slots=True)
class ScaleTarget:
    """What a scaler scales.

    Args:
        key: The object that has a scale.
        path: The field that the scaler sets in it, in API spelling.
    """

    key: ObjectKey
    path: tuple[str, ...] = ("spec", "replicas")


@runtime_checkable
class Scaler(Protocol):
    """Sets the count of another resource: that field is the scaler's, and no write of ours sets it."""

    def scale_target(self, rendered: Manifest | None = None) -> ScaleTarget | None:
        """Return what it scales; None while it scales nothing.

        Args:
            rendered: The object as rendered in this pass; None where it was not rendered yet.
        """
        ...


@runtime_checkable
class MutationInspector(Protocol):
    """Tells which mutations it has, and which of them fire; for tests and tools."""

    @property
    def registered_mutations(self) -> Sequence[str]:
        """All names, in order of registration, whatever their gates say."""
        ...

    def firing_set(self) -> Sequence[str]:
        """Names whose gate is absent or enabled, in order of registration."""
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
    """Tells who set each field of its rendered object; for people and tools."""

    def explain(self, *, suspended: bool = False, ignore_fields: Collection[tuple[str, ...]] = ()) -> Provenance:
        """Explain what `render` returns for the same arguments.

        Args:
            suspended: Whether the suspension edit is wanted.
            ignore_fields: Fields that somebody else sets.

        Raises:
            MutationError: If a mutation or an edit fails.
        """
        ...
