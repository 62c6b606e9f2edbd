"""Context of one reconcile of an owner: what its components share, and the changes of its status.

The owner's manifest is kept as it was read. Components, and the user's code inside the block of `reconciling`, change a
copy of its status.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from datetime import timedelta
from typing import Any, Final, Protocol

from ocf.cluster import Cluster
from ocf.cluster.server_errors import without_values
from ocf.component.model.claims import Claims
from ocf.component.model.gates import GateAnswers
from ocf.component.model.ownership import DEFAULT_OPERATOR, Owner, finalizers_of, is_ending
from ocf.component.model.status_changes import StatusChanges, status_of
from ocf.component.model.status_writer import write_status
from ocf.component.status.conditions import Condition, ConditionContext, aggregate, stored_condition
from ocf.component.status.failures import (
    FINALIZER_EVENT,
    REVERTED_EVENT,
    UNSTORED_EVENT,
    failure_events,
    is_refused,
    shows,
)
from ocf.component.status.own_conditions import own_condition
from ocf.component.status.reasons import Reason
from ocf.concepts import Clock, Event, NullRecorder, Recorder
from ocf.errors import ApiError, ConfigError, FieldProblem, ManifestError
from ocf.objects import Manifest
from ocf.objects.conditions import find_condition, typed_conditions

__all__ = ["Conditioned", "ReconcileContext"]

_log: Final = logging.getLogger("ocf.component")
_UPDATE_STATUS: Final = "UpdateStatus"


class Conditioned(Protocol):
    """Anything that is reported as one condition, such as a `Component`."""

    @property
    def name(self) -> str:
        """Its name."""
        ...

    @property
    def condition_type(self) -> str:
        """Type of its condition."""
        ...


class ReconcileContext:
    """State that the components of one owner share during a reconcile.

    Args:
        owner: The owner as read from the cluster; it is not changed.
        cluster: The cluster of the objects.
        clock: Clock for the time of the reconcile.
        recorder: Receives attempts, events and conditions; None discards them.
        operator: Name of the operator.

    Attributes:
        owner: The owner as it was read.
        owned_by: Key, uid and generation of the owner.
        recorder: Receives attempts, events and conditions.
        unobserved: The cluster for lists of which the reconcile uses only objects that belong to the owner. An operator
            does not reconcile the owner again because another object that they select changes.
        now: Time of the reconcile.
        elapsed: The same on the monotonic clock.
        claims: Objects that the components of the owner manage in this reconcile.
        retry_after: Time until a write of the owner that is held back is sent; for its status known after its write.
        gates: Answers of the gates of the components in this reconcile.
    """

    def __init__(
        self,
        owner: Manifest,
        cluster: Cluster,
        clock: Clock,
        recorder: Recorder | None = None,
        operator: str = DEFAULT_OPERATOR,
    ) -> None:
        self.owner = owner
        self._changes: Final = StatusChanges(status_of(owner))
        self._cluster: Final = cluster
        self.unobserved: Cluster = cluster
        self.owned_by: Final = Owner.of(owner, operator)
        self.recorder: Final[Recorder] = recorder or NullRecorder()
        self.now: Final = clock.now()
        self.elapsed: Final = clock.elapsed()
        self.claims: Final = Claims()
        self.gates: Final = GateAnswers()
        self._problems: list[str] = []
        self._unpublished: dict[str, Condition] = {}
        self._claimed: set[str] = set()
        self._taken: set[str] = set()
        self._ended = False
        self._is_gone = False
        self.retry_after: timedelta | None = None

    @property
    def status(self) -> dict[str, Any]:
        """Copy of the owner's status, for changes; leaving `reconciling` writes it.

        Raises:
            ConfigError: If the block of `reconciling` has ended: a change would not be written.
        """
        return self._open_changes.status

    @property
    def cluster(self) -> Cluster:
        """The cluster of the objects.

        Raises:
            ConfigError: If the block of `reconciling` has ended.
        """
        self._require_open()
        return self._cluster

    @property
    def _open_changes(self) -> StatusChanges:
        self._require_open()
        return self._changes

    def end(self) -> None:
        """End the reconcile: from now on, using status, conditions or cluster is an error."""
        self._ended = True

    def _require_open(self) -> None:
        if self._ended:
            raise ConfigError(
                f"the context of {self.owned_by.key} was used after its block had ended: use it inside of "
                "`async with reconciling(...)`, and open a new block for each reconcile"
            )

    @property
    def is_ending(self) -> bool:
        """Whether the owner is being deleted: then components apply nothing, and nothing new should be made for it."""
        return is_ending(self.owner)

    @property
    def is_gone(self) -> bool:
        """Whether the owner was found to be removed during the reconcile: then nothing is made for it any more."""
        return self._is_gone

    def condition(self, name: str) -> Condition:
        """Return a condition of the owner, as staged or stored.

        Args:
            name: Type of the condition.

        Returns:
            The condition; its reason is Unknown if it was never written.
        """
        return stored_condition(self._open_changes.conditions, name, self.owned_by.generation)

    def condition_context(self, name: str) -> ConditionContext:
        """Return what the next condition of a type is computed from.

        Args:
            name: Type of the condition.
        """
        return ConditionContext(self.condition(name), self.owned_by.generation, self.now)

    def claim_conditions(self, types: Iterable[str]) -> None:
        """Record which conditions this operator sets, so that no other one of the process sets them for this owner.

        Raises:
            ConfigError: If another operator does already; then its condition stays as it is.
        """
        for name in types:
            if problem := self._claim(name):
                raise ConfigError(problem)

    def release_conditions(self) -> None:
        """Leave the conditions that were not set in this reconcile, which is complete, to other operators."""
        owner = self.owned_by
        self._cluster.apply_cache.release_conditions(owner.uid, owner.operator, kept=self._claimed)

    def _claim(self, name: str) -> str:
        """Record that this operator sets a condition; return a problem if another one of the process does already."""
        owner = self.owned_by
        other = self._cluster.apply_cache.claim_condition(owner.uid, owner.operator, name)
        if not other:
            self._claimed.add(name)
            return ""
        self._taken.add(name)
        return (
            f'operators "{other}" and "{owner.operator}" both set the condition "{name}" of {owner.key}: use different'
            " types, or each would overwrite the condition of the other one"
        )

    def stage(self, condition: Condition, *, published: bool = True) -> None:
        """Stage the condition of a component; it replaces the one of its type, at its place.

        Args:
            condition: The new condition.
            published: Whether it is written to the owner; otherwise only `aggregate` sees it, in this reconcile.

        Raises:
            ConfigError: If another operator of this process sets a condition of this type for the owner.
        """
        if published:
            self.claim_conditions([condition.type])
            self._open_changes.set_condition(condition.to_manifest())
        else:
            self._unpublished[condition.type] = condition

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
        condition = own_condition(
            find_condition(self._changes.stored_conditions, name),
            name,
            status=status,
            reason=reason,
            message=message,
            generation=self.owned_by.generation,
            now=self.now,
        )
        self.claim_conditions([name])
        self._open_changes.set_condition(condition)

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
            failed = self.condition_context(name).failed(problem, reason=reason)
            self._open_changes.set_condition(failed.to_manifest())

    @property
    def staged(self) -> frozenset[str]:
        """Types of the conditions that were set in this reconcile."""
        return self._open_changes.changed_types

    def clear_failure(self, name: str) -> None:
        """Remove a condition that `fail` has set in an earlier reconcile; one that was set in this reconcile stays.

        Args:
            name: Type of the condition.
        """
        self._open_changes.remove_failure(name)

    def shows(self, problem: str) -> bool:
        """Return whether a condition that was set in this reconcile contains the text of a failure.

        Args:
            problem: The text.
        """
        staged = self.staged
        return shows((one for one in self._changes.conditions if one.get("type") in staged), problem)

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
        standing = [(name, self._unpublished.get(kind) or self.condition(kind)) for name, kind in types]
        # Compared with the stored condition, because a failure that was staged before is not a transition.
        stored = stored_condition(self._changes.stored_conditions, name, self.owned_by.generation)
        condition = aggregate(standing, ConditionContext(stored, self.owned_by.generation, self.now))
        if condition.reason is Reason.UNKNOWN and self._problems and stored.last_transition_time:
            return stored
        self.stage(condition)
        return condition

    def arrange(self, types: Iterable[str]) -> None:
        """Sort the conditions that are new in this reconcile into a given order, after the existing ones.

        Args:
            types: Types of conditions, in order.
        """
        self._open_changes.arrange(types)

    def owner_changed(self, live: Manifest) -> None:
        """Record the component's own change of the owner, so that the next write of its status does not conflict.

        Args:
            live: The owner as the cluster returned it.
        """
        self._is_gone = is_ending(live) and not finalizers_of(live)
        if status_of(live) == self._changes.stored:
            self.owner = live

    def owner_removed(self) -> None:
        """Record that the owner does not exist any more, so that its status is not written."""
        self._is_gone = True

    def require_plain_status(self) -> None:
        """Raise an error if the staged status contains what cannot be written; the rest can be.

        That is what JSON does not have, what was assigned to `conditions` and is not a condition, and a condition that
        another operator of this process sets.

        Raises:
            ManifestError: The first time, for the fields that are not written: their stored values are kept.
        """
        changes = self._open_changes
        problems = [*changes.make_plain()]
        for name in changes.changed_types - self._claimed:
            if problem := self._claim(name):
                changes.restore(name)
                problems.append(FieldProblem("status.conditions", problem))
        if problems:
            key = self.owned_by.key
            raise ManifestError(f"{key.kind} {key.namespace}/{key.name}".replace(" /", " "), problems)

    async def write_status(self) -> None:
        """Write the staged status if it differs from the one that was read.

        After a conflict the status is read again. Other writers' changes are kept, except in the conditions and fields
        that were changed here. Nothing is written for an owner that was deleted meanwhile.

        A status that is refused, of which fields are not stored, or that another writer reverts again and again,
        becomes an event of type Warning.

        Raises:
            ApiError: If the write fails for another reason, or conflicts 32 times in a row.
            ManifestError: If the status contains what JSON does not have, after the rest is written.
        """
        unwritable: ManifestError | None = None
        try:
            self.require_plain_status()
        except ManifestError as error:
            unwritable = error
            self.fail((), str(error))
        await self._write_plain_status()
        if unwritable is not None:
            raise unwritable

    async def _write_plain_status(self) -> None:
        owner, changes = self.owned_by, self._open_changes
        for event in failure_events(owner.key, owner.uid, self._problems, changes.stored_conditions):
            self.recorder.happened(event)
        if self._is_gone:
            return
        try:
            written = await write_status(self._cluster, self.owner, owner, changes, self.elapsed)
        except ApiError as error:
            if not is_refused(error):
                raise
            # What an author computes a status from is not known.
            shown = without_values(error)
            self._record_loss(UNSTORED_EVENT, f"the API server refused the status: {shown}")
            raise shown from None
        if written is None:
            self._is_gone = True
            return
        self._log_replaced(written.status)
        self._log_loss(UNSTORED_EVENT, written.problem)
        self.hold_back(REVERTED_EVENT, written.reverted, written.retry_after)
        self.recorder.observed(owner.key, typed_conditions(written.status.get("conditions")))

    def _log_replaced(self, written: Manifest) -> None:
        """Log which value of another client was replaced, because no condition can be stored beside it."""
        owner, stored = self.owned_by.key, self.owner.get("status")
        path, value = "status", stored
        if isinstance(stored, dict):
            path, value = "status.conditions", stored.get("conditions")
            value = None if isinstance(value, list) else value
        if written.get("conditions") and value is not None:
            text = "%s: %s was stored as a value of type %s, and is replaced, because it cannot hold conditions"
            _log.warning(text, owner, path, type(value).__name__, extra={"owner": str(owner)})

    def hold_back(self, reason: str, note: str, rest: timedelta | None) -> None:
        """Record that a write of the owner waits because another writer reverts it; without a note, it is known."""
        self._log_loss(reason, note, "Update" if reason == FINALIZER_EVENT else _UPDATE_STATUS)
        self.retry_after = min((one for one in (self.retry_after, rest) if one is not None), default=None)

    def _log_loss(self, reason: str, note: str, action: str = _UPDATE_STATUS) -> None:
        """Log and record a loss, unless the note is empty."""
        if note:
            owner = self.owned_by.key
            _log.warning("%s: %s", owner, note, extra={"owner": str(owner)})
            self._record_loss(reason, note, action)

    def _record_loss(self, reason: str, note: str, action: str = _UPDATE_STATUS) -> None:
        """Record that a write of the owner, or a part of it, is not stored; only an event can show it."""
        owner = self.owned_by
        self.recorder.happened(
            Event(
                owner=owner.key,
                owner_uid=owner.uid,
                resource=owner.key,
                reason=reason,
                action=action,
                note=note,
                type="Warning",
            )
        )
