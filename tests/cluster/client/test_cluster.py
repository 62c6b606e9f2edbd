"""Each verb sends the request of the API reference and returns the whole answer."""

from __future__ import annotations

import asyncio
import contextlib
import copy
import gc
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import TYPE_CHECKING, Any, TypeAlias

import pytest
from aiohttp import web

from ocf.cluster import (
    ApplyCache,
    Cluster,
    DeleteOptions,
    ListOptions,
    PatchOptions,
    PatchType,
    Propagation,
    Subresource,
    WatchOptions,
)
from ocf.cluster.client import ApiServerCluster
from ocf.cluster.protocol import EventType, Preconditions
from ocf.errors import (
    ApiError,
    BadRequestError,
    ConflictError,
    ExpiredError,
    NotFoundError,
    ServerError,
    StatusCause,
)
from ocf.objects import ObjectKey

if TYPE_CHECKING:
    from ocf.cluster.client import RestConfig
    from tests.cluster.client.conftest import Server

Call: TypeAlias = Callable[[ApiServerCluster], Awaitable[Any]]

JSON = "application/json"
MAPS = "/api/v1/namespaces/shop/configmaps"
WEBS = "/apis/apps/v1/namespaces/shop/deployments"
ROLES = "/apis/rbac.authorization.k8s.io/v1/clusterroles"
MAP_KEY = ObjectKey("v1", "ConfigMap", "a", "shop")
WEB_KEY = ObjectKey("apps/v1", "Deployment", "web", "shop")
MAP: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "ConfigMap",
    "metadata": {"name": "a", "namespace": "shop"},
    "data": {"k": "é"},
}
WEB: dict[str, Any] = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "web", "namespace": "shop"},
    "spec": {"replicas": 2},
}
SCALE = {**WEB, "apiVersion": "autoscaling/v1", "kind": "Scale"}
ROLE: dict[str, Any] = {
    "apiVersion": "rbac.authorization.k8s.io/v1",
    "kind": "ClusterRole",
    "metadata": {"name": "r:x"},
}
OPTIONS = {"apiVersion": "v1", "kind": "DeleteOptions"}
JSON_PATCH = [{"op": "replace", "path": "/spec/replicas", "value": 7}]


def test_it_is_a_cluster(config: RestConfig) -> None:
    """The type checkers compare every signature."""
    cluster: Cluster = ApiServerCluster(config)

    assert isinstance(cluster.apply_cache, ApplyCache)


def test_a_given_apply_cache_is_used(config: RestConfig) -> None:
    """Also an empty one, because other clusters may share it."""
    apply_cache = ApplyCache(limit=1)

    assert ApiServerCluster(config, apply_cache=apply_cache).apply_cache is apply_cache


