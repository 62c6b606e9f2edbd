"""Default status handlers of kinds that another controller makes operational.

Such a kind declares one function that returns the status of a live object; `IntegrationStatus` derives the handler of
the grace period from it. So both handlers evaluate the same conditions and give the same reason.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Generic, TypeVar

from ocf.concepts import ApplyOperation, GraceStatus, OperationalStatus, StatusReport
from ocf.lazy_types.pydantic import BaseModel

if TYPE_CHECKING:
    from collections.abc import Mapping


__all__ = ["IntegrationStatus"]

ModelT = TypeVar("ModelT", bound="BaseModel")

_AFTER_GRACE: Final[Mapping[OperationalStatus, GraceStatus]] = {
    OperationalStatus.OPERATIONAL: GraceStatus.HEALTHY,
    OperationalStatus.PENDING: GraceStatus.DEGRADED,
    OperationalStatus.FAILING: GraceStatus.DOWN,
}


@dataclass(frozen=True)
class IntegrationStatus(Generic[ModelT]):
    """Default status handlers of one kind of integration.

    Args:
        observe: Returns the status of a live object.

    Example:
        >>> from kubernetes.client import V1PersistentVolumeClaim
        >>> def bound(live: V1PersistentVolumeClaim) -> StatusReport[OperationalStatus]:
        ...     is_bound = live.status is not None and live.status.phase == "Bound"
        ...     return StatusReport(OperationalStatus.OPERATIONAL if is_bound else OperationalStatus.PENDING)
        >>> status = IntegrationStatus(bound)
        >>> status.grace(V1PersistentVolumeClaim()).status
        <GraceStatus.DEGRADED: 'Degraded'>
    """

    observe: Callable[[ModelT], StatusReport[OperationalStatus]]

    def operational(
        self,
        operation: ApplyOperation,  # noqa: ARG002 (the signature of every status handler)
        live: ModelT,
    ) -> StatusReport[OperationalStatus]:
        """Return the status of a live object.

        Args:
            operation: What this reconcile did to the object; not used.
            live: The object as the API server returned it.
        """
        return self.observe(live)

    def grace(self, live: ModelT) -> StatusReport[GraceStatus]:
        """Return the status of a live object after the grace period.

        Args:
            live: The object as the API server returned it.

        Returns:
            `Healthy` if it is operational, `Degraded` if that is pending, `Down` if it is failing; the same reason.
        """
        report = self.observe(live)
        return StatusReport(_AFTER_GRACE[report.status], report.reason)
