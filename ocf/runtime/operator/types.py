"""Types of the functions that an author writes for an operator, and the outcome of a reconcile."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TypeAlias, TypeVar

from ocf.cluster import Cluster
from ocf.component import CleanupPending, Component, FinalizationResult, ReconcileContext, Result
from ocf.component.status.results import ResourceOutcome

__all__ = ["Cleanup", "Components", "ReconcileOutcome", "Report"]

O = TypeVar("O")  # noqa: E741 (the owner)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReconcileOutcome:
    """Outcome of the reconcile of one owner, as the author's `report` gets it.

    Args:
        components: The owner's components; empty if an error occurred before they were known, or a deletion did not
            need them.
        results: Results of the components that were reconciled, by component name.
        errors: Errors of the components that failed, by component name.
        outcomes: Outcomes of the resources that were reached, by component name, also of components that failed. The
            action of a resource that failed is `Failed`, and its detail the reason.
        error: The error that the reconcile failed with; None if it succeeded.
        deleted: What the operator's functions have deleted with `context.children.delete`, in order.
        finalization: What the deletion still waits for if the owner is being deleted; else None. It waits for nothing
            if only the finalizer of another controller, or of the author's own, holds the owner.
    """

    components: tuple[Component, ...] = ()
    results: Mapping[str, Result] = field(default_factory=dict)
    errors: Mapping[str, Exception] = field(default_factory=dict)
    outcomes: Mapping[str, tuple[ResourceOutcome, ...]] = field(default_factory=dict)
    error: Exception | None = None
    deleted: tuple[ResourceOutcome, ...] = ()
    finalization: FinalizationResult | None = None

    @property
    def requeue_after(self) -> timedelta | None:
        """Delay until the next reconcile that components or the deletion ask for; None if they ask for none."""
        asked = [result.requeue_after for result in self.results.values()]
        asked += [self.finalization.requeue_after] if self.finalization is not None else []
        return min((delay for delay in asked if delay is not None), default=None)


_Found: TypeAlias = Iterable[Component] | Component
Components: TypeAlias = (
    Callable[[O], _Found | Awaitable[_Found]] | Callable[[O, ReconcileContext], _Found | Awaitable[_Found]]
)
"""Returns the components of an owner, one or several. It may be a coroutine function, and may take the context."""
Report: TypeAlias = Callable[[ReconcileContext, O, ReconcileOutcome], Awaitable[None] | None]
"""Sets fields and conditions of the owner's status; `context.requeue_after` asks for another reconcile."""
Cleanup: TypeAlias = Callable[[O, ReconcileContext, Cluster], Awaitable[CleanupPending | None]]
"""Deletes what was made for an owner outside of the cluster; returns None when that does not exist any more."""
