"""Server-side apply of one resource, sent only if it would change the object."""

from __future__ import annotations

import marshal
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial
from hashlib import blake2b
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final

from ocf.cluster import LastWrite
from ocf.component.apply.desired_object import DesiredObject
from ocf.component.apply.drift import find_drift
from ocf.component.apply.field_handover import DesiredStates, Handover, lacks_saved_value, plan_handover
from ocf.component.apply.saved_fields import saved_values, with_saved_values
from ocf.component.apply.write_backoff import is_fighting, is_older, next_write, record_revert, written
from ocf.component.model.resource_options import Conflicts
from ocf.component.status.results import Drift
from ocf.concepts import ApplyOperation, Why
from ocf.errors import ConflictError, InvalidError, MutationError, NotFoundError, OcfError, ReconcileError
from ocf.objects import Manifest, is_quantity_field
from ocf.objects.managed_fields import ManagedFields, fields_path
from ocf.objects.owned_paths import ABSENT, path_label, value_at

if TYPE_CHECKING:
    from ocf.component.model.context import ReconcileContext
    from ocf.component.model.registration import Registration

__all__ = ["Applier", "ApplyResult"]

# A handover names the version that was read, so it conflicts whenever another writer changed the object meanwhile.
_HAND_OVER_TRIES: Final = 5
_IGNORED_METADATA: Final = frozenset({"generation", "managedFields", "resourceVersion"})
_IGNORED: Final = frozenset({"apiVersion", "kind", "metadata", "status"})


@dataclass(frozen=True, slots=True)
class ApplyResult:
    """Result of applying one object.

    Args:
        live: The object as stored now.
        operation: What changed.
        why: Why it was written, or why not.
        writes: Number of write requests that were sent.
        reasons: The drift that was found, also if the write is held back.
        revert_message: Message about the field manager that reverts the component's writes; empty if there is
            none.
        retry_after: Time until a write that is held back is sent; None otherwise.
    """

    live: Manifest
    operation: ApplyOperation
    why: Why
    writes: int = 0
    reasons: tuple[Drift, ...] = ()
    revert_message: str = ""
    retry_after: timedelta | None = None


