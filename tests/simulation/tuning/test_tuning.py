"""Searches: the best settings are found, and the result depends on the inputs only."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import BrokenExecutor, Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path
from typing import Any, Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ocf.errors import ConfigError
from ocf.simulation import load_series, parse_scenario
from ocf.simulation.tuning import LoadTrace, Method, Target, parse_objectives, parse_setting, tune
from ocf.simulation.tuning import Problem as TuningProblem
from ocf.simulation.tuning.across import Across
from ocf.simulation.tuning.objectives import dominates
from ocf.simulation.tuning.samplers import SamplerName
from ocf.simulation.tuning.tables import verdict_lines
from ocf.simulation.tuning.tuned import Tuned
from tests.simulation.tuning.cases import (
    JUMP,
    SCENARIO,
    STEADY,
    UTILIZATION,
    WINDOW,
    Pickling,
    problem,
    target,
    trace,
)

ROOT: Final = Path(__file__).parents[3]
# The usage of a pod is at most its request, which is within the tolerance of a target of 95 %: never a scale-up.
FIXED: Final = SCENARIO.replace("averageUtilization: 60", "averageUtilization: 95")
LOADS: Final = tuple(enumerate((20, 20, 20, 50)))
OPTIMISED: Final = Method(sampler=SamplerName.NSGA2, trials=24, batch=8)
MANY: Final = (f"{UTILIZATION}=40..90", "spec.minReplicas=1..9", f"{WINDOW}=0..600 step 30")


def test_the_fewest_pods_that_serve_a_steady_load_are_found() -> None:
    """By hand: 45 requests per second need 5 pods of 10, and 5 pods for 20 minutes are 5/3 pod-hours."""
    found = tune(
        problem("spec.minReplicas=3..8", f"{WINDOW}=0|60", traces=(trace(STEADY, text=FIXED),)),
        target("pod_hours", require=("overload_time < 1%",)),
    )
    assert found.is_feasible
    assert found.winner.values["spec.minReplicas"] == 5
    assert found.winner.measures["pod_hours"] == pytest.approx(5 / 3)
    assert found.current.unmet == ("overload_time < 1%",)
    assert found.runner_up is not None
    assert found.runner_up.values["spec.minReplicas"] == 6
    assert [(each.path, each.value, each.is_allowed) for each in found.effects] == [
        ("spec.minReplicas", 4, False),
        ("spec.minReplicas", 6, True),
        (WINDOW, 60, True),
    ]
    assert [each.weight for each in found.effects] == [pytest.approx(0.2), pytest.approx(0.2), 0]
    assert found.hpa["spec"]["minReplicas"] == 5


@pytest.mark.parametrize("sampler", [SamplerName.TPE, SamplerName.NSGA2, SamplerName.RANDOM])
def test_an_optimiser_finds_it_too(sampler: SamplerName) -> None:
    found = tune(
        problem("spec.minReplicas=3..20", traces=(trace(STEADY, text=FIXED),)),
        target("pod_hours", require=("overload_time < 1%",)),
        Method(sampler=sampler, trials=12, batch=4, seed=1),
    )
    assert found.winner.values["spec.minReplicas"] == 5


def test_a_winner_among_the_current_settings_is_kept() -> None:
    found = tune(problem("spec.minReplicas=3..4"), target("pod_hours"))
    assert found.is_current
    assert (found.winner.values, found.effects) == ({"spec.minReplicas": 2}, ())
    assert found.hpa == problem().traces[0].hpa


def test_requirements_that_no_candidate_meets_give_the_one_that_is_closest() -> None:
    found = tune(
        problem("spec.minReplicas=2..4", traces=(trace(STEADY, text=FIXED),)),
        target("pod_hours", require=("overload_time < 1%", "backlog_max < 100")),
    )
    assert not found.is_feasible
    assert found.winner.unmet == ("overload_time < 1%", "backlog_max < 100")
    assert found.winner.values == {"spec.minReplicas": 4}


def test_invalid_combinations_are_counted_and_never_win() -> None:
    narrow = trace(text=SCENARIO.replace("maxReplicas: 20", "maxReplicas: 4"))
    several = problem("spec.minReplicas=1..6", "spec.maxReplicas=3..4", traces=(narrow,))
    found = tune(several, target("ready_mean:max"))
    assert found.invalid == 5  # 4 > 3, 5 > 3, 6 > 3, 5 > 4, 6 > 4
    assert all(each.values["spec.minReplicas"] <= each.values["spec.maxReplicas"] for each in found.front)
    assert found.winner.values == {"spec.minReplicas": 4, "spec.maxReplicas": 4}
    changed = [(each.value, bool(each.measures), each.is_allowed) for each in found.effects]
    assert sorted(changed) == [(3, False, False), (3, True, True), (5, False, False)]


@settings(max_examples=6)
@given(seed=st.integers(0, 99), bound=st.floats(0, 0.6), sampler=st.sampled_from([*SamplerName]))
def test_the_front_has_no_dominated_member_and_the_winner_is_allowed(
    seed: int, bound: float, sampler: SamplerName
) -> None:
    wanted = target("overload_time", "pod_hours", "flaps", require=(f"overload_time <= {bound}",))
    found = tune(problem(), wanted, Method(sampler=sampler, trials=6, batch=3, seed=seed))
    losses = [each.losses(found.objectives) for each in (*found.front, *found.others)]
    assert not any(dominates(other, member) for other in losses for member in losses[: len(found.front)])
    if found.is_feasible:
        assert not found.winner.unmet
        assert all(each.measures["overload_time"] <= bound for each in found.front)
    assert found.winner.values == found.front[0].values


def test_the_same_seed_gives_the_same_front_and_another_one_other_candidates() -> None:
    one, same, other = (
        tune(problem(*MANY), target(), Method(sampler=SamplerName.TPE, trials=10, batch=5, seed=seed))
        for seed in (1, 1, 2)
    )
    assert one == same
    assert {each.candidate for each in one.others} != {each.candidate for each in other.others}


@pytest.mark.parametrize("sampler", [SamplerName.GRID, SamplerName.NSGA2, SamplerName.TPE])
def test_an_executor_of_any_order_gives_the_result_of_one_thread(sampler: SamplerName) -> None:
    method = Method(sampler=sampler, trials=12, batch=4)
    alone = tune(problem(), target(), method)
    pickling = Pickling(seed=3)
    assert tune(problem(), target(), method, executor=pickling) == alone
    assert pickling.calls >= 12 or sampler is not SamplerName.GRID
    with ThreadPoolExecutor(3) as threads:
        assert tune(problem(), target(), method, executor=threads) == alone


def test_processes_give_the_result_of_one_thread() -> None:
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as processes:
        assert tune(problem(), target(), executor=processes) == tune(problem(), target())


def test_a_cluster_of_dask_gives_the_result_of_one_thread() -> None:
    distributed = pytest.importorskip("distributed", reason="needs the extra dask")
    settings = {"n_workers": 1, "threads_per_worker": 2, "processes": False, "dashboard_address": None}
    with distributed.LocalCluster(**settings) as cluster, distributed.Client(cluster) as client:
        assert tune(problem(), target(), executor=client.get_executor()) == tune(problem(), target())


def test_the_winner_is_the_one_of_several_traces_together() -> None:
    """By hand: one load needs 3 pods and the other one 5, so 5 are the fewest that serve both."""
    traces = tuple(trace(f"{{type: Steady, rate: {rate}}}", name=str(rate), text=FIXED) for rate in (25, 45))
    found = tune(problem("spec.minReplicas=2..6", traces=traces), target("pod_hours", require=("overload_time < 1%",)))
    assert found.winner.values == {"spec.minReplicas": 5}
    assert [each["overload_time"] for each in found.winner.searched] == [0, 0]
    assert found.traces == ("25", "45")


@pytest.mark.parametrize(
    ("across", "missing"), [pytest.param(Across.MEAN, 2, id="mean"), pytest.param(Across.WORST, 3, id="worst")]
)
def test_objectives_of_several_traces_are_their_mean_or_the_worst_of_them(across: Across, missing: int) -> None:
    """By hand: one load needs 3 pods and the other one 5, of which 2 are there: 1 and 3 are missing."""
    traces = tuple(trace(f"{{type: Steady, rate: {rate}}}", name=str(rate), text=FIXED) for rate in (25, 45))
    found = tune(
        problem("spec.minReplicas=2..4", traces=traces),
        Target(objectives=parse_objectives(["missing_pods", "pod_hours"]), across=across),
        Method(holdout=0.5),
    )
    assert found.current.measures["missing_pods"] == found.current.held_out_measures["missing_pods"] == missing
    current = next(each for each in (*found.front, *found.others) if each.candidate == (0,) or each.candidate is None)
    assert current.measures["missing_pods"] == missing


def test_settings_that_are_best_on_average_may_not_be_the_best_in_the_worst_trace() -> None:
    """By hand: three loads need 2 pods, and one needs 5; pods that are too many or too few count all the time.

    With n pods, the deviation is hypot((n - 2) / 2, 1) where 2 are needed and more are there, hypot((5 - n) / 5, 1)
    where 5 are needed, and 0 where all are needed: the mean is least for 2 pods, and the worst is for 3.
    """
    traces = tuple(trace(f"{{type: Steady, rate: {rate}}}", name=str(number), text=FIXED) for number, rate in LOADS)
    winners = [
        tune(
            problem("spec.minReplicas=1..9", traces=traces),
            Target(objectives=parse_objectives(["deviation"]), across=across),
        ).winner.values["spec.minReplicas"]
        for across in Across
    ]
    assert winners == [2, 3]


def test_thresholds_of_node_groups_are_searched_for_the_cost() -> None:
    """By hand: half of the pods leave two nodes that are half empty, of which one goes if the threshold allows it."""
    text = SCENARIO.replace("maxReplicas: 20", "maxReplicas: 8").replace("minReplicas: 2", "minReplicas: 4")
    text = text.replace("cpu: 100m", "cpu: 1") + NODES
    falling = "{type: Steps, steps: [{at: 0s, rate: 45}, {at: 2m, rate: 20}]}"
    group = "nodeGroups[0].scaleDown.cpuThreshold"
    found = tune(
        problem(f"{group}=10|60", traces=(trace(falling, text=text),)), target("node_hours", "cost"), Method(holdout=0)
    )
    assert found.winner.values == {group: 60}
    assert found.winner.measures["cost"] < found.current.measures["cost"]


NODES: Final = """\
controller: {downscaleStabilization: 30s}
nodeGroups:
- name: workers
  maxNodes: 5
  initialNodes: 2
  instanceTypes: [{name: small, cpu: 4, memory: 8Gi, price: 1}]
  boot: {mean: 30s}
  scaleDown: {cpuThreshold: 10, duration: 1m, cooldown: 1m}
