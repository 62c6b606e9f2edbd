"""Kinds of which not all objects are listed: nothing that exists looks as if it did not.

Publicly reported of operators whose cache has a selector: an object without the label looks absent, and to create it
fails, https://github.com/FoundationDB/fdb-kubernetes-operator/issues/1953, also once the label was removed by a user,
https://github.com/kubevirt/hyperconverged-cluster-operator/pull/1801,
https://github.com/openshift/external-secrets-operator/pull/153. And of caches that list all objects of a kind for one
read by name, https://github.com/fluxcd/flux2/issues/3426.
"""

from __future__ import annotations

import asyncio
import gc
import tracemalloc
from contextlib import aclosing, suppress
from typing import TYPE_CHECKING, Any

import pytest

from ocf.cluster import DeleteOptions, ListOptions, Verb
from ocf.cluster.cache import Selection, selective
from ocf.cluster.cache.selective import MOST_SINGLE
from ocf.cluster.protocol import EventType
from ocf.errors import ConfigError, ForbiddenError, NotFoundError, ServerError
from ocf.objects.resource_versions import is_older

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from ocf.objects import Manifest, ObjectKey
    from tests.cluster.cache.conftest import Env

LABELLED = Selection(label_selector="ours=yes")
NAMED = Selection(field_selector="metadata.name=chosen")
ELSEWHERE = Selection(namespaces=["other"])
BY_NAME = Selection(by_name=True)
ALL = [
    pytest.param(LABELLED, id="by a label that it does not have"),
    pytest.param(NAMED, id="by another name"),
    pytest.param(ELSEWHERE, id="by another namespace"),
    pytest.param(BY_NAME, id="by name"),
]


def selecting(new_env: Callable[..., Env], selection: Selection) -> Env:
    kind = new_env()
    return new_env(selections={(kind.api_version, kind.kind): selection})


def sent(env: Env) -> list[Verb]:
    """Return the requests since the last call, without the watches."""
    verbs: list[Verb] = [one.verb for one in env.server.requests if one.verb is not Verb.WATCH]
    env.server.requests.clear()
    return verbs


async def delete_many(env: Env, count: int, namespace: str = "shop") -> None:
    """Create and delete selected objects, and wait until the cache has seen it."""
    for number in range(count):
        key = env.key(f"gone-{number}", namespace)
        await env.server.apply(env.web(key.name, namespace, ours="yes"), field_manager="them")
        await env.server.delete(key, DeleteOptions())
        # Each event takes some steps of the loop.
        if number % 5 == 0:
            await env.settle()
    await env.settle()


def held(env: Env) -> int:
    return sum(state.objects for state in env.cached.informers)


@pytest.mark.parametrize("selection", ALL)
async def test_an_object_that_is_not_selected_is_found_and_its_changes_are_seen(
    new_env: Callable[..., Env], selection: Selection
) -> None:
    env = selecting(new_env, selection)
    await env.theirs("others")
    await env.theirs()
    await env.sync()
    assert await env.note() == "theirs"
    await env.settle()
    sent(env)
    for note in ("a", "b"):
        await env.theirs(note=note)
        sent(env)
        assert await env.note() == note
        assert sent(env) == []
    assert held(env) == 1
    await env.server.delete(env.key(), DeleteOptions())
    await env.settle()
    with pytest.raises(NotFoundError):
        await env.cached.get(env.key())


@pytest.mark.parametrize("selection", ALL)
async def test_an_object_that_is_applied_is_not_hidden_by_the_selection(
    new_env: Callable[..., Env], selection: Selection
) -> None:
    """With its label, without it, and after the operator or another client has removed it."""
    env = selecting(new_env, selection)
    await env.sync()
    with pytest.raises(NotFoundError):
        await env.cached.get(env.key())
    for labels, write in (({}, env.ours), ({"ours": "yes"}, env.ours), ({}, env.ours), ({"ours": "yes"}, env.theirs)):
        await write(note=str(labels), **labels)
        assert await env.note() == str(labels)
        await env.settle()
        assert await env.note() == str(labels)
    await env.server.delete(env.key(), DeleteOptions())
    await env.settle()
    with pytest.raises(NotFoundError):
        await env.cached.get(env.key())
    await env.cached.create(env.web(note="again"), field_manager="us")
    assert await env.note() == "again"


