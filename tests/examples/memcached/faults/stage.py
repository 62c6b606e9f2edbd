"""The operator at work while things go wrong: in virtual time, behind a gateway through which all its requests go.

The numbers of the rows are those of a table of faults that operators are known to fail at. What every run has to end
as is what an undisturbed run ends as: the same objects, created and deleted as often, conditions that keep the rules of
the API all the way, and no task left behind.
"""

from __future__ import annotations

import asyncio
import copy
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any, Final

from examples.memcached import monitor
from examples.memcached.component import memcached
from examples.memcached.definition import definition
from examples.memcached.model import Memcached
from examples.memcached.operator import memcached_operator
from ocf.cluster import (
    DEFAULT_LIST_OPTIONS,
    Cluster,
    InterceptingCluster,
    ListOptions,
    ObjectList,
    Request,
    WatchOptions,
)
from ocf.cluster.cache import CacheTiming
from ocf.component import Component
from ocf.embedded import EmbeddedCluster
from ocf.errors import ExpiredError, NotFoundError
from ocf.objects import Manifest, ObjectKey, copy_json
from ocf.runtime.operator import Manager, ManagerOptions, running
from ocf.runtime.workqueue import ExponentialBackoff
from ocf.testing import ConditionSeverity, LoopClock, fake_workload_controllers, lint_conditions, run_in_virtual_time
from ocf.testing import simulated_process as crashing
from ocf.testing.snapshots import differences, snapshot
from tests.examples.memcached.worlds import Env, admitted, embedded_kubelet
from tests.runtime.operator.conftest import Gateway

__all__ = [
    "CAP",
    "HPA",
    "KINDS",
    "MINUTE",
    "NAMESPACE",
    "OWNER",
    "SECOND",
    "Ended",
    "OperatorEnv",
    "Step",
    "backed_up",
    "now",
    "pace",
    "play",
]

HPA: Final = "HorizontalPodAutoscaler"
NAMESPACE: Final = "caches"
SECOND: Final = timedelta(seconds=1)
MINUTE: Final = 60.0
CAP: Final = 300.0
"""Seconds that a cache waits at most after a pass that failed."""
KINDS: Final = {
    "Deployment": "apps/v1",
    HPA: "autoscaling/v2",
    "Service": "v1",
    "PodDisruptionBudget": "policy/v1",
    "ServiceMonitor": "monitoring.coreos.com/v1",
    "NetworkPolicy": "networking.k8s.io/v1",
}
OWNER: Final = ("memcached.c5c3.io/v1alpha1", "Memcached")

_ROLLOUT: Final = 2.0
_DEFINITIONS: Final = (definition(), monitor.DEFINITION)

Step = Callable[["OperatorEnv"], Awaitable[object]]
"""An action of a user or another controller."""


class Way(Gateway):
    """The operator's way to the cluster.

    Attributes:
        sought: Kind and name of each object that was asked for by a list of nothing else.
    """

    def __init__(self, cluster: Cluster) -> None:
        super().__init__(cluster)
        self.sought: list[tuple[str, str]] = []

    async def list(self, api_version: str, kind: str, options: ListOptions = DEFAULT_LIST_OPTIONS) -> ObjectList:
        if options.field_selector:
            self.sought.append((kind, options.field_selector.removeprefix("metadata.name=")))
        return await super().list(api_version, kind, options)


class _Slow(InterceptingCluster):
    """The way of who brings pods up, which takes a while."""

    async def intercept(self, request: Request, send: Callable[[], Awaitable[Any]]) -> Any:
        if not request.verb.is_read:
            await asyncio.sleep(_ROLLOUT)
        return await send()


@dataclass(frozen=True, slots=True)
class Ended:
    """Where a run has ended.

    Args:
        state: Every object of a cache and the cache, masked.
        creates: How often the operator created each object.
        deletes: How often it deleted each.
        told: How often it posted each event.
    """

    state: Mapping[str, Manifest]
    creates: Mapping[str, int]
    deletes: Mapping[str, int]
    told: Mapping[str, int]

    def assert_as(self, undisturbed: Ended, *, generations: bool = True, told: bool = True) -> None:
        """Demand that it is where the undisturbed run ended.

        Args:
            undisturbed: That run.
            generations: Whether objects must have been changed as often, too; where several changes may become one, no.
            told: Whether events must be the same, too.
        """
        ours, theirs = ({**each.state} if generations else _ungenerated(each.state) for each in (self, undisturbed))
        different = differences(theirs, ours, before_name="undisturbed", after_name="disturbed")
        assert not different, different
        assert (self.creates, self.deletes) == (undisturbed.creates, undisturbed.deletes)
        if told:
            assert self.told == undisturbed.told


