"""Fixtures of the cache tests: a cluster behind an unreliable connection, a virtual clock, and a cache."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

import pytest

from ocf.cluster import (
    ApplyCache,
    Cluster,
    DeleteOptions,
    ListOptions,
    ObjectList,
    PatchOptions,
    ServiceAccount,
    Subresource,
    WatchEvent,
    WatchOptions,
)
from ocf.cluster.cache import CachedCluster, CacheTiming
from ocf.cluster.impersonation import NO_EXTRA
from ocf.cluster.protocol import DEFAULT_DELETE_OPTIONS, DEFAULT_LIST_OPTIONS
from ocf.objects import Manifest, ObjectKey, copy_json
from ocf.testing.virtual_time import VirtualLoop
from ocf_server import CustomKind, EmbeddedCluster


async def settle() -> None:
    """Let all tasks run until they wait for an action of the test."""
    if isinstance(asyncio.get_running_loop(), VirtualLoop):
        # The time of this loop stands still while any task can run.
        await asyncio.sleep(0.001)
        return
    for _ in range(60):
        await asyncio.sleep(0)


class VirtualTime:
    """A clock that advances only on request."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.slept: list[float] = []
        self._sleepers: list[tuple[float, asyncio.Future[None]]] = []

    def monotonic(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        sleeper = (self.now + seconds, future)
        self._sleepers.append(sleeper)
        try:
            await future
        finally:
            self._sleepers.remove(sleeper)

    async def advance(self, seconds: float) -> None:
        """Advance the clock, and wake each sleeping task at its time."""
        end = self.now + seconds
        await settle()
        while due := [sleeper for sleeper in self._sleepers if sleeper[0] <= end]:
            self.now, future = min(due, key=lambda sleeper: sleeper[0])
            if not future.done():
                future.set_result(None)
            await settle()
        self.now = end


class UnreliableCluster:
    """A cluster behind an unreliable connection.

    Attributes:
        inner: The cluster.
        held: Whether events wait for `deliver`.
        drop: The number of next events that are lost.
        repeat: The number of next events that are delivered twice.
        list_errors: The errors of the next lists.
        watch_errors: The errors of the next watches.
        reply_lost: The error of writes that are applied but whose answer is lost.
        hold_answers: Whether answers to writes wait for `release_answers`.
        hold_lists: Whether the pages of lists wait for `release_lists`.
        watched_from: The resource version of each watch.
        sent: The manifests of updates.
        looks: The kinds of which it was asked whether they are namespaced.
    """

    def __init__(self, inner: EmbeddedCluster) -> None:
        self.inner = inner
        self.held = False
        self.drop = 0
        self.repeat = 0
        self.list_errors: list[Exception] = []
        self.watch_errors: list[Exception] = []
        self.reply_lost: Exception | None = None
        self.hold_answers = False
        self.hold_lists = False
        self.watched_from: list[str] = []
        self.sent: list[Manifest] = []
        self.looks: list[tuple[str, str]] = []
        self._permits = 0
        self._changed = asyncio.Event()
        self._cuts: list[asyncio.Future[Exception | None]] = []
        self._answers: list[asyncio.Future[None]] = []
        self._lists: list[asyncio.Future[None]] = []

    @property
    def apply_cache(self) -> ApplyCache:
        return self.inner.apply_cache

    def acting_as(
        self,
        user: str | ServiceAccount,
        *,
        groups: Sequence[str] = (),
        uid: str = "",
        extra: Mapping[str, Sequence[str]] = NO_EXTRA,
    ) -> Cluster:
        return self.inner.acting_as(user, groups=groups, uid=uid, extra=extra)

    @property
    def watches(self) -> int:
        """The number of open watches."""
        return len(self._cuts)

    def deliver(self, events: int = 1) -> None:
        """Deliver the next events."""
        self._permits += events
        self._changed.set()

    def deliver_all(self) -> None:
        """Deliver all events from now on."""
        self.held = False
        self._changed.set()

    def disconnect(self, error: Exception | None = None) -> None:
        """End all watches, normally or with an error."""
        for cut in self._cuts:
            if not cut.done():
                cut.set_result(error)

    def release_answers(self) -> None:
        """Deliver the held answers to writes."""
        self.hold_answers = False
        self._release(self._answers)

    def release_lists(self) -> None:
        """Deliver the held pages of lists."""
        self.hold_lists = False
        self._release(self._lists)

    def _release(self, held: list[asyncio.Future[None]]) -> None:
        for future in held:
            if not future.done():
                future.set_result(None)
        held.clear()

    async def _hold(self, held: list[asyncio.Future[None]]) -> None:
        held.append(asyncio.get_running_loop().create_future())
        await held[-1]

    async def is_namespaced(self, api_version: str, kind: str) -> bool:
        self.looks.append((api_version, kind))
        return await self.inner.is_namespaced(api_version, kind)

    async def get(self, key: ObjectKey, *, subresource: Subresource | None = None) -> Manifest:
        return await self.inner.get(key, subresource=subresource)

    async def list(self, api_version: str, kind: str, options: ListOptions = DEFAULT_LIST_OPTIONS) -> ObjectList:
        if self.list_errors:
            raise self.list_errors.pop(0)
        page = await self.inner.list(api_version, kind, options)
        if self.hold_lists and options.limit:
            await self._hold(self._lists)
        return page

    async def watch(self, api_version: str, kind: str, options: WatchOptions) -> AsyncGenerator[WatchEvent, None]:
        self.watched_from.append(options.resource_version)
        if self.watch_errors:
            raise self.watch_errors.pop(0)
        cut: asyncio.Future[Exception | None] = asyncio.get_running_loop().create_future()
        self._cuts.append(cut)
        events = self.inner.watch(api_version, kind, options)
        try:
            while await self._until(cut, self._permit()) and await self._until(cut, (step := _Step(events)).run()):
                if self.drop:
                    self.drop -= 1
                    continue
                yield step.event
                if self.repeat:
                    self.repeat -= 1
                    yield WatchEvent(step.event.type, copy_json(step.event.object))
            error = cut.result()
            if error is not None:
                raise error
        finally:
            self._cuts.remove(cut)
            await events.aclose()

    async def _permit(self) -> None:
        while self.held and not self._permits:
            self._changed.clear()
            await self._changed.wait()
        self._permits = max(0, self._permits - 1) if self.held else 0

    async def _until(self, cut: asyncio.Future[Exception | None], work: Any) -> bool:
        """Await something, unless the watch is disconnected first."""
        task = asyncio.ensure_future(work)
        try:
            await asyncio.wait({task, cut}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            if not task.done():
                task.cancel()
                with suppress(asyncio.CancelledError):
                    await task
        if cut.done():
            with suppress(asyncio.CancelledError):
                task.exception()
            return False
        task.result()
        return True

    async def apply(self, manifest: Manifest, **options: Any) -> Manifest:
        return await self._answered(await self.inner.apply(manifest, **options))

    async def create(self, manifest: Manifest, **options: Any) -> Manifest:
        return await self._answered(await self.inner.create(manifest, **options))

    async def update(self, manifest: Manifest, **options: Any) -> Manifest:
        self.sent.append(manifest)
        return await self._answered(await self.inner.update(manifest, **options))

    async def patch(self, key: ObjectKey, patch: Any, options: PatchOptions) -> Manifest:
        return await self._answered(await self.inner.patch(key, patch, options))

    async def delete(self, key: ObjectKey, options: DeleteOptions = DEFAULT_DELETE_OPTIONS) -> None:
        await self.inner.delete(key, options)
        await self._answered({})

    async def _answered(self, answer: Manifest) -> Manifest:
        if self.hold_answers:
            await self._hold(self._answers)
        if self.reply_lost is not None:
            raise self.reply_lost
        return answer


class _Step:
    """The next event of a watch."""

    def __init__(self, events: AsyncGenerator[WatchEvent, None]) -> None:
        self._events = events
        self.event: WatchEvent

    async def run(self) -> None:
        self.event = await anext(self._events)


class Env:
    """A cache of an unreliable cluster, and the Deployments of most tests."""

    api_version, kind = "apps/v1", "Deployment"

    def __init__(self, **options: Any) -> None:
        self.time = VirtualTime()
        self.server = EmbeddedCluster(
            namespaces=("shop", "other"),
            kinds=[CustomKind("example.com", "v1", "Widget")],
            now=lambda: datetime(2026, 1, 1, tzinfo=UTC),
            bookmark_every=1,
        )
        self.connection = UnreliableCluster(self.server)
        self.timing = CacheTiming(sleep=self.time.sleep, monotonic=self.time.monotonic, random=lambda: 0.0)
        self.cached = CachedCluster(self.connection, **{"timing": self.timing, **options})

    def key(self, name: str = "web", namespace: str = "shop") -> ObjectKey:
        return ObjectKey(self.api_version, self.kind, name, namespace)

    def web(self, name: str = "web", namespace: str = "shop", *, note: str = "", **labels: str) -> Manifest:
        """A Deployment; `note` is a value that can change."""
        return {
            "apiVersion": self.api_version,
            "kind": self.kind,
            "metadata": {"name": name, "namespace": namespace, "labels": labels, "annotations": {"note": note}},
            "spec": {
                "selector": {"matchLabels": {"app": name}},
                "template": {
                    "metadata": {"labels": {"app": name}},
                    "spec": {"containers": [{"name": "web", "image": "web:1"}]},
                },
            },
        }

    async def sync(self) -> None:
        """Start the informer, and clear the request log."""
        await self.cached.cache(self.api_version, self.kind)
        await settle()
        self.server.requests.clear()

    async def theirs(self, name: str = "web", note: str = "theirs", **labels: str) -> Manifest:
        """Write as another client."""
        stored = await self.server.apply(self.web(name, note=note, **labels), field_manager="them", force=True)
        await settle()
        return stored

    async def ours(self, name: str = "web", note: str = "ours", **labels: str) -> Manifest:
        """Write through the cache."""
        return await self.cached.apply(self.web(name, note=note, **labels), field_manager="us", force=True)

    async def note(self, name: str = "web") -> str:
        """The note of an object in the cache."""
        found: str = (await self.cached.get(self.key(name)))["metadata"]["annotations"]["note"]
        return found

    async def names(self, **options: Any) -> list[str]:
        page = await self.cached.list(self.api_version, self.kind, ListOptions(**options))
        return [item["metadata"]["name"] for item in page.items]

    async def settle(self) -> None:
        await settle()


@pytest.fixture
async def new_env() -> AsyncIterator[Callable[..., Env]]:
    """Create environments; their caches are closed at the end and must leave no task."""
    made: list[Env] = []

    def make(**options: Any) -> Env:
        made.append(Env(**options))
        return made[-1]

    yield make
    for env in made:
        env.connection.release_answers()
        await env.cached.close()
    others = asyncio.all_tasks() - {asyncio.current_task()}
    assert not [task for task in others if "cache of" in task.get_name() or "watch of" in task.get_name()]


@pytest.fixture
def env(new_env: Callable[..., Env]) -> Env:
    return new_env()


@pytest.fixture
def env_type() -> type[Env]:
    """For property tests, which create one for each example."""
    return Env
