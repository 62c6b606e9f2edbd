"""What is known of each object: the newest state that anybody told."""

import pytest

from ocf.cluster import EventType, WatchEvent
from ocf.cluster.cache.keys import NamespacedName
from ocf.cluster.cache.serialization import unpack
from ocf.cluster.cache.store import Store
from ocf.objects import Manifest

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
    """Take over a list."""
    store.begin_listing()
    store.replace(dict(store.listed(item) for item in objects), version)


def shown(store: Store, place: NamespacedName = WEB) -> str | None:
    """The version of an object as it is known; None if it is not there, `?` if only the cluster can tell."""
    if store.is_stale(place):
        return "?"
    entry = store.get(place)
    return str(unpack(entry)["metadata"]["resourceVersion"]) if entry is not None else None


@pytest.fixture
def told() -> list[NamespacedName]:
    return []


@pytest.fixture
def store(told: list[NamespacedName]) -> Store:
    """A store that has listed `web` at version 5, at version 9 of the cluster."""
    store = Store(None, told.append)
    fill(store, "9", web("5"))
    told.clear()
    return store


class TestStream:
    @pytest.mark.parametrize(
        ("events", "expected"),
        [
            pytest.param([added("10")], "10", id="a newer state counts"),
            pytest.param([deleted("10")], None, id="the end of an object counts"),
            pytest.param([deleted("5")], None, id="also where its event has the last version it had"),
            pytest.param([deleted("10"), added("11", "u2")], "11", id="made anew"),
            pytest.param([added("10", "u2"), deleted("11")], None, id="a newer end counts, whoever ended"),
            pytest.param([added("10"), added("10")], "10", id="the same event twice"),
            pytest.param([deleted("10"), deleted("10")], None, id="the same end twice"),
        ],
    )
    def test_what_is_shown(self, store: Store, events: list[WatchEvent], expected: str | None) -> None:
        for event in events:
            store.take(event)

        assert shown(store) == expected
        assert not store.relist_reason

    def test_bookmarks_and_events_move_the_version_on(self, store: Store) -> None:
        store.take(bookmark("12"))
        assert store.version == "12"
        store.take(added("13"))
        assert store.version == "13"

    @pytest.mark.parametrize(
        "event", [added("7", "u2", "other"), added("8"), deleted("8", "u2"), bookmark("8")], ids=str
    )
    def test_an_event_that_goes_back_does_not_count_and_asks_for_a_list(self, store: Store, event: WatchEvent) -> None:
        """Between two events of one watch, versions only grow; so this one is late, or the cluster was restored."""
        store.take(event)

        assert (shown(store), shown(store, ("shop", "other")), store.version) == ("5", None, "9")
        assert "went back from resourceVersion 9" in store.relist_reason
        store.begin_listing()
        assert not store.relist_reason

    def test_each_change_is_told_once(self, store: Store, told: list[NamespacedName]) -> None:
        store.take(added("10"))
        store.take(added("10"))
        store.take(deleted("11"))
        store.take(deleted("11"))
        store.take(bookmark("12"))

        assert told == [WEB, WEB]


class TestLists:
    def test_a_list_notices_what_was_missed(self, store: Store, told: list[NamespacedName]) -> None:
        """Changes, ends and new objects that no event told."""
        fill(store, "20", web("5"), web("12", "u2", "b"))
        assert told == [("shop", "b")]
        fill(store, "30", web("21"))

        assert [place for place, _ in store.items()] == [WEB]
        assert told[1:] == [("shop", "b"), WEB]
        assert (shown(store), store.version) == ("21", "30")

    def test_an_unchanged_object_is_not_stored_twice(self, store: Store) -> None:
        assert store.listed(web("5"))[1] is store.get(WEB)

    def test_an_object_made_anew_with_the_same_version_is_another_one(self, store: Store) -> None:
        fill(store, "20", web("5", "u2"))

        entry = store.get(WEB)
        assert entry is not None
        assert entry.uid == "u2"

    def test_a_list_counts_even_if_versions_went_back(self, store: Store) -> None:
        """After a restore the cluster is right, and what was known before is not, our own writes included."""
        ticket = store.begin(WEB)
        store.found(ticket, web("12"))
        store.end(ticket)
        store.mark_stale(store.empty_snapshot(("shop", "b")))
        fill(store, "3", web("2"))

        assert (shown(store), shown(store, ("shop", "b")), store.version) == ("2", None, "3")

    @pytest.mark.parametrize(
        ("written", "expected"),
        [pytest.param("12", "12", id="newer than the list"), pytest.param("10", None, id="older than the list")],
    )
    def test_what_we_wrote_while_a_list_was_under_way(self, store: Store, written: str, expected: str | None) -> None:
        """The list may have been made before the write; only its version tells."""
        store.begin_listing()
        ticket = store.begin(WEB)
        store.found(ticket, web(written))
        store.end(ticket)
        store.replace({}, "11")

        assert shown(store) == expected

    def test_a_doubt_that_arose_while_a_list_was_under_way_stays(self, store: Store) -> None:
        store.begin_listing()
        store.mark_stale(store.empty_snapshot(WEB))
        store.replace({}, "11")

        assert shown(store) == "?"

    def test_an_object_that_was_not_there_while_a_list_was_under_way(self, store: Store) -> None:
        """Our read at version 12 knows more than the list of version 11."""
        store.begin_listing()
        ticket = store.begin(WEB)
        store.missed(ticket, "12")
        store.end(ticket)
        store.replace(dict([store.listed(web("5"))]), "11")

        assert shown(store) is None
        store.take(added("11"))
        assert shown(store) is None


