"""One pass over an owner: what its components share, and the one write of its status.

The owner's manifest is kept as it was read. Components, and the user's own code inside the block, change a copy of
its status, and leaving the block writes that copy once, only if it differs: also after an error, but not when the
pass was cancelled.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Final, Protocol

from ocf.cluster import Cluster, Subresource
from ocf.component.model.ownership import Owner
from ocf.component.status.conditions import Condition, ConditionContext, aggregate, stored_condition
from ocf.concepts import Clock, NullRecorder, Recorder, SystemClock
from ocf.errors import ApiError, ConfigError, ConflictError, NotFoundError
from ocf.objects import Manifest, copy_json, get_field, write_model
from ocf.objects.conditions import ConditionStatus, set_condition, with_condition

if TYPE_CHECKING:
    from pydantic import BaseModel


__all__ = ["Conditioned", "ReconcileContext", "reconciling"]

_STATUSES: Final = frozenset(ConditionStatus)
# How often a status is written anew after somebody else was faster; each try starts from what is stored then.
_STATUS_TRIES: Final = 6


class Conditioned(Protocol):
    """What is reported as one condition; a `Component` is."""

    @property
    def name(self) -> str:
        """What it is called."""
        ...

    @property
    def condition_type(self) -> str:
        """Type of its condition."""
        ...


class ReconcileContext:
    """What the components of one owner share during a pass.

    Args:
        owner: The owner as read from the cluster; kept as it is.
        cluster: Where the objects live.
        clock: Tells the instant of the pass.
        recorder: Is told what the pass does; None tells nobody.

    Attributes:
        owner: The owner as it was read.
        status: A copy of its status, to be changed; it is written on the way out of `reconciling`.
        cluster: Where the objects live.
        recorder: Is told what the pass does.
        now: The instant of the pass.
        elapsed: The same on the clock that nobody sets.
    """

    def __init__(self, owner: Manifest, cluster: Cluster, clock: Clock, recorder: Recorder | None = None) -> None:
        self.owner = owner
        self.status: Final[dict[str, Any]] = copy_json(owner.get("status") or {})
        self.cluster: Final = cluster
        self.owned_by: Final = Owner.of(owner)
        self.recorder: Final[Recorder] = recorder or NullRecorder()
        self.now: Final = clock.now()
        self.elapsed: Final = clock.elapsed()
        self._ours: set[str] = set()
        self._unpublished: dict[str, Condition] = {}

    @property
    def is_ending(self) -> bool:
        """Whether the owner is being deleted."""
        return get_field(self.owner, ("metadata", "deletionTimestamp")) is not None

    def condition(self, name: str) -> Condition:
        """Return a condition of the owner as it stands now.

        Args:
            name: The condition's type.

        Returns:
            The condition; one that was never written reads as Unknown.
        """
        return stored_condition(self.status.get("conditions") or [], name, self.owned_by.generation)

    def condition_context(self, name: str) -> ConditionContext:
        """Return what the next condition of a type is computed from.

        Args:
            name: The condition's type.
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
        self._ours.add(condition.type)
        self.status["conditions"] = with_condition(self.status.get("conditions") or [], condition.to_manifest())

    def set_condition(self, name: str, *, status: str, reason: str, message: str) -> None:
        """Stage a condition of the operator's own; its transition time changes only with its status.

        Args:
            name: Type of the condition.
            status: `True`, `False` or `Unknown`.
            reason: Machine-readable reason.
            message: Human-readable message.

        Raises:
            ConfigError: If the status is not one of these.
        """
        if status not in _STATUSES:
            raise ConfigError(f'condition "{name}": the status must be True, False or Unknown, got {status!r}')
        self._ours.add(name)
        self.status["conditions"] = set_condition(
            self.status.get("conditions") or [],
            condition_type=name,
            status=ConditionStatus(status),
            reason=reason,
            message=message,
            observed_generation=self.owned_by.generation,
            now=self.now,
        )

    def aggregate(self, name: str, *components: Conditioned) -> Condition:
        """Stage one condition for several components, from their conditions as they stand now.

        Args:
            name: The condition's type.
            components: Components of this owner; an unpublished one counts only once it was reconciled in this pass.

        Returns:
            The condition: True exactly if all of theirs are, told in the words of the one that says most.
        """
        standing = [(component.name, self._standing(component.condition_type)) for component in components]
        condition = aggregate(standing, self.condition_context(name))
        self.stage(condition)
        return condition

    def arrange(self, types: Iterable[str]) -> None:
        """Put conditions that are new in this pass in a given order, after those that were there.

        Args:
            types: Types of conditions, in order.
        """
        there = [condition["type"] for condition in self.owner.get("status", {}).get("conditions") or []]
        rank = {name: at for at, name in enumerate(dict.fromkeys([*there, *types]))}
        if "conditions" in self.status:
            self.status["conditions"].sort(key=lambda condition: rank.get(condition["type"], len(rank)))

    def owner_changed(self, live: Manifest) -> None:
        """Take note of a change that we made to the owner ourselves, so that its status can be written at once.

        Args:
            live: The owner as the cluster returned it.
        """
        if live.get("status") == self.owner.get("status"):
            self.owner = live

    def _standing(self, name: str) -> Condition:
        return self._unpublished.get(name) or self.condition(name)

    async def write_status(self) -> None:
        """Write the staged status if it differs from what was read.

        If somebody else was faster, what they wrote is read and kept, except for the conditions and the fields that
        were changed here. An owner that is gone has no status to write.

        Raises:
            ApiError: If the cluster refuses the write for another reason, or conflicts do not end.
        """
        status = await self._store()
        if status is not None:
            self.recorder.observed(self.owned_by.key, status.get("conditions") or [])

    async def _store(self) -> Manifest | None:
        """Write the status, and return it as it is stored; None where the owner is gone."""
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
        """Return the status as stored now, with what this pass changed."""
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
        return status


@asynccontextmanager
async def reconciling(
    owner: Manifest | BaseModel, cluster: Cluster, *, clock: Clock | None = None, recorder: Recorder | None = None
) -> AsyncIterator[ReconcileContext]:
    """Reconcile the components of one owner, and write its status once.

    Args:
        owner: The owner as read from the cluster: its manifest, or a model of it that keeps every field.
        cluster: Where the objects live.
        clock: Tells the instant of the pass; the machine's clock by default.
        recorder: Is told what the pass does: attempts, events, conditions; nobody by default.

    Yields:
        The context for `Component.reconcile`; the user's own status fields are set in its `status`.

    Raises:
        ManifestError: If the owner has no name or no uid.
        ApiError: If the status cannot be written; after an error inside the block that one is raised, with a note.
    """
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
    await context.write_status()
