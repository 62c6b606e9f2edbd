"""Samplers: which candidates to evaluate next, from the losses of those before.

A sampler is asked for a batch, and gets the losses of the whole batch. So its choices do not depend on which worker is
faster, and a search that goes on proposes the same candidates again.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import islice, product
from typing import TYPE_CHECKING, Any, Final, Protocol

from ocf.errors import ConfigError
from ocf.simulation.tuning.settings import TunedSetting

if TYPE_CHECKING:
    from optuna.distributions import BaseDistribution
    from optuna.samplers import BaseSampler
    from optuna.trial import Trial

__all__ = ["Loss", "Sampler", "SamplerName", "grid_size", "sampler_of"]

# A day of simulations, at a second for each.
_LARGEST_GRID: Final = 100_000
_GRID_BATCH: Final = 256
_MISSING: Final = (
    "the search needs the optimiser Optuna: install it with pip install 'ocf[tune]', or use --sampler grid"
)


class SamplerName(StrEnum):
    """Names of the samplers."""

    AUTO = "auto"
    """All combinations if there are not more than trials, otherwise `tpe`."""
    GRID = "grid"
    """All combinations."""
    TPE = "tpe"
    """The tree-structured Parzen estimator, also for several objectives."""
    NSGA2 = "nsga2"
    """The genetic algorithm NSGA-II."""
    RANDOM = "random"
    """Random combinations."""


@dataclass(frozen=True, slots=True)
class Loss:
    """How good a candidate is.

    Args:
        values: Losses by objective.
        violation: How far it is from being allowed; 0 if it is.
    """

    values: tuple[float, ...]
    violation: float = 0.0


class Sampler(Protocol):
    """A source of candidates."""

    @property
    def planned(self) -> int:
        """Number of candidates in all."""
        ...

    def ask(self) -> list[tuple[int, ...]]:
        """Return the next batch; empty at the end."""
        ...

    def tell(self, losses: Sequence[Loss]) -> None:
        """Take the losses of the last batch, in its order."""
        ...


def sampler_of(
    name: SamplerName, settings: Sequence[TunedSetting], *, objectives: int, trials: int, batch: int, seed: int
) -> Sampler:
    """Return a sampler.

    Args:
        trials: Number of candidates; a grid has all of them.
        batch: Number of candidates of a batch; a grid has no use for it.
    """
    if name is SamplerName.AUTO:
        name = SamplerName.GRID if grid_size(settings) <= trials else SamplerName.TPE
    if name is SamplerName.GRID:
        return _Grid(settings)
    return _Optimiser(settings, _algorithm(name, batch, seed), objectives=objectives, trials=trials, batch=batch)


def grid_size(settings: Sequence[TunedSetting]) -> int:
    """Return the number of combinations."""
    size = 1
    for each in settings:
        size *= len(each.values)
    return size


class _Grid:
    def __init__(self, settings: Sequence[TunedSetting]) -> None:
        size = grid_size(settings)
        if size > _LARGEST_GRID:
            raise ConfigError(
                f"the grid has {size} combinations, at most {_LARGEST_GRID} are allowed: set larger steps, or use"
                " another sampler"
            )
        self.planned = size
        self._rest: Iterator[tuple[int, ...]] = product(*(range(len(each.values)) for each in settings))

    def ask(self) -> list[tuple[int, ...]]:
        return list(islice(self._rest, _GRID_BATCH))

    def tell(self, losses: Sequence[Loss]) -> None:
        """Do nothing: a grid does not depend on losses."""


class _Optimiser:
    """Candidates of Optuna, as positions of values."""

    def __init__(
        self, settings: Sequence[TunedSetting], algorithm: "BaseSampler", *, objectives: int, trials: int, batch: int
    ) -> None:
        import optuna

        self._settings = settings
        # Positions and not values: an optimiser knows neither units nor the ends of a list.
        self._distributions: dict[str, BaseDistribution] = {
            each.path: optuna.distributions.IntDistribution(0, len(each.values) - 1)
            if each.is_ordered
            else optuna.distributions.CategoricalDistribution(range(len(each.values)))
            for each in settings
        }
        level = optuna.logging.get_verbosity()
        optuna.logging.set_verbosity(optuna.logging.WARNING)  # a new study is logged
        self._study = optuna.create_study(
            sampler=algorithm, directions=[optuna.study.StudyDirection.MINIMIZE] * objectives
        )
        optuna.logging.set_verbosity(level)
        self.planned = self._rest = trials
        self._batch = batch
        self._asked: list[Trial] = []

    def ask(self) -> list[tuple[int, ...]]:
        count = min(self._batch, self._rest)
        self._rest -= count
        self._asked = [self._study.ask(self._distributions) for _ in range(count)]
        return [tuple(int(trial.params[each.path]) for each in self._settings) for trial in self._asked]

    def tell(self, losses: Sequence[Loss]) -> None:
        for trial, loss in zip(self._asked, losses, strict=True):
            trial.set_constraint("violation", loss.violation)
            self._study.tell(trial, loss.values)


def _algorithm(name: SamplerName, batch: int, seed: int) -> "BaseSampler":
    try:
        from optuna import samplers
    except ImportError:
        raise ConfigError(_MISSING) from None
    made: dict[SamplerName, Any] = {
        SamplerName.NSGA2: lambda: samplers.NSGAIISampler(population_size=batch, seed=seed),
        SamplerName.TPE: lambda: samplers.TPESampler(n_startup_trials=batch, multivariate=True, seed=seed),
        SamplerName.RANDOM: lambda: samplers.RandomSampler(seed=seed),
    }
    found: BaseSampler = made[name]()
    return found
