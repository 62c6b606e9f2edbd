"""Conditions from reports: priority, severity, and transitions over time."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ocf.component.status.conditions import (
    Condition,
    ConditionContext,
    ResourceObservation,
    converging_condition,
    grace_remaining,
    suspending_condition,
)
from ocf.component.status.reasons import Reason
from ocf.concepts import (
    AliveStatus,
    CompletionStatus,
    GraceStatus,
    GuardStatus,
    OperationalStatus,
    StatusReport,
    SuspensionStatus,
)
from ocf.objects.timestamps import format_time

NOW = datetime(2026, 1, 31, 12, 0, tzinfo=UTC)
STAMP = "2026-01-31T12:00:00Z"
EARLIER = "2026-01-31T11:00:00Z"

Al, Op, Co = AliveStatus, OperationalStatus, CompletionStatus


def previous(reason: str = "Unknown", *, status: bool = False, since: str = EARLIER) -> Condition:
    return Condition(
        type="WebReady",
        status=status,
        reason=Reason(reason),
        message="before",
        observed_generation=1,
        last_transition_time=since,
    )


def context_of(before: Condition) -> ConditionContext:
    return ConditionContext(before, 7, NOW)


def converged(reports: list[StatusReport[Any]], before: Condition | None = None) -> Condition:
    observations = [ResourceObservation(f"resource-{at}", report) for at, report in enumerate(reports)]
    return converging_condition(observations, context_of(before or previous(since="")))


def parts(condition: Condition) -> tuple[bool, str, str]:
    return condition.status, str(condition.reason), condition.message


class TestConverging:
    @pytest.mark.parametrize(
        ("before", "reports", "reason", "message"),
        [
            pytest.param(
                "Unknown",
                [(Al.CREATING, "Creating something")],
                "Creating",
                "resource-0: Creating something",
                id="creating",
            ),
            pytest.param(
                "Unknown",
                [(Op.PENDING, "Awaiting LB IP")],
                "OperationPending",
                "resource-0: Awaiting LB IP",
                id="pending",
            ),
            pytest.param(
                "Unknown", [(Co.RUNNING, "Task is running")], "TaskRunning", "resource-0: Task is running", id="task"
            ),
            pytest.param(
                "Unknown",
                [(Al.CREATING, "Creating CM"), (Al.UPDATING, "Updating Deploy"), (Al.SCALING, "Scaling StatefulSet")],
                "Scaling",
                "resource-0: Creating CM; resource-1: Updating Deploy; resource-2: Scaling StatefulSet",
                id="the highest priority gives the reason, and all are named",
            ),
            pytest.param(
                "Unknown",
                [(Al.HEALTHY, ""), (Op.PENDING, "waits"), (Co.RUNNING, "Completable Running")],
                "TaskRunning",
                "resource-1: waits; resource-2: Completable Running",
                id="over the concepts",
            ),
            pytest.param(
                "Unknown",
                [
                    (Al.FAILING, "Alive Failing"),
                    (Op.FAILING, "Operational Failing"),
                    (Co.FAILING, "Completable Failed"),
                ],
                "Failing",
                "resource-0: Alive Failing; resource-1: Operational Failing; resource-2: Completable Failed",
                id="all that fail are named",
            ),
            pytest.param(
                "Unknown",
                [(Al.CREATING, "Creating CM"), (Op.PENDING, "Awaiting LB"), (Co.PENDING, "Job pending")],
                "Creating",
                "resource-1: Awaiting LB; resource-2: Job pending; resource-0: Creating CM",
                id="what pods may wait for comes first",
            ),
            pytest.param(
                "Unknown",
                [(Al.SCALING, "2/3"), (Co.RUNNING, "job")],
                "Scaling",
                "resource-1: job; resource-0: 2/3",
                id="a task comes before the pods that scale",
            ),
            pytest.param(
                "Unknown",
                [(Al.SCALING, "2/3"), (GuardStatus.BLOCKED, "wait A")],
                "Blocked",
                "resource-1: wait A; resource-0: 2/3",
                id="blocked comes before what scales",
            ),
            pytest.param(
                "Unknown",
                [(Al.CREATING, ""), (Op.PENDING, "waits")],
                "Creating",
                "resource-1: waits; resource-0: Creating",
                id="without a message, the status",
            ),
            pytest.param(
                "Creating",
                [(Al.UPDATING, "Still creating")],
                "Creating",
                "resource-0: Still creating",
                id="progress sticks",
            ),
            pytest.param(
                "Creating",
                [(Al.SCALING, "Taking forever")],
                "Creating",
                "resource-0: Taking forever",
                id="scaling does not unstick",
            ),
            pytest.param(
                "Scaling", [(Op.PENDING, "waits")], "Scaling", "resource-0: waits", id="pending does not unstick"
            ),
            pytest.param(
                "Creating", [(Al.FAILING, "CrashLoop")], "Failing", "resource-0: CrashLoop", id="failing shows through"
            ),
            pytest.param(
                "Updating", [(GuardStatus.BLOCKED, "x")], "Blocked", "resource-0: x", id="blocked shows through"
            ),
            pytest.param(
                "OperationPending", [(Al.SCALING, "2/3")], "Scaling", "resource-0: 2/3", id="pending does not stick"
            ),
            pytest.param("Failing", [(Al.SCALING, "2/3")], "Scaling", "resource-0: 2/3", id="failing does not stick"),
        ],
    )
    def test_not_ready(self, before: str, reports: list[tuple[Any, str]], reason: str, message: str) -> None:
        """Priority selects the reason, progress keeps its first one, and the message names all that wait."""
        condition = converged([StatusReport(*report) for report in reports], previous(before))
        assert parts(condition) == (False, reason, message)

    @pytest.mark.parametrize(
        "reports",
        [
            pytest.param([], id="nothing reports"),
            pytest.param([StatusReport(Al.HEALTHY, "fine")], id="healthy"),
            pytest.param([StatusReport(Op.OPERATIONAL), StatusReport(Co.COMPLETED)], id="whatever the concept"),
        ],
    )
    def test_ready(self, reports: list[StatusReport[Any]]) -> None:
        assert parts(converged(reports)) == (True, "Healthy", "Component is healthy.")

    @pytest.mark.parametrize(
        ("before", "since"),
        [
            pytest.param(previous("Creating"), EARLIER, id="progress keeps it"),
            pytest.param(previous("Error"), EARLIER, id="an error in between keeps it"),
            pytest.param(previous("Healthy", status=True), STAMP, id="from ready it moves"),
            pytest.param(previous("Disabled", status=True), STAMP, id="from disabled it moves"),
            pytest.param(previous("Suspended", status=True), STAMP, id="from suspended it moves"),
            pytest.param(previous("Suspending"), STAMP, id="from suspending it moves, false to false"),
            pytest.param(previous("PendingSuspension"), STAMP, id="from pending suspension it moves"),
            pytest.param(previous("PrerequisiteNotMet"), STAMP, id="from an unmet prerequisite it moves"),
            pytest.param(previous("FeatureGateError"), STAMP, id="from a gate error it moves"),
            pytest.param(previous(since=""), STAMP, id="at first it is now"),
        ],
    )
    def test_the_transition_time(self, before: Condition, since: str) -> None:
        """It changes with the status, and when convergence restarts."""
        assert converged([StatusReport(Al.CREATING, "x")], before).last_transition_time == since

    def test_the_transition_time_stays_while_ready_and_only_the_message_changes(self) -> None:
        assert converged([], previous("Operational", status=True)).last_transition_time == EARLIER

    def test_the_generation_is_the_owners_also_in_steady_state(self) -> None:
        assert converged([], previous("Healthy", status=True)).observed_generation == 7

    @given(words=st.lists(st.sampled_from([*Al, *Op, *Co, GuardStatus.BLOCKED])), before=st.sampled_from(Reason))
    def test_ready_means_that_every_report_is_ready(self, words: list[Any], before: Reason) -> None:
        """Whatever the stored condition, the status is True if and only if every report is ready."""
        condition = converged([StatusReport(word, "x") for word in words], previous(before))
        assert condition.status is all(word in {"Healthy", "Operational", "Completed"} for word in words)


def graded(
    *rows: tuple[Any, str, tuple[str, str] | None], before: str = "Creating", since: str = EARLIER, minutes: float = 5
) -> Condition:
    """Return the condition for rows of (status, reason, grace status or None)."""

    def observe(word: Any, reason: str, grade: tuple[str, str] | None) -> ResourceObservation:
        answer = StatusReport(GraceStatus(grade[0]), grade[1]) if grade else None
        return ResourceObservation("the resource", StatusReport(word, reason), answer)

    return converging_condition(
        [observe(*row) for row in rows],
        context_of(previous(before, since=since)),
        grace_period=timedelta(minutes=minutes),
    )


class TestGrace:
    @pytest.mark.parametrize(
        ("before", "rows", "reason", "message"),
        [
            pytest.param(
                "Creating",
                [(Al.CREATING, "x", ("Degraded", "Resource Degraded"))],
                "Degraded",
                "Component is degraded: the resource: Resource Degraded",
                id="degraded",
            ),
            pytest.param(
                "OperationPending",
                [(Op.PENDING, "x", ("Down", "Operational Down"))],
                "Down",
                "Component is down: the resource: Operational Down",
                id="down",
            ),
            pytest.param(
                "Degraded",
                [(Al.CREATING, "x", ("Down", "Now Down"))],
                "Down",
                "Component is down: the resource: Now Down",
                id="gets worse",
            ),
            pytest.param(
                "Down",
                [(Al.CREATING, "x", ("Degraded", "Now Degraded"))],
                "Degraded",
                "Component is degraded: the resource: Now Degraded",
                id="gets better",
            ),
            pytest.param(
                "Blocked",
                [(GuardStatus.BLOCKED, "waiting for the license", ("Healthy", "never asked"))],
                "Down",
                "Component is down: the resource: waiting for the license",
                id="blocked is down and its handler is not called",
            ),
            pytest.param(
                "Blocked",
                [(GuardStatus.BLOCKED, "", None)],
                "Down",
                "Component is down: the resource: Blocked",
                id="a block without a message",
            ),
            pytest.param(
                "Creating",
                [(Co.RUNNING, "x", None)],
                "Down",
                "Component is down: the resource: x",
                id="without a grace status, what it reports",
            ),
            pytest.param(
                "Creating",
                [(Al.CREATING, "x", ("Down", "no pods")), (Co.FAILING, "it failed", None)],
                "Down",
                "Component is down: the resource: it failed; the resource: no pods",
                id="beside others without a grace status, what it reports",
            ),
            pytest.param(
                "Creating",
                [
                    (Al.CREATING, "x", ("Degraded", "a")),
                    (Al.CREATING, "x", ("Healthy", "h")),
                    (Al.CREATING, "x", ("Degraded", "")),
                    (Al.CREATING, "x", ("Degraded", "b")),
                ],
                "Degraded",
                "Component is degraded: the resource: a; the resource: Degraded; the resource: b",
                id="without a message, the grade; healthy ones are left out",
            ),
            pytest.param(
                "Creating",
                [(Al.SCALING, "Still", ("Healthy", "fine"))],
                "Creating",
                "the resource: Still",
                id="healthy keeps the message",
            ),
            pytest.param(
                "Down",
                [(Al.HEALTHY, "", ("Down", "never asked"))],
                "Healthy",
                "Component is healthy.",
                id="ready ends it",
            ),
            pytest.param(
                "Suspended",
                [(Al.CREATING, "wakes", ("Down", "never asked"))],
                "Creating",
                "the resource: wakes",
                id="the period restarts",
            ),
        ],
    )
    def test_after_the_period(self, before: str, rows: list[Any], reason: str, message: str) -> None:
        condition = graded(*rows, before=before)
        assert (str(condition.reason), condition.message) == (reason, message)
        assert condition.observed_generation == 7

    @pytest.mark.parametrize(
        ("minutes", "reason"),
        [
            pytest.param(59, "Down", id="over"),
            pytest.param(60, "Creating", id="to the second is not yet over"),
            pytest.param(61, "Creating", id="not over"),
            pytest.param(0, "Creating", id="zero is no limit"),
        ],
    )
    def test_the_period_is_over_strictly_after_its_end(self, minutes: float, reason: str) -> None:
        assert graded((Al.CREATING, "x", ("Down", "d")), minutes=minutes).reason == reason

    def test_the_period_does_not_restart_when_the_grace_status_changes(self) -> None:
        assert graded((Al.CREATING, "x", ("Down", "d")), before="Degraded").last_transition_time == EARLIER


class TestGraceRemaining:
    @pytest.mark.parametrize("reason", sorted(Reason))
    def test_only_converging_reasons_have_a_remaining_period(self, reason: str) -> None:
        waiting = {
            "Creating",
            "Updating",
            "Scaling",
            "TaskRunning",
            "OperationPending",
            "TaskPending",
            "Failing",
            "OperationFailing",
            "TaskFailing",
            "Blocked",
        }
        left = grace_remaining(previous(reason, since=STAMP), timedelta(minutes=5), NOW)
        assert (left is not None) is (reason in waiting)

    def test_without_a_period_nothing_remains(self) -> None:
        assert grace_remaining(previous("Creating", since=STAMP), timedelta(0), NOW) is None

    def test_after_the_period_nothing_remains(self) -> None:
        assert grace_remaining(previous("Creating"), timedelta(minutes=5), NOW) is None

    @given(cut=st.floats(0, 0.999), period=st.floats(1, 10_000), waited=st.floats(0, 1))
    def test_the_remaining_time_ends_within_a_second_after_the_period(
        self, cut: float, period: float, waited: float
    ) -> None:
        """Stored times are truncated to seconds, so the true start may be up to a second later."""
        start = NOW + timedelta(seconds=cut)
        grace = timedelta(seconds=period)
        now = start + grace * waited
        left = grace_remaining(previous("Creating", since=format_time(start)), grace, now)
        if left is not None:
            late = (now + left) - (NOW + grace)
            assert timedelta(0) < late <= timedelta(seconds=1)


class TestSuspending:
    @pytest.mark.parametrize(
        ("reports", "expected"),
        [
            pytest.param([], (True, "Suspended", "All resources are suspended."), id="nothing to suspend"),
            pytest.param(
                [("Suspended", "a"), ("Suspended", "b")],
                (True, "Suspended", "All resources are suspended."),
                id="all done",
            ),
            pytest.param(
                [("Suspended", "a"), ("Suspending", "Scaling down"), ("PendingSuspension", "Waiting for DB")],
                (False, "PendingSuspension", "resource-2: Waiting for DB; resource-1: Scaling down"),
                id="the furthest wins",
            ),
            pytest.param(
                [("Suspending", "Scaling down"), ("Suspending", ""), ("Suspending", "Finishing tasks")],
                (False, "Suspending", "resource-0: Scaling down; resource-1: Suspending; resource-2: Finishing tasks"),
                id="equal ones are joined",
            ),
        ],
    )
    def test_the_status_furthest_from_suspended_decides(
        self, reports: list[tuple[str, str]], expected: tuple[bool, str, str]
    ) -> None:
        found = [
            ResourceObservation(f"resource-{at}", StatusReport(SuspensionStatus(word), reason))
            for at, (word, reason) in enumerate(reports)
        ]
        assert parts(suspending_condition(found, context_of(previous()))) == expected