@pytest.mark.parametrize(
    ("call", "method", "path", "query", "content_type", "body"),
    [
        pytest.param(lambda c: c.get(MAP_KEY), "GET", f"{MAPS}/a", {}, None, None, id="get"),
        pytest.param(
            lambda c: c.get(WEB_KEY, subresource=Subresource.SCALE),
            "GET",
            f"{WEBS}/web/scale",
            {},
            None,
            None,
            id="get the Scale",
        ),
        pytest.param(
            lambda c: c.get(WEB_KEY, subresource=Subresource.STATUS),
            "GET",
            f"{WEBS}/web/status",
            {},
            None,
            None,
            id="get the status",
        ),
        pytest.param(
            lambda c: c.get(ObjectKey("rbac.authorization.k8s.io/v1", "ClusterRole", "r:x")),
            "GET",
            f"{ROLES}/r:x",
            {},
            None,
            None,
            id="get cluster-scoped",
        ),
        pytest.param(lambda c: c.list("v1", "ConfigMap"), "GET", "/api/v1/configmaps", {}, None, None, id="list all"),
        pytest.param(
            lambda c: c.list(
                "v1",
                "ConfigMap",
                ListOptions(
                    namespace="shop",
                    label_selector="app in (a, b),!c,d=e+f",
                    field_selector="metadata.name!=x&y",
                    limit=50,
                    continue_token="eyJ2Ijo/+==",
                ),
            ),
            "GET",
            MAPS,
            {
                "labelSelector": "app in (a, b),!c,d=e+f",
                "fieldSelector": "metadata.name!=x&y",
                "limit": "50",
                "continue": "eyJ2Ijo/+==",
            },
            None,
            None,
            id="list with every option",
        ),
        pytest.param(
            lambda c: c.apply(WEB, field_manager="ocf/web"),
            "PATCH",
            f"{WEBS}/web",
            {"fieldManager": "ocf/web"},
            "application/apply-patch+yaml",
            WEB,
            id="apply",
        ),
        pytest.param(
            lambda c: c.apply(WEB, field_manager="m", force=True, dry_run=True),
            "PATCH",
            f"{WEBS}/web",
            {"fieldManager": "m", "force": "true", "dryRun": "All"},
            "application/apply-patch+yaml",
            WEB,
            id="apply with every option",
        ),
        pytest.param(
            lambda c: c.apply(WEB, field_manager="m", subresource=Subresource.STATUS),
            "PATCH",
            f"{WEBS}/web/status",
            {"fieldManager": "m"},
            "application/apply-patch+yaml",
            WEB,
            id="apply the status",
        ),
        pytest.param(
            lambda c: c.apply(WEB, field_manager="m", subresource=Subresource.SCALE),
            "PATCH",
            f"{WEBS}/web/scale",
            {"fieldManager": "m"},
            "application/apply-patch+yaml",
            SCALE,
            id="apply the Scale",
        ),
        pytest.param(
            lambda c: c.create(MAP, field_manager="m"), "POST", MAPS, {"fieldManager": "m"}, JSON, MAP, id="create"
        ),
        pytest.param(
            lambda c: c.create(ROLE, field_manager="m", dry_run=True),
            "POST",
            ROLES,
            {"fieldManager": "m", "dryRun": "All"},
            JSON,
            ROLE,
            id="create cluster-scoped, dry run",
        ),
        pytest.param(
            lambda c: c.create({**ROLE, "metadata": {"name": "r:x", "namespace": "shop"}}, field_manager="m"),
            "POST",
            ROLES,
            {"fieldManager": "m"},
            JSON,
            {**ROLE, "metadata": {"name": "r:x", "namespace": "shop"}},
            id="create cluster-scoped with a namespace",
        ),
        pytest.param(
            lambda c: c.create({**MAP, "metadata": {"generateName": "a-", "namespace": "shop"}}, field_manager="m"),
            "POST",
            MAPS,
            {"fieldManager": "m"},
            JSON,
            {**MAP, "metadata": {"generateName": "a-", "namespace": "shop"}},
            id="create with a generated name",
        ),
        pytest.param(
            lambda c: c.update(MAP, field_manager="m", dry_run=True),
            "PUT",
            f"{MAPS}/a",
            {"fieldManager": "m", "dryRun": "All"},
            JSON,
            MAP,
            id="update, dry run",
        ),
        pytest.param(
            lambda c: c.update(WEB, field_manager="m", subresource=Subresource.STATUS),
            "PUT",
            f"{WEBS}/web/status",
            {"fieldManager": "m"},
            JSON,
            WEB,
            id="update the status",
        ),
        pytest.param(
            lambda c: c.update(WEB, field_manager="m", subresource=Subresource.SCALE),
            "PUT",
            f"{WEBS}/web/scale",
            {"fieldManager": "m"},
            JSON,
            SCALE,
            id="update the Scale",
        ),
        pytest.param(
            lambda c: c.patch(WEB_KEY, JSON_PATCH, PatchOptions(patch_type=PatchType.JSON, field_manager="m")),
            "PATCH",
            f"{WEBS}/web",
            {"fieldManager": "m"},
            "application/json-patch+json",
            JSON_PATCH,
            id="JSON patch",
        ),
        pytest.param(
            lambda c: c.patch(WEB_KEY, [], PatchOptions(patch_type=PatchType.JSON, field_manager="m")),
            "PATCH",
            f"{WEBS}/web",
            {"fieldManager": "m"},
            "application/json-patch+json",
            [],
            id="JSON patch without operations",
        ),
        pytest.param(
            lambda c: c.patch(
                WEB_KEY, {"spec": None}, PatchOptions(patch_type=PatchType.MERGE, field_manager="m", dry_run=True)
            ),
            "PATCH",
            f"{WEBS}/web",
            {"fieldManager": "m", "dryRun": "All"},
            "application/merge-patch+json",
            {"spec": None},
            id="merge patch, dry run",
        ),
        pytest.param(
            lambda c: c.patch(
                WEB_KEY,
                {"spec": {"replicas": 3}},
                PatchOptions(patch_type=PatchType.MERGE, field_manager="m", subresource=Subresource.SCALE),
            ),
            "PATCH",
            f"{WEBS}/web/scale",
            {"fieldManager": "m"},
            "application/merge-patch+json",
            {"spec": {"replicas": 3}},
            id="patch the Scale",
        ),
        pytest.param(
            lambda c: c.patch(WEB_KEY, {}, PatchOptions(patch_type=PatchType.STRATEGIC_MERGE, field_manager="m")),
            "PATCH",
            f"{WEBS}/web",
            {"fieldManager": "m"},
            "application/strategic-merge-patch+json",
            {},
            id="strategic merge patch, empty",
        ),
        pytest.param(lambda c: c.delete(MAP_KEY), "DELETE", f"{MAPS}/a", {}, JSON, OPTIONS, id="delete"),
        pytest.param(
            lambda c: c.delete(
                MAP_KEY,
                DeleteOptions(
                    preconditions=Preconditions(uid="u", resource_version="7"),
                    propagation=Propagation.FOREGROUND,
                    dry_run=True,
                ),
            ),
            "DELETE",
            f"{MAPS}/a",
            {},
            JSON,
            {
                **OPTIONS,
                "preconditions": {"uid": "u", "resourceVersion": "7"},
                "propagationPolicy": "Foreground",
                "dryRun": ["All"],
            },
            id="delete with every option",
        ),
        pytest.param(
            lambda c: c.delete(MAP_KEY, DeleteOptions(preconditions=Preconditions(uid="u"))),
            "DELETE",
            f"{MAPS}/a",
            {},
            JSON,
            {**OPTIONS, "preconditions": {"uid": "u"}},
            id="delete with a uid",
        ),
    ],
)
async def test_a_verb_is_one_request(
    server: Server,
    cluster: ApiServerCluster,
    *,
    call: Call,
    method: str,
    path: str,
    query: dict[str, str],
    content_type: str | None,
    body: Any,
) -> None:
    server.answer(method, path, {"kind": "Any", "items": []})
    await call(cluster)
    seen = server.last

    assert (seen.method, seen.path, seen.query, seen.body) == (method, path, query, body)
    assert content_type is None or seen.headers["content-type"] == content_type
    assert (seen.headers["accept"], seen.headers["authorization"]) == (JSON, "Bearer s3cr3t")
    assert len(server.seen) == 2, "one for discovery, one for the verb"


