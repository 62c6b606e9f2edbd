"""The apply cache is bounded and drops the least recently used objects."""

from hypothesis import given
from hypothesis import strategies as st

from ocf.cluster import ApplyCache


def test_the_least_recently_used_object_is_dropped_first() -> None:
    cache = ApplyCache(limit=2)
    cache.remember("a", "m", {"x": (1, 2)})
    cache.remember("b", "m", {"x": (1, 2)})
    cache.rewrites("a", "m")
    cache.remember("c", "m", {"x": (1, 2)})
    assert [bool(cache.rewrites(uid, "m")) for uid in "abc"] == [True, False, True]


def test_field_managers_are_kept_apart() -> None:
    cache = ApplyCache()
    cache.remember("a", "one", {"x": (1, 2)})
    assert cache.rewrites("a", "other") == {}


def test_empty_rewrites_remove_the_object() -> None:
    cache = ApplyCache()
    cache.remember("a", "m", {"x": (1, 2)})
    cache.remember("a", "m", {})
    assert cache.rewrites("a", "m") == {}


def test_an_object_is_in_sync_in_one_version_for_one_desired_hash() -> None:
    cache = ApplyCache()
    cache.mark_in_sync("a", "m", "7", b"hash")
    assert cache.is_in_sync("a", "m", "7", b"hash")
    for uid, manager, version, digest in [
        ("b", "m", "7", b"hash"),
        ("a", "n", "7", b"hash"),
        ("a", "m", "8", b"hash"),
        ("a", "m", "7", b"other"),
    ]:
        assert not cache.is_in_sync(uid, manager, version, digest)


def test_the_oldest_in_sync_mark_is_dropped_first() -> None:
    cache = ApplyCache(limit=2)
    for uid in "abac":
        cache.mark_in_sync(uid, "m", "1", b"")
    assert [cache.is_in_sync(uid, "m", "1", b"") for uid in "abc"] == [True, False, True]


@given(uids=st.lists(st.text(max_size=2)), limit=st.integers(1, 5))
def test_the_cache_never_exceeds_its_limit(uids: list[str], limit: int) -> None:
    cache = ApplyCache(limit=limit)
    for uid in uids:
        cache.remember(uid, "m", {"x": (1, 2)})
    assert sum(bool(cache.rewrites(uid, "m")) for uid in set(uids)) == min(limit, len(set(uids)))
