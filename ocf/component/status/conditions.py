"""The one condition of a component: stored in its owner, moved from pass to pass, folded with others into one.

Everything here is a function of values and an instant.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from ocf.component.status.reasons import Reason
from ocf.objects import Manifest
from ocf.objects.timestamps import format_time

__all__ = ["Condition", "aggregate", "failed_condition", "next_condition", "stored_condition"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """A condition of an owner, as `metav1.Condition` has it.

    Args:
        type: What it is about, `WebInterfaceReady`.
        status: Whether it holds; a component never says Unknown.
        reason: One word.
        message: For a person.
        observed_generation: `metadata.generation` of the owner that was looked at.
        last_transition_time: Since when the status holds, RFC 3339.
    """

    type: str
    status: bool
    reason: Reason
    message: str
    observed_generation: int
    last_transition_time: str

    def to_manifest(self) -> Manifest:
        """Return it in API spelling."""
        return {
            "type": self.type,
            "status": "True" if self.status else "False",
            "reason": str(self.reason),
            "message": self.message,
            "observedGeneration": self.observed_generation,
            "lastTransitionTime": self.last_transition_time,
        }


def stored_condition(conditions: Sequence[Manifest], name: str, generation: int) -> Condition:
    """Read a component's condition from its owner.

    Args:
        conditions: `status.conditions` of the owner.
        name: The condition's type.
        generation: `metadata.generation` of the owner.

    Returns:
        The stored condition; one that is absent, or whose reason is none of ours, reads as Unknown.

    Example:
        >>> stored_condition([], "WebReady", 3).message
        'Component has not been reconciled yet.'
    """
    found = next((condition for condition in conditions if condition.get("type") == name), {})
    reason = str(found.get("reason"))
    known = reason in set(Reason)
    return Condition(
        type=name,
        status=found.get("status") == "True",
        reason=Reason(reason) if known else Reason.UNKNOWN,
        message=str(found.get("message", "")) if known else "Component has not been reconciled yet.",
        observed_generation=int(found.get("observedGeneration") or generation),
        last_transition_time=str(found.get("lastTransitionTime") or ""),
    )


def next_condition(
    reason: Reason, message: str, *, ready: bool, previous: Condition, generation: int, now: datetime
) -> Condition:
    """Return the condition that follows a stored one.

    Args:
        reason: The word.
        message: The sentence.
        ready: Whether the condition holds.
        previous: The stored condition.
        generation: `metadata.generation` of the owner.
        now: The instant of this pass.
    """
    # The transition time moves only with the status, or where there is none yet.
    stays = previous.status is ready and previous.last_transition_time
    return Condition(
        type=previous.type,
        status=ready,
        reason=reason,
        message=message,
        observed_generation=generation,
        last_transition_time=previous.last_transition_time if stays else format_time(now),
    )


def failed_condition(
    message: str, *, previous: Condition, generation: int, now: datetime, reason: Reason = Reason.ERROR
) -> Condition:
    """Say that a pass failed.

    Args:
        message: The error.
        previous: The stored condition.
        generation: `metadata.generation` of the owner.
        now: The instant of this pass.
        reason: `Error`, or the more precise word where there is one.
    """
    return next_condition(reason, message, ready=False, previous=previous, generation=generation, now=now)


def aggregate(
    name: str, components: Sequence[tuple[str, Condition]], *, previous: Condition, generation: int, now: datetime
) -> Condition:
    """Make one condition of the conditions of several components.

    It is True exactly if all of them are. Among those that are not True, or among all if all are, the one with the
    highest priority governs; of equals the first.

    Args:
        name: Type of the condition.
        components: Name and condition of each component.
        previous: The stored condition of that type.
        generation: `metadata.generation` of the owner.
        now: The instant of this pass.

    Returns:
        The condition; its message begins with the name of the component that governs.

    Example:
        >>> from datetime import UTC
        >>> now = datetime(2026, 1, 31, 12, 0, tzinfo=UTC)
        >>> fresh = stored_condition([], "Ready", 1)
        >>> aggregate("Ready", [("broker", fresh)], previous=fresh, generation=1, now=now).message
        'broker: Component has not been reconciled yet.'
    """
    previous = replace(previous, type=name)
    if not components:
        return failed_condition(
            "No components were aggregated.", previous=previous, generation=generation, now=now, reason=Reason.UNKNOWN
        )
    open_ones = [pair for pair in components if not pair[1].status]
    component, governing = max(open_ones or components, key=lambda pair: pair[1].reason.priority)
    message = f"{component}: {governing.message}" if governing.message else component
    ready = not open_ones
    return next_condition(governing.reason, message, ready=ready, previous=previous, generation=generation, now=now)
