"""Stretches of a run in which only the load changes: their syncs run together.

In a stretch no pod starts, becomes ready, fails or leaves, nothing waits in the queue, and no sync changes the
replicas. So what each sync reads follows from the load alone. The result is that of the syncs one by one.
"""

from bisect import bisect_left
from collections.abc import Callable, Sequence
from functools import partial
from itertools import accumulate
from typing import Final, NamedTuple

from ocf.simulation.engine.autoscaling import HPAController, Numbers
from ocf.simulation.engine.clock import NEVER
from ocf.simulation.engine.pipeline import Pipeline
from ocf.simulation.engine.rows import Table
from ocf.simulation.engine.stretches.calm import Calm
from ocf.simulation.engine.stretches.settled_syncs import SettledSyncs, Stay
from ocf.simulation.engine.stretches.shared import Shared
from ocf.simulation.engine.stretches.timetable import Page

__all__ = ["Stretch", "Stretches"]

_LONGEST_PAUSE: Final = 16
"""Most syncs before the next attempt, where the last ones found no stretch."""


class Stretch(NamedTuple):
    """A stretch that has run.

    Args:
        end: The instant before which everything has happened, in microseconds since the start.
        step: Position of the last step of the load.
    """

    end: int
    syncs: int
    step: int
    numbers: Numbers


class Stretches:
    """The stretches of a run.

    Args:
        shared: What runs with the same load share.
        pipeline: The metrics pipeline, with the pods and their queue.
        table: The rows of the run.
        report: Called with an instant now and then.
        period: Microseconds between two syncs.
        per_pod: Load units per second that one pod may serve.
    """

    __slots__ = (
        "_calm",
        "_is_first",
        "_pause",
        "_paused_until",
        "_period",
        "_pipeline",
        "_pods",
        "_queue",
        "_report",
        "_samples",
        "_settled",
        "_since",
        "_steps",
        "_table",
        "_timetable",
    )

    def __init__(
        self,
        shared: Shared,
        *,
        pipeline: Pipeline,
        table: Table,
        report: Callable[[int], object],
        period: int,
        per_pod: float,
    ) -> None:
        self._pods, self._queue, self._pipeline, self._table = pipeline.pods, pipeline.queue, pipeline, table
        self._report, self._period = report, period
        self._steps = shared.steps
        self._timetable = shared.timetable(period, per_pod)
        self._samples = shared.samples(pipeline.meters, pipeline.times, period)
        self._calm: Calm | None = None
        self._settled: SettledSyncs | None = None
        self._since = 0
        self._is_first = True
        self._pause = self._paused_until = 0

    def observe(self, now: int, rate: float) -> None:
        """Note whether the workload is calm from an instant on.

        Args:
            now: The instant in microseconds. Before the first call, the workload was long as it is then.
            rate: Offered load, in load units per second.
        """
        pods, calm = self._pods, self._calm
        capacity, ready = pods.capacity, pods.ready
        if not ready or rate > capacity or self._queue.length:
            self._calm = None
        elif calm is None or calm.capacity != capacity or calm.ready != ready:
            self._calm, self._since = Calm(capacity, ready), -NEVER if self._is_first else now
        self._is_first = False

    def run(self, now: int, limit: int, controller: HPAController, before: Numbers) -> Stretch | None:
        """Run the stretch that begins now.

        Args:
            now: The instant after which it begins, in microseconds.
            limit: An instant before which it ends: something else than the load changes there.
            controller: The HPA controller.
            before: The numbers of the last sync.

        Returns:
            The stretch; None if it would not have any sync.
        """
        calm, pods, pipeline = self._calm, self._pods, self._pipeline
        if calm is None or pods.unsettled or now < self._paused_until or not controller.may_count():
            return None
        limit = min(limit, pods.due, pipeline.available_until(now))
        first = (now // self._period + 1) * self._period
        times = pipeline.times
        # The window of the first sync must not reach back to where the workload was not calm.
        if first >= limit or times.begin(times.readable(first)) < self._since:
            return None
        found = self._run(now + 1, limit, controller, before)
        if found is not None:
            rate = self._steps.rates[found.step]
            self._queue.change(found.end, rate=rate, capacity=calm.capacity)
            self._resume(found.end, rate, calm)
        return found

    def _run(self, begin: int, limit: int, controller: HPAController, before: Numbers) -> Stretch | None:
        calm, count, numbers = self._calm, 0, before
        settled = self._settled
        if settled is None or settled.controller is not controller:
            settled = self._settled = SettledSyncs(controller, self._pipeline)
        assert calm is not None  # noqa: S101 (checked by the caller)
        while begin < limit:
            page = self._timetable.page(begin)
            limit = _served_until(page, begin, limit, calm.capacity)
            first, last = bisect_left(page.syncs, begin), bisect_left(page.syncs, limit)
            values = self._samples.of_syncs(page.number, page.syncs, calm)
            syncs = page.syncs[first:last]
            stay = settled.run(syncs, [each[first:last] for each in values])
            done = len(stay.wanted)
            if done < len(syncs):
                limit = syncs[done]
            if not done and not count:
                if syncs:
                    # An attempt without a stretch costs more than a sync.
                    self._pause = min(2 * self._pause + 1, _LONGEST_PAUSE)
                    self._paused_until = limit + self._pause * self._period
                return None
            rows = slice(bisect_left(page.times, begin), bisect_left(page.times, limit))
            self._append(page, rows, stay, replicas=controller.replicas, before=numbers)
            if done:
                numbers = stay.ratios[-1], stay.wanted[-1], stay.held[-1], controller.replicas
            count += done
            begin = page.end
            self._report(min(begin, limit))
        self._pause = 0
        return Stretch(limit, count, self._steps.before(limit), numbers)

    def _resume(self, now: int, rate: float, calm: Calm) -> None:
        """Let the pipeline continue where everything before an instant has been measured."""
        times = self._pipeline.times
        following = -(-now // times.period)
        scrapes = self._samples.measured(times.readable(now - 1), following - 1, calm)
        restore = partial(self._samples.restore, calm=calm, begin=times.begin(following), end=now)
        self._pipeline.resume(now, rate, scrapes, restore)

    def _append(self, page: Page, rows: slice, stay: Stay, *, replicas: int, before: Numbers) -> None:
        pods, loads, synced = self._pods, page.loads[rows], page.synced[rows]
        if not loads:
            return
        desired = [replicas] * len(stay.wanted)
        numbers: Sequence[Sequence[float]] = (stay.ratios, stay.wanted, stay.held, desired)
        if len(desired) < len(loads):
            # Between two syncs the numbers of the earlier one hold.
            last = list(accumulate(synced))
            longer = [[first, *each] for first, each in zip(before, numbers, strict=True)]
            numbers = [[each[sync] for sync in last] for each in longer]
        parts = (
            page.seconds[rows],
            loads,
            pods.capacity,
            loads,
            0.0,
            0.0,
            page.demands[rows],
            replicas,
            pods.count - pods.ready,
            pods.ready,
            len(pods.terminating),
            *numbers,
            synced,
        )
        self._table.extend(parts, len(loads))


def _served_until(page: Page, begin: int, limit: int, capacity: float) -> int:
    """Return the instant until which all load is served: at most the given one."""
    if page.highest > capacity:
        rows = range(bisect_left(page.times, begin), bisect_left(page.times, limit))
        return next((page.times[row] for row in rows if page.loads[row] > capacity), limit)
    return limit
