"""The instants of a run that do not depend on what the autoscaler decides: its syncs, and the steps of the load."""

from array import array
from bisect import bisect_left
from typing import Final, NamedTuple

from ocf.simulation.arrays import FloatArray, IntArray
from ocf.simulation.engine.clock import SECOND
from ocf.simulation.engine.load_steps import LoadSteps
from ocf.simulation.engine.rows import demand_of

__all__ = ["SYNCS", "Page", "Timetable"]

SYNCS: Final = 64
"""Number of syncs of a page."""
# A limit of the memory; a page that is needed again is made again.
_MOST_PAGES: Final = 512


class Page(NamedTuple):
    """A part of the timetable: a row for each instant.

    Args:
        loads: Load units per second from each instant on.
        synced: 1 for each instant that is a sync, otherwise 0.
    """

    number: int
    begin: int
    end: int
    times: IntArray
    seconds: FloatArray
    loads: FloatArray
    demands: IntArray
    synced: IntArray
    syncs: IntArray
    highest: float


class Timetable:
    """The instants of syncs and of load steps, in pages that are made on first use.

    Args:
        period: Microseconds between two syncs.
        per_pod: Load units per second that one pod may serve.

    Example:
        >>> from ocf.simulation.load import LoadSeries
        >>> steps = LoadSteps(LoadSeries.of([(0, 5), (20, 12)]))
        >>> page = Timetable(steps, 15 * SECOND, 10.0).page(0)
        >>> list(page.seconds[:4]), list(page.loads[:4]), list(page.demands[:4]), list(page.synced[:4])
        ([0.0, 15.0, 20.0, 30.0], [5.0, 5.0, 12.0, 12.0], [1, 1, 2, 2], [1, 1, 0, 1])
    """

    __slots__ = ("_pages", "_per_pod", "_period", "_steps")

    def __init__(self, steps: LoadSteps, period: int, per_pod: float) -> None:
        self._steps = steps
        self._period = period
        self._per_pod = per_pod
        self._pages: dict[int, Page] = {}

    def page(self, now: int) -> Page:
        """Return the page of an instant."""
        number = now // (self._period * SYNCS)
        page = self._pages.get(number)
        if page is None:
            if len(self._pages) >= _MOST_PAGES:
                self._pages.clear()
            page = self._pages[number] = self._made(number)
        return page

    def _made(self, number: int) -> Page:
        length = self._period * SYNCS
        begin, end = number * length, (number + 1) * length
        syncs, begins = array("q", range(begin, end, self._period)), self._steps.begins
        first, last = bisect_left(begins, begin), bisect_left(begins, end)
        steps = begins[first:last]
        times, rates = syncs, self._steps.rates[first:last]
        if steps != syncs:
            times = array("q", sorted({*syncs, *steps}))
            rates = array("d", [self._steps.rates[self._steps.at(time)] for time in times])
        # No load is 0.0, also where a trace has -0.0.
        loads = array("d", [rate or 0.0 for rate in rates])
        return Page(
            number=number,
            begin=begin,
            end=end,
            times=times,
            seconds=array("d", [time / SECOND for time in times]),
            loads=loads,
            demands=array("q", [demand_of(rate, self._per_pod) for rate in loads]),
            synced=array("q", [time % self._period == 0 for time in times]),
            syncs=syncs,
            highest=max(loads),
        )
