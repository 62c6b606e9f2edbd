"""Our decisions and the real controller's, on recorded ticks.

`scripts/record/hpa_ticks.py` records them again.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.controllers.hpa.comparison.scenarios import DIFFERENCES, SCENARIOS
from tests.controllers.hpa.comparison.ticks import DATA, OurController, load, load_events, replay, verdict_of_controller

FILES = sorted(DATA.glob("*.json"))


@pytest.mark.promise("hpa-rounds", runs="246 reconciles in 49 scenarios")
@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
async def test_each_reconcile_equals_the_controllers(file: Path) -> None:
    """Replicas, status, each condition with status, reason and message, and finally all events."""
    ours = OurController()
    for number, tick in enumerate(load(file)):
        made, expected = await replay(tick, ours), verdict_of_controller(tick)
        if (file.stem, number) in DIFFERENCES:
            assert made != expected
        else:
            assert made == expected, f"reconcile {number}"
    if file.stem not in {name for name, _ in DIFFERENCES}:
        assert ours.events == load_events(file)


def test_every_scenario_is_recorded() -> None:
    assert {file.stem for file in FILES} == set(SCENARIOS)


def test_the_recorded_ticks_scale_both_ways_to_zero_and_back() -> None:
    moves = set()
    for file in FILES:
        for tick in load(file):
            before = (tick.answers.get("scale", {}).get("answer") or {}).get("spec", {}).get("replicas", 0)
            after = tick.replicas or 0
            moves.add((before == 0, after == 0, (after > before) - (after < before)))

    assert {(False, False, 1), (False, False, -1), (False, True, -1), (True, False, 1), (True, True, 0)} <= moves


REASONS = {
    "AbleToScale": {"ReadyForNewScale", "SucceededRescale", "ScaleDownStabilized", "ScaleUpStabilized"}
    | {"FailedGetScale", "SucceededGetScale"},
    "ScalingActive": {"ValidMetricFound", "ScalingDisabled", "InvalidSelector", "AmbiguousSelector"}
    | {"FailedGetResourceMetric", "FailedGetContainerResourceMetric", "FailedGetExternalMetric"}
    | {"FailedGetPodsMetric", "FailedGetObjectMetric"},
    "ScalingLimited": {"DesiredWithinRange", "TooFewReplicas", "TooManyReplicas", "ScaleUpLimit", "ScaleDownLimit"},
    "ScaledToZero": {"ScaledToZero", "NotScaledToZero"},
}


def test_the_recorded_ticks_have_every_reason() -> None:
    recorded: dict[str, set[str]] = {kind: set() for kind in REASONS}
    for file in FILES:
        for tick in load(file):
            for condition in tick.status.get("conditions") or ():
                recorded[condition["type"]].add(condition["reason"])

    assert {kind: REASONS[kind] - recorded[kind] for kind in REASONS} == {kind: set() for kind in REASONS}
