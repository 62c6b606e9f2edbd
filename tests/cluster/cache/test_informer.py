"""The informer: lists, watches, and the recovery from their errors."""

from __future__ import annotations

import asyncio
import gc
import logging
from typing import TYPE_CHECKING, Any

import pytest

from ocf.cluster import EventType, Verb, WatchEvent
from ocf.cluster.cache import CachedCluster
from ocf.cluster.cache.store import Store
from ocf.embedded import EmbeddedCluster
from ocf.errors import ConfigError, ExpiredError, ForbiddenError, NotFoundError, ServerError, TooManyRequestsError

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable

    from tests.cluster.cache.conftest import Setting


def verbs(setting: Setting) -> list[Verb]:
    return [request.verb for request in setting.far.requests]


class TestFirstList:
    async def test_a_read_starts_the_informer_and_waits_for_it(self, setting: Setting) -> None:
        await setting.theirs()
        assert not setting.cached.informers

        assert await setting.note() == "theirs"
        (state,) = setting.cached.informers
        assert (state.kind, state.namespace, state.synced, state.objects) == ("Deployment", "", True, 1)

    async def test_many_readers_wait_for_one_list(self, setting: Setting) -> None:
        await setting.theirs()
        setting.far.requests.clear()
        setting.wire.hold_lists = True
        readers = [asyncio.create_task(setting.note()) for _ in range(5)]
        await setting.settle()
        assert not any(reader.done() for reader in readers)
        setting.wire.release_lists()

        assert await asyncio.gather(*readers) == ["theirs"] * 5
        await setting.settle()
        assert verbs(setting) == [Verb.LIST, Verb.WATCH]

    async def test_lists_are_paged(self, new_setting: Callable[..., Setting]) -> None:
        setting = new_setting()
        for number in range(1_001):
            name = f"m{number:04}"
            manifest = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "shop"}}
            await setting.far.create(manifest, field_manager="them")
        setting.far.requests.clear()
        await setting.cached.cache("v1", "ConfigMap")

        assert verbs(setting).count(Verb.LIST) == 3
        assert setting.cached.informers[0].objects == 1_001

    async def test_after_a_failed_list_reads_go_to_the_cluster(self, setting: Setting) -> None:
        """Each read gets the answer of the cluster to its own request."""
        await setting.theirs()
        setting.wire.list_errors = [ForbiddenError("no list for you", code=403)]

        assert await setting.note() == "theirs"
        assert Verb.GET in verbs(setting)
        assert not setting.cached.healthy
        assert setting.cached.problems == ("apps/v1/Deployment: no list for you",)

    async def test_a_failed_list_is_retried(self, setting: Setting) -> None:
        setting.wire.list_errors = [ServerError("starting")]
        await setting.names()
        await setting.time.advance(0.5)
        setting.far.requests.clear()
        await setting.names()

        assert setting.cached.healthy
        assert not setting.far.requests.reads

    async def test_an_explicit_start_raises_the_error_of_the_list(self, setting: Setting) -> None:
        setting.wire.list_errors = [ForbiddenError("no list for you", code=403)]
        with pytest.raises(ForbiddenError, match="no list for you"):
            await setting.cached.cache("apps/v1", "Deployment")

        await setting.time.advance(0.5)
        await setting.cached.cache("apps/v1", "Deployment")

    async def test_a_kind_that_is_created_later_is_found(self, setting: Setting) -> None:
        """Fault: a CRD is missing, and is created later."""
        with pytest.raises(NotFoundError):
            await setting.cached.list("example.com/v1", "Gadget")
        setting.wire.inner = EmbeddedCluster(kinds=[_gadget()])
        assert not (await setting.cached.list("example.com/v1", "Gadget")).items
        await setting.time.advance(1)
        await setting.cached.list("example.com/v1", "Gadget")

        assert setting.cached.informers[0].synced


def _gadget() -> Any:
    from ocf.embedded import CustomKind

    return CustomKind("example.com", "v1", "Gadget")


