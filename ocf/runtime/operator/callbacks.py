"""Callbacks of an operator: functions and coroutine functions, called with the arguments that they accept."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from ocf.component import CleanupPending, Component
from ocf.component.external.records import FIELD, REMEDY
from ocf.component.reconcile_components import reject_duplicates
from ocf.errors import ConfigError
from ocf.lazy_types.signatures import required_parameters

if TYPE_CHECKING:
    from ocf.component import ReconcileContext
    from ocf.runtime.operator.owner_type import OwnerType
    from ocf.runtime.operator.types import Cleanup, Components, ReconcileOutcome, Report

__all__ = ["Callbacks", "takes_context"]

O = TypeVar("O")  # noqa: E741 (the owner)


_BOTH = 2


class Callbacks(Generic[O]):
    """The functions of an operator.

    Args:
        owner: The kind of the owners.
        components: Returns the components of an owner.
        report: Sets the owner's status after a reconcile; None sets nothing.
        on_delete: Deletes what was made for an owner outside of the cluster; None if nothing is.
    """

    def __init__(
        self,
        owner: OwnerType[O],
        components: Components[O],
        report: Report[O] | None,
        on_delete: Cleanup[O] | None,
    ) -> None:
        self._owner = owner
        self._components: Callable[..., Any] = components
        self._report: Callable[..., Any] | None = report
        self._on_delete: Callable[..., Any] | None = on_delete
        self._takes_context = takes_context(components)

    @property
    def takes_context(self) -> bool:
        """Whether the function that returns the components takes the context of a reconcile."""
        return self._takes_context

    async def components(self, owner: O, context: ReconcileContext | None) -> tuple[Component, ...]:
        """Return the components of an owner.

        Args:
            context: The context of the reconcile; None only if the function does not take it.
        """
        answer = self._components(owner, context) if self._takes_context else self._components(owner)
        found = await answer if inspect.isawaitable(answer) else answer
        try:
            components = (found,) if isinstance(found, Component) else tuple(found)
        except TypeError:
            components = (found,)
        for one in components:
            if not isinstance(one, Component):
                name = getattr(self._components, "__qualname__", "the function")
                raise ConfigError(f"{name} must return components, got an object of type {type(one).__name__}")
        reject_duplicates(components)
        # An owner that is being deleted has to find what it has made.
        if context is None or not context.is_ending:
            self._require_records(components)
        return components

    def _require_records(self, components: Sequence[Component]) -> None:
        """Reject external resources of an owner whose status cannot hold their records."""
        made = [entry for component in components if component.makes_external for entry in component.external]
        if made and not self._owner.may_store(FIELD):
            raise ConfigError(
                f"{made[0].identity} has to be recorded in status.{FIELD} of {self._owner.kind}, whose definition has "
                f"no such field: {REMEDY}"
            )

    async def report(self, context: ReconcileContext, owner: O, outcome: ReconcileOutcome) -> None:
        """Call `report` after a reconcile."""
        if self._report is None:
            return
        answer = self._report(context, owner, outcome)
        found = await answer if inspect.isawaitable(answer) else answer
        if found is not None:
            name, kind = getattr(self._report, "__qualname__", "the report"), type(found).__name__
            remedy = "ask for another reconcile with `context.requeue_after(...)`"
            raise ConfigError(f"{name} must return None, got an object of type {kind}: {remedy}")

    async def on_delete(self, owner: O, context: ReconcileContext) -> CleanupPending | None:
        """Call `on_delete` for an owner that is being deleted; return what it waits for, or None once it is done."""
        if self._on_delete is None:
            return None
        answer = self._on_delete(owner, context, context.cluster)
        pending = await answer if inspect.isawaitable(answer) else answer
        if pending is not None and not isinstance(pending, CleanupPending):
            name = getattr(self._on_delete, "__qualname__", "on_delete")
            kind = type(pending).__name__
            raise ConfigError(f"{name} must return CleanupPending or None, got an object of type {kind}")
        return pending


def takes_context(function: Callable[..., Any]) -> bool:
    """Return whether a function that returns components takes the context of a reconcile after the owner."""
    return required_parameters(function) >= _BOTH
