"""Environment of the operator under faults, in virtual time; all its requests go through a gateway.

The numbers of the rows are those of a table of faults that operators commonly fail at. Every run must end like an
undisturbed run: with the same objects, created and deleted as often, with conditions that were valid at any time, and
without remaining tasks.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import cache
from typing import Any, Final

from examples.memcached.component import memcached
from examples.memcached.model import Memcached
from examples.memcached.operator import memcached_operator
from ocf.cluster import Cluster, InterceptingCluster, ListOptions, ObjectList, Request, WatchOptions
from ocf.cluster.cache import CacheTiming
from ocf.cluster.protocol import DEFAULT_LIST_OPTIONS
from ocf.component import Component
from ocf.concepts.backoff import ExponentialBackoff
from ocf.errors import ExpiredError, NotFoundError
from ocf.objects import Manifest, ObjectKey, copy_json
from ocf.runtime.operator import ManagerOptions, running
from ocf.runtime.operator.manager import Manager
from ocf.testing import ConditionSeverity, LoopClock, fake_workload_controllers, lint_conditions, run_in_virtual_time
from ocf.testing import simulated_process as crashing
from ocf.testing.snapshots import differences, snapshot
from ocf_server import EmbeddedCluster
from tests import support
from tests.examples.memcached.env import DEFINITIONS, Env, admitted, embedded_kubelet
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
    "cache_timing",
    "new_cluster",
    "new_env",
    "now",
    "run_test",
]

HPA: Final = "HorizontalPodAutoscaler"
NAMESPACE: Final = "caches"
SECOND: Final = timedelta(seconds=1)
MINUTE: Final = 60.0
CAP: Final = 300.0
"""The maximum delay in seconds after a failed reconcile."""
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

Step = Callable[["OperatorEnv"], Awaitable[object]]
"""An action of a user or another controller."""


class OperatorGateway(Gateway):
    """The gateway between the operator and the cluster.

    Attributes:
        looked_up: Kind and name of each object that was read by a list with a field selector.
        looked_up_at: When each of them was read.
    """

    def __init__(self, cluster: Cluster) -> None:
        super().__init__(cluster)
        self.looked_up: list[tuple[str, str]] = []
        self.looked_up_at: list[float] = []

    async def list(self, api_version: str, kind: str, options: ListOptions = DEFAULT_LIST_OPTIONS) -> ObjectList:
        if options.field_selector:
            self.looked_up.append((kind, options.field_selector.removeprefix("metadata.name=")))
            self.looked_up_at.append(now())
        return await super().list(api_version, kind, options)


class _Slow(InterceptingCluster):
    """The connection of the workload controllers, whose writes take a while."""

    async def intercept(self, request: Request, send: Callable[[], Awaitable[Any]]) -> Any:
        if not request.verb.is_read:
            await asyncio.sleep(_ROLLOUT)
        return await send()


@dataclass(frozen=True, slots=True)
class Ended:
    """Result of a run.

    Args:
        state: The caches and all their objects, masked.
        creates: How often the operator created each object.
        deletes: How often it deleted each.
        events: How often it posted each event.
    """

    state: Mapping[str, Manifest]
    creates: Mapping[str, int]
    deletes: Mapping[str, int]
    events: Mapping[str, int]

    def assert_as(self, undisturbed: Ended, *, generations: bool = True, events: bool = True) -> None:
        """Assert that the result equals that of the undisturbed run.

        Args:
            undisturbed: That run.
            generations: Whether the number of changes must be equal, too; not if several changes may become one.
            events: Whether events must be equal, too.
        """
        ours, theirs = ({**each.state} if generations else _ungenerated(each.state) for each in (self, undisturbed))
        different = differences(theirs, ours, before_name="undisturbed", after_name="disturbed")
        assert not different, different
        assert (self.creates, self.deletes) == (undisturbed.creates, undisturbed.deletes)
        if events:
            assert self.events == undisturbed.events


class OperatorEnv(Env):
    """A cluster in which the operator runs as its own process.

    Args:
        server: The cluster.

    Attributes:
        server: The cluster itself.
        ledger: The writes of the operator.
        gateway: The gateway between the operator and the cluster.
        passes: Name of the cache and start time of each reconcile.
        wrong: Invalid conditions and unhandled errors.
    """

    def __init__(self, server: EmbeddedCluster) -> None:
        self.time = LoopClock()
        self.server = server
        super().__init__(self.server, NAMESPACE, embedded_kubelet)
        self.ledger = crashing.SimulatedCluster(self.server)
        self.gateway = OperatorGateway(crashing.SimulatedProcess(self.ledger))
        self.passes: list[tuple[str, float]] = []
        self.wrong: list[str] = []

    @asynccontextmanager
    async def operating(
        self, through: Cluster | None = None, options: Mapping[str, Any] | None = None, **changed: Any
    ) -> AsyncIterator[Manager]:
        """Run the operator and the other controllers; assert that no task remains.

        Args:
            through: The cluster of the operator; the gateway by default.
            options: Changed options of the manager.
            changed: Changes of the operator.
        """
        # Which events become one depends on which reconcile made what, and that on the fault.
        given = {"resync": None, "rate_limiter": self.delays(), "components": self._components, "fold_events": False}
        operator = replace(memcached_operator, **(given | changed))
        gateway = through or self.gateway
        running_it = running(gateway, operator, options=self.options(**(options or {})))
        async with self._tidy(), self.neighbours(), running_it as process:
            await asyncio.sleep(1)
            yield process

    def _components(self, cache: Memcached) -> Component:
        self.passes.append((cache.metadata.name, now()))
        return memcached(cache)

    @asynccontextmanager
    async def _tidy(self) -> AsyncIterator[None]:
        """Assert that no task remains, and that no error was unhandled."""
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
        given = {"listen": None, "clock": self.time, "random": lambda: 0.5, "cache_timing": cache_timing()}
        return ManagerOptions(**{**given, **changed})

    @asynccontextmanager
    async def neighbours(self) -> AsyncIterator[None]:
        """Run the workload controllers, and lint every version of the conditions."""
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
        """Lint every version of the conditions of every cache."""
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
        """Create the Secrets that the sample `EVERYTHING` uses."""
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
        """Take the steps in order, with a pause after each."""
        for step in steps.values():
            await step(self)
            await asyncio.sleep(pause)

    # --- The result. ---

    async def ended(self) -> Ended:
        """Return the final state."""
        state = await snapshot(self.server, [OWNER, *((KINDS[kind], kind) for kind in KINDS)])
        creates, deletes = (_caches_own(count) for count in (self.ledger.creates, self.ledger.deletes))
        return Ended(state, creates, deletes, await self._count_events())

    async def _count_events(self) -> Counter[str]:
        events: Counter[str] = Counter()
        for event in (await self.server.list("v1", "Event")).items:
            events[event["message"]] += event.get("series", {}).get("count", 1)
        return events

    def sent(self, kind: str = "", name: str = "") -> list[Request]:
        """Return the requests about objects; those about all objects of a kind, and about events, are left out."""
        return [
            one
            for one in self.gateway.requests
            if one.name and one.kind != "Event" and kind in ("", one.kind) and name in ("", one.name)
        ]

    async def wait_for_field(self, kind: str, path: str, wanted: object, *, within: float) -> float:
        """Wait until a field of an object's spec has a value; return the seconds that took."""
        begun = now()
        while now() - begun <= within:
            with suppress(NotFoundError):
                if (await self.server.get(self.own(kind)))["spec"].get(path) == wanted:
                    return now() - begun
            await asyncio.sleep(0.05)
        raise AssertionError(f"{path} of the {kind} is not {wanted} after {within} s")


def new_cluster(*, collects: bool = True) -> EmbeddedCluster:
    """Return a cluster in which the kinds that are not built in are not defined.

    Args:
        collects: Whether its garbage collector runs.
    """
    return EmbeddedCluster(namespaces=[NAMESPACE], now=LoopClock().now, collect=collects)


_first_cluster: Final = cache(new_cluster)


async def new_env(*, collects: bool = True) -> OperatorEnv:
    """Return an environment with a new cluster in which all kinds are defined.

    Args:
        collects: Whether the garbage collector of the cluster runs.
    """
    return OperatorEnv(await support.defined(_first_cluster(collects=collects), *DEFINITIONS))


def run_test(test: Callable[[OperatorEnv], Coroutine[Any, Any, None]]) -> None:
    """Run a test with a new environment, in virtual time."""

    async def run() -> None:
        await test(await new_env())

    run_in_virtual_time(run())


def now() -> float:
    """Return the time of the event loop in seconds."""
    return asyncio.get_running_loop().time()


def cache_timing(**changed: Any) -> CacheTiming:
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