class Applier:
    """Reads and applies the object of one resource, in one reconcile.

    Args:
        entry: The resource.
        component: Name of the component.
        manager: Field manager of the component.
        context: The reconcile of the owner.
        ignore_fields: Ignored fields of the object.
        rendered: The object as it was rendered earlier in the reconcile; None if it was not.
        timeout: Timeout of rendering; None for no limit.
    """

    def __init__(
        self,
        entry: Registration,
        component: str,
        manager: str,
        context: ReconcileContext,
        ignore_fields: Collection[tuple[str, ...]] = (),
        *,
        rendered: Manifest | None = None,
        timeout: timedelta | None = None,
    ) -> None:
        self._entry = entry
        self._key = entry.key
        self._options = entry.options
        self._component = component
        self._context = context
        self._cluster = context.cluster
        self._desired = DesiredObject(entry, context.owned_by, ignore_fields, rendered, timeout)
        self._ignored = [fields_path(path) for path in ignore_fields]
        self._manager = manager

    async def get(self) -> Manifest | None:
        """Read the live object; None if it does not exist."""
        try:
            return await self._cluster.get(self._key)
        except NotFoundError:
            return None
        except OcfError as error:
            raise self._failed("check existence of", error) from error

    async def apply(self, live: Manifest | None, *, suspended: bool = False) -> ApplyResult:
        """Apply the desired state, unless the object is in sync with it.

        Args:
            live: The live object as just read; None if it does not exist.
            suspended: Whether the suspended form is applied.

        Raises:
            ReconcileError: Names the resource and the failed step.
        """
        desired = await self._rendered(suspended=suspended)
        try:
            if suspended:
                return await self._apply_if_drifted(await self._with_saved_values(desired, live), live)
            live, handed_over = await self._hand_over_fields(live, desired)
            applied = await self._apply_if_drifted(desired, live)
        except OcfError as error:
            raise self._failed("apply", error) from error
        if not handed_over:
            return applied
        return replace(
            applied,
            operation=ApplyOperation.UPDATED,
            why=Why.HANDED_OVER,
            writes=applied.writes + 1,
            reasons=(*handed_over, *applied.reasons),
        )

    def _failed(self, what: str, error: OcfError) -> ReconcileError:
        """Return an error that names the resource and the failed step once."""
        identity = self._entry.identity
        problem = error.problem if isinstance(error, MutationError | ReconcileError) else str(error)
        return ReconcileError(self._component, f"failed to {what} resource {identity}: {problem}", resource=identity)

    async def _rendered(self, *, suspended: bool) -> Manifest:
        try:
            return await self._desired.applied(suspended=suspended)
        except OcfError as error:
            raise self._failed("mutate", error) from error

    async def _with_saved_values(self, suspended: Manifest, live: Manifest | None) -> Manifest:
        """Add the live values of the fields that only the suspension sets."""
        running = await self._rendered(suspended=False)
        states = await self._states(live, saved_values(live))
        set_here = [path for path in self._ignored if value_at(suspended, path) is not ABSENT]
        ignored = [(path, states.value(live, path)) for path in set_here]
        return with_saved_values(suspended, running, live, self._manager, ignored)

    async def _states(self, live: Manifest | None, saved: Mapping[str, Any]) -> DesiredStates:
        """Render the object with its ignored fields, if we own one of them without a saved value."""
        own = ManagedFields.of(live).owned_by(self._manager) or {}
        return await self._desired.states() if lacks_saved_value(own, saved, self._ignored) else DesiredStates({}, {})

    async def _hand_over_fields(
        self, live: Manifest | None, desired: Manifest
    ) -> tuple[Manifest | None, tuple[Drift, ...]]:
        """Hand over the fields that our apply drops, and whose values must stay."""
        saved = saved_values(live)
        for tries_left in reversed(range(_HAND_OVER_TRIES)):
            plan = await self._plan_handover(live, desired, saved)
            if plan is None:
                break
            try:
                live = await self._cluster.apply(plan.manifest, field_manager=self._handover_manager, force=plan.force)
            except ConflictError:
                if not tries_left:
                    raise
                live = await self.get()
                saved = saved and saved_values(live)
            except InvalidError as error:
                if not saved or not _is_about_values(error):
                    raise
                # The annotation was edited, and the API server rejects what it holds.
                saved = {}
            else:
                return live, tuple(Drift(path, Why.HANDED_OVER) for path in plan.paths)
        return live, ()

    async def _plan_handover(
        self, live: Manifest | None, desired: Manifest, saved: Mapping[str, Any]
    ) -> Handover | None:
        if live is None or not (self._ignored or saved):
            return None
        return plan_handover(
            live,
            desired,
            manager=self._manager,
            second=self._handover_manager,
            ignored=self._ignored,
            saved=saved,
            states=await self._states(live, saved),
        )

    @property
    def _handover_manager(self) -> str:
        return self._context.owned_by.field_manager(self._component, "left")

    async def _apply_if_drifted(self, desired: Manifest, live: Manifest | None) -> ApplyResult:
        digest = _digest(desired)
        why, reasons = (Why.ABSENT, (Drift("", Why.ABSENT),)) if live is None else self._compare(desired, live, digest)
        if live is not None and not reasons:
            return ApplyResult(live, ApplyOperation.NONE, why)
        # A deleted object is created again at once; only changes of an existing one are held back.
        last = self._last_write(live, digest) if live is not None else None
        revert = ""
        if live is not None and last is not None and is_fighting(last):
            revert = _revert_message(live, self._manager)
            rest = next_write(last) - self._context.elapsed
            if rest > timedelta(0):
                return ApplyResult(live, ApplyOperation.NONE, Why.BACKING_OFF, 0, reasons, revert, rest)
        answer = await self._send(desired)
        version = str(answer["metadata"].get("resourceVersion", ""))
        self._remember(desired, answer, written(last, digest, self._context.elapsed, version))
        return ApplyResult(answer, _operation(live, answer), why, 1, reasons, revert)

    def _compare(self, desired: Manifest, live: Manifest, digest: bytes) -> tuple[Why, tuple[Drift, ...]]:
        """Return why the object must be written; without reasons if it is in sync."""
        cache, uid, version = self._cluster.apply_cache, _uid(live), live["metadata"].get("resourceVersion")
        known = bool(digest and uid and version)
        if known and cache.is_in_sync(uid, self._manager, version, digest):
            return Why.IN_SYNC, ()
        found = self._find_drift(desired, live)
        if known and not found:
            cache.mark_in_sync(uid, self._manager, version, digest)
        return (found[0].why if found else Why.EQUAL), tuple(found)

    def _last_write(self, live: Manifest, digest: bytes) -> LastWrite | None:
        """Return the last write of this desired state, updated for the drift that was found."""
        cache, key = self._cluster.apply_cache, self._key
        last = cache.last_write(key, self._manager)
        if last is not None and is_older(str(live["metadata"].get("resourceVersion", "")), last):
            return last
        last = record_revert(last, digest, self._context.elapsed)
        if last is not None:
            cache.note_write(key, self._manager, last)
        return last

    async def _send(self, desired: Manifest) -> Manifest:
        force = self._options.on_conflict is Conflicts.TAKE
        try:
            return await self._cluster.apply(desired, field_manager=self._manager, force=force)
        except ConflictError as error:
            if force or not self._is_about_ignored_fields(error):
                raise
        # Only a suspension sends an ignored field, and it takes the field from its manager.
        return await self._cluster.apply(desired, field_manager=self._manager, force=True)

    def _is_about_ignored_fields(self, error: ConflictError) -> bool:
        ignored = {f".{path_label(path)}" for path in self._ignored}
        return bool(error.causes) and all(cause.field in ignored for cause in error.causes)

    def _find_drift(self, desired: Manifest, live: Manifest, *, fresh: bool = False) -> list[Drift]:
        key = self._key
        is_quantity = partial(is_quantity_field, key.api_version, key.kind)
        known = {} if fresh else self._cluster.apply_cache.rewrites(_uid(live), self._manager)
        return find_drift(desired, live, manager=self._manager, rewrites=known, is_quantity=is_quantity)

    def _remember(self, desired: Manifest, answer: Manifest, write: LastWrite) -> None:
        """Remember the write, and the values that the server stored differently from how they were sent."""
        found = self._find_drift(desired, answer, fresh=True)
        rewrites = {drift.path: (drift.sent, drift.stored) for drift in found}
        self._cluster.apply_cache.remember(_uid(answer), self._manager, rewrites)
        if write.desired_hash:
            self._cluster.apply_cache.note_write(self._key, self._manager, write)


