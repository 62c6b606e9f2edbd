"""How an apply is sent: its preconditions, whether by force, and what follows a conflict or a rejected default."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection
from typing import TYPE_CHECKING, Final

from ocf.cluster.retry import MOST_TRIES
from ocf.component.apply.server_defaults import claim_defaults
from ocf.component.model.resource_options import Adoption, Conflicts
from ocf.errors import ConflictError, InvalidError
from ocf.objects import Manifest, ObjectKey
from ocf.objects.managed_fields import fields_path
from ocf.objects.owned_paths import path_label

if TYPE_CHECKING:
    from ocf.component.context import ReconcileContext

__all__ = ["RESTORING", "ApplySender"]

RESTORING: Final = "restoring the owner reference of"
"""The step before which the API server is asked whether the owner is being deleted."""


class ApplySender:
    """Sends the applies of one resource, in one reconcile.

    Args:
        adoption: Whether an object is adopted that another client creates meanwhile.
        get: Reads the live object, None if it does not exist; raises an error if the owner is gone.
        require_living_owner: Asks the API server for the owner before a step, and raises an error if it is gone or
            being deleted.
    """

    def __init__(  # noqa: PLR0913 (what an apply depends on)
        self,
        context: ReconcileContext,
        key: ObjectKey,
        manager: str,
        ignore_fields: Collection[tuple[str, ...]],
        *,
        on_conflict: Conflicts,
        adoption: Adoption,
        get: Callable[[], Awaitable[Manifest | None]],
        require_living_owner: Callable[[str], Awaitable[None]],
    ) -> None:
        self._cluster = context.cluster
        self._owner = context.owned_by
        self._is_owner = context.owned_by.is_object(key)
        self._manager = manager
        self._ignore_fields = ignore_fields
        self._on_conflict = on_conflict
        self._adoption = adoption
        self._get = get
        self._require_living_owner = require_living_owner

    async def send(self, desired: Manifest, live: Manifest | None) -> tuple[Manifest, int]:
        """Apply, after a change of the ownership of defaults that the object contradicts; return how many writes."""
        try:
            return await self._send(desired, live), 1
        except InvalidError as error:
            if live is None or not await claim_defaults(self._cluster, live, desired, self._manager, error):
                raise
        # The change of the ownership has made another version of it.
        return await self._send(desired, await self._get()), 2

    async def _send(self, desired: Manifest, live: Manifest | None) -> Manifest:
        """Apply the desired state; with our owner reference, only to a version that was read.

        So a reference that was removed since then, because the owner is deleted and its objects are orphaned, is not
        set again: the garbage collector would delete the object after the owner.
        """
        if live is None or not self._owner.references(desired):
            return await self._send_forced(desired, creates=live is None)
        for _ in range(MOST_TRIES):
            version = str(live["metadata"].get("resourceVersion", ""))
            try:
                return await self._send_forced(
                    {**desired, "metadata": {**desired["metadata"], "resourceVersion": version}}
                )
            except ConflictError as error:
                # Only a conflict about the ownership of fields has causes.
                if error.causes:
                    raise
            live = await self._get()
            if live is None:
                break
            if not self._owner.references(live):
                await self._require_living_owner(RESTORING)
        # It was deleted, or others change it all the time.
        await self._require_living_owner(RESTORING if live is not None else "creating")
        return await self._send_forced(desired)

    async def _send_forced(self, desired: Manifest, *, creates: bool = False) -> Manifest:
        if self._is_owner:
            # With its uid, the API server does not create an owner again that was just deleted.
            desired = {**desired, "metadata": {**desired["metadata"], "uid": self._owner.uid}}
        # An object that another client creates meanwhile, with other values, is not adopted by mistake.
        force = self._on_conflict is Conflicts.TAKE and not (creates and self._adoption is not Adoption.ALWAYS)
        try:
            return await self._cluster.apply(desired, field_manager=self._manager, force=force)
        except ConflictError as error:
            if force or not self._is_about_ignored_fields(error):
                raise
        # Only a suspension sends an ignored field, and it takes the field from its manager.
        return await self._cluster.apply(desired, field_manager=self._manager, force=True)

    def _is_about_ignored_fields(self, error: ConflictError) -> bool:
        ignored = {f".{path_label(fields_path(path))}" for path in self._ignore_fields}
        return bool(error.causes) and all(cause.field in ignored for cause in error.causes)
