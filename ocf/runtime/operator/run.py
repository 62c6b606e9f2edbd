"""`running`, `run` and `main`: run operators in a block, until stopped, or as the main program of a container."""

from __future__ import annotations

import asyncio
import gc
import logging
import signal
from asyncio import AbstractEventLoop
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any, Final

from ocf.cluster import Cluster
from ocf.concepts.open_files import raise_open_files
from ocf.errors import ApiError, ConfigError
from ocf.runtime.monitoring.json_logs import JsonFormatter
from ocf.runtime.operator.manager import Manager
from ocf.runtime.operator.operator import Operator
from ocf.runtime.operator.options import ManagerOptions
from ocf.runtime.operator.supervised_tasks import supervised_tasks

__all__ = ["main", "run", "run_to_its_end", "running", "running_manager", "seldom_collecting"]

_log: Final = logging.getLogger(__name__)

_SIGNALS: Final = (signal.SIGTERM, signal.SIGINT)
_END: Final = 1.0
"""Seconds that the tasks of the process may take to end after their cancellation."""


@asynccontextmanager
async def running(
    cluster: Cluster, *operators: Operator[Any], options: ManagerOptions | None = None
) -> AsyncIterator[Manager]:
    """Run operators for as long as the block runs; its end stops them gracefully, and an error at once.

    Args:
        cluster: The cluster of the objects; it is wrapped in a cache.
        operators: The operators; their names must differ.
        options: The settings of the process.

    Yields:
        The manager; its operators start, or wait for a lease.

    Raises:
        BuildError: If there is no operator, or two have the same name.
        Exception: The error that ended an operator, several as a group; the block is cancelled then.

    Example:
        >>> from ocf_server import CustomKind, EmbeddedCluster
        >>> from ocf.component import ReconcileContext
        >>> from ocf.objects import ObjectKey
        >>> from ocf.runtime.operator import Operator, OwnerType
        >>> from ocf.testing import LoopClock, run_in_virtual_time
        >>> def count(context: ReconcileContext, owner: dict, outcome: object) -> None:
        ...     context.status["letters"] = len(owner["metadata"]["name"])
        >>> shops = Operator(
        ...     name="shops", owner=OwnerType("example.com/v1", "Shop"), components=lambda shop: (), report=count
        ... )
        >>> async def operate() -> int:
        ...     cluster = EmbeddedCluster(kinds=[CustomKind("example.com", "v1", "Shop")], namespaces=["town"])
        ...     async with running(cluster, shops, options=ManagerOptions(listen=None, clock=LoopClock())):
        ...         shop = {"apiVersion": "example.com/v1", "kind": "Shop"}
        ...         shop["metadata"] = {"name": "corner", "namespace": "town"}
        ...         await cluster.create(shop, field_manager="me")
        ...         await asyncio.sleep(1)
        ...     live = await cluster.get(ObjectKey.of(shop))
        ...     return live["status"]["letters"]
        >>> run_in_virtual_time(operate())
        6
    """
    async with running_manager(Manager(cluster, operators, options or ManagerOptions())) as manager:
        yield manager


@asynccontextmanager
async def running_manager(manager: Manager) -> AsyncIterator[Manager]:
    """Run a manager for as long as the block runs, as `running` does."""
    ended = asyncio.Event()
    with _ungrouped():
        async with supervised_tasks() as start:
            start(_run_until_stopped(manager, ended), "operators")
            yield manager
            manager.stop()
            await ended.wait()


async def run(
    cluster: Cluster,
    *operators: Operator[Any],
    options: ManagerOptions | None = None,
    stop: asyncio.Event | None = None,
) -> None:
    """Run operators until they are stopped.

    Args:
        cluster: The cluster of the objects; it is wrapped in a cache.
        operators: The operators; their names must differ.
        options: The settings of the process.
        stop: Set by the caller to stop them gracefully; None stops them at `SIGTERM` and `SIGINT`.

    Raises:
        BuildError: If there is no operator, or two have the same name.
        Exception: The error that ended an operator, several as a group.
    """
    manager = Manager(cluster, operators, options or ManagerOptions())
    loop = asyncio.get_running_loop()
    if stop is None:
        for number in _SIGNALS:
            loop.add_signal_handler(number, manager.stop)
    try:
        with _ungrouped():
            async with asyncio.TaskGroup() as tasks:
                stopping = tasks.create_task(_stop_at(stop, manager)) if stop is not None else None
                await manager.run()
                if stopping is not None:
                    stopping.cancel()
    finally:
        if stop is None:
            for number in _SIGNALS:
                loop.remove_signal_handler(number)


