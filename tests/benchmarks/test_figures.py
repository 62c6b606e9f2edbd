"""Summing up: what the median, the ratio and the verdict are taken from."""

from dataclasses import replace

import pytest

from benchmarks.figures import Case, Count, counted, timed


def case(limit: float | None = None, *, beyond: bool = False) -> Case:
    return Case(name="a.own", what="", measure=lambda _: 0, limit=limit, against="a.other", beyond=beyond)


SAMPLES = {"a.own": [30.0, 20.0, 100.0], "a.other": [10.0, 10.0, 50.0]}


def test_the_median_is_reported_with_its_spread() -> None:
    figure = timed(case(), SAMPLES, judged=True)

    assert (figure.minimum, figure.median, figure.maximum, figure.rounds) == (20, 30, 100, 3)


def test_the_ratio_is_taken_round_by_round() -> None:
    """A round in which the machine was slow counts like any other: both were slow in it."""
    assert timed(case(), SAMPLES, judged=True).ratio == 2


def test_beyond_subtracts_round_by_round_and_keeps_the_ratio_of_the_whole() -> None:
    figure = timed(case(beyond=True), SAMPLES, judged=True)

    assert (figure.minimum, figure.median, figure.maximum, figure.ratio) == (10, 20, 50, 2)


@pytest.mark.parametrize(
    ("limit", "judged", "holds"),
    [
        pytest.param(31, True, True, id="below the limit"),
        pytest.param(30, True, False, id="at the limit"),
        pytest.param(30, False, None, id="not judged"),
        pytest.param(None, True, None, id="no limit"),
    ],
)
def test_the_median_is_judged(limit: float | None, judged: bool, holds: bool | None) -> None:
    assert timed(case(limit), SAMPLES, judged=judged).holds is holds


@pytest.mark.parametrize(
    ("share", "limit", "holds"),
    [
        pytest.param(2.0, None, True, id="as much as allowed"),
        pytest.param(1.9, None, False, id="more"),
        pytest.param(2.0, 30, False, id="the limit is missed"),
        pytest.param(1.9, 31, False, id="only the limit holds"),
    ],
)
def test_the_ratio_is_judged(share: float, limit: float | None, holds: bool) -> None:
    judged = replace(case(limit), share=share)

    assert timed(judged, SAMPLES, judged=True).holds is holds


def test_a_case_without_its_yardstick_has_no_ratio() -> None:
    figure = timed(replace(case(), share=1.0), {"a.own": [1.0]}, judged=True)

    assert (figure.ratio, figure.against, figure.holds) == (None, "", None)


@pytest.mark.parametrize(
    ("value", "limit", "holds"),
    [
        pytest.param(6, 6, True, id="as many as allowed"),
        pytest.param(7, 6, False, id="one too many"),
        pytest.param(7, None, None, id="no limit"),
    ],
)
def test_a_count_is_judged_in_every_run(value: int, limit: int | None, holds: bool | None) -> None:
    assert counted(Count(name="a.count", what="", value=value, limit=limit)).holds is holds


def test_a_count_that_has_to_be_found_out_is_asked_for_once() -> None:
    """What takes long to find out is found out only where it is wanted."""
    asked: list[int] = []

    def count() -> int:
        asked.append(1)
        return 7

    assert counted(Count(name="a.found", what="", value=count, limit=6)).holds is False
    assert len(asked) == 1


def test_the_ratio_of_a_count_is_taken_to_another_of_its_suite() -> None:
    suite = [Count(name="a.bare", what="", value=8), Count(name="a.own", what="", value=2, against="a.bare")]

    assert [(figure.ratio, figure.against) for figure in (counted(one, suite) for one in suite)] == [
        (None, ""),
        (0.25, "a.bare"),
    ]


@pytest.mark.parametrize(
    ("value", "limit", "holds"),
    [
        pytest.param(5, None, True, id="as much as is allowed"),
        pytest.param(6, None, False, id="more"),
        pytest.param(5, 4, False, id="beyond its limit"),
    ],
)
def test_the_ratio_of_a_count_may_be_limited(value: int, limit: int | None, holds: bool) -> None:
    other = Count(name="a.theirs", what="", value=10)
    ours = Count(name="a.ours", what="", value=value, limit=limit, against="a.theirs", share=0.5)
    figure = counted(ours, [other, ours])
    assert (figure.holds, figure.share) == (holds, 0.5)


def test_a_count_that_is_compared_with_none_has_no_ratio() -> None:
    suite = [Count(name="a.bare", what="", value=0), Count(name="a.own", what="", value=2, against="a.bare")]

    assert counted(suite[1], suite).ratio is None
    assert counted(suite[1]).ratio is None
