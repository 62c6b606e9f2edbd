"""Taking away what a component no longer wants: deleting what is ours, and letting go of what is to stay.

Nothing is deleted that does not exist, that is going already, or that is not ours; and what is deleted is the very
object that was looked at, by its uid and resourceVersion. Every entry is tried; the errors are gathered.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from typing import TYPE_CHECKING

from ocf.component.passes import Pass, joined
from ocf.component.results import Action, Outcome
from ocf.errors import ReconcileError
from ocf.objects import get_field

if TYPE_CHECKING:
    from ocf.component.entries import Entry

__all__ = ["delete_all", "release_all"]


async def delete_all(entries: Iterable[Entry], current: Pass, reason: str) -> list[Outcome]:
    """Delete the objects of resources.

    Args:
        entries: The resources.
        current: The pass.
        reason: Why, for people.

    Returns:
        What was done.

    Raises:
        ReconcileError: With every error, after every entry was tried.
    """

    async def delete(entry: Entry) -> Outcome:
        managed = current.object_of(entry)
        live = await managed.get()
        if live is None:
            return Outcome(resource=entry.identity, action=Action.ABSENT)
        if get_field(live, ("metadata", "deletionTimestamp")) is not None:
            return Outcome(resource=entry.identity, action=Action.UNCHANGED)
        if not managed.is_ours(live):
            controller = current.context.owned_by.foreign_controller(live)
            why = f"controlled by {controller}" if controller else "not ours"
            return Outcome(resource=entry.identity, action=Action.KEPT, reasons=(why,))
        await managed.delete(live)
        return Outcome(resource=entry.identity, action=Action.DELETED, writes=1, reasons=(reason,))

    return await _each(entries, current, delete)


async def release_all(entries: Iterable[Entry], current: Pass) -> list[Outcome]:
    """Take our owner reference off the objects of resources, and keep them.

    Args:
        entries: The resources.
        current: The pass.

    Returns:
        What was done.

    Raises:
        ReconcileError: With every error, after every entry was tried.
    """

    async def release(entry: Entry) -> Outcome:
        managed = current.object_of(entry)
        live = await managed.get()
        if live is None:
            return Outcome(resource=entry.identity, action=Action.ABSENT)
        if not current.context.owned_by.references(live):
            return Outcome(resource=entry.identity, action=Action.UNCHANGED)
        await managed.release(live)
        return Outcome(resource=entry.identity, action=Action.ORPHANED, writes=1, reasons=("owner reference removed",))

    return await _each(entries, current, release)


async def _each(entries: Iterable[Entry], current: Pass, work: Callable[[Entry], Awaitable[Outcome]]) -> list[Outcome]:
    outcomes: list[Outcome] = []
    errors: list[ReconcileError] = []
    for entry in entries:
        try:
            outcomes.append(await work(entry))
        except ReconcileError as error:
            errors.append(error)
    if errors:
        raise joined(current.component, errors) from errors[0]
    return outcomes
