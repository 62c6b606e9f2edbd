"""Status conditions and their transition times."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ocf.objects import Manifest
from ocf.objects.conditions import (
    LONGEST_MESSAGE,
    ConditionStatus,
    find_condition,
    is_condition_true,
    set_condition,
    shortened_message,
    transition_time,
    with_condition,
)
from ocf.objects.timestamps import format_time

NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)
EARLIER = "2026-01-31T11:00:00Z"


def condition(kind: str = "Ready", status: str = "True", **others: Any) -> Manifest:
    return {"type": kind, "status": status, "lastTransitionTime": EARLIER, **others}


def staged(conditions: list[Manifest], status: ConditionStatus, kind: str = "Ready") -> list[Manifest]:
    return set_condition(
        conditions, condition_type=kind, status=status, reason="Said", message="m", observed_generation=2, now=NOON
    )


@pytest.mark.parametrize("conditions", [None, [], [{}], [condition("Other")]])
def test_an_absent_condition_is_not_found(conditions: list[Manifest] | None) -> None:
    assert find_condition(conditions, "Ready") is None
    assert not is_condition_true(conditions, "Ready")


def test_a_condition_is_found_by_its_type() -> None:
    ready = condition()

    assert find_condition([condition("Other"), ready], "Ready") is ready


@pytest.mark.parametrize(
    ("status", "expected"), [("True", True), ("False", False), ("Unknown", False), ("true", False)]
)
def test_only_true_is_true(status: str, expected: bool) -> None:
    assert is_condition_true([condition(status=status)], "Ready") is expected


@pytest.mark.parametrize(
    ("stored", "status", "since"),
    [
        pytest.param(condition(status="False"), ConditionStatus.TRUE, format_time(NOON), id="the status changes"),
        pytest.param(condition(status="True"), ConditionStatus.TRUE, EARLIER, id="the status stays"),
        pytest.param(condition(status="Unknown"), ConditionStatus.UNKNOWN, EARLIER, id="unknown stays"),
        pytest.param(
            {"type": "Ready", "status": "True"}, ConditionStatus.TRUE, format_time(NOON), id="no time is stored"
        ),
    ],
)
def test_the_transition_time_moves_with_the_status_only(stored: Manifest, status: ConditionStatus, since: str) -> None:
    assert staged([stored], status) == [
        {
            "type": "Ready",
            "status": str(status),
            "reason": "Said",
            "message": "m",
            "observedGeneration": 2,
            "lastTransitionTime": since,
        }
    ]


def test_a_new_condition_comes_last_and_others_stay() -> None:
    first = condition("First")

    after = staged([first], ConditionStatus.FALSE)

    assert [each["type"] for each in after] == ["First", "Ready"]
    assert after[0] is first
    assert after[1]["lastTransitionTime"] == format_time(NOON)


def test_a_condition_keeps_its_place_and_the_given_list_is_not_changed() -> None:
    given_conditions = [condition("First"), condition(), condition("Last")]
    before = str(given_conditions)

    after = staged(given_conditions, ConditionStatus.FALSE)

    assert [each["type"] for each in after] == ["First", "Ready", "Last"]
    assert str(given_conditions) == before


@given(st.lists(st.sampled_from(ConditionStatus), min_size=1))
def test_the_transition_time_is_that_of_the_first_of_the_last_run_of_equal_statuses(
    statuses: list[ConditionStatus],
) -> None:
    conditions: list[Manifest] = []
    for hour, status in enumerate(statuses):
        conditions = set_condition(
            conditions,
            condition_type="Ready",
            status=status,
            reason="Said",
            message=str(hour),
            observed_generation=1,
            now=NOON + timedelta(hours=hour),
        )
    run = next((back for back, status in enumerate(reversed(statuses)) if status != statuses[-1]), len(statuses))

    assert conditions[0]["lastTransitionTime"] == format_time(NOON + timedelta(hours=len(statuses) - run))


def test_the_status_that_is_stored_is_a_plain_text() -> None:
    assert type(staged([], ConditionStatus.TRUE)[0]["status"]) is str


def test_a_stored_time_that_is_unknown_stays_unknown() -> None:
    assert transition_time("True", NOON, stored=("True", None)) is None


def test_every_condition_of_the_type_is_replaced() -> None:
    new = condition(status="False")

    assert with_condition([condition(), condition("Other"), condition()], new) == [new, condition("Other"), new]


def test_a_status_is_made_of_a_boolean() -> None:
    assert (ConditionStatus.of(value=True), ConditionStatus.of(value=False)) == ("True", "False")


@given(st.integers(min_value=0, max_value=3_000_000))
def test_a_message_fits_the_api_and_ends_with_the_number_of_characters_that_were_cut(excess: int) -> None:
    text = "x" * (LONGEST_MESSAGE + excess)
    short = shortened_message(text)

    assert len(short) == LONGEST_MESSAGE
    kept, _, end = short.partition("…")
    assert end == (f" ({len(text) - len(kept)} characters cut)" if excess else "")


def test_a_message_that_fits_is_unchanged() -> None:
    assert shortened_message("x" * LONGEST_MESSAGE) == "x" * LONGEST_MESSAGE
