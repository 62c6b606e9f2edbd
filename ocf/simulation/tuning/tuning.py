"""The search: candidates are asked for, evaluated by workers, and compared."""

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

import ocf
from ocf.errors import ConfigError
from ocf.simulation.measures.expressions import Expression
from ocf.simulation.tuning.across import Across, combined
from ocf.simulation.tuning.effects import effects_of, neighbours
from ocf.simulation.tuning.evaluating import Evaluation, Task, check_measures, search_end
from ocf.simulation.tuning.evaluator import Evaluator
from ocf.simulation.tuning.journal import Journal
from ocf.simulation.tuning.objectives import Objective, front_of, ranked
from ocf.simulation.tuning.problem import Candidate, LoadTrace, Problem
from ocf.simulation.tuning.samplers import Loss, SamplerName, sampler_of
from ocf.simulation.tuning.tuned import Finalist, Member, Tuned

__all__ = ["Method", "Progress", "Target", "tune"]

Progress = Callable[[int, int], object]
"""A function that is called with the number of candidates that are evaluated, and with that of all that are planned."""
_INVALID: Final = 1e9
"""Violation of a candidate that cannot be run: more than that of any that can."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """What is looked for.

    Args:
        objectives: The objectives, at least one.
        requirements: Conditions that have to hold in each trace.
        across: How the objectives of several traces become one.
    """

    objectives: tuple[Objective, ...]
    requirements: tuple[Expression, ...] = ()
    across: Across = Across.MEAN

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the measures."""
        used = (name for each in self.requirements for name in each.names)
        return tuple(dict.fromkeys((*(each.name for each in self.objectives), *used)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Method:
    """How to search.

    Args:
        sampler: The sampler.
        trials: Number of candidates; a grid has all combinations.
        batch: Number of candidates that are chosen at once, and can be evaluated in parallel. The result depends on it,
            but not on the number of workers.
        seed: Seed of random choices.
        holdout: Share of the time at the end of each trace that the search does not see, from 0 to less than 1.

    Raises:
        ConfigError: If a number is out of range.
    """

    sampler: SamplerName = SamplerName.AUTO
    trials: int = 200
    batch: int = 32
    seed: int = 0
    holdout: float = 0.25

    def __post_init__(self) -> None:
        for name in ("trials", "batch"):
            if getattr(self, name) < 1:
                raise ConfigError(f"{name}: must be at least 1, got {getattr(self, name)}")
        if not 0 <= self.holdout < 1:
            raise ConfigError(f"holdout: must be from 0 % to less than 100 %, got {self.holdout:.4g}")


def tune(
    problem: Problem,
    target: Target,
    method: Method = Method(),
    *,
    executor: Executor | None = None,
    state: Path | None = None,
    progress: Progress | None = None,
) -> Tuned:
    """Search for the best settings.

    The result depends on the arguments only, and not on the executor, the number of its workers, or on interruptions.

    Args:
        problem: Traces and settings.
        target: Objectives and requirements.
        method: How to search.
        executor: Runs the simulations: that of processes, of threads, of Dask, or any other one. None: this thread.
        state: A file for the evaluations: a search that was interrupted goes on with those in the file.
        progress: Called after each evaluation.

    Returns:
        The front, the winner, and why it wins.

    Raises:
        ConfigError: If the arguments contradict each other, the current settings cannot be run, the optimiser is not
            installed, a worker ends, or the state is that of other inputs or cannot be written.

    Example:
        >>> from ocf.simulation import load_series, parse_scenario
        >>> from ocf.simulation.tuning import LoadTrace, parse_objectives, parse_setting
        >>> scenario = parse_scenario('''
        ... hpa:
        ...   apiVersion: autoscaling/v2
        ...   kind: HorizontalPodAutoscaler
        ...   metadata: {name: web}
        ...   spec: {maxReplicas: 9, scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}}
        ... workload: {capacity: 10, requests: {cpu: 100m}}
        ... load: {type: Steady, rate: 45}
        ... duration: 1h
        ... ''')
        >>> trace = LoadTrace(name="web", scenario=scenario, load=load_series(scenario))
        >>> target = "spec.metrics[0].resource.target.averageUtilization"
        >>> problem = Problem(traces=(trace,), settings=(parse_setting(f"{target}=50..95 step 15"),))
        >>> tuned = tune(problem, Target(objectives=parse_objectives(["pod_hours"])))
        >>> tuned.winner.values[target]
        95
    """
    check_measures(problem, target.names)
    problem.check()
    with Journal(state, _inputs(problem, target, method)) as journal:
        return _Search(problem, target, method, Evaluator(problem, executor, journal), progress).run()


def _inputs(problem: Problem, target: Target, method: Method) -> dict[str, str]:
    """Return hashes of everything that evaluations, and the order of candidates, depend on."""
    return {
        "version": ocf.__version__,
        "scenarios": _hash(each.digest() for each in problem.traces),
        "settings": _hash(map(repr, problem.settings)),
        "objectives": _hash((*map(repr, target.objectives), *(each.text for each in target.requirements))),
        # The number of trials may grow.
        "method": _hash((method.sampler, str(method.batch), str(method.seed), repr(method.holdout))),
    }


def _hash(texts: Iterable[str]) -> str:
    return hashlib.sha256("\n".join(texts).encode()).hexdigest()[:16]


@dataclass(slots=True)
class _Search:
    """One search."""

    problem: Problem
    target: Target
    method: Method
    evaluator: Evaluator
    progress: Progress | None
    members: dict[Candidate, Member | None] = field(default_factory=dict)
    """The candidates in order; None for one that cannot be run."""
    done: int = 0
    planned: int = 1

    def run(self) -> Tuned:
        problem, method, target = self.problem, self.method, self.target
        sampler = sampler_of(
            method.sampler,
            problem.settings,
            objectives=len(target.objectives),
            trials=method.trials,
            batch=method.batch,
            seed=method.seed,
        )
        self.planned = 1 + sampler.planned
        self._evaluate([None])
        if self.members[None] is None:
            [evaluation] = self.evaluator.evaluate(self._task(), [None])
            missing = ", ".join(each for each in target.names if each not in self._combined(evaluation.searched))
            raise ConfigError(
                f"the current settings give no {missing}: no load was served in the time that is searched"
            )
        while batch := sampler.ask():
            self._evaluate(batch)
            sampler.tell([self._loss(each) for each in batch])
        return self._tuned(self._refined())

    def _refined(self) -> list[Member]:
        """Return the front after steps to neighbours of the winner, until none of them wins."""
        while True:
            front = self._front()
            around = neighbours(self.problem, front[0].candidate)
            if all(each in self.members for each in around):
                return front
            self._evaluate(around)

    def _task(self, *, final: bool = False) -> Task:
        return Task(names=None if final else self.target.names, searched=1 - self.method.holdout, held_out=final)

    def _evaluate(self, candidates: Sequence[Candidate]) -> None:
        done = self.done

        def advance(count: int) -> None:
            if self.progress is not None:
                # The neighbours of winners are not planned.
                self.progress(min(done + count, self.planned), self.planned)

        found = self.evaluator.evaluate(self._task(), candidates, advance)
        for candidate, evaluation in zip(candidates, found, strict=True):
            if candidate not in self.members:
                self.members[candidate] = self._member(candidate, evaluation)
        self.done += len(candidates)

    def _member(self, candidate: Candidate, evaluation: Evaluation) -> Member | None:
        measures = self._combined(evaluation.searched)
        if any(name not in measures for name in self.target.names):
            return None
        return Member(
            candidate=candidate,
            values=self.problem.values(candidate),
            measures=measures,
            violation=max(
                (each.violation(found) for each in self.target.requirements for found in evaluation.searched),
                default=0.0,
            ),
            order=len(self.members),
        )

    def _loss(self, candidate: Candidate) -> Loss:
        member = self.members[candidate]
        if member is None:
            # Of a candidate that is not allowed, only the violation is compared.
            return Loss((0.0,) * len(self.target.objectives), _INVALID)
        return Loss(member.losses(self.target.objectives), member.violation)

    def _front(self) -> list[Member]:
        """Return the front, best first; without a candidate that is allowed, the one that is closest to that."""
        known = [each for each in self.members.values() if each is not None]
        allowed = [each for each in known if each.violation == 0]
        if not allowed:
            return [min(known, key=lambda each: (each.violation, each.order))]
        return self._best(allowed)

    def _best(self, members: Sequence[Member]) -> list[Member]:
        losses = [each.losses(self.target.objectives) for each in members]
        front = front_of(losses)
        return [members[front[at]] for at in ranked([losses[at] for at in front])]

    def _runner_up(self, front: Sequence[Member]) -> Member | None:
        if len(front) > 1:
            return front[1]
        losses = front[0].losses(self.target.objectives)
        # The same losses by other settings are no alternative.
        others = [
            each
            for each in self.members.values()
            if each is not None and each.violation == 0 and each.losses(self.target.objectives) != losses
        ]
        return self._best(others)[0] if others else None

    def _combined(self, measures: Sequence[Mapping[str, float]]) -> dict[str, float]:
        return combined(measures, self.target.across, self.target.objectives)

    def _finalist(self, candidate: Candidate, evaluation: Evaluation) -> Finalist:
        return Finalist(
            values=self.problem.values(candidate),
            searched=evaluation.searched,
            held_out=evaluation.held_out,
            measures=self._combined(evaluation.searched),
            held_out_measures=self._combined(evaluation.held_out),
            unmet=self._unmet(evaluation.searched),
            unmet_held_out=self._unmet(evaluation.held_out),
            warnings=evaluation.warnings,
        )

    def _unmet(self, measures: Sequence[Mapping[str, float]]) -> tuple[str, ...]:
        return tuple(each.text for each in self.target.requirements if not all(map(each.holds, measures)))

    def _tuned(self, front: Sequence[Member]) -> Tuned:
        runner_up = self._runner_up(front)
        chosen: list[Candidate] = [None, front[0].candidate, *([] if runner_up is None else [runner_up.candidate])]
        found = self.evaluator.evaluate(self._task(final=True), chosen)
        finalists = [self._finalist(each, evaluation) for each, evaluation in zip(chosen, found, strict=True)]
        known = [each for each in self.members.values() if each is not None]
        best = {each.candidate for each in front}
        return Tuned(
            traces=tuple(each.name for each in self.problem.traces),
            objectives=self.target.objectives,
            requirements=self.target.requirements,
            across=self.target.across,
            evaluated=len(known),
            invalid=len(self.members) - len(known),
            searched=1 - self.method.holdout,
            front=tuple(front),
            others=tuple(each for each in known if each.violation == 0 and each.candidate not in best),
            current=finalists[0],
            winner=finalists[1],
            runner_up=finalists[2] if runner_up is not None else None,
            effects=effects_of(self.problem, front, self.target.objectives, self.members),
            hpa=self.problem.hpa(front[0].candidate),
            held_out_from=tuple(map(self._held_out_from, self.problem.traces)),
        )

    def _held_out_from(self, trace: LoadTrace) -> datetime | None:
        if not trace.scenario.is_dated:
            return None
        end = search_end(trace, 1 - self.method.holdout)
        return trace.scenario.start.astimezone(UTC) + timedelta(seconds=end)
