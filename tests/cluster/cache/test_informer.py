"""The informer: lists, watches, and the recovery from their errors."""

from __future__ import annotations

import asyncio
import gc
import logging
from typing import TYPE_CHECKING, Any

import pytest

from ocf.cluster import PatchOptions, PatchType, Subresource, Verb, WatchEvent
from ocf.cluster.cache import CachedCluster
from ocf.cluster.cache.informer import Informer
from ocf.cluster.cache.store import Store
from ocf.cluster.protocol import EventType
from ocf.errors import ConfigError, ExpiredError, ForbiddenError, NotFoundError, ServerError, TooManyRequestsError
from ocf.objects import ObjectKey
from ocf_server import EmbeddedCluster

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable

    from tests.cluster.cache.conftest import Env


def verbs(env: Env) -> list[Verb]:
    return [request.verb for request in env.server.requests]


class TestFirstList:
    async def test_a_read_starts_the_informer_and_waits_for_it(self, env: Env) -> None:
        await env.theirs()
        assert not env.cached.informers

        assert await env.note() == "theirs"
        (state,) = env.cached.informers
        assert (state.kind, state.namespace, state.synced, state.objects) == ("Deployment", "", True, 1)

    async def test_many_readers_wait_for_one_list(self, env: Env) -> None:
        await env.theirs()
        env.server.requests.clear()
        env.connection.hold_lists = True
        readers = [asyncio.create_task(env.note()) for _ in range(5)]
        await env.settle()
        assert not any(reader.done() for reader in readers)
        env.connection.release_lists()

        assert await asyncio.gather(*readers) == ["theirs"] * 5
        await env.settle()
        assert verbs(env) == [Verb.LIST, Verb.WATCH]

    async def test_lists_are_paged(self, new_env: Callable[..., Env]) -> None:
        env = new_env()
        for number in range(1_001):
            name = f"m{number:04}"
            manifest = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "shop"}}
            await env.server.create(manifest, field_manager="them")
        env.server.requests.clear()
        await env.cached.cache("v1", "ConfigMap")

        assert verbs(env).count(Verb.LIST) == 3
        assert env.cached.informers[0].objects == 1_001

    async def test_after_a_failed_list_reads_go_to_the_cluster(self, env: Env) -> None:
        """Each read gets the answer of the cluster to its own request."""
        await env.theirs()
        env.connection.list_errors = [ForbiddenError("no list for you", code=403)]

        assert await env.note() == "theirs"
        assert Verb.GET in verbs(env)
        assert not env.cached.healthy
        assert env.cached.problems == ("apps/v1/Deployment: no list for you",)
        assert env.cached.failing == env.cached.informers

    async def test_a_failed_list_is_retried(self, env: Env) -> None:
        env.connection.list_errors = [ServerError("starting")]
        await env.names()
        await env.time.advance(0.5)
        env.server.requests.clear()
        await env.names()

        assert env.cached.healthy
        assert not env.server.requests.reads

    async def test_an_explicit_start_raises_the_error_of_the_list(self, env: Env) -> None:
        env.connection.list_errors = [ForbiddenError("no list for you", code=403)]
        with pytest.raises(ForbiddenError, match="no list for you"):
            await env.cached.cache("apps/v1", "Deployment")

        await env.time.advance(0.5)
        await env.cached.cache("apps/v1", "Deployment")

    async def test_a_kind_that_is_created_later_is_found(self, env: Env) -> None:
        """Fault: a CRD is missing, and is created later. Until the next look, no request is sent for the kind."""
        gadget = {"apiVersion": "example.com/v1", "kind": "Gadget", "metadata": {"name": "a", "namespace": "shop"}}
        key = ObjectKey.of(gadget)
        options = PatchOptions(patch_type=PatchType.MERGE, field_manager="us")
        attempts: list[Callable[[], Awaitable[object]]] = [
            lambda: env.cached.list(key.api_version, key.kind),
            lambda: env.cached.get(key),
            lambda: env.cached.get(key, subresource=Subresource.SCALE),
            lambda: env.cached.list_packed(key.api_version, key.kind),
            lambda: env.cached.apply(gadget, field_manager="us"),
            lambda: env.cached.create(gadget, field_manager="us"),
            lambda: env.cached.update(gadget, field_manager="us"),
            lambda: env.cached.patch(key, {"spec": {}}, options),
            lambda: env.cached.delete(key),
        ]
        with pytest.raises(NotFoundError):
            await attempts[0]()
        env.server.requests.clear()
        for attempt in attempts:
            with pytest.raises(NotFoundError, match="could not find the requested resource") as caught:
                await attempt()
            assert caught.value.code == 404
        assert not env.server.requests.reads
        assert not env.server.requests.writes
        env.connection.inner = EmbeddedCluster(kinds=[_gadget()], namespaces=["shop"])
        await env.time.advance(0.5)

        assert env.cached.informers[0].synced
        await env.cached.create(gadget, field_manager="us")
        assert len((await env.cached.list("example.com/v1", "Gadget")).items) == 1

    async def test_a_look_is_for_all_missing_kinds_and_the_delay_grows_to_a_limit(self, env: Env) -> None:
        """A kind that is named later is looked for soon, and the others with it."""
        for number in range(20):
            with pytest.raises(NotFoundError):
                await env.cached.list(f"g{number}.example.com/v1", "Gadget")
        await env.time.advance(10_000)
        env.connection.looks.clear()
        env.time.slept.clear()
        await env.time.advance(450)
        assert len(env.connection.looks) == 200
        assert env.time.slept == [45.0] * 10
        assert all(env.connection.looks.count((f"g{number}.example.com/v1", "Gadget")) == 10 for number in range(20))
        with pytest.raises(NotFoundError):
            await env.cached.list("last.example.com/v1", "Gadget")
        await env.time.advance(31)

        assert env.time.slept[10:] == [0.5, 1.0, 2.0, 4.0, 8.0, 16.0]
        assert len(env.connection.looks) == 200 + 5 * 21

    async def test_a_kind_that_is_served_and_cannot_be_listed_is_asked_for_less_and_less_often(self, env: Env) -> None:
        """As while the server of an aggregated API answers 404 to everything but discovery."""
        env.connection.list_errors = [NotFoundError("page not found", code=404) for _ in range(100)]
        with pytest.raises(NotFoundError):
            await env.names()
        await env.time.advance(3600)

        assert 80 <= 100 - len(env.connection.list_errors) <= 90


