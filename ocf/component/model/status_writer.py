"""The single write of an owner's status at the end of a reconcile."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from ocf.cluster import Subresource, UnstoredStatus
from ocf.component.model.status_backoff import hold_back, note_status
from ocf.component.model.status_changes import status_of
from ocf.component.model.unstored_status import dropped_fields, path_text, without_fields
from ocf.errors import ConflictError, NotFoundError

if TYPE_CHECKING:
    from datetime import timedelta

    from ocf.cluster import Cluster
    from ocf.component.model.ownership import Owner
    from ocf.component.model.status_changes import StatusChanges
    from ocf.objects import Manifest

__all__ = ["WrittenStatus", "write_status"]

# How often a status write is tried after conflicts. Each try starts from the stored status, and of several reconciles
# that write at once, one succeeds in each round: this many lose nothing.
_TRIES: Final = 32
_EVERYTHING: Final = frozenset({()})


class WrittenStatus(NamedTuple):
    """Result of a write of a status.

    Args:
        status: The status as it was sent, or would have been.
        problem: Message about fields that the API server does not store, and that was not given before; empty if it
            stores all of them.
        reverted: Message about values that another writer reverts, and that was not given before; empty if there are
            none.
        retry_after: Time until a value that is held back is written; None if none is.
    """

    status: Manifest
    problem: str = ""
    reverted: str = ""
    retry_after: timedelta | None = None


async def write_status(
    cluster: Cluster, live: Manifest, owner: Owner, changes: StatusChanges, elapsed: timedelta
) -> WrittenStatus | None:
    """Write the status of an owner if the changes make it differ from the one that was read.

    After a conflict the status is read again, and the changes are merged into it. A write that would only repeat fields
    that the API server does not store is not sent until the owner changes. Values that another writer reverts again and
    again are held back.

    Args:
        cluster: The cluster of the owner.
        live: The owner as read.
        owner: Its key and uid.
        changes: The changes of its status.
        elapsed: Time of the reconcile on the monotonic clock.

    Returns:
        The status, and what of it is not stored; None if the owner was deleted.

    Raises:
        ApiError: If the write fails for another reason than a conflict, or conflicts 32 times in a row.
    """
    status, manager, cache = changes.status, owner.field_manager("status"), cluster.apply_cache
    reverted, retry_after = "", None
    for tries_left in reversed(range(_TRIES)):
        held = hold_back(status, live, owner, cache, elapsed)
        status, reverted, retry_after = held.status, reverted or held.problem, held.retry_after
        if status == status_of(live) or _is_repeated(cluster, manager, live, status):
            break
        wanted = {**live, "status": status}
        try:
            stored = await cluster.update(wanted, field_manager=manager, subresource=Subresource.STATUS)
        except NotFoundError:
            found = await _read(cluster, owner)
            return None if found is None else _checked(cluster, manager, found, status, is_served=False)
        except ConflictError:
            if not tries_left:
                raise
        else:
            note_status(status_of(stored), live, owner, cache, elapsed)
            return _checked(cluster, manager, stored, status)._replace(reverted=reverted, retry_after=retry_after)
        found = await _read(cluster, owner)
        if found is None:
            return None
        live = found
        status = changes.rebased(status_of(live))
    return WrittenStatus(status, reverted=reverted, retry_after=retry_after)


async def _read(cluster: Cluster, owner: Owner) -> Manifest | None:
    """Read an owner again; None if it was deleted, or another one has its name now."""
    try:
        live = await cluster.get(owner.key)
    except NotFoundError:
        return None
    return live if live["metadata"].get("uid") == owner.uid else None


def _is_repeated(cluster: Cluster, manager: str, live: Manifest, status: Manifest) -> bool:
    """Return whether a write would repeat an earlier one, except in fields that the API server does not store."""
    metadata = live["metadata"]
    known = cluster.apply_cache.unstored_status(str(metadata.get("uid") or ""), manager)
    if known is None or known.version != metadata.get("resourceVersion"):
        return False
    return bool(without_fields(status, known.fields) == known.sent)


def _checked(
    cluster: Cluster, manager: str, stored: Manifest, status: Manifest, *, is_served: bool = True
) -> WrittenStatus:
    """Compare a status with what is stored, and remember the fields that are not.

    Args:
        cluster: The cluster of the owner.
        manager: The field manager of the status.
        stored: The owner as it is stored.
        status: The status that was sent.
        is_served: Whether the API server has the subresource.
    """
    cache, metadata = cluster.apply_cache, stored["metadata"]
    uid = str(metadata.get("uid") or "")
    known = cache.unstored_status(uid, manager)
    if is_served and status == status_of(stored):
        cache.note_unstored_status(uid, manager, None)
        return WrittenStatus(status)
    fields = dropped_fields(status, status_of(stored)) if is_served else _EVERYTHING
    sent = without_fields(status, fields)
    cache.note_unstored_status(uid, manager, UnstoredStatus(str(metadata.get("resourceVersion") or ""), fields, sent))
    if not fields or (known is not None and fields <= known.fields):
        return WrittenStatus(status)
    kind = f"{stored.get('kind')} of {stored.get('apiVersion')}"
    if not is_served:
        lost = f"the API server has no subresource `status` for {kind}, and stores neither conditions nor other fields"
        remedy = "use a kind with a status; a CustomResourceDefinition enables it by `subresources: {status: {}}`"
    else:
        lost = f"the API server does not store {', '.join(sorted(map(path_text, fields)))} of {kind}"
        remedy = "in a CustomResourceDefinition, add the fields to the schema of the status"
    return WrittenStatus(status, f"{lost}: {remedy}")
