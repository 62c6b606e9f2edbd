"""The store keeps the newest known state of each object."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ocf.cluster import Index, WatchEvent
from ocf.cluster.cache.keys import NamespacedName
from ocf.cluster.cache.serialization import unpack
from ocf.cluster.cache.store import Store
from ocf.cluster.protocol import EventType
from ocf.objects import Manifest
from ocf.objects.owner_references import owner_uids

WEB: NamespacedName = ("shop", "web")


def web(version: str, uid: str = "u1", name: str = "web") -> Manifest:
    metadata = {"name": name, "namespace": "shop", "uid": uid, "resourceVersion": version}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}


def added(version: str, uid: str = "u1", name: str = "web") -> WatchEvent:
    return WatchEvent(EventType.ADDED, web(version, uid, name))


def deleted(version: str, uid: str = "u1", name: str = "web") -> WatchEvent:
    return WatchEvent(EventType.DELETED, web(version, uid, name))


def bookmark(version: str) -> WatchEvent:
    return WatchEvent(EventType.BOOKMARK, {"metadata": {"resourceVersion": version}})


def fill(store: Store, version: str, *objects: Manifest) -> None:
    """Replace the content with a list."""
    store.begin_listing()
    store.replace(dict(store.listed(item) for item in objects), version)


def shown(store: Store, name: NamespacedName = WEB) -> str | None:
    """The known version of an object; None if it does not exist, `?` if it is stale."""
    if store.is_stale(name):
        return "?"
    entry = store.get(name)
    return str(unpack(entry)["metadata"]["resourceVersion"]) if entry is not None else None


@pytest.fixture
def changed() -> list[NamespacedName]:
    return []


@pytest.fixture
def store(changed: list[NamespacedName]) -> Store:
    """A store that has listed `web` at version 5, at version 9 of the cluster."""
    store = Store(None, changed.append)
    fill(store, "9", web("5"))
    changed.clear()
    return store


def ending(version: str, *finalizers: str, kind: EventType = EventType.MODIFIED) -> WatchEvent:
    manifest = web(version)
    manifest["metadata"] |= {"deletionTimestamp": "2026-01-01T12:00:00Z", "finalizers": list(finalizers)}
    return WatchEvent(kind, manifest)


class TestOrphaning:
    """Whether a deletion may orphan the dependents; the last entry of an object is what a subscription reports."""

    @pytest.mark.parametrize(
        ("events", "orphans"),
        [
            pytest.param([deleted("10")], False, id="deleted at once"),
            pytest.param([ending("10", "a/b"), deleted("11")], False, id="held by a controller"),
            pytest.param([ending("10", "orphan"), deleted("11")], True, id="held by the garbage collector"),
            pytest.param([ending("10", "orphan"), ending("11", "a/b"), deleted("12")], True, id="and then by another"),
        ],
    )
    def test_a_finalizer_counts_for_ever(self, store: Store, events: list[WatchEvent], *, orphans: bool) -> None:
        last = store.get(WEB)
        for event in events:
            last = store.get(WEB) or last
            store.take(event)
        assert last is not None
        assert (store.get(WEB), last.orphans) == (None, orphans)

    def test_a_state_counts_that_the_answer_to_a_write_has_overtaken(self, store: Store) -> None:
        snapshot = store.begin(WEB)
        store.found(snapshot, ending("15", "a/b").object)
        store.end(snapshot)
        last = store.get(WEB)
        store.take(ending("12", "a/b", "orphan"))
        store.take(deleted("16"))
        assert last is not None
        assert last.orphans

    @pytest.mark.parametrize("listed", [[], [ending("15", "a/b").object]], ids=["gone", "being deleted"])
    def test_a_deletion_between_two_lists_is_not_known(self, store: Store, listed: list[Manifest]) -> None:
        last = store.get(WEB)
        fill(store, "20", *listed)
        last = store.get(WEB) or last
        assert last is not None
        assert last.orphans

    @pytest.mark.parametrize("begun", [False, True], ids=["not seen before", "begun before"])
    def test_a_read_that_finds_nothing_shows_no_deletion(self, store: Store, *, begun: bool) -> None:
        if begun:
            store.take(ending("10", "a/b"))
        last = store.get(WEB)
        snapshot = store.begin(WEB)
        store.missed(snapshot, "12")
        store.end(snapshot)
        assert last is not None
        assert (store.get(WEB), last.orphans) == (None, not begun)


class TestStream:
    @pytest.mark.parametrize(
        ("events", "expected"),
        [
            pytest.param([added("10")], "10", id="a newer state"),
            pytest.param([deleted("10")], None, id="a deletion"),
            pytest.param([deleted("5")], None, id="a deletion with the last version of the object"),
            pytest.param([deleted("10"), added("11", "u2")], "11", id="recreated"),
            pytest.param([added("10", "u2"), deleted("11")], None, id="a newer deletion of another incarnation"),
            pytest.param([added("10"), added("10")], "10", id="the same event twice"),
            pytest.param([deleted("10"), deleted("10")], None, id="the same deletion twice"),
        ],
    )
    def test_which_state_is_shown(self, store: Store, events: list[WatchEvent], expected: str | None) -> None:
        for event in events:
            store.take(event)

        assert shown(store) == expected
        assert not store.relist_reason

    def test_bookmarks_and_events_advance_the_version(self, store: Store) -> None:
        store.take(bookmark("12"))
        assert store.version == "12"
        store.take(added("13"))
        assert store.version == "13"

    @pytest.mark.parametrize(
        "event", [added("7", "u2", "other"), added("8"), deleted("8", "u2"), bookmark("8")], ids=str
    )
    def test_an_event_that_goes_back_is_ignored_and_makes_a_list_due(self, store: Store, event: WatchEvent) -> None:
        """Within one watch, versions only grow: the event is late, or the cluster was restored."""
        store.take(event)

        assert (shown(store), shown(store, ("shop", "other")), store.version) == ("5", None, "9")
        assert "went back from resourceVersion 9" in store.relist_reason
        store.begin_listing()
        assert not store.relist_reason

    def test_each_change_is_reported_once(self, store: Store, changed: list[NamespacedName]) -> None:
        store.take(added("10"))
        store.take(added("10"))
        store.take(deleted("11"))
        store.take(deleted("11"))
        store.take(bookmark("12"))

        assert changed == [WEB, WEB]


class TestLists:
    def test_a_list_finds_missed_changes(self, store: Store, changed: list[NamespacedName]) -> None:
        """Changes, deletions and new objects without an event."""
        fill(store, "20", web("5"), web("12", "u2", "b"))
        assert changed == [("shop", "b")]
        fill(store, "30", web("21"))

        assert [name for name, _ in store.items()] == [WEB]
        assert changed[1:] == [("shop", "b"), WEB]
        assert (shown(store), store.version) == ("21", "30")

    def test_an_unchanged_object_is_not_stored_twice(self, store: Store) -> None:
        assert store.listed(web("5"))[1] is store.get(WEB)

    def test_a_recreated_object_with_the_same_version_is_another_object(self, store: Store) -> None:
        fill(store, "20", web("5", "u2"))

        entry = store.get(WEB)
        assert entry is not None
        assert entry.uid == "u2"

    def test_a_list_replaces_the_store_even_if_versions_went_back(self, store: Store) -> None:
        """After a restore the cluster is right, and the content of the store is not, including our own writes."""
        snapshot = store.begin(WEB)
        store.found(snapshot, web("12"))
        store.end(snapshot)
        store.mark_stale(store.empty_snapshot(("shop", "b")))
        fill(store, "3", web("2"))

        assert (shown(store), shown(store, ("shop", "b")), store.version) == ("2", None, "3")

    @pytest.mark.parametrize(
        ("written", "expected"),
        [pytest.param("12", "12", id="newer than the list"), pytest.param("10", None, id="older than the list")],
    )
    def test_a_write_during_a_list(self, store: Store, written: str, expected: str | None) -> None:
        """The list may be older than the write; only its version shows that."""
        store.begin_listing()
        snapshot = store.begin(WEB)
        store.found(snapshot, web(written))
        store.end(snapshot)
        store.replace({}, "11")

        assert shown(store) == expected

    def test_a_stale_mark_set_during_a_list_stays(self, store: Store) -> None:
        store.begin_listing()
        store.mark_stale(store.empty_snapshot(WEB))
        store.replace({}, "11")

        assert shown(store) == "?"

    def test_an_absence_found_during_a_list(self, store: Store) -> None:
        """Our read at version 12 is newer than the list of version 11."""
        store.begin_listing()
        snapshot = store.begin(WEB)
        store.missed(snapshot, "12")
        store.end(snapshot)
        store.replace(dict([store.listed(web("5"))]), "11")

        assert shown(store) is None
        store.take(added("11"))
        assert shown(store) is None


class TestOwnWrites:
    def test_an_answer_is_visible_at_once_and_late_events_do_not_revert_it(self, store: Store) -> None:
        snapshot = store.begin(WEB)
        store.found(snapshot, web("12"))
        store.end(snapshot)
        store.take(added("10"))
        store.take(added("11"))
        assert shown(store) == "12"

        store.take(added("12"))
        store.take(added("13"))
        assert shown(store) == "13"
        assert not store.relist_reason

    def test_an_answer_that_arrives_after_newer_events_changes_nothing(self, store: Store) -> None:
        snapshot = store.begin(WEB)
        store.take(added("10"))
        store.take(added("11"))
        store.found(snapshot, web("10"))
        store.end(snapshot)

        assert shown(store) == "11"

    def test_an_answer_that_arrives_after_the_deletion_does_not_restore_the_object(self, store: Store) -> None:
        """Another client deleted the object before our answer arrived."""
        snapshot = store.begin(WEB)
        store.take(added("10"))
        store.take(deleted("11"))
        store.take(bookmark("20"))
        store.found(snapshot, web("10"))
        store.end(snapshot)

        assert shown(store) is None

    def test_an_answer_without_its_event_is_kept(self, store: Store) -> None:
        snapshot = store.begin(("shop", "b"))
        store.take(bookmark("20"))
        store.found(snapshot, web("10", "u2", "b"))
        store.end(snapshot)

        assert shown(store, ("shop", "b")) == "10"

    def test_an_apply_that_changed_nothing_keeps_the_old_version(self, store: Store) -> None:
        snapshot = store.begin(WEB)
        store.found(snapshot, web("5"))
        store.end(snapshot)

        assert (shown(store), store.relist_reason) == ("5", "")

    def test_events_of_an_older_incarnation_do_not_affect_a_newer_one(self, store: Store) -> None:
        """Deleted and recreated by us; the events of the old object arrive later."""
        snapshot = store.begin(WEB)
        store.found(snapshot, web("12", "u2"))
        store.end(snapshot)
        store.take(deleted("11"))

        assert shown(store) == "12"

    def test_an_object_recreated_by_another_client(self, store: Store) -> None:
        snapshot = store.begin(WEB)
        store.found(snapshot, web("12"))
        store.end(snapshot)
        for event in (added("12"), deleted("13"), added("14", "u2")):
            store.take(event)

        assert shown(store) == "14"

    @pytest.mark.parametrize(
        ("name", "answer"),
        [
            pytest.param(WEB, web("4"), id="of an object with a newer version"),
            pytest.param(("shop", "b"), web("9", "u2", "b"), id="of a missing object"),
        ],
    )
    def test_an_answer_older_than_the_known_version_makes_a_list_due(
        self, store: Store, name: NamespacedName, answer: Manifest
    ) -> None:
        """The cluster was restored, or an event was lost; in both cases the answer is right and the store is not."""
        snapshot = store.begin(name)
        store.found(snapshot, answer)
        store.end(snapshot)

        assert shown(store, name) == answer["metadata"]["resourceVersion"]
        assert "the cluster answered with resourceVersion" in store.relist_reason

    def test_an_answer_from_before_a_restore_is_ignored(self, store: Store) -> None:
        snapshot = store.begin(WEB)
        fill(store, "3", web("2"))
        store.found(snapshot, web("3"))
        store.end(snapshot)

        assert (shown(store), store.relist_reason) == ("3", "")

    def test_an_answer_about_an_object_missing_in_a_later_list_leaves_it_stale(self, store: Store) -> None:
        """The list may be older than the write, or the object was deleted since."""
        snapshot = store.begin(("shop", "b"))
        fill(store, "20")
        store.found(snapshot, web("15", "u2", "b"))
        store.end(snapshot)

        assert shown(store, ("shop", "b")) == "?"

    def test_an_empty_snapshot_is_treated_as_older_than_the_list(self, store: Store) -> None:
        store.found(store.empty_snapshot(("shop", "b")), web("8", "u2", "b"))
        store.found(store.empty_snapshot(("shop", "c")), web("10", "u3", "c"))

        assert (shown(store, ("shop", "b")), shown(store, ("shop", "c"))) == ("?", "10")


class TestReads:
    def test_an_absence_is_not_reverted_by_older_events(self, store: Store) -> None:
        snapshot = store.begin(WEB)
        store.missed(snapshot, "12")
        store.end(snapshot)
        for event in (added("10"), deleted("11"), added("12", "u2")):
            store.take(event)
        assert shown(store) is None

        store.take(added("13", "u3"))
        assert shown(store) == "13"

    def test_an_object_created_during_a_read_stays(self, store: Store) -> None:
        snapshot = store.begin(("shop", "b"))
        store.take(added("13", "u2", "b"))
        store.missed(snapshot, "12")
        store.end(snapshot)

        assert shown(store, ("shop", "b")) == "13"

    @pytest.mark.parametrize("version", ["4", "8"])
    def test_an_absence_older_than_the_known_version_makes_a_list_due(self, store: Store, version: str) -> None:
        snapshot = store.begin(WEB)
        store.missed(snapshot, version)
        store.end(snapshot)

        assert shown(store) is None
        assert store.relist_reason

    def test_absences_are_dropped_when_no_older_state_can_arrive(self, store: Store) -> None:
        snapshot = store.begin(WEB)
        store.missed(snapshot, "12")
        store.end(snapshot)
        assert store._absent
        store.take(bookmark("12"))

        assert not store._absent


class TestDoubts:
    def test_a_read_removes_the_stale_mark_that_it_began_with(self, store: Store) -> None:
        store.mark_stale(store.empty_snapshot(WEB))
        snapshot = store.begin(WEB)
        store.found(snapshot, web("12"))
        store.end(snapshot)

        assert shown(store) == "12"

    @pytest.mark.parametrize("there", [True, False])
    def test_a_read_does_not_remove_a_newer_stale_mark(self, store: Store, *, there: bool) -> None:
        snapshot = store.begin(WEB)
        store.mark_stale(store.empty_snapshot(WEB))
        if there:
            store.found(snapshot, web("12"))
        else:
            store.missed(snapshot, "12")
        store.end(snapshot)

        assert shown(store) == "?"

    @pytest.mark.parametrize(
        ("event", "expected"),
        [
            pytest.param(added("10"), "?", id="not reached"),
            pytest.param(added("12"), "12", id="reached"),
            pytest.param(added("13"), "13", id="passed"),
        ],
    )
    def test_an_object_is_stale_until_the_expected_version(
        self, store: Store, event: WatchEvent, expected: str
    ) -> None:
        """Our patch of a Scale made version 12."""
        snapshot = store.begin(WEB)
        store.expect_version(snapshot, "12")
        store.end(snapshot)
        store.take(event)

        assert shown(store) == expected

    @pytest.mark.parametrize("version", ["5", "4"])
    def test_an_expected_version_that_is_known_leaves_no_mark(self, store: Store, version: str) -> None:
        snapshot = store.begin(WEB)
        store.expect_version(snapshot, version)
        store.end(snapshot)

        assert shown(store) == "5"

    def test_an_unknown_expected_version_leaves_the_object_stale(self, store: Store) -> None:
        store.expect_version(store.empty_snapshot(WEB), "")

        assert shown(store) == "?"

    @pytest.mark.parametrize(
        ("event", "expected"),
        [
            pytest.param(deleted("10"), None, id="the deleted object"),
            pytest.param(deleted("10", "u0"), "?", id="another object of that name"),
            pytest.param(added("10"), "?", id="a change of the object"),
        ],
    )
    def test_a_delete_with_a_uid_is_stale_until_its_deleted_event(
        self, store: Store, event: WatchEvent, expected: str | None
    ) -> None:
        store.mark_stale(store.empty_snapshot(WEB), uid="u1")
        store.take(event)

        assert shown(store) == expected

    def test_an_event_does_not_remove_the_mark_of_a_delete_without_a_uid(self, store: Store) -> None:
        """The event may be about an older object of that name."""
        store.mark_stale(store.empty_snapshot(WEB))
        store.take(deleted("10"))

        assert shown(store) == "?"

    def test_an_event_about_one_of_two_concurrent_requests_keeps_the_mark(self, store: Store) -> None:
        """We deleted the object and scaled it; the scaling is answered last but may have happened first."""
        scaling, deleting = store.begin(WEB), store.begin(WEB)
        store.mark_stale(deleting)
        store.expect_version(scaling, "10")
        store.take(added("10"))
        assert shown(store) == "?"

        read = store.begin(WEB)
        store.missed(read, "11")
        assert shown(store) is None

    def test_a_later_request_removes_the_mark_of_an_earlier_one(self, store: Store) -> None:
        store.mark_stale(store.begin(WEB))
        store.expect_version(store.begin(WEB), "12")
        store.take(added("12"))

        assert shown(store) == "12"

    def test_too_many_stale_marks_make_a_list_due(self, store: Store) -> None:
        for number in range(1_001):
            store.mark_stale(store.empty_snapshot(("shop", f"web-{number}")))
        assert "are stale" in store.relist_reason
        fill(store, "10")

        assert store.stale() == []

    def test_stale_objects_are_found_by_namespace(self, store: Store) -> None:
        store.mark_stale(store.empty_snapshot(WEB))
        store.mark_stale(store.empty_snapshot(("other", "web")))

        assert store.stale("shop") == [WEB]
        assert len(store.stale()) == 2


class TestOpaqueVersions:
    """Versions that are not numbers can only be compared for equality."""

    @pytest.fixture
    def opaque(self) -> Store:
        store = Store(None, lambda _: None)
        fill(store, "n9", web("n5"))
        return store

    def test_events_are_applied_in_their_order(self, opaque: Store) -> None:
        opaque.take(added("a"))
        assert (shown(opaque), opaque.version) == ("a", "a")
        opaque.take(deleted("b", "u2"))
        assert shown(opaque) is None

    def test_our_write_is_stale_until_its_event(self, opaque: Store) -> None:
        snapshot = opaque.begin(WEB)
        opaque.found(snapshot, web("n7"))
        opaque.end(snapshot)
        opaque.take(added("n6"))
        assert shown(opaque) == "?"
        opaque.take(added("n7"))
        assert shown(opaque) == "n7"

    def test_our_write_whose_event_came_first_is_not_stale(self, opaque: Store) -> None:
        snapshot = opaque.begin(WEB)
        opaque.take(added("n6"))
        opaque.take(added("n7"))
        opaque.found(snapshot, web("n6"))
        opaque.end(snapshot)

        assert shown(opaque) == "n7"

    def test_a_write_that_changed_nothing_is_not_stale(self, opaque: Store) -> None:
        snapshot = opaque.begin(WEB)
        opaque.found(snapshot, web("n5"))
        opaque.end(snapshot)

        assert shown(opaque) == "n5"

    def test_an_absence_does_not_remove_the_mark(self, opaque: Store) -> None:
        opaque.mark_stale(opaque.empty_snapshot(WEB))
        snapshot = opaque.begin(WEB)
        opaque.missed(snapshot, "n8")
        opaque.end(snapshot)

        assert shown(opaque) == "?"


def test_reduced_fields_are_not_kept() -> None:
    def reduce(manifest: Manifest) -> Manifest:
        return {key: value for key, value in manifest.items() if key != "data"}

    store = Store(reduce, lambda _: None)
    fill(store, "9", {**web("5"), "data": {"k": "v"}})
    store.take(WatchEvent(EventType.MODIFIED, {**web("10"), "data": {"k": "v"}}))

    entry = store.get(WEB)
    assert entry is not None
    assert unpack(entry) == web("10")


def test_clearing_drops_all_objects(store: Store) -> None:
    store.mark_stale(store.empty_snapshot(("shop", "b")))
    store.clear()

    assert (len(store), store.stale()) == (0, [])


def owned(version: str, name: str, owners: list[str]) -> Manifest:
    """Return an object with owner references; the first one is its controller."""
    manifest = web(version, uid=name, name=name)
    reference = {"apiVersion": "example.com/v1", "kind": "Shop", "name": "corner"}
    manifest["metadata"]["ownerReferences"] = [
        {**reference, "uid": uid, "controller": number == 0} for number, uid in enumerate(owners)
    ]
    return manifest


@given(
    steps=st.lists(
        st.tuples(
            st.sampled_from(["event", "delete", "list", "answer", "absent", "clear"]),
            st.sampled_from(["a", "b", "c"]),
            st.lists(st.sampled_from(["owner-1", "owner-2"])),
        ),
        max_size=30,
    )
)
def test_the_indexes_have_what_a_scan_finds(steps: list[tuple[str, str, list[str]]]) -> None:
    store, version = Store(None, lambda _: None), 10
    by_number = Index[int](lambda live: [len(owner_uids(live))])
    fill(store, str(version))
    for step, name, owners in steps:
        version += 1
        manifest = owned(str(version), name, owners)
        match step:
            case "event":
                store.take(WatchEvent(EventType.MODIFIED, manifest))
            case "delete":
                store.take(WatchEvent(EventType.DELETED, manifest))
            case "list":
                fill(store, str(version), manifest)
            case "clear":
                store.clear()
            case _:
                snapshot = store.begin(("shop", name))
                if step == "answer":
                    store.found(snapshot, manifest)
                else:
                    store.missed(snapshot, str(version))
                store.end(snapshot)
        scanned = {found for found in store.unordered() if len(owner_uids(unpack(found[1]))) == 1}
        assert {*store.indexed(by_number.at(1))} == scanned
        for uid in ("owner-1", "owner-2", "owner-3"):
            scanned = {found for found in store.unordered() if uid in owner_uids(unpack(found[1]))}
            assert set(store.owned_by(uid)) == scanned
