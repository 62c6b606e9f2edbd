"""Conditions: reading a stored one, and the one after an error."""

from datetime import UTC, datetime

import pytest

from ocf.component.status.conditions import Condition, ConditionContext, stored_condition, written_condition
from ocf.component.status.reasons import Reason
from ocf.objects import Manifest

NOW = datetime(2026, 1, 31, 12, 0, tzinfo=UTC)
EARLIER = "2026-01-31T11:00:00Z"
CREATING = Condition(
    type="WebReady",
    status=False,
    reason=Reason.CREATING,
    message="before",
    observed_generation=1,
    last_transition_time=EARLIER,
)


class TestFailed:
    def test_has_the_error_as_message(self) -> None:
        condition = ConditionContext(CREATING, 7, NOW).failed("failed to apply resource X: boom")
        assert (condition.status, condition.reason, condition.message) == (
            False,
            "Error",
            "failed to apply resource X: boom",
        )
        assert condition.last_transition_time == EARLIER


class TestStored:
    def test_a_condition_that_was_never_written_is_unknown(self) -> None:
        condition = stored_condition([{"type": "Other", "status": "True", "reason": "Healthy"}], "WebReady", 3)
        assert (condition.status, condition.reason, condition.message) == (
            False,
            "Unknown",
            "Component has not been reconciled yet.",
        )
        assert condition.observed_generation == 3

    def test_a_condition_of_a_component_round_trips(self) -> None:
        condition = CREATING
        assert stored_condition([condition.to_manifest()], "WebReady", 3) == condition

    def test_a_foreign_reason_is_unknown(self) -> None:
        stored = CREATING.to_manifest() | {"reason": "MinimumReplicasAvailable", "status": "True"}
        assert stored_condition([stored], "WebReady", 3).reason is Reason.UNKNOWN

    @pytest.mark.parametrize(
        ("stored", "read"),
        [
            pytest.param(
                {"status": "True", "reason": "Arrived", "message": "all are there"},
                (True, "Arrived", "all are there"),
                id="a reason of one's own",
            ),
            pytest.param({"status": "False", "reason": "Arrived"}, (False, "Arrived", ""), id="no message"),
            pytest.param({"status": "Unknown", "reason": "Asked", "message": "m"}, (False, "Asked", "m"), id="unknown"),
            pytest.param(
                {"status": "True", "reason": "Healthy", "message": "m"}, (True, "Healthy", "m"), id="a component's"
            ),
            pytest.param({"status": "True", "reason": 3, "message": "m"}, (True, "Unknown", "m"), id="not a reason"),
        ],
    )
    def test_a_condition_is_read_as_it_was_written(self, stored: Manifest, read: tuple[bool, str, str]) -> None:
        found = written_condition([{"type": "Moved", **stored}], "Moved", 3)
        assert (found.status, found.reason, found.message) == read
