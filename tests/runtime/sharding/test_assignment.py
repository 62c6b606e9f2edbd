"""Which replica should hold which slot: even shares, and few moves."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from ocf.runtime.sharding.assignment import assign

REPLICAS = st.sets(st.sampled_from("abcdefghij"), min_size=1)
HOLDERS = st.lists(st.sampled_from([*"abcdefghijk", ""]), min_size=1, max_size=80)


def moves(before: list[str], after: tuple[str, ...]) -> int:
    return sum(old != new for old, new in zip(before, after, strict=True))


@given(HOLDERS, REPLICAS)
def test_shares_differ_by_one_at_most_and_no_slot_is_left(holders: list[str], replicas: set[str]) -> None:
    target = assign(holders, replicas)
    counts = Counter(target)
    assert {*counts} <= replicas
    assert len(target) == len(holders)
    assert max(counts[each] for each in replicas) - min(counts[each] for each in replicas) <= 1


@given(HOLDERS, REPLICAS)
def test_what_is_assigned_stays(holders: list[str], replicas: set[str]) -> None:
    target = assign(holders, replicas)
    assert assign(target, replicas) == target


@given(HOLDERS, REPLICAS, st.data())
def test_each_step_on_the_way_has_the_same_end(holders: list[str], replicas: set[str], data: st.DataObject) -> None:
    """Replicas look at different times: some slots have moved already."""
    target = assign(holders, replicas)
    moved = data.draw(st.lists(st.booleans(), min_size=len(holders), max_size=len(holders)))
    between = [new if done else old for old, new, done in zip(holders, target, moved, strict=True)]
    assert moves(between, assign(between, replicas)) <= moves(holders, target)


@given(st.integers(1, 80), REPLICAS)
def test_a_replica_that_joins_moves_its_share_and_no_more(slots: int, replicas: set[str]) -> None:
    before = assign([""] * slots, replicas)
    after = assign(before, {*replicas, "z"})
    assert moves([*before], after) == Counter(after)["z"] <= -(-slots // (len(replicas) + 1))


@given(st.integers(1, 80), REPLICAS.filter(lambda found: len(found) > 1))
def test_a_replica_that_leaves_moves_what_it_held(slots: int, replicas: set[str]) -> None:
    before = assign([""] * slots, replicas)
    gone = min(replicas)
    assert moves([*before], assign(before, replicas - {gone})) == Counter(before)[gone]
