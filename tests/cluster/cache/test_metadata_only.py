"""Kinds of which the cache holds only metadata, until the content of an object is read.

Publicly reported of other operators, which run out of memory because they cache all Secrets of a cluster, those of Helm
releases included: https://github.com/cloudnative-pg/cloudnative-pg/issues/10924,
https://github.com/RamenDR/ramen/issues/2711, https://github.com/SAP/sap-btp-service-operator/issues/432,
https://github.com/kubernetes-retired/service-catalog/issues/2824.
"""

from __future__ import annotations

from contextlib import aclosing
from typing import TYPE_CHECKING, Any

import pytest

from ocf.cluster import DeleteOptions, Verb
from ocf.cluster.cache import Projection
from ocf.cluster.cache.serialization import unpack
from ocf.cluster.protocol import EventType
from ocf.errors import NotFoundError

if TYPE_CHECKING:
    from collections.abc import Callable

    from ocf.objects import Manifest
    from tests.cluster.cache.conftest import Env


@pytest.fixture
def env(new_env: Callable[..., Env]) -> Env:
    """Return a cache of which objects with the label `whole` are held as a whole."""

    def is_whole(live: Manifest) -> bool:
        return "whole" in (live["metadata"].get("labels") or {})

    found = new_env()
    kind = (found.api_version, found.kind)
    return new_env(needs_content={kind: is_whole})


def held(env: Env, name: str = "web") -> Manifest:
    entry = env.cached.entry(env.key(name))
    assert entry is not None
    return unpack(entry)


def sent(env: Env) -> list[Verb]:
    """Return the reads since the last call."""
    verbs: list[Verb] = [one.verb for one in env.server.requests if one.verb in {Verb.GET, Verb.LIST}]
    env.server.requests.clear()
    return verbs


async def test_what_is_not_read_is_held_without_its_content(env: Env) -> None:
    await env.theirs()
    await env.theirs("all", whole="true")
    await env.sync()
    assert "spec" not in held(env)
    assert held(env)["metadata"]["annotations"] == {"note": "theirs"}
    assert "spec" in held(env, "all")
    await env.theirs(note="changed")
    await env.theirs("later")
    assert ["spec" in held(env, name) for name in ("web", "later")] == [False, False]
    assert held(env)["metadata"]["annotations"] == {"note": "changed"}
    await env.theirs(whole="true")
    assert "spec" in held(env)
    assert sent(env) == []


async def test_the_first_read_of_an_object_is_a_request_and_later_ones_are_none(env: Env) -> None:
    await env.theirs()
    await env.theirs("other")
    await env.sync()
    assert "spec" in await env.cached.get(env.key())
    assert len(sent(env)) == 1
    for note in ("theirs", "a", "b"):
        await env.theirs(note=note)
        assert "spec" in await env.cached.get(env.key())
        assert await env.note() == note
    assert sent(env) == []
    assert "spec" not in held(env, "other")


async def test_an_object_that_was_looked_for_is_held_once_it_exists(env: Env) -> None:
    await env.sync()
    with pytest.raises(NotFoundError):
        await env.cached.get(env.key())
    for _ in range(2):
        await env.theirs()
        assert "spec" in await env.cached.get(env.key())
        await env.server.delete(env.key(), DeleteOptions())
        await env.settle()
    assert sent(env) == []


async def test_our_own_write_is_seen_as_a_whole(env: Env) -> None:
    await env.sync()
    env.connection.held = True
    await env.ours()
    assert await env.note() == "ours"
    assert "spec" in await env.cached.get(env.key())


@pytest.mark.parametrize("options", [{}, {"label_selector": "app=a"}, {"field_selector": "metadata.name=a"}], ids=str)
async def test_a_list_of_metadata_is_no_request(env: Env, options: dict[str, Any]) -> None:
    for name in ("a", "b"):
        await env.theirs(name, app=name)
    await env.sync()
    assert "a" in await env.names(**options, metadata_only=True)
    assert sent(env) == []


async def test_a_list_that_needs_content_has_the_kind_held_from_then_on(env: Env) -> None:
    await env.theirs("a", app="a")
    await env.theirs("b", app="b")
    await env.sync()
    assert await env.names(label_selector="app=c") == []
    assert sent(env) == []
    page = await env.cached.list(env.api_version, env.kind)
    assert all("spec" in item for item in page.items)
    await env.settle()
    sent(env)
    for name in ("a", "b", "c"):
        await env.theirs(name)
        page = await env.cached.list(env.api_version, env.kind)
        assert all("spec" in item for item in page.items)
        assert name in [item["metadata"]["name"] for item in page.items]
    assert sent(env) == []


async def test_a_projection_has_the_kind_held_from_then_on(env: Env) -> None:
    projection = Projection(env.api_version, env.kind, lambda live: live["spec"]["template"]["spec"])
    await env.theirs("a")
    await env.theirs("b")
    await env.sync()
    values = await projection.read(env.cached)
    await env.settle()
    sent(env)
    assert await projection.read(env.cached) is values
    assert len(values) == 2
    await env.theirs("c")
    assert len(await projection.read(env.cached)) == 3
    assert sent(env) == []


async def test_a_read_of_content_is_no_change(env: Env) -> None:
    """Neither of one object nor of all."""
    await env.theirs()
    await env.sync()
    async with aclosing(env.cached.subscribe(env.api_version, env.kind)) as events:
        assert (await anext(events)).type is EventType.ADDED
        await env.cached.get(env.key())
        await env.cached.list(env.api_version, env.kind)
        await env.settle()
        await env.theirs("last")
        event = await anext(events)
        assert (event.type, event.object["metadata"]["name"]) == (EventType.ADDED, "last")
