"""Several components of one owner in one pass, side by side."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ocf.component.component import Component
    from ocf.component.model.context import ReconcileContext
    from ocf.component.status.results import Result

__all__ = ["reconcile_all", "reconcile_each"]


async def reconcile_all(context: ReconcileContext, *components: Component) -> tuple[Result, ...]:
    """Reconcile the components of one owner together.

    None waits for another, unless it depends on the condition of one that is given before it (`depends_on`): so it
    sees that condition as of this pass. What fails in one component leaves the others as they are.

    Args:
        context: The pass, from `reconciling`.
        components: In the order in which new conditions appear in the owner's status.

    Returns:
        What was done to each of them, in the same order.

    Raises:
        ExceptionGroup: With the error of every component that failed, once all of them are through.
    """
    answers = await reconcile_each(context, *components)
    errors = [answer for answer in answers if isinstance(answer, Exception)]
    if errors:
        raise ExceptionGroup(f"{len(errors)} of {len(components)} components of {context.owned_by.key} failed", errors)
    return tuple(answer for answer in answers if not isinstance(answer, Exception))


async def reconcile_each(context: ReconcileContext, *components: Component) -> tuple[Result | Exception, ...]:
    """Reconcile the components of one owner together, as `reconcile_all` does, and return errors with the results.

    Args:
        context: The pass, from `reconciling`.
        components: In the order in which new conditions appear in the owner's status.

    Returns:
        What was done to each of them, or what it failed with, in the same order.
    """
    running: list[tuple[str, asyncio.Task[Result]]] = []
    for component in components:
        earlier = [task for condition_type, task in running if condition_type in component.awaits]
        running.append((component.condition_type, asyncio.create_task(_after(earlier, component, context))))
    try:
        answers = await asyncio.gather(*(task for _, task in running), return_exceptions=True)
    finally:
        context.arrange(component.condition_type for component in components)
    return tuple(_answer(answer) for answer in answers)


def _answer(answer: Result | BaseException) -> Result | Exception:
    """Return what a component answered; what is no error of one, a cancellation for instance, is raised."""
    if isinstance(answer, BaseException) and not isinstance(answer, Exception):
        raise answer
    return answer


async def _after(earlier: list[asyncio.Task[Result]], component: Component, context: ReconcileContext) -> Result:
    if earlier:
        await asyncio.wait(earlier)
    return await component.reconcile(context)
