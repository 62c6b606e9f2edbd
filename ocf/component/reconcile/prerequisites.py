"""What a component waits for before it does anything at all."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from typing import TYPE_CHECKING, Protocol

from ocf.component.model.timeouts import call_with_timeout, wait
from ocf.concepts import StatusReport
from ocf.errors import HandlerError
from ocf.objects.conditions import ConditionStatus, find_condition

if TYPE_CHECKING:
    from ocf.component.model.context import ReconcileContext

__all__ = ["DependsOn", "Prerequisite", "PrerequisiteStatus", "ask", "depends_on"]


class PrerequisiteStatus(StrEnum):
    """Whether a prerequisite is met."""

    MET = "Met"
    NOT_MET = "NotMet"


class Prerequisite(Protocol):
    """Something that has to hold before a component is reconciled for the first time."""

    async def check(self, context: ReconcileContext) -> StatusReport[PrerequisiteStatus]:
        """Tell whether it holds.

        Args:
            context: The pass; its `status` shows the conditions of components reconciled before in the same pass.
        """
        ...


async def ask(
    prerequisite: Prerequisite, context: ReconcileContext, limit: timedelta | None = None
) -> StatusReport[PrerequisiteStatus]:
    """Ask a prerequisite, and refuse an answer outside its vocabulary.

    Args:
        prerequisite: The prerequisite.
        context: The pass.
        limit: How long it may take; None for ever.

    Raises:
        HandlerError: If it raises, takes longer than the limit, or answers with something else than a prerequisite
            status.
    """
    try:
        answer: object = await call_with_timeout(limit, prerequisite.check, context)
        answer = await wait(limit, answer) if inspect.isawaitable(answer) else answer
    except HandlerError as error:
        raise HandlerError(f"prerequisite failed: {error}") from error
    except Exception as error:
        raise HandlerError(f"prerequisite failed: {type(error).__name__}: {error}") from error
    if not isinstance(answer, StatusReport):
        raise HandlerError(f"prerequisite must return a StatusReport, got {type(answer).__name__}")
    try:
        return StatusReport(PrerequisiteStatus(answer.status), answer.reason)
    except ValueError:
        raise HandlerError(f'prerequisite returned unrecognized status "{answer.status}"') from None


@dataclass(frozen=True, slots=True)
class DependsOn:
    """Met while a condition of the owner is True.

    Args:
        condition_type: Type of the condition.
    """

    condition_type: str

    async def check(self, context: ReconcileContext) -> StatusReport[PrerequisiteStatus]:
        """Look at the owner's condition as it stands in this pass."""
        found = find_condition(context.status.get("conditions"), self.condition_type)
        if found is None:
            owner = context.owned_by.key
            missing = f'Condition "{self.condition_type}" not found on {owner.kind}/{owner.name}'
            return StatusReport(PrerequisiteStatus.NOT_MET, missing)
        if found.get("status") == ConditionStatus.TRUE:
            return StatusReport(PrerequisiteStatus.MET)
        seen = f"{found.get('status')}: {found.get('message', '')}"
        waiting = f'waiting for condition "{self.condition_type}" to become True (currently {seen})'
        return StatusReport(PrerequisiteStatus.NOT_MET, f"Prerequisite not met: {waiting}")


def depends_on(condition_type: str) -> Prerequisite:
    """Make a prerequisite that is met while a condition of the owner is True.

    Args:
        condition_type: Type of the condition, most often that of another component of the same owner.
    """
    return DependsOn(condition_type)