class TestOwnWrites:
    def test_an_answer_is_visible_at_once_and_late_events_do_not_undo_it(self, store: Store) -> None:
        ticket = store.begin(WEB)
        store.found(ticket, web("12"))
        store.end(ticket)
        store.take(added("10"))
        store.take(added("11"))
        assert shown(store) == "12"

        store.take(added("12"))
        store.take(added("13"))
        assert shown(store) == "13"
        assert not store.relist_reason

    def test_an_answer_that_arrives_after_newer_events_changes_nothing(self, store: Store) -> None:
        ticket = store.begin(WEB)
        store.take(added("10"))
        store.take(added("11"))
        store.found(ticket, web("10"))
        store.end(ticket)

        assert shown(store) == "11"

    def test_an_answer_that_arrives_after_the_end_does_not_revive(self, store: Store) -> None:
        """Somebody deleted what we had written before our answer arrived."""
        ticket = store.begin(WEB)
        store.take(added("10"))
        store.take(deleted("11"))
        store.take(bookmark("20"))
        store.found(ticket, web("10"))
        store.end(ticket)

        assert shown(store) is None

    def test_an_answer_whose_event_was_lost_counts(self, store: Store) -> None:
        ticket = store.begin(("shop", "b"))
        store.take(bookmark("20"))
        store.found(ticket, web("10", "u2", "b"))
        store.end(ticket)

        assert shown(store, ("shop", "b")) == "10"

    def test_an_apply_that_changed_nothing_keeps_the_old_version(self, store: Store) -> None:
        ticket = store.begin(WEB)
        store.found(ticket, web("5"))
        store.end(ticket)

        assert (shown(store), store.relist_reason) == ("5", "")

    def test_an_older_incarnation_ends_behind_ours(self, store: Store) -> None:
        """Deleted and made anew by us; the events of the old object come later."""
        ticket = store.begin(WEB)
        store.found(ticket, web("12", "u2"))
        store.end(ticket)
        store.take(deleted("11"))

        assert shown(store) == "12"

    def test_the_same_object_made_anew_by_others(self, store: Store) -> None:
        ticket = store.begin(WEB)
        store.found(ticket, web("12"))
        store.end(ticket)
        for event in (added("12"), deleted("13"), added("14", "u2")):
            store.take(event)

        assert shown(store) == "14"

    @pytest.mark.parametrize(
        ("place", "answer"),
        [
            pytest.param(WEB, web("4"), id="of an object that was newer"),
            pytest.param(("shop", "b"), web("9", "u2", "b"), id="of an object that was not there"),
        ],
    )
    def test_an_answer_older_than_what_was_known_before_asks_for_a_list(
        self, store: Store, place: NamespacedName, answer: Manifest
    ) -> None:
        """The cluster was restored, or an event got lost; either way the answer is true and memory is not."""
        ticket = store.begin(place)
        store.found(ticket, answer)
        store.end(ticket)

        assert shown(store, place) == answer["metadata"]["resourceVersion"]
        assert "the cluster answered with resourceVersion" in store.relist_reason

    def test_an_answer_from_before_a_restore_is_no_news(self, store: Store) -> None:
        ticket = store.begin(WEB)
        fill(store, "3", web("2"))
        store.found(ticket, web("3"))
        store.end(ticket)

        assert (shown(store), store.relist_reason) == ("3", "")

    def test_an_answer_to_what_a_list_in_between_did_not_have_is_in_doubt(self, store: Store) -> None:
        """The list may be older than the write, or the object has ended since."""
        ticket = store.begin(("shop", "b"))
        fill(store, "20")
        store.found(ticket, web("15", "u2", "b"))
        store.end(ticket)

        assert shown(store, ("shop", "b")) == "?"

    def test_a_late_ticket_counts_like_one_from_before_the_list(self, store: Store) -> None:
        store.found(store.empty_snapshot(("shop", "b")), web("8", "u2", "b"))
        store.found(store.empty_snapshot(("shop", "c")), web("10", "u3", "c"))

        assert (shown(store, ("shop", "b")), shown(store, ("shop", "c"))) == ("?", "10")


