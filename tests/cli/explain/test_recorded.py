"""The decisions of the real controller are within the range that its previous status permits."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field, replace
from datetime import timedelta
from functools import cache
from pathlib import Path

import pytest

from ocf.autoscaling.explain import KnownHistory
from ocf.autoscaling.explain.uncertainty import DecisionRange, decision_range
from ocf.controllers.hpa.snapshot import HpaSnapshot
from ocf.objects.timestamps import parse_time
from tests.controllers.hpa.comparison.scenarios import DIFFERENCES
from tests.controllers.hpa.comparison.ticks import DATA, SETTINGS, OurController, Verdict, load, replay

FILES = sorted(DATA.glob("*.json"))
RECORDED = replace(SETTINGS, sync_period=timedelta(seconds=3))
"""The settings of the controller when it was recorded; syncs follow its period more or less."""


@dataclass(slots=True)
class Outsider(OurController):
    """Computes the range from the status alone, sync by sync."""

    found: list[DecisionRange] = field(default_factory=list)

    def decide(self, seen: HpaSnapshot, at: str) -> Verdict:
        known = KnownHistory(seen.snapshot.status, parse_time(at))
        self.found.append(decision_range(seen.snapshot, known, settings=RECORDED, now=parse_time(at)))
        return OurController.decide(self, seen, at)


@cache
def ranges(file: Path) -> tuple[DecisionRange, ...]:
    """Return the range of each recorded sync."""

    async def found() -> tuple[DecisionRange, ...]:
        outsider = Outsider()
        for tick in load(file):
            await replay(tick, outsider)
        return tuple(outsider.found)

    return asyncio.run(found())


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_the_actual_decision_is_within_the_range(file: Path) -> None:
    for number, (tick, found) in enumerate(zip(load(file), ranges(file), strict=True)):
        if (file.stem, number) not in DIFFERENCES and tick.replicas is not None and found.low.trace.current is not None:
            assert found.low.desired <= tick.replicas <= found.high.desired, f"sync {number}"


def test_the_range_is_exact_for_most_syncs_but_not_for_all() -> None:
    exact = [each.exact for file in FILES for each in ranges(file)]

    assert 0.6 < sum(exact) / len(exact) < 1
