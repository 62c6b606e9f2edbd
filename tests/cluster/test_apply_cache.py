"""The apply cache is bounded and drops the least recently used objects."""

from hypothesis import given
from hypothesis import strategies as st

from ocf.cluster import ApplyCache


def test_the_least_recently_used_object_is_dropped_first() -> None:
    memory = ApplyCache(limit=2)
    memory.remember("a", "m", {"x": (1, 2)})
    memory.remember("b", "m", {"x": (1, 2)})
    memory.rewrites("a", "m")
    memory.remember("c", "m", {"x": (1, 2)})
    assert [bool(memory.rewrites(uid, "m")) for uid in "abc"] == [True, False, True]


def test_field_managers_are_kept_apart() -> None:
    memory = ApplyCache()
    memory.remember("a", "one", {"x": (1, 2)})
    assert memory.rewrites("a", "other") == {}


def test_empty_rewrites_remove_the_object() -> None:
    memory = ApplyCache()
    memory.remember("a", "m", {"x": (1, 2)})
    memory.remember("a", "m", {})
    assert memory.rewrites("a", "m") == {}


def test_an_object_is_in_sync_in_one_version_for_one_desired_hash() -> None:
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


def test_the_oldest_in_sync_mark_is_dropped_first() -> None:
    memory = ApplyCache(limit=2)
    for uid in "abac":
        memory.mark_in_sync(uid, "m", "1", b"")
    assert [memory.is_in_sync(uid, "m", "1", b"") for uid in "abc"] == [True, False, True]


@given(uids=st.lists(st.text(max_size=2)), limit=st.integers(1, 5))
def test_the_cache_never_exceeds_its_limit(uids: list[str], limit: int) -> None:
    memory = ApplyCache(limit=limit)
    for uid in uids:
        memory.remember(uid, "m", {"x": (1, 2)})
    assert sum(bool(memory.rewrites(uid, "m")) for uid in set(uids)) == min(limit, len(set(uids)))
