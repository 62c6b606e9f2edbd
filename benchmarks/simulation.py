"""Simulations of an HPA.

The load is a generated trace of weeks at 15 s, with days, weekends and noise, for which the HPA needs up to 50 pods. It
changes at each sync, so that nothing can be reused that only repeats. A sweep tries many settings over one day; its
cost is that of one setting, and its memory must not grow with their number.
"""

import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache, partial
from typing import Any, Final

from benchmarks.figures import Case, Count, Suite
from benchmarks.timer import each_call, once
from ocf.autoscaling.algorithm import Autoscaler
from ocf.simulation import LoadSeries, Scenario, SimulationResult, load_series, parse_scenario
from ocf.simulation.engine.run import Run

__all__ = ["small_suite", "suite"]

_SECOND: Final = 1_000_000_000
_TEXT: Final = """
hpa:
  apiVersion: autoscaling/v2
  kind: HorizontalPodAutoscaler
  metadata: {name: web}
  spec:
    scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}
    minReplicas: 2
    maxReplicas: 500
    metrics: [{type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 60}}}]
workload: {capacity: 100, replicas: 10, requests: {cpu: 500m}, startup: {mean: 2s, spread: 1s}}
load:
- {type: Weekly, rates: {"03:00": 300, "12:00": 2400, "20:00": 1500}, days: {saturday: 0.6, sunday: 0.5}, step: 15s}
- {type: Noise, share: 0.1, step: 15s}
duration: LENGTH
"""
_DAY: Final = 86_400
_MANY: Final = 20
_FEW: Final = 2
_MEMORY_SHARE: Final = 1.2


@contextmanager
def suite() -> Iterator[Suite]:
    """Give the cases."""
    yield _cases(22 * _DAY, _DAY)


@contextmanager
def small_suite() -> Iterator[Suite]:
    """Give the cases with four hours in place of weeks."""
    yield _cases(_DAY // 6, _DAY // 6)


def _cases(weeks: int, day: int) -> Suite:
    return [
        Case(
            name="simulation.weeks",
            what=f"{weeks // 15} syncs of an HPA with up to 50 pods",
            measure=once(each_call(partial(_simulated, weeks))),
            limit=2 * _SECOND,
        ),
        Case(
            name="simulation.day_in_full",
            what="each of a day's syncs as `decide` on a snapshot of all pods",
            measure=once(each_call(partial(_simulated, day, full=True))),
        ),
        Case(
            name="simulation.day",
            what="one setting of a sweep over a day; 1 000 of them take 30 s on two cores",
            measure=each_call(partial(_simulated, day)),
            limit=0.06 * _SECOND,
            against="simulation.day_in_full",
        ),
        Case(
            name="simulation.day_of_500_pods",
            what="the same with ten times the load",
            measure=each_call(partial(_simulated, day, factor=10)),
            against="simulation.day",
        ),
        Count(
            name="simulation.memory_of_2_settings",
            what="peak bytes of a sweep",
            value=partial(_peak, day, _FEW),
        ),
        Count(
            name="simulation.memory_of_20_settings",
            what="peak bytes of a sweep",
            value=partial(_peak, day, _MANY),
            against="simulation.memory_of_2_settings",
            share=_MEMORY_SHARE,
        ),
    ]


def _simulated(seconds: int, *, full: bool = False, factor: int = 1, target: int = 60) -> SimulationResult:
    scenario, load = _inputs(seconds, factor)
    manifest: Any = scenario.hpa
    manifest["spec"]["metrics"][0]["resource"]["target"]["averageUtilization"] = target
    return Run(scenario, load, Autoscaler.of(manifest), full=full).run()


def _peak(seconds: int, settings: int) -> int:
    """Return the peak memory of a sweep that keeps the number of actions of each setting."""
    _inputs(seconds, 1)
    tracemalloc.start()
    try:
        for number in range(settings):
            _simulated(seconds, target=50 + number)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@cache
def _inputs(seconds: int, factor: int) -> tuple[Scenario, LoadSeries]:
    scenario = parse_scenario(_TEXT.replace("LENGTH", f"{seconds}s"))
    load = load_series(scenario)
    return scenario, LoadSeries.of(zip(load.times, (rate * factor for rate in load.rates), strict=True))
