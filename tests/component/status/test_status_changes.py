"""Changes of a status: laws of merging them into a newer one, and of withdrawing them."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ocf.component.status.status_changes import StatusChanges, StatusPart
from ocf.objects import copy_json
from ocf.objects.conditions import has_type

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


def done(name: str) -> Manifest:
    return {"type": name, "status": "True", "reason": "Done"}


def test_a_field_that_json_does_not_have_keeps_its_stored_value() -> None:
    stored = {
        "since": "noon",
        "conditions": [done("Ready"), done("Backup")],
    }
    changes = StatusChanges(stored)
    changes.status.update(size=(1, 2), since=NOW, made={"by": {1}})
    changes.conditions[0]["reason"] = "Healthy"
    changes.conditions[1]["lastTransitionTime"] = NOW
    changes.status["conditions"] += [{"type": "New", "since": NOW}, {**done("WebReady"), "reason": "Healthy"}]
    completed = {"lastTransitionTime": "2026-01-01T00:00:00Z", "message": ""}

    problems = [problem.path for problem in changes.make_plain(NOW)]

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
            {**done("Ready"), "reason": "Healthy", **completed},
            done("Backup"),
            {**done("WebReady"), "reason": "Healthy", **completed},
        ],
    }
    assert changes.make_plain(NOW) == ()


@given(statuses())
def test_a_plain_status_stays_as_it_is(stored: Manifest) -> None:
    changes = StatusChanges(stored)
    assert changes.make_plain(NOW) == ()
    assert changes.status == stored


MAPS = {
    "a key of another writer": ({"a": 1}, {"a": 2}, {"a": 1, "b": 1}, {"a": 2, "b": 1}),
    "a key that both changed": ({"a": 1}, {"a": 2}, {"a": 3}, {"a": 2}),
    "a key that was removed here": ({"a": 1, "b": 1}, {"b": 1}, {"a": 1, "b": 2}, {"b": 2}),
    "a key that another writer removed": ({"a": 1, "b": 1}, {"a": 2, "b": 1}, {"a": 1}, {"a": 2}),
    "a map that both added": ({}, {"a": 1}, {"b": 1}, {"a": 1, "b": 1}),
    "a map in a map": ({"x": {"a": 1}}, {"x": {"a": 2}}, {"x": {"a": 1, "b": 1}}, {"x": {"a": 2, "b": 1}}),
    "a list is one value": ({"x": [1]}, {"x": [1, 2]}, {"x": [1, 3]}, {"x": [1, 2]}),
    "a map becomes a text": ({"x": {"a": 1}}, {"x": "none"}, {"x": {"a": 1, "b": 1}}, {"x": "none"}),
    "a text becomes a map": ({"x": "none"}, {"x": {"a": 1}}, {"x": "some"}, {"x": {"a": 1}}),
    "all keys were removed here": ({"a": 1}, {}, {"a": 1, "b": 1}, {"b": 1}),
}


@pytest.mark.promise("foreign-status", runs="10 changes of maps by two writers")
@pytest.mark.parametrize(("stored", "ours", "theirs", "merged"), MAPS.values(), ids=MAPS)
def test_maps_are_merged_key_by_key(
    stored: dict[str, Any], ours: dict[str, Any], theirs: dict[str, Any], merged: dict[str, Any]
) -> None:
    """Replacing what was read by what was computed would erase what another client stored in between.

    Elsewhere: https://github.com/RafPe/pod-certificate-signer/pull/81 and
    https://github.com/rossoctl/operator/pull/423 (a status that a retry erases).
    """
    changes = StatusChanges({"shards": stored})
    changes.status["shards"] = ours
    assert changes.rebased({"shards": theirs}) == {"shards": merged}
    assert changes.rebased({"shards": stored}) == {"shards": ours}


@pytest.mark.parametrize(
    ("theirs", "merged"),
    [
        pytest.param({"a": 1}, {}, id="as it was"),
        pytest.param({"a": 1, "b": 1}, {"shards": {"b": 1}}, id="with a key of another writer"),
    ],
)
def test_a_map_that_was_removed_keeps_the_keys_of_others(theirs: Manifest, merged: Manifest) -> None:
    changes = StatusChanges({"shards": {"a": 1}})
    del changes.status["shards"]
    assert changes.rebased({"shards": theirs}) == merged


def trees() -> st.SearchStrategy[Any]:
    keys = st.sampled_from("abc")
    leaves = st.integers(0, 2) | st.lists(st.integers(0, 1), max_size=2)
    return st.dictionaries(keys, st.recursive(leaves, lambda below: st.dictionaries(keys, below)))


@given(trees(), trees(), trees())
def test_what_one_writer_leaves_alone_is_as_the_other_one_left_it(stored: Any, ours: Any, theirs: Any) -> None:
    changes = StatusChanges(stored)
    changes.status.clear()
    changes.status.update(copy_json(ours))
    merged = changes.rebased(theirs)
    for key in "abc":
        if ours.get(key) == stored.get(key):
            assert merged.get(key) == theirs.get(key)
        elif theirs.get(key) == stored.get(key):
            assert merged.get(key) == ours.get(key)


def garbage() -> st.SearchStrategy[Any]:
    json = st.recursive(
        st.none() | st.booleans() | st.integers(0, 2) | st.sampled_from(["", "Ready"]),
        lambda below: st.lists(below, max_size=3) | st.dictionaries(st.sampled_from(["type", "status"]), below),
    )
    return st.lists(json | st.sampled_from([{"type": name} for name in TYPES]), max_size=4) | json


@given(garbage(), garbage(), st.sampled_from(TYPES))
def test_entries_that_are_not_conditions_stay_where_they_are(stored: Any, live: Any, name: str) -> None:
    changes = StatusChanges({"conditions": stored})
    ours = {"type": name, "reason": "Ours"}
    changes.set_condition(ours)
    changes.arrange(TYPES)
    assert changes.make_plain(NOW) == ()
    for base, result in ((stored, changes.status), (live, changes.rebased({"conditions": live}))):
        kept = [one for one in base if not has_type(one, name)] if isinstance(base, list) else []
        assert [one for one in result["conditions"] if one != ours] == kept
        assert ours in result["conditions"]


@given(statuses(), conditions(), statuses())
def test_withdrawing_ends_with_what_was_set_or_stored(stored: Manifest, new: list[Manifest], other: Manifest) -> None:
    """What the API server does not name is withdrawn last, and then nothing is left that was assigned."""
    changes, expected = StatusChanges(stored), StatusChanges(stored)
    changes.status.clear()
    changes.status.update(copy_json(other))
    for condition in new:
        changes.set_condition(condition)
        expected.set_condition(condition)
    while changes.withdraw(()):
        pass
    assert sorted(changes.conditions, key=str) == sorted(expected.conditions, key=str)
    assert {**changes.status, "conditions": []} == {**expected.status, "conditions": []}


@given(statuses(), conditions(), st.sampled_from(TYPES))
def test_a_named_condition_is_withdrawn_alone(stored: Manifest, new: list[Manifest], name: str) -> None:
    changes = StatusChanges(stored)
    for condition in new:
        changes.set_condition(condition)
    changes.status["phase"] = "Done"
    before = changes.conditions
    is_set = name in changes.changed_types
    if is_set:
        assert changes.withdraw({StatusPart("conditions", name)})
    assert changes.status["phase"] == "Done"
    others = [one for one in before if one["type"] != name]
    assert [one for one in changes.conditions if one["type"] != name] == others
    ours = [one for one in (changes.stored_conditions if is_set else before) if one["type"] == name]
    assert [one for one in changes.conditions if one["type"] == name] == ours