class TestWatch:
    async def test_changes_by_other_clients_are_seen(self, setting: Setting) -> None:
        await setting.sync()
        await setting.theirs(note="one")
        assert await setting.note() == "one"
        await setting.theirs(note="two")
        assert await setting.note() == "two"
        await setting.far.delete(setting.key())
        await setting.settle()

        with pytest.raises(NotFoundError) as caught:
            await setting.note()
        assert (caught.value.code, caught.value.reason) == (404, "NotFound")

    async def test_a_clean_end_is_followed_by_a_watch_from_the_last_version(self, setting: Setting) -> None:
        await setting.sync()
        await setting.theirs()
        version = setting.far.resource_version
        setting.wire.disconnect()
        await setting.theirs(note="unseen")
        await setting.settle()

        assert setting.wire.watched_from[1] == version
        assert setting.wire.watches == 1
        assert setting.time.slept.count(setting.timing.idle_timeout) == len(setting.time.slept), (
            "nothing was waited for"
        )
        assert await setting.note() == "unseen"

    async def test_bookmarks_advance_the_version(self, setting: Setting) -> None:
        await setting.sync()
        other = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x", "namespace": "shop"}}
        await setting.far.create(other, field_manager="them")
        await setting.settle()
        setting.wire.disconnect()
        await setting.settle()

        assert setting.wire.watched_from[1] == setting.far.resource_version

    @pytest.mark.promise("cache-lost-events")
    async def test_an_expired_watch_is_followed_by_a_list(self, setting: Setting) -> None:
        await setting.theirs("gone")
        await setting.sync()
        setting.wire.held = True
        await setting.far.delete(setting.key("gone"))
        await setting.theirs("new")
        setting.far.compact()
        setting.wire.let_go()
        setting.wire.disconnect()
        await setting.settle()

        assert await setting.names() == ["new"], "a deletion without an event is detected"
        assert setting.cached.healthy

    async def test_repeated_compactions_are_followed_by_delays(self, setting: Setting) -> None:
        await setting.sync()
        setting.wire.watch_errors = [ExpiredError("too old", code=410) for _ in range(10)]
        setting.wire.disconnect()
        await setting.settle()
        delays = [slept for slept in setting.time.slept if slept != setting.timing.idle_timeout]

        assert len(setting.wire.watched_from) == 2, "the second attempt waits"
        assert delays == [1.0]
        assert not setting.cached.healthy

    async def test_errors_are_followed_by_growing_delays(self, setting: Setting) -> None:
        await setting.sync()
        setting.wire.watch_errors = [ServerError("down")] * 20
        setting.wire.disconnect(ServerError("reset"))
        await setting.time.advance(600)
        delays = [slept for slept in setting.time.slept if slept != setting.timing.idle_timeout]

        assert delays[:9] == [0.5, 1, 2, 4, 8, 16, 32, 45, 45]
        assert max(delays) == 45

    async def test_an_outage_of_half_an_hour(self, setting: Setting) -> None:
        """At most 60 requests; `healthy` is False, the cache answers, and it recovers within the longest delay."""
        await setting.theirs()
        await setting.sync()
        errors: list[Exception] = [ServerError("down") for _ in range(500)]
        setting.wire.list_errors = errors
        setting.wire.disconnect(ServerError("reset"))
        await setting.time.advance(1_800)

        assert 500 - len(errors) <= 60
        assert "down" in setting.cached.problems[0]
        assert await setting.note() == "theirs"

        errors.clear()
        await setting.theirs(note="after")
        await setting.time.advance(45)
        assert await setting.note() == "after"
        assert setting.cached.healthy

    async def test_one_broken_connection_is_not_a_problem(self, setting: Setting) -> None:
        await setting.sync()
        await setting.theirs()
        setting.wire.disconnect(ServerError("reset"))
        await setting.settle()

        assert setting.cached.healthy
        assert setting.cached.informers[0].failures == 1

    async def test_retry_after_of_the_server_is_honored(self, setting: Setting) -> None:
        await setting.sync()
        setting.wire.disconnect(TooManyRequestsError("slow down", code=429, retry_after=120))
        await setting.settle()

        assert setting.time.slept[-1] == 120

    async def test_watches_that_end_at_once_are_followed_by_delays(self, setting: Setting) -> None:
        await setting.sync()
        for _ in range(4):
            setting.wire.disconnect()
            await setting.settle()

        assert len(setting.wire.watched_from) == 2
        await setting.time.advance(1)
        assert len(setting.wire.watched_from) == 3

    @pytest.mark.parametrize("lost", [False, True])
    @pytest.mark.promise("cache-lost-events")
    async def test_an_idle_watch_is_replaced(self, setting: Setting, *, lost: bool) -> None:
        """Fault: the connection is lost without an error; 20 times."""
        await setting.sync()
        for number in range(20):
            setting.wire.held = lost
            await setting.theirs(note=str(number))
            await setting.time.advance(setting.timing.idle_timeout)
            setting.wire.let_go()
            await setting.time.advance(setting.timing.idle_timeout)
            assert await setting.note() == str(number)

        assert len(setting.wire.watched_from) >= 21
        assert setting.wire.watches == 1

    @pytest.mark.promise("cache-lost-events")
    async def test_all_objects_are_listed_again_periodically(self, setting: Setting) -> None:
        """Fault: the watch missed a change, and nothing else happens."""
        await setting.theirs()
        await setting.sync()
        setting.wire.drop = 1
        await setting.theirs(note="missed")
        assert await setting.note() == "theirs"
        await setting.time.advance(setting.timing.relist_every + setting.timing.idle_timeout)

        assert await setting.note() == "missed"

    async def test_a_busy_watch_does_not_prevent_the_periodic_list(self, setting: Setting) -> None:
        await setting.theirs()
        await setting.sync()
        setting.wire.drop = 1
        await setting.theirs(note="missed")
        for number in range(80):
            await setting.theirs("other", note=str(number))
            await setting.time.advance(50)

        assert await setting.note() == "missed"

    async def test_a_repeated_event_changes_nothing(self, setting: Setting) -> None:
        await setting.sync()
        setting.wire.repeat = 1
        await setting.theirs()

        assert await setting.note() == "theirs"
        assert setting.cached.informers[0].failures == 0

    async def test_a_restored_cluster_is_detected(self, new_setting: Callable[..., Setting]) -> None:
        """Fault: etcd is restored, versions go back, and the server restarts."""
        setting = new_setting()
        for number in range(5):
            await setting.theirs("old", note=str(number))
        await setting.sync()
        await setting.ours("ours")
        backup = new_setting()
        await backup.theirs("old", note="restored")
        setting.wire.inner = backup.far
        assert int(backup.far.resource_version) < int(setting.far.resource_version)
        setting.wire.disconnect(ServerError("reset"))
        await setting.time.advance(1)

        assert await setting.names() == ["old"]
        assert await setting.note("old") == "restored"
        assert setting.wire.watched_from[-1] == backup.far.resource_version

    async def test_our_own_write_detects_a_restored_cluster(self, new_setting: Callable[..., Setting]) -> None:
        """Also without an interruption of the watch."""
        setting = new_setting()
        for number in range(5):
            await setting.theirs(note=str(number))
        await setting.sync()
        backup = new_setting()
        await backup.theirs("older")
        setting.wire.inner = backup.far
        await setting.ours(note="ours")
        assert await setting.note() == "ours"
        await setting.settle()

        assert await setting.names() == ["older", "web"]

    async def test_a_list_that_is_due_stays_due_until_it_succeeds(self, setting: Setting) -> None:
        """The write that detected it happens only once, and the version of the cluster alone would not show it."""
        await setting.theirs()
        await setting.sync()
        setting.wire.drop = 1
        await setting.theirs("missed")
        setting.wire.disconnect(ServerError("reset"))
        await setting.settle()
        _store(setting).relist_reason = "for a reason"
        setting.wire.list_errors = [ServerError("down")]
        await setting.time.advance(0.5)
        assert not setting.wire.list_errors
        await setting.time.advance(2)

        assert await setting.names() == ["missed", "web"]

    async def test_a_list_that_becomes_due_during_a_list_is_done_afterwards(self, setting: Setting) -> None:
        await setting.sync()
        setting.wire.hold_lists = True
        setting.wire.disconnect(ExpiredError("too old", code=410))
        await setting.settle()
        _store(setting).relist_reason = "for a reason"
        setting.far.requests.clear()
        setting.wire.release_lists()
        await setting.time.advance(1)

        assert verbs(setting) == [Verb.LIST, Verb.WATCH]
        assert setting.wire.watched_from[0] == setting.wire.watched_from[1]
        assert len(setting.wire.watched_from) == 2, "nothing was watched in between"

    async def test_progress_resets_the_delay(self, setting: Setting) -> None:
        """Connections that break now and then are not an outage: every delay is the first one."""
        await setting.sync()
        for number in range(5):
            await setting.theirs(note=str(number))
            setting.wire.disconnect(ServerError("reset"))
            await setting.time.advance(0.5)

        assert {slept for slept in setting.time.slept if slept != setting.timing.idle_timeout} == {0.5}
        assert setting.cached.healthy

    async def test_late_events_cause_lists_with_delays(self, setting: Setting, monkeypatch: pytest.MonkeyPatch) -> None:
        """Each watch begins with an event that goes back; the first list follows at once, later ones are delayed."""
        await setting.theirs("gone")
        late = await setting.far.get(setting.key("gone"))
        await setting.sync()
        await setting.far.delete(setting.key("gone"))
        await setting.settle()
        setting.far.requests.clear()
        opened = _watching(setting, monkeypatch, [WatchEvent(EventType.ADDED, late)])
        setting.wire.disconnect()
        await setting.settle()

        assert await setting.names() == []
        assert opened[0] == 2
        assert verbs(setting) == [Verb.LIST, Verb.LIST], "the version was asked for, and then everything"
        assert "went back" in setting.cached.problems[0]
        await setting.time.advance(0.9)
        assert opened[0] == 2

    async def test_if_no_watch_works_lists_keep_the_cache_up_to_date(
        self, setting: Setting, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        await setting.sync()
        _watching(setting, monkeypatch, [], ServerError("no streams here"))
        setting.wire.disconnect()
        await setting.time.advance(5)
        await setting.theirs()
        await setting.time.advance(setting.timing.longest_delay)

        assert await setting.note() == "theirs"
        assert not setting.cached.healthy

    async def test_health_returns_with_the_connection(self, setting: Setting) -> None:
        """As soon as the cluster answers again, without waiting for an event."""
        await setting.sync()
        setting.wire.list_errors = [ServerError("down"), ServerError("down")]
        setting.wire.disconnect(ServerError("reset"))
        await setting.time.advance(1.6)
        assert not setting.cached.healthy
        await setting.time.advance(5)

        assert setting.cached.healthy

    async def test_a_kind_that_cannot_be_watched_is_read_from_the_cluster(self, setting: Setting) -> None:
        await setting.theirs()
        setting.wire.watch_errors = [ServerError("method not allowed", code=405)]
        await setting.cached.cache("apps/v1", "Deployment")
        await setting.settle()
        setting.far.requests.clear()

        assert await setting.note() == "theirs"
        assert await setting.names() == ["web"]
        await setting.ours(note="ours")
        assert verbs(setting) == [Verb.GET, Verb.LIST, Verb.APPLY]
        assert setting.cached.healthy
        assert setting.cached.informers[0].objects == 0


def _store(setting: Setting) -> Store:
    return next(iter(setting.cached._informers.values())).store


def _watching(
    setting: Setting, monkeypatch: pytest.MonkeyPatch, events: list[WatchEvent], error: Exception | None = None
) -> list[int]:
    """Let every later watch report the same events, and then fail or become idle; return the number of watches."""
    opened = [0]

    async def watch(*_: Any, **__: Any) -> AsyncGenerator[WatchEvent, None]:
        opened[0] += 1
        for _tick in range(5):
            await asyncio.sleep(0)
        for event in events:
            yield event
        if error is not None:
            raise error
        await asyncio.Event().wait()

    monkeypatch.setattr(setting.wire, "watch", watch)
    return opened


class TestUnforeseen:
    async def test_after_an_unexpected_error_reads_go_to_the_cluster(
        self, setting: Setting, caplog: pytest.LogCaptureFixture
    ) -> None:
        await setting.theirs()
        await setting.sync()
        with caplog.at_level(logging.ERROR):
            setting.wire.disconnect(RuntimeError("broken"))
            await setting.settle()
        assert setting.cached.problems == ("apps/v1/Deployment: unexpected RuntimeError",)
        assert "unexpected error" in caplog.text
        setting.far.requests.clear()

        assert await setting.note() == "theirs"
        assert await setting.names() == ["web"]
        assert verbs(setting) == [Verb.GET, Verb.LIST]

    async def test_a_list_recovers_from_an_unexpected_error(self, setting: Setting) -> None:
        await setting.sync()
        setting.wire.disconnect(RuntimeError("broken"))
        await setting.settle()
        await setting.theirs()
        await setting.time.advance(0.5)
        setting.far.requests.clear()

        assert await setting.note() == "theirs"
        assert setting.cached.healthy
        assert not setting.far.requests.reads

    async def test_a_malformed_event_does_not_end_the_informer(
        self, setting: Setting, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        await setting.sync()
        watch = setting.wire.watch

        async def misshapen(*_: Any, **__: Any) -> Any:
            monkeypatch.setattr(setting.wire, "watch", watch)
            yield WatchEvent(EventType.ADDED, {"kind": "Nothing"})

        monkeypatch.setattr(setting.wire, "watch", misshapen)
        setting.wire.disconnect()
        await setting.settle()
        assert "KeyError" in setting.cached.problems[0]
        await setting.time.advance(1)

        assert setting.cached.healthy
        assert setting.wire.watches == 1

    async def test_a_cancelled_task_is_replaced_by_the_next_read(self, setting: Setting) -> None:
        await setting.theirs()
        await setting.sync()
        (task,) = [task for task in asyncio.all_tasks() if task.get_name().startswith("cache of")]
        task.cancel()
        await setting.settle()
        assert setting.cached.problems == ("apps/v1/Deployment: the task was cancelled",)
        assert await setting.note() == "theirs"
        await setting.settle()

        assert setting.cached.healthy
        assert setting.cached.informers[0].synced

    async def test_an_error_of_the_sleep_function_is_reported(
        self, new_setting: Callable[..., Setting], caplog: pytest.LogCaptureFixture
    ) -> None:
        """The function that waits between attempts may fail; that error must be reported."""
        setting = new_setting()

        async def broken(_: float) -> None:
            raise RuntimeError("no clock")

        object.__setattr__(setting.timing, "sleep", broken)
        setting.wire.list_errors = [ServerError("down")]
        with caplog.at_level(logging.ERROR):
            await setting.names()
            await setting.settle()

        assert "ended by an unexpected RuntimeError" in setting.cached.problems[0]
        assert "no clock" in caplog.text


class TestBounds:
    async def test_more_objects_than_allowed_are_an_error(self, new_setting: Callable[..., Setting]) -> None:
        setting = new_setting(max_objects=1)
        await setting.theirs("a")
        await setting.theirs("b")
        for _ in range(2):
            with pytest.raises(ConfigError, match=r"apps/v1/Deployment: the cache may hold 1 objects \(max_objects\)"):
                await setting.names()

        assert setting.cached.informers[0].objects == 0
        assert not setting.cached.healthy

    async def test_more_objects_than_allowed_are_an_error_later_too(self, new_setting: Callable[..., Setting]) -> None:
        setting = new_setting(max_objects=1)
        await setting.theirs("a")
        await setting.sync()
        await setting.theirs("b")

        with pytest.raises(ConfigError, match="max_objects"):
            await setting.names()
        assert setting.wire.watches == 0

    async def test_deleted_objects_release_their_memory(self, setting: Setting) -> None:
        await setting.sync()
        for number in range(20):
            await setting.ours(f"web-{number}")
            await setting.cached.delete(setting.key(f"web-{number}"))
            with pytest.raises(NotFoundError):
                await setting.note(f"web-{number}")
            await setting.settle()
        store = _store(setting)

        assert [store._entries, store._absent, store._stale_marks, store._in_flight] == [{}] * 4


class TestClosing:
    async def test_closing_ends_all_tasks(self, setting: Setting) -> None:
        before = asyncio.all_tasks()
        await setting.sync()
        await setting.cached.cache("v1", "ConfigMap")
        await setting.cached.close()
        gc.collect()

        assert asyncio.all_tasks() == before
        assert setting.wire.watches == 0
        assert setting.cached.informers == ()

    async def test_closing_during_a_delay(self, setting: Setting) -> None:
        setting.wire.list_errors = [ServerError("down")]
        await setting.names()
        await setting.cached.close()

        assert setting.wire.watches == 0

    async def test_a_waiting_read_goes_to_the_cluster(self, setting: Setting) -> None:
        await setting.theirs()
        setting.wire.hold_lists = True
        reader = asyncio.create_task(setting.note())
        await setting.settle()
        await setting.cached.close()

        assert await reader == "theirs"

    async def test_after_closing_reads_go_to_the_cluster(self, setting: Setting) -> None:
        await setting.sync()
        await setting.cached.close()
        await setting.ours()

        assert await setting.note() == "ours"
        assert await setting.names() == ["web"]
        assert verbs(setting) == [Verb.APPLY, Verb.GET, Verb.LIST]

    async def test_the_context_manager_closes(self, setting: Setting) -> None:
        async with setting.cached as cached:
            assert isinstance(cached, CachedCluster)
            await setting.sync()

        assert setting.wire.watches == 0
