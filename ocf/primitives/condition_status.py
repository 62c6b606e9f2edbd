"""Status of objects whose controller reports it by conditions, as most custom resources do.

Source: https://github.com/kubernetes/community/blob/master/contributors/devel/sig-architecture/api-conventions.md,
"Typical status properties".
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

from ocf.concepts import OperationalStatus, StatusReport
from ocf.lazy_types.pydantic import BaseModel
from ocf.objects import Manifest
from ocf.primitives.live_fields import live_field

__all__ = ["ConditionStatus", "SeenCondition", "conditions_of", "is_stale"]


class SeenCondition(NamedTuple):
    """A condition in the status of a live object; a field that is not set is empty or None."""

    type: str
    status: str
    reason: str
    message: str
    observed_generation: int | None

    @property
    def text(self) -> str:
        """Its message, else its type and status."""
        return self.message or f"{self.type} is {self.status}"


def conditions_of(status: Any) -> Iterator[SeenCondition]:
    """Yield the conditions of a status.

    Args:
        status: The status, or another part of an object with a list `conditions`.
    """
    found = live_field(status, "conditions")
    for condition in found if isinstance(found, list) else ():
        observed = live_field(condition, "observedGeneration")
        kind, status, reason, message = (
            str(live_field(condition, name) or "") for name in ("type", "status", "reason", "message")
        )
        yield SeenCondition(kind, status, reason, message, observed if isinstance(observed, int) else None)


def is_stale(live: BaseModel | Manifest, observed: int | None) -> bool:
    """Return whether an observation was made of an older spec.

    Args:
        live: The live object.
        observed: The generation that was observed; None if the controller does not report it, which counts as current.
    """
    generation = live_field(live, "metadata", "generation")
    return isinstance(generation, int) and observed is not None and observed < generation


@dataclass(frozen=True, slots=True)
class ConditionStatus:
    """Status by one condition, and optionally by another one that reports a failure.

    Args:
        ready: Type of the condition that is True once the object is operational.
        failing: Type of the condition that is True while the controller cannot make progress, such as `Stalled`; empty
            if there is none.

    Example:
        >>> from kubernetes.client import V1Namespace
        >>> ConditionStatus().observe(V1Namespace())
        StatusReport(status=<OperationalStatus.PENDING: 'OperationPending'>, reason='Waiting for condition Ready')
    """

    ready: str = "Ready"
    failing: str = ""

    def observe(self, live: BaseModel | Manifest) -> StatusReport[OperationalStatus]:
        """Return the status of a live object.

        Args:
            live: The object.

        Returns:
            `OperationFailing` while the failing condition is True; `Operational` while the ready condition is True;
            else `OperationPending`, also while the condition or the whole status is about an older generation.
            The reason is the message of the condition.
        """
        status = live_field(live, "status")
        of_status = live_field(status, "observedGeneration")
        seen: dict[str, SeenCondition] = {}
        for condition in conditions_of(status):
            seen.setdefault(condition.type, condition)
        waiting = StatusReport(OperationalStatus.PENDING, f"Waiting for condition {self.ready}")
        stale = StatusReport(OperationalStatus.PENDING, "Waiting for the controller to observe the latest spec")
        if is_stale(live, of_status if isinstance(of_status, int) else None):
            return stale
        failing, ready = seen.get(self.failing), seen.get(self.ready)
        if failing and failing.status == "True" and not is_stale(live, failing.observed_generation):
            return StatusReport(OperationalStatus.FAILING, failing.text)
        if ready is None:
            return waiting
        if is_stale(live, ready.observed_generation):
            return stale
        operational = ready.status == "True"
        return StatusReport(OperationalStatus.OPERATIONAL if operational else OperationalStatus.PENDING, ready.text)
