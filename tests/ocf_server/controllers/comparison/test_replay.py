"""Our controllers come to the same state as the real ones, whose states are recorded."""

import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta
from typing import Any

import pytest

from ocf.testing import VirtualClock
from ocf_server import ControllerSettings, EmbeddedCluster
from tests.ocf_server.controllers.comparison.differences import KNOWN
from tests.ocf_server.controllers.comparison.recorded import load
from tests.ocf_server.controllers.comparison.running import run_scenario
from tests.ocf_server.controllers.comparison.scenarios import NODES, SCENARIOS, Step
from tests.ocf_server.controllers.comparison.states import State

_RECORDED: Mapping[str, Sequence[State]] = load()
_HORIZON = timedelta(seconds=60)


async def _simulated(name: str) -> Sequence[State]:
    clock = VirtualClock()
    cluster = EmbeddedCluster(now=clock.now)
    for node in NODES:
        await cluster.create(node, field_manager="user")
    controllers = cluster.controllers(ControllerSettings(nodes=0, ready_after=timedelta(0), finish_after=timedelta(0)))

    async def rest(_step: Step) -> None:
        passed = timedelta(0)
        while (delay := await controllers.settle()) is not None and passed + delay <= _HORIZON:
            clock.advance(delay)
            passed += delay

    found: Sequence[State] = await run_scenario(cluster, "default", SCENARIOS[name], rest)
    return found


def _differences(path: str, real: Any, ours: Any) -> Iterator[str]:
    if isinstance(real, dict) and isinstance(ours, dict):
        for key in sorted(real.keys() | ours.keys()):
            yield from _differences(f"{path}.{key}", real.get(key), ours.get(key))
    elif isinstance(real, list) and isinstance(ours, list) and len(real) == len(ours):
        for index, (one, other) in enumerate(zip(real, ours, strict=True)):
            yield from _differences(f"{path}[{index}]", one, other)
    elif real != ours:
        yield f"{path}: {json.dumps(real)} really, {json.dumps(ours)} here"


@pytest.mark.parametrize("name", SCENARIOS)
async def test_the_state_at_rest_is_that_of_the_real_controllers(name: str) -> None:
    ours = await _simulated(name)
    found = [
        difference
        for step, (real, state) in enumerate(zip(_RECORDED[name], ours, strict=True), 1)
        for difference in _differences(f"step {step}", real, state)
    ]
    unexpected = [each for each in found if not any(pattern.search(each) for pattern in KNOWN.get(name, ()))]

    assert not unexpected, "\n".join(unexpected)
