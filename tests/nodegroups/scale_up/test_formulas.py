"""The formulas for the number of nodes."""

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ocf.nodegroups.scale_up import calculate_desired_nodes, calculate_nodes_to_add, is_in_cooldown
from tests.nodegroups.groups import NOW


@pytest.mark.parametrize(
    ("desired", "current", "most", "batch", "add"),
    [
        pytest.param(5, 3, 10, 0, 2, id="gap"),
        pytest.param(10, 5, 7, 0, 2, id="maximum"),
        pytest.param(10, 2, 20, 3, 3, id="batch"),
        pytest.param(20, 8, 10, 5, 2, id="maximum below batch"),
        pytest.param(12, 2, 20, 0, 10, id="no batch"),
        pytest.param(2, 5, 10, 0, 0, id="too many nodes"),
    ],
)
def test_nodes_to_add(desired: int, current: int, most: int, batch: int, add: int) -> None:
    assert calculate_nodes_to_add(desired, current, most, batch) == add


@pytest.mark.parametrize(
    ("current", "needed", "least", "most", "desired"),
    [
        pytest.param(3, 2, 1, 10, 5, id="sum"),
        pytest.param(8, 5, 1, 10, 10, id="maximum"),
        pytest.param(0, 0, 2, 10, 2, id="minimum"),
        pytest.param(8, 0, 1, 5, 5, id="maximum lowered"),
        pytest.param(0, 0, 10, 5, 5, id="minimum above maximum"),
    ],
)
def test_desired_nodes(current: int, needed: int, least: int, most: int, desired: int) -> None:
    assert calculate_desired_nodes(current, needed, least, most) == desired


@pytest.mark.parametrize(
    ("age", "cooldown", "expected"),
    [
        pytest.param(300, 600, True, id="within"),
        pytest.param(600, 600, False, id="exactly over"),
        pytest.param(0, 0, False, id="none"),
        pytest.param(-3600, 600, True, id="the last scaling is in the future"),
        pytest.param(None, 600, False, id="never scaled"),
    ],
)
def test_cooldown(age: int | None, cooldown: int, expected: bool) -> None:
    last = None if age is None else NOW - timedelta(seconds=age)
    assert is_in_cooldown(NOW, last, timedelta(seconds=cooldown)) is expected


@given(*[st.integers(-3, 50)] * 4)
def test_counts_stay_in_bounds(current: int, needed: int, least: int, most: int) -> None:
    desired = calculate_desired_nodes(current, needed, least, most)
    assert 0 <= desired <= max(most, 0)
    assert current + calculate_nodes_to_add(desired, current, most) <= max(current, most)
