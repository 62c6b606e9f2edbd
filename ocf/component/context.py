"""The context of one reconcile of an owner: what its components share, and the changes of its status.

The owner's manifest is kept as it was read. Components, and the user's code inside the block of `reconciling`, change a
copy of its status.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any

from ocf.cluster import Cluster
from ocf.component.intent import merged_intent, require_same, require_stored
from ocf.component.model.context_values import ContextValues
from ocf.component.model.ownership import status_of
from ocf.component.owner_deletion import condition_type
from ocf.component.owner_patch import patch_owner
from ocf.component.owner_state import OwnerState, require_timedelta
from ocf.component.owner_status import (
    OWNER_EVENT,
    REVERTED_EVENT,
    UNSTORED_EVENT,
    failure_events,
    own_condition,
    own_event,
    replaced_value,
    shows,
)
from ocf.component.status.conditions import (
    Condition,
    ConditionContext,
    Conditioned,
    aggregate,
    since_transition,
    stored_condition,
    written_condition,
)
from ocf.component.status.reasons import Reason
from ocf.component.status.status_changes import StatusChanges
from ocf.component.status_write import Merge, StatusWrite, WrittenStatus, merged, write_accepted
from ocf.errors import (
    ApiError,
    BadRequestError,
    ConfigError,
    ForbiddenError,
    InvalidError,
    ManifestError,
    ReconcileError,
)
from ocf.objects import Manifest, ObjectKey
from ocf.objects.conditions import find_condition, typed_conditions
from ocf.objects.json_values import to_json
from ocf.objects.manifest import copy_json
from ocf.objects.timestamps import format_time

__all__ = ["ReconcileContext"]


class ReconcileContext(OwnerState):
    """State that the components of one owner share during a reconcile.

    Attributes:
        owner: The owner as it was read.
        owned_by: Key, uid and generation of the owner.
        recorder: Receives attempts, events and conditions.
        unobserved: The cluster for lists of which the reconcile uses only objects that belong to the owner. An operator
            does not reconcile the owner again because another object that they select changes. What is read through it
            and changes before the reconcile reads it in another way is not noticed: to decide upon objects, use
            `children` or `cluster`.
        pages: The cluster for lists of one page, for which an operator watches nothing.
        clock: The clock, for what outlives the reconcile.
        now: Time of the reconcile.
        elapsed: The same on the monotonic clock.
        claims: Objects that the components of the owner manage in this reconcile.
        delay: The earliest delay until the next reconcile that was asked for so far; None for none. A write of the
            owner that is held back asks for one, too: that of its status at the end of the block.
        failure_types: Types of the conditions that show a status that the API server refuses.
        hidden_types: Types of the conditions that are not written, and are kept in the memory of the process.
        unpublished: Conditions of the unpublished components that were reconciled, by type.
        results: Results of the components that were reconciled without an error, by name.
        outcomes: Outcomes of the resources that were reached, by component and identity, also if the component failed:
            the action of one that failed is `Failed`.
        gates: Answers of the gates of the components in this reconcile.
        held: Objects that are held until the clean-up of the owner has succeeded.
        pause: What pauses the owner, so that nothing is written for it; None if it is not paused.
        read_latest: Returns the owner as it is known now, without a request, or None if it has not changed.
        intents: Held while a component stores what it is about to do, because components are reconciled concurrently.
        unstored: Records of external resources that wait to be stored.
        wake: Reconciles the owner again, called at any time after this reconcile; None if nothing does.
        dry_run: Whether its writes are dry runs, so that nothing outside of the cluster may be changed either.
        former_managers: Field managers whose fields every component takes over once, by name or pattern.
        finalizers: Names of the finalizers of the operator.
    """

    @property
    def status(self) -> dict[str, Any]:
        """Copy of the owner's status, for changes; leaving `reconciling` writes it.

        Raises:
            ConfigError: If the block of `reconciling` has ended: a change would not be written.
        """
        return self._open_changes.status

    @property
    def values(self) -> ContextValues:
        """Values of this reconcile, by `ContextKey`: what `components` or `on_delete` leaves for `report`.

        Raises:
            ConfigError: If the block of `reconciling` has ended.
        """
        self._require_open()
        return self._values

    @property
    def cluster(self) -> Cluster:
        """The cluster of the objects.

        Raises:
            ConfigError: If the block of `reconciling` has ended.
        """
        self._require_open()
        return self._guarded

    def condition(self, name: str) -> Condition:
        """Return a condition of the owner as it was written, in this reconcile or before, by a component or a function.

        Args:
            name: Type of the condition.

        Returns:
            The condition; its reason is Unknown if it was never written.

        Example:
            >>> from ocf.concepts import SystemClock
            >>> from ocf_server import EmbeddedCluster
            >>> owner = {"apiVersion": "example.com/v1", "kind": "Shop", "metadata": {"name": "corner", "uid": "1"}}
            >>> context = ReconcileContext(owner, EmbeddedCluster(), SystemClock())
            >>> context.set_condition("Moved", status="True", reason="Arrived", message="all wagons are there")
            >>> context.condition("Moved").reason
            'Arrived'
        """
        return written_condition(self._open_changes.conditions, name, self.owned_by.generation)

    def remove_condition(self, name: str) -> None:
        """Stage the removal of a condition that this operator has set; one that is not there may be removed, too.

        If it is set again in the same reconcile, its transition time goes on, unless `write_status` has stored the
        removal in between.

        Args:
            name: Type of the condition.
        """
        self._open_changes.remove_condition(name)

    def condition_context(self, name: str) -> ConditionContext:
        """Return what the next condition of a type is computed from."""
        condition = stored_condition(self._open_changes.conditions, name, self.owned_by.generation)
        return ConditionContext(condition, self.owned_by.generation, self.now)

    def stage(self, condition: Condition, *, published: bool = True) -> None:
        """Stage the condition of a component; it replaces the one of its type, at its place."""
        if published:
            self.claim_conditions([condition.type])
            self._open_changes.set_condition(condition.to_manifest())
        else:
            self.unpublished[condition.type] = condition

    def set_condition(self, name: str, *, status: str, reason: str, message: str) -> None:
        """Stage a condition of the operator's own; its transition time changes only with its status.

        Args:
            name: Type of the condition, as the API allows it.
            status: `True`, `False` or `Unknown`.
            reason: Machine-readable reason, as the API allows it: a word in CamelCase.
            message: Human-readable message; cut at the API's limit of 32 768 characters.

        Raises:
            ConfigError: If the API server would reject the type, the status or the reason, or another operator of this
                process sets a condition of this type for the owner.
        """
        stored = find_condition(self._changes.stored_conditions, name)
        condition = own_condition(
            {**stored, "lastTransitionTime": format_time(self.now)} if stored and name in self._restarted else stored,
            name,
            status=status,
            reason=reason,
            message=message,
            generation=self.owned_by.generation,
            now=self.now,
        )
        self.claim_conditions([name])
        self._open_changes.set_condition(condition)

    def event(
        self,
        reason: str,
        note: str,
        *,
        action: str = "Reconcile",
        warning: bool = False,
        related: ObjectKey | None = None,
    ) -> None:
        """Record an event on the owner, which is posted once the status of the owner is stored.

        That is at the end of the reconcile, or by `write_status`. If the status cannot be stored now, the event is
        dropped, because the next reconcile finds the owner as this one has. So call it where something changes, and not
        in each reconcile.

        Args:
            reason: Machine-readable reason, a word in CamelCase of at most 128 characters.
            note: Human-readable sentence, without values of Secrets; cut at the API's limit of 1024 bytes.
            action: What the operator did, a word as the reason.
            warning: Whether it is of type Warning: the user should act.
            related: The object that it is about beside the owner; None for none.

        Raises:
            ConfigError: If the API server would reject the reason or the action.
        """
        self._require_open()
        self._events.append(own_event(self.owned_by, reason, note, action=action, warning=warning, related=related))

    def timed_out(self, name: str, after: timedelta, *, status: str = "True") -> bool:
        """Return whether a condition has had its status for a period; before, ask for a reconcile at the end of it.

        The period begins with the transition that is stored, so that it goes on when the process restarts. Where a
        clock that was set back puts that in the future, it begins anew. A reason has no time of its own: a phase whose
        time counts is a condition, or a status of one.

        Args:
            name: Type of the condition, as staged in this reconcile or as stored.
            after: The period. Zero, or less, has ended as soon as the condition has the status.
            status: The status that counts. With another one, or without the condition, the period has not begun: call
                it while the condition has the status, or gets it in this reconcile.

        Raises:
            ConfigError: If the period is something else than a `timedelta`.
        """
        require_timedelta(after, "timed_out: the period")
        found = find_condition(self._open_changes.conditions, name)
        since = None if found is None or found.get("status") != status else since_transition(found, self.now)
        if since is not None and since < timedelta(0):
            self._restarted.add(name)
            since = timedelta(0)
        if since is not None and since >= after:
            return True
        self.requeue_after(after - (since or timedelta(0)))
        return False

    @asynccontextmanager
    async def handling(self, field: str, value: Any) -> AsyncIterator[bool]:
        """Handle a change of a value: compare it with the one that was handled last, and store it after the block.

        The last handled value is a field of the owner's status. It is stored at once when the block is left, and not if
        that raises an error: then the next reconcile handles the change again. So does one after a crash before it is
        stored: what the block does must be repeatable. Without a change nothing is sent.

        Args:
            field: The field of the status, as the schema of the owner spells it, `restartedAt`.
            value: The value now, such as `shop.spec.restart_at`; None is no value. A status can be read by more users
                than a Secret: of its values, pass a digest.

        Yields:
            Whether the value has changed. The first value is a change, and so is the removal of one.

        Raises:
            ManifestError: If the value contains what JSON does not have.
            ConfigError: If the field is `conditions`.
            OcfError: As `write_status`, if the value is not stored, also an empty one, or is not stored exactly.
        """
        if field == "conditions":
            raise ConfigError("handling: the last handled value cannot be in `conditions`; use a field of its own")
        wanted = to_json(value, "status", ("status", field))
        changed = self._open_changes.stored.get(field) != wanted
        yield changed
        if not changed:
            return
        if wanted is None:
            self.status.pop(field, None)
        else:
            self.status[field] = copy_json(wanted)
        await self.write_status()
        require_same(self.owned_by, field, wanted, status_of(self.owner))

    def fail(self, types: Iterable[str], problem: str, *, reason: Reason = Reason.ERROR) -> None:
        """Stage a failure in conditions: they become False, with the reason `Error` and the owner's generation.

        When the status is written, a failure that no stored condition showed becomes one event of type Warning.

        Args:
            types: Types of the conditions; without any, there is only the event.
            problem: The message, without the values of Secrets; see `ocf.errors.failure_text`.
            reason: `Error`, or a more precise reason.

        Example:
            >>> from ocf.concepts import SystemClock
            >>> from ocf_server import EmbeddedCluster
            >>> owner = {"apiVersion": "example.com/v1", "kind": "Shop", "metadata": {"name": "corner", "uid": "1"}}
            >>> context = ReconcileContext(owner, EmbeddedCluster(), SystemClock())
            >>> context.fail(["WebReady", "Ready"], "the registry cannot be reached")
            >>> str(context.condition("Ready").reason), context.condition("Ready").message
            ('Error', 'the registry cannot be reached')
        """
        self._problems.append(problem)
        # A condition of another operator stays: the failure may be that both set it.
        for name in dict.fromkeys(name for name in types if name not in self._taken):
            # A failure that goes on is not a new one.
            self._open_changes.undo_removal(name)
            failed = self.condition_context(name).failed(problem, reason=reason)
            self._open_changes.set_condition(failed.to_manifest())

    def aggregate(self, name: str, *components: Conditioned) -> Condition:
        """Stage one condition that aggregates the present conditions of several components.

        In a reconcile that failed before the components were known or reached, a stored condition stays as it is.

        Args:
            name: Type of the condition.
            components: Components of this owner. The condition of an unpublished one is Unknown until it was
                reconciled in this reconcile.

        Returns:
            The condition: True if all of theirs are; reason and message are those of the condition with the highest
            priority. Its generation is the oldest of theirs.
        """
        types = [(component.name, component.condition_type) for component in components]
        for component, _ in types:
            self._aggregates.setdefault(component, set()).add(name)
        standing = [(name, self.unpublished.get(kind) or self.condition_context(kind).previous) for name, kind in types]
        # Compared with the stored condition, because a failure that was staged before is not a transition.
        stored = stored_condition(self._changes.stored_conditions, name, self.owned_by.generation)
        condition = aggregate(standing, ConditionContext(stored, self.owned_by.generation, self.now))
        if condition.reason is Reason.UNKNOWN and self._problems and stored.last_transition_time:
            return stored
        self.stage(condition)
        return condition

    async def patch_owner(self, patch: Manifest) -> bool:
        """Change the owner itself: a default that is to be seen in its spec, or a change that is to be undone.

        It is one merge patch of the version that was read. Conditions of this reconcile keep the generation that they
        were computed from; an operator reconciles the owner again, with what is stored then.

        Args:
            patch: Fields of the spec, labels and annotations; None removes one, and a list is replaced as a whole.

        Returns:
            Whether the owner was changed: False if it has the values already, was deleted, or if the same fields had to
            be patched again and again, so that the patch waits (event `OwnerReverted`).

        Raises:
            ConfigError: If the patch changes something else.
            ManifestError: If it contains what JSON does not have.
            ConflictError: If another writer has changed the spec or these fields since the owner was read.
            ReconcileError: If the owner is paused, or the API server does not store the fields as they were patched.
            ApiError: If the API server rejects the patch.
        """
        self.require_running()
        done = await patch_owner(self.cluster, self.owner, self.owned_by, patch, self.elapsed)
        if done.live is None:
            self.owner_removed()
            return False
        self.owner_changed(done.live)
        self.hold_back(OWNER_EVENT, done.reverted, done.retry_after)
        if done.problem:
            raise ReconcileError(self.owned_by.operator, done.problem)
        return done.is_sent

    async def write_status(self) -> None:
        """Store the fields that were set in `status` at once, before something is done that depends on them.

        The next reconcile reads them, also one of another process after a crash. What is staged of conditions is
        stored with them. Without a change nothing is sent.

        Raises:
            ConflictError: If another writer has changed a field of the status since the owner was read: what was
                computed from it may be wrong.
            ReconcileError: If the owner was deleted or is paused, or a field is not stored: the API server drops it, or
                it waits because another writer reverts it again and again.
            ManifestError: If the status contains what cannot be written.
            ApiError: If the API server refuses the status, or its answer is lost. After each of these errors `status`
                has the fields again that were read, so that leaving the block does not store the rest of the intent.
        """
        self.require_running()
        changes = self._open_changes
        given = {**changes.status}
        try:
            self.require_plain_status()
            require_stored(self.owned_by, changes, *await self._send_status(merged_intent))
        except BaseException:
            changes.discard_fields()
            self._events.clear()
            raise
        changes.accept(status_of(self.owner), given)
        self._restarted |= changes.removed_types
        self._post_events()

    async def write_final_status(self) -> None:
        """Write the staged status if it differs from the one that was read; while paused, the condition of the pause.

        After a conflict the status is read again. Other writers' changes are kept, except in the conditions and fields
        that were changed here. Nothing is written for an owner that was deleted meanwhile.

        A status that is refused, of which fields are not stored, or that another writer reverts again and again,
        becomes an event of type Warning. What the API server refuses is withdrawn, and the rest is written.
        """
        self._notice_pause()
        if self.pause is not None:
            # What was staged before the pause was noticed is not written.
            self._changes, self._problems = StatusChanges(self._changes.stored), []
            self._events, self.delay = [], None
        self._show_pause()
        unwritable: ManifestError | None = None
        try:
            self.require_plain_status()
        except ManifestError as error:
            unwritable = error
            self.fail((), str(error))
        self._events += failure_events(self.owned_by, self._problems, self._changes.stored_conditions)
        try:
            written, refusal = await self._send_status(merged)
        except (BadRequestError, ForbiddenError, InvalidError):
            self._show_blocked(self.owner)
            raise
        self._post_events()
        if written is not None:
            self._show_blocked(written.stored)
        if refusal is not None:
            raise refusal
        if written is not None:
            self._is_new_refusal("")
        if unwritable is not None:
            raise unwritable

    async def _send_status(self, merge: Merge) -> tuple[WrittenStatus | None, ApiError | None]:
        """Write the status, and show what of it is not stored; return what is, None if the owner is gone, and why not.

        An error is raised if nothing is stored.
        """
        owner, changes, show = self.owned_by, self._open_changes, self._show_refusal
        if self._is_gone:
            return None, None
        write = StatusWrite(
            cluster=self._cluster,
            owner=owner,
            changes=changes,
            now=self.now,
            elapsed=self.elapsed,
            merge=merge,
            hidden=self.hidden_types,
            failures=(*self.failure_types, condition_type(owner.operator)),
        )
        try:
            written, refusal = await write_accepted(write, self.owner, show=show)
        except ApiError as error:
            if not error.code:
                # Without an answer it may be stored, and then no later reconcile posts them.
                self._post_events()
            raise
        if written is None:
            self._is_gone = True
            return None, None
        self._log(replaced_value(self.owner, written.status))
        self._log_loss(UNSTORED_EVENT, written.problem)
        self.hold_back(REVERTED_EVENT, written.reverted, written.retry_after)
        self.recorder.observed(owner.key, typed_conditions(written.status.get("conditions")))
        if refusal is None:
            self.owner = written.stored
        return written, refusal

    def _show_refusal(self, error: ApiError) -> None:
        """Show why the API server refused the status in conditions, if another status is accepted, and in an event."""
        problem = f"the API server refused the status: {error}"
        if self._is_new_refusal(problem) and not shows(self._changes.stored_conditions, problem):
            self._record_loss(UNSTORED_EVENT, problem)
            # Without a status that can be stored, no later reconcile has them.
            self._post_events()
        self.fail(self.failure_types, problem)
