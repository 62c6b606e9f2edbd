"""What outlives a pass is bounded, and forgotten by age of use."""

from hypothesis import given
from hypothesis import strategies as st

from ocf.cluster import ApplyCache


def test_what_is_used_is_kept_longest() -> None:
    memory = ApplyCache(limit=2)
    memory.remember("a", "m", {"x": (1, 2)})
    memory.remember("b", "m", {"x": (1, 2)})
    memory.rewrites("a", "m")
    memory.remember("c", "m", {"x": (1, 2)})
    assert [bool(memory.rewrites(uid, "m")) for uid in "abc"] == [True, False, True]


def test_managers_are_apart() -> None:
    memory = ApplyCache()
    memory.remember("a", "one", {"x": (1, 2)})
    assert memory.rewrites("a", "other") == {}


def test_remembering_nothing_forgets() -> None:
    memory = ApplyCache()
    memory.remember("a", "m", {"x": (1, 2)})
    memory.remember("a", "m", {})
    assert memory.rewrites("a", "m") == {}


def test_an_object_is_settled_in_one_version_for_one_wish() -> None:
    memory = ApplyCache()
    memory.mark_in_sync("a", "m", "7", b"wish")
    assert memory.is_in_sync("a", "m", "7", b"wish")
    for uid, manager, version, digest in [
        ("b", "m", "7", b"wish"),
        ("a", "n", "7", b"wish"),
        ("a", "m", "8", b"wish"),
        ("a", "m", "7", b"other"),
    ]:
        assert not memory.is_in_sync(uid, manager, version, digest)


def test_what_was_settled_longest_ago_is_forgotten_first() -> None:
    memory = ApplyCache(limit=2)
    for uid in "abac":
        memory.mark_in_sync(uid, "m", "1", b"")
    assert [memory.is_in_sync(uid, "m", "1", b"") for uid in "abc"] == [True, False, True]


@given(uids=st.lists(st.text(max_size=2)), limit=st.integers(1, 5))
def test_never_holds_more_than_its_limit(uids: list[str], limit: int) -> None:
    memory = ApplyCache(limit=limit)
    for uid in uids:
        memory.remember(uid, "m", {"x": (1, 2)})
    assert sum(bool(memory.rewrites(uid, "m")) for uid in set(uids)) == min(limit, len(set(uids)))
