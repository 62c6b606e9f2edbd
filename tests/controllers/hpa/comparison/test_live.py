"""Our decisions and the real controller's, tick by tick, on a real control plane."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

import pytest

from ocf.testing.envtest.binaries import Programs
from tests.controllers.hpa.comparison.running import Sync, comparison_env
from tests.controllers.hpa.comparison.scenarios import DIFFERENCES, SCENARIOS
from tests.controllers.hpa.comparison.ticks import OurController, ReportedEvent, verdict_of_controller

TickKey = tuple[str, int]

LONGER_WAITS: Final = (0.8, 1.6)
"""Seconds for the controller's watch in the second and the third run of a scenario."""


def differences_of(
    syncs: Mapping[str, Sequence[Sync]], events: Mapping[str, set[ReportedEvent]]
) -> dict[TickKey, object]:
    """Return our output and that of the controller where they differ."""
    found: dict[TickKey, object] = {}
    for name, ticks in syncs.items():
        ours = OurController()
        for number, each in enumerate(ticks):
            verdicts = ours.decide(each.seen, each.tick.at), verdict_of_controller(each.tick)
            if verdicts[0] != verdicts[1]:
                found[name, number] = verdicts
        if ours.events != events[name] and (name, 0) not in DIFFERENCES:
            found[name, len(ticks)] = ours.events ^ events[name]
    return found


@pytest.mark.long
@pytest.mark.promise("hpa-rounds")
async def test_each_reconcile_equals_the_controllers(envtest_programs: Programs, envtest_controllers: object) -> None:
    """All scenarios in parallel, with our snapshots from the real APIs.

    The controller reads pods from a watch, which lags on a slow host: scenarios that differ are run again, one by one
    and with more time for the watch. A true difference is there each time.
    """
    del envtest_controllers  # requested so that the test is skipped without a controller
    async with comparison_env(envtest_programs) as env:
        found = differences_of(await env.run(SCENARIOS), env.events)
        for settled in LONGER_WAITS:
            alone = replace(env, settled=settled)
            for name in {name for name, _ in found.keys() - DIFFERENCES}:
                found = {place: verdicts for place, verdicts in found.items() if place[0] != name}
                found |= differences_of(await alone.run([name]), env.events)

    assert found.keys() == DIFFERENCES, found
