"""Conditions as bands."""

from hypothesis import given
from hypothesis import strategies as st

from ocf.simulation.report.bands import bands
from ocf.simulation.result import ConditionChange


def change(time: float, status: str, *, type: str = "AbleToScale", reason: str = "Some") -> ConditionChange:  # noqa: A002
    return ConditionChange(time=time, type=type, status=status, reason=reason, message=f"at {time}")


def test_each_type_is_a_band_with_its_own_good_state() -> None:
    found = list(bands([change(0, "True"), change(0, "True", type="ScalingLimited"), change(5, "False")], 10))
    assert [(each.name, each.changes) for each in found] == [
        ("AbleToScale", ((0, "good", "True: Some"), (5, "bad", "False: Some"))),
        ("ScalingLimited", ((0, "warn", "True: Some"),)),
    ]


def test_a_change_of_the_message_alone_is_not_a_change() -> None:
    [band] = bands([change(0, "True"), change(5, "True"), change(8, "False")], 10)
    assert [time for time, *_ in band.changes] == [0, 8]


def test_too_many_changes_leave_the_state_that_holds_longest() -> None:
    """Two parts of five seconds: True for four of the first five, False for three of the others."""
    times = [(0, "True"), (2, "False"), (3, "True"), (6, "False"), (8, "True"), (9, "False")]
    [band] = bands([change(*each) for each in times], 10, most=2)
    assert band.changes == ((0.0, "good", "True: Some"), (5.0, "bad", "False: Some"))


@given(times=st.lists(st.floats(0, 99), min_size=1, max_size=50, unique=True), most=st.integers(1, 20))
def test_the_number_of_changes_is_bounded(times: list[float], most: int) -> None:
    changes = [change(time, "True", reason=str(number)) for number, time in enumerate(sorted(times))]
    [band] = bands(changes, 100, most=most)
    assert len(band.changes) <= max(1, most)
    assert list(band.changes) == sorted(band.changes)