class TestReads:
    def test_what_is_not_there_at_a_version_was_not_revived_by_older_events(self, store: Store) -> None:
        ticket = store.begin(WEB)
        store.missed(ticket, "12")
        store.end(ticket)
        for event in (added("10"), deleted("11"), added("12", "u2")):
            store.take(event)
        assert shown(store) is None

        store.take(added("13", "u3"))
        assert shown(store) == "13"

    def test_an_object_made_while_we_read_stays(self, store: Store) -> None:
        ticket = store.begin(("shop", "b"))
        store.take(added("13", "u2", "b"))
        store.missed(ticket, "12")
        store.end(ticket)

        assert shown(store, ("shop", "b")) == "13"

    @pytest.mark.parametrize("version", ["4", "8"])
    def test_an_absence_older_than_what_was_known_asks_for_a_list(self, store: Store, version: str) -> None:
        ticket = store.begin(WEB)
        store.missed(ticket, version)
        store.end(ticket)

        assert shown(store) is None
        assert store.relist_reason

    def test_absences_are_forgotten_when_nothing_older_can_come(self, store: Store) -> None:
        ticket = store.begin(WEB)
        store.missed(ticket, "12")
        store.end(ticket)
        assert store._absent
        store.take(bookmark("12"))

        assert not store._absent


class TestDoubts:
    def test_a_read_clears_up_the_doubt_it_began_with(self, store: Store) -> None:
        store.mark_stale(store.empty_snapshot(WEB))
        ticket = store.begin(WEB)
        store.found(ticket, web("12"))
        store.end(ticket)

        assert shown(store) == "12"

    @pytest.mark.parametrize("there", [True, False])
    def test_a_read_does_not_clear_up_a_doubt_that_is_younger(self, store: Store, *, there: bool) -> None:
        ticket = store.begin(WEB)
        store.mark_stale(store.empty_snapshot(WEB))
        if there:
            store.found(ticket, web("12"))
        else:
            store.missed(ticket, "12")
        store.end(ticket)

        assert shown(store) == "?"

    @pytest.mark.parametrize(
        ("event", "expected"),
        [
            pytest.param(added("10"), "?", id="not there yet"),
            pytest.param(added("12"), "12", id="there"),
            pytest.param(added("13"), "13", id="beyond"),
        ],
    )
    def test_an_owed_version_is_awaited(self, store: Store, event: WatchEvent, expected: str) -> None:
        """Our patch of a Scale made version 12."""
        ticket = store.begin(WEB)
        store.expect_version(ticket, "12")
        store.end(ticket)
        store.take(event)

        assert shown(store) == expected

    @pytest.mark.parametrize("version", ["5", "4"])
    def test_a_version_that_is_known_is_not_owed(self, store: Store, version: str) -> None:
        ticket = store.begin(WEB)
        store.expect_version(ticket, version)
        store.end(ticket)

        assert shown(store) == "5"

    def test_an_owed_version_that_nobody_knows_is_in_doubt(self, store: Store) -> None:
        store.expect_version(store.empty_snapshot(WEB), "")

        assert shown(store) == "?"

    @pytest.mark.parametrize(
        ("event", "expected"),
        [
            pytest.param(deleted("10"), None, id="the object that was deleted"),
            pytest.param(deleted("10", "u0"), "?", id="another of its name"),
            pytest.param(added("10"), "?", id="a change of it"),
        ],
    )
    def test_a_delete_bound_to_a_uid_awaits_its_end(
        self, store: Store, event: WatchEvent, expected: str | None
    ) -> None:
        store.mark_stale(store.empty_snapshot(WEB), uid="u1")
        store.take(event)

        assert shown(store) == expected

    def test_a_delete_bound_to_nothing_is_not_cleared_up_by_an_event(self, store: Store) -> None:
        """The event may be about an older object of that name than the one we deleted."""
        store.mark_stale(store.empty_snapshot(WEB))
        store.take(deleted("10"))

        assert shown(store) == "?"

    def test_two_requests_at_once_are_not_settled_by_an_event_about_one(self, store: Store) -> None:
        """We deleted the object, and scaled it; the scaling is answered last and may have come first."""
        scaling, deleting = store.begin(WEB), store.begin(WEB)
        store.mark_stale(deleting)
        store.expect_version(scaling, "10")
        store.take(added("10"))
        assert shown(store) == "?"

        read = store.begin(WEB)
        store.missed(read, "11")
        assert shown(store) is None

    def test_a_request_after_another_settles_what_that_left_open(self, store: Store) -> None:
        store.mark_stale(store.begin(WEB))
        store.expect_version(store.begin(WEB), "12")
        store.take(added("12"))

        assert shown(store) == "12"

    def test_too_many_doubts_ask_for_a_list(self, store: Store) -> None:
        for number in range(1_001):
            store.mark_stale(store.empty_snapshot(("shop", f"web-{number}")))
        assert "are stale" in store.relist_reason
        fill(store, "10")

        assert store.stale() == []

    def test_doubts_are_found_by_namespace(self, store: Store) -> None:
        store.mark_stale(store.empty_snapshot(WEB))
        store.mark_stale(store.empty_snapshot(("other", "web")))

        assert store.stale("shop") == [WEB]
        assert len(store.stale()) == 2


