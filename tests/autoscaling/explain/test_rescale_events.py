"""The direction of the last rescale is that of the event from the time of the rescale."""

from datetime import timedelta
from typing import Final

import pytest

from ocf.autoscaling.explain.rescale_events import RescaleEvent, scaled_up
from tests.autoscaling.explain.values import NOON

UP: Final = "New size: 5; reason: external metric queue(nil) above target"
DOWN: Final = "New size: 2; reason: All metrics below target"


def event(message: str, seconds: int = 0, reason: str = "SuccessfulRescale") -> RescaleEvent:
    return RescaleEvent(reason, message, NOON + timedelta(seconds=seconds))


@pytest.mark.parametrize(
    ("events", "expected"),
    [
        pytest.param([event(UP)], True, id="added"),
        pytest.param([event(DOWN, 1)], False, id="removed"),
        pytest.param(
            [event("New size: 9; reason: Current number of replicas above Spec.MaxReplicas")], False, id="maximum"
        ),
        pytest.param(
            [event("New size: 2; reason: Current number of replicas below Spec.MinReplicas")], True, id="minimum"
        ),
        pytest.param([event(UP, -60), event(DOWN)], False, id="an-earlier-one-does-not-count"),
        pytest.param([event(UP, 1), event(DOWN)], None, id="both-directions"),
        pytest.param([event(UP, reason="FailedRescale")], None, id="a-failure"),
        pytest.param([], None, id="none"),
    ],
)
def test_the_direction(events: list[RescaleEvent], expected: object) -> None:
    assert scaled_up(events, NOON) is expected


def test_what_was_never_scaled_has_no_direction() -> None:
    assert scaled_up([event(UP)], None) is None
