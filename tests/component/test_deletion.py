"""Decisions about owners that are, or may be, deleted."""

from __future__ import annotations

from typing import Any

import pytest

from ocf.component import EXTERNAL_FINALIZER as EXTERNAL
from ocf.component import FINALIZER, SKIP_CLEANUP
from ocf.component.deletion import DeletionStep, condition_type, decide, external_finalizer
from ocf.objects import Manifest

HOLD = "example.com/hold"
DELETED = "2026-01-31T12:00:00Z"


def owner(*finalizers: str, deleted: bool = False, skip: Any = None) -> Manifest:
    metadata: Manifest = {"name": "corner", "finalizers": list(finalizers)}
    if deleted:
        metadata["deletionTimestamp"] = DELETED
    if skip is not None:
        metadata["annotations"] = {SKIP_CLEANUP: skip}
    return {"metadata": metadata}


@pytest.mark.parametrize(
    ("given", "external", "step"),
    [
        pytest.param(owner(), True, DeletionStep.HOLD, id="a new owner"),
        pytest.param(owner(EXTERNAL), True, DeletionStep.RECONCILE, id="held"),
        pytest.param(owner(), False, DeletionStep.RECONCILE, id="no on_delete"),
        pytest.param(owner(FINALIZER), False, DeletionStep.RECONCILE, id="held for objects only"),
        pytest.param(owner(FINALIZER), True, DeletionStep.HOLD, id="held for objects, and a new on_delete"),
        pytest.param(owner(EXTERNAL), False, DeletionStep.RELEASE, id="no on_delete any more"),
        pytest.param(owner(HOLD), True, DeletionStep.HOLD, id="held by another controller only"),
        pytest.param(owner(EXTERNAL, skip="true"), True, DeletionStep.RECONCILE, id="annotated but not deleted"),
        pytest.param(owner(EXTERNAL, deleted=True), True, DeletionStep.CLEAN_UP, id="deleted"),
        pytest.param(owner(FINALIZER, deleted=True), False, DeletionStep.CLEAN_UP, id="deleted, with objects"),
        pytest.param(owner(FINALIZER, deleted=True), True, DeletionStep.CLEAN_UP, id="external resources deleted"),
        pytest.param(owner(EXTERNAL, deleted=True), False, DeletionStep.RELEASE, id="deleted, no on_delete any more"),
        pytest.param(owner(EXTERNAL, deleted=True, skip="true"), True, DeletionStep.SKIP, id="to be skipped"),
        pytest.param(owner(FINALIZER, deleted=True, skip="true"), False, DeletionStep.SKIP, id="objects to be skipped"),
        pytest.param(owner(EXTERNAL, deleted=True, skip="false"), True, DeletionStep.CLEAN_UP, id="not to be skipped"),
        pytest.param(owner(EXTERNAL, deleted=True, skip="True"), True, DeletionStep.CLEAN_UP, id="another value"),
        pytest.param(owner(HOLD, deleted=True), True, DeletionStep.CLEANED, id="deleted before it was held"),
        pytest.param(owner(deleted=True, skip="true"), True, DeletionStep.CLEANED, id="nothing to skip"),
    ],
)
def test_the_step_follows_from_the_owner(given: Manifest, external: bool, step: DeletionStep) -> None:
    assert decide(given, FINALIZER, external=external) is step


def test_the_finalizers_of_another_operator_are_not_ours() -> None:
    held = owner(FINALIZER, EXTERNAL, deleted=True)
    assert decide(held, "example.com/mine", external=True) is DeletionStep.CLEANED


def test_names_of_two_operators_differ_in_everything() -> None:
    for name in (external_finalizer, condition_type):
        assert name("example.com/one") != name("example.com/two")
        assert name("example.com/one") != name("example.org/one")
