"""The informer: a task that keeps a store up to date by listing and watching.

The next step depends on how a watch ends. After a clean end, or after the idle timeout, the informer watches again from
the last version; after 410 (Expired) it lists again; after any other error it waits, longer each time. Before it
watches again, it lists one object to read the version of the cluster: if that version is older than the last one, the
cluster was restored from a backup, and the informer lists all objects again. While the API server does not serve the
kind, the informer sends nothing: `MissingKinds` looks for all such kinds.

The task survives every error. An unexpected one may have left the store incomplete, so reads go to the cluster until
the next list.
"""

import asyncio
import logging
from collections.abc import AsyncGenerator
from copy import copy
from typing import Final

from ocf.cluster.cache.informer_state import InformerState
from ocf.cluster.cache.keys import NamespacedName, WatchScope
from ocf.cluster.cache.list_filter import ListFilter
from ocf.cluster.cache.missing_kinds import MissingKinds
from ocf.cluster.cache.selection import Selection, named
from ocf.cluster.cache.serialization import CacheEntry, unpack
from ocf.cluster.cache.store import Store
from ocf.cluster.cache.subscriptions import OnServed, Subscription
from ocf.cluster.cache.timing import CacheTiming
from ocf.cluster.cache.transform import NeedsContent, Reduction
from ocf.cluster.protocol import Cluster, ListOptions, ObjectList, SelectionChangedError, WatchOptions
from ocf.cluster.request_purpose import Purpose, requests_for
from ocf.concepts.tracing import background_context
from ocf.errors import ApiError, ConfigError, ExpiredError, ForbiddenError, NotFoundError, OcfError, ServerError
from ocf.objects import Manifest
from ocf.objects.resource_versions import is_older

__all__ = ["Informer"]

_log: Final = logging.getLogger(__name__)
_METHOD_NOT_ALLOWED: Final = 405
# A long list lets other tasks run in between.
_YIELD_EVERY: Final = 500
# A watch that failed this often without an event may never work; a list still returns the present objects.
_LIST_AFTER_FAILURES: Final = 2
_ALL: Final = Selection()


class _TooManyObjectsError(ConfigError):
    """The scope has more objects than the cache may hold."""


class _VeryShortWatchError(ServerError):
    """A watch ended cleanly, but so soon and without an event that restarting it at once could loop forever."""


