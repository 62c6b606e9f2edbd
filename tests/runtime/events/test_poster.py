import asyncio
import logging
from collections import deque
from collections.abc import Callable
from datetime import timedelta
from typing import Any, cast

import pytest

from ocf.cluster import Cluster, PatchOptions, PatchType
from ocf.concepts import Event
from ocf.errors import (
    AlreadyExistsError,
    ConfigError,
    ForbiddenError,
    InvalidError,
    NotFoundError,
    ServerError,
    StatusCause,
    TooManyRequestsError,
)
from ocf.objects import Manifest, ObjectKey
from ocf.runtime.events import EventBroadcaster, broadcasting_events
from ocf.runtime.events.poster import Drop
from ocf.testing import VirtualClock

SECOND = timedelta(seconds=1)
MINUTE = timedelta(minutes=1)


class EventStore:
    """The part of a cluster that takes events; it fails as often as `failures` says."""

    def __init__(self) -> None:
        self.events: dict[str, Manifest] = {}
        self.requests: list[str] = []
        self.failures: deque[Exception] = deque()
        self.arrived = asyncio.Event()

    async def create(self, manifest: Manifest, *, field_manager: str) -> Manifest:
        assert field_manager == "example.com/shop"
        self._take("create")
        if manifest["metadata"]["name"] in self.events:
            raise AlreadyExistsError("it exists")
        self.events[manifest["metadata"]["name"]] = manifest
        return manifest

    async def patch(self, key: ObjectKey, patch: Any, options: PatchOptions) -> Manifest:
        assert (key.api_version, options.patch_type, options.field_manager) == (
            "events.k8s.io/v1",
            PatchType.MERGE,
            "example.com/shop",
        )
        self._take("patch")
        if key.name not in self.events:
            raise NotFoundError("it is gone")
        self.events[key.name] = {**self.events[key.name], **patch}
        return self.events[key.name]

    @property
    def notes(self) -> list[str]:
        return [event["note"] for event in self.events.values()]

    def _take(self, verb: str) -> None:
        self.requests.append(verb)
        self.arrived.set()
        if self.failures:
            raise self.failures.popleft()


@pytest.fixture
def store() -> EventStore:
    return EventStore()


@pytest.fixture
def poster(store: EventStore, clock: VirtualClock) -> EventBroadcaster:
    return EventBroadcaster(
        cast("Cluster", store),
        controller="example.com/shop",
        clock=clock,
        instance="shop-0",
        queued=50,
        random=lambda: 0.0,
    )


