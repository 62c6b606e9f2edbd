"""Simulations of an HPA, alone and with node groups.

The load is a generated trace of weeks at 15 s, with days, weekends and noise, for which the HPA needs up to 50 pods. It
changes at each sync, so that nothing can be reused that only repeats. A sweep tries many settings over one day; its
cost is that of one setting, and its memory must not grow with their number. With node groups, up to 500 pods run on up
to 50 nodes: also without stabilization and with interruptions, so that pods and nodes change at nearly each sync.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache, partial
from typing import Any, Final

from benchmarks.figures import Case, Count, Suite
from benchmarks.sweep import swept
from benchmarks.timer import each_call, once
from ocf.autoscaling.algorithm import Autoscaler
from ocf.simulation import LoadSeries, Scenario, load_series, parse_scenario
from ocf.simulation.engine.run import Place, Run
from ocf.simulation.engine.together import nodes_of, run_together
from ocf.simulation.report import Reported, to_html
from ocf.simulation.result import SimulationResult

__all__ = ["inputs", "small_suite", "suite"]

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
_ON_NODES: Final = f"""{_TEXT}
nodeGroups:
- name: workers
  minNodes: 2
  maxNodes: 50
  instanceTypes: [{{name: small, cpu: 5, memory: 16Gi, price: 0.2}}]
"""
_RESTLESS: Final = (
    _ON_NODES.replace("minReplicas: 2", "minReplicas: 2\n    behavior: {scaleDown: {stabilizationWindowSeconds: 0}}")
    + "  spot: {interruptionsPerHour: 0.2}\n"
)
_DAY: Final = 86_400
_MEMORY_SHARE: Final = 1.2


@contextmanager
def suite() -> Iterator[Suite]:
    """Give the cases."""
    yield _cases(22 * _DAY, _DAY, settings=(100, 1000))


@contextmanager
def small_suite() -> Iterator[Suite]:
    """Give the cases with four hours in place of weeks."""
    yield _cases(_DAY // 6, _DAY // 6, settings=(10, 20))


def _cases(weeks: int, day: int, *, settings: tuple[int, int]) -> Suite:
    few, many = settings
    return [
        Case(
            name="simulation.weeks",
            what=f"{weeks // 15} syncs of an HPA with up to 50 pods",
            measure=once(each_call(partial(_simulated, weeks))),
            limit=2 * _SECOND,
        ),
        Case(
            name="simulation.weeks_with_report",
            what="the same with all measures and the page",
            measure=once(each_call(partial(_reported, weeks))),
            limit=5 * _SECOND,
        ),
        Case(
            name="simulation.day_in_full",
            what="each of a day's syncs as `decide` on a snapshot of all pods",
            measure=once(each_call(partial(_simulated, day, full=True))),
        ),
        Case(
            name="simulation.day",
            what="one setting over a day, without processes",
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
        Case(
            name="simulation.day_with_nodes",
            what="the same, on up to 50 nodes",
            measure=once(each_call(partial(_simulated, day, factor=10, text=_ON_NODES))),
            limit=10 * _SECOND,
        ),
        Case(
            name="simulation.restless_day_with_nodes",
            what="the same without stabilization, on nodes that are interrupted every five hours",
            measure=once(each_call(partial(_simulated, day, factor=10, text=_RESTLESS))),
            limit=10 * _SECOND,
        ),
        Case(
            name="simulation.sweep",
            what=f"`tune` with {many} settings over {day // 3600} h in two processes: CPU time of all, shared by two",
            measure=once(lambda _: swept(many, day).nanoseconds),
            limit=30 * _SECOND,
        ),
        Count(
            name="simulation.memory_of_few_settings",
            what=f"peak bytes of the same with {few} settings, main process and a worker",
            value=lambda: swept(few, day).peak,
        ),
        Count(
            name="simulation.memory_of_many_settings",
            what=f"peak bytes of the same with {many} settings",
            value=lambda: swept(many, day).peak,
            against="simulation.memory_of_few_settings",
            share=_MEMORY_SHARE,
        ),
    ]


def _simulated(seconds: int, *, full: bool = False, factor: int = 1, text: str = _TEXT) -> SimulationResult:
    scenario, load = inputs(seconds, factor, text)
    manifest: Any = scenario.hpa
    autoscaler = Autoscaler.of(manifest)
    nodes = nodes_of([scenario], [autoscaler], full=full)
    run = Run(scenario, load, autoscaler, full=full, place=Place(nodes))
    run_together([run], nodes)
    return run.result()


def _reported(seconds: int) -> str:
    scenario, _ = inputs(seconds, 1)
    return to_html([Reported.of(_simulated(seconds), scenario)])


@cache
def inputs(seconds: int, factor: int, text: str = _TEXT) -> tuple[Scenario, LoadSeries]:
    """Return the scenario and its load.

    Args:
        seconds: Length of the load.
        factor: Factor of its height.
        text: The scenario.
    """
    scenario = parse_scenario(text.replace("LENGTH", f"{seconds}s"))
    load = load_series(scenario)
    return scenario, LoadSeries.of(zip(load.times, (rate * factor for rate in load.rates), strict=True))
