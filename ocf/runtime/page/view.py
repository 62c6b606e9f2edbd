"""What the page shows of a process: the explanation of each owner, from the caches, and numbers of queue and watches.

Only the owners whose objects have changed since the last look are explained again, in slices between which reconciles
go on. Nothing is computed unless a page is open.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from ocf.cluster.interceptor import InterceptingCluster
from ocf.cluster.request_log import Request
from ocf.objects import Manifest, ObjectKey
from ocf.ownership.explanation import explain_owner
from ocf.ownership.snapshot import OwnerSnapshot, made_for
from ocf.ownership.tree import OwnerExplanation
from ocf.runtime.component_diagram import component_diagram

if TYPE_CHECKING:
    from ocf.cluster import Cluster
    from ocf.cluster.cache import CachedCluster
    from ocf.cluster.cache.serialization import CacheEntry
    from ocf.concepts import Clock
    from ocf.ownership.diagram import Diagram
    from ocf.runtime.operator.controller import Controller

__all__ = ["ProcessView", "QueueNumbers", "RequestCounter", "WatchNumbers"]

_SLICE: Final = 0.01
"""Seconds after which other tasks go on."""
_STALE: Final = timedelta(seconds=30)
"""How old an explanation may get, since it names durations."""
_AUTHOR: Final = 1.0
"""Seconds that the author's function may take to return the components for a picture."""
_WAIT: Final = 0.05
"""Seconds between two looks at whether the owners are in memory."""
_RATE_SECONDS: Final = 10
_SECRET: Final = ("", "Secret")


@dataclass(frozen=True, slots=True)
class QueueNumbers:
    """The queue of an operator.

    Args:
        waiting: Number of owners that wait.
        running: Number of running reconciles.
        later: Number of owners that are scheduled for later.
        paused: Number of paused owners.
    """

    operator: str
    waiting: int
    running: int
    later: int
    paused: int


@dataclass(frozen=True, slots=True)
class WatchNumbers:
    """A watch of the process.

    Args:
        namespace: Its namespace; empty for all.
        objects: Number of objects in memory.
        problem: Its problem; empty if it has none.
    """

    api_version: str
    kind: str
    namespace: str
    objects: int
    problem: str


class RequestCounter:
    """Counts the requests of a process in the last seconds."""

    def __init__(self) -> None:
        self._seconds: deque[tuple[int, int]] = deque(maxlen=_RATE_SECONDS + 1)

    def count(self) -> None:
        """Count a request."""
        now = int(asyncio.get_running_loop().time())
        last = self._seconds[-1] if self._seconds else (-1, 0)
        if last[0] == now:
            self._seconds[-1] = now, last[1] + 1
        else:
            self._seconds.append((now, 1))

    @property
    def per_second(self) -> float:
        """Requests per second, of the last 10 whole seconds."""
        now = int(asyncio.get_running_loop().time())
        recent = sum(count for second, count in self._seconds if now - _RATE_SECONDS <= second < now)
        return recent / _RATE_SECONDS

    def counting(self, cluster: Cluster) -> Cluster:
        """Return a cluster whose requests are counted."""
        return _CountedCluster(cluster, self)


class _CountedCluster(InterceptingCluster):
    """A cluster whose requests are counted."""

    def __init__(self, cluster: Cluster, counter: RequestCounter) -> None:
        super().__init__(cluster)
        self._counter = counter

    async def intercept(self, request: Request, send: Callable[[], Awaitable[Any]]) -> Any:
        del request
        self._counter.count()
        return await send()


@dataclass(slots=True)
class _Known:
    """The explanation of an owner, and of which versions of which objects it is."""

    versions: frozenset[tuple[ObjectKey, str]]
    found: OwnerExplanation
    at: datetime