@pytest.mark.parametrize(
    ("call", "message"),
    [
        pytest.param(
            lambda c: c.patch(WEB_KEY, {"op": "add"}, PatchOptions(patch_type=PatchType.JSON, field_manager="m")),
            "must be a list of operations, not dict",
            id="JSON patch that is not a list",
        ),
        pytest.param(
            lambda c: c.patch(WEB_KEY, [], PatchOptions(patch_type=PatchType.MERGE, field_manager="m")),
            "must be an object, not list",
            id="merge patch that is not an object",
        ),
        pytest.param(lambda c: c.delete(ObjectKey("v1", "ConfigMap", "", "shop")), "metadata.name", id="no name"),
        pytest.param(lambda c: c.delete(ObjectKey("v1", "ConfigMap", "a")), "metadata.namespace", id="no namespace"),
        pytest.param(lambda c: c.create({"kind": "ConfigMap"}, field_manager="m"), "needs apiVersion", id="no type"),
        pytest.param(
            lambda c: c.create({"apiVersion": "v1", "kind": "ConfigMap"}, field_manager="m"),
            "metadata.namespace",
            id="no metadata",
        ),
        pytest.param(
            lambda c: c.apply({"apiVersion": "v1", "kind": "ConfigMap"}, field_manager="m"),
            "metadata.name",
            id="no key",
        ),
        pytest.param(
            lambda c: c.update(SCALE, field_manager="m", subresource=Subresource.SCALE),
            "a Scale does not identify the scaled object",
            id="a Scale without its object",
        ),
        pytest.param(
            lambda c: c.create({**MAP, "data": {"k": object()}}, field_manager="m"),
            r"cannot be sent: data\.k: an object is not a JSON value",
            id="not JSON",
        ),
    ],
)
async def test_an_invalid_request_is_not_sent(
    server: Server, cluster: ApiServerCluster, call: Call, message: str
) -> None:
    with pytest.raises(BadRequestError, match=message):
        await call(cluster)

    assert {seen.method for seen in server.seen} <= {"GET"}, "discovery at most"