def _is_about_values(error: InvalidError) -> bool:
    """Return whether values in a request are rejected by the API server itself, and not by a policy of admission."""
    # An apply with a value of a wrong type is answered with 500 and without causes.
    return error.code != HTTPStatus.UNPROCESSABLE_ENTITY or any(cause.field for cause in error.causes)


def _uid(live: Manifest) -> str:
    return str(live["metadata"].get("uid", ""))


def _digest(desired: Manifest) -> bytes:
    """Return a digest of the desired object; empty if a resource of the user's own renders values that are not JSON."""
    try:
        # Version 2 has no object references, so equal manifests with equal key order give equal bytes.
        return blake2b(marshal.dumps(desired, 2), digest_size=16).digest()
    except ValueError:
        return b""


def _revert_message(live: Manifest, manager: str) -> str:
    """Describe the revert, with the field manager that changed the object last."""
    entries = ManagedFields.of(live).entries
    others = [entry for entry in entries if entry.manager.name != manager and entry.manager.subresource != "status"]
    latest = max(others, key=lambda entry: entry.time, default=None)
    by = f', last changed by "{latest.manager.name}"' if latest is not None else ""
    return f"what was applied is reverted repeatedly{by}"


def _operation(before: Manifest | None, after: Manifest) -> ApplyOperation:
    """Return what an apply did; changes of the status and of server-set metadata do not count."""
    if before is None:
        return ApplyOperation.CREATED
    return ApplyOperation.NONE if _content(before) == _content(after) else ApplyOperation.UPDATED


def _content(manifest: Manifest) -> tuple[Any, Any]:
    metadata = {key: value for key, value in manifest["metadata"].items() if key not in _IGNORED_METADATA}
    return metadata, {key: value for key, value in manifest.items() if key not in _IGNORED}
