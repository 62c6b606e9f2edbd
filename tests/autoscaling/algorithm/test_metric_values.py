"""Metric values from the responses of the metrics APIs, including missing data."""

from datetime import UTC, datetime, timedelta
from typing import Any, Final

import pytest

from ocf.autoscaling.algorithm import (
    Sample,
    Unavailable,
    read_external,
    read_object,
    read_pods,
    read_resource,
)
from ocf.autoscaling.algorithm.history import ZERO_TIME
from ocf.errors import ManifestError

NOON: Final = datetime(2026, 1, 31, 12, tzinfo=UTC)


def usage(*containers: dict[str, str], window: str = "30s") -> dict[str, Any]:
    named = [{"name": name, "usage": each} for name, each in zip(("app", "side"), containers, strict=False)]
    return {
        "metadata": {"name": "web-0"},
        "timestamp": "2026-01-31T12:00:00Z",
        "window": window,
        "containers": named,
    }


@pytest.mark.parametrize(
    ("item", "container", "expected"),
    [
        pytest.param(usage({"cpu": "250m"}, {"cpu": "1"}), "", 1250, id="the sum of the containers"),
        pytest.param(usage({"cpu": "250m"}, {"cpu": "1"}), "side", 1000, id="one container"),
        pytest.param(usage({"cpu": "250m"}, {"memory": "1"}), "", None, id="a container without the resource"),
        pytest.param(usage({"cpu": "250m"}, {"memory": "1"}), "side", None, id="without the resource"),
        pytest.param(usage({"cpu": "250m"}), "side", None, id="no such container"),
        pytest.param(usage(), "", None, id="no container"),
        pytest.param(usage({"cpu": "123456n"}), "", 1, id="fractions of a thousandth are rounded up"),
    ],
)
def test_the_usage_of_a_pod(item: dict[str, Any], container: str, expected: int | None) -> None:
    found = read_resource([item], "cpu", container)

    assert found == ({} if expected is None else {"web-0": Sample(expected, NOON, timedelta(seconds=30))})


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("1m30s", 90), ("0", 0), ("15.5s", 15.5), ("1h0m0s", 3600), ("250ms", 0.25)],
)
def test_windows_are_durations(text: str, seconds: float) -> None:
    found = read_resource([usage({"cpu": "1"}, window=text)], "cpu")

    assert not isinstance(found, Unavailable)
    assert found["web-0"].window == timedelta(seconds=seconds)


@pytest.mark.parametrize("text", ["soon", "5", "5s later", "-5s"])
def test_an_invalid_duration_is_rejected(text: str) -> None:
    with pytest.raises(ManifestError, match="must be a duration like 1m30s"):
        read_resource([usage({"cpu": "1"}, window=text)], "cpu")


def test_a_response_without_entries_is_not_a_zero() -> None:
    assert [read([]) for read in (read_pods, read_object, read_external)] == [
        Unavailable("no metrics returned from custom metrics API"),
        Unavailable("no metrics returned from custom metrics API"),
        Unavailable("no metrics returned from external metrics API"),
    ]
    assert read_resource([], "cpu") == Unavailable("no metrics returned from resource metrics API")


@pytest.mark.parametrize(
    ("fields", "window"),
    [
        pytest.param({}, 60, id="a minute by default"),
        pytest.param({"windowSeconds": 15}, 15, id="v1beta2"),
        pytest.param({"window": 20}, 20, id="v1beta1"),
    ],
)
def test_a_custom_metric_by_pod(fields: dict[str, int], window: int) -> None:
    item = {"describedObject": {"name": "web-0"}, "value": "1500m", **fields}

    assert read_pods([item]) == {"web-0": Sample(1500, ZERO_TIME, timedelta(seconds=window))}


def test_totals() -> None:
    assert read_object([{"value": "3"}, {"value": "4"}]) == (3000,)
    assert read_external([{"value": "3"}, {"value": "500m"}]) == (3000, 500)
