"""Scenarios with loads."""

from pathlib import Path
from typing import Any

from ocf.simulation import LoadSeries, Scenario, load_series


def scenario(*loads: dict[str, Any], **fields: Any) -> Scenario:
    """Return a scenario with some loads."""
    return Scenario.model_validate({"hpa": "hpa.yaml", "workload": {"capacity": 10}, "load": loads, **fields})


def series(directory: Path, *loads: dict[str, Any], **fields: Any) -> LoadSeries:
    """Return the sum of some loads."""
    return load_series(scenario(*loads, **fields), directory)


def steps(load: LoadSeries) -> list[tuple[float, float]]:
    """Return begin and rate of each step."""
    return list(zip(load.times, load.rates, strict=True))
