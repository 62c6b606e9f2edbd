"""Concurrent reconciles of several components of one owner."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from ocf.component.component import Component
from ocf.component.context import ReconcileContext
from ocf.component.model.registration import shared_problem
from ocf.component.model.resource_options import Lifecycle
from ocf.component.status.results import Result
from ocf.errors import ConfigError

__all__ = ["reconcile_all", "reconcile_each", "reject_duplicates", "reject_shared"]


async def reconcile_all(context: ReconcileContext, *components: Component) -> tuple[Result, ...]:
    """Reconcile the components of one owner concurrently.

    A resource may be managed by one of them only: if two register it, both fail and name each other. A resource that
    was moved from one to another is neither deleted nor orphaned by the one that managed it before.

    A component waits only for the components before it on whose conditions it depends (`depends_on`), so that it sees
    their conditions of this reconcile. An error in one component does not affect the others.

    Args:
        context: The reconcile of the owner, from `reconciling`.
        components: The components, in the order in which new conditions appear in the owner's status.

    Returns:
        Their results, in the same order.

    Raises:
        ExceptionGroup: With the error of every component that failed, after all components were reconciled.
        ConfigError: If two components have the same name or the same condition type, or another operator of this
            process sets a condition of this type; nothing was reconciled.
    """
    results = await reconcile_each(context, *components)
    errors = [result for result in results if isinstance(result, Exception)]
    if errors:
        raise ExceptionGroup(f"{len(errors)} of {len(components)} components of {context.owned_by.key} failed", errors)
    return tuple(result for result in results if not isinstance(result, Exception))


async def reconcile_each(context: ReconcileContext, *components: Component) -> tuple[Result | Exception, ...]:
    """Reconcile the components of one owner concurrently, as `reconcile_all` does, and return errors with the results.

    Args:
        context: The reconcile of the owner, from `reconciling`.
        components: The components, in the order in which new conditions appear in the owner's status.

    Returns:
        The result or the error of each component, in the same order.

    Raises:
        ConfigError: If two components have the same name or the same condition type, or another operator of this
            process sets a condition of this type; nothing was reconciled.
    """
    reject_duplicates(components)
    # Before anything is applied, and not only when the conditions are set.
    context.claim_conditions(component.condition_type for component in components if component.published)
    for component in components:
        component.announce(context)
    running: list[tuple[str, asyncio.Task[Result]]] = []
    for component in components:
        earlier = [task for condition_type, task in running if condition_type in component.awaits]
        running.append((component.condition_type, asyncio.create_task(_after(earlier, component, context))))
    try:
        results = await asyncio.gather(*(task for _, task in running), return_exceptions=True)
    finally:
        context.arrange(component.condition_type for component in components)
    return tuple(_result(result) for result in results)


def reject_duplicates(components: Sequence[Component]) -> None:
    """Check that the components of one owner have different names and different condition types."""
    names: set[str] = set()
    by_type: dict[str, str] = {}
    for component in components:
        if component.name in names:
            raise ConfigError(
                f'two components of one owner are named "{component.name}": each needs a name of its own, because it is'
                " the field manager of its objects"
            )
        names.add(component.name)
        other = by_type.setdefault(component.condition_type, component.name) if component.published else component.name
        if other != component.name:
            example = f"{''.join(part.capitalize() for part in component.name.split('-'))}Ready"
            raise ConfigError(
                f'components "{other}" and "{component.name}" of one owner have the same condition type'
                f' "{component.condition_type}": each would overwrite the condition of the other one. Give each a type'
                f' of its own, such as Builder(..., condition_type="{example}"), and one condition'
                " for all with `context.aggregate` in `report`"
            )


def reject_shared(components: Sequence[Component]) -> None:
    """Check that no resource is managed by two components of one owner whose gates are open.

    A reconcile finds this as well, and then only these components fail; this is for what shows components without one.
    """
    managers: dict[tuple[str, str, str, str], str] = {}
    for component in components:
        if component.gate is not None and not component.gate.enabled():
            continue
        for entry in (*component.entries, *component.external):
            if entry.options.lifecycle is not Lifecycle.MANAGED:
                continue
            other = managers.setdefault(entry.unversioned, component.name)
            if other != component.name:
                raise ConfigError(shared_problem(entry, component.name, other))


def _result(result: Result | BaseException) -> Result | Exception:
    """Return the result or error of a component; raise what is not an `Exception`, such as a cancellation."""
    if isinstance(result, BaseException) and not isinstance(result, Exception):
        raise result
    return result


async def _after(earlier: list[asyncio.Task[Result]], component: Component, context: ReconcileContext) -> Result:
    if earlier:
        await asyncio.wait(earlier)
    return await component.reconcile(context)
