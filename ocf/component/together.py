"""Several components of one owner in one pass, side by side."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ocf.component.component import Component
    from ocf.component.context import ReconcileContext
    from ocf.component.results import Result

__all__ = ["reconcile_all"]


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
    running: list[tuple[str, asyncio.Task[Result]]] = []
    for component in components:
        earlier = [task for condition_type, task in running if condition_type in component.awaits]
        running.append((component.condition_type, asyncio.create_task(_after(earlier, component, context))))
    tasks = [task for _, task in running]
    try:
        answers = await asyncio.gather(*tasks, return_exceptions=True)
    finally:
        context.arrange(component.condition_type for component in components)
    errors = [answer for answer in answers if isinstance(answer, Exception)]
    if errors:
        raise ExceptionGroup(f"{len(errors)} of {len(components)} components of {context.owned_by.key} failed", errors)
    return tuple(task.result() for task in tasks)


async def _after(earlier: list[asyncio.Task[Result]], component: Component, context: ReconcileContext) -> Result:
    if earlier:
        await asyncio.wait(earlier)
    return await component.reconcile(context)
