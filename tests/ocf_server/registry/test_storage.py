"""Ordered objects of one kind: every part of them, now and earlier."""

from typing import TypeAlias

from hypothesis import given
from hypothesis import strategies as st

from ocf.objects import Manifest
from ocf_server.registry.storage import ObjectTable, Place

PLACES = st.tuples(st.sampled_from(["", "a", "a\0", "a-b", "b"]), st.sampled_from(["", "a", "b", "c", "z"]))
Contents: TypeAlias = dict[Place, Manifest]
CONTENTS: st.SearchStrategy[Contents] = st.dictionaries(PLACES, st.builds(dict, version=st.integers()))


def filled(contents: Contents, removed: set[Place]) -> ObjectTable:
    table = ObjectTable()
    for place, manifest in contents.items():
        table.put(place, {"version": "replaced"})
        table.put(place, manifest)
    for place in removed & contents.keys():
        assert table.remove(place) == contents[place]
    return table


@given(
    contents=CONTENTS,
    removed=st.sets(PLACES),
    earlier=st.dictionaries(PLACES, st.none() | st.builds(dict, version=st.integers())),
    namespace=st.sampled_from(["", "a", "b", "none"]),
    after=st.none() | PLACES,
)
def test_a_listing_is_the_ordered_part_of_the_state_that_was_asked_for(
    contents: Contents, removed: set[Place], earlier: dict[Place, Manifest | None], namespace: str, after: Place | None
) -> None:
    state: dict[Place, Manifest | None] = {place: item for place, item in contents.items() if place not in removed}
    state |= earlier
    expected = [
        (place, item)
        for place, item in sorted(state.items(), key=lambda pair: pair[0])
        if item is not None and (not namespace or place[0] == namespace) and (after is None or place > after)
    ]
    listing = filled(contents, removed).listing(namespace, after, earlier)
    assert (list(listing.items()), len(listing)) == (expected, len(expected))
    assert list(listing) == [item for _, item in expected]


@given(contents=CONTENTS, removed=st.sets(PLACES))
def test_a_table_has_what_was_put_and_not_removed(contents: Contents, removed: set[Place]) -> None:
    table = filled(contents, removed)
    kept = contents.keys() - removed
    assert len(table) == len(kept)
    assert all((table.get(place) is contents[place]) is (place in kept) for place in contents)
