"""Values that mean nothing: each one is an error of the scenario, with field, value seen and value allowed."""

from __future__ import annotations

import json
from contextlib import suppress
from copy import deepcopy
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ocf.errors import ConfigError
from ocf.simulation import parse_scenario

Step = str | int

TARGET: Final = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
CPU: Final = {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 60}}
SCENARIO: Final[dict[str, Any]] = {
    "name": "web",
    "hpa": {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "web", "namespace": "shop"},
        "spec": {"scaleTargetRef": TARGET, "maxReplicas": 20, "metrics": [{"type": "Resource", "resource": CPU}]},
    },
    "hpaEdits": [{"at": "5m", "spec": {"scaleTargetRef": TARGET, "maxReplicas": 30}}],
    "workload": {
        "capacity": 10,
        "replicas": 3,
        "requests": {"cpu": "100m"},
        "usage": {"cpu": {"idle": "1m", "busy": "100m"}},
        "startup": {"mean": "10s", "spread": "3s"},
        "queue": {"length": 100},
        "failures": [{"at": "1m", "pods": 1}],
    },
    "load": [
        {"type": "Steps", "steps": [{"at": "0s", "rate": 10}]},
        {"type": "Sine", "mean": 5, "amplitude": 2, "period": "5m"},
        {"type": "Daily", "rates": {"00:00": 1}, "timeZone": "UTC"},
        {"type": "Noise", "share": 0.1, "step": "15s"},
    ],
    "metrics": {"scrapePeriod": "15s", "delay": "5s", "outages": [{"at": "1m", "duration": "1m"}]},
    "controller": {"kubernetes": "1.36", "syncPeriod": "15s", "tolerance": 0.1},
    "nodeGroups": [
        {
            "name": "g",
            "maxNodes": 5,
            "instanceTypes": [{"name": "small", "cpu": "2", "memory": "8Gi", "price": 0.1}],
            "scaleDown": {"cpuThreshold": 50, "duration": "10m"},
        }
    ],
    "objectives": {"overloadTime": 0.5, "latency": {"atMost": "1s"}},
    "duration": "20m",
    "start": "2026-01-01T00:00:00Z",
    "seed": 1,
}
ABSURD: Final[tuple[object, ...]] = (
    *(10**400, -(10**400), 2**63, 1e308, -1e308, 5e-324, 0, -1, True, None, [], {}, [[1]], {"a": 1}),
    *("", "\x00", "1e400", "1e-300", "9" * 5000, "1E", "NaN", "9999999999h", "0.0000000001s", "0001-01-01T00:00:00Z"),
)


def places(value: Any, path: tuple[Step, ...] = ()) -> list[tuple[Step, ...]]:
    """Return the path of every value below a value."""
    steps = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [found for step, below in steps for found in ((*path, step), *places(below, (*path, step)))]


def changed(path: tuple[Step, ...], value: object) -> str:
    """Return the scenario with another value at a path."""
    made = deepcopy(SCENARIO)
    below: Any = made
    for step in path[:-1]:
        below = below[step]
    below[path[-1]] = value
    return json.dumps(made)


def test_the_scenario_is_valid() -> None:
    assert parse_scenario(json.dumps(SCENARIO)).name == "web"


@given(
    st.sampled_from(places(SCENARIO)),
    st.sampled_from(ABSURD)
    | st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=9),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=9), inner, max_size=3),
        max_leaves=5,
    ),
)
def test_any_value_at_any_field_gives_a_scenario_or_an_error_of_ours(path: tuple[Step, ...], value: object) -> None:
    # Any other error than one of ours fails the test.
    with suppress(ConfigError):
        parse_scenario(changed(path, value))


@pytest.mark.parametrize("raw", ["1e400", ".inf", ".nan", "9" * 5000, "0x" + "f" * 400, "!!float 1", "*x", '"\\0"'])
def test_a_scalar_of_yaml_that_is_not_a_number_of_json(raw: str) -> None:
    for path in places(SCENARIO):
        text = changed(path, "@@@").replace('"@@@"', raw)
        with suppress(ConfigError):
            parse_scenario(text)


@pytest.mark.parametrize(
    ("path", "value", "problem"),
    [
        pytest.param(
            ("load", 0, "steps", 0, "rate"), 1e22, "less than or equal to 1000000000000, got 1e+22", id="rate"
        ),
        pytest.param(("workload", "capacity"), 5e-324, "must be at least 0.000001, got 5e-324", id="capacity"),
        pytest.param(("workload", "capacity"), 1e308, "less than or equal to 1000000000000", id="large capacity"),
        pytest.param(("workload", "replicas"), 10**18, "must be less than or equal to 1000000, got", id="replicas"),
        pytest.param(("metrics", "delay"), "99999999999h", "is too long", id="an impossible delay"),
        pytest.param(
            ("metrics", "delay"), "100000h", "must be a duration of at most 87600h, got '100000h'", id="delay"
        ),
        pytest.param(("controller", "syncPeriod"), "1us", "must be a duration of at least 1ms, got '1us'", id="period"),
        pytest.param(("start",), "9999-12-31T23:59:59Z", "must be an instant of the years 1970 to 2200", id="start"),
        pytest.param(
            ("hpa",), "\x00", "cannot be read: a null character in its name", id="a name with a null character"
        ),
    ],
)
def test_what_would_overflow_is_an_error_of_its_field(path: tuple[Step, ...], value: object, problem: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_scenario(changed(path, value))

    assert problem in str(caught.value)
    if path != ("hpa",):
        assert str(path[-1]) in str(caught.value)
