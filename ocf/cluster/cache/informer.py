"""The task that keeps a store up to date: list, watch from there, and start over where that ends.

How a watch ends decides what follows. A clean end, or silence, is answered by watching on from the last version; 410
by a new list; any other error by waiting, longer each time. Before watching on, one object is listed to learn the
version of the cluster: if that has gone back, the cluster was restored, and everything is listed anew.

The task survives every error. One that nobody foresaw may have left the store half-done, so from then on until the
next list memory does not answer.
"""

import asyncio
import logging
from collections.abc import AsyncGenerator
from copy import copy
from dataclasses import dataclass
from typing import Final

from ocf.cluster.cache.keys import NamespacedName, WatchScope
from ocf.cluster.cache.resource_versions import is_older
from ocf.cluster.cache.serialization import CacheEntry
from ocf.cluster.cache.store import Store
from ocf.cluster.cache.subscriptions import Subscription
from ocf.cluster.cache.timing import CacheTiming
from ocf.cluster.cache.transform import Reduction
from ocf.cluster.protocol import Cluster, ListOptions, ObjectList, WatchOptions
from ocf.errors import ApiError, ConfigError, ExpiredError, NotFoundError, OcfError, ServerError
from ocf.objects import Manifest

__all__ = ["Informer", "InformerState"]

_log: Final = logging.getLogger(__name__)
_METHOD_NOT_ALLOWED: Final = 405
# A watch that failed so often without an event may never work; lists still tell what there is.
_LIST_FROM_FAILURES: Final = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class InformerState:
    """How one informer is doing.

    Args:
        api_version: Group and version.
        kind: Kind.
        namespace: Namespace; empty for all.
        synced: Whether memory answers.
        objects: How many objects are kept.
        resource_version: How far the watch has come; empty before the first list.
        failures: Attempts in a row that failed.
        problem: What is wrong; empty if nothing is.
        missing: Whether what is wrong is that the cluster does not know the kind; the informer goes on asking.
    """

    api_version: str
    kind: str
    namespace: str
    synced: bool
    objects: int
    resource_version: str
    failures: int
    problem: str
    missing: bool = False


class _TooManyError(ConfigError):
    """A kind has more objects than the cache may hold."""


class _FruitlessError(ServerError):
    """A watch ended cleanly, but so soon and without an event that going on at once may never end."""


