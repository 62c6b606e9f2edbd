"""Status writes of other controllers, from `managedFields`.

Nothing else shows that another controller runs an autoscaler of autoscaling/v2. The entry of a controller that was
switched off stays there, so the entry alone does not show whether that controller is still running; `take_over` decides
that.
"""

from collections.abc import Iterator
from typing import Final, NamedTuple

from ocf.objects import Manifest
from ocf.objects.managed_fields import ManagedFields
from ocf.objects.paths import get_field

__all__ = ["StatusWrite", "last_foreign_write", "status_writers"]

# Every HPA controller sets this field in every sync; the last one that changed its value owns it.
_SET_BY_EACH_SYNC: Final = ("f:status", "f:conditions", 'k:{"type":"AbleToScale"}', "f:reason")


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
        The last write of another field manager; None if there is none, or our own is later. Of writes in the same
        second the one that owns the reason of `AbleToScale` is the later one.

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
    own = max((write for write in writes if write.manager == ours), default=_NO_WRITE)
    if foreign is None or foreign[:2] <= own[:2]:
        return None
    return StatusWrite(foreign.at, foreign.manager)


def status_writers(autoscaler: Manifest) -> frozenset[str]:
    """Return the field managers that own a field of the status of an autoscaler.

    Args:
        autoscaler: Its manifest, with its `managedFields`.
    """
    return frozenset(write.manager for write in _writes(autoscaler))


class _Write(NamedTuple):
    at: str
    owns_reason: bool
    manager: str


_NO_WRITE: Final = _Write("", False, "")  # noqa: FBT003 (a named tuple)


def _writes(autoscaler: Manifest) -> Iterator[_Write]:
    for entry in ManagedFields.of(autoscaler).entries:
        if entry.manager.subresource == "status":
            owns = get_field(entry.fields, _SET_BY_EACH_SYNC) is not None
            yield _Write(entry.time, owns, entry.manager.name)