async def test_a_manifest_is_not_changed(server: Server, cluster: ApiServerCluster) -> None:
    manifest = copy.deepcopy(WEB)
    server.answer("PUT", f"{WEBS}/web/scale", {"kind": "Scale"})
    await cluster.update(manifest, field_manager="m", subresource=Subresource.SCALE)

    assert manifest == WEB


async def test_an_answer_keeps_unknown_fields(server: Server, cluster: ApiServerCluster) -> None:
    answer = {
        **MAP,
        "metadata": {**MAP["metadata"], "creationTimestamp": "2026-11-21T03:44:43Z"},
        "future": [{"x": 1.5}],
    }
    server.answer("GET", f"{MAPS}/a", answer)

    assert await cluster.get(MAP_KEY) == answer


async def test_a_delete_returns_none_whether_the_object_is_gone_or_terminating(
    server: Server, cluster: ApiServerCluster
) -> None:
    for answer in (
        {"kind": "Status", "status": "Success"},
        {**MAP, "metadata": {"finalizers": ["foregroundDeletion"]}},
    ):
        server.answer("DELETE", f"{MAPS}/a", answer)
        deletion: Awaitable[object] = cluster.delete(MAP_KEY)

        assert await deletion is None


async def test_a_page_has_items_with_kind_and_a_continue_token(server: Server, cluster: ApiServerCluster) -> None:
    answer = {
        "kind": "ConfigMapList",
        "apiVersion": "v1",
        "metadata": {"resourceVersion": "388", "continue": "next"},
        "items": [{"metadata": {"name": "a", "namespace": "shop"}, "data": {"k": "é"}}],
    }
    server.answer("GET", "/api/v1/configmaps", answer)
    page = await cluster.list("v1", "ConfigMap")

    assert (page.items, page.resource_version, page.continue_token) == ((MAP,), "388", "next")


async def test_an_error_answer_raises_the_error_of_its_status(server: Server, cluster: ApiServerCluster) -> None:
    cause = {"reason": "FieldManagerConflict", "message": 'conflict with "ocf"', "field": ".spec.replicas"}
    status = {
        "kind": "Status",
        "message": 'Apply failed with 1 conflict: conflict with "ocf": .spec.replicas',
        "reason": "Conflict",
        "details": {"causes": [cause]},
        "code": 409,
    }
    server.answer("PATCH", f"{WEBS}/web", status, status=409, headers={"Retry-After": "2"})
    with pytest.raises(ConflictError) as caught:
        await cluster.apply(WEB, field_manager="other")

    assert caught.value.causes == (StatusCause(**cause),)
    assert (caught.value.code, caught.value.retry_after) == (409, 2.0)


