"""Hashes, slots and selectors of shards: values of Go's `hash/fnv`, and the laws of a division."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ocf.objects.shards import HASHES, SHARD_FIELDS, HashRange, ShardSelector, shard_hash, slot_of

SLOTS = st.integers(1, 300)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        # https://datatracker.ietf.org/doc/html/draft-eastlake-fnv (test vectors)
        pytest.param("", 0xCBF29CE484222325, id="an empty text"),
        pytest.param("a", 0xAF63DC4C8601EC8C, id="one byte"),
        pytest.param("foobar", 0x85944171F73967E8, id="several bytes"),
        pytest.param("\u00e9", 0x0AC21707B7181E01, id="a character of two bytes"),
    ],
)
def test_the_hash_is_fnv_1a_of_the_bytes(value: str, expected: int) -> None:
    assert shard_hash(value) == expected


@given(st.text(), SLOTS)
def test_each_value_is_in_the_range_of_its_slot_and_in_no_other(value: str, total: int) -> None:
    slot = slot_of(value, total)
    found = [
        each
        for each in range(total)
        for start, end in HashRange.of_slots([each], total)
        if start <= shard_hash(value) < end
    ]
    assert found == [slot]


@given(st.lists(st.integers(0, 63), max_size=64), st.text())
def test_the_ranges_of_several_slots_are_those_of_each(slots: list[int], value: str) -> None:
    manifest = {"metadata": {"uid": value}}
    selector = ShardSelector(SHARD_FIELDS[0], HashRange.of_slots(slots, 64))
    assert selector.matches(manifest) is (slot_of(value, 64) in slots)


@given(SLOTS)
def test_all_slots_are_one_range(total: int) -> None:
    assert HashRange.of_slots(range(total), total) == (HashRange(0, HASHES),)


def test_slots_divide_the_hashes_evenly() -> None:
    sizes = [end - start for slot in range(48) for start, end in HashRange.of_slots([slot], 48)]
    assert max(sizes) - min(sizes) <= 1


def test_an_object_without_the_field_has_the_hash_of_an_empty_text() -> None:
    selector = ShardSelector(SHARD_FIELDS[1], HashRange.of_slots([slot_of("", 8)], 8))
    assert selector.matches({"metadata": {"name": "a-node"}})
