"""One managed resource: bring its object to the desired state, with as few writes as possible."""

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
from ocf.component.apply.field_handover import DesiredStates, has_no_saved_value, plan_handover, with_saved_values
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

# A hand-over is bound to the version that was read; the autoscaler may be faster than we are this often.
_HAND_OVER_TRIES: Final = 5
_IGNORED_METADATA: Final = frozenset({"generation", "managedFields", "resourceVersion"})
_IGNORED: Final = frozenset({"apiVersion", "kind", "metadata", "status"})


@dataclass(frozen=True, slots=True)
class ApplyResult:
    """What bringing an object to its desired state did.

    Args:
        live: The object as it is now.
        operation: What changed.
        why: Why it was written, or why not.
        writes: How many write requests were sent.
        reasons: What was different, field by field; also where the write is held back.
        contest: Who undoes what we write, for people; empty while nobody does.
        retry_after: How long the write is still held back; None where it is not.
    """

    live: Manifest
    operation: ApplyOperation
    why: Why
    writes: int = 0
    reasons: tuple[Drift, ...] = ()
    conflicting_manager: str = ""
    retry_after: timedelta | None = None


class Applier:
    """The object of one resource, in one pass.

    Args:
        entry: What it should be, and how it is treated.
        component: Name of the component.
        manager: Field manager of the component.
        context: The pass.
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
        """Read the live object; None while there is none."""
        try:
            return await self._cluster.get(self._key)
        except NotFoundError:
            return None
        except OcfError as error:
            raise self._failed("check existence of", error) from error

    async def apply(self, live: Manifest | None, *, suspended: bool = False) -> ApplyResult:
        """Bring the object to the desired state, unless it is there already.

        Args:
            live: The live object as just read; None while there is none.
            suspended: Whether the suspended form is wanted.

        Raises:
            ReconcileError: Naming the resource and what was tried.
        """
        wanted = await self._wanted(suspended=suspended)
        try:
            if suspended:
                forms = await self._forms(live)
                return await self._apply_if_drifted(
                    with_saved_values(wanted, live, self._manager, self._ignore_fields, forms), live
                )
            live, handed = await self._hand_over_fields(live)
            applied = await self._apply_if_drifted(wanted, live)
        except OcfError as error:
            raise self._failed("apply", error) from error
        if not handed:
            return applied
        return replace(
            applied,
            operation=ApplyOperation.UPDATED,
            why=Why.HANDED_OVER,
            writes=applied.writes + 1,
            reasons=(*handed, *applied.reasons),
        )

    def _failed(self, what: str, error: OcfError) -> ReconcileError:
        """Name the resource and what was tried, once."""
        identity = self._entry.identity
        problem = error.problem if isinstance(error, MutationError | ReconcileError) else str(error)
        return ReconcileError(self._component, f"failed to {what} resource {identity}: {problem}", resource=identity)

    async def _wanted(self, *, suspended: bool) -> Manifest:
        try:
            rendered = self._rendered
            if rendered is None or suspended or self._ignore_fields:
                rendered = await self._render(suspended=suspended, ignore_fields=self._ignore_fields)
            key = ObjectKey.of(rendered)
            if key != self._key:
                raise ConfigError(f"rendered {key}, which is another object")
            owner = self._context.owned_by
            wanted = sendable(rendered)
            return owner.disowned(wanted) if self._options.unowned else owner.owned(wanted)
        except OcfError as error:
            raise self._failed("mutate", error) from error

    async def _render(self, *, suspended: bool = False, ignore_fields: Collection[tuple[str, ...]] = ()) -> Manifest:
        render = self._entry.resource.render
        if self._timeout is None:
            return render(suspended=suspended, ignore_fields=ignore_fields)
        return await call_with_timeout(self._timeout, render, suspended=suspended, ignore_fields=ignore_fields)

    async def _forms(self, live: Manifest | None) -> DesiredStates:
        """Render the object with the fields left to others, where only that tells what they were."""
        if not has_no_saved_value(live, self._manager, self._ignore_fields):
            return DesiredStates({}, {})
        try:
            return DesiredStates(await self._render(), await self._render(suspended=True))
        except OcfError:
            # Most often for lack of data: then the live value is all that is known.
            return DesiredStates({}, {})

    async def _hand_over_fields(self, live: Manifest | None) -> tuple[Manifest | None, tuple[Drift, ...]]:
        """Hand over the ignored fields that we still own."""
        if not self._ignore_fields:
            return live, ()
        manager = self._context.owned_by.field_manager(self._component, "left")
        for tries_left in reversed(range(_HAND_OVER_TRIES)):
            forms = await self._forms(live)
            plan = plan_handover(live, self._manager, self._ignore_fields, forms) if live is not None else None
            if plan is None:
                break
            try:
                live = await self._cluster.apply(plan.manifest, field_manager=manager, force=plan.force)
            except ConflictError:
                if not tries_left:
                    raise
                live = await self.get()
            else:
                return live, tuple(Drift(path, Why.HANDED_OVER) for path in plan.paths)
        return live, ()

    async def _apply_if_drifted(self, wanted: Manifest, live: Manifest | None) -> ApplyResult:
        digest = _digest(wanted)
        why, reasons = (Why.ABSENT, (Drift("", Why.ABSENT),)) if live is None else self._compared(wanted, live, digest)
        if live is not None and not reasons:
            return ApplyResult(live, ApplyOperation.NONE, why)
        # An object that somebody deletes is made again at once: there is nothing of theirs to fight over.
        last = self._last_write(live, digest) if live is not None else None
        contest = ""
        if live is not None and last is not None and is_fighting(last):
            contest = _contest(live, self._manager)
            rest = next_write(last) - self._context.elapsed
            if rest > timedelta(0):
                return ApplyResult(live, ApplyOperation.NONE, Why.BACKING_OFF, 0, reasons, contest, rest)
        answer = await self._send(wanted)
        version = str(answer["metadata"].get("resourceVersion", ""))
        self._remember(wanted, answer, written(last, digest, self._context.elapsed, version))
        return ApplyResult(answer, _classified(live, answer), why, 1, reasons, contest)

    def _compared(self, wanted: Manifest, live: Manifest, digest: bytes) -> tuple[Why, tuple[Drift, ...]]:
        """Say why the object has to be written; no reasons if it has not."""
        memory, uid, version = self._cluster.apply_cache, _uid(live), live["metadata"].get("resourceVersion")
        known = bool(digest and uid and version)
        if known and memory.is_in_sync(uid, self._manager, version, digest):
            return Why.IN_SYNC, ()
        found = self._differences(wanted, live)
        if known and not found:
            memory.mark_in_sync(uid, self._manager, version, digest)
        return (found[0].why if found else Why.EQUAL), tuple(found)

    def _last_write(self, live: Manifest, digest: bytes) -> LastWrite | None:
        """Return what is known of our last write of this wish, now that the object is not as it was written."""
        memory, key = self._cluster.apply_cache, self._key
        last = memory.last_write(key, self._manager)
        if last is not None and is_older(str(live["metadata"].get("resourceVersion", "")), last):
            return last
        last = record_revert(last, digest, self._context.elapsed)
        if last is not None:
            memory.note_write(key, self._manager, last)
        return last

    async def _send(self, wanted: Manifest) -> Manifest:
        force = self._options.on_conflict is Conflicts.TAKE
        try:
            return await self._cluster.apply(wanted, field_manager=self._manager, force=force)
        except ConflictError as error:
            if force or not self._is_about_leaves(error):
                raise
        # Only a suspension sends a field that is left to others, and takes it on purpose.
        return await self._cluster.apply(wanted, field_manager=self._manager, force=True)

    def _is_about_leaves(self, error: ConflictError) -> bool:
        ignore_fields = {f".{format_path(path)}" for path in self._ignore_fields}
        return bool(error.causes) and all(cause.field in ignore_fields for cause in error.causes)

    def _differences(self, wanted: Manifest, live: Manifest, *, fresh: bool = False) -> list[Drift]:
        key = self._key
        is_quantity = partial(is_quantity_field, key.api_version, key.kind)
        known = {} if fresh else self._cluster.apply_cache.rewrites(_uid(live), self._manager)
        return find_drift(wanted, live, manager=self._manager, rewrites=known, is_quantity=is_quantity)

    def _remember(self, wanted: Manifest, answer: Manifest, write: LastWrite) -> None:
        """Note the write, and which values came back different from how they were sent."""
        found = self._differences(wanted, answer, fresh=True)
        rewrites = {difference.path: (difference.sent, difference.stored) for difference in found}
        self._cluster.apply_cache.remember(_uid(answer), self._manager, rewrites)
        if write.desired_hash:
            self._cluster.apply_cache.note_write(self._key, self._manager, write)


def _uid(live: Manifest) -> str:
    return str(live["metadata"].get("uid", ""))


def _digest(wanted: Manifest) -> bytes:
    """Return a digest of what would be applied; empty where a resource of the user's own renders no plain JSON."""
    try:
        # Version 2 knows no references, so equal manifests of one order give equal bytes.
        return blake2b(marshal.dumps(wanted, 2), digest_size=16).digest()
    except ValueError:
        return b""


def _contest(live: Manifest, manager: str) -> str:
    """Say who undoes what we write, as far as the object tells."""
    entries = ManagedFields.of(live).entries
    others = [entry for entry in entries if entry.manager.name != manager and entry.manager.subresource != "status"]
    latest = max(others, key=lambda entry: entry.time, default=None)
    by = f', last changed by "{latest.manager.name}"' if latest is not None else ""
    return f"what was applied is undone again and again{by}"


def _classified(before: Manifest | None, after: Manifest) -> ApplyOperation:
    """Name what an apply did; what the server counts and what controllers report does not count as a change."""
    if before is None:
        return ApplyOperation.CREATED
    return ApplyOperation.NONE if _content(before) == _content(after) else ApplyOperation.UPDATED


def _content(manifest: Manifest) -> tuple[Any, Any]:
    metadata = {key: value for key, value in manifest["metadata"].items() if key not in _IGNORED_METADATA}
    return metadata, {key: value for key, value in manifest.items() if key not in _IGNORED}
