"""Context of one reconcile of an owner: what its components share, and the single write of its status.

The owner's manifest is kept as it was read. Components, and the user's code inside the block, change a copy of its
status. Leaving the block writes that copy once, if it differs; also after an error, but not after a cancellation.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Collection, Iterable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Final, Protocol

from ocf.cluster import Cluster, Subresource
from ocf.component.deletion import finalizers_of, is_ending
from ocf.component.model.claims import Claims
from ocf.component.model.ownership import Owner
from ocf.component.status.conditions import Condition, ConditionContext, aggregate, stored_condition
from ocf.component.status.failures import failure_events, published_types, shows
from ocf.component.status.reasons import Reason
from ocf.concepts import Clock, NullRecorder, Recorder, SystemClock
from ocf.errors import ApiError, ConfigError, ConflictError, NotFoundError
from ocf.objects import Manifest, copy_json, get_field, write_model
from ocf.objects.conditions import (
    ConditionStatus,
    condition_type_problem,
    find_condition,
    reason_problem,
    set_condition,
    shortened_message,
    with_condition,
)

if TYPE_CHECKING:
    from pydantic import BaseModel


__all__ = ["Conditioned", "ReconcileContext", "reconciling"]

_STATUSES: Final = frozenset(ConditionStatus)
# Conditions that were set to the same failure are equal in these fields.
_FAILURE: Final = ("reason", "message", "observedGeneration")
# How often a status write is tried after conflicts. Each try starts from the stored status, and of several reconciles
# that write at once, one succeeds in each round: this many lose nothing.
_STATUS_TRIES: Final = 32


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

    Attributes:
        owner: The owner as it was read.
        owned_by: Key, uid and generation of the owner.
        recorder: Receives attempts, events and conditions.
        now: Time of the reconcile.
        elapsed: The same on the monotonic clock.
        claims: Objects that the components of the owner manage in this reconcile.
    """

    def __init__(self, owner: Manifest, cluster: Cluster, clock: Clock, recorder: Recorder | None = None) -> None:
        self.owner = owner
        self._status: Final[dict[str, Any]] = copy_json(owner.get("status") or {})
        self._cluster: Final = cluster
        self.owned_by: Final = Owner.of(owner)
        self.recorder: Final[Recorder] = recorder or NullRecorder()
        self.now: Final = clock.now()
        self.elapsed: Final = clock.elapsed()
        self.claims: Final = Claims()
        self._ours: set[str] = set()
        self._problems: list[str] = []
        self._removed: set[str] = set()
        self._unpublished: dict[str, Condition] = {}
        self._ended = False
        self._is_gone = False

    @property
    def status(self) -> dict[str, Any]:
        """Copy of the owner's status, for changes; leaving `reconciling` writes it.

        Raises:
            ConfigError: If the block of `reconciling` has ended: a change would not be written.
        """
        self._require_open()
        return self._status

    @property
    def cluster(self) -> Cluster:
        """The cluster of the objects.

        Raises:
            ConfigError: If the block of `reconciling` has ended.
        """
        self._require_open()
        return self._cluster

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
        """Whether the owner was found to be removed during the reconcile, so that its status cannot be written."""
        return self._is_gone

    def condition(self, name: str) -> Condition:
        """Return a condition of the owner, as staged or stored.

        Args:
            name: Type of the condition.

        Returns:
            The condition; its reason is Unknown if it was never written.
        """
        return stored_condition(self.status.get("conditions") or [], name, self.owned_by.generation)

    def condition_context(self, name: str) -> ConditionContext:
        """Return what the next condition of a type is computed from.

        Args:
            name: Type of the condition.
        """
        return ConditionContext(self.condition(name), self.owned_by.generation, self.now)

    def stage(self, condition: Condition, *, published: bool = True) -> None:
        """Stage the condition of a component; it replaces the one of its type, at its place.

        Args:
            condition: The new condition.
            published: Whether it is written to the owner; otherwise only `aggregate` sees it, in this reconcile.
        """
        if not published:
            self._unpublished[condition.type] = condition
            return
        self._stage(condition.to_manifest())

    def set_condition(self, name: str, *, status: str, reason: str, message: str) -> None:
        """Stage a condition of the operator's own; its transition time changes only with its status.

        Args:
            name: Type of the condition, as the API allows it.
            status: `True`, `False` or `Unknown`.
            reason: Machine-readable reason, as the API allows it: a word in CamelCase.
            message: Human-readable message; cut at the API's limit of 32 768 characters.

        Raises:
            ConfigError: If the API server would reject the type, the status or the reason.
        """
        invalid = f"the status must be True, False or Unknown, got {status!r}" if status not in _STATUSES else ""
        problems = list(filter(None, (condition_type_problem(name), invalid, reason_problem(reason))))
        if problems:
            raise ConfigError(f'condition "{name}": {"; ".join(problems)}')
        stored = find_condition(self._stored_conditions, name)
        (condition,) = set_condition(
            [stored] if stored is not None else [],
            condition_type=name,
            status=ConditionStatus(status),
            reason=reason,
            message=shortened_message(message),
            observed_generation=self.owned_by.generation,
            now=self.now,
        )
        self._stage(condition)

    def fail(
        self, types: Iterable[str], problem: str, *, reason: Reason = Reason.ERROR, abnormal: Collection[str] = ()
    ) -> None:
        """Stage a failure in conditions: they become False, with the reason `Error` and the owner's generation.

        When the status is written, a failure that no stored condition showed becomes one event of type Warning.

        Args:
            types: Types of the conditions; without any, there is only the event.
            problem: The message, without the values of Secrets; see `ocf.errors.failure_text`.
            reason: `Error`, or a more precise reason.
            abnormal: Types of conditions that are bad when True, such as `Degraded`; they become True.

        Example:
            >>> from ocf.concepts import SystemClock
            >>> from ocf.embedded import EmbeddedCluster
            >>> owner = {"apiVersion": "example.com/v1", "kind": "Shop", "metadata": {"name": "corner", "uid": "1"}}
            >>> context = ReconcileContext(owner, EmbeddedCluster(), SystemClock())
            >>> context.fail(["WebReady", "Ready"], "the registry cannot be reached")
            >>> str(context.condition("Ready").reason), context.condition("Ready").message
            ('Error', 'the registry cannot be reached')
        """
        self._problems.append(problem)
        for name in dict.fromkeys(types):
            self.stage(self.condition_context(name).failed(problem, reason=reason, abnormal=name in abnormal))

    def published(self, declared: Collection[str] = ()) -> tuple[str, ...]:
        """Return the types of the conditions that this operator publishes, those of its last reconcile included.

        They are read from `managedFields`, so a new process knows them, too. Where the owner's definition does not
        declare the conditions as a list with the key `type`, the API server does not record who wrote which condition.
        Then they are the declared ones, or, without any, those with a `Reason`.

        Args:
            declared: Types that are published, whether they are stored or not.

        Returns:
            The declared types, and then the others in the order of the status.
        """
        return tuple(dict.fromkeys([*declared, *published_types(self.owner, self._manager, guess=not declared)]))

    @property
    def staged(self) -> frozenset[str]:
        """Types of the conditions that were set in this reconcile."""
        changed = (one for one in self.status.get("conditions") or [] if one not in self._stored_conditions)
        return frozenset({*self._ours, *(str(one.get("type")) for one in changed)})

    def clear_failure(self, name: str) -> None:
        """Remove a condition that `fail` has set in an earlier reconcile, and those that failed with it.

        Conditions that were set in this reconcile stay. The others are not published any more, so nothing else would
        end their failure.

        Args:
            name: Type of the condition.
        """
        failure = find_condition(self._stored_conditions, name)
        if failure is None or failure.get("reason") != Reason.ERROR:
            return
        same = [one for one in self._stored_conditions if all(one.get(key) == failure.get(key) for key in _FAILURE)]
        self._removed |= {str(one.get("type")) for one in same} - self.staged
        self._drop_removed(self.status)

    def shows(self, problem: str) -> bool:
        """Return whether a condition that was set in this reconcile contains the text of a failure.

        Args:
            problem: The text.
        """
        staged = self.staged
        return shows((one for one in self.status.get("conditions") or [] if one.get("type") in staged), problem)

    def aggregate(self, name: str, *components: Conditioned) -> Condition:
        """Stage one condition that aggregates the present conditions of several components.

        Args:
            name: Type of the condition.
            components: Components of this owner. The condition of an unpublished one is Unknown until it was
                reconciled in this reconcile.

        Returns:
            The condition: True if all of theirs are; reason and message are those of the condition with the highest
            priority.
        """
        standing = [(component.name, self._standing(component.condition_type)) for component in components]
        # Compared with the stored condition, because a failure that was staged before is not a transition.
        stored = stored_condition(self._stored_conditions, name, self.owned_by.generation)
        condition = aggregate(standing, ConditionContext(stored, self.owned_by.generation, self.now))
        self.stage(condition)
        return condition

    def arrange(self, types: Iterable[str]) -> None:
        """Sort the conditions that are new in this reconcile into a given order, after the existing ones.

        Args:
            types: Types of conditions, in order.
        """
        there = [condition["type"] for condition in self._stored_conditions]
        rank = {name: at for at, name in enumerate(dict.fromkeys([*there, *types]))}
        if "conditions" in self.status:
            self.status["conditions"].sort(key=lambda condition: rank.get(condition["type"], len(rank)))

    def owner_changed(self, live: Manifest) -> None:
        """Record the component's own change of the owner, so that the next write of its status does not conflict.

        Args:
            live: The owner as the cluster returned it.
        """
        self._is_gone = is_ending(live) and not finalizers_of(live)
        if live.get("status") == self.owner.get("status"):
            self.owner = live

    def owner_removed(self) -> None:
        """Record that the owner does not exist any more, so that its status is not written."""
        self._is_gone = True

    def _standing(self, name: str) -> Condition:
        return self._unpublished.get(name) or self.condition(name)

    def _stage(self, condition: Manifest) -> None:
        self._ours.add(condition["type"])
        self._removed.discard(condition["type"])
        self.status["conditions"] = with_condition(self.status.get("conditions") or [], condition)

    @property
    def _stored_conditions(self) -> list[Manifest]:
        """The conditions of the owner as it was read."""
        return get_field(self.owner, ("status", "conditions")) or []

    def _drop_removed(self, status: dict[str, Any]) -> None:
        left = [one for one in status.get("conditions") or [] if one.get("type") not in self._removed]
        status.pop("conditions", None)
        if left:
            status["conditions"] = left

    async def write_status(self) -> None:
        """Write the staged status if it differs from the one that was read.

        After a conflict the status is read again. Other writers' changes are kept, except in the conditions and fields
        that were changed here. Nothing is written for an owner that was deleted meanwhile.

        Raises:
            ApiError: If the write fails for another reason, or conflicts 32 times in a row.
        """
        owner = self.owned_by
        for event in failure_events(owner.key, owner.uid, self._problems, self._stored_conditions):
            self.recorder.happened(event)
        status = None if self._is_gone else await self._store()
        if status is not None:
            self.recorder.observed(self.owned_by.key, status.get("conditions") or [])

    async def _store(self) -> Manifest | None:
        """Write the status, and return it as stored; None if the owner was deleted."""
        live, status = self.owner, self.status
        for tries_left in reversed(range(_STATUS_TRIES)):
            if status == (live.get("status") or {}):
                break
            wanted = {**live, "status": status}
            try:
                await self.cluster.update(wanted, field_manager=self._manager, subresource=Subresource.STATUS)
                break
            except NotFoundError:
                return None
            except ConflictError:
                if not tries_left:
                    raise
            try:
                live = await self.cluster.get(self.owned_by.key)
            except NotFoundError:
                return None
            if live["metadata"].get("uid") != self.owned_by.uid:
                return None
            status = self._rebased(live)
        return status

    @property
    def _manager(self) -> str:
        return self.owned_by.field_manager("status")

    def _rebased(self, live: Manifest) -> dict[str, Any]:
        """Merge the changes of this reconcile into the status as stored now."""
        before = self.owner.get("status") or {}
        status: dict[str, Any] = copy_json(live.get("status") or {})
        for key in before.keys() | self.status.keys():
            if key != "conditions" and self.status.get(key) != before.get(key):
                status.pop(key, None)
                if key in self.status:
                    status[key] = self.status[key]
        staged = {condition["type"]: condition for condition in self.status.get("conditions") or []}
        old = {condition["type"]: condition for condition in before.get("conditions") or []}
        for name, condition in staged.items():
            if name in self._ours or condition != old.get(name):
                status["conditions"] = with_condition(status.get("conditions") or [], condition)
        if self._removed:
            self._drop_removed(status)
        return status