class OperatorEnv(Env):
    """A world in which the operator runs by itself.

    Args:
        collects: Whether there is a garbage collector, which looks at everything after each write.

    Attributes:
        server: The cluster itself.
        ledger: What the operator has done to it.
        gateway: The operator's way to it.
        passes: Over which cache each pass of the operator went, and when it began.
        wrong: What conditions were wrong, and which errors were not handled.
    """

    def __init__(self, *, collects: bool = True) -> None:
        self.time = LoopClock()
        self.server = EmbeddedCluster(namespaces=[NAMESPACE], now=self.time.now, collect=collects)
        super().__init__(self.server, NAMESPACE, embedded_kubelet)
        self.ledger = crashing.SimulatedCluster(self.server)
        self.gateway = Way(crashing.SimulatedProcess(self.ledger))
        self.definitions = _DEFINITIONS
        self.passes: list[tuple[str, float]] = []
        self.wrong: list[str] = []

    async def open(self) -> OperatorEnv:
        """Define the kinds that are not built in."""
        for one in self.definitions:
            await self.server.create(one, field_manager="user")
        return self

    @asynccontextmanager
    async def operating(
        self, through: Cluster | None = None, options: Mapping[str, Any] | None = None, **changed: Any
    ) -> AsyncIterator[Manager]:
        """Run the operator, and those who play beside it; leave no task behind.

        Args:
            through: Its way to the cluster; the gateway by default.
            options: Changes of how it is run.
            changed: Changes of the operator.
        """
        given = {"resync": None, "rate_limiter": self.delays(), "components": self._components, **changed}
        operator = replace(memcached_operator, **given)
        ways = through or self.gateway
        running_it = running(ways, operator, options=self.options(**(options or {})))
        async with self._tidy(), self.neighbours(), running_it as process:
            await asyncio.sleep(1)
            yield process

    def _components(self, cache: Memcached) -> Component:
        self.passes.append((cache.metadata.name, now()))
        return memcached(cache)

    @asynccontextmanager
    async def _tidy(self) -> AsyncIterator[None]:
        """Demand that no task is left behind, and that nothing goes wrong unheard."""
        before = asyncio.all_tasks()
        asyncio.get_running_loop().set_exception_handler(lambda _, seen: self.wrong.append(str(seen)))
        try:
            yield
        finally:
            left = {task.get_name() for task in asyncio.all_tasks() - before if not task.done()}
            assert not left, f"tasks that were left behind: {left}"
            assert not self.wrong, self.wrong

    def delays(self, **changed: Any) -> ExponentialBackoff:
        return ExponentialBackoff(**{"random": lambda: 0.5, **changed})

    def options(self, **changed: Any) -> ManagerOptions:
        given = {"listen": None, "clock": self.time, "random": lambda: 0.5, "cache_timing": pace()}
        return ManagerOptions(**{**given, **changed})

    @asynccontextmanager
    async def neighbours(self) -> AsyncIterator[None]:
        """Bring pods up after a while, and look at every version of the conditions."""
        looking = asyncio.create_task(self._lint())
        await asyncio.sleep(0)
        try:
            async with fake_workload_controllers(_Slow(self.server)):
                yield
        finally:
            looking.cancel()
            (end,) = await asyncio.gather(looking, return_exceptions=True)
            if isinstance(end, Exception):
                raise end

    async def _lint(self) -> None:
        """Demand of every version of every cache's conditions what holds for conditions."""
        while True:
            # There may be no such kind yet, and a compaction may end our own watch, too.
            with suppress(NotFoundError, ExpiredError):
                page = await self.server.list(*OWNER)
                before = {ObjectKey.of(cache): _conditions(cache) for cache in page.items}
                async for event in self.server.watch(*OWNER, WatchOptions(resource_version=page.resource_version)):
                    self._look(event.object, before)
            await asyncio.sleep(_ROLLOUT)

    def _look(self, cache: Manifest, before: dict[ObjectKey, list[Manifest]]) -> None:
        key, generation = ObjectKey.of(cache), cache["metadata"]["generation"]
        conditions = _conditions(cache)
        found = lint_conditions(conditions, generation=generation, previous=before.get(key, []))
        self.wrong += [f"{key}: {one}" for one in found if one.severity is ConditionSeverity.FAIL]
        before[key] = conditions

    # --- Actions of users and other controllers. ---

    async def certificates(self) -> None:
        """Make the Secrets of the sample with everything."""
        await self.secret("my-cache-sasl", **{"password-file": "user:password"})
        await self.secret("my-cache-tls", **{"tls.crt": "a", "tls.key": "b", "ca.crt": "c"})

    async def remove(self, kind: str) -> None:
        """Delete an object of the operator by hand."""
        await self.server.delete(self.own(kind))

    async def another(self, name: str, **spec: Any) -> None:
        """Create another cache, as the user and the webhook do."""
        metadata = {"name": name, "namespace": NAMESPACE}
        manifest = {"apiVersion": OWNER[0], "kind": OWNER[1], "metadata": metadata, "spec": spec}
        await self.server.create(admitted(manifest), field_manager="user")

    async def crowd(self, size: int, **spec: Any) -> None:
        """Create many caches, `cache-00000` and so on, which differ by name and uid only.

        The first one is created through the API, the others are stored as copies of it.
        """
        await self.another("cache-00000", **spec)
        registry, kind = self.server._registry, ObjectKey(*OWNER, "").group_kind
        first = registry.store.get(kind, (NAMESPACE, "cache-00000"))
        assert first is not None
        for number in range(1, size):
            name = f"cache-{number:05}"
            created = copy_json(first)
            created["metadata"] |= {"name": name, "uid": registry.new_uid()}
            registry.store.put(kind, (NAMESPACE, name), created)

    async def edit(self, name: str, **spec: Any) -> None:
        """Change fields of the spec of any cache."""
        live = await self.server.get(self.own("Memcached", name))
        await self.server.update(admitted({**live, "spec": {**live["spec"], **spec}}), field_manager="user")

    async def live(self, steps: Mapping[str, Step], pause: float) -> None:
        """Let everything happen, one after the other, with a pause after each."""
        for step in steps.values():
            await step(self)
            await asyncio.sleep(pause)

    # --- Where it ended. ---

    async def ended(self) -> Ended:
        """Return the final state."""
        state = await snapshot(self.server, [OWNER, *((KINDS[kind], kind) for kind in KINDS)])
        creates, deletes = (_caches_own(count) for count in (self.ledger.creates, self.ledger.deletes))
        return Ended(state, creates, deletes, await self._told())

    async def _told(self) -> Counter[str]:
        told: Counter[str] = Counter()
        for event in (await self.server.list("v1", "Event")).items:
            told[event["message"]] += event.get("series", {}).get("count", 1)
        return told

    def sent(self, kind: str = "", name: str = "") -> list[Request]:
        """Return the requests about objects; those about all objects of a kind, and about events, are left out."""
        return [
            one
            for one in self.gateway.requests
            if one.name and one.kind != "Event" and kind in ("", one.kind) and name in ("", one.name)
        ]

    async def mended(self, kind: str, path: str, wanted: object, *, within: float) -> float:
        """Wait until a field of an object's spec is as it should be; return how long that took."""
        begun = now()
        while now() - begun <= within:
            with suppress(NotFoundError):
                if (await self.server.get(self.own(kind)))["spec"].get(path) == wanted:
                    return now() - begun
            await asyncio.sleep(0.05)
        raise AssertionError(f"{path} of the {kind} is not {wanted} after {within} s")


