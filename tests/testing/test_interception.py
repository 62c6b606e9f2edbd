"""Every verb of an intercepting cluster goes through one method and is otherwise unchanged."""

from __future__ import annotations

import inspect
from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import TYPE_CHECKING, Any

import pytest

from ocf.cluster import (
    ApplyCache,
    Cluster,
    DeleteOptions,
    ListOptions,
    PatchOptions,
    PatchType,
    Request,
    Subresource,
    Verb,
    WatchEvent,
    WatchOptions,
)
from ocf.cluster.interceptor import describe, is_write
from ocf.cluster.protocol import Preconditions
from ocf.errors import NotFoundError
from ocf.objects import Manifest, ObjectKey
from ocf.testing import InterceptingCluster
from ocf_server import EmbeddedCluster

if TYPE_CHECKING:
    from tests.testing.conftest import Operator


class Spy(InterceptingCluster):
    """A cluster that records every request."""

    def __init__(self, cluster: Cluster) -> None:
        super().__init__(cluster)
        self.seen: list[Request] = []

    async def intercept(self, request: Request, send: Callable[[], Awaitable[Any]]) -> Any:
        self.seen.append(request)
        return await send()


@pytest.fixture
def spy(cluster: EmbeddedCluster) -> Spy:
    cluster.requests.clear()
    return Spy(cluster)


async def every_verb(cluster: Cluster, settings: Manifest) -> None:
    key = ObjectKey.of(settings)
    await cluster.create(settings, field_manager="me")
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web", "namespace": "shop"}}
    await cluster.create({**pod, "spec": {"containers": [{"name": "a", "image": "a:1"}]}}, field_manager="me")
    await cluster.create(pod, field_manager="me", subresource=Subresource.EVICTION, dry_run=True)
    await cluster.get(key)
    await cluster.list(
        "v1", "ConfigMap", ListOptions(namespace="shop", label_selector="a=b", field_selector="", limit=1)
    )
    await cluster.apply(settings, field_manager="us", force=True, dry_run=True)
    await cluster.update({**settings, "data": {"a": "2"}}, field_manager="me")
    await cluster.patch(key, {"data": {"a": "3"}}, PatchOptions(patch_type=PatchType.MERGE, field_manager="me"))
    uid = (await cluster.get(key))["metadata"]["uid"]
    await cluster.delete(key, DeleteOptions(preconditions=Preconditions(uid=uid)))
    shop = await cluster.get(ObjectKey("example.com/v1", "Shop", "demo", "shop"))
    await cluster.update({**shop, "status": {"a": 1}}, field_manager="me", subresource=Subresource.STATUS)


async def test_every_verb_is_intercepted_and_described_as_by_the_cluster(
    spy: Spy, cluster: EmbeddedCluster, settings: Callable[..., Manifest]
) -> None:
    await every_verb(spy, settings(a="1"))
    logged = [(request.verb, request.name, request.subresource, request.field_manager) for request in cluster.requests]
    assert [(one.verb, one.name, one.subresource, one.field_manager) for one in spy.seen] == logged
    assert [one.dry_run for one in spy.seen] == [request.dry_run for request in cluster.requests]
    assert {one.verb for one in spy.seen} == set(Verb) - {Verb.WATCH}


async def test_answers_and_errors_are_those_of_the_cluster(
    spy: Spy, cluster: EmbeddedCluster, settings: Callable[..., Manifest]
) -> None:
    stored = await spy.apply(settings(a="1"), field_manager="me")
    assert stored == await cluster.get(ObjectKey.of(stored)) == await spy.get(ObjectKey.of(stored))
    with pytest.raises(NotFoundError):
        await spy.get(ObjectKey("v1", "ConfigMap", "other", "shop"))


async def test_a_watch_is_intercepted_when_it_is_opened_and_can_be_closed(
    spy: Spy, cluster: EmbeddedCluster, settings: Callable[..., Manifest]
) -> None:
    events = spy.watch("v1", "ConfigMap", WatchOptions(resource_version=cluster.resource_version, namespace="shop"))
    await cluster.create(settings("a"), field_manager="me")
    await cluster.create(settings("b"), field_manager="me")
    names = [(await anext(events)).object["metadata"]["name"] for _ in range(2)]
    await events.aclose()
    assert names == ["a", "b"]
    assert [request.verb for request in spy.seen] == [Verb.WATCH]


async def test_closing_a_watch_closes_that_of_the_cluster_at_once(cluster: EmbeddedCluster) -> None:
    closed: list[bool] = []

    class Watched(InterceptingCluster):
        async def watch(self, api_version: str, kind: str, options: WatchOptions) -> AsyncGenerator[WatchEvent, None]:
            try:
                async for event in cluster.watch(api_version, kind, options):
                    yield event
            finally:
                closed.append(True)

    watch = InterceptingCluster(Watched(cluster)).watch("v1", "Namespace", WatchOptions(resource_version="0"))
    await anext(watch)
    await watch.aclose()
    assert closed == [True]


async def test_the_apply_cache_is_shared_unless_another_one_is_given(cluster: EmbeddedCluster) -> None:
    own = ApplyCache()
    assert InterceptingCluster(cluster).apply_cache is cluster.apply_cache
    assert InterceptingCluster(cluster, apply_cache=own).apply_cache is own


async def test_wrappers_nest(operator: Operator, cluster: EmbeddedCluster) -> None:
    inner = Spy(cluster)
    outer = Spy(inner)
    await operator.reconcile(outer)
    assert outer.seen == inner.seen != []


def test_the_signatures_are_those_of_the_protocol() -> None:
    """Options that are added to a verb must be forwarded."""
    for name in ("get", "list", "watch", "apply", "create", "update", "patch", "delete"):
        wanted = inspect.signature(getattr(Cluster, name)).parameters
        assert inspect.signature(getattr(InterceptingCluster, name)).parameters.keys() == wanted.keys()


@pytest.mark.parametrize(
    ("request_", "text"),
    [
        pytest.param(Request(Verb.LIST, "v1", "Pod", "shop"), "list v1/Pod/shop/", id="list"),
        pytest.param(Request(Verb.DELETE, "v1", "Node", "", "n1"), "delete v1/Node/n1", id="cluster-scoped"),
        pytest.param(
            Request(Verb.APPLY, "v1", "Pod", "shop", "a", Subresource.STATUS, "me", dry_run=True),
            "apply v1/Pod/shop/a status by me (dry run)",
            id="everything",
        ),
    ],
)
def test_a_request_is_described_in_one_line(request_: Request, text: str) -> None:
    assert describe(request_) == text


def test_dry_runs_and_reads_are_not_writes() -> None:
    assert is_write(Request(Verb.PATCH, "v1", "Pod"))
    assert not is_write(Request(Verb.PATCH, "v1", "Pod", dry_run=True))
    assert not is_write(Request(Verb.WATCH, "v1", "Pod"))
