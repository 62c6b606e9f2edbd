"""Scenarios that run on a real control plane and in the simulation: twenty minutes, ten times as fast.

All durations are a tenth of usual ones: a sync period of 1.5 s, windows of seconds. All scenarios have the same
settings of the controller, because they run on one control plane. Loads are steps, most of them longer than a sync
period, so that the order of two events that are milliseconds apart decides nothing.
"""

from datetime import datetime, timedelta
from pathlib import Path
from typing import Final

from ocf.autoscaling.algorithm import Autoscaler
from ocf.simulation import Scenario, read_scenario

__all__ = ["DATA", "NAMES", "autoscaler_of", "read", "with_timing"]

DATA: Final = Path(__file__).parent / "data"
NAMES: Final = tuple(sorted(file.stem for file in DATA.glob("*.yaml")))


def read(name: str) -> Scenario:
    """Return a scenario.

    Args:
        name: Its name.
    """
    return read_scenario(DATA / f"{name}.yaml")


def autoscaler_of(scenario: Scenario) -> Autoscaler:
    """Return the HPA of a scenario.

    Args:
        scenario: A scenario of `read`.
    """
    assert isinstance(scenario.hpa, dict)
    return Autoscaler.of(scenario.hpa)


def with_timing(scenario: Scenario, *, start: datetime, sync_period: timedelta) -> Scenario:
    """Return a scenario that starts at another time and syncs at another period.

    Args:
        scenario: The scenario.
        start: The instant at which it starts.
        sync_period: Time between two syncs.
    """
    controller = scenario.controller.model_copy(update={"sync_period": sync_period})
    return scenario.model_copy(update={"start": start, "controller": controller})
