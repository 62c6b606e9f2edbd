"""Metric factories make what the API server accepts, and refuse the rest at the call."""

from collections.abc import Callable
from typing import Any

import pytest
from kubernetes.client import V2MetricSpec

from ocf.autoscaling import metrics
from ocf.errors import ConfigError

FACTORIES = [pytest.param(metrics.cpu, "cpu", id="cpu"), pytest.param(metrics.memory, "memory", id="memory")]
Factory = Callable[..., V2MetricSpec]


def written(metric: V2MetricSpec) -> dict[str, Any]:
    return metric.model_dump(mode="json", by_alias=True, exclude_none=True)


@pytest.mark.parametrize(("factory", "name"), FACTORIES)
class TestResourceMetrics:
    @pytest.mark.parametrize("percent", [1, 70, 250, 2**31 - 1])
    def test_utilization_is_a_percentage_of_the_request(self, factory: Factory, name: str, percent: int) -> None:
        assert written(factory(average_utilization=percent)) == {
            "type": "Resource",
            "resource": {"name": name, "target": {"type": "Utilization", "averageUtilization": percent}},
        }

    @pytest.mark.parametrize(
        ("value", "expected"),
        [
            pytest.param("512Mi", "512Mi", id="text"),
            pytest.param("1000m", "1000m", id="as it was written, not canonical"),
            pytest.param(2, "2", id="integer"),
            pytest.param("1n", "1n", id="smallest"),
        ],
    )
    def test_a_value_is_a_quantity_per_pod(self, factory: Factory, name: str, value: str | int, expected: str) -> None:
        assert written(factory(average_value=value)) == {
            "type": "Resource",
            "resource": {"name": name, "target": {"type": "AverageValue", "averageValue": expected}},
        }

    @pytest.mark.parametrize(
        ("targets", "problem"),
        [
            pytest.param({}, "give exactly one of average_utilization and average_value, not none", id="none"),
            pytest.param(
                {"average_utilization": 70, "average_value": "1"},
                "exactly one of average_utilization and average_value, not average_utilization=70, average_value='1'",
                id="both",
            ),
            pytest.param({"average_utilization": 0}, "average_utilization must be an integer from 1", id="zero"),
            pytest.param({"average_utilization": -5}, "percent, not -5", id="negative"),
            pytest.param({"average_utilization": 2**31}, "to 2147483647, percent, not 2147483648", id="beyond 32 bits"),
            pytest.param({"average_utilization": True}, "percent, not True", id="boolean"),
            pytest.param({"average_utilization": 50.5}, "percent, not 50.5", id="fraction"),
            pytest.param({"average_utilization": "70"}, "percent, not '70'", id="text"),
            pytest.param({"average_value": 0}, "average_value must be positive, not 0", id="value zero"),
            pytest.param({"average_value": "-1m"}, "average_value must be positive, not '-1m'", id="value negative"),
            pytest.param({"average_value": "1K"}, "average_value: '1K' is no quantity: write", id="value no quantity"),
            pytest.param({"average_value": True}, "average_value must be a text or an integer", id="value boolean"),
            pytest.param({"average_value": 0.5}, "average_value must be a text or an integer", id="value fraction"),
        ],
    )
    def test_refuses_at_the_call(self, factory: Factory, name: str, targets: dict[str, Any], problem: str) -> None:
        with pytest.raises(ConfigError) as caught:
            factory(**targets)

        assert str(caught.value).startswith(f"metrics.{name}: ")
        assert problem in str(caught.value)
