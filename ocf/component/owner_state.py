"""The owner during one reconcile: what is known of it, and what is asked for, recorded and claimed on its behalf."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable
from datetime import timedelta
from typing import Final, NamedTuple

from ocf.cluster import Cluster
from ocf.cluster.impersonation import Impersonation
from ocf.cluster.protocol import as_user
from ocf.component.author_code import GateAnswers
from ocf.component.children import Children
from ocf.component.model.claims import Claims
from ocf.component.model.context_values import ContextValues
from ocf.component.model.holds import recorded
from ocf.component.model.ownership import DEFAULT_OPERATOR, FIELDS, finalizers_of, is_ending, status_of
from ocf.component.owner_deletion import FinalizerNames
from ocf.component.owner_status import (
    BLOCKED_EVENT,
    REVERTED_EVENT,
    blocked_note,
    blocking_reason,
    owner_event,
    shows,
    shows_component,
)
from ocf.component.pause import Pause, find_pause, invalid_pause, shown_pause
from ocf.component.pause_guard import PauseGuard
from ocf.component.status.conditions import Condition
from ocf.component.status.results import ResourceOutcome, Result
from ocf.component.status.status_changes import StatusChanges
from ocf.component.status_write import as_known
from ocf.concepts import Clock, Event, Recorder
from ocf.concepts.recorder import NullRecorder
from ocf.errors import ConfigError, FieldProblem, ManifestError, ReconcileError
from ocf.objects import Manifest
from ocf.objects.conditions import typed_conditions

__all__ = ["OwnerState", "require_timedelta"]

_log: Final = logging.getLogger("ocf.component")
_UPDATE_STATUS: Final = "UpdateStatus"
# A quarter of what the client sends at once, so that one owner with many objects leaves room for three others; and less
# than the requests of which an API server's priority and fairness rejects some by default.
_MOST_AT_ONCE: Final = 25


class _Acting(NamedTuple):
    """As whom a component acts, and the clusters of the reconcile for that user."""

    user: Impersonation
    cluster: Cluster
    unobserved: Cluster


class OwnerState:
    """What the context of a reconcile keeps of its owner; see `ReconcileContext` for the attributes."""

    def __init__(
        self,
        owner: Manifest,
        cluster: Cluster,
        clock: Clock,
        recorder: Recorder | None = None,
        operator: str = DEFAULT_OPERATOR,
        *,
        pause_field: tuple[str, ...] = (),
    ) -> None:
        self.owner = owner
        self.owned_by, status = as_known(owner, operator, cluster.apply_cache)
        self._changes = StatusChanges(status)
        self._cluster: Final = cluster
        self._guarded: Final = PauseGuard(cluster, self.require_running)
        self._pause_field: Final = pause_field
        self.held = recorded(owner, operator)
        self.pause: Pause | None = find_pause(owner, operator, pause_field)
        self.read_latest: Callable[[], Manifest | None] | None = None
        self.unobserved: Cluster = cluster
        self.pages: Cluster = cluster
        self.slots: Final = asyncio.Semaphore(_MOST_AT_ONCE)
        """Held while a resource is reconciled; shared by all components of the owner."""
        self.recorder: Final[Recorder] = recorder or NullRecorder()
        self.clock: Final = clock
        self.now: Final = clock.now()
        self.elapsed: Final = clock.elapsed()
        self.claims: Final = Claims()
        self._children: Final = Children(
            self._guarded, self.owned_by, self.recorder, self.require_running, is_dry_run=lambda: self.dry_run
        )
        self._acting: Final[dict[str, _Acting]] = {}
        self.gates: Final = GateAnswers()
        self.dry_run = False
        self.intents: Final = asyncio.Lock()
        self.unstored: Final[dict[str, object]] = {}
        self.wake: Callable[[], object] | None = None
        self.former_managers: tuple[str, ...] = ()
        self.finalizers = FinalizerNames(operator)
        self._problems: list[str] = []
        self.unpublished: dict[str, Condition] = {}
        self.results: Final[dict[str, Result]] = {}
        self.outcomes: Final[dict[str, dict[str, ResourceOutcome]]] = {}
        self._aggregates: Final[dict[str, set[str]]] = {}
        """Types of the conditions that aggregate a component, by its name."""
        self._claimed: set[str] = set()
        self._taken: set[str] = set()
        self._ended = False
        self._is_gone = False
        self.delay: timedelta | None = None
        self._values: Final = ContextValues()
        self._restarted: set[str] = set()
        """Types of the conditions whose stored transition lies in the future, of which a time-out counts from now."""
        self._events: list[Event] = []
        """Events that are posted once what they are about is stored."""
        self.failure_types: tuple[str, ...] = ()
        self.hidden_types: tuple[str, ...] = ()

    @property
    def is_ending(self) -> bool:
        """Whether the owner is being deleted: then components apply nothing, and nothing new should be made for it."""
        return is_ending(self.owner)

    @property
    def is_gone(self) -> bool:
        """Whether the owner was found to be removed during the reconcile: then nothing is made for it any more."""
        return self._is_gone

    @property
    def is_over(self) -> bool:
        """Whether nothing may be written for the owner any more in this reconcile: it is gone, or paused."""
        return self._is_gone or self.pause is not None

    @property
    def children(self) -> Children:
        """The objects that the owner controls, which it lists by kind and deletes one by one."""
        self._require_open()
        return self._children

    def act(self, component: str, user: Impersonation | None) -> None:
        """Record as whom a component reads and writes its objects; None is the user of the operator."""
        known = self._acting.get(component)
        if user is None or (known is not None and known.user == user):
            return
        acting = _Acting(user, as_user(self._guarded, user), as_user(self.unobserved, user))
        self._acting[component] = self._acting[f"{component}/{FIELDS}"] = acting

    def cluster_of(self, component: str) -> Cluster:
        """Return the cluster by which a component reads and writes its objects."""
        self._require_open()
        return self._acting[component].cluster if component in self._acting else self._guarded

    def unobserved_of(self, component: str) -> Cluster:
        """Return the same of `unobserved`."""
        return self._acting[component].unobserved if component in self._acting else self.unobserved

    def _notice_pause(self) -> None:
        """Look whether the owner was paused after the reconcile has begun."""
        latest = self.read_latest() if self.pause is None and self.read_latest is not None else None
        if latest is not None and latest["metadata"].get("uid") == self.owned_by.uid:
            self.pause = find_pause(latest, self.owned_by.operator, self._pause_field)

    def require_running(self) -> None:
        """Raise an error if the owner is paused, also if it was paused after the reconcile has begun."""
        self._notice_pause()
        if self.pause is not None:
            raise ReconcileError(self.owned_by.operator, f"the owner is paused by {self.pause}")

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

    def claim_conditions(self, types: Iterable[str]) -> None:
        """Record which conditions this operator sets, so that no other one of the process sets them for this owner."""
        for name in types:
            if problem := self._claim(name):
                raise ConfigError(problem)

    def release_conditions(self) -> None:
        """Leave the conditions that were not set in this reconcile, which is complete, to other operators."""
        owner, changes = self.owned_by, self._changes
        assigned = {one["type"] for one in changes.conditions} - changes.untouched_types
        self._cluster.apply_cache.release_conditions(owner.uid, owner.operator, kept=self._claimed, assigned=assigned)

    def _claim(self, name: str, *, assigned: bool = False) -> str:
        """Record that this operator sets a condition; return a problem if another one of the process does already."""
        owner = self.owned_by
        other = self._cluster.apply_cache.claim_condition(owner.key, owner.uid, owner.operator, name, assigned=assigned)
        if not other:
            self._claimed.add(name)
            return ""
        self._taken.add(name)
        return (
            f'operators "{other}" and "{owner.operator}" both set the condition "{name}" of {owner.key}: use different'
            " types, or each would overwrite the condition of the other one"
        )

    @property
    def stored_conditions(self) -> list[Manifest]:
        """The conditions of the owner as they were read."""
        return self._open_changes.stored_conditions

    @property
    def staged(self) -> frozenset[str]:
        """Types of the conditions that were set in this reconcile."""
        return self._open_changes.changed_types

    def clear_failure(self, name: str) -> None:
        """Remove a condition that `fail` set earlier, and that of our own whatever other clients have made of it."""
        self._open_changes.remove_failure(name, whatever=name.startswith(f"{self.owned_by.operator}/"))

    def shows(self, problem: str) -> bool:
        """Return whether a condition that was set in this reconcile contains the text of a failure."""
        staged = self.staged
        return shows((one for one in self._changes.conditions if one.get("type") in staged), problem)

    def arrange(self, types: Iterable[str]) -> None:
        """Sort the conditions that are new in this reconcile into a given order, after the existing ones."""
        self._open_changes.arrange(types)

    def owner_changed(self, live: Manifest) -> None:
        """Record the component's own change of the owner, so that the next write of its status does not conflict."""
        self._is_gone = is_ending(live) and not finalizers_of(live)
        if status_of(live) == status_of(self.owner):
            self.owner = live

    def owner_removed(self) -> None:
        """Record that the owner does not exist any more, so that its status is not written."""
        self._is_gone = True

    def require_plain_status(self) -> None:
        """Raise an error if the staged status contains what cannot be written; the rest can be.

        That is what JSON does not have, what was assigned to `conditions` and is not a condition, and a condition that
        another operator of this process sets.
        """
        changes = self._open_changes
        problems = [*changes.make_plain(self.now)]
        for name in changes.changed_types - self._claimed:
            if problem := self._claim(name, assigned=name in changes.assigned_types):
                changes.restore(name)
                problems.append(FieldProblem("status.conditions", problem))
        if problems:
            key = self.owned_by.key
            raise ManifestError(f"{key.kind} {key.namespace}/{key.name}".replace(" /", " "), problems)

    def _show_pause(self) -> None:
        owner = self.owned_by
        invalid = "" if self.pause is not None else invalid_pause(self.owner, owner.operator, self._pause_field)
        shown = shown_pause(
            self._changes, self.owner, owner, self.pause, invalid=invalid, finalizers=self.finalizers, now=self.now
        )
        for event in () if self.dry_run else shown:
            self._log(event.note)
            self._events.append(event)

    def _show_blocked(self, stored: Manifest) -> None:
        """Log and record what blocks components where no stored condition says so: once, until it blocks no more.

        Args:
            stored: The owner with the status that is stored.
        """
        if self.dry_run or self.pause is not None:
            return
        conditions = typed_conditions(status_of(stored).get("conditions"))
        for name, result in self.results.items():
            is_shown = shows_component(conditions, result, self._aggregates.get(name, ()))
            reasons = [(one, "" if is_shown else blocking_reason(one)) for one in result.outcomes]
            new = [one for one, why in reasons if self._is_new_refusal(why, f"{name}/{one.resource}") and why]
            self._log_loss(BLOCKED_EVENT, blocked_note(name, new), "Reconcile")

    def _is_new_refusal(self, problem: str, what: str = "status") -> bool:
        manager = self.owned_by.field_manager(what)
        return self._cluster.apply_cache.is_new_refusal(self.owned_by.uid, manager, problem)

    def hold_back(self, reason: str, note: str, rest: timedelta | None) -> None:
        """Record that a write of the owner waits because another writer reverts it; without a note, it is known."""
        self._log_loss(reason, note, _UPDATE_STATUS if reason == REVERTED_EVENT else "Update")
        if rest is not None:
            self._ask_for(rest)

    def _post_events(self) -> None:
        """Post the events of this reconcile, as what they are about is stored; otherwise the next one has them."""
        events, self._events = self._events, []
        for event in events:
            self.recorder.happened(event)

    def requeue_after(self, delay: timedelta) -> None:
        """Ask for another reconcile of the owner, if no event causes one before.

        It may be called anywhere in a reconcile, and any number of times: the earliest delay counts. Each reconcile
        asks anew. After a failure an operator waits for the delay or for its backoff, whichever is shorter.

        Args:
            delay: The delay from the end of this reconcile. Zero, or less, is at once: an operator waits 100
                milliseconds; after a failure such a delay does not count.

        Raises:
            ConfigError: If the delay is something else than a `timedelta`.

        Example:
            >>> from ocf.concepts import SystemClock
            >>> from ocf_server import EmbeddedCluster
            >>> owner = {"apiVersion": "example.com/v1", "kind": "Shop", "metadata": {"name": "corner", "uid": "1"}}
            >>> context = OwnerState(owner, EmbeddedCluster(), SystemClock())
            >>> for seconds in (30, 5, 60):
            ...     context.requeue_after(timedelta(seconds=seconds))
            >>> context.delay
            datetime.timedelta(seconds=5)
        """
        self._require_open()
        require_timedelta(delay, "requeue_after: the delay")
        self._ask_for(delay)

    def _ask_for(self, delay: timedelta) -> None:
        self.delay = delay if self.delay is None else min(self.delay, delay)

    def _log_loss(self, reason: str, note: str, action: str = _UPDATE_STATUS) -> None:
        """Log and record that a write of the owner, or a part of it, is not stored, unless the note is empty."""
        self._log(note)
        if note:
            self._record_loss(reason, note, action)

    def _log(self, note: str) -> None:
        if note:
            owner = self.owned_by.key
            _log.warning("%s: %s", owner, note, extra={"owner": str(owner)})

    def _record_loss(self, reason: str, note: str, action: str = _UPDATE_STATUS) -> None:
        self.recorder.happened(owner_event(self.owned_by, reason, note, action=action))


def require_timedelta(value: timedelta, what: str) -> None:
    """Raise an error for what is no timedelta."""
    if not isinstance(value, timedelta):
        raise ConfigError(f"{what} must be a timedelta, got an object of type {type(value).__name__}")
