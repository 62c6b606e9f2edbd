"""The single write of an owner's status at the end of a reconcile."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ocf.cluster import Subresource
from ocf.errors import ConflictError, NotFoundError

if TYPE_CHECKING:
    from ocf.cluster import Cluster
    from ocf.component.model.ownership import Owner
    from ocf.component.model.status_changes import StatusChanges
    from ocf.objects import Manifest

__all__ = ["write_status"]

# How often a status write is tried after conflicts. Each try starts from the stored status, and of several reconciles
# that write at once, one succeeds in each round: this many lose nothing.
_TRIES: Final = 32


async def write_status(cluster: Cluster, live: Manifest, owner: Owner, changes: StatusChanges) -> Manifest | None:
    """Write the status of an owner if the changes make it differ from the one that was read.

    After a conflict the status is read again, and the changes are merged into it.

    Args:
        cluster: The cluster of the owner.
        live: The owner as read.
        owner: Its key and uid.
        changes: The changes of its status.

    Returns:
        The status as stored; None if the owner was deleted.

    Raises:
        ApiError: If the write fails for another reason than a conflict, or conflicts 32 times in a row.
    """
    status = changes.status
    for tries_left in reversed(range(_TRIES)):
        if status == (live.get("status") or {}):
            break
        wanted = {**live, "status": status}
        try:
            await cluster.update(wanted, field_manager=owner.field_manager("status"), subresource=Subresource.STATUS)
            break
        except NotFoundError:
            return None
        except ConflictError:
            if not tries_left:
                raise
        try:
            live = await cluster.get(owner.key)
        except NotFoundError:
            return None
        if live["metadata"].get("uid") != owner.uid:
            return None
        status = changes.rebased(live.get("status") or {})
    return status