class TestDiscovery:
    async def test_concurrent_first_calls_share_one_discovery_request(
        self, server: Server, cluster: ApiServerCluster
    ) -> None:
        server.answer("GET", f"{MAPS}/a", MAP)
        await asyncio.gather(*(cluster.get(MAP_KEY) for _ in range(10)))

        assert len(server.asked("/api/v1")) == 1

    async def test_a_kind_that_does_not_exist_is_not_found(self, server: Server, cluster: ApiServerCluster) -> None:
        with pytest.raises(NotFoundError, match=r'no kind "Probe" in x\.io/v1'):
            await cluster.get(ObjectKey("x.io/v1", "Probe", "p", "shop"))

        server.answer("GET", "/apis/x.io/v1", {"resources": [{"name": "probes", "kind": "Probe", "namespaced": True}]})
        server.answer("GET", "/apis/x.io/v1/namespaces/shop/probes/p", {"kind": "Probe"})

        assert await cluster.get(ObjectKey("x.io/v1", "Probe", "p", "shop")) == {"kind": "Probe"}

    async def test_a_path_that_no_longer_exists_is_discovered_again(
        self, server: Server, cluster: ApiServerCluster
    ) -> None:
        """A CRD was replaced by one with another plural; the next call discovers the new path."""
        key = ObjectKey("x.io/v1", "Probe", "p", "shop")
        server.answer("GET", "/apis/x.io/v1", {"resources": [{"name": "old", "kind": "Probe", "namespaced": True}]})
        server.answer("GET", "/apis/x.io/v1/namespaces/shop/old/p", {"kind": "Probe"})
        await cluster.get(key)
        server.answer("GET", "/apis/x.io/v1", {"resources": [{"name": "new", "kind": "Probe", "namespaced": True}]})
        del server.table["GET", "/apis/x.io/v1/namespaces/shop/old/p"]
        server.answer("GET", "/apis/x.io/v1/namespaces/shop/new/p", {"kind": "Probe"})
        with pytest.raises(NotFoundError):
            await cluster.get(key)

        assert await cluster.get(key) == {"kind": "Probe"}

    async def test_a_missing_object_does_not_invalidate_discovery(
        self, server: Server, cluster: ApiServerCluster
    ) -> None:
        status = {"kind": "Status", "reason": "NotFound", "details": {"name": "a", "kind": "configmaps"}, "code": 404}
        server.answer("GET", f"{MAPS}/a", status, status=404)
        for _ in range(3):
            with pytest.raises(NotFoundError):
                await cluster.get(MAP_KEY)

        assert len(server.asked("/api/v1")) == 1


class Feed:
    """A watch on the server: it sends chunks, then ends, breaks or waits."""

    def __init__(self, *pieces: bytes, ending: str = "end") -> None:
        self.pieces = pieces
        self.ending = ending
        self.opened = asyncio.Event()
        self.left = asyncio.Event()

    async def __call__(self, request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": JSON})
        await response.prepare(request)
        try:
            for piece in self.pieces:
                await response.write(piece)
            self.opened.set()
            if self.ending == "wait":
                await asyncio.Event().wait()
            elif self.ending == "break":
                assert request.transport
                request.transport.abort()
        finally:
            self.left.set()
        return response


def _line(kind: str, name: str, **more: str) -> bytes:
    content = {"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": name, "namespace": "shop"}, "data": more}
    return json.dumps({"type": kind, "object": content}).encode() + b"\n"


BOOKMARK = b'{"type":"BOOKMARK","object":{"kind":"ConfigMap","apiVersion":"v1","metadata":{"resourceVersion":"447"}}}\n'
EXPIRED = b'{"type":"ERROR","object":{"kind":"Status","message":"too old","reason":"Expired","code":410}}\n'


