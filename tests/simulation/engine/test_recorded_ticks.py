"""The simulated controller scales as the real one did, from the recorded inputs of each of its syncs.

`scripts/record/hpa_ticks.py` recorded them.
"""

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import NamedTuple
from unittest.mock import patch

from ocf.autoscaling import FeatureGates
from ocf.autoscaling.algorithm import Decision, Scale, Settings, Snapshot, decide
from ocf.objects.timestamps import parse_time
from ocf.simulation.engine.autoscaling import HPAController, subject_of
from ocf.simulation.engine.clock import Clock, microseconds
from ocf.simulation.engine.known_conditions import KnownConditions
from ocf.simulation.engine.moments import Memory, Moment
from tests.controllers.hpa.comparison.scenarios import DIFFERENCES
from tests.controllers.hpa.comparison.ticks import DATA, SETTINGS, Tick, load, observe, verdict_of_controller
from tests.simulation.engine.recorded_ticks import RecordedPipeline, Stage, UnlikeError, stage_of

FILES = sorted(DATA.glob("*.json"))
WITHOUT_ZERO = replace(SETTINGS, features=FeatureGates())

LEFT_OUT = {
    "a metric that fails while another one has a value": 16,
    "samples of different times": 6,
    "a selector of pods that another HPA has, or an empty one": 5,
    "no Scale": 5,
    "a total per replica, metrics of pods, and other pods than replicas": 2,
    "a pod with a sample of one metric only": 2,
    "a total per replica, where observed replicas decide that are not those that are wanted": 1,
}
"""Number of ticks by what a simulated workload never has."""

Known = dict[str, KnownConditions]
"""The known conditions by the spec of an HPA."""


class Recorded(NamedTuple):
    """A tick: scenario and position, time, spec of the HPA, what the controller read, and the replicas afterwards."""

    place: tuple[str, int]
    now: datetime
    spec: str
    seen: Snapshot
    replicas: int | None


class Replay:
    """The simulated controller on the ticks of a scenario.

    Args:
        settings: The controller's settings.
        start: Time of the first tick.
        known: The conditions that are known from an earlier replay.
        full: Whether every sync runs `decide`.
    """

    def __init__(self, settings: Settings, start: datetime, known: Known, *, full: bool) -> None:
        self._settings, self._clock, self._known, self._full = settings, Clock(start), known, full
        self._memory = Memory(conditions=(), desired=0, recommendations=None, scale_ups=(), scale_downs=())
        self._running: tuple[str, RecordedPipeline, HPAController] | None = None

    def sync(self, tick: Recorded) -> int:
        """Run a sync of the simulated controller, and return the replicas.

        Raises:
            UnlikeError: If a simulated workload is never like that. The next sync follows that of `decide`.
        """
        try:
            stage = stage_of(tick.seen, self._settings, self._clock, tick.now)
        except UnlikeError:
            self._follow(tick)
            raise
        assert isinstance(tick.seen.scale, Scale)
        pipeline, controller = self._continued(tick, stage, tick.seen.scale.replicas)
        pipeline.show(stage)
        controller.replicas = tick.seen.scale.replicas
        controller.sync(microseconds(tick.now - self._clock.at(0)))
        self._memory = controller.memory()
        return controller.replicas

    def _continued(self, tick: Recorded, stage: Stage, replicas: int) -> tuple[RecordedPipeline, HPAController]:
        """Return the controller of the tick before, or one that continues from it if the HPA was edited."""
        if self._running is not None:
            spec, pipeline, controller = self._running
            if spec == tick.spec and pipeline.fits(stage):
                return pipeline, controller
        pipeline = RecordedPipeline(stage, self._clock)
        controller = HPAController(
            subject_of(tick.seen.autoscaler, self._settings, pipeline, self._clock),
            pipeline,
            replicas=replicas,
            memory=replace(self._memory, conditions=tick.seen.status.conditions),
            full=self._full,
        )
        controller.known = self._known.setdefault(tick.spec, controller.known)
        self._running = tick.spec, pipeline, controller
        return pipeline, controller

    def _follow(self, tick: Recorded) -> None:
        history = self._memory.history(self._clock)
        decision = decide(tick.seen, history, settings=self._settings, now=tick.now)
        self._memory, self._running = memory_of(decision, self._clock), None


