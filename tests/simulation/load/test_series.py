"""A load as a step function."""

import math

import pytest

from ocf.errors import ConfigError
from ocf.simulation.load import LoadSeries


def test_a_step_holds_until_the_next_one() -> None:
    load = LoadSeries.of([(0, 5), (60, 8)], end=120)

    assert [load.at(time) for time in (0, 59.9, 60, 1000)] == [5, 5, 8, 8]


@pytest.mark.parametrize(
    ("steps", "end", "problem"),
    [
        pytest.param([], None, "the load is empty", id="empty"),
        pytest.param([(1, 5)], None, "must begin at 0 s, not at 1 s", id="later"),
        pytest.param(
            [(0, 5), (60, 5), (60, 5)], None, "step 3 of the load must begin after 60 s, not at 60 s", id="twice"
        ),
        pytest.param([(0, 5), (9, -1)], None, "step 2 of the load must be a finite number .*, not -1", id="negative"),
        pytest.param([(0, math.nan)], None, "step 1 of the load must be a finite number .*, not nan", id="nan"),
        pytest.param([(0, math.inf)], None, "not inf", id="infinite"),
        pytest.param([(0, 5), (9, 5)], 9, "must end after its last step at 9 s, not at 9 s", id="end"),
    ],
)
def test_an_invalid_load_is_rejected(steps: list[tuple[float, float]], end: float | None, problem: str) -> None:
    with pytest.raises(ConfigError, match=problem):
        LoadSeries.of(steps, end=end)