async def test_an_object_that_looks_absent_in_the_watch_is_created_only_if_it_is(new_env: Callable[..., Env]) -> None:
    env = selecting(new_env, LABELLED)
    await env.theirs(ours="yes")
    await env.sync()
    assert await env.note() == "theirs"
    unlabelled = env.web(note="unlabelled")
    await env.server.update(unlabelled, field_manager="them")
    await env.settle()
    assert await env.note() == "unlabelled"
    assert await env.names() == ["web"]


async def test_a_list_shows_what_has_left_the_selection_until_it_is_gone(new_env: Callable[..., Env]) -> None:
    """Pruning lists by owner: what lost its label is not forgotten."""
    env = selecting(new_env, LABELLED)
    for name in ("a", "b", "c"):
        await env.theirs(name, ours="yes")
    await env.theirs("foreign")
    await env.sync()
    assert await env.names() == ["a", "b", "c"]
    for name in ("a", "b"):
        await env.server.update(env.web(name), field_manager="them")
    await env.server.delete(env.key("c"), DeleteOptions())
    await env.settle()
    assert await env.names() == ["a", "b"]
    await env.server.delete(env.key("a"), DeleteOptions())
    await env.settle()
    sent(env)
    assert await env.names() == ["b"]
    assert sent(env) == []


@pytest.mark.parametrize("selection", [LABELLED, ELSEWHERE], ids=["label", "namespace"])
async def test_after_many_deletions_a_list_sends_few_requests_and_hides_nothing(
    new_env: Callable[..., Env], selection: Selection
) -> None:
    """One read of each name that the watch showed as deleted took seconds after the end of many Jobs."""
    env = selecting(new_env, selection)
    home = "other" if selection is ELSEWHERE else "shop"
    await env.server.apply(env.web("unlabelled", home, ours="yes"), field_manager="them")
    await env.sync()
    await env.server.update(env.web("unlabelled", home), field_manager="them")
    await delete_many(env, 120, home)
    sent(env)
    assert await env.names(namespace=home) == ["unlabelled"]
    assert len(sent(env)) <= 2
    assert await env.names() == ["unlabelled"]
    assert sent(env) == []


async def test_few_deletions_are_looked_up_at_the_same_time(
    new_env: Callable[..., Env], monkeypatch: pytest.MonkeyPatch
) -> None:
    env = selecting(new_env, LABELLED)
    await env.sync()
    await delete_many(env, 30)
    running, most = 0, 0
    get = env.connection.get

    async def slow(key: ObjectKey, **options: Any) -> Manifest:
        nonlocal running, most
        running += 1
        most = max(most, running)
        try:
            await asyncio.sleep(0)
            return await get(key, **options)
        finally:
            running -= 1

    monkeypatch.setattr(env.connection, "get", slow)
    assert await env.names() == []
    assert 1 < most <= 10