"""


def test_the_cooldown_and_the_threshold_of_an_activator_are_searched() -> None:
    """By hand: two peaks are six minutes apart, so that a cooldown of ten minutes has pods for the second one."""
    metric = "{type: External, external: {metric: {name: jobs}, target: {type: AverageValue, averageValue: 5}}}"
    text = SCENARIO.replace("minReplicas: 2", "minReplicas: 1").replace(
        "cpu: 100m}", "cpu: 100m}, signals: {jobs: {source: queue}}"
    )
    begin = text.index("    - type: Resource")
    text = f"{text[:begin]}    - {metric}\n{text[text.index('workload:') :]}activator: {{}}\n"
    peaks = "[{type: Spike, at: 2m, peak: 20, hold: 1m}, {type: Spike, at: 8m, peak: 20, hold: 1m}]"
    settings = ("activator.cooldownPeriod=1m|10m", "activator.activationThresholds.jobs=0|10000")
    found = tune(problem(*settings, traces=(trace(peaks, text=text),)), target("overload_time"), Method(holdout=0))
    assert found.winner.values == {"activator.cooldownPeriod": "10m", "activator.activationThresholds.jobs": 0}
    least = tune(problem(*settings, traces=(trace(peaks, text=text),)), target("pod_hours"), Method(holdout=0))
    assert least.winner.values["activator.activationThresholds.jobs"] == 10_000


def test_the_held_out_part_shows_a_winner_that_is_worse_there() -> None:
    """The load jumps only after the part that is searched, in which fewer pods are better."""
    late = "{type: Steps, steps: [{at: 0s, rate: 15}, {at: 16m, rate: 45}]}"
    text = FIXED.replace("minReplicas: 2", "minReplicas: 5")
    wanted = target("pod_hours", require=("overload_time < 1%",))
    found = tune(problem("spec.minReplicas=2..4", traces=(trace(late, text=text),)), wanted)
    assert found.winner.values == {"spec.minReplicas": 2}
    assert (found.winner.unmet, found.winner.unmet_held_out) == ((), ("overload_time < 1%",))
    assert found.is_worse_when_held_out
    whole = tune(problem("spec.minReplicas=2..4", traces=(trace(late, text=text),)), wanted, Method(holdout=0))
    assert (whole.is_current, whole.winner.held_out, whole.is_worse_when_held_out) == (True, (), False)


def test_a_winner_that_makes_overload_worse_is_reported_with_the_requirement_that_prevents_it() -> None:
    """By hand: five pods serve the load, with three it waits all the time."""
    text = FIXED.replace("minReplicas: 2", "minReplicas: 5")
    searched = problem("spec.minReplicas=3..8", traces=(trace(STEADY, text=text),))
    cheap = tune(searched, target("pod_hours"))
    (warning,) = (line for line in verdict_lines(cheap) if "requirement" in line)
    assert cheap.worse_overload == ("overload_time",)
    assert warning == (
        "No requirement limits the overload time, and the winner makes it worse: 100 % instead of 0 %."
        " The requirement `overload_time <= 0%` keeps it as good as it is."
    )

    careful = tune(searched, target("pod_hours", require=(warning.split("`")[1],)))
    assert (careful.winner.values, careful.worse_overload) == ({"spec.minReplicas": 5}, ())
    assert not any("No requirement limits" in line for line in verdict_lines(careful))


@given(st.sampled_from([20, 30, 45, 60]), st.integers(2, 8))
@settings(max_examples=settings().max_examples // 4)
def test_the_requirement_that_is_advised_is_met_by_the_current_settings(rate: int, fewest: int) -> None:
    text = SCENARIO.replace("minReplicas: 2", f"minReplicas: {fewest}")
    load = f"{{type: Steps, steps: [{{at: 0s, rate: 15}}, {{at: 5m, rate: {rate}}}, {{at: 15m, rate: 10}}]}}"
    searched = problem(
        "spec.minReplicas=2..8 step 2", f"{UTILIZATION}=50..95 step 15", traces=(trace(load, text=text),)
    )
    found = tune(searched, target("pod_hours"))
    advised = [line.split("`")[1] for line in verdict_lines(found) if line.startswith("No requirement")]
    if advised:
        limited = tune(searched, target("pod_hours", require=tuple(advised)))
        assert (limited.is_feasible, limited.current.unmet, limited.worse_overload) == (True, (), ())
        for name in found.worse_overload:
            assert limited.winner.measures[name] <= found.winner.measures[name]


@pytest.mark.parametrize(
    ("objectives", "error"),
    [
        pytest.param("cost", "web: cost: there are no prices: add", id="prices"),
        pytest.param("node_hours", "web: node_hours: the scenario has no node groups", id="nodes"),
        pytest.param("late_share", "web: late_share: there is no objective for the latency: add", id="latency"),
    ],
)
def test_a_measure_that_the_scenario_does_not_define_is_rejected(objectives: str, error: str) -> None:
    with pytest.raises(ConfigError, match=error):
        tune(problem(), target(objectives))


def test_a_load_that_is_never_served_has_no_latency() -> None:
    silent = trace("{type: Steps, steps: [{at: 0s, rate: 0}, {at: 19m, rate: 9}]}")
    with pytest.raises(ConfigError, match=r"give no latency_p95: no load was served in the time that is searched"):
        tune(problem(traces=(silent,)), target("latency_p95"))


def test_a_grid_that_is_too_large_is_rejected() -> None:
    large = problem("spec.minReplicas=1..999", f"{WINDOW}=0..999")
    with pytest.raises(ConfigError, match="the grid has 999000 combinations, at most 100000 are allowed"):
        tune(large, target(), Method(sampler=SamplerName.GRID))


@pytest.mark.parametrize("method", [{"trials": 0}, {"batch": 0}, {"holdout": 1.0}, {"holdout": -0.1}])
def test_numbers_out_of_range_are_rejected(method: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=next(iter(method))):
        Method(**method)


def test_progress_rises_to_the_number_that_is_planned() -> None:
    seen: list[tuple[int, int]] = []
    tune(problem(), target(), progress=lambda done, planned: seen.append((done, planned)))
    assert seen[0] == (1, 13)
    assert [done for done, _ in seen] == sorted(done for done, _ in seen)
    assert seen[-1] == (13, 13)


class Stops(Executor):
    """Fails after some calls."""

    def __init__(self, calls: int, error: BaseException) -> None:
        self.calls = calls
        self._error = error

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        self.calls -= 1
        if self.calls < 0:
            future.set_exception(self._error)
        else:
            future.set_result(fn(*args, **kwargs))
        return future


def test_a_worker_that_ends_is_an_error_and_the_search_goes_on_later(tmp_path: Path) -> None:
    state = tmp_path / "state.jsonl"
    with pytest.raises(ConfigError, match=r"a worker ended unexpectedly, .*; 9 evaluations are known"):
        tune(problem(), target(), executor=Stops(9, BrokenExecutor("killed")), state=state)
    rest = Stops(99, BrokenExecutor("killed"))
    found = tune(problem(), target(), executor=rest, state=state)
    assert found == tune(problem(), target())
    assert 99 - rest.calls == 4 + 3  # 13 candidates, of which 9 are known, and the finalists


@pytest.mark.parametrize("sampler", [SamplerName.GRID, SamplerName.TPE])
def test_a_search_that_is_interrupted_anywhere_ends_as_one_that_is_not(tmp_path: Path, sampler: SamplerName) -> None:
    method = Method(sampler=sampler, trials=12, batch=4)
    expected = tune(problem(), target(), method)
    state = tmp_path / "state.jsonl"
    interrupted = 0
    found: Tuned | None = None
    while found is None:
        try:
            found = tune(problem(), target(), method, executor=Stops(4, KeyboardInterrupt()), state=state)
        except KeyboardInterrupt:
            interrupted += 1
    assert interrupted >= 2
    assert found == expected


def test_more_trials_go_on_with_the_state_of_fewer(tmp_path: Path) -> None:
    state = tmp_path / "state.jsonl"
    few, more = (Method(sampler=SamplerName.TPE, trials=trials, batch=4) for trials in (4, 12))
    tune(problem(), target(), few, state=state)
    known = len(state.read_text().splitlines())
    assert tune(problem(), target(), more, state=state) == tune(problem(), target(), more)
    assert len(state.read_text().splitlines()) > known


KILLED: Final = """\
import os, signal, sys
from pathlib import Path
from ocf.simulation.tuning import tune
from tests.simulation.tuning.cases import problem, target

