"""What outlives a pass is bounded, and forgotten by age of use."""

from hypothesis import given
from hypothesis import strategies as st

from ocf.cluster import WriteMemory


def test_what_is_used_is_kept_longest() -> None:
    memory = WriteMemory(limit=2)
    memory.remember("a", "m", {"x": (1, 2)})
    memory.remember("b", "m", {"x": (1, 2)})
    memory.rewrites("a", "m")
    memory.remember("c", "m", {"x": (1, 2)})
    assert [bool(memory.rewrites(uid, "m")) for uid in "abc"] == [True, False, True]


def test_managers_are_apart() -> None:
    memory = WriteMemory()
    memory.remember("a", "one", {"x": (1, 2)})
    assert memory.rewrites("a", "other") == {}


def test_remembering_nothing_forgets() -> None:
    memory = WriteMemory()
    memory.remember("a", "m", {"x": (1, 2)})
    memory.remember("a", "m", {})
    assert memory.rewrites("a", "m") == {}


@given(uids=st.lists(st.text(max_size=2)), limit=st.integers(1, 5))
def test_never_holds_more_than_its_limit(uids: list[str], limit: int) -> None:
    memory = WriteMemory(limit=limit)
    for uid in uids:
        memory.remember(uid, "m", {"x": (1, 2)})
    assert sum(bool(memory.rewrites(uid, "m")) for uid in set(uids)) == min(limit, len(set(uids)))
