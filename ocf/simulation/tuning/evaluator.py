"""Evaluation of many candidates by workers."""

import pickle
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import BrokenExecutor, Executor, Future
from dataclasses import dataclass, field

from ocf.errors import ConfigError
from ocf.simulation.tuning.evaluating import Evaluation, Prepared, Task, evaluate, evaluate_pickled
from ocf.simulation.tuning.journal import Journal
from ocf.simulation.tuning.problem import Candidate, Problem

__all__ = ["Evaluator"]


@dataclass(slots=True)
class Evaluator:
    """Evaluates candidates: those that are known are read, others are simulated by workers.

    Args:
        executor: Runs the simulations; None: this thread.
    """

    problem: Problem
    executor: Executor | None
    journal: Journal
    prepared: Prepared = field(init=False)
    pickled: bytes = field(init=False)

    def __post_init__(self) -> None:
        self.prepared = Prepared(self.problem)
        self.pickled = b"" if self.executor is None else pickle.dumps(self.problem)

    def evaluate(
        self, task: Task, candidates: Sequence[Candidate], advance: Callable[[int], object] = bool
    ) -> list[Evaluation]:
        """Return the evaluations of candidates, in their order."""
        keys = [_key(task, each) for each in candidates]
        unknown = {key: each for key, each in zip(keys, candidates, strict=True) if self.journal.get(key) is None}
        done = len(candidates) - len(unknown)
        for key, evaluation in zip(unknown, self._simulated(task, list(unknown.values())), strict=True):
            self.journal.add(key, evaluation)
            done += 1
            advance(done)
        if unknown:
            self.journal.sync()
        return [found for key in keys if (found := self.journal.get(key)) is not None]

    def _simulated(self, task: Task, candidates: Sequence[Candidate]) -> Iterator[Evaluation]:
        if self.executor is None:
            for each in candidates:
                yield evaluate(self.prepared, task, each)
            return
        futures: list[Future[Evaluation]] = []
        try:
            for each in candidates:
                futures.append(self.executor.submit(evaluate_pickled, self.pickled, task, each))  # noqa: PERF401 (cancelled below)
            for future in futures:
                yield future.result()
        except BrokenExecutor as error:
            raise ConfigError(
                f"a worker ended unexpectedly, perhaps because memory ran out ({error});"
                f" {len(self.journal)} evaluations are known: with a state, the same search goes on from there"
            ) from error
        finally:
            for future in futures:
                future.cancel()


def _key(task: Task, candidate: Candidate) -> str:
    name = "current" if candidate is None else ",".join(map(str, candidate))
    return f"{name}/final" if task.held_out else name
