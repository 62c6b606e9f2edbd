"""Callbacks of an operator: functions and coroutine functions, called with the arguments that they accept."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from ocf.component import Component
from ocf.errors import ConfigError

if TYPE_CHECKING:
    from ocf.component import ReconcileContext
    from ocf.runtime.operator.types import Components, ReconcileOutcome, Report

__all__ = ["Callbacks"]

O = TypeVar("O")  # noqa: E741 (the owner)

_BOTH = 2


class Callbacks(Generic[O]):
    """The functions of an operator.

    Args:
        components: Returns the components of an owner.
        report: Sets the owner's status after a reconcile; None sets nothing.
    """

    def __init__(self, components: Components[O], report: Report[O] | None) -> None:
        self._components: Callable[..., Any] = components
        self._report: Callable[..., Any] | None = report
        self._takes_context = _positional(components) >= _BOTH

    async def components(self, owner: O, context: ReconcileContext) -> tuple[Component, ...]:
        """Return the components of an owner.

        Args:
            owner: The owner.
            context: The context of the reconcile.

        Raises:
            ConfigError: If the function returns something else.
        """
        answer = self._components(owner, context) if self._takes_context else self._components(owner)
        found = await answer if inspect.isawaitable(answer) else answer
        if isinstance(found, Component):
            return (found,)
        try:
            components = tuple(found)
        except TypeError:
            components = (found,)
        for one in components:
            if not isinstance(one, Component):
                name = getattr(self._components, "__qualname__", "the function")
                raise ConfigError(f"{name} must return components, got an object of type {type(one).__name__}")
        return components

    async def report(self, context: ReconcileContext, owner: O, outcome: ReconcileOutcome) -> timedelta | None:
        """Call `report` after a reconcile; return the delay until the next one.

        Args:
            context: The context of the reconcile.
            owner: The owner.
            outcome: The outcome of the reconcile.

        Raises:
            ConfigError: If the function returns something else.
        """
        if self._report is None:
            return None
        answer = self._report(context, owner, outcome)
        asked = await answer if inspect.isawaitable(answer) else answer
        if asked is not None and not isinstance(asked, timedelta):
            name = getattr(self._report, "__qualname__", "the report")
            raise ConfigError(f"{name} must return a timedelta or None, got an object of type {type(asked).__name__}")
        return asked


def _positional(function: Callable[..., Any]) -> int:
    """Return the number of required positional parameters of a function; 1 if its signature is unknown."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return 1
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return sum(one.kind in kinds and one.default is inspect.Parameter.empty for one in parameters)
