"""The lifespans and background tasks of the operators of a process: of each replica, and of the leader."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack, suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from ocf.component.model.context_values import ContextValues
from ocf.concepts import Event, Recorder
from ocf.errors import ApiError, failure_text
from ocf.objects import ObjectKey
from ocf.runtime.events.poster import broadcasting_events
from ocf.runtime.operator.process import Process, open_lifespan, run_task
from ocf.runtime.operator.supervised_tasks import StartTask, supervised_tasks
from ocf.runtime.sharding.slots import SlotLostError, Slots

if TYPE_CHECKING:
    from ocf.cluster import Cluster
    from ocf.cluster.cache import CachedCluster
    from ocf.runtime.operator.operator import Operator
    from ocf.runtime.operator.options import Lease, ManagerOptions

__all__ = ["ENDED_EVENT", "Background", "happened_to_process", "in_first_slot"]

_FIRST: Final = 0

ENDED_EVENT: Final = "OperatorEnded"
"""Reason of the event about an operator that ends its process."""
FAILED_EVENT: Final = "BackgroundTaskFailed"
"""Reason of the event about a call of a timer that failed."""


class Background:
    """The lifespans and background tasks of a process.

    Args:
        operators: The operators of the process.
        cluster: The cluster without a cache, for events.
        make_cache: Returns a cache for what runs in each replica, the leader or not.
        stop: Is set when the process shall end.
    """

    def __init__(
        self,
        operators: Sequence[Operator[Any]],
        cluster: Cluster,
        make_cache: Callable[[], CachedCluster],
        options: ManagerOptions,
        stop: asyncio.Event,
    ) -> None:
        self._operators = operators
        self._cluster = cluster
        self._make_cache = make_cache
        self._options = options
        self._stop = stop
        self.cache: CachedCluster | None = None
        """The cache of what runs in each replica; None if nothing needs it."""
        self._processes: dict[str, Process] = {}
        self._leading: dict[str, Process] = {}
        self._recorders: dict[str, Recorder] = {}
        """Recorders of events for as long as the process runs, where an operator needs them."""
        self._posted: dict[str, Recorder] = {}
        """Those of the term as the leader."""

    @property
    def opens(self) -> bool:
        """Whether an operator has a lifespan of each replica."""
        return any(operator.lifespan is not None for operator in self._operators)

    def values(self, operator: str) -> ContextValues | None:
        """Return what the lifespans of an operator have set; None before the process leads."""
        return self._leading[operator].values if operator in self._leading else None

    async def open(self, stack: AsyncExitStack) -> bool:
        """Open what each replica needs, until the stack is closed; return False if the process shall end before.

        Raises:
            Exception: The error of a lifespan, after an event about it.
        """
        needing = [one for one in self._operators if one.lifespan or any(not task.on_leader for task in one.tasks)]
        reads = any(webhook.reads_cluster for one in self._operators for webhook in one.webhooks)
        if not needing and not reads:
            return True
        self.cache = cache = await stack.enter_async_context(self._make_cache())
        for operator in needing:
            if self._options.events:
                poster = broadcasting_events(self._cluster, controller=operator.controller, clock=self._options.clock)
                self._recorders[operator.name] = await stack.enter_async_context(poster)
        for operator in needing:
            process = self._processes[operator.name] = Process(cache, ContextValues())
            if not await self._opened(stack, operator, process, leader=False):
                return False
        return True

    def begin_term(self, stack: AsyncExitStack, cache: CachedCluster) -> None:
        """Use the cache of the leader until the stack is closed."""
        stack.callback(self._leading.clear)
        for operator in self._operators:
            outer = self._processes.get(operator.name)
            values = ContextValues(outer.values if outer is not None else None)
            self._leading[operator.name] = Process(cache, values)

    async def open_term(self, stack: AsyncExitStack, recorders: Mapping[str, Recorder]) -> None:
        """Open what only the leader needs, until the stack is closed.

        Args:
            recorders: Records events, by operator.

        Raises:
            Exception: The error of a lifespan, after an event about it.
        """
        stack.callback(self._posted.clear)
        self._posted.update(recorders)
        for operator in self._operators:
            await self._opened(stack, operator, self._leading[operator.name], leader=True)

    def start(self, start: StartTask, *, on_leader: bool) -> None:
        """Start the tasks of each replica, or those of the leader."""
        for operator in self._operators:
            for task in operator.tasks:
                if task.on_leader is on_leader:
                    process = (self._leading if on_leader else self._processes)[operator.name]
                    what = f'the task "{task.name}" of operator {operator.name}'
                    failed = partial(self._failed, operator.name)
                    start(run_task(task, process, what, limit=operator.reconcile_timeout, failed=failed), what)

    @property
    def runs_in_each_replica(self) -> bool:
        """Whether a task runs in each replica."""
        return any(not task.on_leader for operator in self._operators for task in operator.tasks)

    async def _opened(self, stack: AsyncExitStack, operator: Operator[Any], process: Process, *, leader: bool) -> bool:
        lifespan, what = (operator.leader_lifespan, "leader_lifespan") if leader else (operator.lifespan, "lifespan")
        if lifespan is None:
            return True
        what = f"`{what}` of operator {operator.name}"
        opened = open_lifespan(
            lifespan,
            process,
            what,
            opening=self._options.cache_sync_timeout,
            closing=self._options.shutdown_timeout,
            stop=self._stop,
        )
        try:
            return await stack.enter_async_context(opened)
        except Exception as error:
            await self._failed(operator.name, f"{what} could not be opened: {failure_text(error)}", ends=True)
            raise

    async def _failed(self, operator: str, problem: str, ends: bool) -> None:  # noqa: FBT001 (a callback's argument)
        """Record a failure in an event about the lease."""
        reason = ENDED_EVENT if ends else FAILED_EVENT
        recorder = self._recorders.get(operator) or self._posted.get(operator)
        await happened_to_process(self._cluster, self._options.lease, recorder, reason, f"{operator}: {problem}")


async def in_first_slot(slots: Slots, begin: Callable[[StartTask], None]) -> None:
    """Run tasks for as long as this process holds the first slot, each time that it does, until cancelled.

    Args:
        begin: Starts the tasks.
    """
    while True:
        changed = slots.changed
        if _FIRST in slots.accepted:
            with suppress(SlotLostError):
                async with slots.working(_FIRST), supervised_tasks() as start:
                    begin(start)
                    while _FIRST in slots.accepted:
                        await slots.changed.wait()
        else:
            await changed.wait()


async def happened_to_process(
    cluster: Cluster, lease: Lease | None, recorder: Recorder | None, reason: str, note: str, *, action: str = "Run"
) -> None:
    """Record an event about the lease of a process: the one object of the process that is known."""
    if lease is None or recorder is None:
        return
    key = ObjectKey("coordination.k8s.io/v1", "Lease", lease.name, lease.namespace)
    uid = ""
    with suppress(ApiError):  # without it, only `kubectl describe` of the lease does not show the event
        uid = str((await cluster.get(key))["metadata"].get("uid") or "")
    recorder.happened(
        Event(owner=key, owner_uid=uid, resource=key, reason=reason, action=action, note=note, type="Warning")
    )
