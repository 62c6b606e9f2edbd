"""Runs the built-in controllers: a queue of objects to reconcile, timers, retries with backoff."""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from datetime import datetime, timedelta
from typing import Final, TypeAlias

from ocf.cluster.protocol import Cluster, DeleteOptions, Preconditions, Propagation, Subresource
from ocf.errors import AlreadyExistsError, ApiError, ConflictError, NotFoundError
from ocf.objects import Manifest, ObjectKey
from ocf_server.controllers.actions import Action, Event, Outcome, Write
from ocf_server.controllers.all_controllers import CONTROLLERS, ControllerDescriptor
from ocf_server.controllers.events import EventRecorder
from ocf_server.controllers.nodes import node_manifests
from ocf_server.controllers.settings import ControllerSettings
from ocf_server.controllers.view import ANY, API_VERSIONS, ClusterView
from ocf_server.registry.registry import Registry
from ocf_server.registry.storage import Place

__all__ = ["Controllers"]

_Key: TypeAlias = tuple[ControllerDescriptor, Place]

_log: Final = logging.getLogger(__name__)

_PAUSE: Final = timedelta(seconds=1)
_MANAGER: Final = "kube-controller-manager"
_CLUSTER: Final[Manifest] = {"metadata": {"uid": "", "name": ""}}
"""What a controller of the whole cluster gets in place of an object."""
# Those of DefaultTypedControllerRateLimiter in client-go.
_FIRST_BACKOFF: Final = timedelta(milliseconds=5)
_LONGEST_BACKOFF: Final = timedelta(seconds=1000)


