"""The factories for behavior return what the API server accepts, and reject anything else at the call."""

from collections.abc import Callable
from typing import Any

import pytest
from pydantic import BaseModel

from ocf.autoscaling import Select, scaling
from ocf.errors import ConfigError


def written(model: BaseModel) -> dict[str, Any]:
    return model.model_dump(mode="json", by_alias=True, exclude_none=True)


class TestPolicies:
    def test_each_kind_has_its_factory(self) -> None:
        assert written(scaling.pods(4, period_seconds=60)) == {"type": "Pods", "value": 4, "periodSeconds": 60}
        assert written(scaling.percent(100)) == {"type": "Percent", "value": 100, "periodSeconds": 15}

    @pytest.mark.parametrize("factory", [scaling.pods, scaling.percent])
    @pytest.mark.parametrize("period", [1, 1800])
    def test_the_bounds_are_accepted(self, factory: Callable[..., BaseModel], period: int) -> None:
        assert written(factory(1, period_seconds=period))["periodSeconds"] == period

    @pytest.mark.parametrize(
        ("policy", "problem"),
        [
            pytest.param(lambda: scaling.pods(0), "scaling.pods: the value must be an integer from 1", id="nothing"),
            pytest.param(lambda: scaling.percent(-3), "scaling.percent: the value must be", id="negative"),
            pytest.param(lambda: scaling.pods(1, period_seconds=0), "period_seconds must be an integer", id="no time"),
            pytest.param(lambda: scaling.pods(1, period_seconds=1801), "from 1 to 1800, not 1801", id="too long"),
            pytest.param(lambda: scaling.pods(1.5), "not 1.5", id="fraction"),  # type: ignore[arg-type]  # rejected
        ],
    )
    def test_a_value_out_of_bounds_is_rejected(self, policy: Callable[[], object], problem: str) -> None:
        with pytest.raises(ConfigError) as caught:
            policy()

        assert problem in str(caught.value)


class TestRules:
    def test_fields_that_are_not_given_are_not_set(self) -> None:
        assert written(scaling.rules()) == {}

    def test_given_fields_are_set(self) -> None:
        rules = scaling.rules(
            scaling.pods(2), scaling.percent(10), select=Select.MIN, stabilization_window_seconds=60, tolerance="0.05"
        )

        assert written(rules) == {
            "policies": [
                {"type": "Pods", "value": 2, "periodSeconds": 15},
                {"type": "Percent", "value": 10, "periodSeconds": 15},
            ],
            "selectPolicy": "Min",
            "stabilizationWindowSeconds": 60,
            "tolerance": "0.05",
        }

    def test_disabled_disables_a_direction(self) -> None:
        assert written(scaling.disabled()) == {"selectPolicy": "Disabled"}

    @pytest.mark.parametrize("window", [0, 3600])
    def test_the_bounds_of_a_window_are_accepted(self, window: int) -> None:
        assert written(scaling.rules(stabilization_window_seconds=window)) == {"stabilizationWindowSeconds": window}

    @pytest.mark.parametrize("tolerance", ["0", 0, "0.1", "100m", 1])
    def test_a_tolerance_is_a_quantity_of_zero_or_more(self, tolerance: str | int) -> None:
        assert written(scaling.rules(tolerance=tolerance)) == {"tolerance": str(tolerance)}

    @pytest.mark.parametrize(
        ("given", "problem"),
        [
            pytest.param({"stabilization_window_seconds": -1}, "from 0 to 3600, not -1", id="window negative"),
            pytest.param({"stabilization_window_seconds": 3601}, "from 0 to 3600, not 3601", id="window too long"),
            pytest.param({"stabilization_window_seconds": 1.5}, "must be an integer", id="window fraction"),
            pytest.param({"tolerance": "-0.1"}, "tolerance must be zero or more, not '-0.1'", id="tolerance negative"),
            pytest.param({"tolerance": "5%"}, "tolerance: '5%' is not a quantity", id="tolerance percent"),
            pytest.param({"select": "Max"}, "select must be one of", id="selection as text"),
        ],
    )
    def test_an_invalid_argument_is_rejected(self, given: dict[str, Any], problem: str) -> None:
        with pytest.raises(ConfigError) as caught:
            scaling.rules(**given)

        assert problem in str(caught.value)

    def test_a_policy_of_another_type_is_rejected(self) -> None:
        with pytest.raises(ConfigError, match="policies: must be a V2HPAScalingPolicy"):
            scaling.rules({"type": "Pods"})  # type: ignore[arg-type]  # rejected


class TestBehavior:
    def test_each_direction_is_optional(self) -> None:
        assert written(scaling.behavior()) == {}
        assert written(scaling.behavior(up=scaling.disabled())) == {"scaleUp": {"selectPolicy": "Disabled"}}
        assert written(scaling.behavior(down=scaling.rules(tolerance=1))) == {"scaleDown": {"tolerance": "1"}}

    def test_rules_of_another_type_are_rejected(self) -> None:
        with pytest.raises(ConfigError, match="scaleDown: must be a V2HPAScalingRules"):
            scaling.behavior(down=scaling.pods(1))  # type: ignore[arg-type]  # rejected
