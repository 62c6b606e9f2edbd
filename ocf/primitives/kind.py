"""Declaration of a kind: its name in the API, its model, its mutator and its default handlers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

from ocf.concepts import ApplyOperation, GraceStatus, StatusReport, SuspensionStatus
from ocf.errors import FieldProblem, ManifestError
from ocf.objects import client_model, write_model
from ocf.primitives.mutator import BaseMutator

if TYPE_CHECKING:
    from pydantic import BaseModel

    from ocf.feature import PlainResult
    from ocf.objects import Manifest
    from ocf.objects.field_errors import FieldError

__all__ = ["GraceHandler", "Handlers", "Kind", "ModelT", "MutatorT", "StatusHandler", "StatusT", "SuspensionHandler"]

ModelT = TypeVar("ModelT", bound="BaseModel")
MutatorT = TypeVar("MutatorT", bound=BaseMutator)
StatusT = TypeVar("StatusT", bound=StrEnum)

StatusHandler = Callable[[ApplyOperation, ModelT], StatusReport[StatusT]]
GraceHandler = Callable[[ModelT], StatusReport[GraceStatus]]
SuspensionHandler = Callable[[ModelT], StatusReport[SuspensionStatus]]


def _accept(_manifest: Manifest) -> Iterator[FieldError]:
    """Yield no errors: the API server validates the object."""
    yield from ()


# Not slotted: a cached property needs a `__dict__`.
@dataclass(frozen=True)
class Kind(Generic[ModelT, MutatorT]):
    """A kind of object.

    Args:
        api_version: `autoscaling/v2`.
        name: The kind, `HorizontalPodAutoscaler`.
        model_name: Name of the client's model, which is loaded on first use.
        mutator: The mutator class, which declares the categories of edits and their order.
        cluster_scoped: Whether objects of the kind are cluster-scoped.
        validate: Yields why the API server would reject an object of the kind, or another part of the control plane
            would revert it; for its baseline and after each edit.
    """

    api_version: str
    name: str
    model_name: str
    mutator: type[MutatorT]
    cluster_scoped: bool = False
    validate: Callable[[Manifest], Iterator[FieldError]] = _accept

    @cached_property
    def model(self) -> type[ModelT]:
        """The client's model, loaded on first use."""
        return cast("type[ModelT]", client_model(self.model_name))

    def write(self, model: ModelT) -> Manifest:
        """Return a model as a manifest that the API server accepts, as far as the kind validates it.

        Raises:
            ManifestError: If the model contains an invalid value.
        """
        manifest = write_model(model)
        self.check(manifest)
        return manifest

    def check(self, manifest: Manifest) -> None:
        """Check a manifest with `validate`.

        Raises:
            ManifestError: With every error.
        """
        problems = [FieldProblem(error.path, error.message) for error in self.validate(manifest)]
        if problems:
            metadata = manifest.get("metadata") or {}
            place = [metadata.get(part) for part in ("namespace", "name")]
            raise ManifestError(f"{self.name} {'/'.join(part for part in place if part)}", problems)


def _default_grace(_live: Any) -> StatusReport[GraceStatus]:
    return StatusReport(GraceStatus.HEALTHY, "default grace status")


def _default_suspension(_live: Any) -> StatusReport[SuspensionStatus]:
    return StatusReport(SuspensionStatus.SUSPENDED, "default suspension status")


def _no_edit(_mutator: Any) -> None:
    """Record no edits: suspending this kind does not change the object."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Handlers(Generic[ModelT, MutatorT, StatusT]):
    """Status handlers and suspension of a kind.

    Args:
        status: Returns the status of the live object; None only for a kind without a status.
        grace: Returns the status of the live object after the grace period.
        suspend: Records the suspension edit, which runs once, after all mutations.
        suspension: Returns the suspension status of the live object.
        delete_on_suspend: Returns whether suspending deletes the object; called with a copy of the baseline. None
            means no.
    """

    status: StatusHandler[ModelT, StatusT] | None = None
    grace: GraceHandler[ModelT] | None = _default_grace
    suspend: Callable[[MutatorT], PlainResult] | None = _no_edit
    suspension: SuspensionHandler[ModelT] | None = _default_suspension
    delete_on_suspend: Callable[[ModelT], bool] | None = None