class TestWatch:
    async def test_a_watch_is_one_request(self, server: Server, cluster: ApiServerCluster) -> None:
        server.handle("GET", MAPS, Feed())
        events = cluster.watch(
            "v1",
            "ConfigMap",
            WatchOptions(resource_version="388", namespace="shop", label_selector="a=b", field_selector="c=d"),
        )

        assert [event async for event in events] == []
        assert server.last.query == {
            "watch": "true",
            "allowWatchBookmarks": "true",
            "resourceVersion": "388",
            "timeoutSeconds": "300",
            "labelSelector": "a=b",
            "fieldSelector": "c=d",
        }

    async def test_without_a_resource_version_a_watch_starts_with_the_present_objects(
        self, server: Server, cluster: ApiServerCluster
    ) -> None:
        server.handle("GET", "/api/v1/configmaps", Feed())
        assert [event async for event in cluster.watch("v1", "ConfigMap", WatchOptions(resource_version=""))] == []

        assert "resourceVersion" not in server.last.query

    async def test_events_arrive_until_the_server_ends(self, server: Server, cluster: ApiServerCluster) -> None:
        stream = _line("ADDED", "a") + _line("MODIFIED", "a") + BOOKMARK + _line("DELETED", "a")
        server.handle("GET", "/api/v1/configmaps", Feed(stream[:5], stream[5:200], stream[200:]))
        events = [event async for event in cluster.watch("v1", "ConfigMap", WatchOptions(resource_version="1"))]

        assert [event.type for event in events] == list(map(EventType, ("ADDED", "MODIFIED", "BOOKMARK", "DELETED")))
        assert events[2].object["metadata"] == {"resourceVersion": "447"}

    async def test_an_event_may_be_megabytes_long(self, server: Server, cluster: ApiServerCluster) -> None:
        server.handle("GET", "/api/v1/configmaps", Feed(_line("ADDED", "big", k="x" * 5_000_000), BOOKMARK))
        events = [event async for event in cluster.watch("v1", "ConfigMap", WatchOptions(resource_version="1"))]

        assert len(events[0].object["data"]["k"]) == 5_000_000
        assert events[1].type is EventType.BOOKMARK

    async def test_events_arrive_while_the_stream_is_open(self, server: Server, cluster: ApiServerCluster) -> None:
        server.handle("GET", "/api/v1/configmaps", Feed(_line("ADDED", "a"), ending="wait"))
        async with contextlib.aclosing(cluster.watch("v1", "ConfigMap", WatchOptions(resource_version="1"))) as events:
            event = await anext(events)

        assert event.object["metadata"]["name"] == "a"

    async def test_leaving_the_loop_closes_the_connection(self, server: Server, cluster: ApiServerCluster) -> None:
        feed = Feed(_line("ADDED", "a"), ending="wait")
        server.handle("GET", "/api/v1/configmaps", feed)
        async for _ in cluster.watch("v1", "ConfigMap", WatchOptions(resource_version="1")):
            break
        gc.collect()

        await asyncio.wait_for(feed.left.wait(), 600)

    async def test_cancelling_the_consumer_closes_the_connection(
        self, server: Server, cluster: ApiServerCluster
    ) -> None:
        feed = Feed(ending="wait")
        server.handle("GET", "/api/v1/configmaps", feed)

        async def consume() -> None:
            async for _ in cluster.watch("v1", "ConfigMap", WatchOptions(resource_version="1")):
                pass

        consumer = asyncio.create_task(consume())
        await asyncio.wait_for(feed.opened.wait(), 600)
        consumer.cancel()
        with pytest.raises(asyncio.CancelledError):
            await consumer

        await asyncio.wait_for(feed.left.wait(), 600)

    async def test_an_error_event_ends_it_with_the_error(self, server: Server, cluster: ApiServerCluster) -> None:
        feed = Feed(_line("ADDED", "a") + EXPIRED, ending="wait")
        server.handle("GET", "/api/v1/configmaps", feed)
        events = cluster.watch("v1", "ConfigMap", WatchOptions(resource_version="1"))

        assert (await anext(events)).type is EventType.ADDED
        with pytest.raises(ExpiredError, match="too old"):
            await anext(events)
        await asyncio.wait_for(feed.left.wait(), 600)

    @pytest.mark.parametrize(
        ("status", "error"), [(410, ExpiredError), (404, NotFoundError), (500, ServerError), (403, ApiError)]
    )
    async def test_a_rejected_watch_raises_an_error(
        self, server: Server, cluster: ApiServerCluster, status: int, error: type[ApiError]
    ) -> None:
        server.answer("GET", "/api/v1/configmaps", {"kind": "Status", "message": "no", "code": status}, status=status)
        with pytest.raises(error):
            await anext(cluster.watch("v1", "ConfigMap", WatchOptions(resource_version="1")))

    @pytest.mark.parametrize(
        "feed",
        [
            pytest.param(lambda: Feed(_line("ADDED", "a"), ending="break"), id="the connection breaks"),
            pytest.param(lambda: Feed(_line("ADDED", "a") + b'{"type":'), id="it ends in the middle of an event"),
        ],
    )
    async def test_a_broken_watch_raises_a_server_error(
        self, server: Server, cluster: ApiServerCluster, feed: Callable[[], Feed]
    ) -> None:
        server.handle("GET", "/api/v1/configmaps", feed())
        with pytest.raises(ServerError) as caught:
            assert [event async for event in cluster.watch("v1", "ConfigMap", WatchOptions(resource_version="1"))]

        assert caught.value.code == 0

    async def test_an_idle_watch_raises_a_server_error(self, server: Server, config: RestConfig) -> None:
        server.handle("GET", "/api/v1/configmaps", Feed(ending="wait"))
        async with ApiServerCluster(config, watch_timeout=0.01, request_timeout=3) as cluster:
            with pytest.raises(ServerError, match="no answer: time is up"):
                await anext(cluster.watch("v1", "ConfigMap", WatchOptions(resource_version="1")))

        assert server.last.query["timeoutSeconds"] == "1", "the server counts whole seconds"

    async def test_closing_the_cluster_ends_a_watch(self, server: Server, cluster: ApiServerCluster) -> None:
        feed = Feed(_line("ADDED", "a"), ending="wait")
        server.handle("GET", "/api/v1/configmaps", feed)
        events = cluster.watch("v1", "ConfigMap", WatchOptions(resource_version="1"))
        await anext(events)
        waiting = asyncio.ensure_future(anext(events))
        await asyncio.sleep(0)
        await cluster.close()
        with pytest.raises(ServerError):
            await asyncio.wait_for(waiting, 600)
        await asyncio.wait_for(feed.left.wait(), 600)

    async def test_a_watch_that_is_not_iterated_sends_no_request(
        self, server: Server, cluster: ApiServerCluster
    ) -> None:
        events: AsyncIterator[Any] = cluster.watch("v1", "ConfigMap", WatchOptions(resource_version="1"))
        del events

        assert server.seen == []


