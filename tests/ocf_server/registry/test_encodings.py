"""Encoded objects: those of stored objects stay, others while they are recent."""

from ocf_server.registry.encodings import EncodingCache


def test_encodings_of_present_objects_stay_whatever_their_size() -> None:
    cache = EncodingCache(limit=1)
    for version in range(10):
        cache.add(str(version), "v1", b"large", present=True)
    assert [cache.find(str(version), "v1") for version in range(10)] == [b"large"] * 10


def test_encodings_differ_by_version_and_form() -> None:
    cache = EncodingCache()
    cache.add("1", "v1", b"one", present=True)
    cache.add("1", "v1 MODIFIED", b"line", present=False)
    found = [cache.find(*key) for key in (("1", "v1"), ("1", "v1 MODIFIED"), ("1", "v2"), ("2", "v1"))]
    assert found == [b"one", b"line", None, None]


def test_of_other_encodings_the_most_recent_are_kept_up_to_the_limit() -> None:
    cache = EncodingCache(limit=10)
    for version in range(10):
        cache.add(str(version), "v1", b"1234", present=False)
    assert [version for version in range(10) if cache.find(str(version), "v1")] == [8, 9]


def test_the_encodings_of_a_replaced_state_count_as_recent() -> None:
    cache = EncodingCache(limit=10)
    for version in range(10):
        cache.add(str(version), "v1", b"1234", present=True)
        cache.retire(str(version))
    assert [version for version in range(10) if cache.find(str(version), "v1")] == [8, 9]


def test_an_encoding_larger_than_the_limit_is_not_kept() -> None:
    cache = EncodingCache(limit=3)
    cache.add("1", "v1", b"1234", present=False)
    assert cache.find("1", "v1") is None
