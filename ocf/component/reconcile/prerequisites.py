"""Prerequisites: what must be met before a component does anything."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from typing import Protocol

from ocf.component.author_code import call_with_timeout, wait
from ocf.component.context import ReconcileContext
from ocf.concepts import StatusReport
from ocf.errors import HandlerError
from ocf.objects.conditions import ConditionStatus, find_condition

__all__ = ["DependsOn", "Prerequisite", "PrerequisiteStatus", "check_prerequisite", "depends_on"]


class PrerequisiteStatus(StrEnum):
    """Whether a prerequisite is met."""

    MET = "Met"
    NOT_MET = "NotMet"


class Prerequisite(Protocol):
    """A requirement that must be met before a component is reconciled for the first time."""

    async def check(self, context: ReconcileContext) -> StatusReport[PrerequisiteStatus]:
        """Return whether it is met.

        Args:
            context: The reconcile of the owner; its `status` has the conditions of components that were reconciled
                earlier in the same reconcile.
        """
        ...


async def check_prerequisite(
    prerequisite: Prerequisite, context: ReconcileContext, limit: timedelta | None = None
) -> StatusReport[PrerequisiteStatus]:
    """Check a prerequisite, and validate what it returns.

    Raises:
        HandlerError: If it raises, exceeds the limit (None for none), or returns something else than a report with a
            `PrerequisiteStatus`.
    """
    try:
        report: object = await call_with_timeout(limit, prerequisite.check, context)
        report = await wait(limit, report) if inspect.isawaitable(report) else report
    except HandlerError as error:
        raise HandlerError(f"prerequisite failed: {error}") from error
    except Exception as error:
        raise HandlerError(f"prerequisite failed: {type(error).__name__}: {error}") from error
    if not isinstance(report, StatusReport):
        raise HandlerError(f"prerequisite must return a StatusReport, got {type(report).__name__}")
    try:
        return StatusReport(PrerequisiteStatus(report.status), report.reason)
    except ValueError:
        raise HandlerError(f'prerequisite returned unrecognized status "{report.status}"') from None


@dataclass(frozen=True, slots=True)
class DependsOn:
    """Met while a condition of the owner is True."""

    condition_type: str

    async def check(self, context: ReconcileContext) -> StatusReport[PrerequisiteStatus]:
        """Check the owner's condition as staged or stored."""
        found = find_condition(context.status.get("conditions"), self.condition_type)
        unpublished = context.unpublished.get(self.condition_type)
        if found is None and unpublished is not None:
            found = unpublished.to_manifest()
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
    """Return a prerequisite that is met while a condition of the owner is True.

    Args:
        condition_type: Type of the condition, usually that of another component of the same owner.
    """
    return DependsOn(condition_type)