class TestClose:
    async def test_a_closed_cluster_sends_no_request(self, server: Server, config: RestConfig) -> None:
        """Also one that was closed before its first use: a pool that is opened then would never be closed."""
        cluster = ApiServerCluster(config)
        await cluster.close()
        with pytest.raises(ServerError, match="closed") as caught:
            await cluster.get(MAP_KEY)

        assert (caught.value.code, server.seen) == (0, [])

    async def test_closing_ends_requests_in_flight(self, server: Server, cluster: ApiServerCluster) -> None:
        arrived = asyncio.Event()

        async def hang(_: web.Request) -> web.StreamResponse:
            arrived.set()
            await asyncio.Event().wait()
            raise AssertionError

        server.handle("GET", f"{MAPS}/a", hang)
        request = asyncio.create_task(cluster.get(MAP_KEY))
        await asyncio.wait_for(arrived.wait(), 600)
        await cluster.close()
        with pytest.raises(ServerError):
            await asyncio.wait_for(request, 600)

    async def test_closing_ends_discovery(self, server: Server, config: RestConfig) -> None:
        arrived = asyncio.Event()

        async def hang(_: web.Request) -> web.StreamResponse:
            arrived.set()
            await asyncio.Event().wait()
            raise AssertionError

        server.handle("GET", "/api/v1", hang)
        async with ApiServerCluster(config) as cluster:
            request = asyncio.create_task(cluster.get(MAP_KEY))
            await asyncio.wait_for(arrived.wait(), 600)
        with pytest.raises(ServerError, match="closed"):
            await asyncio.wait_for(request, 600)

    async def test_closing_twice_is_allowed(self, server: Server, cluster: ApiServerCluster) -> None:
        server.answer("GET", f"{MAPS}/a", MAP)
        await cluster.get(MAP_KEY)
        await cluster.close()
        await cluster.close()

        with pytest.raises(ServerError, match="closed"):
            await cluster.get(MAP_KEY)


async def test_a_path_without_an_object_can_be_read(server: Server, cluster: ApiServerCluster) -> None:
    server.answer("GET", "/apis/metrics.k8s.io/v1beta1/namespaces/shop/pods", {"items": []})
    answer = await cluster.read_path("/apis/metrics.k8s.io/v1beta1/namespaces/shop/pods", [("labelSelector", "a=b")])

    assert answer == {"items": []}
    assert server.seen[-1].query == {"labelSelector": "a=b"}


@pytest.mark.parametrize(("accept", "sent"), [("", "application/json"), ("application/json;as=Table", None)])
async def test_a_path_is_read_in_the_media_type_that_the_caller_accepts(
    server: Server, cluster: ApiServerCluster, accept: str, sent: str | None
) -> None:
    server.answer("GET", "/apis", {"kind": "APIGroupList"})
    await cluster.read_path("/apis", accept=accept)

    assert server.seen[-1].headers["accept"] == (sent or accept)