@asynccontextmanager
async def reconciling(
    owner: Manifest | BaseModel, cluster: Cluster, *, clock: Clock | None = None, recorder: Recorder | None = None
) -> AsyncIterator[ReconcileContext]:
    """Reconcile the components of one owner, and write its status once.

    Args:
        owner: The owner as read from the cluster: its manifest, or a model of it that keeps every field.
        cluster: The cluster of the objects.
        clock: Clock for the time of the reconcile; the system clock by default.
        recorder: Receives attempts, events and conditions; by default they are discarded.

    Yields:
        The context for `Component.reconcile`. Set further fields of the owner's status in its `status`.

    Raises:
        ConfigError: If owner or cluster is something else, such as None.
        ManifestError: If the owner has no name or no uid.
        ApiError: If the status cannot be written. After an error inside the block, that error is raised with a note.
    """
    _require_arguments(owner, cluster)
    manifest = owner if isinstance(owner, dict) else write_model(owner)
    context = ReconcileContext(manifest, cluster, clock or SystemClock(), recorder)
    try:
        yield context
    except (asyncio.CancelledError, GeneratorExit):
        raise
    except BaseException as error:
        try:
            await context.write_status()
        except ApiError as unwritten:
            error.add_note(f"the status of {context.owned_by.key} could not be written either: {unwritten}")
        raise
    else:
        await context.write_status()
    finally:
        context.end()


def _require_arguments(owner: object, cluster: object) -> None:
    problems: list[str] = []
    if not isinstance(owner, dict):
        from pydantic import BaseModel

        if not isinstance(owner, BaseModel):
            found = "None" if owner is None else f"an object of type {type(owner).__name__}"
            problems.append(f"owner must be the manifest or a model of an object read from the cluster, got {found}")
    if not callable(getattr(cluster, "apply", None)):
        found = "None" if cluster is None else f"an object of type {type(cluster).__name__}"
        problems.append(f"cluster must be a Cluster, got {found}")
    if problems:
        raise ConfigError(f"reconciling: {'; '.join(problems)}")
