"""Small problems for searches."""

import pickle
from collections.abc import Callable
from concurrent.futures import Executor, Future
from random import Random
from typing import Any, Final

from ocf.simulation import load_series, parse_scenario
from ocf.simulation.measures import parse_expression
from ocf.simulation.tuning import LoadTrace, Problem, Target, parse_objectives, parse_setting

UTILIZATION: Final = "spec.metrics[0].resource.target.averageUtilization"
WINDOW: Final = "spec.behavior.scaleDown.stabilizationWindowSeconds"
STEADY: Final = "{type: Steady, rate: 45}"
JUMP: Final = "{type: Steps, steps: [{at: 0s, rate: 10}, {at: 5m, rate: 80}, {at: 12m, rate: 10}]}"
SCENARIO: Final = """\
name: web
hpa:
  apiVersion: autoscaling/v2
  kind: HorizontalPodAutoscaler
  metadata: {name: web, namespace: shop}
  spec:
    scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}
    minReplicas: 2
    maxReplicas: 20
    metrics:
    - type: Resource
      resource: {name: cpu, target: {type: Utilization, averageUtilization: 60}}
workload: {capacity: 10, requests: {cpu: 100m}}
load: LOAD
duration: 20m
"""


def trace(load: str = JUMP, *, name: str = "web", text: str = SCENARIO) -> LoadTrace:
    """Return a trace of 20 minutes."""
    scenario = parse_scenario(text.replace("LOAD", load))
    return LoadTrace(name=name, scenario=scenario, load=load_series(scenario))


def problem(*settings: str, traces: tuple[LoadTrace, ...] = ()) -> Problem:
    """Return a problem, by default with 4 targets and 3 lower bounds."""
    texts = settings or (f"{UTILIZATION}=40..85 step 15", "spec.minReplicas=1..5 step 2")
    return Problem(traces=traces or (trace(),), settings=tuple(map(parse_setting, texts)))


def target(*objectives: str, require: tuple[str, ...] = ()) -> Target:
    """Return a target, by default with the usual objectives."""
    return Target(objectives=parse_objectives(objectives), requirements=tuple(map(parse_expression, require)))


class Pickling(Executor):
    """Runs calls in another order than that in which they are submitted, with copies of what they get and return."""

    def __init__(self, seed: int = 0) -> None:
        self._random = Random(seed)  # noqa: S311 (not a secret)
        self._waiting: list[tuple[Future[Any], bytes]] = []
        self.calls = 0

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = _Late(self)
        self._waiting.append((future, pickle.dumps((fn, args, kwargs))))
        return future

    def finish(self) -> None:
        """Run all calls that wait."""
        self._random.shuffle(self._waiting)
        for future, call in self._waiting:
            self.calls += 1
            function, args, kwargs = pickle.loads(call)  # noqa: S301 (ours)
            future.set_result(pickle.loads(pickle.dumps(function(*args, **kwargs))))  # noqa: S301 (ours)
        self._waiting.clear()


class _Late(Future[Any]):
    """A result for which the executor runs its calls."""

    def __init__(self, executor: Pickling) -> None:
        super().__init__()
        self._executor = executor

    def result(self, timeout: float | None = None) -> Any:
        self._executor.finish()
        return super().result(timeout)
