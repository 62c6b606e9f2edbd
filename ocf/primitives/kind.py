"""What a kind declares: its name in the API, its model, its mutator, and the handlers it starts with."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

from ocf.concepts import ApplyOperation, GraceStatus, StatusReport, SuspensionStatus
from ocf.objects import client_model
from ocf.primitives.mutator import BaseMutator

if TYPE_CHECKING:
    from pydantic import BaseModel

__all__ = ["GraceHandler", "Handlers", "Kind", "ModelT", "MutatorT", "StatusHandler", "StatusT", "SuspensionHandler"]

ModelT = TypeVar("ModelT", bound="BaseModel")
MutatorT = TypeVar("MutatorT", bound=BaseMutator)
StatusT = TypeVar("StatusT", bound=StrEnum)

StatusHandler = Callable[[ApplyOperation, ModelT], StatusReport[StatusT]]
GraceHandler = Callable[[ModelT], StatusReport[GraceStatus]]
SuspensionHandler = Callable[[ModelT], StatusReport[SuspensionStatus]]


# Not slotted: a cached property needs a `__dict__`.
@dataclass(frozen=True)
class Kind(Generic[ModelT, MutatorT]):
    """A kind of object.

    Args:
        api_version: `autoscaling/v2`.
        name: The kind, `HorizontalPodAutoscaler`.
        model_name: The client's model; loaded when first used.
        mutator: The mutator class, which declares the categories of edits and their order.
        cluster_scoped: Whether objects of the kind live outside namespaces.
    """

    api_version: str
    name: str
    model_name: str
    mutator: type[MutatorT]
    cluster_scoped: bool = False

    @cached_property
    def model(self) -> type[ModelT]:
        """The client's model, loaded on first use."""
        return cast("type[ModelT]", client_model(self.model_name))


def _default_grace(_live: Any) -> StatusReport[GraceStatus]:
    return StatusReport(GraceStatus.HEALTHY, "default grace status")


def _default_suspension(_live: Any) -> StatusReport[SuspensionStatus]:
    return StatusReport(SuspensionStatus.SUSPENDED, "default suspension status")


def _no_edit(_mutator: Any) -> None:
    """Suspending this kind changes nothing in the object."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Handlers(Generic[ModelT, MutatorT, StatusT]):
    """How the state of a kind is judged and how it is suspended.

    Args:
        status: Judges the live object; None only for a kind without a status concept.
        grace: Judges it once the grace period is over.
        suspend: Records the suspension edit; it runs once, after all mutations.
        suspension: Judges how far the live object is from being suspended.
        delete_on_suspend: Whether suspending means deleting; asked with a copy of the baseline. None means no.
    """

    status: StatusHandler[ModelT, StatusT] | None = None
    grace: GraceHandler[ModelT] | None = _default_grace
    suspend: Callable[[MutatorT], object] | None = _no_edit
    suspension: SuspensionHandler[ModelT] | None = _default_suspension
    delete_on_suspend: Callable[[ModelT], bool] | None = None
