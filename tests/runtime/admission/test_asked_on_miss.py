"""An object that the cache does not have is asked of the API server once, whether its kind is cached or not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import pytest

from ocf.cluster import Cluster, Subresource, Verb
from ocf.cluster.cache import CachedCluster
from ocf.errors import NotFoundError
from ocf.objects import Manifest, ObjectKey
from ocf.runtime.admission.asked_on_miss import AskedOnMiss
from ocf.testing import RecordingCluster
from ocf_server import EmbeddedCluster

CACHED: Final = ObjectKey("v1", "ConfigMap", "a", "default")
UNCACHED: Final = ObjectKey("v1", "Secret", "a", "default")
WEB: Final = ObjectKey("apps/v1", "Deployment", "web", "default")


@pytest.mark.parametrize("wrap", [lambda cache: cache, RecordingCluster], ids=["the cache", "a wrapper of it"])
@pytest.mark.parametrize(
    ("key", "part"),
    [
        pytest.param(CACHED, None, id="cached"),
        pytest.param(UNCACHED, None, id="uncached"),
        pytest.param(WEB, Subresource.SCALE, id="a subresource"),
    ],
)
async def test_a_missing_object_is_asked_for_once(
    key: ObjectKey, part: Subresource | None, wrap: Callable[[Cluster], Cluster]
) -> None:
    server = RecordingCluster(EmbeddedCluster())
    async with CachedCluster(server, uncached=[("v1", "Secret")]) as cache:
        await cache.wait_for_sync("v1", "ConfigMap")
        server.requests.clear()
        with pytest.raises(NotFoundError):
            await AskedOnMiss(wrap(cache), server).get(key, subresource=part)
    assert [request.kind for request in server.requests if request.verb is Verb.GET] == [key.kind]


@pytest.mark.parametrize("key", [CACHED, UNCACHED], ids=["cached", "uncached"])
async def test_an_object_that_was_just_made_is_found(key: ObjectKey) -> None:
    embedded = EmbeddedCluster()
    async with CachedCluster(embedded, uncached=[("v1", "Secret")]) as cache:
        await cache.wait_for_sync("v1", "ConfigMap")
        manifest: Manifest = {"apiVersion": "v1", "kind": key.kind, "metadata": {"name": "a", "namespace": "default"}}
        # Without a pause, in which the cache would learn of it.
        await embedded.create(manifest, field_manager="user")
        found = await AskedOnMiss(cache, embedded).get(key)
    assert found["metadata"]["name"] == "a"
