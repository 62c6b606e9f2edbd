"""`Membership`: the replicas find each other, and each takes its share of the slots.

Every replica renews a Lease of its own. A slot is a Lease as well, which names its holder and is not renewed: it is
held for as long as its holder renews that one, so that the number of requests does not depend on the number of slots.
All replicas together hold the lease that a leader holds without sharding, under an identity that says how they divide
the owners. So no leader of the time before runs beside them, and no replica that divides them otherwise.

No clock of another process is read: how long a Lease has not been renewed is measured from when it was seen to change.
A holder stops before others may take what it held, because its renewal counts from before it was sent, and it stops
earlier than the Lease ends. A slot is taken, also by its former holder, by an update of the version that was read.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from ocf.cluster.protocol import DeleteOptions, ListOptions, Preconditions
from ocf.cluster.request_purpose import Purpose, requests_for
from ocf.errors import ApiError, ConfigError, ConflictError, NotFoundError
from ocf.objects import ObjectKey
from ocf.objects.manifest import PREFIX
from ocf.objects.shards import shard_hash
from ocf.runtime.leader.elector import Elector
from ocf.runtime.sharding.assignment import assign
from ocf.runtime.sharding.slots import Slots

if TYPE_CHECKING:
    from ocf.cluster import Cluster
    from ocf.concepts import Clock
    from ocf.objects import Manifest
    from ocf.runtime.leader import Timing
    from ocf.runtime.sharding.settings import Sharding

__all__ = ["Membership", "group_label", "replica_prefix", "slot_name"]

_log: Final = logging.getLogger(__name__)

_LEASE: Final = ("coordination.k8s.io/v1", "Lease")
_NEVER: Final = timedelta(0)
_LABEL: Final = f"{PREFIX}/sharded-lease"
# So many slots are taken or given up at once; a process that takes all of them must not fill its connections.
_AT_ONCE: Final = 16
# How many times the duration of a Lease the one of a replica that was killed is kept.
_LONG: Final = 4


def group_label(lease: str) -> dict[str, str]:
    """Return the label of all Leases of the replicas that share a lease."""
    # The name of a Lease may be longer than the value of a label.
    return {_LABEL: f"{shard_hash(lease):016x}"}


def slot_name(lease: str, slot: int) -> str:
    """Return the name of the Lease of a slot."""
    return f"{lease}-slot-{slot}"


def replica_prefix(lease: str) -> str:
    """Return how the names of the Leases of the replicas begin."""
    return f"{lease}-replica-"


@dataclass(slots=True)
class _Others:
    """When each Lease of another replica was last seen to change, by the clock of this process.

    Attributes:
        seen: By the identity of the replica, what its Lease said and since when.
        missing: Since when something is missing: the Lease of a replica that holds a slot, or that of a slot.
    """

    clock: Clock
    patience: timedelta
    seen: dict[str, tuple[object, timedelta]] = field(default_factory=dict)
    missing: dict[str | int, timedelta] = field(default_factory=dict)

    def look(self, leases: Iterable[Manifest]) -> None:
        """Take note of the Leases of the other replicas."""
        now = self.clock.elapsed()
        found = {_holder(lease): lease["spec"] for lease in leases}
        self.seen = {
            identity: self.seen[identity] if identity in self.seen and self.seen[identity][0] == spec else (spec, now)
            for identity, spec in found.items()
            if identity
        }

    def alive(self, began: timedelta) -> set[str]:
        """Return the replicas that were alive when a list was sent."""
        return {identity for identity, (_, since) in self.seen.items() if began - since < self.patience}

    def gone(self, absent: Iterable[str | int], began: timedelta) -> set[str | int]:
        """Return what has been absent from all lists for so long that its holder has stopped."""
        now = self.clock.elapsed()
        self.missing = {each: self.missing.get(each, now) for each in absent}
        return {each for each, since in self.missing.items() if began - since >= self.patience}


class Membership:
    """The part of one process among the replicas.

    Args:
        cluster: The cluster of the Leases.
        lease: The lease that the replicas hold together.
        identity: The identity of this process, unique among all processes.
        random: Returns a number from 0 up to 1.

    Raises:
        ConfigError: If the lease is too short for the other durations.
    """

    def __init__(
        self,
        cluster: Cluster,
        lease: ObjectKey,
        identity: str,
        *,
        sharding: Sharding,
        timing: Timing,
        clock: Clock,
        random: Callable[[], float],
    ) -> None:
        if timing.lease <= timing.renew_deadline + timing.retry_period:
            raise ConfigError(
                "sharding: need lease > renew_deadline + retry_period, "
                f"got {timing.lease}, {timing.renew_deadline} and {timing.retry_period}"
            )
        self._cluster, self._timing, self._clock, self._random = cluster, timing, clock, random
        self._name, self._namespace, self._labels = lease.name, lease.namespace, group_label(lease.name)
        # A replica waits for the end of another one by its own durations, so all of them must have the same.
        durations = (timing.lease, timing.renew_deadline, timing.retry_period)
        timed = "/".join(f"{each.total_seconds():g}" for each in durations)
        self._group = self._elector(lease.name, f"{sharding.slots} slots by {sharding.by}, {timed} s")
        self._own = self._elector(f"{replica_prefix(lease.name)}{shard_hash(identity):016x}", identity)
        self._others = _Others(clock, timing.lease - timing.retry_period)
        self._at_once = asyncio.Semaphore(_AT_ONCE)
        self._stepping = asyncio.Lock()
        self._leaving: dict[int, asyncio.Task[None]] = {}
        self._ending = False
        self._begun = False
        """Whether there was the Lease of any slot."""
        self.slots: Final = Slots(sharding, self._group.key, identity, clock)
        self.replicas: frozenset[str] = frozenset()
        """The identities of the replicas that are alive, as of the last look."""
        self.holders: tuple[str, ...] = ("",) * sharding.slots
        """The holder of each slot, as of the last look."""
        self._problem = self._waits = ""

    def ready(self) -> str:
        """Return why the leases cannot be renewed; empty if they can.

        A process that waits for a leader of the time before is ready: a rolling update would wait for it.
        """
        return self._problem

    def describe(self) -> str:
        """Return a text for `/readyz?verbose`: the slots that this process holds, or the lease that it waits for."""
        if self._waits:
            return f"waits: {self._waits}"
        parts = [f"{len(self.slots.held)} of {len(self.holders)} slots", f"replicas: {len(self.replicas)}"]
        for side, by_server in (("the API server", True), ("this process", False)):
            if kinds := [kind for (_, kind), one in self.slots.by_server.items() if one is by_server]:
                parts.append(f"{side} selects the objects of {', '.join(sorted(kinds))}")
        return "; ".join(parts)

    @asynccontextmanager
    async def joined(self) -> AsyncGenerator[Slots, None]:
        """Take part for as long as the block runs; what it holds is given up when its work has ended."""
        async with asyncio.TaskGroup() as tasks:
            running = [
                tasks.create_task(self._run(), name="shards"),
                tasks.create_task(self._guard(), name="end of shards"),
            ]
            try:
                yield self.slots
            finally:
                await self._give_up_all()
                for task in running:
                    task.cancel()
                await asyncio.gather(*running, return_exceptions=True)
                await self._quit()

    async def _run(self) -> None:
        while True:
            began = self._clock.elapsed()
            try:
                with requests_for(Purpose.LEASE):
                    # Longer than a request may take, but within what is left of the slots.
                    async with self._stepping, asyncio.timeout(self._timing.attempt.total_seconds()):
                        await self._step()
            except (ApiError, TimeoutError) as error:
                self._problem = (
                    f"the Leases of {self._group.key} cannot be renewed: {str(error) or 'no response in time'}"
                )
                _log.warning("%s", self._problem)
            await asyncio.sleep(self._wait(began).total_seconds())

    def _wait(self, began: timedelta) -> timedelta:
        """Return the time until the next step: a retry period, or less if a replica will be taken for dead before.

        Args:
            began: When the last step began.
        """
        elapsed = self._clock.elapsed()
        since = [when for _, when in self._others.seen.values()] + [*self._others.missing.values()]
        ends = [left for when in since if (left := when + self._others.patience - elapsed) > _NEVER]
        period = self._timing.retry_period * (1 - self._random() / 10)  # so that replicas do not all ask at once
        return min([max(began + period - elapsed, period / 2), *ends])

    async def _guard(self) -> None:
        """Drop all slots when the leases have not been renewed in time, whatever the step waits for."""
        while True:
            left = self.slots.valid_for
            if left <= _NEVER:
                self._drop_all()
                left = self._timing.retry_period / 4
            await asyncio.sleep(left.total_seconds())

    def _drop_all(self) -> None:
        if lost := self.slots.extend(_NEVER):
            _log.warning("%s has lost %d slots: %s", self.slots.identity, lost, self._problem or "it was paused")

    async def _step(self) -> None:
        """Renew what this process holds, look at the others, and move towards the share."""
        # Before the list: a request between the list and the takes makes the takeover from a dead replica later.
        if self._group.holds and not await self._renew_own():
            return
        began = self._clock.elapsed()
        leases = await self._list()
        group = leases.pop(self._group.key.name, None)
        if group is not None:
            self._group.observe(group, began)
        due = self._group.unchanged_for >= self._timing.retry_period / 2
        if group is None or not self._group.holds or due:
            await self._renew_together()
        # Only now: the others would leave a share to a process that waits, and that cannot take it.
        if self._group.holds and not self._own.holds and not await self._renew_own():
            return
        if self.slots.extend(min(self._own.valid_until, self._group.valid_until)):
            _log.warning("%s has lost its slots: its leases were not renewed in time", self.slots.identity)
        self._problem = ""
        waits = "" if self._group.holds or not self._group.holder else self._held_by_others
        if waits and waits != self._waits:
            _log.info("%s waits: %s", self.slots.identity, waits)
        self._waits = waits
        if self.slots.valid_for <= _NEVER:
            return
        await self._balance(leases, began)

    @property
    def _held_by_others(self) -> str:
        return f'the lease {self._group.key} is held by "{self._group.holder}", not by "{self._group.identity}"'

    async def _renew_own(self) -> bool:
        """Renew the Lease of this process; return False if another process has it."""
        if await self._own.attempt():
            return True
        self._problem = f"{self._own.holder} has the Lease {self._own.key} of this process: identities must be unique"
        self._drop_all()
        return False

    async def _renew_together(self) -> None:
        """Renew the lease of all replicas; the first attempt fails if another one does at the same time."""
        if not await self._group.attempt() and self._group.holder in {"", self._group.identity}:
            await self._group.attempt()

    async def _list(self) -> dict[str, Manifest]:
        options = ListOptions(
            namespace=self._namespace,
            label_selector=",".join(f"{name}={value}" for name, value in self._labels.items()),
        )
        page = await self._cluster.list(*_LEASE, options)
        return {lease["metadata"]["name"]: lease for lease in page.items}

    async def _balance(self, leases: Mapping[str, Manifest], began: timedelta) -> None:
        """Take free slots up to the share of this process, and begin to give up what is beyond it."""
        me, total = self.slots.identity, self.slots.sharding.slots
        records = [leases.get(slot_name(self._name, slot)) for slot in range(total)]
        names = {slot_name(self._name, slot) for slot in range(total)}
        prefix = replica_prefix(self._name)
        self._others.look(each for name, each in leases.items() if name.startswith(prefix) and name not in names)
        alive = self._others.alive(began) | {me}
        holders = ["" if record is None else _holder(record) for record in records]
        free = self._free(holders, records, alive, began)
        self.slots.lose(*(slot for slot in self.slots.held if records[slot] is not None and holders[slot] != me))
        present = [
            "" if slot in free else me if slot in self.slots.held else holder for slot, holder in enumerate(holders)
        ]
        self.replicas, self.holders = frozenset(alive), tuple(present)
        target = assign(present, alive - {me} if self._ending else alive)
        # What is being released may be taken again when that is over.
        wanted = [slot for slot in sorted(free) if target[slot] == me and slot not in self._leaving]
        await self._take({slot: records[slot] for slot in wanted})
        # The answer to a take or to a release was lost: this process is named, and no other one finds the slot free.
        named = [slot for slot in free if holders[slot] == me and target[slot] != me and slot not in self._leaving]
        await self._take({slot: records[slot] for slot in named}, holder="")
        if not self._begun:
            # The other replicas of a first start take these for free; what is missing later was deleted.
            await self._take(dict.fromkeys(range(total), None), holder="")
        await self._remove_leases(leases, began, {*present})
        # A slot whose Lease was deleted is written again.
        mine = [slot for slot in self.slots.held if records[slot] is None and slot not in wanted]
        await self._take(dict.fromkeys(mine, None), holder=me)
        for slot in self.slots.held:
            if target[slot] != me and slot not in self._leaving:
                self._give_up(slot)
        await self._remove_slots(leases)

    def _free(self, holders: list[str], records: list[Manifest | None], alive: set[str], began: timedelta) -> set[int]:
        """Return the slots that this process may take."""
        me, mine = self.slots.identity, self.slots.held
        seen = self._others.seen
        unknown: set[str | int] = {holder for holder in holders if holder and holder not in {me, *seen}}
        # Without any Lease of a slot, no replica has run before. Otherwise the holder of one that is missing may run.
        self._begun = self._begun or any(records)
        deleted: set[str | int] = (
            {slot for slot, record in enumerate(records) if record is None} if self._begun else set()
        )
        gone = self._others.gone({*unknown, *deleted}, began)
        dead: set[str | int] = {holder for holder in holders if holder in seen and holder not in alive}
        return {
            slot
            for slot, holder in enumerate(holders)
            if slot not in mine
            and (holder in {me, *dead} or holder in gone or (not holder and (slot in gone or slot not in deleted)))
        }

    async def _remove_leases(self, leases: Mapping[str, Manifest], began: timedelta, holders: set[str]) -> None:
        """Delete the Leases of replicas that were killed long ago."""
        for name, lease in leases.items():
            _, since = self._others.seen.get(_holder(lease), (None, began))
            if began - since > self._timing.lease * _LONG and name.startswith(replica_prefix(self._name)):
                if _holder(lease) in holders:
                    continue
                await self._delete(lease)

    async def _remove_slots(self, leases: Mapping[str, Manifest]) -> None:
        """Delete the Leases of slots that there are no more, since the number of slots is smaller than before.

        Replicas with the former number have ended: otherwise this one would not have the lease of all. One does this.
        """
        if 0 not in self.slots.held:
            return
        prefix, total = slot_name(self._name, 0).removesuffix("0"), len(self.holders)
        named = [(name.removeprefix(prefix), lease) for name, lease in leases.items() if name.startswith(prefix)]
        beyond = [lease for slot, lease in named if slot.isdecimal() and int(slot) >= total]
        await asyncio.gather(*(self._delete(lease) for lease in beyond[:_AT_ONCE]))

    async def _delete(self, lease: Manifest) -> None:
        """Delete a Lease unless it has changed."""
        as_read = Preconditions(resource_version=lease["metadata"]["resourceVersion"])
        with suppress(NotFoundError, ConflictError):
            await self._cluster.delete(ObjectKey.of(lease), DeleteOptions(preconditions=as_read))

    async def _take(self, records: Mapping[int, Manifest | None], *, holder: str | None = None) -> None:
        """Write slots, and hold those that no other replica wrote first.

        Args:
            records: The Leases as read; None for one that does not exist.
            holder: Who is written, if nothing is to be held; None for this process.
        """
        found: list[int] = []

        async def take(slot: int, live: Manifest | None) -> None:
            async with self._at_once:
                identity = self.slots.identity if holder is None else holder
                if await self._elector(slot_name(self._name, slot), identity).take(live):
                    found.append(slot)

        if not records:
            return
        try:
            answers = await asyncio.gather(*(take(*each) for each in records.items()), return_exceptions=True)
        finally:
            # Of many requests some may fail each time: what was taken is held, and the next step takes the rest.
            # The answers may have come after the end of the leases.
            if found and holder is None and self.slots.valid_for > _NEVER:
                self.slots.add(*found)
                _log.info("%s holds %d of %d slots", self.slots.identity, len(self.slots.held), len(self.holders))
        for answer in answers:
            if answer is not None:
                raise answer

    def _give_up(self, slot: int) -> None:
        self.slots.leave(slot)
        task = asyncio.create_task(self._release(slot), name=f"end of slot {slot}")
        self._leaving[slot] = task
        task.add_done_callback(lambda _: self._leaving.pop(slot, None))

    async def _release(self, slot: int) -> None:
        """Release a slot once nothing runs in it; if that fails, this process takes it again."""
        if not await self.slots.left(slot):
            return
        elector = self._elector(slot_name(self._name, slot), self.slots.identity)
        elector.valid_until = self._clock.elapsed() + self.slots.valid_for
        try:
            with requests_for(Purpose.LEASE):
                async with self._at_once, asyncio.timeout(self._timing.attempt.total_seconds()):
                    await elector.release()
        except (ApiError, TimeoutError) as error:
            _log.warning("slot %d is not released: %s", slot, str(error) or "no response arrived in time")

    async def _give_up_all(self) -> None:
        """Release each slot when nothing runs in it; meanwhile the leases are renewed."""
        self._ending = True
        self._begin_to_give_up_all()
        async with self._stepping:
            # A step that was under way may have taken more.
            self._begin_to_give_up_all()
        await asyncio.gather(*self._leaving.values())

    def _begin_to_give_up_all(self) -> None:
        for slot in self.slots.held:
            if slot not in self._leaving:
                self._give_up(slot)

    async def _quit(self) -> None:
        """Delete the Lease of this process, which holds nothing any more."""
        self.slots.extend(_NEVER)
        try:
            if self._own.holds:
                with requests_for(Purpose.LEASE):
                    async with asyncio.timeout(self._timing.attempt.total_seconds()):
                        await self._cluster.delete(self._own.key)
        except NotFoundError:
            pass
        except (ApiError, TimeoutError) as error:
            _log.warning("the Lease %s is not deleted: %s", self._own.key, str(error) or "no response arrived in time")

    def _elector(self, name: str, identity: str) -> Elector:
        key = ObjectKey(*_LEASE, name, self._namespace)
        return Elector(self._cluster, key, identity, self._clock, self._timing, self._labels)


def _holder(lease: Manifest) -> str:
    return (lease.get("spec") or {}).get("holderIdentity") or ""