def play(test: Callable[[OperatorEnv], Coroutine[Any, Any, None]]) -> None:
    """Play on a new stage, in virtual time."""

    async def on_stage() -> None:
        await test(await OperatorEnv().open())

    run_in_virtual_time(on_stage())


def backed_up(cluster: EmbeddedCluster) -> EmbeddedCluster:
    """Return a copy of a cluster, without its watches."""
    waiting = cluster._registry.store._waiting
    return copy.deepcopy(cluster, {id(waiting): set()})


def now() -> float:
    """Return how many seconds have passed."""
    return asyncio.get_running_loop().time()


def pace(**changed: Any) -> CacheTiming:
    """Return the timing of the cache: by the loop's clock, and without jitter."""
    return CacheTiming(**{"monotonic": now, "random": lambda: 0.0, **changed})


def _conditions(cache: Manifest) -> list[Manifest]:
    found: list[Manifest] = cache.get("status", {}).get("conditions", [])
    return found


def _caches_own(count: Mapping[str, int]) -> dict[str, int]:
    return {identity: times for identity, times in count.items() if "/Event/" not in identity}


def _ungenerated(state: Mapping[str, Manifest]) -> dict[str, Manifest]:
    return {name: _without(live) for name, live in state.items()}


def _without(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without(one) for key, one in value.items() if key not in ("generation", "observedGeneration")}
    return [_without(one) for one in value] if isinstance(value, list) else value