class TestWhatIsPosted:
    async def test_an_event_says_what_was_done_to_which_object_of_which_owner(
        self, poster: EventBroadcaster, store: EventStore, event: Callable[..., Event]
    ) -> None:
        poster.happened(event())
        await poster.flush()

        (posted,) = store.events.values()
        assert posted == {
            "apiVersion": "events.k8s.io/v1",
            "kind": "Event",
            "metadata": {"name": "corner.1886999c36a18000", "namespace": "town"},
            "type": "Normal",
            "eventTime": "2026-01-01T12:00:00.000000Z",
            "reportingController": "example.com/shop",
            "reportingInstance": "shop-0",
            "regarding": {
                "apiVersion": "example.com/v1",
                "kind": "Shop",
                "name": "corner",
                "namespace": "town",
                "uid": "uid-of-corner",
            },
            "related": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "backend", "namespace": "town"},
            "reason": "UpdatedDeployment",
            "action": "Update",
            "note": "Updated Deployment 'backend'",
        }

    async def test_a_warning_is_posted_as_one(
        self, poster: EventBroadcaster, store: EventStore, event: Callable[..., Event]
    ) -> None:
        poster.happened(event(type="Warning"))
        await poster.flush()

        assert [posted["type"] for posted in store.events.values()] == ["Warning"]

    async def test_it_is_stamped_when_it_happened_not_when_it_is_posted(
        self, poster: EventBroadcaster, store: EventStore, clock: VirtualClock, event: Callable[..., Event]
    ) -> None:
        poster.happened(event())
        clock.advance(MINUTE)
        await poster.flush()

        assert [posted["eventTime"] for posted in store.events.values()] == ["2026-01-01T12:00:00.000000Z"]

    async def test_events_of_one_instant_have_different_names(
        self, poster: EventBroadcaster, store: EventStore, event: Callable[..., Event]
    ) -> None:
        for note in ("one", "two", "three"):
            poster.happened(event(note=note))
        await poster.flush()

        assert store.notes == ["one", "two", "three"]

    async def test_an_event_of_another_reporter_does_not_take_its_name(
        self, poster: EventBroadcaster, store: EventStore, event: Callable[..., Event]
    ) -> None:
        """Owners of the same name are in other groups and kinds: https://github.com/kubernetes/client-go/issues/887."""
        store.events["corner.1886999c36a18000"] = {"note": "another"}
        for note in ("one", "two"):
            poster.happened(event(note=note))
        poster.happened(event(note="one"))
        await poster.flush()

        assert store.notes == ["another", "one", "two"]
        assert [posted["series"]["count"] for posted in store.events.values() if "series" in posted] == [2]
        assert poster.dropped == {}

    async def test_an_event_whose_every_name_exists_is_refused(
        self, poster: EventBroadcaster, store: EventStore, event: Callable[..., Event]
    ) -> None:
        store.failures.extend([AlreadyExistsError("it exists")] * 6)
        poster.happened(event(note="one"))
        poster.happened(event(note="two"))
        await poster.flush()

        assert store.notes == ["two"]
        assert poster.dropped == {Drop.REFUSED: 1}

    async def test_an_owner_whose_name_no_event_may_have_gives_them_its_uid(
        self, poster: EventBroadcaster, store: EventStore, event: Callable[..., Event]
    ) -> None:
        """As client-go does: https://github.com/kubernetes/kubernetes/pull/129790."""
        role = ObjectKey("rbac.authorization.k8s.io/v1", "ClusterRole", "system:node")
        poster.happened(event(owner=role, owner_uid="1-2-3"))
        await poster.flush()

        assert list(store.events) == ["1-2-3.1886999c36a18000"]

    async def test_the_version_of_the_owner_is_part_of_the_event_and_not_of_its_identity(
        self, poster: EventBroadcaster, store: EventStore, event: Callable[..., Event]
    ) -> None:
        poster.happened(event(owner_version="7"))
        poster.happened(event(owner_version="8"))
        await poster.flush()

        (posted,) = store.events.values()
        assert (posted["regarding"]["resourceVersion"], posted["series"]["count"]) == ("7", 2)

    async def test_an_owner_without_a_namespace_has_its_events_in_default(
        self, poster: EventBroadcaster, store: EventStore, event: Callable[..., Event]
    ) -> None:
        """That is the only place where the API takes them."""
        poster.happened(event(owner=ObjectKey("example.com/v1", "Mall", "north")))
        await poster.flush()

        (posted,) = store.events.values()
        assert posted["metadata"]["namespace"] == "default"
        assert "namespace" not in posted["regarding"]

    @pytest.mark.parametrize(
        ("note", "shown"),
        [
            pytest.param("x" * 1024, "x" * 1024, id="fits"),
            pytest.param("x" * 1025, "x" * 1021 + "…", id="a byte too long"),
            pytest.param("ä" * 600, "ä" * 510 + "…", id="no half characters"),
        ],
    )
    async def test_a_note_has_at_most_1024_bytes(
        self, poster: EventBroadcaster, store: EventStore, event: Callable[..., Event], note: str, shown: str
    ) -> None:
        poster.happened(event(note=note))
        await poster.flush()

        assert store.notes == [shown]
        assert len(shown.encode()) <= 1024

    async def test_a_long_name_leaves_room_for_the_instant(
        self, poster: EventBroadcaster, store: EventStore, event: Callable[..., Event]
    ) -> None:
        poster.happened(event(owner=ObjectKey("example.com/v1", "Shop", "a" * 235 + "-" + "b" * 17, "town")))
        await poster.flush()

        (name,) = store.events
        assert name == "a" * 235 + ".1886999c36a18000"

    async def test_long_names_of_the_operator_fit_into_their_fields(
        self, clock: VirtualClock, event: Callable[..., Event]
    ) -> None:
        """The API allows 128 characters for the instance, and for a field manager."""

        class Lengths(EventStore):
            async def create(self, manifest: Manifest, *, field_manager: str) -> Manifest:
                lengths.append((len(field_manager), len(manifest["reportingInstance"])))
                return manifest

        lengths: list[tuple[int, int]] = []
        name = "x" * 200 + ".example.com/shop"
        poster = EventBroadcaster(cast("Cluster", Lengths()), controller=name, clock=clock)
        poster.happened(event())
        await poster.flush()

        assert lengths == [(128, 128)]


