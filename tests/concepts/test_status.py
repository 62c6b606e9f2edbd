"""Statuses and their order."""

from enum import StrEnum

import pytest

from ocf.concepts import (
    AliveStatus,
    ApplyOperation,
    CompletionStatus,
    GraceStatus,
    GuardStatus,
    OperationalStatus,
    StatusReport,
    SuspensionStatus,
)
from ocf.concepts.status import stale_generation_report


@pytest.mark.parametrize(
    ("vocabulary", "words"),
    [
        pytest.param(AliveStatus, "Healthy Creating Updating Scaling Failing", id="alive"),
        pytest.param(OperationalStatus, "Operational OperationPending OperationFailing", id="operational"),
        pytest.param(CompletionStatus, "Completed TaskRunning TaskPending TaskFailing", id="completable"),
        pytest.param(GraceStatus, "Healthy Degraded Down", id="graceful"),
        pytest.param(SuspensionStatus, "Suspended Suspending PendingSuspension", id="suspendable"),
        pytest.param(GuardStatus, "Blocked Unblocked", id="guardable"),
        pytest.param(ApplyOperation, "Created Updated None", id="operation"),
    ],
)
def test_each_vocabulary_has_exactly_these_words(vocabulary: type[StrEnum], words: str) -> None:
    assert [str(word) for word in vocabulary] == words.split()


def test_grace_gets_worse_and_suspension_further() -> None:
    assert [status.severity for status in GraceStatus] == [1, 2, 3]
    assert [status.distance for status in SuspensionStatus] == [1, 2, 3]


@pytest.mark.parametrize(
    ("operation", "observed", "generation", "status"),
    [
        pytest.param(ApplyOperation.CREATED, 1, 2, AliveStatus.CREATING, id="created"),
        pytest.param(ApplyOperation.UPDATED, 1, 2, AliveStatus.UPDATING, id="updated"),
        pytest.param(ApplyOperation.NONE, 1, 2, AliveStatus.UPDATING, id="unchanged"),
        pytest.param(ApplyOperation.CREATED, None, 1, AliveStatus.CREATING, id="never observed"),
        pytest.param(ApplyOperation.UPDATED, 2, 2, None, id="observed"),
        pytest.param(ApplyOperation.UPDATED, 3, 2, None, id="ahead"),
        pytest.param(ApplyOperation.UPDATED, None, None, None, id="no generation"),
    ],
)
def test_a_stale_generation_is_reported_by_what_was_done(
    operation: ApplyOperation, observed: int | None, generation: int | None, status: AliveStatus | None
) -> None:
    report = stale_generation_report(operation, observed=observed, generation=generation, controller="thing")
    expected = StatusReport(status, "Waiting for thing controller to observe latest spec") if status else None
    assert report == expected