def main(*operators: Operator[Any], options: ManagerOptions | None = None, level: int = logging.INFO) -> None:
    """Run operators as the main program of a process, on the cluster of the kubeconfig or of the pod, until stopped.

    Log lines are written to the standard error as JSON, unless the program has configured logging itself. Meanwhile the
    garbage collector runs less often than by default, and does not traverse what was imported before (`gc.freeze`). The
    soft limit of open files is raised to the hard one, because each watch needs a connection.

    Args:
        operators: The operators; their names must differ.
        options: The settings of the process.
        level: The lowest level of log lines that are written.

    Raises:
        ConfigError: If it is called in a running event loop.
        SystemExit: With 1, if the cluster, an address or a certificate is not available; the reason is logged.
        Exception: The error that ended an operator; the process ends with it, to be restarted.
    """
    _require_no_running_loop()
    if not logging.getLogger().handlers:
        handler = logging.StreamHandler()
        handler.setFormatter(JsonFormatter())
        logging.basicConfig(level=level, handlers=[handler])
    raise_open_files()
    try:
        with seldom_collecting():
            run_to_its_end(_main(operators, options))
    except (ApiError, ConfigError) as error:  # a traceback would add nothing
        _log.critical("%s", error)
        raise SystemExit(1) from error


def _require_no_running_loop() -> None:
    """Reject a running event loop, for instance of a tool that imports the module to find the operator."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return
    raise ConfigError(
        'main(...) cannot run in a running event loop: call it under `if __name__ == "__main__":`, or await run(...)'
    )


def run_to_its_end(work: Coroutine[Any, Any, None], loop: Callable[[], AbstractEventLoop] | None = None) -> None:
    """Run a coroutine as `asyncio.run` does, which waits for ever for a task that ignores its cancellation.

    Args:
        loop: Returns the event loop; None for a new one.
    """
    runner = asyncio.Runner(loop_factory=loop)
    try:
        runner.run(work)
    finally:
        # To close the runner is to wait for each task. The process ends, and with it the task.
        if runner.run(_have_ended()):
            runner.close()


async def _have_ended() -> bool:
    """Cancel all other tasks; return whether they have ended."""
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    left = (await asyncio.wait(others, timeout=_END))[1] if others else ()
    for task in left:
        _log.error("the process ends, although %s goes on after its cancellation", task.get_name())
    return not left


async def _main(operators: tuple[Operator[Any], ...], options: ManagerOptions | None) -> None:
    from ocf.cluster.client import ApiServerCluster

    async with await ApiServerCluster.connect() as cluster:
        await run(cluster, *operators, options=options)


@contextmanager
def _ungrouped() -> Iterator[None]:
    """Raise a single error itself, and not as a group of one."""
    try:
        yield
    except BaseExceptionGroup as group:
        error: BaseException = group
        while isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
            error = error.exceptions[0]
        if error is group:
            raise
        raise error from error.__cause__


async def _run_until_stopped(manager: Manager, ended: asyncio.Event) -> None:
    """Run a manager; after `stop` the block goes on."""
    await manager.run()
    ended.set()
    await asyncio.get_running_loop().create_future()


async def _stop_at(event: asyncio.Event, manager: Manager) -> None:
    await event.wait()
    manager.stop()


# A reconcile allocates many short-lived values, few of them in cycles; reference counts free the rest. With the
# defaults of Python the collector runs every 700 allocations and traverses the modules, models and the cache again and
# again.
_YOUNG: Final = 10_000
"""Allocations beyond deallocations after which the youngest generation is collected."""


@contextmanager
def seldom_collecting() -> Iterator[None]:
    """Collect garbage seldom in the block, and never traverse what was imported before it.

    A larger threshold that the program has set is kept, and so is a collector that is disabled. Where the program has
    frozen objects itself, these and no others stay frozen, also afterwards: Python can only unfreeze all of them.

    Source of the semantics: https://docs.python.org/3/library/gc.html#gc.freeze

    Example:
        >>> import gc
        >>> before = gc.get_threshold()
        >>> with seldom_collecting():
        ...     gc.get_freeze_count() > 0, gc.get_threshold()[0] >= 10_000
        (True, True)
        >>> gc.get_threshold() == before
        True
    """
    young, *older = threshold = gc.get_threshold()
    # A threshold of 0 disables the collector.
    gc.set_threshold(max(young, _YOUNG) if young else 0, *older)
    freezes = gc.get_freeze_count() == 0
    if freezes:
        gc.freeze()
    try:
        yield
    finally:
        if freezes:
            gc.unfreeze()
        gc.set_threshold(*threshold)