class TestRepetition:
    async def test_equal_events_are_one_object_with_a_count(
        self, poster: EventBroadcaster, store: EventStore, clock: VirtualClock, event: Callable[..., Event]
    ) -> None:
        for _ in range(5):
            poster.happened(event())
            await poster.flush()
            clock.advance(MINUTE)
        assert store.requests == ["create", "patch"]

        clock.advance(6 * MINUTE)
        await poster.flush()

        assert store.requests == ["create", "patch", "patch"]
        (posted,) = store.events.values()
        assert posted["series"] == {"count": 5, "lastObservedTime": "2026-01-01T12:04:00.000000Z"}

    async def test_the_count_of_a_long_series_is_posted_every_half_hour(
        self, poster: EventBroadcaster, store: EventStore, clock: VirtualClock, event: Callable[..., Event]
    ) -> None:
        counts = []
        for _ in range(70):
            poster.happened(event())
            await poster.flush()
            ((posted),) = store.events.values()
            counts.append(posted.get("series", {"count": 1})["count"])
            clock.advance(MINUTE)

        assert sorted(set(counts)) == [1, 2, 31, 61]

    async def test_an_event_that_expired_is_created_again_with_its_count(
        self, poster: EventBroadcaster, store: EventStore, event: Callable[..., Event]
    ) -> None:
        poster.happened(event())
        await poster.flush()
        store.events.clear()
        poster.happened(event())
        await poster.flush()

        assert [posted["series"]["count"] for posted in store.events.values()] == [2]

    async def test_the_last_counts_are_posted_on_the_way_out(
        self, poster: EventBroadcaster, store: EventStore, event: Callable[..., Event]
    ) -> None:
        for _ in range(5):
            poster.happened(event())
        await poster.close()

        assert [posted["series"]["count"] for posted in store.events.values()] == [5]

    async def test_one_object_gets_only_so_many(
        self, poster: EventBroadcaster, store: EventStore, clock: VirtualClock, event: Callable[..., Event]
    ) -> None:
        for number in range(30):
            poster.happened(event(note=f"number {number}"))
        poster.happened(event(owner_uid="uid-of-another"))
        await poster.flush()
        clock.advance(5 * MINUTE)
        poster.happened(event(note="five minutes later"))
        await poster.flush()

        assert len(store.events) == 25 + 1 + 1
        assert poster.dropped == {Drop.TOO_MANY: 5}

    async def test_repeating_costs_nothing_of_what_an_object_may_get(
        self, poster: EventBroadcaster, store: EventStore, event: Callable[..., Event]
    ) -> None:
        for _ in range(40):
            poster.happened(event())
        poster.happened(event(note="another"))
        await poster.close()

        assert sorted(store.notes) == ["Updated Deployment 'backend'", "another"]
        assert poster.dropped == {}