async def test_what_has_left_the_selection_is_not_forgotten_after_more_deletions_than_are_kept(
    new_env: Callable[..., Env], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a list in between; the names of what was deleted do not pile up either."""
    monkeypatch.setattr(selective, "_MOST_NAMES", 60)
    env = selecting(new_env, LABELLED)
    await env.theirs("unlabelled", ours="yes")
    await env.sync()
    await env.server.update(env.web("unlabelled"), field_manager="them")
    await delete_many(env, 200)
    sent(env)
    assert await env.names() == ["unlabelled"]
    # One for each name since the last look.
    assert len(sent(env)) <= 60


async def test_a_list_whose_look_for_deleted_objects_fails_repeats_it(
    new_env: Callable[..., Env], monkeypatch: pytest.MonkeyPatch
) -> None:
    env = selecting(new_env, LABELLED)
    await env.theirs("unlabelled", ours="yes")
    await env.sync()
    await env.server.update(env.web("unlabelled"), field_manager="them")
    await env.settle()

    async def fail(*_: object, **__: object) -> Manifest:
        raise ServerError("unreachable", code=503)

    with monkeypatch.context() as patched:
        patched.setattr(env.connection, "get", fail)
        with pytest.raises(ServerError):
            await env.names()
    assert await env.names() == ["unlabelled"]


async def test_a_watch_from_the_version_of_a_list_misses_nothing(new_env: Callable[..., Env]) -> None:
    """Also of an object that is watched alone, whose watch is behind that of the selection."""
    env = selecting(new_env, LABELLED)
    await env.theirs()
    await env.sync()
    assert await env.note() == "theirs"
    await env.settle()
    env.connection.held = True
    # Each watch waits for its next event already.
    await env.theirs(note="reported")
    later = (await env.theirs(note="later"))["metadata"]["resourceVersion"]
    await env.ours("chosen", ours="yes")
    env.connection.deliver()
    await env.settle()
    page = await env.cached.list(env.api_version, env.kind)
    notes = {one["metadata"]["name"]: one["metadata"]["annotations"]["note"] for one in page.items}
    assert notes == {"chosen": "ours", "web": "reported"}
    assert is_older(page.resource_version, later)


async def test_one_read_by_name_lists_and_holds_one_object(new_env: Callable[..., Env]) -> None:
    env = selecting(new_env, BY_NAME)
    for number in range(20):
        await env.theirs(f"foreign-{number}")
    await env.theirs()
    env.server.requests.clear()
    for _ in range(3):
        await env.cached.get(env.key())
        await env.settle()
    assert (sent(env), held(env), env.connection.watches) == ([Verb.LIST], 1, 1)
    for _ in range(3):
        with pytest.raises(NotFoundError):
            await env.cached.get(env.key("absent"))
        await env.settle()
    assert (sent(env), held(env), env.connection.watches) == ([Verb.LIST], 1, 2)


async def test_a_read_needs_only_the_right_to_the_object(
    new_env: Callable[..., Env], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A role with `resourceNames` allows lists and watches that select one of these names."""
    env = selecting(new_env, BY_NAME)
    await env.theirs()
    asked: list[str] = []
    list_them = env.connection.list

    async def list_one(api_version: str, kind: str, options: ListOptions) -> Any:
        asked.append(options.field_selector)
        if options.field_selector != "metadata.name=web":
            raise ForbiddenError("forbidden", code=403)
        return await list_them(api_version, kind, options)

    monkeypatch.setattr(env.connection, "list", list_one)
    assert await env.note() == "theirs"
    await env.time.advance(200)
    await env.theirs(note="later")
    assert await env.note() == "later"
    assert {*asked} == {"metadata.name=web"}
    assert env.cached.healthy


async def test_beyond_the_limit_one_list_takes_the_place_of_single_watches(new_env: Callable[..., Env]) -> None:
    env = selecting(new_env, BY_NAME)
    names = [f"web-{number:03}" for number in range(MOST_SINGLE + 1)]
    for name in names:
        await env.theirs(name)
    await env.theirs("foreign")
    for name in names[:-1]:
        await env.note(name)
    await env.settle()
    assert (held(env), env.connection.watches) == (MOST_SINGLE, MOST_SINGLE)
    await env.note(names[-1])
    await env.settle()
    assert (held(env), env.connection.watches) == (MOST_SINGLE + 2, 1)
    sent(env)
    for name in names:
        assert await env.note(name) == "theirs"
    assert sent(env) == []


@pytest.mark.parametrize(
    ("use", "watches"),
    [
        pytest.param("read", 4, id="few are read by name, and another one is needed"),
        pytest.param("read many", 1, id="many are read by name"),
        pytest.param("need many", 1, id="many are needed"),
        pytest.param("list", 1, id="all are listed"),
        pytest.param("own", 1, id="the operator makes such objects"),
    ],
)
async def test_the_list_of_all_ends_when_few_objects_are_read_by_name_again(
    new_env: Callable[..., Env], use: str, watches: int
) -> None:
    """It was needed for a moment, such as the start of many owners; from then on all of the kind stayed in memory."""
    made = new_env()
    env = new_env(read_by_name={(made.api_version, made.kind): lambda _: use == "own"})
    names = [f"web-{number:03}" for number in range(MOST_SINGLE + 10)]
    for name in names:
        await env.theirs(name)
    for name in names:
        await env.note(name)
    await env.settle()
    assert (held(env), env.connection.watches) == (len(names), 1)
    needed = set(names if use == "need many" else names[4:5])
    env.cached.readers.append(lambda key, _: key.name in needed)
    env.cached.release_unread()
    await env.settle()
    # What was read before the first look counts.
    assert env.connection.watches == 1
    read = names if use == "read many" else names[:3]
    for name in read:
        await env.note(name)
    if use == "list":
        await env.names()
    env.cached.release_unread()
    for _ in range(5):
        await env.settle()
    assert env.connection.watches == watches
    assert held(env) == (4 if watches == 4 else len(names))
    for name in (*read, names[4]):
        await env.theirs(name, note="later")
    sent(env)
    assert {await env.note(name) for name in (*read, names[4])} == {"later"}
    assert sent(env) == []
    assert await env.note(names[5]) in {"theirs", "later"}


async def test_a_cache_that_is_closed_while_the_list_of_all_ends_leaves_no_watch(new_env: Callable[..., Env]) -> None:
    made = new_env()
    env = new_env(read_by_name={(made.api_version, made.kind): lambda _: False})
    names = [f"web-{number:03}" for number in range(MOST_SINGLE + 1)]
    for name in names:
        await env.theirs(name)
        await env.note(name)
    await env.settle()
    env.cached.release_unread()
    for name in names[:3]:
        await env.note(name)
    env.connection.hold_lists = True
    env.cached.release_unread()
    await env.settle()
    closing = asyncio.ensure_future(env.cached.close())
    await env.settle()
    env.connection.release_lists()
    await closing
    await env.settle()
    assert env.connection.watches == 0


@pytest.mark.parametrize("by", ["read", "write"])
async def test_a_role_with_resource_names_is_enough_for_any_number_of_reads_by_name(
    new_env: Callable[..., Env], monkeypatch: pytest.MonkeyPatch, by: str
) -> None:
    """The list of all that would take the place of the single watches is forbidden: they stay."""
    made = new_env()
    env = new_env(read_by_name={(made.api_version, made.kind): lambda _: by == "write"})
    lists: list[str] = []
    is_granted = False
    list_them = env.connection.list

    async def list_one(api_version: str, kind: str, options: ListOptions) -> Any:
        lists.append(options.field_selector)
        if not (options.field_selector or is_granted):
            raise ForbiddenError("forbidden", code=403)
        return await list_them(api_version, kind, options)

    monkeypatch.setattr(env.connection, "list", list_one)
    names = [f"web-{number:03}" for number in range(MOST_SINGLE + 3)]
    for name in names:
        await env.theirs(name)
        if by == "write":
            await env.ours(name)
        await env.note(name)
    await env.settle()
    # All are asked for once, and not for each of the objects.
    assert lists.count("") == 1
    assert env.connection.watches == MOST_SINGLE
    # Of what the operator makes, all are to be watched, so that the missing right is a problem of the kind.
    assert env.cached.healthy is (by == "read")
    unwatched = {name: env.cached.unwatched(env.key(name)) for name in names}
    assert {name for name, why in unwatched.items() if why} == {*names[MOST_SINGLE:]}
    assert "the right to list all is missing" in unwatched[names[-1]]
    for name in names:
        await env.theirs(name, note="later")
    sent(env)
    assert {await env.note(name) for name in names} == {"later"}
    # One for each that is not watched; what is watched is in memory.
    assert len(sent(env)) == len(names) - MOST_SINGLE
    env.cached.readers.append(lambda *_: True)
    is_granted = True
    env.cached.release_unread()
    await env.time.advance(60)
    assert await env.note(names[-1]) == "later"
    await env.settle()
    assert env.connection.watches == 1
    assert not any(env.cached.unwatched(env.key(name)) for name in names)


async def test_beyond_the_limit_what_is_not_selected_is_read_and_known_to_be_unwatched(
    new_env: Callable[..., Env],
) -> None:
    env = selecting(new_env, LABELLED)
    names = [f"web-{number:03}" for number in range(MOST_SINGLE + 1)]
    for name in names:
        await env.theirs(name)
    await env.sync()
    for name in names:
        await env.note(name)
    assert [name for name in names if env.cached.unwatched(env.key(name))] == [names[-1]]
    await env.theirs(names[-1], note="later")
    assert await env.note(names[-1]) == "later"


@pytest.mark.parametrize("by", ["read", "write"])
async def test_beyond_the_limit_a_list_hides_nothing_that_was_read_or_written(
    new_env: Callable[..., Env], by: str
) -> None:
    """Pruning lists by owner; the API server is asked only while there is something to hide."""
    env = selecting(new_env, LABELLED)
    names = [f"web-{number:03}" for number in range(MOST_SINGLE + 2)]
    await env.sync()
    for name in names:
        await (env.theirs if by == "read" else env.ours)(name)
        await env.note(name)
    assert await env.names() == names
    assert await env.names(namespace="shop", controller="none") == []
    await env.theirs(names[-1], ours="yes")
    await env.settle()
    assert await env.names() == names
    await env.server.delete(env.key(names[-2]), DeleteOptions())
    assert await env.names() == [*names[:-2], names[-1]]
    sent(env)
    assert await env.names() == [*names[:-2], names[-1]]
    assert sent(env) == []


@pytest.mark.parametrize("needed", [False, True], ids=["not needed", "needed"])
async def test_what_is_no_longer_read_is_watched_only_while_a_reader_needs_it(
    new_env: Callable[..., Env], *, needed: bool
) -> None:
    env = selecting(new_env, BY_NAME)
    asked: list[ObjectKey] = []

    def needs(key: ObjectKey, _: object) -> bool:
        asked.append(key)
        return needed

    env.cached.readers.append(needs)
    await env.theirs()
    await env.note()
    env.cached.release_unread()
    await env.settle()
    assert (asked, env.connection.watches) == ([], 1)
    env.cached.release_unread()
    await env.settle()
    assert (asked, env.connection.watches) == ([env.key()], int(needed))
    assert await env.note() == "theirs"


@pytest.mark.parametrize(
    ("use", "end"),
    # A write of a kind that was released is a new use of it.
    [("read", "closed"), ("write", "closed"), ("list", "closed"), ("read", "released"), ("list", "released")],
)
@pytest.mark.parametrize("selection", [LABELLED, BY_NAME], ids=["label", "by name"])
async def test_a_request_that_ends_after_the_cache_leaves_no_watch(
    new_env: Callable[..., Env], monkeypatch: pytest.MonkeyPatch, selection: Selection, use: str, end: str
) -> None:
    env = selecting(new_env, selection)
    await env.theirs()
    await env.sync()
    answered = asyncio.Event()

    def late(send: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
        async def sent(*given: Any, **options: Any) -> Any:
            answer = await send(*given, **options)
            await answered.wait()
            return answer

        return sent

    for verb in ("get", "list", "apply"):
        monkeypatch.setattr(env.connection, verb, late(getattr(env.connection, verb)))
    uses: dict[str, Callable[[], Awaitable[object]]] = {"read": env.note, "write": env.ours, "list": env.names}
    asking = asyncio.ensure_future(uses[use]())
    await env.settle()
    if end == "closed":
        closing = asyncio.ensure_future(env.cached.close())
    else:
        closing = asyncio.ensure_future(asyncio.sleep(0))
        env.cached.retain(env.api_version, env.kind)
        env.cached.release(env.api_version, env.kind)
    answered.set()
    await asyncio.gather(asking, closing)
    await env.settle()
    assert env.connection.watches == 0


@pytest.mark.parametrize("name", ["a,b", "a=b", "a\\", "web,metadata.name!=x", "web,", "metadata.name=web"])
@pytest.mark.parametrize("selection", [None, LABELLED, BY_NAME], ids=["none", "label", "by name"])
async def test_a_name_that_no_object_can_have_is_not_found(
    new_env: Callable[..., Env], selection: Selection | None, name: str
) -> None:
    """A user may have given it; it is no part of the selector."""
    env = selecting(new_env, selection) if selection is not None else new_env()
    await env.theirs()
    await env.sync()
    for _ in range(3):
        with pytest.raises(NotFoundError):
            await env.cached.get(env.key(name))
    with pytest.raises(NotFoundError):
        await env.cached.delete(env.key(name), DeleteOptions())
    with pytest.raises(NotFoundError):
        await env.cached.get(env.key(name))


@pytest.mark.parametrize("selection", [LABELLED, BY_NAME], ids=["label", "by name"])
async def test_names_that_are_read_take_no_memory(new_env: Callable[..., Env], selection: Selection) -> None:
    """They may come from users, and nothing but a controller calls `release_unread`."""
    env = selecting(new_env, selection)
    await env.theirs("chosen", ours="yes")
    await env.sync()

    async def read(name: str) -> None:
        with suppress(NotFoundError):
            await env.cached.get(env.key(name))

    async def read_all(numbers: range) -> None:
        for number in numbers:
            await read("x" * 2_000 + str(number))
        env.server.requests.clear()

    tracemalloc.start()
    try:
        # As many names as are kept to watch those that are read again.
        await read_all(range(1_100))
        before, _ = tracemalloc.get_traced_memory()
        await read_all(range(1_100, 2_100))
        gc.collect()
        taken = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
    assert taken < 500_000


@pytest.mark.parametrize("selection", [LABELLED, BY_NAME], ids=["label", "by name"])
async def test_a_subscriber_sees_an_object_enter_change_and_leave(
    new_env: Callable[..., Env], selection: Selection
) -> None:
    env = selecting(new_env, selection)
    await env.sync()
    await env.ours(ours="yes")
    seen: list[tuple[EventType, str]] = []
    async with aclosing(env.cached.subscribe(env.api_version, env.kind)) as events:

        async def following() -> Manifest:
            event = await anext(events)
            seen.append((event.type, event.object["metadata"]["annotations"]["note"]))
            return event.object

        await following()
        await env.theirs(note="changed", ours="yes")
        await following()
        await env.server.delete(env.key(), DeleteOptions())
        await env.settle()
        await following()
    assert [kind for kind, _ in seen] == [EventType.ADDED, EventType.MODIFIED, EventType.DELETED]
    assert seen[1] == (EventType.MODIFIED, "changed")


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        pytest.param({"label_selector": "a b"}, 'label_selector "a b"', id="labels"),
        pytest.param({"field_selector": "status.phase"}, 'field_selector "status.phase"', id="fields"),
        pytest.param({"field_selector": "spec[0]=a"}, 'field_selector "spec[0]=a"', id="field with a position"),
        pytest.param({"namespaces": ["Shop"]}, 'namespace "Shop"', id="namespace"),
        pytest.param({"namespaces": "shop"}, 'such as ["shop"]', id="namespaces as a text"),
        pytest.param({"by_name": True, "label_selector": "a=b"}, "by_name", id="by name and by label"),
    ],
)
def test_an_invalid_selection_is_an_error_that_names_it(settings: dict[str, Any], named: str) -> None:
    with pytest.raises(ConfigError) as caught:
        Selection(**settings)
    assert named in str(caught.value)


@pytest.mark.parametrize(
    ("field_selector", "live", "selected"),
    [
        pytest.param("status.phase=Running", {"status": {"phase": "Running"}}, True, id="equal"),
        pytest.param("status.phase=Running", {"status": {"phase": "Failed"}}, False, id="another value"),
        pytest.param("status.phase!=Running", {"status": {"phase": "Failed"}}, True, id="unequal"),
        pytest.param("status.phase=Running", {}, None, id="no value"),
        pytest.param("spec.hostNetwork=false", {"spec": {"hostNetwork": False}}, None, id="not a text"),
        pytest.param("metadata.name=web,spec.unknown=1", {}, None, id="one of two is known"),
    ],
)
def test_a_field_whose_text_only_the_api_server_knows_is_undecided(
    field_selector: str, live: Manifest, selected: bool | None
) -> None:
    found = Selection(field_selector=field_selector).selects({"metadata": {"name": "web"}, **live})
    assert found is selected
