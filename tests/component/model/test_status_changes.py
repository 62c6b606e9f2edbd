"""Changes of a status: laws of merging them into a newer one."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from hypothesis import given
from hypothesis import strategies as st

from ocf.component.model.status_changes import StatusChanges
from ocf.objects import copy_json

if TYPE_CHECKING:
    from ocf.objects import Manifest

NOW = datetime(2026, 1, 1, tzinfo=UTC)
TYPES = ("Ready", "WebReady", "Backup")


def conditions() -> st.SearchStrategy[list[Manifest]]:
    reasons = st.sampled_from(["Error", "Healthy", "Done"])
    one = st.builds(lambda name, reason: {"type": name, "reason": reason}, st.sampled_from(TYPES), reasons)
    return st.lists(one, unique_by=lambda condition: condition["type"])


def statuses() -> st.SearchStrategy[Manifest]:
    fields = st.dictionaries(st.sampled_from(["phase", "size"]), st.integers(0, 2))
    return st.builds(lambda found, more: {**found, **({"conditions": more} if more else {})}, fields, conditions())


@given(statuses(), statuses())
def test_a_status_without_changes_takes_every_change_of_others(stored: Manifest, live: Manifest) -> None:
    assert StatusChanges(stored).rebased(live) == live


@given(statuses(), conditions(), st.dictionaries(st.sampled_from(["phase", "size"]), st.integers(0, 2)))
def test_changes_of_an_unchanged_status_give_the_changed_status(
    stored: Manifest, new: list[Manifest], fields: dict[str, Any]
) -> None:
    changes = StatusChanges(copy_json(stored))
    for condition in new:
        changes.set_condition(condition)
    changes.status.update(fields)
    assert changes.rebased(stored) == changes.status
    assert changes.stored == stored


@given(statuses(), statuses(), st.sampled_from(TYPES))
def test_a_condition_that_was_set_wins_over_that_of_another_writer(stored: Manifest, live: Manifest, name: str) -> None:
    changes = StatusChanges(stored)
    ours = {"type": name, "reason": "Ours"}
    changes.set_condition(ours)
    merged = changes.rebased(live)
    assert ours in merged["conditions"]
    others = [one for one in live.get("conditions", []) if one["type"] != name]
    assert [one for one in merged["conditions"] if one["type"] != name] == others
    assert changes.changed_types == {name}


@given(statuses(), st.sampled_from(TYPES))
def test_a_removed_failure_stays_removed_from_a_newer_status(stored: Manifest, name: str) -> None:
    changes = StatusChanges(stored)
    changes.remove_failure(name)
    gone = {name} if {"type": name, "reason": "Error"} in changes.stored_conditions else set()
    assert {one["type"] for one in changes.rebased(stored).get("conditions", [])}.isdisjoint(gone)
    assert [one for one in changes.conditions if one["type"] not in gone] == changes.conditions


def test_a_field_that_json_does_not_have_keeps_its_stored_value() -> None:
    stored = {
        "since": "noon",
        "conditions": [{"type": "Ready", "reason": "Done"}, {"type": "Backup", "reason": "Done"}],
    }
    changes = StatusChanges(stored)
    changes.status.update(size=(1, 2), since=NOW, made={"by": {1}})
    changes.conditions[0]["reason"] = "Healthy"
    changes.conditions[1]["lastTransitionTime"] = NOW
    changes.status["conditions"] += [{"type": "New", "since": NOW}, {"type": "WebReady", "reason": "Healthy"}]

    problems = [problem.path for problem in changes.make_plain()]

    assert problems == [
        "status.since",
        "status.conditions[1].lastTransitionTime",
        "status.conditions[2].since",
        "status.made.by",
    ]
    assert changes.status == {
        "since": "noon",
        "size": [1, 2],
        "conditions": [
            {"type": "Ready", "reason": "Healthy"},
            {"type": "Backup", "reason": "Done"},
            {"type": "WebReady", "reason": "Healthy"},
        ],
    }
    assert changes.make_plain() == ()


@given(statuses())
def test_a_plain_status_stays_as_it_is(stored: Manifest) -> None:
    changes = StatusChanges(stored)
    assert changes.make_plain() == ()
    assert changes.status == stored
