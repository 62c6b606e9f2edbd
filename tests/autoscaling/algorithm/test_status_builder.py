"""Conditions and events that a sync collects."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ocf.autoscaling.algorithm.rules import Rule
from ocf.autoscaling.algorithm.status import HpaCondition
from ocf.autoscaling.algorithm.status_builder import StatusBuilder

_NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)
_EARLIER = _NOON - timedelta(hours=1)
_LIMITED = HpaCondition("ScalingLimited", "False", "DesiredWithinRange", "within the range", _EARLIER)


@pytest.mark.parametrize(
    ("status", "reason", "message", "since"),
    [
        pytest.param("False", "DesiredWithinRange", "within the range", _EARLIER, id="nothing"),
        pytest.param("False", "TooManyReplicas", "within the range", _EARLIER, id="reason"),
        pytest.param("False", "DesiredWithinRange", "other", _EARLIER, id="message"),
        pytest.param("True", "DesiredWithinRange", "within the range", _NOON, id="status"),
    ],
)
def test_the_transition_time_moves_only_with_the_status(
    status: str, reason: str, message: str, since: datetime
) -> None:
    builder = StatusBuilder((_LIMITED,), _NOON)
    builder.set("ScalingLimited", status, reason, message)
    assert builder.conditions == (HpaCondition("ScalingLimited", status, reason, message, since),)


@pytest.mark.parametrize("stored", [(), (_LIMITED,)], ids=["new", "changed"])
def test_a_rule_is_stored_as_a_plain_string(stored: tuple[HpaCondition, ...]) -> None:
    builder = StatusBuilder(stored, _NOON)
    builder.set("ScalingLimited", "True", Rule.TOO_MANY, "too many")
    (condition,) = builder.conditions
    assert (condition.reason, type(condition.reason)) == ("TooManyReplicas", str)


def test_a_rule_equals_the_reason_that_was_read() -> None:
    builder = StatusBuilder((_LIMITED,), _NOON)
    builder.set("ScalingLimited", "False", Rule.WITHIN_RANGE, "within the range")
    assert builder.conditions[0] is _LIMITED


def test_conditions_keep_their_order_and_new_ones_follow() -> None:
    active = HpaCondition("ScalingActive", "True", "ValidMetricFound", "found", _EARLIER)
    builder = StatusBuilder((_LIMITED, active), _NOON)
    builder.set("AbleToScale", "True", "ReadyForNewScale", "ready")
    builder.set("ScalingLimited", "True", "TooManyReplicas", "too many")
    builder.remove("ScalingActive")
    builder.remove("ScaledToZero")
    assert [each.type for each in builder.conditions] == ["ScalingLimited", "AbleToScale"]


_STEPS = st.tuples(
    st.sampled_from(["set", "set", "set", "remove", "read"]),
    st.sampled_from(["AbleToScale", "ScalingActive", "ScalingLimited"]),
    st.sampled_from(["True", "False"]),
    st.sampled_from(["DesiredWithinRange", "Other"]),
)


@given(steps=st.lists(_STEPS, max_size=8), stored=st.sampled_from([(), (_LIMITED,)]))
def test_every_setting_counts_in_its_turn(
    steps: list[tuple[str, str, str, str]], stored: tuple[HpaCondition, ...]
) -> None:
    """A condition that ends as it began keeps its time, unless it had another status in between."""
    builder = StatusBuilder(stored, _NOON)
    expected = {each.type: each for each in stored}
    for action, kind, status, reason in steps:
        if action == "set":
            known = expected.get(kind)
            since = known.since if known is not None and known.status == status else _NOON
            expected[kind] = HpaCondition(kind, status, reason, "within the range", since)
            builder.set(kind, status, reason, "within the range")
        elif action == "remove":
            expected.pop(kind, None)
            builder.remove(kind)
        else:
            assert builder.conditions == tuple(expected.values())
    assert builder.conditions == tuple(expected.values())