class TestFailure:
    async def test_an_unreachable_cluster_is_asked_again_later(
        self, poster: EventBroadcaster, store: EventStore, clock: VirtualClock, event: Callable[..., Event]
    ) -> None:
        store.failures.append(ServerError("no answer"))
        poster.happened(event(note="one"))
        poster.happened(event(note="two"))

        assert await poster.flush() == 10 * SECOND
        clock.advance(9 * SECOND)
        assert await poster.flush() == SECOND
        assert store.requests == ["create"]
        clock.advance(SECOND)
        await poster.flush()
        assert store.notes == ["one", "two"]

    async def test_a_server_that_asks_for_patience_gets_it(
        self, poster: EventBroadcaster, store: EventStore, event: Callable[..., Event]
    ) -> None:
        store.failures.append(TooManyRequestsError("slow down", retry_after=90))
        poster.happened(event())

        assert await poster.flush() == 90 * SECOND

    async def test_chance_keeps_operators_apart(
        self, store: EventStore, clock: VirtualClock, event: Callable[..., Event]
    ) -> None:
        store.failures.append(ServerError("no answer"))
        poster = EventBroadcaster(
            cast("Cluster", store), controller="example.com/shop", clock=clock, random=lambda: 1.0
        )
        poster.happened(event())

        assert await poster.flush() == 12.5 * SECOND

    async def test_after_twelve_tries_an_event_is_dropped_and_the_next_has_its_turn(
        self,
        poster: EventBroadcaster,
        store: EventStore,
        clock: VirtualClock,
        event: Callable[..., Event],
        caplog: pytest.LogCaptureFixture,
    ) -> None:
        store.failures.extend(ServerError("no answer") for _ in range(12))
        poster.happened(event(note="unlucky"))
        poster.happened(event(note="lucky"))
        for _ in range(12):
            await poster.flush()
            clock.advance(10 * SECOND)

        assert store.notes == ["lucky"]
        assert poster.dropped == {Drop.UNDELIVERED: 1}
        assert [record.getMessage() for record in caplog.records] == [
            "event UpdatedDeployment dropped: undelivered: no answer"
        ]

    async def test_an_answer_that_got_lost_is_no_second_event(
        self, poster: EventBroadcaster, store: EventStore, clock: VirtualClock, event: Callable[..., Event]
    ) -> None:
        """The second try finds what the first one made."""
        store.failures.append(ServerError("no answer"))
        poster.happened(event())
        await poster.flush()
        made = poster._writes[0].manifest
        store.events[made["metadata"]["name"]] = made
        clock.advance(10 * SECOND)

        assert await poster.flush() is not None
        assert len(store.events) == 1
        assert poster.dropped == {}

    @pytest.mark.parametrize(
        "error",
        [
            pytest.param(InvalidError("note: too long"), id="refused by validation"),
            pytest.param(ForbiddenError("may not"), id="not allowed"),
            pytest.param(NotFoundError("no such namespace"), id="no namespace"),
            pytest.param(RuntimeError("a bug"), id="not foreseen"),
        ],
    )
    async def test_a_refused_event_is_dropped_at_once(
        self,
        poster: EventBroadcaster,
        store: EventStore,
        event: Callable[..., Event],
        caplog: pytest.LogCaptureFixture,
        error: Exception,
    ) -> None:
        store.failures.append(error)
        poster.happened(event(note="one"))
        poster.happened(event(note="two"))
        await poster.flush()

        assert store.notes == ["two"]
        assert poster.dropped == {Drop.REFUSED: 1}
        assert [record.levelname for record in caplog.records] == ["WARNING"]

    async def test_what_is_not_an_event_is_dropped_and_the_next_is_posted(
        self, poster: EventBroadcaster, store: EventStore, event: Callable[..., Event]
    ) -> None:
        poster.happened(event(note=5))
        poster.happened(event(note="next"))
        await poster.flush()

        assert [posted["note"] for posted in store.events.values()] == ["next"]
        assert poster.dropped == {Drop.REFUSED: 1}

    async def test_that_a_namespace_ends_is_no_warning(
        self, poster: EventBroadcaster, store: EventStore, event: Callable[..., Event], caplog: pytest.LogCaptureFixture
    ) -> None:
        store.failures.append(ForbiddenError("it ends", causes=[StatusCause("NamespaceTerminating", "it ends")]))
        poster.happened(event())
        with caplog.at_level(logging.WARNING):
            await poster.flush()

        assert poster.dropped == {Drop.REFUSED: 1}
        assert caplog.records == []

    async def test_more_than_can_wait_is_dropped(
        self, poster: EventBroadcaster, store: EventStore, event: Callable[..., Event]
    ) -> None:
        for number in range(53):
            poster.happened(event(owner_uid=str(number)))
        await poster.flush()

        assert len(store.events) == 50
        assert poster.dropped == {Drop.QUEUE_FULL: 3}

    async def test_what_cannot_be_posted_on_the_way_out_is_counted(
        self, poster: EventBroadcaster, store: EventStore, event: Callable[..., Event], caplog: pytest.LogCaptureFixture
    ) -> None:
        store.failures.append(ServerError("no answer"))
        poster.happened(event(note="one"))
        poster.happened(event(note="two"))
        await poster.close()

        assert poster.dropped == {Drop.UNDELIVERED: 2}
        assert [record.getMessage() for record in caplog.records] == ["2 events were not posted before shutdown"]

    async def test_a_cluster_that_hangs_does_not_hold_up_the_end(
        self, clock: VirtualClock, event: Callable[..., Event]
    ) -> None:
        class Hanging(EventStore):
            async def create(self, manifest: Manifest, *, field_manager: str) -> Manifest:
                await asyncio.Event().wait()
                return await super().create(manifest, field_manager=field_manager)

        poster = EventBroadcaster(cast("Cluster", Hanging()), controller="shop", clock=clock)
        poster.happened(event())
        await poster.close(limit=timedelta(0))

        assert poster.dropped == {Drop.UNDELIVERED: 1}


