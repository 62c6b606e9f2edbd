"""Deletion and orphaning of single objects that belong to a component, with preconditions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ocf.cluster import DeleteOptions, ListOptions, PatchOptions, PatchType, Propagation
from ocf.cluster.protocol import Preconditions
from ocf.cluster.retry import retry_on_conflict
from ocf.cluster.server_errors import is_namespace_ending
from ocf.component.apply.takeover import other_applier
from ocf.component.held_objects import is_owner_ending, release_object
from ocf.component.model.holds import hold_finalizer
from ocf.component.model.ownership import FIELDS, SECOND, Mark, finalizers_of, sendable
from ocf.component.model.write_backoff import DELETED, deletes_of, record_revert, wait, written
from ocf.errors import (
    ConflictError,
    NotFoundError,
    OcfError,
    ReconcileError,
)
from ocf.objects import Manifest, ObjectKey
from ocf.objects.managed_fields import ManagedFields
from ocf.objects.paths import get_field

if TYPE_CHECKING:
    from datetime import timedelta

    from ocf.component.context import ReconcileContext

__all__ = ["OWNER_ITSELF", "OwnedObjectDeleter", "kept_dependents"]

OWNER_ITSELF: Final = "it is the owner itself"
"""Why an owner is not deleted by a component of its own."""


def kept_dependents(propagation: Propagation) -> str:
    """Return how a text about a deleted object ends if its dependents are kept; empty if they are not."""
    return "; its dependents are kept" if propagation is Propagation.ORPHAN else ""


class OwnedObjectDeleter:
    """Deletes and orphans objects of one component, in one reconcile."""

    def __init__(self, component: str, context: ReconcileContext) -> None:
        self._component = component
        self._context = context
        self._cluster = context.cluster_of(component)
        self._owner = context.owned_by
        self._manager = self._owner.field_manager(component)
        fields = f"{component}/{FIELDS}"
        # The second one first: what it holds is ours only until the other one has taken it back.
        self._fields_managers = self._owner.field_manager(fields, SECOND), self._owner.field_manager(fields)
        self._deletes = deletes_of(self._manager)
        self._ending: dict[str, bool] = {}

    def reason_to_keep(self, live: Manifest) -> str:
        """Return why an object must not be deleted or orphaned; empty if it may be.

        It may be if it refers to our owner, or to no owner and was applied by us: an unowned object, or a
        cluster-scoped one, which cannot refer to a namespaced owner. It may not if another component of the owner, or
        another operator of the owner, applies it now, or if it is the owner itself.
        """
        if self._owner.is_object(ObjectKey.of(live)):
            return OWNER_ITSELF
        controller = self._owner.foreign_controller(live)
        if controller:
            return f"controlled by {controller}"
        is_owned = bool(get_field(live, ("metadata", "ownerReferences")))
        if not (self._owner.references(live) if is_owned else self.is_applied_by_us(live)):
            return "not ours"
        other = other_applier(live, self._component, self._context)
        return f"applied by {other}" if other else ""

    def is_applied_by_us(self, live: Manifest) -> bool:
        """Return whether this component applied an object."""
        return ManagedFields.of(live).owned_by(self._manager) is not None

    async def may_own(self, api_version: str, kind: str) -> bool:
        """Return whether objects of a kind can refer to the owner; False for a kind that is not served."""
        try:
            return not self._owner.key.namespace or await self._cluster.is_namespaced(api_version, kind)
        except NotFoundError:
            return False

    async def applied(self, api_version: str, kind: str, namespace: str) -> list[Manifest]:
        """List the objects that this component applied for its owner; empty for a kind that is not served.

        An object that can refer to the owner does, or it was orphaned; a cluster-scoped one may not be able to.
        """
        # There may be thousands of the kind: a cache finds those that refer to the owner, and what is ours is in the
        # metadata.
        unable = bool(self._owner.key.namespace) and not namespace
        owner = "" if unable else self._owner.uid
        options = ListOptions(namespace=namespace, owner=owner, metadata_only=True)
        try:
            found = await self._context.unobserved_of(self._component).list(api_version, kind, options)
        except NotFoundError:
            return []
        refers = self._owner.references
        return [live for live in found.items if self.is_applied_by_us(live) and (unable or refers(live))]

    async def marked(self, api_version: str, kind: str) -> list[Manifest]:
        """List the objects in all namespaces that this component has marked as its owner's."""
        options = ListOptions(label_selector=self._owner.mark, metadata_only=True)
        try:
            found = await self._context.unobserved_of(self._component).list(api_version, kind, options)
        except NotFoundError:
            return []
        return [live for live in found.items if self.has_fields(live) or self.is_deleted_with_owner(live)]

    def has_fields(self, live: Manifest) -> bool:
        """Return whether this component has set fields in an object of another writer."""
        return any(ManagedFields.of(live).owned_by(manager) is not None for manager in self._fields_managers)

    def is_shared(self, live: Manifest) -> bool:
        """Return whether another owner of this kind applies an object that is deleted with ours."""
        if not self.is_deleted_with_owner(live):
            return False
        others = [name for name in ManagedFields.of(live).appliers if self._owner.other_uid_of(name) is not None]
        # Who sets single fields in an object has not made it, and does not keep it.
        return any(f"/{FIELDS}/" not in name for name in others)

    def is_deleted_with_owner(self, live: Manifest) -> bool:
        """Return whether this component has applied an object that is deleted with its owner, and marked it as such."""
        labels = get_field(live, ("metadata", "labels")) or {}
        return labels.get(self._owner.mark) == Mark.OBJECT and self.is_applied_by_us(live)

    async def release_fields(self, live: Manifest) -> bool:
        """Give up the fields that this component has set in an object that stays; return whether it had any.

        An apply without fields removes those that no other field manager owns. With the uid, it creates no object.
        """
        key, managed = ObjectKey.of(live), ManagedFields.of(live)
        metadata = {name: live["metadata"][name] for name in ("name", "namespace", "uid") if live["metadata"].get(name)}
        bare = {"apiVersion": key.api_version, "kind": key.kind, "metadata": metadata}
        ours = self._owner.field_manager(self._component, SECOND), self._manager
        managers = self._fields_managers if self.has_fields(live) else ours
        held = [manager for manager in managers if managed.owned_by(manager) is not None]
        for manager in held:
            self._cluster.apply_cache.forget_write(key, manager)
            try:
                released = await self._cluster.apply(bare, field_manager=manager, force=True)
                if self._owner.is_object(key):
                    self._context.owner_changed(released)
            except OcfError as error:
                if isinstance(error, ConflictError | NotFoundError) and not await self._exists(key, metadata["uid"]):
                    return False
                raise self._failed(f"release the fields of resource {key}", key, error) from error
        return bool(held)

    async def _exists(self, key: ObjectKey, uid: str) -> bool:
        try:
            return bool((await self._cluster.get(key))["metadata"].get("uid") == uid)
        except NotFoundError:
            return False

    async def is_left_to_kubernetes(self, live: Manifest) -> bool:
        """Return whether the namespace of an object is being deleted.

        Then Kubernetes deletes the object, in an order of its own: pods before what they need, such as a NetworkPolicy.
        The answer is that to a dry run of a create, which needs no right to read namespaces.
        """
        key = ObjectKey.of(live)
        if key.namespace and key.namespace not in self._ending:
            try:
                # Admission knows that a namespace ends, and runs before the API server finds that the object exists.
                await self._cluster.create(sendable(live), field_manager=self._manager, dry_run=True)
            except OcfError as error:
                # Any other rejection, also for lack of the right to create, says nothing about the namespace.
                self._ending[key.namespace] = is_namespace_ending(error)
        return self._ending.get(key.namespace, False)

    async def is_needed_for_cleanup(self, live: Manifest) -> bool:
        """Return whether a held object is being deleted because its namespace or its owner is."""
        try:
            return await self.is_left_to_kubernetes(live) or await is_owner_ending(self._context)
        except OcfError as error:
            key = ObjectKey.of(live)
            raise self._failed(f"release resource {key}", key, error) from error

    def held_back(self, live: Manifest) -> tuple[str, timedelta] | None:
        """Return why a delete waits, and how long, because another client creates the object again and again."""
        key, cache, elapsed = ObjectKey.of(live), self._cluster.apply_cache, self._context.elapsed
        last = record_revert(cache.last_write(key, self._deletes), DELETED, elapsed)
        if last is None:
            return None
        cache.note_write(key, self._deletes, last)
        rest = wait(last, DELETED, elapsed)
        if rest is None:
            return None
        managers = sorted({entry.manager.name for entry in ManagedFields.of(live).entries})
        return f"created again repeatedly by {', '.join(managers) or 'another client'}", rest

    def holds(self, live: Manifest) -> bool:
        """Return whether our finalizer holds an object for a clean-up."""
        return hold_finalizer(self._owner.operator) in finalizers_of(live)

    async def release(self, live: Manifest) -> None:
        """Remove our finalizer from an object that is being deleted, and that no clean-up needs."""
        key = ObjectKey.of(live)
        try:
            await release_object(self._cluster, key, self._owner.operator, self._owner.foreign_controller)
        except OcfError as error:
            raise self._failed(f"release resource {key}", key, error) from error

    async def delete(self, live: Manifest, propagation: Propagation = Propagation.BACKGROUND) -> None:
        """Delete an object in the version that was read; do nothing if it was deleted meanwhile.

        An error, also that the object was changed or replaced meanwhile, names the resource. By default the dependents
        are deleted, too: the default of the API server would leave the pods of a Job.
        """
        key, metadata = ObjectKey.of(live), live["metadata"]
        cache = self._cluster.apply_cache
        cache.forget_write(key, self._manager)
        version: str | None = metadata["resourceVersion"]
        try:
            if self.holds(live):
                await release_object(self._cluster, key, self._owner.operator, self._owner.foreign_controller)
                # That was a write of our own; the uid still protects a new object of this name.
                version = None
            as_read = Preconditions(uid=metadata["uid"], resource_version=version)
            await self._cluster.delete(key, DeleteOptions(preconditions=as_read, propagation=propagation))
        except NotFoundError:
            return
        except ConflictError as error:
            raise self._failed(f"delete resource {key} as observed", key, error) from error
        except OcfError as error:
            raise self._failed(f"delete resource {key}", key, error) from error
        last = cache.last_write(key, self._deletes)
        cache.note_write(key, self._deletes, written(last, DELETED, self._context.elapsed))

    async def orphan(self, live: Manifest) -> bool:
        """Remove our owner reference and our label from an object, and keep all else in it; return whether it had one.

        Without the label, it is not deleted with the owner.
        """
        key = ObjectKey.of(live)
        try:
            return await retry_on_conflict(lambda: self._cluster.get(key), self._orphan, live=live)
        except NotFoundError:
            return False
        except OcfError as error:
            raise self._failed(f"orphan resource {key}", key, error) from error

    async def _orphan(self, live: Manifest) -> bool:
        metadata: Manifest = {"resourceVersion": live["metadata"]["resourceVersion"]}
        if self._owner.references(live):
            metadata["ownerReferences"] = self._owner.disowned(live)["metadata"].get("ownerReferences")
        if self.is_deleted_with_owner(live):
            metadata["labels"] = {self._owner.mark: None}
        if len(metadata) == 1:
            return False
        # A patch, because an apply would also remove every field that it does not contain.
        patch = {"metadata": metadata}
        options = PatchOptions(patch_type=PatchType.MERGE, field_manager=self._manager)
        await self._cluster.patch(ObjectKey.of(live), patch, options)
        return True

    def _failed(self, what: str, key: ObjectKey, error: OcfError) -> ReconcileError:
        return ReconcileError(self._component, f"failed to {what}: {error}", resource=str(key))