class ProcessView:
    """The owners of a process, explained from its caches."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._caches: Sequence[CachedCluster] = ()
        self._controllers: Sequence[Controller] = ()
        self._known: dict[ObjectKey, _Known] = {}
        self._made_for: dict[ObjectKey, tuple[str, tuple[str, ...]]] = {}
        self._looking: asyncio.Task[None] | None = None
        self.spent = 0.0
        """Seconds of the processor that all looks have taken."""
        self._state: object = None
        self._looked = clock.now()
        self.unexplained = 0
        """Number of owners that no look has explained yet."""
        self.notice = ""
        """What every page of `ocf dev` says first; empty for nothing."""

    def set_term(self, caches: Sequence[CachedCluster], controllers: Sequence[Controller]) -> None:
        """Set the caches and the controllers of the current term as the leader; none between terms."""
        self._caches, self._controllers = caches, controllers
        self._known.clear()
        self._made_for.clear()
        self._state = None

    @property
    def now(self) -> datetime:
        """The time."""
        return self._clock.now()

    @property
    def operators(self) -> Mapping[str, tuple[str, str]]:
        """The kind of owners of each running operator; none while another process leads."""
        return {each.operator.name: each.operator.owner_kind for each in self._controllers}

    @property
    def definitions(self) -> list[Manifest]:
        """The definitions of kinds that the operators have."""
        return [one for each in self._controllers for one in each.operator.all_definitions]

    @property
    def is_synced(self) -> bool:
        """Whether the owners of all operators are in memory."""
        return bool(self._controllers) and not any(each.declared.ready() for each in self._controllers)

    async def begun(self) -> None:
        """Wait until there are operators, and their owners are in memory."""
        while not (self._controllers and all(map(_has_owners, self._controllers))):  # noqa: ASYNC110 (it depends on many)
            await asyncio.sleep(_WAIT)

    @property
    def owners(self) -> Mapping[ObjectKey, OwnerExplanation]:
        """The explanation of each owner, as of the last look."""
        return {key: known.found for key, known in self._known.items()}

    def queues(self) -> list[QueueNumbers]:
        """Return the queue of each operator."""
        return [
            QueueNumbers(each.operator.name, each.queue.depth, len(each.queue.running), each.queue.later, each.paused)
            for each in self._controllers
        ]

    def watches(self) -> list[WatchNumbers]:
        """Return the watches of the process, those with a problem first."""
        found = [
            WatchNumbers(each.api_version, each.kind, each.namespace, each.objects, each.problem)
            for cache in self._caches
            for each in cache.informers
        ]
        return sorted(found, key=lambda one: (not one.problem, one.kind, one.api_version, one.namespace))

    async def look(self, within: float | None = None) -> None:
        """Explain the owners whose objects have changed since the last look, or that were explained long ago.

        Args:
            within: Seconds after which it goes on by itself, when some owners may not be explained; None waits for all.
        """
        if self._looking is None or self._looking.done():
            self._looking = asyncio.create_task(self._look(), name="look of the page at owners")
        await asyncio.wait([self._looking], timeout=within)
        if self._looking.done():
            self._looking.result()

    def explanation(self, key: ObjectKey) -> OwnerExplanation | None:
        """Return the explanation of an owner as it is now; None if no operator has it."""
        held = _Held(self._caches, self._made_for)
        if not any(key == one for each in self._controllers for one in held.owners(each)):
            return None
        self._explain(key, held)
        return self._known[key].found

    async def declared(self, key: ObjectKey) -> Diagram | None:
        """Return the diagram of the components of an owner; None without one, and if they need a cluster or fail."""
        for each in self._controllers:
            entry, operator = each.owner_cache.entry(key), each.operator
            is_own = (key.api_version, key.kind) == operator.owner_kind and not operator.callbacks.takes_context
            if entry is None or not is_own or entry.metadata_only:
                continue
            try:
                async with asyncio.timeout(_AUTHOR):
                    # Without a context, the function can read and write nothing through it.
                    found = await operator.callbacks.components(operator.owner.read(entry.unpack()), None)
                return component_diagram(f"{key.kind} {key.name}", found)
            except Exception:  # noqa: BLE001 (the reconcile shows why the author's function fails)
                return None
        return None

    async def _look(self) -> None:
        caches = self._caches
        state = [one for each in caches for one in each.informers]
        if state == self._state and self._clock.now() - self._looked < _STALE:
            return
        self._state, self._looked = None, self._clock.now()
        began = time.thread_time()
        held = _Held(caches, self._made_for)
        owners = [key for each in self._controllers for key in held.owners(each)]
        for gone in self._known.keys() - set(owners):
            del self._known[gone]
        for key in owners:
            self._explain(key, held)
            if (lasted := time.thread_time() - began) > _SLICE:
                self.spent += lasted
                self.unexplained = len(owners) - len(self._known)
                await asyncio.sleep(0)
                if self._caches is not caches:
                    return
                began = time.thread_time()
        self.spent += time.thread_time() - began
        self.unexplained = 0
        self._state = state

    def _explain(self, key: ObjectKey, held: _Held) -> None:
        entries = held.below(key)
        versions = frozenset((one, entry.version) for one, entry in entries.items())
        known, now = self._known.get(key), self._clock.now()
        if known is not None and known.versions == versions and now - known.at < _STALE:
            return
        objects = [_plain(entry.unpack()) for entry in entries.values()]
        snapshot = OwnerSnapshot(objects=objects, now=now, with_status=[key.group_kind])
        self._known[key] = _Known(versions, explain_owner(snapshot, key), now)


def _has_owners(controller: Controller) -> bool:
    states = [*controller.owner_cache.informers_of(*controller.operator.owner_kind)]
    return bool(states) and all(each.synced for each in states)


class _Held:
    """The objects of caches at one instant, by what they belong to; nothing is unpacked that has an owner."""

    def __init__(self, caches: Sequence[CachedCluster], known: dict[ObjectKey, tuple[str, tuple[str, ...]]]) -> None:
        self.entries: dict[ObjectKey, CacheEntry] = {}
        self._below: dict[str, list[ObjectKey]] = {}
        for cache in caches:
            self.entries.update(cache.held)
        for gone in known.keys() - self.entries.keys():
            del known[gone]
        for key, entry in self.entries.items():
            for uid in entry.owners or _uids(key, entry, known):
                self._below.setdefault(uid, []).append(key)

    def owners(self, controller: Controller) -> Iterator[ObjectKey]:
        """Yield the owners of an operator."""
        kind = controller.operator.owner_kind
        for key, entry in controller.owner_cache.held:
            if (key.api_version, key.kind) == kind and key in self.entries and not entry.metadata_only:
                yield key

    def below(self, owner: ObjectKey) -> Mapping[ObjectKey, CacheEntry]:
        """Return an owner, and what belongs to it."""
        found = {owner: self.entries[owner]}
        queue = deque([owner])
        while queue:
            for key in self._below.get(self.entries[queue.popleft()].uid, ()):
                if key not in found:
                    found[key] = self.entries[key]
                    queue.append(key)
        return found


def _uids(key: ObjectKey, entry: CacheEntry, known: dict[ObjectKey, tuple[str, tuple[str, ...]]]) -> tuple[str, ...]:
    """Return the owners that an object without owner references was made for."""
    found = known.get(key)
    if found is None or found[0] != entry.version:
        found = known[key] = entry.version, tuple(made_for(entry.unpack()))
    return found[1]


def _plain(live: Manifest) -> Manifest:
    """Return an object without the values of a Secret, which no explanation needs."""
    if ObjectKey.of(live).group_kind != _SECRET:
        return live
    return {name: live[name] for name in ("apiVersion", "kind", "metadata")}