class TestPosting:
    async def test_an_event_is_posted_without_anybody_asking(
        self, store: EventStore, clock: VirtualClock, event: Callable[..., Event]
    ) -> None:
        async with broadcasting_events(cast("Cluster", store), controller="example.com/shop", clock=clock) as recorder:
            for number in range(3):
                store.arrived.clear()
                recorder.happened(event(note=str(number)))
                await store.arrived.wait()

        assert store.notes == ["0", "1", "2"]

    async def test_what_is_left_is_posted_on_the_way_out(
        self, store: EventStore, clock: VirtualClock, event: Callable[..., Event]
    ) -> None:
        async with broadcasting_events(cast("Cluster", store), controller="example.com/shop", clock=clock) as recorder:
            recorder.happened(event())
            assert store.requests == []

        assert store.requests == ["create"]

    async def test_nothing_goes_on_behind_the_block(self, store: EventStore, clock: VirtualClock) -> None:
        before = asyncio.all_tasks()
        async with broadcasting_events(cast("Cluster", store), controller="example.com/shop", clock=clock):
            assert len(asyncio.all_tasks() - before) == 1

        assert asyncio.all_tasks() == before

    async def test_a_cancelled_operator_still_posts_what_it_did(
        self, store: EventStore, clock: VirtualClock, event: Callable[..., Event]
    ) -> None:
        async def operate() -> None:
            async with broadcasting_events(
                cast("Cluster", store), controller="example.com/shop", clock=clock
            ) as recorder:
                recorder.happened(event())
                started.set()
                await asyncio.Event().wait()

        started = asyncio.Event()
        operator = asyncio.create_task(operate())
        await started.wait()
        operator.cancel()
        with pytest.raises(asyncio.CancelledError):
            await operator

        assert store.notes == ["Updated Deployment 'backend'"]

    async def test_the_machine_is_the_instance(self, store: EventStore, event: Callable[..., Event]) -> None:
        async with broadcasting_events(cast("Cluster", store), controller="example.com/shop") as recorder:
            recorder.happened(event())

        ((posted),) = store.events.values()
        assert posted["reportingInstance"].startswith("example.com/shop-")

    @pytest.mark.parametrize(
        "controller",
        ["", "shop operator", "a/b/c", "Example.com/shop", "/shop", "example.com/", "x" * 64, "-shop"],
    )
    async def test_a_name_that_the_api_refuses_is_refused(self, store: EventStore, controller: str) -> None:
        with pytest.raises(ConfigError, match="controller must be a qualified name"):
            async with broadcasting_events(cast("Cluster", store), controller=controller):
                pass
