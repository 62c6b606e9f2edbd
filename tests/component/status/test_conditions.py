"""Conditions: reading a stored one, and the one after an error."""

from datetime import UTC, datetime

from ocf.component.status.conditions import Condition, ConditionContext, stored_condition
from ocf.component.status.reasons import Reason

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
