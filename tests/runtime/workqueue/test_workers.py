"""Workers: what they survive, when they come back, and how they end."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine
from datetime import timedelta
from typing import Any

import pytest
from prometheus_client import CollectorRegistry

from ocf.concepts.backoff import ExponentialBackoff
from ocf.errors import ConfigError, NotReadyError, ReconcileError, TooManyRequestsError
from ocf.runtime.workqueue import WorkQueue, work
from ocf.runtime.workqueue.metrics import QueueMetrics
from ocf.runtime.workqueue.workers import asked_delay
from ocf.testing import run_in_virtual_time

SECOND = timedelta(seconds=1)
DELAYS = ExponentialBackoff(SECOND, 60 * SECOND, jitter=0)


def run(job: Coroutine[Any, Any, None]) -> None:
    run_in_virtual_time(job)


def now() -> float:
    return asyncio.get_running_loop().time()


def caused(error: Exception, cause: Exception) -> Exception:
    error.__cause__ = cause
    return error


SLOW_DOWN = TooManyRequestsError("slow down", retry_after=30)


@pytest.mark.parametrize(
    ("error", "level"),
    [
        pytest.param(ValueError("a bug"), logging.ERROR, id="a bug"),
        pytest.param(ReconcileError("web", "cannot"), logging.WARNING, id="one of ours"),
        pytest.param(NotReadyError("soon"), logging.INFO, id="one that is expected"),
        pytest.param(ExceptionGroup("two", [ReconcileError("web", "cannot")]), logging.WARNING, id="a group of ours"),
        pytest.param(ExceptionGroup("two", [ValueError("a bug")]), logging.ERROR, id="a group with a bug"),
        pytest.param(asyncio.CancelledError(), logging.ERROR, id="a cancellation inside"),
        pytest.param(TimeoutError("of its own"), logging.ERROR, id="a timeout of its own"),
    ],
)
def test_no_error_ends_a_worker(error: BaseException, level: int, caplog: pytest.LogCaptureFixture) -> None:
    """The error is logged, and the key comes back later each time."""
    caplog.set_level(logging.INFO)

    async def main() -> None:
        queue: WorkQueue[str] = WorkQueue("shop", delays=DELAYS)
        begun: list[float] = []

        async def handle(key: str) -> None:
            begun.append(now())
            if len(begun) < 4:
                raise error
            assert queue.failures(key) == 3
            queue.close()

        queue.add("corner")
        await work(queue, handle)
        assert begun == [0, 1, 3, 7]
        assert queue.failures("corner") == 0

    run(main())
    assert [record.levelno for record in caplog.records] == [level] * 3
    assert "shop: corner" in caplog.text


@pytest.mark.parametrize(
    "error",
    [
        pytest.param(SLOW_DOWN, id="the server's error"),
        pytest.param(caused(ReconcileError("web", "cannot"), SLOW_DOWN), id="as a cause"),
        pytest.param(
            ExceptionGroup("", [ValueError(), caused(ReconcileError("web", "no"), SLOW_DOWN)]), id="in a group"
        ),
    ],
)
def test_a_server_that_asks_for_time_gets_it(error: Exception) -> None:
    async def main() -> None:
        queue: WorkQueue[str] = WorkQueue("shop", delays=DELAYS)
        begun: list[float] = []

        async def handle(_: str) -> None:
            begun.append(now())
            if len(begun) < 3:
                raise error
            queue.close()

        queue.add("corner")
        working = asyncio.create_task(work(queue, handle))
        await asyncio.sleep(10)
        queue.add("corner")
        await working
        assert begun == [0, 30, 60]

    run(main())
    assert asked_delay(error) == 30
    assert asked_delay(ValueError()) is None


def test_what_is_returned_says_when_the_key_comes_again_and_the_last_word_counts() -> None:
    async def main() -> None:
        queue: WorkQueue[str] = WorkQueue("shop")
        begun: list[float] = []
        answers = iter([100 * SECOND, 5 * SECOND, None])

        async def handle(_: str) -> timedelta | None:
            begun.append(now())
            return next(answers)

        queue.add("corner")
        working = asyncio.create_task(work(queue, handle))
        await asyncio.sleep(10)
        queue.add("corner")
        await asyncio.sleep(1000)
        assert begun == [0, 10, 15]
        queue.close()
        await working

    run(main())


def test_one_slow_key_holds_up_no_other_and_is_never_worked_on_twice() -> None:
    async def main() -> None:
        queue: WorkQueue[str] = WorkQueue("shop")
        done: list[tuple[str, float]] = []
        at_work: set[str] = set()

        async def handle(key: str) -> None:
            assert key not in at_work
            at_work.add(key)
            await asyncio.sleep(100 if key == "slow" else 1)
            at_work.discard(key)
            done.append((key, now()))

        working = asyncio.create_task(work(queue, handle, workers=2))
        for key in ("slow", "a", "b"):
            queue.add(key)
        for _ in range(50):
            await asyncio.sleep(1)
            queue.add("slow")
        await asyncio.sleep(1000)
        assert done == [("a", 1), ("b", 2), ("slow", 100), ("slow", 200)]
        queue.close()
        await working

    run(main())


def test_work_that_hangs_is_ended_at_the_limit() -> None:
    async def main() -> None:
        queue: WorkQueue[str] = WorkQueue("shop", delays=DELAYS)
        begun: list[float] = []

        async def handle(_: str) -> None:
            begun.append(now())
            if len(begun) == 2:
                queue.close()
                return
            await asyncio.sleep(1e6)

        queue.add("corner")
        await work(queue, handle, limit=30 * SECOND)
        assert begun == [0, 31]

    run(main())


@pytest.mark.parametrize(("takes", "ended", "finished"), [(5, 15, True), (100, 20, False)])
def test_what_is_worked_on_may_finish_and_no_other_begins(takes: float, ended: float, *, finished: bool) -> None:
    async def main() -> None:
        queue: WorkQueue[str] = WorkQueue("shop")
        done: list[str] = []

        async def handle(key: str) -> None:
            await asyncio.sleep(10 + takes)
            done.append(key)

        for key in ("one", "two"):
            queue.add(key)
        working = asyncio.create_task(work(queue, handle, shutdown_timeout=10 * SECOND))
        await asyncio.sleep(10)
        queue.close()
        await working
        assert (now(), done) == (ended, ["one"] if finished else [])

    run(main())


def test_being_cancelled_ends_all_work_at_once() -> None:
    async def main() -> None:
        queue: WorkQueue[str] = WorkQueue("shop")
        ended: list[str] = []

        async def handle(key: str) -> None:
            try:
                await asyncio.sleep(1000)
            finally:
                ended.append(key)

        for key in "abc":
            queue.add(key)
        working = asyncio.create_task(work(queue, handle, workers=2))
        await asyncio.sleep(1)
        working.cancel()
        with pytest.raises(asyncio.CancelledError):
            await working
        assert (now(), ended, queue.closed) == (1, ["a", "b"], True)

    run(main())


def test_there_is_at_least_one_worker() -> None:
    async def handle(_: str) -> None: ...

    async def main() -> None:
        with pytest.raises(ConfigError, match="at least 1 worker, got 0"):
            await work(WorkQueue("shop"), handle, workers=0)

    run(main())


def test_everything_is_counted_by_the_names_that_dashboards_know() -> None:
    registry = CollectorRegistry()
    metrics = QueueMetrics(registry)
    of_queue, of_passes = {"name": "shop", "controller": "shop"}, {"controller": "shop"}

    def value(name: str, **labels: str) -> float | None:
        return registry.get_sample_value(name, labels or of_queue)

    def depth() -> list[float | None]:
        found = ({**of_queue, "priority": str(priority)} for priority in (0, -50, -100))
        return [registry.get_sample_value("workqueue_depth", labels) for labels in found]

    async def main() -> None:
        queue: WorkQueue[str] = WorkQueue("shop", delays=DELAYS, metrics=metrics)

        async def handle(key: str) -> timedelta | None:
            await asyncio.sleep(2)
            if key == "bad":
                raise ReconcileError("web", "cannot")
            return SECOND if key == "again" else None

        for key in ("good", "good", "bad", "again"):
            queue.add(key)
        assert depth() == [3, 0, 0]
        working = asyncio.create_task(work(queue, handle, metrics=metrics))
        await asyncio.sleep(1)
        assert (depth(), value("workqueue_unfinished_work_seconds")) == ([2, 0, 0], 1)
        assert value("workqueue_longest_running_processor_seconds") == 1
        await asyncio.sleep(4.5)
        queue.close()
        await working

    run(main())
    assert (value("workqueue_adds_total"), value("workqueue_retries_total")) == (5, 1)
    assert (value("workqueue_queue_duration_seconds_sum"), value("workqueue_queue_duration_seconds_count")) == (6, 3)
    assert value("workqueue_work_duration_seconds_sum") == 6
    for result in ("success", "error", "requeue_after"):
        assert value("controller_runtime_reconcile_total", **of_passes, result=result) == 1
    assert value("controller_runtime_reconcile_time_seconds_sum", **of_passes) == 6
    with pytest.raises(ConfigError, match="has them already"):
        QueueMetrics(registry)
