"""Early exits: exactly the syncs in which the algorithm does not use metric values."""

import pytest

from ocf.autoscaling import FeatureGates
from ocf.autoscaling.algorithm import Autoscaler, Metric, MetricTarget, Scale, Settings, Unavailable
from ocf.autoscaling.algorithm.early_exit import early_exit_rule
from ocf.autoscaling.algorithm.rules import Rule
from ocf.autoscaling.algorithm.status import HpaCondition

QUEUE = Metric("External", "queue", MetricTarget(value=10_000))
CPU = Metric("Resource", "cpu", MetricTarget(utilization=50))
TAKEN = HpaCondition("ScaledToZero", "True", "ScaledToZero", "")
PAUSED = HpaCondition("ScaledToZero", "False", "NotScaledToZero", "")
ON = Settings(features=FeatureGates(scale_to_zero=True))
OLD = Settings(features=FeatureGates(scale_to_zero=True, remembered_zero=False))


@pytest.mark.parametrize(
    ("replicas", "minimum", "metric", "condition", "settings", "expected"),
    [
        pytest.param(3, 1, CPU, None, Settings(), None, id="in range"),
        pytest.param(10, 1, CPU, None, Settings(), Rule.ABOVE_MAXIMUM, id="above"),
        pytest.param(1, 2, CPU, None, Settings(), Rule.BELOW_MINIMUM, id="below"),
        pytest.param(0, 1, CPU, None, Settings(), Rule.DISABLED, id="zero"),
        pytest.param(0, 1, QUEUE, TAKEN, Settings(), Rule.DISABLED, id="zero, gate off"),
        pytest.param(0, 0, QUEUE, TAKEN, ON, None, id="zero by the controller"),
        pytest.param(0, 0, CPU, TAKEN, ON, Rule.DISABLED, id="zero by the controller, pods only"),
        pytest.param(0, 1, CPU, TAKEN, ON, None, id="zero by the controller, minimum raised"),
        pytest.param(0, 0, QUEUE, PAUSED, ON, Rule.DISABLED, id="zero by a user"),
        pytest.param(0, 0, CPU, None, OLD, None, id="zero before 1.36"),
        pytest.param(0, 1, QUEUE, None, OLD, Rule.DISABLED, id="zero before 1.36, minimum 1"),
    ],
)
def test_metrics_are_read_in_range_and_when_scaling_up_from_zero(  # noqa: PLR0917 (a row of the table)
    replicas: int,
    minimum: int,
    metric: Metric,
    condition: HpaCondition | None,
    settings: Settings,
    expected: Rule | None,
) -> None:
    web = Autoscaler(name="web", minimum=minimum, maximum=9, metrics=(metric,))
    conditions = () if condition is None else (condition,)

    assert early_exit_rule(web, Scale(replicas, replicas, "app=web"), conditions, settings) is expected


@pytest.mark.parametrize("scale", [Scale(3, 3, "app=web"), Unavailable("gone")])
def test_metrics_are_not_read_if_the_scale_is_unreadable(scale: Scale | Unavailable) -> None:
    version = "apps/v1" if isinstance(scale, Unavailable) else "apps/v1/beta"
    web = Autoscaler(name="web", api_version=version, maximum=9)

    assert early_exit_rule(web, scale, (), Settings()) is Rule.UNREADABLE
