"""Decisions about owners that are, or may be, deleted."""

from __future__ import annotations

from typing import Any

import pytest

from ocf.component.owner_deletion import (
    SKIP_CLEANUP,
    DeletionStep,
    FinalizerNames,
    cleanup_finalizer,
    condition_type,
    decide,
    external_finalizer,
)
from ocf.objects import Manifest
from ocf.objects.conditions import condition_type_problem
from ocf.objects.name_validation import qualified_name

HOLD = "example.com/hold"
CLEANUP, EXTERNAL = cleanup_finalizer("ocf"), external_finalizer("ocf")
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
        pytest.param(owner(CLEANUP), False, DeletionStep.RECONCILE, id="held for objects only"),
        pytest.param(owner(CLEANUP), True, DeletionStep.HOLD, id="held for objects, and a new on_delete"),
        pytest.param(owner(EXTERNAL), False, DeletionStep.RELEASE, id="no on_delete any more"),
        pytest.param(owner(HOLD), True, DeletionStep.HOLD, id="held by another controller only"),
        pytest.param(owner(EXTERNAL, skip="true"), True, DeletionStep.RECONCILE, id="annotated but not deleted"),
        pytest.param(owner(EXTERNAL, deleted=True), True, DeletionStep.CLEAN_UP, id="deleted"),
        pytest.param(owner(CLEANUP, deleted=True), False, DeletionStep.CLEAN_UP, id="deleted, with objects"),
        pytest.param(owner(CLEANUP, deleted=True), True, DeletionStep.CLEAN_UP, id="external resources deleted"),
        pytest.param(
            owner(EXTERNAL, deleted=True),
            False,
            DeletionStep.RELEASE,
            id="deleted, no on_delete any more",
        ),
        pytest.param(owner(EXTERNAL, deleted=True, skip="true"), True, DeletionStep.SKIP, id="to be skipped"),
        pytest.param(
            owner(CLEANUP, deleted=True, skip="true"),
            False,
            DeletionStep.SKIP,
            id="objects to be skipped",
        ),
        pytest.param(
            owner(EXTERNAL, deleted=True, skip="false"),
            True,
            DeletionStep.CLEAN_UP,
            id="not to be skipped",
        ),
        pytest.param(owner(EXTERNAL, deleted=True, skip="True"), True, DeletionStep.CLEAN_UP, id="another value"),
        pytest.param(owner(HOLD, deleted=True), True, DeletionStep.CLEANED, id="deleted before it was held"),
        pytest.param(owner(deleted=True, skip="true"), True, DeletionStep.CLEANED, id="nothing to skip"),
    ],
)
def test_the_step_follows_from_the_owner(given: Manifest, external: bool, step: DeletionStep) -> None:
    assert decide(given, FinalizerNames("ocf"), external=external) is step


def test_the_finalizers_of_another_operator_are_not_ours() -> None:
    held = owner(CLEANUP, EXTERNAL, deleted=True)
    assert decide(held, FinalizerNames("malls"), external=True) is DeletionStep.CLEANED


KOPF = "kopf.zalando.org/KopfFinalizerMarker"
EXACT = "finalizer.example.com"
NAMED = FinalizerNames("ocf", EXACT, (KOPF, "*.old.example.com/*"))


@pytest.mark.parametrize(
    ("given", "external", "step"),
    [
        pytest.param(owner(), True, DeletionStep.HOLD, id="a new owner"),
        pytest.param(owner(EXACT), True, DeletionStep.RECONCILE, id="held"),
        pytest.param(owner(EXTERNAL), True, DeletionStep.HOLD, id="held by the name of the operator"),
        pytest.param(owner(KOPF), True, DeletionStep.HOLD, id="held by a former one"),
        pytest.param(owner(EXACT, KOPF), True, DeletionStep.RECONCILE, id="held by both"),
        pytest.param(owner(KOPF), False, DeletionStep.RELEASE, id="held by a former one, no on_delete"),
        pytest.param(owner(HOLD), False, DeletionStep.RECONCILE, id="held by another controller"),
        pytest.param(owner(KOPF, deleted=True), True, DeletionStep.CLEAN_UP, id="deleted before it was taken over"),
        pytest.param(owner(EXTERNAL, deleted=True), True, DeletionStep.CLEAN_UP, id="deleted before it was renamed"),
        pytest.param(owner("a.old.example.com/x", deleted=True), False, DeletionStep.RELEASE, id="a pattern"),
        pytest.param(owner("old.example.com/x", deleted=True), True, DeletionStep.CLEANED, id="not by the pattern"),
        pytest.param(owner(KOPF, deleted=True, skip="true"), True, DeletionStep.SKIP, id="to be skipped"),
        pytest.param(owner("orphan", "foregroundDeletion", deleted=True), True, DeletionStep.CLEANED, id="Kubernetes"),
    ],
)
def test_the_step_follows_from_the_named_finalizers(given: Manifest, external: bool, step: DeletionStep) -> None:
    assert decide(given, NAMED, external=external) is step


def test_a_pattern_never_names_a_finalizer_of_kubernetes_or_of_the_operator() -> None:
    names = FinalizerNames("ocf", EXACT, ("*e*",))
    given = owner("foregroundDeletion", "orphan", EXACT, CLEANUP, HOLD)
    assert names.former_of(given) == (HOLD,)


@pytest.mark.parametrize("name", ["a", "shops", "x" * 63], ids=["shortest", "usual", "longest"])
def test_any_name_of_an_operator_gives_names_that_the_api_server_accepts(name: str) -> None:
    for finalizer in (cleanup_finalizer(name), external_finalizer(name)):
        assert not qualified_name(finalizer)
    assert not condition_type_problem(condition_type(name))
