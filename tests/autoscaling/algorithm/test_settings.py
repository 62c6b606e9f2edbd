"""Settings of the controller refuse values that no controller can run with."""

from datetime import timedelta
from typing import Any

import pytest

from ocf.autoscaling.algorithm import Settings
from ocf.errors import ConfigError

PERIODS = ("sync_period", "downscale_stabilization", "cpu_initialization_period", "initial_readiness_delay")


@pytest.mark.parametrize("name", PERIODS)
@pytest.mark.parametrize("seconds", [0, -1])
def test_periods_are_positive(name: str, seconds: int) -> None:
    fields: dict[str, Any] = {name: timedelta(seconds=seconds)}

    with pytest.raises(ConfigError, match=f"{name} of the autoscaling controller must be more than 0 s, not {seconds}"):
        Settings(**fields)


@pytest.mark.parametrize(
    "fields",
    [
        pytest.param({"tolerance": -0.1}, id="negative tolerance"),
        pytest.param({"tolerance": float("nan")}, id="not a number"),
        pytest.param({"scale_up_limit_factor": float("inf")}, id="infinite factor"),
        pytest.param({"workers": 0}, id="no worker"),
    ],
)
def test_other_values_are_in_range(fields: dict[str, Any]) -> None:
    with pytest.raises(ConfigError):
        Settings(**fields)
