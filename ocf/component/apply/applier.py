"""Server-side apply of one resource, sent only if it would change the object."""

from __future__ import annotations

from collections.abc import Collection
from datetime import timedelta
from functools import cached_property, partial
from typing import TYPE_CHECKING, Final

from ocf.cluster.retry import MOST_TRIES
from ocf.cluster.server_errors import is_namespace_ending, without_values
from ocf.component.apply.adoption import adoption_event, adoption_problem, is_own
from ocf.component.apply.apply_result import ApplyResult, failed
from ocf.component.apply.cleared_fields import ClearedFields
from ocf.component.apply.deleter import OwnedObjectDeleter
from ocf.component.apply.drift import Comparison, applied_operation, digest
from ocf.component.apply.handover import DesiredStates, FieldHandover
from ocf.component.apply.initial_values import InitialValues
from ocf.component.apply.leftovers import record_kept
from ocf.component.apply.managed_fields_patch import ReplacedError
from ocf.component.apply.owner_check import OwnerCheck, latest_object
from ocf.component.apply.recreation import (
    ANOTHER_RUN,
    IMMUTABLE,
    Recreation,
    named_cause,
    recreates_after,
    waiting_text,
)
from ocf.component.apply.rejection import explained
from ocf.component.apply.sender import RESTORING, ApplySender
from ocf.component.apply.takeover import Takeover, removed_fields, takeover_event
from ocf.component.apply.write_log import WriteLog, reverted_parts
from ocf.component.author_code import call_with_timeout
from ocf.component.model.holds import with_hold
from ocf.component.model.ownership import CREATOR, FIELDS, is_ending, sendable, uid_of
from ocf.component.model.resource_options import Adoption
from ocf.component.model.write_backoff import OWNER_REFERENCE, deletes_of, is_fighting, wait
from ocf.component.status.results import Drift
from ocf.concepts import ApplyOperation
from ocf.concepts.data import AuthorCode
from ocf.concepts.recorder import Why
from ocf.concepts.resource import Rendering
from ocf.errors import ApiError, ConfigError, InvalidError, NotFoundError, OcfError, ReconcileError
from ocf.objects import Manifest, ObjectKey
from ocf.objects.owned_paths import OwnedPath

if TYPE_CHECKING:
    from ocf.component.context import ReconcileContext
    from ocf.component.model.registration import Registration

__all__ = ["Applier"]

_ABSENT: Final = (Drift("", Why.ABSENT),)
# What other requests than the apply change first.
_BEFORE_APPLY: Final = frozenset({Why.TAKEN_OVER, Why.CLEARED})


