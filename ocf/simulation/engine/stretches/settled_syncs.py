"""Syncs of a workload whose pods are settled, as long as they leave the replicas as they are."""

from collections.abc import Hashable, Sequence
from typing import Final, NamedTuple

from ocf.schema.metric_sources import RESOURCE_METRICS
from ocf.simulation.engine.autoscaling import HPAController
from ocf.simulation.engine.pipeline import Pipeline
from ocf.simulation.engine.proposals import Proposal
from ocf.simulation.engine.scrapes import Scrape
from ocf.simulation.engine.stretches.calm import TOO_MUCH

__all__ = ["SettledSyncs", "Stay"]

_FULL: Final = 100
_REMEMBERED: Final = 1 << 16


class Stay(NamedTuple):
    """The numbers of syncs that leave the replicas as they are, see `Numbers`.

    Args:
        ratios: Current value over target value of the metric that decided, one for each sync.
    """

    ratios: list[float]
    wanted: list[int]
    held: list[int]


class SettledSyncs:
    """The syncs of a controller while all pods are settled, no sample is lost, and metrics can be read."""

    __slots__ = ("_known", "_pipeline", "controller")

    def __init__(self, controller: HPAController, pipeline: Pipeline) -> None:
        self.controller = controller
        self._pipeline = pipeline
        self._known: dict[tuple[int, int, int], dict[Hashable, Proposal]] = {}

    def run(self, syncs: Sequence[int], values: Sequence[Sequence[int]]) -> Stay:
        """Run syncs as long as they leave the replicas as they are, and their conditions are known.

        The syncs are in microseconds since the start; the values are the samples of each meter of the pipeline at the
        syncs. The first sync that is not in the result has to run by itself.
        """
        controller = self.controller
        current, outcomes, windows = controller.replicas, controller.outcomes, controller.windows
        proposals = self._proposals(current, syncs, values)
        holds: list[int] = []
        shown = None
        for now, (wanted, _, _, chosen) in zip(syncs, proposals, strict=False):
            outcome = outcomes.of(current, chosen, wanted, windows.extremes(now, wanted), now)
            if outcome.desired != current or outcome.shown is None:
                break
            if outcome.shown is not shown:
                shown = outcome.shown
                controller.show(shown, now)
            windows.add(now, wanted)
            holds.append(outcome.held)
        ran = proposals[: len(holds)]
        if ran:
            controller.desired = current
        return Stay([ratio for _, ratio, _, _ in ran], [wanted for wanted, _, _, _ in ran], holds)

    def _proposals(self, current: int, syncs: Sequence[int], values: Sequence[Sequence[int]]) -> list[Proposal]:
        """Return the proposals at syncs, up to the first one that needs a snapshot."""
        pipeline, keys = self._pipeline, self._decisive(values)
        known = self._known.setdefault((current, len(pipeline.pods.settled), pipeline.pods.ready_to_count()), {})
        unknown = {key: at for at, key in enumerate(keys) if key not in known}
        if unknown:
            # Proposals read the pipeline, so each value that is not known is put there as if it had just been measured.
            scrape = pipeline.scrape
            for key, at in unknown.items():
                read = tuple([each[at] for each in values])
                pipeline.scrape = Scrape(syncs[at], read, {}, frozenset())
                found = None if TOO_MUCH in read else self.controller.proposals.choose(current, syncs[at])
                if found is not None:
                    known[key] = found
            pipeline.scrape = scrape
            end = next((at for at, key in enumerate(keys) if key not in known), len(keys))
            keys = keys[:end]
        proposals = [known[key] for key in keys]
        if sum(map(len, self._known.values())) > _REMEMBERED:
            self._known.clear()
        return proposals

    def _decisive(self, values: Sequence[Sequence[int]]) -> list[int] | list[tuple[int, ...]]:
        """Return what the proposals follow from: equal for equal proposals."""
        subject = self.controller.subject
        columns: list[list[int]] = []
        for position, meter in enumerate(subject.meters):
            found, request = values[subject.first + position], meter.request
            if meter.metric.target.average is None and meter.metric.type in RESOURCE_METRICS and request:
                columns.append([value * _FULL // request for value in found])
            else:
                columns.append([*found])
        return columns[0] if len(columns) == 1 else list(zip(*columns, strict=True))