def memory_of(decision: Decision, clock: Clock) -> Memory:
    """Return what the controller carries after a decision."""
    history, start = decision.history, clock.at(0)
    known = history.recommendations
    return Memory(
        conditions=tuple(decision.status.conditions),
        desired=decision.status.desired_replicas,
        recommendations=None
        if known is None
        else tuple((microseconds(each.at - start), each.replicas) for each in known),
        scale_ups=history.scale_ups,
        scale_downs=history.scale_downs,
    )


async def recorded_scenarios() -> list[list[Recorded]]:
    """Return the recorded ticks by scenario, without those in which we differ intentionally."""
    found = [[await recorded(file.stem, number, tick) for number, tick in enumerate(load(file))] for file in FILES]
    return [kept for ticks in found if (kept := [tick for tick in ticks if tick.place not in DIFFERENCES])]


async def recorded(scenario: str, number: int, tick: Tick) -> Recorded:
    """Return a tick with what the controller read in it."""
    return Recorded(
        place=(scenario, number),
        now=parse_time(tick.at),
        spec=json.dumps(tick.hpa["spec"], sort_keys=True),
        seen=(await observe(tick)).snapshot,
        replicas=verdict_of_controller(tick).replicas,
    )


class Outcome(NamedTuple):
    """What a replay of all scenarios found.

    Args:
        compared: Number of ticks that were compared.
        full: Number of those that ran `decide`.
        wrong: Those with other replicas.
        unlike: Number of the other ticks, by what a simulated workload never has.
    """

    compared: int
    full: int
    wrong: Sequence[str]
    unlike: Counter[str]


def replayed(
    scenarios: Sequence[Sequence[Recorded]], settings: Settings, known: Sequence[Known], *, full: bool
) -> Outcome:
    """Replay scenarios."""
    compared, wrong, unlike = 0, list[str](), Counter[str]()
    with patch.object(Moment, "decide", autospec=True, side_effect=Moment.decide) as decided:
        for ticks, conditions in zip(scenarios, known, strict=True):
            replay = Replay(settings, ticks[0].now, conditions, full=full)
            for tick in ticks:
                try:
                    replicas = replay.sync(tick)
                except UnlikeError as unlike_error:
                    unlike[str(unlike_error)] += 1
                    continue
                compared += 1
                if replicas != tick.replicas:
                    wrong.append(f"{tick.place}: {replicas} replicas, expected {tick.replicas}")
    return Outcome(compared, decided.call_count, wrong, unlike)


def stays_above_zero(ticks: Sequence[Recorded]) -> bool:
    """Return whether the feature gate HPAScaleToZero makes no difference."""
    scales = [tick.seen.scale for tick in ticks]
    return all(tick.seen.autoscaler.minimum > 0 for tick in ticks) and all(
        scale.replicas > 0 for scale in scales if isinstance(scale, Scale)
    )


async def test_each_sync_scales_as_the_controller_did() -> None:
    """With the feature gate HPAScaleToZero, each sync that scales runs `decide`."""
    scenarios = await recorded_scenarios()
    assert replayed(scenarios, SETTINGS, [{} for _ in scenarios], full=True).unlike == LEFT_OUT
    above_zero = [ticks for ticks in scenarios if stays_above_zero(ticks)]

    for settings, chosen, compared, by_counts in ((SETTINGS, scenarios, 205, 80), (WITHOUT_ZERO, above_zero, 180, 125)):
        known: list[Known] = [{} for _ in chosen]
        first = replayed(chosen, settings, known, full=False)
        second = replayed(chosen, settings, known, full=False)
        snapshots = replayed(chosen, settings, known, full=True)

        assert (first.wrong, second.wrong, snapshots.wrong) == ([], [], [])
        assert first.compared == second.compared == snapshots.compared == compared
        assert 0 < first.compared - first.full < second.compared - second.full
        assert second.compared - second.full >= by_counts
        assert snapshots.full == compared
