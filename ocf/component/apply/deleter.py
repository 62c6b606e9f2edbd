"""Deletion and orphaning of single objects that belong to a component, with preconditions.

An object is also deleted to be created again, because a field of it cannot be changed. The API server has no reason of
its own for such a rejection: the pod template of a Job, the spec of a Pod, a selector and a `roleRef` are rejected like
any invalid value, and only the text of a cause differs.
"""

from __future__ import annotations

import re
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from ocf.cluster import DeleteOptions, PatchOptions, PatchType, Propagation
from ocf.cluster.protocol import Preconditions
from ocf.cluster.retry import retry_on_conflict
from ocf.cluster.server_errors import is_namespace_ending
from ocf.component.apply.takeover import other_applier
from ocf.component.held_objects import is_owner_ending, release_object
from ocf.component.model.holds import hold_finalizer
from ocf.component.model.ownership import finalizers_of, sendable
from ocf.component.model.write_backoff import DELETED, deletes_of, record_revert, wait, written
from ocf.errors import (
    AlreadyExistsError,
    ConfigError,
    ConflictError,
    InvalidError,
    NotFoundError,
    OcfError,
    ReconcileError,
)
from ocf.objects import Manifest, ObjectKey
from ocf.objects.field_errors import ErrorType
from ocf.objects.managed_fields import ManagedFields
from ocf.objects.paths import get_field

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import timedelta

    from ocf.component.context import ReconcileContext
    from ocf.errors import ApiError, StatusCause

__all__ = ["OWNER_ITSELF", "OwnedObjectDeleter", "immutable_fields", "immutable_problem"]

OWNER_ITSELF: Final = "it is the owner itself"
"""Why an owner is not deleted by a component of its own."""

_MOST_PATHS: Final = 5
# Texts of the validation of Kubernetes 1.36, and usual ones of the rules of custom kinds (`self == oldSelf`).
_TEXTS: Final = re.compile(
    r"immutable|may not change|may not be changed|cannot be changed|cannot change|for fields other than", re.IGNORECASE
)


class OwnedObjectDeleter:
    """Deletes and orphans objects of one component, in one reconcile."""

    def __init__(self, component: str, context: ReconcileContext) -> None:
        self._component = component
        self._context = context
        self._cluster = context.cluster
        self._owner = context.owned_by
        self._manager = self._owner.field_manager(component)
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

    async def is_left_to_kubernetes(self, live: Manifest) -> bool:
        """Return whether the namespace of an object is being deleted.

        Then Kubernetes deletes the object, in an order of its own: pods before what they need, such as a NetworkPolicy.
        The answer is that to a dry run of a create, which needs no right to read namespaces.
        """
        key = ObjectKey.of(live)
        if key.namespace and key.namespace not in self._ending:
            try:
                await self._cluster.create(sendable(live), field_manager=self._manager, dry_run=True)
            except OcfError as error:
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
            if hold_finalizer(self._owner.operator) in finalizers_of(live):
                await release_object(self._cluster, key, self._owner.operator, self._owner.foreign_controller)
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

    async def delete_for_recreation(self, live: Manifest, desired: Manifest) -> None:
        """Delete an object, so that a later reconcile creates the desired one.

        Raises:
            ConfigError: If the object does not belong to the component.
            OcfError: If the API server would not accept the new object, or the delete fails; then nothing is deleted.
        """
        kept = self.reason_to_keep(live)
        if kept:
            raise ConfigError(f"{ObjectKey.of(live)} is not deleted to be created again: {kept}")
        # The API server validates an object before it looks for one of the same name, so it accepts the new one.
        with suppress(AlreadyExistsError):
            await self._cluster.create(desired, field_manager=self._manager, dry_run=True)
        await self.delete(live)

    async def orphan(self, live: Manifest) -> bool:
        """Remove our owner reference from an object, and keep everything else in it; return whether it had one."""
        key = ObjectKey.of(live)
        try:
            return await retry_on_conflict(lambda: self._cluster.get(key), self._orphan, live=live)
        except NotFoundError:
            return False
        except OcfError as error:
            raise self._failed(f"orphan resource {key}", key, error) from error

    async def _orphan(self, live: Manifest) -> bool:
        if not self._owner.references(live):
            return False
        # A patch, because an apply would also remove every field that it does not contain.
        others = self._owner.disowned(live)["metadata"].get("ownerReferences")
        patch = {"metadata": {"resourceVersion": live["metadata"]["resourceVersion"], "ownerReferences": others}}
        options = PatchOptions(patch_type=PatchType.MERGE, field_manager=self._manager)
        await self._cluster.patch(ObjectKey.of(live), patch, options)
        return True

    def _failed(self, what: str, key: ObjectKey, error: OcfError) -> ReconcileError:
        return ReconcileError(self._component, f"failed to {what}: {error}", resource=str(key))


def immutable_fields(error: OcfError) -> tuple[str, ...]:
    """Return the fields of a rejected update that cannot be changed; none if anything else is invalid as well.

    Example:
        >>> from ocf.errors import StatusCause
        >>> causes = (StatusCause("FieldValueInvalid", "Invalid value: {}: field is immutable", "spec.selector"),)
        >>> immutable_fields(InvalidError("invalid", causes=causes))
        ('spec.selector',)
    """
    if not isinstance(error, InvalidError) or not all(_TEXTS.search(cause.message) for cause in error.causes):
        return ()
    return tuple(dict.fromkeys(cause.field for cause in error.causes))


def immutable_problem(error: ApiError, changed: Iterable[str], *, quotes: bool = True) -> str:
    """Return the text for an author who changes fields that cannot be changed.

    Args:
        error: The rejection.
        changed: Paths of all that the apply changes; the text has those that are part of a rejected field.
        quotes: Whether the text may have sentences of the API server.
    """
    fields = immutable_fields(error)
    below = tuple(f"{field}{mark}" for field in fields for mark in ".[")
    parts = [path for path in changed if path.startswith(below)]
    sentences = [_allowed(cause) for cause in error.causes if cause.reason == ErrorType.FORBIDDEN] if quotes else []
    details = [*dict.fromkeys(sentences), *([f"this apply changes {_shown(parts)}"] if parts else [])]
    detail = f" ({'; '.join(details)})" if details else ""
    return (
        f"{', '.join(fields)} cannot be changed in the existing object{detail}: "
        "keep the value, give the resource another name, or register it with recreate_on_immutable_change, which "
        "deletes the object with its dependents and its data, and creates it again"
    )


def _allowed(cause: StatusCause) -> str:
    """Return the server's sentence about what may change, without the difference of the values that may follow it."""
    return cause.message.removeprefix(f"{ErrorType.FORBIDDEN.words}: ").partition("\n")[0].strip()


def _shown(paths: list[str]) -> str:
    more = len(paths) - _MOST_PATHS
    return ", ".join(paths[:_MOST_PATHS]) + (f" and {more} more" if more > 0 else "")