class TestRelease:
    async def test_an_informer_that_all_have_released_ends(self, env: Env) -> None:
        await env.theirs()
        for _ in range(2):
            env.cached.retain(env.api_version, env.kind)
        await env.sync()
        env.cached.release(env.api_version, env.kind)
        await env.settle()
        assert (len(env.cached.informers), env.connection.watches) == (1, 1)
        env.cached.release(env.api_version, env.kind)
        await env.settle()

        assert (len(env.cached.informers), env.connection.watches) == (0, 0)
        assert await env.note() == "theirs"
        await env.settle()
        assert (len(env.cached.informers), env.connection.watches) == (1, 1)

    async def test_a_read_that_waits_for_it_is_answered_by_the_cluster(self, env: Env) -> None:
        await env.theirs()
        env.connection.hold_lists = True
        env.cached.retain(env.api_version, env.kind)
        reader = asyncio.create_task(env.note())
        await env.settle()
        env.cached.release(env.api_version, env.kind)

        assert await reader == "theirs"

    async def test_one_that_waits_for_its_kind_ends(self, env: Env) -> None:
        """And does not end the waiting of the next one."""
        env.cached.retain("example.com/v1", "Gadget")
        with pytest.raises(NotFoundError):
            await env.cached.list("example.com/v1", "Gadget")
        env.cached.release("example.com/v1", "Gadget")
        with pytest.raises(NotFoundError):
            await env.cached.list("example.com/v1", "Gadget")
        env.connection.inner = EmbeddedCluster(kinds=[_gadget()])
        await env.time.advance(1)

        assert env.cached.informers[0].synced


def _gadget() -> Any:
    from ocf_server import CustomKind

    return CustomKind("example.com", "v1", "Gadget")