class Controllers:
    """The built-in controllers of one embedded cluster; `EmbeddedCluster.controllers` makes them.

    Args:
        cluster: The cluster that the writes are sent to.
        registry: Its registry, which the controllers read.
    """

    def __init__(self, cluster: Cluster, registry: Registry, settings: ControllerSettings) -> None:
        self._cluster = cluster
        self._registry = registry
        self._settings = settings
        self._events = EventRecorder(cluster)
        self._chosen = [each for each in CONTROLLERS if each.is_simulated_node or settings.runs(each.name)]
        self._queue: dict[tuple[str, Place], _Key] = {}
        self._timers: dict[tuple[str, Place], tuple[datetime, _Key]] = {}
        self._retries: dict[tuple[str, Place], int] = {}
        self._started: dict[str, datetime] = {}
        self._failures: dict[str, str] = {}
        self._seen: int | None = None
        self._has_nodes = False

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Run for the duration of a block."""
        task = asyncio.create_task(self.run())
        try:
            yield
        finally:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task

    async def run(self) -> None:
        """Run until cancelled; the delays are those of the running event loop."""
        while True:
            try:
                delay = await self.settle()
            except Exception:  # noqa: BLE001 (one object that cannot be reconciled must not stop the others)
                _log.exception("a built-in controller failed")
                delay = _PAUSE
            with suppress(TimeoutError):
                # Nothing can change between the last look at the store and this wait, as there is no await between.
                async with asyncio.timeout(None if delay is None else delay.total_seconds()):
                    await self._registry.store.changed()

    async def settle(self) -> timedelta | None:
        """Reconcile until nothing is left to do at this instant.

        Returns:
            The delay until there is something to do again, if nothing changes in the meantime; None if only a change
            matters.
        """
        await self._create_nodes()
        while True:
            self._notice()
            if not self._queue:
                self._take_due()
            if not self._queue:
                break
            key = next(iter(self._queue))
            await self._reconcile(key, self._queue.pop(key))
            await asyncio.sleep(0)
        if not self._timers:
            return None
        first = min(at for at, _ in self._timers.values())
        return max(first - self._registry.now(), timedelta(0))

    async def _create_nodes(self) -> None:
        if self._has_nodes:
            return
        self._has_nodes = True
        for manifest in node_manifests(self._settings, self._registry.timestamp()):
            with suppress(AlreadyExistsError):
                await self._cluster.create(manifest, field_manager="kubelet")

    def _view(self) -> ClusterView:
        return ClusterView(self._registry, self._settings, self._registry.now(), self._started, self._failures)

    def _notice(self) -> None:
        """Enqueue what the changes since the last look affect."""
        store = self._registry.store
        # The changes are not known: everything may have changed.
        if self._seen is None or self._seen < store.forgotten:
            self._seen = store.version
            self._enqueue_all()
            return
        if self._seen == store.version:
            return
        changes, self._seen = store.since(self._seen), store.version
        view = self._view()
        for change in changes:
            # Both, because the owner or the labels of before may be those of another object.
            for manifest in (change.before, change.after):
                if manifest is not None:
                    self._enqueue_affected(view, change.kind[1], manifest, gone=change.after is None)

    def _enqueue_all(self) -> None:
        view = self._view()
        for controller in self._chosen:
            if not controller.kind:
                self._enqueue(controller, ("", ""))
                continue
            for manifest in view.objects(controller.kind):
                self._note_start(view, manifest)
                self._enqueue(controller, _place(manifest))

    def _enqueue_affected(self, view: ClusterView, kind: str, manifest: Manifest, *, gone: bool) -> None:
        group = manifest["apiVersion"].rpartition("/")[0]
        known = kind in API_VERSIONS and API_VERSIONS[kind].rpartition("/")[0] == group
        if gone:
            self._forget(manifest)
        elif known:
            self._note_start(view, manifest)
        for controller in self._chosen:
            if known and controller.kind == kind and not gone:
                self._enqueue(controller, _place(manifest))
            mapper = controller.watches.get(kind) if known else None
            for watch in filter(None, (mapper, controller.watches.get(ANY))):
                for place in watch(view, manifest):
                    self._enqueue(controller, place)

    def _note_start(self, view: ClusterView, manifest: Manifest) -> None:
        """Remember when a pod was bound: timestamps of objects are too coarse for short delays."""
        if manifest["kind"] == "Pod" and manifest["spec"].get("nodeName"):
            self._started.setdefault(manifest["metadata"]["uid"], view.now)

    def _forget(self, manifest: Manifest) -> None:
        self._started.pop(manifest["metadata"]["uid"], None)
        self._failures.pop(manifest["metadata"]["uid"], None)

    def _enqueue(self, controller: ControllerDescriptor, place: Place) -> None:
        # One that waits already keeps its place, and is reconciled once for all changes.
        self._queue.setdefault((f"{controller.name} {controller.kind}", place), (controller, place))

    def _take_due(self) -> None:
        now = self._registry.now()
        for name, (at, key) in list(self._timers.items()):
            if at <= now:
                del self._timers[name]
                self._enqueue(*key)

    async def _reconcile(self, name: tuple[str, Place], key: _Key) -> None:
        controller, place = key
        view = self._view()
        self._timers.pop(name, None)
        found = view.get(controller.kind, *place) if controller.kind else _CLUSTER
        if found is None:
            self._retries.pop(name, None)
            return
        outcome = controller.reconcile(view, found)
        if await self._carry_out(view, controller, found, outcome):
            self._retries.pop(name, None)
            at = outcome.at
        else:
            count = self._retries[name] = self._retries.get(name, 0) + 1
            # The exponent is bounded, because a timedelta overflows.
            at = view.now + min(_FIRST_BACKOFF * 2 ** min(count - 1, 30), _LONGEST_BACKOFF)
        if at is not None:
            self._timers[name] = (at, key)

    async def _carry_out(
        self, view: ClusterView, controller: ControllerDescriptor, found: Manifest, outcome: Outcome
    ) -> bool:
        """Send the writes of a reconcile; return whether none of them failed."""
        uid = found["metadata"]["uid"]
        for action in outcome.actions:
            try:
                written = await self._write(controller, action)
            except NotFoundError:
                continue  # it is gone already, or its namespace is; the next change shows which
            except ConflictError:
                # Neither an event nor a failure: the retry reads the object anew.
                return False
            except ApiError as error:
                is_new = self._failures.get(uid) != error.message
                self._failures[uid] = error.message
                if action.failed is not None:
                    await self._record(view, controller, action.failed, error=error.message)
                if is_new:
                    # Its status has to show the failure before the retry.
                    self._enqueue(controller, _place(found))
                return False
            if action.write is Write.CREATE:
                self._failures.pop(uid, None)
            if action.done is not None:
                await self._record(view, controller, action.done, name=written["metadata"]["name"])
            await asyncio.sleep(0)  # other tasks, such as requests of clients, take turns
        for event in outcome.events:
            await self._record(view, controller, event)
        return True

    async def _record(
        self, view: ClusterView, controller: ControllerDescriptor, event: Event, *, name: str = "", error: str = ""
    ) -> None:
        message = event.message.replace("{name}", name).replace("{error}", error)
        filled = Event(event.about, event.reason, message, event.warning)
        await self._events.record(view, controller.component, filled)

    async def _write(self, controller: ControllerDescriptor, action: Action) -> Manifest:
        manager = _MANAGER if not controller.is_simulated_node else controller.name
        cluster, manifest = self._cluster, action.manifest
        match action.write:
            case Write.CREATE:
                return await cluster.create(manifest, field_manager=manager)
            case Write.UPDATE:
                return await cluster.update(manifest, field_manager=manager)
            case Write.STATUS:
                return await cluster.update(manifest, field_manager=manager, subresource=Subresource.STATUS)
            case Write.APPLY_STATUS:
                manager, part = controller.component, Subresource.STATUS
                return await cluster.apply(manifest, field_manager=manager, force=True, subresource=part)
            case Write.BIND:
                await cluster.create(manifest, field_manager=manager, subresource=Subresource.BINDING)
            case Write.DELETE:
                await cluster.delete(ObjectKey.of(manifest), _delete_options(action))
        return manifest


def _delete_options(action: Action) -> DeleteOptions:
    return DeleteOptions(
        preconditions=Preconditions(uid=action.manifest["metadata"]["uid"]),
        propagation=Propagation.BACKGROUND,
        grace_period_seconds=0 if action.force else None,
    )


def _place(manifest: Manifest) -> Place:
    return manifest["metadata"].get("namespace", ""), manifest["metadata"]["name"]
