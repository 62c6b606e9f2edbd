"""How an apply is sent: its preconditions, whether by force, and what follows a conflict or a rejected default.

An apply cannot say that its object must not exist (https://github.com/kubernetes/kubernetes/issues/116156). So where an
object of another client is not adopted, or values are sent only once, it is made by a create, which fails if there is
one. The API server records a create as an update of its field manager, defaults included. One patch of `managedFields`
makes of that what an apply would have recorded of what stays ours; after a crash in between, the takeover does.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection
from typing import TYPE_CHECKING, Final

from ocf.cluster.retry import MOST_TRIES
from ocf.component.apply.managed_fields_patch import OwnershipChange, ReplacedError, change_ownership
from ocf.component.apply.recreation import immutable_fields
from ocf.component.apply.server_defaults import claim_defaults
from ocf.component.model.ownership import uid_of
from ocf.component.model.resource_options import Conflicts
from ocf.errors import AlreadyExistsError, ApiError, ConflictError, InvalidError
from ocf.objects import Manifest, ObjectKey
from ocf.objects.managed_fields import FieldManager, ManagedFields, ManagedFieldsEntry, as_applied, fields_path
from ocf.objects.owned_paths import declared_fields, path_label

if TYPE_CHECKING:
    from ocf.cluster import Cluster
    from ocf.component.model.ownership import Owner

__all__ = ["RESTORING", "ApplySender"]

RESTORING: Final = "restoring the owner reference of"
"""The step before which the API server is asked whether the owner is being deleted."""


class ApplySender:
    """Sends the applies of one resource, in one reconcile.

    Args:
        creator: Field manager of a create, for an object that must not exist.
        exact: Whether an object is changed only if it is the one that was read, and a create fails if there is one.
        get: Reads the live object, None if it does not exist; raises an error if the owner is gone.
        require_living_owner: Asks the API server for the owner before a step, and raises an error if it is gone or
            being deleted.
    """

    def __init__(  # noqa: PLR0913 (what an apply depends on)
        self,
        cluster: Cluster,
        owner: Owner,
        key: ObjectKey,
        manager: str,
        ignore_fields: Collection[tuple[str, ...]],
        *,
        creator: str,
        on_conflict: Conflicts,
        exact: bool,
        get: Callable[[], Awaitable[Manifest | None]],
        require_living_owner: Callable[[str], Awaitable[None]],
    ) -> None:
        self._cluster = cluster
        self._owner = owner
        self._is_owner = owner.is_object(key)
        self._manager = manager
        self._creator = FieldManager(creator, "Update", "")
        self._ignore_fields = ignore_fields
        self._on_conflict = on_conflict
        self._exact = exact
        self._get = get
        self._require_living_owner = require_living_owner

    async def send(
        self, desired: Manifest, live: Manifest | None, *, owned: Manifest, as_read: bool
    ) -> tuple[Manifest, int]:
        """Apply, after a change of the ownership of defaults that the object contradicts; return how many writes.

        Args:
            owned: What of an object that is created belongs to the component from then on.
            as_read: Whether the object must not have been changed since it was read.

        Raises:
            ReplacedError: If the object is not the one that was read, and another one is not simply adopted.
        """
        if live is None and self._exact:
            return await self._create(desired, owned), 2
        if live is not None and as_read:
            return await self._send_as_read(desired, live), 1
        try:
            return await self._send_unless_replaced(desired, live), 1
        except InvalidError as error:
            if live is None or not await claim_defaults(self._cluster, live, desired, self._manager, error):
                raise
        # The change of the ownership has made another version of it.
        after = await self._get()
        self._require_same(live, after)
        return await self._send_unless_replaced(desired, after), 2

    async def preview(self, desired: Manifest) -> Manifest:
        """Return the object as an apply would store it, from a dry run."""
        force = self._on_conflict is Conflicts.TAKE
        return await self._cluster.apply(desired, field_manager=self._manager, force=force, dry_run=True)

    async def require_possible(self, desired: Manifest, former: Collection[str]) -> None:
        """Raise the error of an apply that stays impossible after a takeover, so that no field is moved for nothing.

        A takeover cures conflicts with the former writers, and may cure what is invalid with their fields, such as a
        container that they have made; not a field that cannot be changed, nor what a webhook or a missing right denies.

        Args:
            former: Names of the field managers whose fields are taken over.
        """
        force = self._on_conflict is Conflicts.TAKE
        try:
            await self._cluster.apply(desired, field_manager=self._manager, force=force, dry_run=True)
        except InvalidError as error:
            if immutable_fields(error):
                raise
        except ConflictError as error:
            if not error.causes or any(cause.manager not in former for cause in error.causes):
                raise

    async def require_acceptance(self, desired: Manifest) -> None:
        """Raise an `InvalidError` if the API server would not create an object; a webhook may have other reasons."""
        try:
            await self._cluster.create(desired, field_manager=self._manager, dry_run=True)
        except InvalidError:
            raise
        except ApiError:
            return

    async def _send_as_read(self, desired: Manifest, live: Manifest) -> Manifest:
        version = {name: live["metadata"].get(name, "") for name in ("uid", "resourceVersion")}
        try:
            return await self._send_forced({**desired, "metadata": {**desired["metadata"], **version}})
        except ConflictError as error:
            # Only a conflict about the ownership of fields has causes.
            if error.causes:
                raise
            raise ReplacedError from error

    async def _create(self, desired: Manifest, owned: Manifest) -> Manifest:
        try:
            # What a create left out, every later apply would be rejected for.
            made = await self._cluster.create(desired, field_manager=self._creator.name, strict=True)
        except AlreadyExistsError as error:
            raise ReplacedError from error

        async def decide(whole: Manifest) -> OwnershipChange | None:
            entries = ManagedFields.of(whole).entries
            if all(entry.manager != self._creator for entry in entries):
                return None
            return OwnershipChange([each for entry in entries if (each := self._as_applied(entry, owned))], {})

        # If it is deleted meanwhile, that is seen as the deletion of an object that was made.
        return (await change_ownership(self._cluster, made, self._manager, decide, is_answer=True))[0] or made

    def _as_applied(self, entry: ManagedFieldsEntry, owned: Manifest) -> Manifest | None:
        if entry.manager != self._creator:
            return entry.manifest
        fields = as_applied(declared_fields(entry.fields, owned))
        return fields and {**entry.manifest, "manager": self._manager, "operation": "Apply", "fieldsV1": fields}

    async def _send_unless_replaced(self, desired: Manifest, live: Manifest | None) -> Manifest:
        if live is None or not self._exact:
            return await self._send(desired, live)
        try:
            return await self._send({**desired, "metadata": {**desired["metadata"], "uid": uid_of(live)}}, live)
        except ApiError:
            self._require_same(live, await self._get())
            raise

    def _require_same(self, live: Manifest, after: Manifest | None) -> None:
        if self._exact and (after is None or uid_of(after) != uid_of(live)):
            raise ReplacedError

    async def _send(self, desired: Manifest, live: Manifest | None) -> Manifest:
        """Apply the desired state; with our owner reference, only to a version that was read.

        So a reference that was removed since then, because the owner is deleted and its objects are orphaned, is not
        set again: the garbage collector would delete the object after the owner.
        """
        if live is None or not self._owner.references(desired):
            return await self._send_forced(desired)
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

    async def _send_forced(self, desired: Manifest) -> Manifest:
        if self._is_owner:
            # With its uid, the API server does not create an owner again that was just deleted.
            desired = {**desired, "metadata": {**desired["metadata"], "uid": self._owner.uid}}
        force = self._on_conflict is Conflicts.TAKE
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
