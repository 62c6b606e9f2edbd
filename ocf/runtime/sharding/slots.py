"""`Slots`: the slots that this process holds, what runs in them, and the end of that when they are lost.

A slot is a part of the owners. Work on an owner runs inside of `working`: it is counted, so that a slot is given up
only when nothing runs in it, and it is cancelled if the slot is lost. The cluster of `fenced` rejects what such work
writes after that.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from ocf.errors import LeaseLostError
from ocf.objects.shards import HashRange, ShardSelector, slot_of
from ocf.runtime.leader.election import FencedCluster

if TYPE_CHECKING:
    from ocf.cluster import Cluster
    from ocf.concepts import Clock
    from ocf.objects import ObjectKey
    from ocf.runtime.sharding.settings import Sharding

__all__ = ["NO_SLOT", "SlotLostError", "Slots"]

_log: Final = logging.getLogger(__name__)

NO_SLOT: Final = -1
"""The slot of what is in none."""
_NEVER: Final = timedelta(0)  # an elapsed time is never before it


class SlotLostError(LeaseLostError):
    """A slot is not held by this process, so that nothing may run in it."""


@dataclass(slots=True, eq=False)
class _Slot:
    """A slot that is held.

    Attributes:
        number: Which time it is that this process takes a slot.
        leaving: Whether it is being given up: nothing new begins in it.
        lost: Whether it is not held any more.
        running: The deadline of each piece of work in it, which ends that work.
        idle: Set while nothing runs in it.
    """

    number: int
    leaving: bool = False
    lost: bool = False
    running: set[asyncio.Timeout] = field(default_factory=set)
    idle: asyncio.Event = field(default_factory=asyncio.Event)


_WORKING: Final[ContextVar[_Slot | None]] = ContextVar("slot", default=None)
"""The slot of the work that runs; also in the tasks that it starts."""


class Slots:
    """The slots of a process; `Membership` takes them and gives them up.

    Args:
        lease: The lease that all replicas hold together, for messages.
        identity: The identity of this process.
    """

    def __init__(self, sharding: Sharding, lease: ObjectKey, identity: str, clock: Clock) -> None:
        self.sharding: Final = sharding
        self.lease: Final = lease
        self.identity: Final = identity
        self._clock = clock
        self._held: dict[int, _Slot] = {}
        self._valid_until = _NEVER
        self._taken = 0
        self.changed = asyncio.Event()
        """Set when the slots in which work may begin have changed, and replaced by a new event then."""
        self.moved = asyncio.Event()
        """The same of the slots that are held."""
        self.by_server: dict[tuple[str, str], bool] = {}
        """The kinds that are sharded, by version and kind, each with whether the API server selects the objects."""

    @property
    def valid_for(self) -> timedelta:
        """For how long the slots are held without a renewal; not positive once they are lost."""
        return self._valid_until - self._clock.elapsed()

    @property
    def held(self) -> frozenset[int]:
        """The slots that are held."""
        return frozenset(self._held) if self.valid_for > _NEVER else frozenset()

    @property
    def accepted(self) -> frozenset[int]:
        """The slots that are held, and in which work may begin."""
        return frozenset(slot for slot in self.held if not self._held[slot].leaving)

    @property
    def terms(self) -> frozenset[tuple[int, int]]:
        """The slots in which work may begin, each with a number that is another one when it is taken again."""
        return frozenset((slot, self._held[slot].number) for slot in self.accepted)

    @property
    def held_terms(self) -> frozenset[tuple[int, int]]:
        """The same of all slots that are held."""
        return frozenset((slot, self._held[slot].number) for slot in self.held)

    def term_of(self, uid: str, namespace: str) -> tuple[int, int] | None:
        """Return the slot of an owner and its number; None if it is not held."""
        slot = self.slot_of(uid, namespace)
        return (slot, self._held[slot].number) if slot in self.held else None

    async def gained(self) -> AsyncGenerator[frozenset[int], None]:
        """Yield the slots that this process takes, each time that it takes some, without end."""
        before: frozenset[tuple[int, int]] = frozenset()
        while True:
            changed, terms = self.changed, self.terms
            if found := frozenset(slot for slot, _ in terms - before):
                yield found
            before = terms
            await changed.wait()

    @property
    def selector(self) -> ShardSelector:
        """What selects the objects of the slots that are held: what runs in one that is given up reads its owner."""
        ranges = HashRange.of_slots(self.held, self.sharding.slots)
        return ShardSelector(f"object.metadata.{self.sharding.by}", ranges)

    def slot_of(self, uid: str, namespace: str) -> int:
        """Return the slot of an owner."""
        return slot_of(uid if self.sharding.by == "uid" else namespace, self.sharding.slots)

    def accepts(self, uid: str, namespace: str) -> bool:
        """Return whether the work on an owner may begin."""
        found = self._held.get(self.slot_of(uid, namespace))
        return found is not None and not found.leaving and self.valid_for > _NEVER

    @asynccontextmanager
    async def working(self, slot: int) -> AsyncGenerator[None, None]:
        """Count the block as work in a slot, and cancel it if the slot is lost.

        Raises:
            SlotLostError: If the slot is not held, is being given up, or is lost while the block runs.
        """
        found = self._held.get(slot)
        if found is None or found.leaving or self.valid_for <= _NEVER:
            raise self._lost(slot)
        term = asyncio.timeout(None)
        before = _WORKING.set(found)
        found.running.add(term)
        found.idle.clear()
        try:
            async with term:
                yield
        except TimeoutError:
            if not term.expired():
                raise
            raise self._lost(slot) from None
        finally:
            _WORKING.reset(before)
            found.running.discard(term)
            if not found.running:
                found.idle.set()

    def works_on(self, uid: str, namespace: str) -> bool:
        """Return whether the work that runs is in the slot of an owner."""
        found = _WORKING.get()
        return found is not None and self._held.get(self.slot_of(uid, namespace)) is found

    def _lost(self, slot: int) -> SlotLostError:
        problem = f"slot {slot} is not held by this process"
        return SlotLostError(f"{self.lease.namespace}/{self.lease.name}", self.identity, problem)

    def fenced(self, cluster: Cluster) -> Cluster:
        """Return a cluster that rejects writes of work whose slot is lost, and of a process whose lease is."""
        return FencedCluster(cluster, self._may_write, self.lease)

    def _may_write(self) -> bool:
        found = _WORKING.get()
        return self.valid_for > _NEVER and not (found is not None and found.lost)

    def extend(self, until: timedelta) -> int:
        """Hold the slots until an elapsed time of the clock; return how many are lost.

        A process that was paused must not take up again what others may have taken since.
        """
        before = len(self._held)
        if self.valid_for <= _NEVER:
            self.lose(*self._held)
        self._valid_until = until
        if self.valid_for <= _NEVER:
            self.lose(*self._held)
        return before - len(self._held)

    def add(self, *slots: int) -> None:
        """Hold more slots."""
        for slot in slots:
            self._taken += 1
            self._held[slot] = _Slot(self._taken)
            self._held[slot].idle.set()
        if slots:
            self._move()
            self._notify()

    def leave(self, *slots: int) -> None:
        """Begin to give up slots: nothing new begins in them."""
        found = [self._held[slot] for slot in slots if slot in self._held and not self._held[slot].leaving]
        for each in found:
            each.leaving = True
        if found:
            self._notify()

    async def left(self, slot: int) -> bool:
        """Wait until nothing runs in a slot that is being given up, and drop it; return whether it was held so long."""
        found = self._held.get(slot)
        if found is None:
            return False
        await found.idle.wait()
        if self._held.get(slot) is not found:
            return False
        self.lose(slot)
        return True

    def lose(self, *slots: int) -> None:
        """Drop slots, and cancel what runs in them."""
        found = [self._held.pop(slot) for slot in slots if slot in self._held]
        now = asyncio.get_running_loop().time()
        for each in found:
            each.lost = True
            for term in each.running:
                term.reschedule(now)
        if found:
            self._move()
        if any(not each.leaving for each in found):
            self._notify()

    def note_selection(self, api_version: str, kind: str, *, by_server: bool) -> None:
        """Note whether the API server has selected the objects of these slots; what is new is logged."""
        if self.by_server.get((api_version, kind)) is by_server:
            return
        self.by_server[api_version, kind] = by_server
        if by_server:
            _log.info("the API server sends the objects of the kind %s that are in the slots of this process", kind)
        else:
            text = "the API server sends all objects of the kind %s, and this process keeps those in its slots: %s"
            _log.info(text, kind, "the feature gate ShardedListAndWatch is off, or the server is older than 1.36")

    def _move(self) -> None:
        self.moved.set()
        self.moved = asyncio.Event()

    def _notify(self) -> None:
        self.changed.set()
        self.changed = asyncio.Event()