class Applier:
    """Reads and applies the object of one resource, in one reconcile.

    Args:
        former_managers: Field managers whose fields are taken over once, by name or pattern.
        rendered: The object as it was rendered earlier in the reconcile; None if it was not.
    """

    def __init__(
        self,
        entry: Registration,
        component: str,
        context: ReconcileContext,
        ignore_fields: Collection[tuple[str, ...]] = (),
        *,
        former_managers: Collection[str] = (),
        rendered: Rendering | None = None,
        timeout: timedelta | None = None,
    ) -> None:
        self._entry = entry
        self._key = entry.key
        self._options = entry.options
        self._component = component
        self._context = context
        self._cluster = context.cluster_of(component)
        self._ignore_fields = tuple(dict.fromkeys([*ignore_fields, *entry.options.set_once]))
        self._known_form = rendered
        self._timeout = timeout
        self._writer = f"{component}/{FIELDS}" if self._options.updates_only else component
        self._manager = context.owned_by.field_manager(self._writer)
        self._initial = InitialValues(entry, component, context, self._manager)
        self._adoption = entry.options.adopt or Adoption.ALWAYS
        self._former_managers = former_managers
        self._is_owner = context.owned_by.is_object(entry.key)
        self._owner_check = OwnerCheck(component, entry.identity, context)
        self._writes = WriteLog(context, self._cluster.apply_cache, entry.key, self._manager)
        self._comparison = Comparison(self._cluster.apply_cache, entry.key, self._manager)
        self._cleared: tuple[OwnedPath, ...] = ()
        self._is_held = entry.options.held_for_cleanup and entry.key in context.held
        self._has_secrets = entry.key.group_kind == ("", "Secret")

    # Both are built when they are needed: most reconciles write nothing.
    @cached_property
    def _takeover(self) -> Takeover:
        return Takeover(self._writer, self._context, self._former_managers, unowned=self._options.unowned)

    @cached_property
    def _sender(self) -> ApplySender:
        return ApplySender(
            self._cluster,
            self._context.owned_by,
            self._key,
            self._manager,
            self._ignore_fields,
            creator=self._context.owned_by.field_manager(self._component, CREATOR),
            on_conflict=self._options.on_conflict,
            exact=self._is_exact,
            get=self.get,
            require_living_owner=self._owner_check.require_living,
        )

    @property
    def _is_exact(self) -> bool:
        """Whether a create must not change an object, and an apply must not create one or change another one."""
        return bool(self._initial) or self._options.updates_only or self._adoption is not Adoption.ALWAYS

    async def get(self) -> Manifest | None:
        """Read the live object, None if it does not exist; the context learns if it is the owner, and that is gone."""
        live: Manifest | None = None
        try:
            live = await self._cluster.get(self._key)
        except NotFoundError:
            pass
        except OcfError as error:
            raise self._failed("check existence of", error) from error
        if self._is_owner and (live is None or uid_of(live) != self._context.owned_by.uid):
            self._context.owner_removed()
        self._owner_check.require()
        return live

    async def apply(self, live: Manifest | None, *, suspended: bool = False) -> ApplyResult:
        """Apply the desired state, suspended or running, unless the object as just read is in sync with it."""
        for _ in range(MOST_TRIES):
            try:
                if live is None and self._options.updates_only:
                    return ApplyResult({}, ApplyOperation.NONE, Why.NOT_CREATED)
                return await self._apply(live, suspended=suspended)
            except ReplacedError:
                # Whether the object that another client has created is adopted is decided as for any other one. A cache
                # may not know yet what we have created ourselves, with a lost answer.
                await self.get()
                live = await self._latest()
        raise self._failed("apply", ConfigError("other clients change it, or create it again, all the time"))

    async def _latest(self) -> Manifest | None:
        """Read the live object from the API server, and not from a cache."""
        try:
            return await latest_object(self._context.unobserved_of(self._component), self._key)
        except OcfError as error:
            raise self._failed("check existence of", error) from error

    async def _apply(self, live: Manifest | None, *, suspended: bool) -> ApplyResult:
        if live is None and self._writes.last is not None:
            # What we had applied may have been deleted because its owner was.
            await self._owner_check.require_existing("creating")
        self._owner_check.require()
        if live is not None and is_ending(live) and (awaited := await self._awaited_deletion(live)):
            return ApplyResult(live, ApplyOperation.NONE, Why.RECREATING, waiting=awaited)
        desired = await self._desired(suspended=suspended, creates=live is None)
        if live is None:
            return await self._write(None, desired, suspended=suspended)
        # In this version and with this desired state, nothing was to be taken over or handed over either.
        if not suspended and self._comparison.is_in_sync(live, self._digest(desired)):
            return ApplyResult(live, ApplyOperation.NONE, Why.IN_SYNC)
        adopted = await self._adopted(live)
        refused = adoption_problem(adopted, self._context.owned_by.key, self._adoption)
        if not refused and (adopted is None or not self._initial.creates_only):
            return await self._write(live, desired, suspended=suspended, adopted=adopted)
        # Those that were set while the resource was only updated.
        released = int(await OwnedObjectDeleter(self._component, self._context).release_fields(live))
        if refused:
            return ApplyResult(live, ApplyOperation.NONE, Why.NOT_ADOPTED, released, waiting=refused)
        self._comparison.mark_in_sync(live, self._digest(desired))
        return ApplyResult(live, ApplyOperation.NONE, Why.NOT_OURS, released)

    async def _write(
        self, live: Manifest | None, desired: Manifest, *, suspended: bool, adopted: Manifest | None = None
    ) -> ApplyResult:
        """Take over, hand over and apply, as far as each is necessary."""
        running = await self._desired(suspended=False, creates=live is None) if suspended else desired
        # What a suspension saves depends on the live object, so it does not distinguish one intent from another.
        intent = self._digest(desired)
        read = live
        # Of an object that is created, what it gets once does not stay the component's.
        owned = await self._desired(suspended=suspended) if live is None and self._initial else desired
        handover = self._handover
        paths: tuple[str, ...] = ()
        try:
            reasons = await self._reasons_before_apply(handover, desired, live, suspended=suspended)
            held = self._held_back(desired, live, intent, reasons) if reasons else None
            if held is not None:
                return held
            live, taken = await self._take_over(live, desired, intent)
            live, cleared = await self._take_cleared(live, desired, intent)
            live, given_up = await self._given_up(live, desired, intent)
            if suspended:
                desired, owned = [await handover.with_saved_values(one, running, live) for one in (desired, owned)]
            else:
                live, paths = await handover.hand_over(live, desired, self.get)
            # What is created is not what is applied to an object that exists.
            if read is not None and (self._is_exact if live is None else uid_of(live) != uid_of(read)):
                raise ReplacedError
            applied = await self._apply_if_drifted(desired, live, intent, owned=owned, taken=(*taken, *cleared))
            more: tuple[Drift, ...] = ()
            if not applied.waiting:
                left, more = await self._given_up(applied.live, desired, intent)
                applied = applied._replace(live=left or applied.live)
        except OcfError as error:
            return await self._rejected(error, live, desired)
        before = [*taken, *cleared, *given_up, *(Drift(path, Why.HANDED_OVER) for path in paths)]
        writes = bool(taken) + bool(cleared) + bool(given_up) + bool(paths) + bool(more)
        return self._finished(applied, before, writes=writes, adopted=adopted)

    async def _given_up(
        self, live: Manifest | None, desired: Manifest, intent: bytes
    ) -> tuple[Manifest | None, tuple[Drift, ...]]:
        """Give up what the object gets once, which counts as a write; return the object after that, and the reasons."""
        if live is None:
            return None, ()
        after, reasons = await self._initial.give_up(live, desired)
        if reasons and after is not None:
            self._writes.note(intent, after)
        return after, reasons

    async def pending(self, live: Manifest) -> tuple[Drift, ...]:
        """Return what an apply of the running form would change in an object as just read; nothing while it waits."""
        desired = await self._desired(suspended=False)
        intent = self._digest(desired)
        if self._comparison.is_in_sync(live, intent) or (self._initial.creates_only and await self._adopted(live)):
            return ()
        try:
            reasons = await self._reasons_before_apply(self._handover, desired, live, suspended=False)
            reasons = reasons or self._compare(desired, live, intent)[1]
        except OcfError as error:
            raise self._failed("compare", error) from error
        return () if reasons and self._held_back(desired, live, intent, reasons) is not None else reasons

    async def changes_spec(self, live: Manifest, reasons: Collection[Drift]) -> bool:
        """Return whether an apply would change more than metadata, or replace the object; an error if it is refused."""
        if not live["metadata"].get("generation") or any(drift.why in _BEFORE_APPLY for drift in reasons):
            return True
        desired = await self._desired(suspended=False)
        cause = named_cause(reasons, self._options.recreate_when_changed, desired, live)
        try:
            try:
                if cause is None:
                    answer: Manifest = (await self._sender.preview(desired))["metadata"]
                    return bool(answer.get("generation") != live["metadata"]["generation"])
            except InvalidError as error:
                if not recreates_after(error, self._options):
                    raise
            await self._recreation(live, desired).require_possible(cause or IMMUTABLE)
        except OcfError as error:
            await self._rejected(error, live, desired)
        return True

    @property
    def _handover(self) -> FieldHandover:
        return FieldHandover(self._writer, self._manager, self._context, self._ignore_fields, self._desired_states)

    async def replace_run(self, live: Manifest) -> ApplyResult:
        """Delete the object of another run of a task with its dependents first, so that two runs never overlap."""
        desired = await self._desired(suspended=False, creates=True)
        try:
            return await self._recreation(live, desired).begin(ANOTHER_RUN)
        except OcfError as error:
            return await self._rejected(error, live, desired)

    def _recreation(self, live: Manifest, desired: Manifest) -> Recreation:
        return Recreation(self._component, self._context, live, desired, self._digest(desired), options=self._options)

    async def is_changed_by_suspension(self) -> bool:
        """Return whether the suspended form differs from the running one, or one of them cannot be rendered."""
        try:
            return await self._desired(suspended=True) != await self._desired(suspended=False)
        except ReconcileError:
            return True

    async def require_acceptance(self) -> None:
        """Raise an error if the API server would reject the object because it is invalid, before others go for it."""
        try:
            await self._sender.require_acceptance(await self._desired(suspended=False, creates=True))
        except InvalidError as error:
            raise self._failed("apply", error) from error

    async def _awaited_deletion(self, live: Manifest) -> str:
        """Return why an object that is being deleted is left alone; empty if the desired state is applied to it."""
        deleter = OwnedObjectDeleter(self._component, self._context)
        if not (self._is_held and deleter.holds(live)):
            # The API server accepts no new finalizer for an object that is being deleted.
            self._is_held = False
            return waiting_text(live) if self._entry.awaits_deletion else ""
        if await deleter.is_needed_for_cleanup(live):
            return f"{self._entry.identity} is being deleted, and is held for the clean-up of its owner"
        # A user has deleted it. It goes, and is created again.
        await deleter.release(live)
        return waiting_text(live)

    def _finished(
        self, applied: ApplyResult, before: list[Drift], *, writes: int, adopted: Manifest | None
    ) -> ApplyResult:
        """Return the result of an apply together with the writes before it, and report an adoption."""
        if self._is_owner and (applied.writes or writes):
            self._context.owner_changed(applied.live)
        if adopted is not None and applied.writes:
            stays = self._options.unowned and self._options.mark is None
            self._context.recorder.happened(adoption_event(self._context.owned_by, adopted, unowned=stays))
            applied = applied._replace(reasons=(*applied.reasons, Drift("", Why.ADOPTED)))
        applied = applied._replace(writes=applied.writes + writes)
        if not before:
            return applied
        return applied._replace(
            operation=ApplyOperation.UPDATED, why=before[0].why, reasons=(*before, *applied.reasons)
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
        changed = [drift.path for drift in self._compare(desired, live, b"")[1]]
        why = await explained(self._cluster, error, cause, (live, desired), manager=self._manager, changed=changed)
        raise self._failed("apply", why) from cause

    async def _adopted(self, live: Manifest | None) -> Manifest | None:
        """Return an object that is adopted when it is applied; None for one that does not exist, or is ours already."""
        if live is None or self._is_owner or self._options.updates_only:
            return None
        former = await self._takeover.find(live)
        return None if is_own(live, self._component, self._context, former) else live

    async def _take_over(
        self, live: Manifest | None, desired: Manifest, intent: bytes
    ) -> tuple[Manifest | None, tuple[Drift, ...]]:
        """Take over what former writers own, which counts as a write; return the object after that, and the reasons."""
        if live is None:
            return None, ()
        found = await self._takeover.find(live)
        if found.strangers and not self._options.recreate_on_immutable_change:
            await self._sender.require_possible(desired, {manager.name for manager in found.names})
        after, found, fields = await self._takeover.take(live)
        if not found.names or after is None:
            return after, ()
        self._writes.note(intent, after)
        if found.strangers:
            removed = removed_fields(fields, desired, after, self._manager, ignored=self._ignore_fields)
            self._context.recorder.happened(takeover_event(self._context.owned_by, after, found.strangers, removed))
        return after, found.reasons

    async def _take_cleared(
        self, live: Manifest | None, desired: Manifest, intent: bytes
    ) -> tuple[Manifest | None, tuple[Drift, ...]]:
        """Take the fields that edits clear from other writers, which counts as a write; the apply drops them."""
        if live is None:
            return None, ()
        after, reasons, managers = await self._clearing.take(
            live, partial(self._sender.require_possible, desired, frozenset())
        )
        if reasons and after is not None:
            self._writes.note(intent, after)
            removed = [drift.path for drift in reasons]
            self._context.recorder.happened(takeover_event(self._context.owned_by, after, managers, removed))
        return after, reasons

    @property
    def _clearing(self) -> ClearedFields:
        return ClearedFields(self._cluster, self._manager, self._cleared, on_conflict=self._options.on_conflict)

    def _failed(self, what: str, error: OcfError) -> ReconcileError:
        return failed(what, error, component=self._component, identity=self._entry.identity)

    async def _desired(self, *, suspended: bool, creates: bool = False) -> Manifest:
        """Return the object as it is created or applied: without ignored fields, and with the owner reference."""
        code = AuthorCode(self._entry.identity)
        try:
            ignored = self._ignore_fields
            if creates:
                ignored = tuple(path for path in ignored if path not in self._options.set_once)
            rendered = self._known_form
            if self._initial.creates_only and not creates:
                rendered = Rendering(self._initial.reference())
            elif rendered is None or suspended or ignored:
                rendered = await self._render(suspended=suspended, ignore_fields=ignored)
            self._cleared = rendered.cleared
            key = ObjectKey.of(rendered.manifest)
            if key != self._key:
                raise ConfigError(f"rendered {key}, expected {self._key}")
            sent, owner = sendable(rendered.manifest), self._context.owned_by
            sent = owner.disowned(sent) if self._options.unowned else owner.owned(sent)
            sent = self._initial.marked(owner.marked(sent, self._options.mark))
            return with_hold(sent, owner.operator) if self._is_held else sent
        except OcfError as error:
            raise self._failed("mutate", error) from error
        finally:
            # What the API server says about the object may quote what its rendering has read.
            self._has_secrets = self._has_secrets or code.has_read_secret

    async def _desired_states(self) -> DesiredStates:
        """Return the running and the suspended form with the ignored fields; both empty if they cannot be rendered."""
        try:
            running, suspended = await self._render(), await self._render(suspended=True)
            return DesiredStates(running.manifest, suspended.manifest)
        except OcfError:
            # Usually because of an empty data cell; then only the live value is known.
            return DesiredStates({}, {})

    async def _render(self, *, suspended: bool = False, ignore_fields: Collection[tuple[str, ...]] = ()) -> Rendering:
        render = self._entry.rendering
        if self._timeout is None:
            return render(suspended=suspended, ignore_fields=ignore_fields)
        return await call_with_timeout(self._timeout, render, suspended=suspended, ignore_fields=ignore_fields)

    async def _apply_if_drifted(
        self, desired: Manifest, live: Manifest | None, intent: bytes, *, owned: Manifest, taken: tuple[Drift, ...]
    ) -> ApplyResult:
        why, reasons = (Why.ABSENT, _ABSENT) if live is None else self._compare(desired, live, self._digest(desired))
        if live is not None and not reasons:
            return ApplyResult(live, ApplyOperation.NONE, why)
        # After a takeover, which counts as the write, its fields are applied without a delay.
        if not taken and (held := self._held_back(desired, live, intent, reasons)) is not None:
            return held
        if live is not None and OWNER_REFERENCE in reverted_parts(desired, live, reasons, self._context.owned_by):
            await self._owner_check.require_living(RESTORING)
        last = self._writes.last
        repeated = last is not None and last.desired_hash == intent
        revert = ""
        if live is not None and last is not None and repeated:
            reverted = reverted_parts(desired, live, taken or reasons, self._context.owned_by)
            revert = self._writes.revert_message(live) if is_fighting(last, reverted) else ""
        cause = named_cause(reasons, self._options.recreate_when_changed, desired, live)
        if live is not None and cause is not None:
            return await self._recreation(live, desired).begin(cause, reasons)
        try:
            sent = self._initial.with_generated(desired, live)
            answer, writes = await self._sender.send(sent, live, owned=owned, as_read=sent is not desired)
        except InvalidError as error:
            if live is None or not recreates_after(error, self._options):
                raise
            return await self._recreation(live, desired).begin(IMMUTABLE, reasons)
        if live is not None and any(drift.why is Why.NO_LONGER_DECLARED for drift in reasons):
            record_kept(self._context, self._writer, (live, desired, answer), left=self._ignore_fields)
        self._comparison.remember(desired, answer, self._clearing.defaults(answer), repeated=repeated)
        self._writes.note(intent, answer)
        if live is None:
            self._cluster.apply_cache.forget_write(self._key, deletes_of(self._manager))
        return ApplyResult(answer, applied_operation(live, answer), why, writes, reasons, revert)

    async def _reasons_before_apply(
        self, handover: FieldHandover, desired: Manifest, live: Manifest | None, *, suspended: bool
    ) -> tuple[Drift, ...]:
        """Return what a takeover or a handover, which are writes before the apply, would begin to repair."""
        if live is None:
            return ()
        taken = (await self._takeover.find(live)).reasons or self._clearing.drift(live)
        if taken:
            return taken
        if suspended or not await handover.is_due(live, desired):
            return ()
        return self._compare(desired, live, self._digest(desired))[1]

    def _held_back(
        self, desired: Manifest, live: Manifest | None, intent: bytes, reasons: tuple[Drift, ...]
    ) -> ApplyResult | None:
        """Return the result of a write that waits, because another writer reverts it; None if it may be sent."""
        reverted = reverted_parts(desired, live, reasons, self._context.owned_by)
        rest = wait(self._writes.last_with(live, intent, reverted), intent, self._context.elapsed, reverted)
        if rest is None:
            return None
        nothing = partial(ApplyResult, live or {}, ApplyOperation.NONE, Why.BACKING_OFF, 0, reasons)
        if live is None:
            waiting = f"{self._entry.identity} is deleted repeatedly by another client, and is created again later"
            return nothing("", rest, waiting)
        return nothing(self._writes.revert_message(live), rest)

    def _compare(self, desired: Manifest, live: Manifest, intent: bytes) -> tuple[Why, tuple[Drift, ...]]:
        """Return why the object must be written; without reasons if it is in sync."""
        if self._comparison.is_in_sync(live, intent):
            return Why.IN_SYNC, ()
        found = [*self._comparison.drift(desired, live), *self._initial.missing(live, desired)]
        if not found:
            self._comparison.mark_in_sync(live, intent)
        return (found[0].why if found else Why.EQUAL), tuple(found)

    def _digest(self, desired: Manifest) -> bytes:
        """Return a digest of what an apply depends on beside the live object: the desired one, and former writers."""
        former = sorted(self._context.claims.components), sorted(self._former_managers)
        return digest(*former, self._cleared, self._initial.names, desired)
