"""Ownership in mode replace: the pure decision, and the laws that hold for every history of an autoscaler."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ocf.autoscaling.algorithm import Status
from ocf.autoscaling.algorithm.status import HpaCondition
from ocf.controllers.hpa.status_writer import FIELD_MANAGER
from ocf.controllers.hpa.take_over import (
    CLAIM_REASON,
    RETRY,
    AutoscalerClaim,
    Evidence,
    Policy,
    Rival,
    StatusWrite,
    Step,
    last_foreign_write,
    next_step,
)
from ocf.objects import Manifest

DELAY: Final = timedelta(seconds=30)
NOON: Final = timedelta(hours=12)
THEIRS: Final = StatusWrite("2026-01-31T12:00:00Z", "kube-controller-manager")
NEW: Final = Evidence()
OURS: Final = Evidence(has_ours=True, is_written=True)
FOREIGN: Final = Evidence(THEIRS, is_written=True)
EDITED: Final = Evidence(THEIRS, has_ours=True, is_written=True)
CLAIMED: Final = Evidence(has_ours=True, is_written=True, is_claimed=True)
CAREFUL: Final = Policy(take_over=False, delay=DELAY)
WILLING: Final = Policy(take_over=True, delay=DELAY)
PROVEN: Final = Policy(take_over=False, delay=DELAY, proven=True)
SECOND: Final = timedelta(seconds=1)


@pytest.mark.parametrize(
    ("evidence", "claim", "policy", "step"),
    [
        pytest.param(OURS, AutoscalerClaim(), CAREFUL, Step.RUN, id="ours"),
        pytest.param(NEW, AutoscalerClaim(), CAREFUL, Step.CLAIM, id="new"),
        pytest.param(NEW, AutoscalerClaim(), PROVEN, Step.RUN, id="new, where no other controller runs"),
        pytest.param(FOREIGN, AutoscalerClaim(), CAREFUL, Step.LEAVE, id="of another controller"),
        pytest.param(FOREIGN, AutoscalerClaim(), PROVEN, Step.LEAVE, id="of another controller, although none runs"),
        pytest.param(FOREIGN, AutoscalerClaim(), WILLING, Step.CLAIM, id="of another controller, with the flag"),
        pytest.param(EDITED, AutoscalerClaim(), CAREFUL, Step.CLAIM, id="ours, and then written by another client"),
        pytest.param(FOREIGN, AutoscalerClaim(ran=True), CAREFUL, Step.CLAIM, id="run by us, and then overwritten"),
        pytest.param(CLAIMED, AutoscalerClaim(), CAREFUL, Step.WAIT, id="claimed by a process before"),
        pytest.param(CLAIMED, AutoscalerClaim(NOON - DELAY + SECOND), CAREFUL, Step.WAIT, id="claimed just now"),
        pytest.param(CLAIMED, AutoscalerClaim(NOON - DELAY), CAREFUL, Step.RUN, id="claimed long enough"),
        pytest.param(
            CLAIMED._replace(foreign=THEIRS),
            AutoscalerClaim(NOON - DELAY),
            CAREFUL,
            Step.RUN,
            id="claimed, and another field written",
        ),
        pytest.param(FOREIGN, AutoscalerClaim(NOON - SECOND), WILLING, Step.LEAVE, id="the claim was removed"),
        pytest.param(
            OURS, AutoscalerClaim(NOON - SECOND), WILLING, Step.LEAVE, id="the claim was removed in the same second"
        ),
        pytest.param(OURS, AutoscalerClaim(lost=NOON - SECOND), WILLING, Step.LEAVE, id="removed a second ago"),
        pytest.param(FOREIGN, AutoscalerClaim(lost=NOON - RETRY), WILLING, Step.CLAIM, id="removed long ago"),
        pytest.param(OURS, AutoscalerClaim(lost=NOON - RETRY), CAREFUL, Step.CLAIM, id="removed long ago, and ours"),
        pytest.param(FOREIGN, AutoscalerClaim(lost=NOON - RETRY), CAREFUL, Step.LEAVE, id="removed, and never ours"),
    ],
)
def test_what_is_done_with_an_autoscaler(
    evidence: Evidence, claim: AutoscalerClaim, policy: Policy, step: Step
) -> None:
    assert next_step(evidence, claim, policy, now=NOON)[0] is step


@pytest.mark.parametrize(
    ("removed", "lost", "rival", "policy", "step"),
    [
        pytest.param(1, 29, Rival(), WILLING, Step.LEAVE, id="silent, but not for long"),
        pytest.param(1, 30, Rival(), WILLING, Step.CLAIM, id="silent"),
        pytest.param(1, 60, Rival(wrote=NOON - 29 * SECOND), WILLING, Step.LEAVE, id="it writes others"),
        pytest.param(1, 60, Rival(wrote=NOON - 30 * SECOND), WILLING, Step.CLAIM, id="it wrote others before"),
        pytest.param(2, 59, Rival(), WILLING, Step.LEAVE, id="silent, and yet it runs"),
        pytest.param(2, 60, Rival(), WILLING, Step.CLAIM, id="silent for twice as long"),
        pytest.param(90, 599, Rival(), WILLING, Step.LEAVE, id="it always runs"),
        pytest.param(90, 600, Rival(), WILLING, Step.CLAIM, id="the longest time"),
        pytest.param(90, 9, Rival(ended=NOON - 5 * SECOND), WILLING, Step.CLAIM, id="its lease has ended since"),
        pytest.param(90, 5, Rival(ended=NOON - 9 * SECOND), WILLING, Step.LEAVE, id="its lease had ended before"),
        pytest.param(90, 5, Rival(wrote=NOON), PROVEN._replace(take_over=True), Step.CLAIM, id="another claim lasted"),
    ],
)
def test_when_an_autoscaler_is_claimed_again(removed: int, lost: int, rival: Rival, policy: Policy, step: Step) -> None:
    claim = AutoscalerClaim(lost=NOON - lost * SECOND, removed=removed)
    assert next_step(FOREIGN, claim, policy, rival, now=NOON)[0] is step


def evidences() -> st.SearchStrategy[Evidence]:
    return st.sampled_from([NEW, OURS, FOREIGN, EDITED, CLAIMED])


@given(
    st.lists(st.tuples(evidences(), st.integers(0, 60)), max_size=12),
    st.booleans(),
)
def test_what_another_client_wrote_last_is_only_run_after_an_unbroken_claim(
    seen: list[tuple[Evidence, int]], take_over: bool
) -> None:
    now, claim, claimed_at = NOON, AutoscalerClaim(), None
    for evidence, seconds in seen:
        now += timedelta(seconds=seconds)
        before = claim
        step, claim = next_step(evidence, claim, Policy(take_over, DELAY), now=now)
        if not evidence.is_claimed:
            claimed_at = now if step is Step.CLAIM else None
        elif claimed_at is None:
            claimed_at = now
        if step is Step.RUN:
            assert evidence == OURS or (claimed_at is not None and now - claimed_at >= DELAY)
        if step is Step.RUN and evidence.is_claimed:
            claimed_at = None
        if before.since is not None and not evidence.is_claimed:
            assert step is Step.LEAVE


def entry(manager: str, second: int, *fields: str) -> Manifest:
    able: Manifest = {f"f:{name}": {} for name in fields}
    conditions: Manifest = {"f:conditions": {'k:{"type":"AbleToScale"}': able}} if fields else {}
    written = {"manager": manager, "subresource": "status", "time": f"2026-01-31T12:00:{second:02}Z"}
    return {**written, "fieldsV1": {"f:status": conditions}}


@pytest.mark.parametrize(
    ("theirs", "ours", "foreign"),
    [
        pytest.param(entry("them", 5), entry(FIELD_MANAGER, 4), True, id="later"),
        pytest.param(entry("them", 4), entry(FIELD_MANAGER, 5), False, id="earlier"),
        pytest.param(entry("them", 5), entry(FIELD_MANAGER, 5), False, id="in the same second"),
        pytest.param(
            entry("them", 5, "reason"), entry(FIELD_MANAGER, 5, "message"), True, id="in the same second, the reason"
        ),
        pytest.param(
            entry("them", 5, "message"),
            entry(FIELD_MANAGER, 5, "reason"),
            False,
            id="in the same second, not the reason",
        ),
        pytest.param(entry("them", 5), entry(FIELD_MANAGER, 4, "reason"), True, id="later, not the reason"),
    ],
)
def test_the_last_write(theirs: Manifest, ours: Manifest, *, foreign: bool) -> None:
    found = last_foreign_write({"metadata": {"managedFields": [theirs, ours]}}, FIELD_MANAGER)
    assert (found is not None) is foreign
    if found is not None:
        assert found == StatusWrite(theirs["time"], "them")


def test_evidence_is_read_from_the_status_and_its_managers() -> None:
    claim = HpaCondition("AbleToScale", "Unknown", CLAIM_REASON, "", None)
    manifest = {"metadata": {"managedFields": [entry("them", 5), entry(FIELD_MANAGER, 6)]}}
    assert Evidence.of(manifest, Status(conditions=(claim,))) == CLAIMED
    assert Evidence.of({"metadata": {}}, Status()) == NEW
