"""Server-side apply of one resource, sent only if it would change the object."""

from __future__ import annotations

import marshal
from collections.abc import Collection
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Final

from ocf.cluster import LastWrite
from ocf.component.apply.drift import find_drift
from ocf.component.apply.field_handover import (
    DesiredStates,
    has_no_saved_value,
    owned_ignored_fields,
    plan_handover,
    with_saved_values,
)
from ocf.component.apply.write_backoff import is_fighting, is_older, next_write, record_revert, written
from ocf.component.model.ownership import sendable
from ocf.component.model.resource_options import Conflicts
from ocf.component.model.timeouts import call_with_timeout
from ocf.component.status.results import Drift
from ocf.concepts import ApplyOperation, Why
from ocf.errors import ConfigError, ConflictError, MutationError, NotFoundError, OcfError, ReconcileError
from ocf.objects import Manifest, ObjectKey, format_path, is_quantity_field
from ocf.objects.managed_fields import ManagedFields

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
        self._timeout = timeout
        self._rendered = rendered
        self._entry = entry
        self._key = entry.key
        self._options = entry.options
        self._component = component
        self._context = context
        self._cluster = context.cluster
        self._ignore_fields = ignore_fields
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
        desired = await self._desired(suspended=suspended)
        try:
            if suspended:
                states = await self._desired_states(live)
                return await self._apply_if_drifted(
                    with_saved_values(desired, live, self._manager, self._ignore_fields, states), live
                )
            live, handed_over = await self._hand_over_fields(live)
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

    async def _desired(self, *, suspended: bool) -> Manifest:
        try:
            rendered = self._rendered
            if rendered is None or suspended or self._ignore_fields:
                rendered = await self._render(suspended=suspended, ignore_fields=self._ignore_fields)
            key = ObjectKey.of(rendered)
            if key != self._key:
                raise ConfigError(f"rendered {key}, expected {self._key}")
            owner = self._context.owned_by
            desired = sendable(rendered)
            return owner.disowned(desired) if self._options.unowned else owner.owned(desired)
        except OcfError as error:
            raise self._failed("mutate", error) from error

    async def _render(self, *, suspended: bool = False, ignore_fields: Collection[tuple[str, ...]] = ()) -> Manifest:
        render = self._entry.resource.render
        if self._timeout is None:
            return render(suspended=suspended, ignore_fields=ignore_fields)
        return await call_with_timeout(self._timeout, render, suspended=suspended, ignore_fields=ignore_fields)

    async def _desired_states(self, live: Manifest | None) -> DesiredStates:
        """Render the object with its ignored fields, if no saved value exists for them."""
        if not has_no_saved_value(live, self._manager, self._ignore_fields):
            return DesiredStates({}, {})
        try:
            return DesiredStates(await self._render(), await self._render(suspended=True))
        except OcfError:
            # Usually because of an empty data cell; then only the live value is known.
            return DesiredStates({}, {})

    async def _hand_over_fields(self, live: Manifest | None) -> tuple[Manifest | None, tuple[Drift, ...]]:
        """Hand over the ignored fields that we still own."""
        if not self._ignore_fields:
            return live, ()
        for tries_left in reversed(range(_HAND_OVER_TRIES)):
            if live is None or not owned_ignored_fields(live, self._manager, self._ignore_fields):
                break
            states = await self._desired_states(live)
            plan = plan_handover(live, self._manager, self._ignore_fields, states)
            if plan is None:
                break
            try:
                live = await self._cluster.apply(plan.manifest, field_manager=self._handover_manager, force=plan.force)
            except ConflictError:
                if not tries_left:
                    raise
                live = await self.get()
            else:
                return live, tuple(Drift(path, Why.HANDED_OVER) for path in plan.paths)
        return live, ()

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
        ignore_fields = {f".{format_path(path)}" for path in self._ignore_fields}
        return bool(error.causes) and all(cause.field in ignore_fields for cause in error.causes)

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