class Informer:
    """Keeps the objects of one scope in a store.

    Args:
        missing_kinds: Waits for the kind while the API server does not serve it.
        reduce: Removes from an object what is not cached; None caches the whole object.
        max_objects: The maximum number of cached objects; None for no limit.
        needs_content: Which objects are cached with more than their metadata before they were read; None for all.
        selection: Which objects are listed and watched; None for all.
    """

    reads_single: Final = False
    """Whether reads by name are answered although all objects may not be listed."""

    def __init__(  # noqa: PLR0913 (independent settings, by keyword)
        self,
        cluster: Cluster,
        scope: WatchScope,
        timing: CacheTiming,
        *,
        missing_kinds: MissingKinds,
        reduce: Reduction | None,
        max_objects: int | None,
        needs_content: NeedsContent | None = None,
        selection: Selection | None = None,
    ) -> None:
        self.scope = scope
        self.selection = selection
        self.store = Store(reduce, self._notify, needs_content)
        self.synced = False
        """Whether reads are answered from the cache."""
        self.cluster = cluster
        self._timing = timing
        self._missing_kinds = missing_kinds
        self._max_objects = max_objects
        self._task: asyncio.Task[None] | None = None
        self._reader: asyncio.Task[None] | None = None
        self._first_outcome = asyncio.Event()
        self._known = asyncio.Event()
        """Set once the objects have been listed, or the kind turned out not to be watchable."""
        # In order of arrival, so that runs in virtual time are the same each time.
        self._subscriptions: dict[Subscription, None] = {}
        self._must_list = True
        self._listed_at = 0.0
        self._last_event_at = 0.0
        self._failures = 0
        self._error: Exception | None = None
        self._unlisted = False
        """Whether the last list failed; where only the watch does, lists show the changes."""
        self._may_be_new = False
        """Whether the kind may be served anew since the last list that succeeded.

        The API server did not serve it or let it be listed, or has lost the version that the watch had reached:
        that of a definition that was deleted and created again in between, or changed.
        """
        self.problem = ""
        """A message about the present error; empty if there is no error."""
        self._ended = False

    @property
    def state(self) -> InformerState:
        """A snapshot of the state."""
        api_version, kind, namespace = self.scope
        return InformerState(
            api_version=api_version,
            kind=kind,
            namespace=namespace,
            synced=self.synced,
            objects=len(self.store),
            resource_version=self.store.version,
            failures=self._failures,
            problem=self.problem,
            missing=self.missing,
            unwatched=self._unwatched,
        )

    @property
    def _unwatched(self) -> str:
        """Why changes are not noticed; see `InformerState`.

        Once the objects were listed, an outage ends by itself, and misses nothing; a right that was taken does not.
        """
        error = self._error
        failing = self.problem and (not self.synced or (self._unlisted and isinstance(error, ForbiddenError)))
        if error is None or self.missing or not (failing or self._ended):
            return ""
        # Texts of the API server may differ each time, and those of other errors contain anything.
        code = f"HTTP {error.code}" if isinstance(error, ApiError) and error.code else type(error).__name__
        return f"{code} {error.reason}" if isinstance(error, ApiError) and error.reason else code

    @property
    def missing(self) -> bool:
        """Whether the API server does not serve the kind, as of the last look."""
        return bool(self.problem) and isinstance(self._error, NotFoundError)

    def covers(self, name: NamespacedName) -> bool:
        """Return whether an object of a name may be one of those that are listed and watched."""
        return self.scope.covers(name[0]) and (self.selection is None or self.selection.may_select(name))

    @property
    def was_listed(self) -> bool:
        """Whether the objects have been listed, or the kind turned out not to be watchable."""
        return self._known.is_set()

    @property
    def ended(self) -> bool:
        """Whether the cache will never answer: the informer is closed, or the kind is not watchable or too large."""
        return self._ended

    @property
    def error(self) -> Exception | None:
        """The error of the last attempt, as a copy; None if it succeeded."""
        return copy(self._error)

    def start(self) -> None:
        """Start the task unless it is running; a task that was ended from outside is replaced."""
        if not self._ended and (self._task is None or self._task.done()):
            name = f"cache of {self.scope}"
            # It outlives the reconcile that reads the kind first.
            self._task = asyncio.create_task(self._run(), name=name, context=background_context())
            self._task.add_done_callback(self._on_task_done)

    async def ready(self) -> bool:
        """Wait for the outcome of the first list, and return whether reads are answered from the cache."""
        self.start()
        if not self._ended:
            await self._first_outcome.wait()
        if isinstance(self._error, _TooManyObjectsError):
            raise copy(self._error)
        return self.synced

    async def listed(self) -> None:
        """Wait until all objects have been listed once, however often that fails before.

        Reads of a kind that cannot be watched go to the cluster, so there is nothing to wait for.
        """
        self.start()
        await self._known.wait()

    def relist_if_due(self) -> None:
        """Stop the watch, so that the informer lists again, if an answer showed that the store is wrong."""
        if self.store.relist_reason and self._reader is not None:
            self._reader.cancel()

    async def read(self, name: NamespacedName) -> Manifest | None:
        """Read an object from the cluster, and record the answer in the store.

        Returns:
            The object; None if it does not exist.
        """
        self.store.ask_for(name)
        snapshot = self.store.begin(name)
        try:
            page = await self._list_page(field_selector=named(name[1]), namespace=name[0])
            if page.items:
                self.store.found(snapshot, page.items[0])
            else:
                self.store.missed(snapshot, page.resource_version)
        finally:
            self.store.end(snapshot)
        self.relist_if_due()
        return page.items[0] if page.items else None

    async def select(self, selection: ListFilter, options: ListOptions, _: Cluster | None = None) -> ObjectList | None:
        """Return the objects of a namespace (empty for all) that a filter selects; stale ones are read first.

        Args:
            options: The namespace, the owners, a key of an index, and whether metadata suffices.

        Returns:
            The objects; None if the content of one is not held, which it is from the next list on.
        """
        namespace = options.namespace
        if options.index is not None and not self.store.holds_all_content():
            self.store.ask_for_all()
            self.relist_if_due()
            return None
        read = {name: await self.read(name) for name in self.store.stale(namespace)}
        # A stale one is not in the indexes as it was read.
        living = ObjectList(tuple(manifest for manifest in read.values() if manifest is not None), "")
        found = selection.selected(living.selected_by(options).items)
        version, part = self.store.version, selection.common_text.encode()
        # Operators list the children of each of thousands of owners, so what is not selected must cost next to nothing:
        # a label that is selected has its text somewhere in the packed labels. Measured with 2000 objects: 3.0 ms a
        # list with sorting and unpacking all labels, 0.35 ms now.
        candidates = [
            (name, entry)
            for name, entry in self.store.narrowed(options)
            if part in entry.packed_labels and namespace in ("", name[0])
        ]
        for number, (name, entry) in enumerate(candidates, start=1):
            if name not in read and selection.matches(name, entry.labels if selection.needs_labels else {}):
                if entry.metadata_only and not options.metadata_only:
                    self.store.ask_for_all()
                    self.relist_if_due()
                    return None
                found[name] = unpack(entry)
            if number % _YIELD_EVERY == 0:
                await asyncio.sleep(0)
        # One that has ended meanwhile has forgotten the objects.
        return None if self._ended else ObjectList(tuple(found[name] for name in sorted(found)), version)

    def subscribe(self, namespace: str, on_served: OnServed | None = None) -> Subscription:
        """Add a subscription; the caller removes it with `unsubscribe`.

        Args:
            namespace: Only changes in this namespace; empty for all namespaces.
            on_served: See `Subscription`.
        """
        return self.attach(Subscription(self.store, namespace, on_served))

    def attach(self, subscription: Subscription) -> Subscription:
        """Add a subscription to this store."""
        self._subscriptions[subscription] = None
        return subscription

    def unsubscribe(self, subscription: Subscription) -> None:
        """Remove a subscription."""
        self._subscriptions.pop(subscription, None)

    async def close(self) -> None:
        """Stop the task, and wait until it has ended."""
        self._end()
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    def _notify(self, name: NamespacedName) -> None:
        for subscription in self._subscriptions:
            subscription.mark_changed(name)

    def _end(self) -> None:
        self._ended = True
        self.synced = False
        self.store.clear()
        self._first_outcome.set()
        for subscription in self._subscriptions:
            subscription.close()

    def _on_task_done(self, task: asyncio.Task[None]) -> None:
        """Record that the task ended unexpectedly; the next read starts a new one."""
        if self._ended or task is not self._task:
            return
        self.synced = False
        self._must_list = True
        error = None if task.cancelled() else task.exception()
        why = f"ended by an unexpected {type(error).__name__}" if error else "cancelled"
        self.problem = f"{self.scope}: the task was {why}"
        self._first_outcome.set()
        _log.error("%s", self.problem, exc_info=error)

    async def _run(self) -> None:
        while not self._ended:
            try:
                await self._list_and_watch()
            except SelectionChangedError:
                self._must_list, self._failures, self._error = True, 0, None
            except Exception as error:  # noqa: BLE001 (nothing may end the task; `state` reports the error)
                self._fail(error)
            # The first time, a watch that expired or ended early is restarted at once.
            retry_at_once = isinstance(self._error, ExpiredError | _VeryShortWatchError)
            if self._failures > (1 if retry_at_once else 0) and not self._ended:
                if self.missing:
                    await self._missing_kinds.served(self.scope[:2], self._failures)
                    continue
                retry_after = self._error.retry_after if isinstance(self._error, ApiError) else None
                await self._timing.sleep(self._timing.delay(self._failures, retry_after))

    async def _list_and_watch(self) -> None:
        """List if necessary, and watch until the watch ends."""
        try:
            with requests_for(Purpose.CACHE):
                if self._must_list or self._is_due or self._failures >= _LIST_AFTER_FAILURES:
                    await self._list()
                else:
                    await self._check_version()
        except Exception:
            self._unlisted = True
            raise
        if self._may_be_new or self._unlisted:
            # The list after an outage shows no more than the present objects.
            failed, self._may_be_new, self._unlisted = not self._may_be_new, False, False
            self._report_served(failed=failed)
        version, began = self.store.version, self._timing.monotonic()
        try:
            await self._watch()
        finally:
            if self.store.version != version or self._timing.monotonic() - began >= self._timing.longest_delay:
                self._failures = 0
                self._error = None
        if self.store.relist_reason:
            raise ExpiredError(self.store.relist_reason)
        if self.store.version == version and self._timing.monotonic() - began < self._timing.longest_delay:
            raise _VeryShortWatchError("the watch ended early and without an event")

    def _report_served(self, *, failed: bool = False) -> None:
        for on_served in [each.on_served for each in self._subscriptions if each.on_served is not None]:
            on_served(failed=failed)

    def _fail(self, error: Exception) -> None:
        watched = not self._unwatched
        self._failures += 1
        self._error = error
        # What the informer itself calls expired has no code.
        lost = isinstance(error, ExpiredError) and error.code != 0
        self._may_be_new = self._may_be_new or lost or isinstance(error, NotFoundError)
        expected = isinstance(error, ApiError | _TooManyObjectsError)
        if isinstance(error, ApiError) and error.code == _METHOD_NOT_ALLOWED:
            self._known.set()
            self._end()
            return
        if isinstance(error, ExpiredError) or not expected:
            self._must_list = True
        if not expected:
            self.synced = False
            _log.error("%s: unexpected error; reading from the cluster until the next list", self.scope, exc_info=error)
        if not self.synced or self._failures > 1:
            # The text of an unexpected error may contain anything, secrets included; only the log contains it.
            text = str(error) if isinstance(error, OcfError) else f"unexpected {type(error).__name__}"
            problem = f"{self.scope}: {text}"
            if expected and problem != self.problem:
                # A kind that the cluster does not serve may be an optional one.
                _log.log(logging.INFO if isinstance(error, NotFoundError) else logging.WARNING, "%s", problem)
            self.problem = problem
        self._may_be_new = self._may_be_new or bool(self._unwatched)
        if watched and self._unwatched:
            self._report_served()
        if isinstance(error, _TooManyObjectsError):
            self._end()
        self._first_outcome.set()

    async def _check_version(self) -> None:
        """Read the version of the cluster, and list all objects again if it is older than the last one."""
        page = await self._list_page(limit=1)
        if is_older(page.resource_version, self.store.version):
            await self._list()

    async def _list(self) -> None:
        self._must_list = True
        self.store.begin_listing()
        listed: dict[NamespacedName, CacheEntry] = {}
        token = ""
        while True:
            page = await self._list_page(limit=self._timing.page_size, continue_token=token)
            listed.update(map(self.store.listed, page.items))
            self._check_limit(len(listed))
            token = page.continue_token
            if not token:
                break
        # Every page is of the version of the first.
        self.store.replace(listed, page.resource_version)
        self._must_list = False
        self._listed_at = self._timing.monotonic()
        if self.problem:
            _log.info("%s: recovered", self.scope)
        self.synced, self.problem = True, ""
        self._first_outcome.set()
        self._known.set()

    async def _list_page(
        self, *, limit: int = 0, continue_token: str = "", field_selector: str = "", namespace: str = ""
    ) -> ObjectList:
        options = ListOptions(
            namespace=namespace or self.scope.namespace,
            field_selector=field_selector,
            limit=limit,
            continue_token=continue_token,
        )
        narrowed = options if self.selection is None else self.selection.narrowed(options)
        return await self.cluster.list(self.scope.api_version, self.scope.kind, narrowed)

    def _check_limit(self, count: int) -> None:
        if self._max_objects is not None and count > self._max_objects:
            raise _TooManyObjectsError(
                f"{self.scope}: the cache may hold {self._max_objects} objects (max_objects), but there are more: "
                "raise max_objects, cache single namespaces, or name the kind in `uncached`"
            )

    async def _watch(self) -> None:
        """Watch until the watch ends, is idle for too long, or a list is due."""
        with requests_for(Purpose.CACHE):
            self._reader = asyncio.create_task(self._read_events(), name=f"watch of {self.scope}")
        timeout = asyncio.create_task(self._wait_for_timeout(), name=f"guard of {self.scope}")
        tasks = (self._reader, timeout)
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
        if self.store.relist_reason:
            return
        api_version, kind, namespace = self.scope
        chosen = self.selection or _ALL
        options = WatchOptions(
            namespace=namespace,
            resource_version=self.store.version,
            label_selector=chosen.label_selector,
            field_selector=chosen.field_selector,
        )
        events = self.cluster.watch(api_version, kind, options)
        try:
            async for event in events:
                self._last_event_at = self._timing.monotonic()
                self.store.take(event)
                self._check_limit(len(self.store))
                if self.store.relist_reason:
                    return
        finally:
            if isinstance(events, AsyncGenerator):
                await events.aclose()

    async def _wait_for_timeout(self) -> None:
        """Return when the watch has been idle for too long, or a list is due."""
        self._last_event_at = self._timing.monotonic()
        while not self._is_due:
            idle, due = self._last_event_at + self._timing.idle_timeout, self._listed_at + self._timing.relist_every
            left = min(idle, due) - self._timing.monotonic()
            if left <= 0:
                return
            await self._timing.sleep(left)

    @property
    def _is_due(self) -> bool:
        """Whether all objects must be listed again."""
        return bool(self.store.relist_reason) or (
            self._timing.monotonic() - self._listed_at >= self._timing.relist_every
        )