def progress(done, planned):
    if done == 8:
        os.kill(os.getpid(), signal.SIGKILL)

tune(problem(), target(), state=Path(sys.argv[1]), progress=progress)
"""


def test_a_process_that_is_killed_leaves_a_state_to_go_on_with(tmp_path: Path) -> None:
    state = tmp_path / "state.jsonl"
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    ran = subprocess.run([sys.executable, "-c", KILLED, state], env=environment, check=False)  # noqa: S603 (ours)
    assert ran.returncode == -signal.SIGKILL
    assert len(state.read_text().splitlines()) == 1 + 8
    rest = Stops(99, BrokenExecutor())
    assert tune(problem(), target(), executor=rest, state=state) == tune(problem(), target())
    assert 99 - rest.calls == 5 + 3


def _tuned(state: Path, **changes: Any) -> Tuned:
    given: dict[str, Any] = {"problem": problem(), "target": target(), "method": Method(), **changes}
    return tune(given["problem"], given["target"], given["method"], state=state)


@pytest.mark.parametrize(
    ("changes", "name"),
    [
        pytest.param({"problem": problem(traces=(trace(JUMP.replace("80", "81")),))}, "scenarios", id="load"),
        pytest.param(
            {"problem": problem(traces=(trace(text=SCENARIO.replace("100m", "200m")),))}, "scenarios", id="workload"
        ),
        pytest.param({"problem": problem(f"{UTILIZATION}=40..85 step 15")}, "settings", id="settings"),
        pytest.param({"target": target("pod_hours")}, "objectives", id="objectives"),
        pytest.param({"target": target(require=("flaps < 3",))}, "objectives", id="requirements"),
        pytest.param({"method": Method(seed=1)}, "method", id="seed"),
        pytest.param({"method": Method(holdout=0.5)}, "method", id="holdout"),
    ],
)
def test_the_state_of_other_inputs_is_rejected_and_kept(tmp_path: Path, changes: dict[str, Any], name: str) -> None:
    state = tmp_path / "state.jsonl"
    _tuned(state)
    kept = state.read_bytes()
    with pytest.raises(ConfigError, match=f"is the state of another search, with another {name}: go on"):
        _tuned(state, **changes)
    assert state.read_bytes() == kept


def test_a_problem_needs_a_trace_and_a_setting() -> None:
    with pytest.raises(ConfigError, match="nothing to search"):
        TuningProblem(traces=(), settings=(parse_setting("spec.minReplicas=1..2"),))


def test_a_setting_matters_if_any_of_its_values_does() -> None:
    found = tune(
        problem("spec.minReplicas=3..8", f"{WINDOW}=0|60", traces=(trace(STEADY, text=FIXED),)),
        target("pod_hours", require=("overload_time < 1%",)),
    )
    first, second, other = found.effects
    assert (first.path, second.path, other.weight) == ("spec.minReplicas", "spec.minReplicas", 0)
    mixed = replace(found, effects=(replace(first, weight=0.0), second, other))
    assert [line for line in verdict_lines(mixed) if line.startswith("Around")] == [
        "Around the winner, spec.minReplicas matters most.",
        f"Around the winner, these do not change any objective: {WINDOW}.",
    ]


@pytest.mark.parametrize(("busy", "is_warned"), [("100m", False), ("30m", True)])
def test_the_warnings_of_the_winner_are_in_the_verdict(busy: str, is_warned: bool) -> None:
    """Pods that use 30 % of their request never reach a target of 40 %, however they are loaded."""
    text = SCENARIO.replace("requests: {cpu: 100m}", f"requests: {{cpu: 100m}}, usage: {{cpu: {{busy: {busy}}}}}")
    tuned = tune(problem(f"{UTILIZATION}=40..70 step 30", traces=(trace(text=text),)), target("pod_hours"))

    warned = [line for line in verdict_lines(tuned) if line.startswith("Warning for the winner: spec.metrics[0] of")]
    assert bool(warned) == is_warned
    assert len(tuned.winner.warnings) == len(warned)


def test_neighbors_run_with_each_candidate() -> None:
    """The only node holds the pods of one workload at its peak, but not those of two."""
    node = "nodeGroups: [{name: workers, maxNodes: 1, instanceTypes: [{name: small, cpu: 2, memory: 4Gi}]}]"
    scenario = parse_scenario(f"{SCENARIO.replace('LOAD', JUMP)}{node}\n")
    other = scenario.model_dump(by_alias=True, include={"hpa", "workload", "load"})
    other = {**other, "name": "other", "workload": {"capacity": 10, "replicas": 5, "requests": {"cpu": "100m"}}}
    both = scenario.model_validate({**scenario.model_dump(by_alias=True), "neighbors": [other]}, by_alias=True)
    load = load_series(scenario)
    alone, together = (
        tune(
            problem(f"{UTILIZATION}=60..70 step 10", traces=(each,)), target("pending_time"), Method(holdout=0)
        ).current.measures["pending_time"]
        for each in (
            LoadTrace(name="web", scenario=scenario, load=load),
            LoadTrace(name="web", scenario=both, load=load, neighbors=(load,)),
        )
    )

    assert alone == 0 < together