class TestOpaqueVersions:
    """Versions that are no numbers are equal or not, and nothing else."""

    @pytest.fixture
    def opaque(self) -> Store:
        store = Store(None, lambda _: None)
        fill(store, "n9", web("n5"))
        return store

    def test_events_count_as_they_come(self, opaque: Store) -> None:
        opaque.take(added("a"))
        assert (shown(opaque), opaque.version) == ("a", "a")
        opaque.take(deleted("b", "u2"))
        assert shown(opaque) is None

    def test_our_write_is_in_doubt_until_its_event(self, opaque: Store) -> None:
        ticket = opaque.begin(WEB)
        opaque.found(ticket, web("n7"))
        opaque.end(ticket)
        opaque.take(added("n6"))
        assert shown(opaque) == "?"
        opaque.take(added("n7"))
        assert shown(opaque) == "n7"

    def test_our_write_whose_event_came_first_is_known(self, opaque: Store) -> None:
        ticket = opaque.begin(WEB)
        opaque.take(added("n6"))
        opaque.take(added("n7"))
        opaque.found(ticket, web("n6"))
        opaque.end(ticket)

        assert shown(opaque) == "n7"

    def test_a_write_that_changed_nothing_is_known(self, opaque: Store) -> None:
        ticket = opaque.begin(WEB)
        opaque.found(ticket, web("n5"))
        opaque.end(ticket)

        assert shown(opaque) == "n5"

    def test_an_absence_leaves_the_doubt(self, opaque: Store) -> None:
        opaque.mark_stale(opaque.empty_snapshot(WEB))
        ticket = opaque.begin(WEB)
        opaque.missed(ticket, "n8")
        opaque.end(ticket)

        assert shown(opaque) == "?"


def test_what_is_left_out_is_not_kept() -> None:
    def reduce(manifest: Manifest) -> Manifest:
        return {key: value for key, value in manifest.items() if key != "data"}

    store = Store(reduce, lambda _: None)
    fill(store, "9", {**web("5"), "data": {"k": "v"}})
    store.take(WatchEvent(EventType.MODIFIED, {**web("10"), "data": {"k": "v"}}))

    entry = store.get(WEB)
    assert entry is not None
    assert unpack(entry) == web("10")


def test_clearing_forgets_everything(store: Store) -> None:
    store.mark_stale(store.empty_snapshot(("shop", "b")))
    store.clear()

    assert (len(store), store.stale()) == (0, [])
