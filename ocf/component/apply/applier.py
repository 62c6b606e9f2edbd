"""Server-side apply of one resource, sent only if it would change the object."""

from __future__ import annotations

import marshal
from collections.abc import Awaitable, Callable, Collection
from datetime import timedelta
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from ocf.cluster.apply_cache import LastWrite, Rewrites
from ocf.cluster.server_errors import is_namespace_ending, without_values
from ocf.component.apply.adoption import adoption_event, adoption_problem, is_own
from ocf.component.apply.deleter import OwnedObjectDeleter, immutable_fields, immutable_problem
from ocf.component.apply.drift import find_drift, is_stored_as_sent
from ocf.component.apply.handover import DesiredStates, FieldHandover
from ocf.component.apply.leftovers import leftover_problem, record_kept
from ocf.component.apply.owner_check import owner_exists, owner_lives
from ocf.component.apply.sender import RESTORING, ApplySender
from ocf.component.apply.takeover import Takeover, removed_fields, takeover_event
from ocf.component.author_code import call_with_timeout
from ocf.component.model.holds import with_hold
from ocf.component.model.ownership import Owner, is_ending, sendable
from ocf.component.model.resource_options import Adoption
from ocf.component.model.write_backoff import (
    EXISTENCE,
    OWNER_REFERENCE,
    deletes_of,
    is_fighting,
    is_older,
    record_revert,
    revert_message,
    wait,
    written,
)
from ocf.component.status.results import Drift
from ocf.concepts import ApplyOperation
from ocf.concepts.data import AuthorCode
from ocf.concepts.recorder import Why
from ocf.errors import (
    ApiError,
    ConfigError,
    InvalidError,
    MutationError,
    NotFoundError,
    OcfError,
    ReconcileError,
)
from ocf.objects import Manifest, ObjectKey
from ocf.objects.managed_fields import fields_path
from ocf.objects.manifest import split_api_version
from ocf.schema.builtin import ANYTHING, Type, builtin_resource, custom_object

if TYPE_CHECKING:
    from ocf.component.context import ReconcileContext
    from ocf.component.model.registration import Registration

__all__ = ["Applier", "ApplyResult"]

_IGNORED_METADATA: Final = frozenset({"generation", "managedFields", "resourceVersion"})
_IGNORED: Final = frozenset({"apiVersion", "kind", "metadata", "status"})
_SECRET: Final = ("", "Secret")
_ABSENT: Final = (Drift("", Why.ABSENT),)


class ApplyResult(NamedTuple):
    """Result of applying one object.

    Attributes:
        live: The object as stored now.
        operation: What changed.
        why: Why it was written, or why not.
        writes: Number of write requests that were sent.
        reasons: The drift that was found, also if the write is held back.
        revert_message: Message about the field manager that reverts the component's writes; empty if there is
            none.
        retry_after: Time until a write that is held back is sent; None otherwise.
        waiting: Message about an object that is not applied now, because it is deleted or being deleted, must not be
            adopted, or cannot be created in a namespace that is being deleted; empty otherwise.
    """

    live: Manifest
    operation: ApplyOperation
    why: Why
    writes: int = 0
    reasons: tuple[Drift, ...] = ()
    revert_message: str = ""
    retry_after: timedelta | None = None
    waiting: str = ""


