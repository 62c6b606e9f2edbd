"""The queue: which key is handed out when, and to whom."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Coroutine
from datetime import timedelta
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ocf.concepts.backoff import ExponentialBackoff
from ocf.errors import ConfigError
from ocf.runtime.workqueue import FixedDelay, Priority, WorkQueue
from ocf.runtime.workqueue.queue import QueueClosedError
from ocf.testing import run_in_virtual_time

SECOND = timedelta(seconds=1)
DELAYS = ExponentialBackoff(SECOND, 60 * SECOND, jitter=0)


def run(work: Coroutine[Any, Any, None]) -> None:
    run_in_virtual_time(work)


def now() -> float:
    return asyncio.get_running_loop().time()


async def drained(queue: WorkQueue[str]) -> list[str]:
    """Take all that waits, and be done with it."""
    found = []
    while queue.depth:
        found.append(await queue.get())
        queue.done(found[-1])
    return found


async def taken(queue: WorkQueue[str], count: int) -> list[tuple[str, float]]:
    """Take so many keys, and note when each one came."""
    found = []
    for _ in range(count):
        key = await queue.get()
        found.append((key, now()))
        queue.done(key)
    return found


def test_a_key_waits_once_and_keys_come_in_order() -> None:
    async def main() -> None:
        queue: WorkQueue[str] = WorkQueue("q")
        for key in "abacab":
            queue.add(key)
        assert (queue.depth, "a" in queue, "x" in queue) == (3, True, False)
        assert await drained(queue) == ["a", "b", "c"]

    run(main())


def test_what_is_added_while_it_is_worked_on_waits_again_when_done() -> None:
    async def main() -> None:
        queue: WorkQueue[str] = WorkQueue("q")
        queue.add("a")
        key = await queue.get()
        queue.add(key)
        queue.add(key)
        assert (queue.depth, queue.running) == (0, ("a",))
        queue.done(key)
        assert await drained(queue) == ["a"]
        assert queue.running == ()

    run(main())


def test_of_several_times_the_earliest_counts() -> None:
    async def main() -> None:
        queue: WorkQueue[str] = WorkQueue("q")
        for seconds in (30, 10, 20):
            queue.add_after("a", seconds * SECOND)
        queue.add_after("b", 15 * SECOND)
        queue.add_after("c", SECOND)
        assert (queue.depth, queue.later) == (0, 3)
        assert await taken(queue, 3) == [("c", 1), ("a", 10), ("b", 15)]
        await asyncio.sleep(60)
        assert queue.depth == 0

    run(main())


@pytest.mark.parametrize(
    "delay", [timedelta(0), -SECOND, timedelta(microseconds=1), timedelta(milliseconds=99)], ids=str
)
def test_a_delay_is_at_least_100_milliseconds_and_one_that_is_not_zero_is_logged_once(
    caplog: pytest.LogCaptureFixture, delay: timedelta
) -> None:
    """https://github.com/tektoncd/pipeline/pull/7589: a negative one made a loop without a pause.

    https://github.com/gocardless/theatre/pull/52: in controller-runtime it means never.
    """

    async def main() -> None:
        queue: WorkQueue[str] = WorkQueue("shops", delays=FixedDelay(timedelta(milliseconds=5)))
        queue.add_after("a", delay)
        assert await taken(queue, 1) == [("a", 0.1)]
        queue.add_after("a", delay)
        assert queue.retry("b") == timedelta(milliseconds=100)
        assert await taken(queue, 2) == [("a", 0.2), ("b", 0.2)]

    run(main())
    # The retry of 5 milliseconds is logged if nothing was before.
    (record,) = caplog.records
    logged = delay if delay > timedelta(0) else timedelta(milliseconds=5)
    assert record.getMessage().startswith(f"shops: a delay of {logged} is raised to the shortest one, 0:00:00.100000")


def test_what_comes_later_may_come_now_too_and_then_comes_again_unless_unscheduled() -> None:
    async def main() -> None:
        queue: WorkQueue[str] = WorkQueue("q")
        for key in "ab":
            queue.add_after(key, 10 * SECOND)
            queue.add(key)
        queue.unschedule("b")
        assert await taken(queue, 3) == [("a", 0), ("b", 0), ("a", 10)]
        assert queue.later == 0

    run(main())


def test_a_key_that_fails_waits_longer_each_time_until_it_is_forgotten() -> None:
    async def main() -> None:
        queue: WorkQueue[str] = WorkQueue("q", delays=DELAYS)

        def retried(key: str) -> float:
            queue.unschedule(key)
            return queue.retry(key).total_seconds()

        assert [retried("a") for _ in range(8)] == [1, 2, 4, 8, 16, 32, 60, 60]
        assert queue.failures("a") == 8
        assert retried("b") == 1
        queue.forget("a")
        assert (retried("a"), queue.failures("a")) == (1, 1)

    run(main())


def test_a_failed_key_that_is_scheduled_earlier_than_its_backoff_comes_then() -> None:
    async def main() -> None:
        queue: WorkQueue[str] = WorkQueue("q", delays=FixedDelay(60 * SECOND))
        for key, delay in (("a", 5 * SECOND), ("b", 90 * SECOND)):
            queue.add_after(key, delay)
            assert queue.retry(key) == min(delay, 60 * SECOND)
        assert await taken(queue, 2) == [("a", 5), ("b", 60)]

    run(main())


def test_a_key_in_back_off_comes_at_once_when_it_is_added() -> None:
    """Something has changed, perhaps what it failed by; its failures still count."""

    async def main() -> None:
        queue: WorkQueue[str] = WorkQueue("q", delays=FixedDelay(60 * SECOND))
        queue.retry("a")
        queue.add("a")
        assert await taken(queue, 1) == [("a", 0)]
        assert queue.failures("a") == 1

    run(main())


@pytest.mark.parametrize("when", ["before", "after", "while it is worked on"])
def test_a_key_that_a_server_holds_back_comes_no_earlier_after_any_add(when: str) -> None:
    async def main() -> None:
        queue: WorkQueue[str] = WorkQueue("q", delays=DELAYS)
        queue.add("a")
        key = await queue.get()
        if when == "while it is worked on":
            queue.add("a")
        if when == "before":
            queue.done(key)
            queue.add("a")
        assert queue.retry("a", at_least=30 * SECOND) == 30 * SECOND
        if when != "before":
            queue.done(key)
        queue.add("a")
        queue.add_after("a", SECOND)
        queue.retry("a")
        assert await taken(queue, 1) == [("a", 30)]
        queue.add("a")
        assert await taken(queue, 1) == [("a", 30)]

    run(main())


def test_what_has_changed_overtakes_the_rest_but_not_for_ever() -> None:
    """Requeues starved what was there at the start; the same with retries in place of changes.

    https://github.com/kubernetes-sigs/controller-runtime/issues/3496
    """

    async def main() -> None:
        queue: WorkQueue[str] = WorkQueue("q")
        for number in range(3):
            queue.add(f"old-{number}", priority=Priority.UNCHANGED)
        queue.add("old-2")
        for number in range(25):
            queue.add(f"new-{number}")
        queue.add("new-0", priority=Priority.UNCHANGED)
        order = await drained(queue)
        assert order[:3] == ["old-2", "new-0", "new-1"]
        assert [order.index("old-0"), order.index("old-1")] == [10, 21]
        assert len(order) == 28

    run(main())


@given(st.lists(st.sampled_from(Priority), max_size=400))
def test_each_priority_gets_its_turn(added: list[Priority]) -> None:
    """Whatever waits: the first key of a lower priority is overtaken by at most eleven others in a row."""

    async def main() -> None:
        queue: WorkQueue[tuple[Priority, int]] = WorkQueue("q")
        for number, priority in enumerate(added):
            queue.add((priority, number), priority=priority)
        order = []
        while queue.depth:
            order.append(await queue.get())
        for priority in Priority:
            same = [number for one, number in order if one is priority]
            assert same == sorted(same)
            places = [-1, *(at for at, (one, _) in enumerate(order) if one is priority)]
            # One more than ten if both lower priorities have been overtaken ten times.
            assert all(later - earlier <= 12 for earlier, later in pairwise(places))
        firsts = {one: at for at, (one, _) in reversed([*enumerate(order)])}
        assert [*sorted(firsts, key=firsts.__getitem__)] == sorted(firsts, reverse=True)

    run(main())


def test_a_retry_comes_after_what_has_changed_and_before_what_has_not() -> None:
    async def main() -> None:
        queue: WorkQueue[str] = WorkQueue("q", delays=DELAYS)
        queue.add("failed")
        key = await queue.get()
        queue.retry(key)
        queue.done(key)
        queue.add_after("later", SECOND)
        await asyncio.sleep(2)
        queue.add("resynced", priority=Priority.UNCHANGED)
        queue.add("edited")
        assert {**queue.depths} == {0: 1, -50: 2, -100: 1}
        assert await drained(queue) == ["edited", "failed", "later", "resynced"]

    run(main())


@pytest.mark.parametrize(
    ("added", "order"),
    [
        pytest.param([Priority.UNCHANGED], ["b", "a"], id="unchanged"),
        pytest.param([Priority.UNCHANGED, Priority.CHANGED], ["a", "b"], id="changed after that"),
        pytest.param([Priority.CHANGED, Priority.UNCHANGED], ["a", "b"], id="changed before that"),
        pytest.param([Priority.SCHEDULED, Priority.UNCHANGED], ["b", "a"], id="scheduled"),
    ],
)
@pytest.mark.parametrize("runs", [True, False])
def test_what_is_added_again_keeps_its_priority(added: list[Priority], order: list[str], *, runs: bool) -> None:
    async def main() -> None:
        queue: WorkQueue[str] = WorkQueue("q")
        queue.add("a", priority=added[0])
        if runs:
            await queue.get()
        for priority in added:
            queue.add("a", priority=priority)
        if runs:
            queue.done("a")
        queue.add("b")
        assert await drained(queue) == order

    run(main())


def test_a_closed_queue_hands_out_nothing_and_takes_nothing() -> None:
    async def main() -> None:
        queue: WorkQueue[str] = WorkQueue("q")
        waiting = asyncio.create_task(queue.get())
        await asyncio.sleep(0)
        queue.close()
        with pytest.raises(QueueClosedError, match='queue "q" is closed'):
            await waiting
        queue.add("a")
        queue.add_after("a", SECOND)
        queue.retry("a")
        queue.retry("a", at_least=SECOND)
        assert (queue.depth, queue.later, queue.closed) == (0, 0, True)
        with pytest.raises(QueueClosedError):
            await queue.get()

    run(main())


def test_closing_forgets_what_waits_and_lets_what_runs_go_on() -> None:
    async def main() -> None:
        queue: WorkQueue[str] = WorkQueue("q")
        for key in "abc":
            queue.add(key)
        queue.add_after("d", SECOND)
        key = await queue.get()
        queue.add(key)
        queue.close()
        assert (queue.depth, queue.later, queue.running) == (0, 0, ("a",))
        queue.done(key)
        assert queue.depth == 0

    run(main())


@given(
    st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 5), st.integers(0, 3)), max_size=30), st.integers(1, 3)
)
def test_no_key_is_worked_on_twice_at_once_and_none_is_missed(adds: list[tuple[str, int, int]], workers: int) -> None:
    """Whenever keys are added, and however long each one takes: after the last add of a key, work on it begins."""

    async def main() -> None:
        queue: WorkQueue[str] = WorkQueue("q")
        at_work: Counter[str] = Counter()
        begun: dict[str, int] = {}
        added: dict[str, int] = {}
        takes = iter([takes for _, _, takes in adds])
        step = 0

        async def worker() -> None:
            nonlocal step
            while True:
                key = await queue.get()
                at_work[key] += 1
                assert at_work[key] == 1
                step += 1
                begun[key] = step
                await asyncio.sleep(next(takes, 1))
                at_work[key] -= 1
                queue.done(key)

        tasks = [asyncio.create_task(worker()) for _ in range(workers)]
        for key, wait, _ in adds:
            step += 1
            added[key] = step
            queue.add(key)
            await asyncio.sleep(wait)
        await asyncio.sleep(1000)
        assert {key: begun[key] > at for key, at in added.items()} == dict.fromkeys(added, True)
        assert not any(task.done() for task in tasks)
        for task in tasks:
            task.cancel()

    run(main())


def test_a_fixed_delay_ignores_the_failures() -> None:
    assert {FixedDelay(15 * SECOND).after(n) for n in (1, 2, 1000)} == {15 * SECOND}


def test_a_fixed_delay_must_be_positive() -> None:
    with pytest.raises(ConfigError, match="must be positive"):
        FixedDelay(0 * SECOND)