class TestWatch:
    async def test_changes_by_other_clients_are_seen(self, env: Env) -> None:
        await env.sync()
        await env.theirs(note="one")
        assert await env.note() == "one"
        await env.theirs(note="two")
        assert await env.note() == "two"
        await env.server.delete(env.key())
        await env.settle()

        with pytest.raises(NotFoundError) as caught:
            await env.note()
        assert (caught.value.code, caught.value.reason) == (404, "NotFound")

    async def test_a_clean_end_is_followed_by_a_watch_from_the_last_version(self, env: Env) -> None:
        await env.sync()
        await env.theirs()
        version = env.server.resource_version
        env.connection.disconnect()
        await env.theirs(note="unseen")
        await env.settle()

        assert env.connection.watched_from[1] == version
        assert env.connection.watches == 1
        assert env.time.slept.count(env.timing.idle_timeout) == len(env.time.slept), "nothing was waited for"
        assert await env.note() == "unseen"

    async def test_bookmarks_advance_the_version(self, env: Env) -> None:
        await env.sync()
        other = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x", "namespace": "shop"}}
        await env.server.create(other, field_manager="them")
        await env.settle()
        env.connection.disconnect()
        await env.settle()

        assert env.connection.watched_from[1] == env.server.resource_version

    @pytest.mark.promise("cache-lost-events")
    async def test_an_expired_watch_is_followed_by_a_list(self, env: Env) -> None:
        await env.theirs("gone")
        await env.sync()
        env.connection.held = True
        await env.server.delete(env.key("gone"))
        await env.theirs("new")
        env.server.compact()
        env.connection.deliver_all()
        env.connection.disconnect()
        await env.settle()

        assert await env.names() == ["new"], "a deletion without an event is detected"
        assert env.cached.healthy

    async def test_repeated_compactions_are_followed_by_delays(self, env: Env) -> None:
        await env.sync()
        env.connection.watch_errors = [ExpiredError("too old", code=410) for _ in range(10)]
        env.connection.disconnect()
        await env.settle()
        delays = [slept for slept in env.time.slept if slept != env.timing.idle_timeout]

        assert len(env.connection.watched_from) == 2, "the second attempt waits"
        assert delays == [1.0]
        assert not env.cached.healthy

    async def test_errors_are_followed_by_growing_delays(self, env: Env) -> None:
        await env.sync()
        env.connection.watch_errors = [ServerError("down")] * 20
        env.connection.disconnect(ServerError("reset"))
        await env.time.advance(600)
        delays = [slept for slept in env.time.slept if slept != env.timing.idle_timeout]

        assert delays[:9] == [0.5, 1, 2, 4, 8, 16, 32, 45, 45]
        assert max(delays) == 45

    async def test_an_outage_of_half_an_hour(self, env: Env) -> None:
        """At most 60 requests; `healthy` is False, the cache answers, and it recovers within the longest delay."""
        await env.theirs()
        await env.sync()
        errors: list[Exception] = [ServerError("down") for _ in range(500)]
        env.connection.list_errors = errors
        env.connection.disconnect(ServerError("reset"))
        await env.time.advance(1_800)

        assert 500 - len(errors) <= 60
        assert "down" in env.cached.problems[0]
        assert await env.note() == "theirs"

        errors.clear()
        await env.theirs(note="after")
        await env.time.advance(45)
        assert await env.note() == "after"
        assert env.cached.healthy

    async def test_one_broken_connection_is_not_a_problem(self, env: Env) -> None:
        await env.sync()
        await env.theirs()
        env.connection.disconnect(ServerError("reset"))
        await env.settle()

        assert env.cached.healthy
        assert env.cached.informers[0].failures == 1

    async def test_retry_after_of_the_server_is_honored(self, env: Env) -> None:
        await env.sync()
        env.connection.disconnect(TooManyRequestsError("slow down", code=429, retry_after=120))
        await env.settle()

        assert env.time.slept[-1] == 120

    async def test_watches_that_end_at_once_are_followed_by_delays(self, env: Env) -> None:
        await env.sync()
        for _ in range(4):
            env.connection.disconnect()
            await env.settle()

        assert len(env.connection.watched_from) == 2
        await env.time.advance(1)
        assert len(env.connection.watched_from) == 3

    @pytest.mark.parametrize("lost", [False, True])
    @pytest.mark.promise("cache-lost-events")
    async def test_an_idle_watch_is_replaced(self, env: Env, *, lost: bool) -> None:
        """Fault: the connection is lost without an error; 20 times."""
        await env.sync()
        for number in range(20):
            env.connection.held = lost
            await env.theirs(note=str(number))
            await env.time.advance(env.timing.idle_timeout)
            env.connection.deliver_all()
            await env.time.advance(env.timing.idle_timeout)
            assert await env.note() == str(number)

        assert len(env.connection.watched_from) >= 21
        assert env.connection.watches == 1

    @pytest.mark.promise("cache-lost-events")
    async def test_all_objects_are_listed_again_periodically(self, env: Env) -> None:
        """Fault: the watch missed a change, and nothing else happens."""
        await env.theirs()
        await env.sync()
        env.connection.drop = 1
        await env.theirs(note="missed")
        assert await env.note() == "theirs"
        await env.time.advance(env.timing.relist_every)

        assert await env.note() == "missed"

    async def test_a_busy_watch_does_not_prevent_the_periodic_list(self, env: Env) -> None:
        await env.theirs()
        await env.sync()
        env.connection.drop = 1
        await env.theirs(note="missed")
        for number in range(72):
            await env.theirs("other", note=str(number))
            await env.time.advance(50)

        assert await env.note() == "missed"

    async def test_a_repeated_event_changes_nothing(self, env: Env) -> None:
        await env.sync()
        env.connection.repeat = 1
        await env.theirs()

        assert await env.note() == "theirs"
        assert env.cached.informers[0].failures == 0

    async def test_a_restored_cluster_is_detected(self, new_env: Callable[..., Env]) -> None:
        """Fault: etcd is restored, versions go back, and the server restarts."""
        env = new_env()
        for number in range(5):
            await env.theirs("old", note=str(number))
        await env.sync()
        await env.ours("ours")
        backup = new_env()
        await backup.theirs("old", note="restored")
        env.connection.inner = backup.server
        assert int(backup.server.resource_version) < int(env.server.resource_version)
        env.connection.disconnect(ServerError("reset"))
        await env.time.advance(1)

        assert await env.names() == ["old"]
        assert await env.note("old") == "restored"
        assert env.connection.watched_from[-1] == backup.server.resource_version

    async def test_our_own_write_detects_a_restored_cluster(self, new_env: Callable[..., Env]) -> None:
        """Also without an interruption of the watch."""
        env = new_env()
        for number in range(5):
            await env.theirs(note=str(number))
        await env.sync()
        backup = new_env()
        await backup.theirs("older")
        env.connection.inner = backup.server
        await env.ours(note="ours")
        assert await env.note() == "ours"
        await env.settle()

        assert await env.names() == ["older", "web"]

    async def test_a_list_that_is_due_stays_due_until_it_succeeds(self, env: Env) -> None:
        """The write that detected it happens only once, and the version of the cluster alone would not show it."""
        await env.theirs()
        await env.sync()
        env.connection.drop = 1
        await env.theirs("missed")
        env.connection.disconnect(ServerError("reset"))
        await env.settle()
        _store(env).relist_reason = "for a reason"
        env.connection.list_errors = [ServerError("down")]
        await env.time.advance(0.5)
        assert not env.connection.list_errors
        await env.time.advance(2)

        assert await env.names() == ["missed", "web"]

    async def test_a_list_that_becomes_due_during_a_list_is_done_afterwards(self, env: Env) -> None:
        await env.sync()
        env.connection.hold_lists = True
        env.connection.disconnect(ExpiredError("too old", code=410))
        await env.settle()
        _store(env).relist_reason = "for a reason"
        env.server.requests.clear()
        env.connection.release_lists()
        await env.time.advance(1)

        assert verbs(env) == [Verb.LIST, Verb.WATCH]
        assert env.connection.watched_from[0] == env.connection.watched_from[1]
        assert len(env.connection.watched_from) == 2, "nothing was watched in between"

    async def test_progress_resets_the_delay(self, env: Env) -> None:
        """Connections that break now and then are not an outage: every delay is the first one."""
        await env.sync()
        for number in range(5):
            await env.theirs(note=str(number))
            env.connection.disconnect(ServerError("reset"))
            await env.time.advance(0.5)

        assert {slept for slept in env.time.slept if slept != env.timing.idle_timeout} == {0.5}
        assert env.cached.healthy

    async def test_late_events_cause_lists_with_delays(self, env: Env, monkeypatch: pytest.MonkeyPatch) -> None:
        """Each watch begins with an event that goes back; the first list follows at once, later ones are delayed."""
        await env.theirs("gone")
        late = await env.server.get(env.key("gone"))
        await env.sync()
        await env.server.delete(env.key("gone"))
        await env.settle()
        env.server.requests.clear()
        opened = _watching(env, monkeypatch, [WatchEvent(EventType.ADDED, late)])
        env.connection.disconnect()
        await env.settle()

        assert await env.names() == []
        assert opened[0] == 2
        assert verbs(env) == [Verb.LIST, Verb.LIST], "the version was asked for, and then everything"
        assert "went back" in env.cached.problems[0]
        await env.time.advance(0.9)
        assert opened[0] == 2

    async def test_if_no_watch_works_lists_keep_the_cache_up_to_date(
        self, env: Env, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        await env.sync()
        _watching(env, monkeypatch, [], ServerError("no streams here"))
        env.connection.disconnect()
        await env.time.advance(5)
        await env.theirs()
        await env.time.advance(env.timing.longest_delay)

        assert await env.note() == "theirs"
        assert not env.cached.healthy

    async def test_health_returns_with_the_connection(self, env: Env) -> None:
        """As soon as the cluster answers again, without waiting for an event."""
        await env.sync()
        env.connection.list_errors = [ServerError("down"), ServerError("down")]
        env.connection.disconnect(ServerError("reset"))
        await env.time.advance(1.6)
        assert not env.cached.healthy
        await env.time.advance(5)

        assert env.cached.healthy

    async def test_a_kind_that_cannot_be_watched_is_read_from_the_cluster(self, env: Env) -> None:
        await env.theirs()
        env.connection.watch_errors = [ServerError("method not allowed", code=405)]
        await env.cached.cache("apps/v1", "Deployment")
        await env.settle()
        env.server.requests.clear()

        assert await env.note() == "theirs"
        assert await env.names() == ["web"]
        await env.ours(note="ours")
        assert verbs(env) == [Verb.GET, Verb.LIST, Verb.APPLY]
        assert env.cached.healthy
        assert env.cached.informers[0].objects == 0


def _store(env: Env) -> Store:
    informer = next(iter(env.cached._informers))
    assert isinstance(informer, Informer)
    return informer.store


def _watching(
    env: Env, monkeypatch: pytest.MonkeyPatch, events: list[WatchEvent], error: Exception | None = None
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

    monkeypatch.setattr(env.connection, "watch", watch)
    return opened


class TestUnforeseen:
    async def test_after_an_unexpected_error_reads_go_to_the_cluster(
        self, env: Env, caplog: pytest.LogCaptureFixture
    ) -> None:
        await env.theirs()
        await env.sync()
        with caplog.at_level(logging.ERROR):
            env.connection.disconnect(RuntimeError("broken"))
            await env.settle()
        assert env.cached.problems == ("apps/v1/Deployment: unexpected RuntimeError",)
        assert "unexpected error" in caplog.text
        env.server.requests.clear()

        assert await env.note() == "theirs"
        assert await env.names() == ["web"]
        assert verbs(env) == [Verb.GET, Verb.LIST]

    async def test_a_list_recovers_from_an_unexpected_error(self, env: Env) -> None:
        await env.sync()
        env.connection.disconnect(RuntimeError("broken"))
        await env.settle()
        await env.theirs()
        await env.time.advance(0.5)
        env.server.requests.clear()

        assert await env.note() == "theirs"
        assert env.cached.healthy
        assert not env.server.requests.reads

    async def test_a_malformed_event_does_not_end_the_informer(self, env: Env, monkeypatch: pytest.MonkeyPatch) -> None:
        await env.sync()
        watch = env.connection.watch

        async def misshapen(*_: Any, **__: Any) -> Any:
            monkeypatch.setattr(env.connection, "watch", watch)
            yield WatchEvent(EventType.ADDED, {"kind": "Nothing"})

        monkeypatch.setattr(env.connection, "watch", misshapen)
        env.connection.disconnect()
        await env.settle()
        assert "KeyError" in env.cached.problems[0]
        await env.time.advance(1)

        assert env.cached.healthy
        assert env.connection.watches == 1

    async def test_a_cancelled_task_is_replaced_by_the_next_read(self, env: Env) -> None:
        await env.theirs()
        await env.sync()
        (task,) = [task for task in asyncio.all_tasks() if task.get_name().startswith("cache of")]
        task.cancel()
        await env.settle()
        assert env.cached.problems == ("apps/v1/Deployment: the task was cancelled",)
        assert await env.note() == "theirs"
        await env.settle()

        assert env.cached.healthy
        assert env.cached.informers[0].synced

    async def test_an_error_of_the_sleep_function_is_reported(
        self, new_env: Callable[..., Env], caplog: pytest.LogCaptureFixture
    ) -> None:
        """The function that waits between attempts may fail; that error must be reported."""
        env = new_env()

        async def broken(_: float) -> None:
            raise RuntimeError("no clock")

        object.__setattr__(env.timing, "sleep", broken)
        env.connection.list_errors = [ServerError("down")]
        with caplog.at_level(logging.ERROR):
            await env.names()
            await env.settle()

        assert "ended by an unexpected RuntimeError" in env.cached.problems[0]
        assert "no clock" in caplog.text


class TestBounds:
    async def test_more_objects_than_allowed_are_an_error(self, new_env: Callable[..., Env]) -> None:
        env = new_env(max_objects=1)
        await env.theirs("a")
        await env.theirs("b")
        for _ in range(2):
            with pytest.raises(ConfigError, match=r"apps/v1/Deployment: the cache may hold 1 objects \(max_objects\)"):
                await env.names()

        assert env.cached.informers[0].objects == 0
        assert not env.cached.healthy

    async def test_more_objects_than_allowed_are_an_error_later_too(self, new_env: Callable[..., Env]) -> None:
        env = new_env(max_objects=1)
        await env.theirs("a")
        await env.sync()
        await env.theirs("b")

        with pytest.raises(ConfigError, match="max_objects"):
            await env.names()
        assert env.connection.watches == 0

    async def test_deleted_objects_release_their_memory(self, env: Env) -> None:
        await env.sync()
        for number in range(20):
            await env.ours(f"web-{number}")
            await env.cached.delete(env.key(f"web-{number}"))
            with pytest.raises(NotFoundError):
                await env.note(f"web-{number}")
            await env.settle()
        store = _store(env)

        assert [store._entries, store._absent, store._stale_marks, store._in_flight] == [{}] * 4


class TestClosing:
    async def test_closing_ends_all_tasks(self, env: Env) -> None:
        before = asyncio.all_tasks()
        await env.sync()
        await env.cached.cache("v1", "ConfigMap")
        await env.cached.close()
        gc.collect()

        assert asyncio.all_tasks() == before
        assert env.connection.watches == 0
        assert env.cached.informers == ()

    async def test_closing_during_a_delay(self, env: Env) -> None:
        env.connection.list_errors = [ServerError("down")]
        await env.names()
        await env.cached.close()

        assert env.connection.watches == 0

    async def test_a_waiting_read_goes_to_the_cluster(self, env: Env) -> None:
        await env.theirs()
        env.connection.hold_lists = True
        reader = asyncio.create_task(env.note())
        await env.settle()
        await env.cached.close()

        assert await reader == "theirs"

    async def test_after_closing_reads_go_to_the_cluster(self, env: Env) -> None:
        await env.sync()
        await env.cached.close()
        await env.ours()

        assert await env.note() == "ours"
        assert await env.names() == ["web"]
        assert verbs(env) == [Verb.APPLY, Verb.GET, Verb.LIST]

    async def test_the_context_manager_closes(self, env: Env) -> None:
        async with env.cached as cached:
            assert isinstance(cached, CachedCluster)
            await env.sync()

        assert env.connection.watches == 0
