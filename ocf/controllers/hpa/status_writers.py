"""Who writes the status of an autoscaler, as far as `managedFields` tell.

Nothing else shows that another controller runs an autoscaler of autoscaling/v2: whoever wrote its status last has it.
A controller that was switched off leaves its name there for ever. Only a person knows which of both it is, so such an
autoscaler is left alone until somebody says that it may be taken over; and one who writes after that is alive.
"""

from collections.abc import Iterator
from typing import NamedTuple

from ocf.objects import Manifest
from ocf.objects.managed_fields import ManagedFields

__all__ = ["StatusWrite", "last_foreign_write"]


class StatusWrite(NamedTuple):
    """The last write of somebody to a status.

    Args:
        at: When, as the API writes it; whole seconds.
        manager: The field manager.
    """

    at: str
    manager: str


def last_foreign_write(autoscaler: Manifest, ours: str) -> StatusWrite | None:
    """Return who else wrote the status, if that was after us.

    Args:
        autoscaler: The manifest of an autoscaler, with its `managedFields`.
        ours: Our field manager.

    Returns:
        The last write of somebody else; None if there was none, or ours came later or in the same second.

    Example:
        >>> def entry(manager: str, time: str) -> Manifest:
        ...     return {"manager": manager, "subresource": "status", "time": time}
        >>> theirs, ours = entry("kube-controller-manager", "2026-01-31T12:00:00Z"), entry("us", "2026-01-31T12:01:00Z")
        >>> last_foreign_write({"metadata": {"managedFields": [theirs]}}, "us").manager
        'kube-controller-manager'
        >>> last_foreign_write({"metadata": {"managedFields": [theirs, ours]}}, "us") is None
        True
    """
    writes = list(_writes(autoscaler))
    foreign = max((write for write in writes if write.manager != ours), default=None)
    own = max((write.at for write in writes if write.manager == ours), default="")
    return foreign if foreign is not None and foreign.at > own else None


def _writes(autoscaler: Manifest) -> Iterator[StatusWrite]:
    for entry in ManagedFields.of(autoscaler).entries:
        if entry.manager.subresource == "status":
            yield StatusWrite(entry.time, entry.manager.name)