class Applier:
    """Reads and applies the object of one resource, in one reconcile.

    Args:
        former_managers: Field managers whose fields are taken over once, by name or pattern.
        rendered: The object as it was rendered earlier in the reconcile; None if it was not.
        timeout: Timeout of rendering; None for no limit.
    """

    def __init__(
        self,
        entry: Registration,
        component: str,
        context: ReconcileContext,
        ignore_fields: Collection[tuple[str, ...]] = (),
        *,
        former_managers: Collection[str] = (),
        rendered: Manifest | None = None,
        timeout: timedelta | None = None,
    ) -> None:
        self._entry = entry
        self._key = entry.key
        self._options = entry.options
        self._component = component
        self._context = context
        self._cluster = context.cluster
        self._ignore_fields = ignore_fields
        self._known_form = rendered
        self._timeout = timeout
        self._manager = context.owned_by.field_manager(component)
        self._adoption = entry.options.adopt or Adoption.ALWAYS
        self._former_managers = former_managers
        self._takeover = Takeover(component, context, former_managers, unowned=entry.options.unowned)
        self._is_owner = context.owned_by.is_object(entry.key)
        self._sender = ApplySender(
            context,
            entry.key,
            self._manager,
            ignore_fields,
            on_conflict=entry.options.on_conflict,
            adoption=self._adoption,
            get=self.get,
            require_living_owner=self._require_living_owner,
        )
        self._is_held = entry.options.held_for_cleanup and entry.key in context.held
        self._has_secrets = entry.key.group_kind == _SECRET

    async def get(self) -> Manifest | None:
        """Read the live object, None if it does not exist; the context learns if it is the owner, and that is gone."""
        live: Manifest | None = None
        try:
            live = await self._cluster.get(self._key)
        except NotFoundError:
            pass
        except OcfError as error:
            raise self._failed("check existence of", error) from error
        if self._is_owner and (live is None or _uid(live) != self._context.owned_by.uid):
            self._context.owner_removed()
        self._require_owner()
        return live

    async def _require_living_owner(self, step: str) -> None:
        """Raise an error if the owner is gone or being deleted, as the API server and not a cache has it."""
        await self._check_owner(step, owner_lives)

    async def _check_owner(self, step: str, check: Callable[[ReconcileContext], Awaitable[bool]]) -> None:
        context = self._context
        try:
            exists = await check(context)
        except OcfError as error:
            raise self._failed(f"check the owner {context.owned_by.key} before {step}", error) from error
        if not exists:
            context.owner_removed()
        self._require_owner()

    def _require_owner(self) -> None:
        """Raise an error if the owner is gone: an apply would create what nothing would delete."""
        if self._context.is_gone:
            problem = f"the owner {self._context.owned_by.key} was deleted during the reconcile"
            raise ReconcileError(self._component, problem, resource=self._entry.identity)

    async def apply(self, live: Manifest | None, *, suspended: bool = False) -> ApplyResult:
        """Apply the desired state, suspended or running, unless the object as just read is in sync with it."""
        if live is None and self._cluster.apply_cache.last_write(self._key, self._manager) is not None:
            # What we had applied may have been deleted because its owner was.
            await self._check_owner("creating", owner_exists)
        self._require_owner()
        if live is not None and is_ending(live) and (awaited := await self._awaited_deletion(live)):
            return ApplyResult(live, ApplyOperation.NONE, Why.RECREATING, waiting=awaited)
        desired = await self._desired(suspended=suspended)
        # In this version and with this desired state, nothing was to be taken over or handed over either.
        if live is not None and not suspended and self._is_in_sync(live, self._digest(desired)):
            return ApplyResult(live, ApplyOperation.NONE, Why.IN_SYNC)
        adopted = await self._adopted(live)
        refused = adoption_problem(adopted, self._context.owned_by.key, self._adoption)
        if live is not None and refused:
            return ApplyResult(live, ApplyOperation.NONE, Why.NOT_ADOPTED, waiting=refused)
        running = await self._desired(suspended=False) if suspended else desired
        # What a suspension saves depends on the live object, so it does not distinguish one intent from another.
        intent = self._digest(desired)
        handover = FieldHandover(
            self._component, self._manager, self._context, self._ignore_fields, self._desired_states
        )
        paths: tuple[str, ...] = ()
        try:
            reasons = await self._reasons_before_apply(handover, desired, live, suspended=suspended)
            held = self._held_back(desired, live, intent, reasons) if reasons else None
            if held is not None:
                return held
            live, taken = await self._take_over(live, desired, intent)
            if suspended:
                desired = await handover.with_saved_values(desired, running, live)
            else:
                live, paths = await handover.hand_over(live, desired, self.get)
            applied = await self._apply_if_drifted(desired, live, intent, taken=taken)
        except OcfError as error:
            return await self._rejected(error, live, desired)
        before = [*taken, *(Drift(path, Why.HANDED_OVER) for path in paths)]
        return self._finished(applied, before, writes=bool(taken) + bool(paths), adopted=adopted)

    async def _awaited_deletion(self, live: Manifest) -> str:
        """Return why an object that is being deleted is left alone; empty if the desired state is applied to it."""
        if not self._is_held:
            return self._waiting if self._options.recreate_on_immutable_change else ""
        if await OwnedObjectDeleter(self._component, self._context).is_needed_for_cleanup(live):
            return f"{self._entry.identity} is being deleted, and is held for the clean-up of its owner"
        # A user has deleted it. Applied without our finalizer, it goes, and is created again.
        self._is_held = False
        return ""

    def _finished(
        self, applied: ApplyResult, before: list[Drift], *, writes: int, adopted: Manifest | None
    ) -> ApplyResult:
        """Return the result of an apply together with the writes before it, and report an adoption."""
        if self._is_owner and (applied.writes or writes):
            self._context.owner_changed(applied.live)
        if adopted is not None and applied.writes:
            event = adoption_event(self._context.owned_by, adopted, unowned=self._options.unowned)
            self._context.recorder.happened(event)
            applied = applied._replace(reasons=(*applied.reasons, Drift("", Why.ADOPTED)))
        if not before:
            return applied
        return applied._replace(
            operation=ApplyOperation.UPDATED,
            why=before[0].why,
            writes=applied.writes + writes,
            reasons=(*before, *applied.reasons),
        )

    async def _rejected(self, error: OcfError, live: Manifest | None, desired: Manifest) -> ApplyResult:
        """Return the result of a write in a namespace that is being deleted; raise an error for any other rejection."""
        if self._is_owner:
            await self.get()
        if is_namespace_ending(error):
            waiting = f'namespace "{self._key.namespace}" is being deleted: {self._entry.identity} is not created'
            return ApplyResult(live or {}, ApplyOperation.NONE, Why.NAMESPACE_ENDING, waiting=waiting)
        cause = without_values(error) if self._has_secrets and isinstance(error, ApiError) else error
        if live is None or not isinstance(error, ApiError):
            raise self._failed("apply", cause) from cause
        if immutable_fields(error):
            changed = (drift.path for drift in self._compare(desired, live, b"")[1])
            text = immutable_problem(error, changed, quotes=not self._has_secrets)
            raise self._failed("apply", ConfigError(text)) from cause
        left = leftover_problem(error, desired, live, self._manager)
        raise self._failed("apply", ConfigError(f"{cause}; {left}") if left else cause) from cause

    async def _adopted(self, live: Manifest | None) -> Manifest | None:
        """Return an object that is adopted when it is applied; None for one that does not exist, or is ours already."""
        if live is None or self._is_owner:
            return None
        former = await self._takeover.find(live)
        return None if is_own(live, self._component, self._context, former) else live

    async def _take_over(
        self, live: Manifest | None, desired: Manifest, intent: bytes
    ) -> tuple[Manifest | None, tuple[Drift, ...]]:
        """Take over what former writers own, which counts as a write; return the object after that, and the reasons."""
        if live is None:
            return None, ()
        after, found, fields = await self._takeover.take(live)
        if not found.names or after is None:
            return after, ()
        self._note(intent, after)
        if found.strangers:
            removed = removed_fields(fields, desired, after, self._manager, ignored=self._ignored_places)
            event = takeover_event(self._context.owned_by, after, found, removed)
            self._context.recorder.happened(event)
        return after, found.reasons

    @property
    def _ignored_places(self) -> list[tuple[str, ...]]:
        return [fields_path(path) for path in self._ignore_fields]

    @property
    def _waiting(self) -> str:
        return f"waiting for {self._entry.identity} to be deleted, because a changed field is immutable"

    def _failed(self, what: str, error: OcfError) -> ReconcileError:
        """Return an error that names the resource and the failed step once."""
        identity = self._entry.identity
        problem = error.problem if isinstance(error, MutationError | ReconcileError) else str(error)
        return ReconcileError(self._component, f"failed to {what} resource {identity}: {problem}", resource=identity)

    async def _desired(self, *, suspended: bool) -> Manifest:
        """Return the object as it is applied: without ignored fields, and with the owner reference."""
        code = AuthorCode(self._entry.identity)
        try:
            rendered = self._known_form
            if rendered is None or suspended or self._ignore_fields:
                rendered = await self._render(suspended=suspended, ignore_fields=self._ignore_fields)
            key = ObjectKey.of(rendered)
            if key != self._key:
                raise ConfigError(f"rendered {key}, expected {self._key}")
            sent, owner = sendable(rendered), self._context.owned_by
            sent = owner.disowned(sent) if self._options.unowned else owner.owned(sent)
            return with_hold(sent, owner.operator) if self._is_held else sent
        except OcfError as error:
            raise self._failed("mutate", error) from error
        finally:
            # What the API server says about the object may quote what its rendering has read.
            self._has_secrets = self._has_secrets or code.has_read_secret

    async def _desired_states(self) -> DesiredStates:
        """Return the running and the suspended form with the ignored fields; both empty if they cannot be rendered."""
        try:
            return DesiredStates(await self._render(), await self._render(suspended=True))
        except OcfError:
            # Usually because of an empty data cell; then only the live value is known.
            return DesiredStates({}, {})

    async def _render(self, *, suspended: bool = False, ignore_fields: Collection[tuple[str, ...]] = ()) -> Manifest:
        render = self._entry.render
        if self._timeout is None:
            return render(suspended=suspended, ignore_fields=ignore_fields)
        return await call_with_timeout(self._timeout, render, suspended=suspended, ignore_fields=ignore_fields)

    async def _apply_if_drifted(
        self, desired: Manifest, live: Manifest | None, intent: bytes, *, taken: tuple[Drift, ...]
    ) -> ApplyResult:
        digest = self._digest(desired)
        why, reasons = (Why.ABSENT, _ABSENT) if live is None else self._compare(desired, live, digest)
        if live is not None and not reasons:
            return ApplyResult(live, ApplyOperation.NONE, why)
        # After a takeover, which counts as the write, its fields are applied without a delay.
        held = None if taken else self._held_back(desired, live, intent, reasons)
        if held is not None:
            return held
        if live is not None and OWNER_REFERENCE in _reverted(desired, live, reasons, self._context.owned_by):
            await self._require_living_owner(RESTORING)
        last = self._cluster.apply_cache.last_write(self._key, self._manager)
        repeated = last is not None and last.desired_hash == intent
        revert = ""
        if live is not None and last is not None and repeated:
            reverted = _reverted(desired, live, taken or reasons, self._context.owned_by)
            revert = self._revert_message(live) if is_fighting(last, reverted) else ""
        try:
            answer, writes = await self._sender.send(desired, live)
        except InvalidError as error:
            if live is None or not (self._options.recreate_on_immutable_change and immutable_fields(error)):
                raise
            await OwnedObjectDeleter(self._component, self._context).delete_for_recreation(live, desired)
            return ApplyResult(live, ApplyOperation.NONE, why, 1, reasons, waiting=self._waiting)
        if live is not None and any(drift.why is Why.NO_LONGER_DECLARED for drift in reasons):
            record_kept(self._context, self._component, (live, desired, answer), left=self._ignored_places)
        self._remember(desired, answer, repeated=repeated)
        self._note(intent, answer)
        if live is None:
            self._cluster.apply_cache.forget_write(self._key, deletes_of(self._manager))
        return ApplyResult(answer, _operation(live, answer), why, writes, reasons, revert)

    async def _reasons_before_apply(
        self, handover: FieldHandover, desired: Manifest, live: Manifest | None, *, suspended: bool
    ) -> tuple[Drift, ...]:
        """Return what a takeover or a handover, which are writes before the apply, would begin to repair."""
        if live is None:
            return ()
        taken = (await self._takeover.find(live)).reasons
        if taken:
            return taken
        if suspended or not await handover.is_due(live, desired):
            return ()
        return self._compare(desired, live, self._digest(desired))[1]

    def _held_back(
        self, desired: Manifest, live: Manifest | None, intent: bytes, reasons: tuple[Drift, ...]
    ) -> ApplyResult | None:
        """Return the result of a write that waits, because another writer reverts it; None if it may be sent."""
        reverted = _reverted(desired, live, reasons, self._context.owned_by)
        rest = wait(self._last_write(live, intent, reverted), intent, self._context.elapsed, reverted)
        if rest is None:
            return None
        if live is None:
            waiting = f"{self._entry.identity} is deleted repeatedly by another client, and is created again later"
            return ApplyResult({}, ApplyOperation.NONE, Why.BACKING_OFF, 0, reasons, "", rest, waiting)
        return ApplyResult(live, ApplyOperation.NONE, Why.BACKING_OFF, 0, reasons, self._revert_message(live), rest)

    def _revert_message(self, live: Manifest) -> str:
        return revert_message(live, self._manager, self._context.owned_by.key, self._cluster.apply_cache)

    def _compare(self, desired: Manifest, live: Manifest, digest: bytes) -> tuple[Why, tuple[Drift, ...]]:
        """Return why the object must be written; without reasons if it is in sync."""
        if self._is_in_sync(live, digest):
            return Why.IN_SYNC, ()
        cache, uid, version = self._cluster.apply_cache, _uid(live), _version(live)
        known_rewrites = cache.rewrites(uid, self._manager)
        found = find_drift(desired, live, manager=self._manager, rewrites=known_rewrites, kind=self._kind)
        if digest and uid and version and not found:
            cache.mark_in_sync(uid, self._manager, version, digest)
        return (found[0].why if found else Why.EQUAL), tuple(found)

    def _is_in_sync(self, live: Manifest, digest: bytes) -> bool:
        """Return whether an object was in sync with a desired state in this version."""
        return bool(digest) and self._cluster.apply_cache.is_in_sync(_uid(live), self._manager, _version(live), digest)

    def _digest(self, desired: Manifest) -> bytes:
        """Return a digest of what an apply depends on beside the live object.

        This is the desired object, and from whom it is taken over: the components of the owner that are known, and the
        former field managers. Empty if a resource of the user's own renders values that are not JSON.
        """
        try:
            # Version 2 has no object references, so equal manifests with equal key order give equal bytes.
            content = marshal.dumps(
                (sorted(self._context.claims.components), sorted(self._former_managers), desired), 2
            )
        except ValueError:
            return b""
        return blake2b(content, digest_size=16).digest()

    def _last_write(self, live: Manifest | None, digest: bytes, reverted: Collection[str]) -> LastWrite | None:
        """Return the last write of this desired state, updated for the drift that was found."""
        cache, key = self._cluster.apply_cache, self._key
        last = cache.last_write(key, self._manager)
        if last is not None and live is not None and is_older(_version(live), last):
            return last
        last = record_revert(last, digest, self._context.elapsed, reverted)
        if last is not None:
            cache.note_write(key, self._manager, last)
        return last

    @property
    def _kind(self) -> Type:
        builtin = builtin_resource(*split_api_version(self._key.api_version), self._key.kind)
        return ANYTHING if builtin is None else builtin.type

    def _note(self, intent: bytes, answer: Manifest) -> None:
        """Remember a write."""
        cache = self._cluster.apply_cache
        if intent:
            last = cache.last_write(self._key, self._manager)
            owner = self._context.owned_by.key
            write = written(last, intent, self._context.elapsed, _version(answer), owner)
            cache.note_write(self._key, self._manager, write)

    def _remember(self, desired: Manifest, answer: Manifest, *, repeated: bool) -> None:
        """Remember the values that the server stored differently from how they were sent."""
        kind = self._kind
        rewrites: Rewrites = {}
        # If the same was applied before, the ownership of fields may be what differs, too.
        if repeated or not is_stored_as_sent(desired, answer, custom_object() if kind is ANYTHING else kind):
            found = find_drift(desired, answer, manager=self._manager, rewrites={}, kind=kind)
            rewrites = {drift.path: (drift.sent, drift.stored) for drift in found}
        self._cluster.apply_cache.remember(_uid(answer), self._manager, rewrites)


def _reverted(desired: Manifest, live: Manifest | None, reasons: Collection[Drift], owner: Owner) -> list[str]:
    """Return what of the last write does not hold any more; each counts by itself for the write backoff."""
    if live is None:
        return [EXISTENCE]
    paths = [drift.path for drift in reasons]
    return [*paths, OWNER_REFERENCE] if owner.references(desired) and not owner.references(live) else paths


def _uid(live: Manifest) -> str:
    return str(live["metadata"].get("uid", ""))


def _version(live: Manifest) -> str:
    return str(live["metadata"].get("resourceVersion", ""))


def _operation(before: Manifest | None, after: Manifest) -> ApplyOperation:
    """Return what an apply did; changes of the status and of server-set metadata do not count."""
    if before is None:
        return ApplyOperation.CREATED
    return ApplyOperation.NONE if _content(before) == _content(after) else ApplyOperation.UPDATED


def _content(manifest: Manifest) -> tuple[Any, Any]:
    metadata = {key: value for key, value in manifest["metadata"].items() if key not in _IGNORED_METADATA}
    return metadata, {key: value for key, value in manifest.items() if key not in _IGNORED}
