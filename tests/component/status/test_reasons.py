"""Reasons of a component's condition."""

from ocf.component.status.reasons import Reason


def test_the_priorities_are_in_this_order() -> None:
    ordered = sorted(Reason, key=lambda reason: -reason.priority)
    assert [str(reason) for reason in ordered] == [
        "Error",
        "FeatureGateError",
        "Down",
        "Degraded",
        "PendingSuspension",
        "Suspending",
        "Suspended",
        "Disabled",
        "Failing",
        "OperationFailing",
        "TaskFailing",
        "Blocked",
        "PrerequisiteNotMet",
        "Scaling",
        "TaskRunning",
        "Updating",
        "Creating",
        "OperationPending",
        "TaskPending",
        "Healthy",
        "Operational",
        "Completed",
        "Unknown",
    ]
    assert Reason.BLOCKED.priority == Reason.PREREQUISITE_NOT_MET.priority
    assert Reason.ERROR.priority == Reason.FEATURE_GATE_ERROR.priority
