"""Status writes of other controllers, from `managedFields`.

Nothing else shows that another controller runs an autoscaler of autoscaling/v2. The entry of a controller that was
switched off stays there, so the entry alone does not show whether that controller is still running. Such an autoscaler
is not run until the user allows it to be taken over; a status write after that shows that the other controller runs.
"""

from collections.abc import Iterator
from typing import NamedTuple

from ocf.objects import Manifest
from ocf.objects.managed_fields import ManagedFields

__all__ = ["StatusWrite", "last_foreign_write"]


class StatusWrite(NamedTuple):
    """The last write of a field manager to a status.

    Args:
        at: The time, as the API writes it; whole seconds.
        manager: The field manager.
    """

    at: str
    manager: str


def last_foreign_write(autoscaler: Manifest, ours: str) -> StatusWrite | None:
    """Return the last status write of another field manager, if it is later than our own.

    Args:
        autoscaler: The manifest of an autoscaler, with its `managedFields`.
        ours: Our field manager.

    Returns:
        The last write of another field manager; None if there is none, or our own is later or in the same second.

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
