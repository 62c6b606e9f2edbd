"""Change of the ownership of an object's fields by one patch of `managedFields`, which changes no value.

The patch names the version that was read. So it conflicts whenever another writer changed the object meanwhile, and is
decided again.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from ocf.cluster import PatchOptions, PatchType
from ocf.cluster.retry import retry_on_conflict
from ocf.component.model.ownership import uid_of
from ocf.errors import NotFoundError
from ocf.objects import Manifest, ObjectKey

if TYPE_CHECKING:
    from ocf.cluster import Cluster

__all__ = ["OwnershipChange", "ReplacedError", "change_ownership"]


class ReplacedError(Exception):
    """The object is not the one that was read: that was deleted, and another client has created one of its name."""


class OwnershipChange(NamedTuple):
    """A change of `managedFields`.

    Args:
        entries: All entries after it.
        labels: Labels that are set in the same write.
    """

    entries: list[Manifest]
    labels: dict[str, str]


async def change_ownership(
    cluster: Cluster,
    live: Manifest,
    manager: str,
    decide: Callable[[Manifest], Awaitable[OwnershipChange | None]],
    *,
    is_answer: bool = False,
) -> tuple[Manifest | None, bool]:
    """Change the ownership of an object's fields.

    Args:
        manager: The field manager that sends the patch.
        decide: Decides on the change for an object with all of its `managedFields`; None if there is nothing to change.
        is_answer: Whether the object is the answer of the API server to a write, which is not read again.

    Returns:
        The object after that, None if it was deleted meanwhile; and whether it was changed.

    Raises:
        ReplacedError: If another client has created an object of its name meanwhile.
    """
    key = ObjectKey.of(live)
    options = PatchOptions(patch_type=PatchType.MERGE, field_manager=manager)
    reading = PatchOptions(patch_type=PatchType.MERGE, field_manager=manager, dry_run=True)

    async def write(whole: Manifest) -> tuple[Manifest, bool]:
        if uid_of(whole) != uid_of(live):
            raise ReplacedError
        change = await decide(whole)
        if change is None:
            return whole, False
        metadata: dict[str, Any] = {
            "resourceVersion": whole["metadata"]["resourceVersion"],
            "managedFields": change.entries,
        }
        if change.labels:
            metadata["labels"] = change.labels
        return await cluster.patch(key, {"metadata": metadata}, options), True

    try:
        # A cache may hold only a part of `managedFields`. The answer of the server to a dry run has all of it.
        return await retry_on_conflict(lambda: cluster.patch(key, {}, reading), write, live=live if is_answer else None)
    except NotFoundError:
        return None, False