class Informer:
    """Keeps the objects of one scope.

    Args:
        cluster: Where they live.
        scope: Which they are.
        pace: How often to ask.
        reduce: Leaves out of an object what is not kept; None keeps all of it.
        max_objects: How many may be kept; None for any number.
    """

    def __init__(
        self,
        cluster: Cluster,
        scope: WatchScope,
        pace: CacheTiming,
        *,
        reduce: Reduction | None,
        max_objects: int | None,
    ) -> None:
        self.scope = scope
        self.store = Store(reduce, self._announce)
        self.synced = False
        """Whether memory answers."""
        self._cluster = cluster
        self._pace = pace
        self._max_objects = max_objects
        self._task: asyncio.Task[None] | None = None
        self._reader: asyncio.Task[None] | None = None
        self._first_outcome = asyncio.Event()
        self._subscriptions: set[Subscription] = set()
        self._must_list = True
        self._listed_at = 0.0
        self._heard_at = 0.0
        self._failures = 0
        self._error: Exception | None = None
        self._problem = ""
        self._ended = False

    @property
    def state(self) -> InformerState:
        """How it is doing."""
        return InformerState(
            **self.scope._asdict(),
            synced=self.synced,
            objects=len(self.store),
            resource_version=self.store.version,
            failures=self._failures,
            problem=self._problem,
            missing=bool(self._problem) and isinstance(self._error, NotFoundError),
        )

    @property
    def ended(self) -> bool:
        """Whether memory will never answer: closed, not watchable, or too large."""
        return self._ended

    @property
    def error(self) -> Exception | None:
        """What the last attempt failed with; None if it did not."""
        return copy(self._error)

    def start(self) -> None:
        """Begin to work, unless that is under way; a task that somebody else has ended is replaced."""
        if not self._ended and (self._task is None or self._task.done()):
            self._task = asyncio.create_task(self._work(), name=f"cache of {self.scope}")
            self._task.add_done_callback(self._note_end)

    async def ready(self) -> bool:
        """Wait for the outcome of the first list, and tell whether memory answers.

        Raises:
            ConfigError: If there are more objects than may be kept.
        """
        self.start()
        if not self._ended:
            await self._first_outcome.wait()
        if isinstance(self._error, _TooManyError):
            raise copy(self._error)
        return self.synced

    def relist_if_due(self) -> None:
        """List anew if what was learned says that memory is wrong."""
        if self.store.contradiction and self._reader is not None:
            self._reader.cancel()

    async def read(self, place: NamespacedName) -> Manifest | None:
        """Read an object from the cluster, and note what was found.

        Args:
            place: Where it is.

        Returns:
            The object; None if it is not there.
        """
        ticket = self.store.begin(place)
        try:
            page = await self._list_page(field_selector=f"metadata.name={place[1]}", namespace=place[0])
            if page.items:
                self.store.found(ticket, page.items[0])
            else:
                self.store.missed(ticket, page.resource_version)
        finally:
            self.store.end(ticket)
        self.relist_if_due()
        return page.items[0] if page.items else None

    def subscribe(self, namespace: str) -> Subscription:
        """Add a listener; `unsubscribe` has to follow."""
        subscription = Subscription(self.store, namespace)
        self._subscriptions.add(subscription)
        return subscription

    def unsubscribe(self, subscription: Subscription) -> None:
        """Remove a listener."""
        self._subscriptions.discard(subscription)

    async def close(self) -> None:
        """Stop, and wait until that is done."""
        self._end()
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    def _announce(self, place: NamespacedName) -> None:
        for subscription in self._subscriptions:
            subscription.note(place)

    def _end(self) -> None:
        self._ended = True
        self.synced = False
        self.store.clear()
        self._first_outcome.set()
        for subscription in self._subscriptions:
            subscription.close()

    def _note_end(self, task: asyncio.Task[None]) -> None:
        """Tell that the task is over, if it should not be; the next reader starts another one."""
        if self._ended or task is not self._task:
            return
        self.synced = False
        self._must_list = True
        error = None if task.cancelled() else task.exception()
        why = f"ended by an unexpected {type(error).__name__}" if error else "cancelled"
        self._problem = f"{self.scope}: the task was {why}"
        self._first_outcome.set()
        _log.error("%s", self._problem, exc_info=error)

    async def _work(self) -> None:
        while not self._ended:
            try:
                await self._round()
            except Exception as error:  # noqa: BLE001 (nothing may end the task; what happened is told by `state`)
                self._fail(error)
            # The first time, a watch that expired or was ended is followed up at once.
            prompt = isinstance(self._error, ExpiredError | _FruitlessError)
            if self._failures > (1 if prompt else 0) and not self._ended:
                asked = self._error.retry_after if isinstance(self._error, ApiError) else None
                await self._pace.sleep(self._pace.delay(self._failures, asked))

    async def _round(self) -> None:
        """List if need be, and watch until that ends."""
        if self._must_list or self._is_due or self._failures >= _LIST_FROM_FAILURES:
            await self._list()
        else:
            await self._look()
        version, began = self.store.version, self._pace.monotonic()
        try:
            await self._follow()
        finally:
            if self.store.version != version or self._pace.monotonic() - began >= self._pace.longest_delay:
                self._failures = 0
                self._error = None
        if self.store.contradiction:
            raise ExpiredError(self.store.contradiction)
        if self.store.version == version and self._pace.monotonic() - began < self._pace.longest_delay:
            raise _FruitlessError("the watch ended soon and without an event")

    def _fail(self, error: Exception) -> None:
        self._failures += 1
        self._error = error
        expected = isinstance(error, ApiError | _TooManyError)
        if isinstance(error, ApiError) and error.code == _METHOD_NOT_ALLOWED:
            self._end()
            return
        if isinstance(error, ExpiredError) or not expected:
            self._must_list = True
        if not expected:
            self.synced = False
            _log.error("%s: not foreseen; reading directly until the next list", self.scope, exc_info=error)
        if not self.synced or self._failures > 1:
            # The text of what nobody foresaw may hold anything; it goes to the log alone.
            told = str(error) if isinstance(error, OcfError) else f"unexpected {type(error).__name__}"
            problem = f"{self.scope}: {told}"
            if expected and problem != self._problem:
                # A kind that the cluster does not know may be one that it can do without.
                _log.log(logging.INFO if isinstance(error, NotFoundError) else logging.WARNING, "%s", problem)
            self._problem = problem
        if isinstance(error, _TooManyError):
            self._end()
        self._first_outcome.set()

    async def _look(self) -> None:
        """Learn the version of the cluster, and list everything if it has gone back."""
        page = await self._list_page(limit=1)
        if is_older(page.resource_version, self.store.version):
            await self._list()

    async def _list(self) -> None:
        self._must_list = True
        self.store.begin_listing()
        listed: dict[NamespacedName, CacheEntry] = {}
        token = ""
        while True:
            page = await self._list_page(limit=self._pace.page_size, continue_token=token)
            listed.update(map(self.store.listed, page.items))
            self._demand_room(len(listed))
            token = page.continue_token
            if not token:
                break
        # Every page is of the version of the first.
        self.store.replace(listed, page.resource_version)
        self._must_list = False
        self._listed_at = self._pace.monotonic()
        if self._problem:
            _log.info("%s: read again", self.scope)
        self.synced, self._problem = True, ""
        self._first_outcome.set()

    async def _list_page(
        self, *, limit: int = 0, continue_token: str = "", field_selector: str = "", namespace: str = ""
    ) -> ObjectList:
        return await self._cluster.list(
            self.scope.api_version,
            self.scope.kind,
            ListOptions(
                namespace=namespace or self.scope.namespace,
                field_selector=field_selector,
                limit=limit,
                continue_token=continue_token,
            ),
        )

    def _demand_room(self, count: int) -> None:
        if self._max_objects is not None and count > self._max_objects:
            raise _TooManyError(
                f"{self.scope}: the cache may hold {self._max_objects} objects (max_objects), and there are more: "
                "raise it, cache single namespaces, or name the kind in `uncached`"
            )

    async def _follow(self) -> None:
        """Watch until the watch ends, falls silent, or a list is due."""
        self._reader = asyncio.create_task(self._read_events(), name=f"watch of {self.scope}")
        guard = asyncio.create_task(self._guard(), name=f"guard of {self.scope}")
        tasks = (self._reader, guard)
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()
            ends = await asyncio.gather(*tasks, return_exceptions=True)
            self._reader = None
        for end in ends:
            if isinstance(end, Exception):
                raise end

    async def _read_events(self) -> None:
        if self.store.contradiction:
            return
        api_version, kind, namespace = self.scope
        events = self._cluster.watch(
            api_version, kind, WatchOptions(namespace=namespace, resource_version=self.store.version)
        )
        try:
            async for event in events:
                self._heard_at = self._pace.monotonic()
                self.store.take(event)
                self._demand_room(len(self.store))
                if self.store.contradiction:
                    return
        finally:
            if isinstance(events, AsyncGenerator):
                await events.aclose()

    async def _guard(self) -> None:
        """Return when the watch has been silent for too long, or a list is due."""
        self._heard_at = self._pace.monotonic()
        while not self._is_due:
            left = self._heard_at + self._pace.idle_timeout - self._pace.monotonic()
            if left <= 0:
                return
            await self._pace.sleep(left)

    @property
    def _is_due(self) -> bool:
        """Whether everything is to be listed anew."""
        return bool(self.store.contradiction) or (self._pace.monotonic() - self._listed_at >= self._pace.relist_every)
