"""Indexes of the author's: a cache finds objects by keys without looking at others."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from ocf.cluster import Index, ListOptions, PatchOptions, PatchType
from ocf.cluster.cache import CachedCluster
from ocf.cluster.cache.transform import metadata_of
from ocf.objects import Manifest, ObjectKey
from ocf_server import EmbeddedCluster
from tests.support import eventually

if TYPE_CHECKING:
    from collections.abc import Iterator

PATCH = PatchOptions(patch_type=PatchType.MERGE, field_manager="user")


def config_map(name: str, **data: str) -> Manifest:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "shop"}, "data": data}


class Counting:
    """An index by the values of the data, which counts the objects that it looks at."""

    def __init__(self) -> None:
        self.looks: list[str] = []
        self.index = Index[str](self._keys)

    def _keys(self, live: Manifest) -> Iterator[str]:
        self.looks.append(live["metadata"]["name"])
        yield from live["data"].values()

    async def names(self, cluster: Any, key: str) -> list[str]:
        page = await cluster.list("v1", "ConfigMap", ListOptions(namespace="shop", index=self.index.at(key)))
        return [one["metadata"]["name"] for one in page.items]


async def test_a_list_looks_at_what_has_changed_only() -> None:
    """A label selector is no index in controller-runtime: https://github.com/ai-dynamo/grove/issues/655."""
    cluster, counting = EmbeddedCluster(namespaces=["shop"]), Counting()
    for number in range(20):
        await cluster.create(config_map(f"c{number}", color="red" if number % 10 else "blue"), field_manager="user")
    async with CachedCluster(cluster) as cached:
        assert await counting.names(cached, "blue") == ["c0", "c10"]
        assert len({*counting.looks}) == 20
        counting.looks.clear()
        assert await counting.names(cached, "blue") == ["c0", "c10"]
        assert counting.looks == []
        await cached.patch(ObjectKey("v1", "ConfigMap", "c0", "shop"), {"data": {"color": "red"}}, PATCH)
        assert await counting.names(cached, "blue") == ["c10"]
        await cached.delete(ObjectKey("v1", "ConfigMap", "c10", "shop"))
        assert await counting.names(cached, "blue") == []
        assert len(await counting.names(cached, "red")) == 19


async def test_an_object_for_which_the_function_fails_has_no_key(caplog: pytest.LogCaptureFixture) -> None:
    cluster, counting = EmbeddedCluster(namespaces=["shop"]), Counting()
    await cluster.create(config_map("good", color="red"), field_manager="user")
    broken = config_map("broken")
    del broken["data"]
    async with CachedCluster(cluster) as cached:
        assert await counting.names(cached, "red") == ["good"]
        await cluster.create(broken, field_manager="user")
        await cluster.create(config_map("later", color="red"), field_manager="user")
        await eventually(lambda: counting.names(cached, "red"), lambda found: found == ["good", "later"], interval=0)
    assert "an index has no keys for ConfigMap shop/broken" in caplog.text


async def test_a_kind_of_which_only_metadata_is_held_is_listed_as_a_whole() -> None:
    cluster, counting = EmbeddedCluster(namespaces=["shop"]), Counting()
    for name, color in (("a", "red"), ("b", "blue")):
        await cluster.create(config_map(name, color=color), field_manager="user")
    needs = {("v1", "ConfigMap"): lambda live: live == metadata_of(live)}
    async with CachedCluster(cluster, needs_content=needs) as cached:
        assert len((await cached.list("v1", "ConfigMap", ListOptions(metadata_only=True))).items) == 2
        # At once, before all of the kind is held, and from then on.
        for _ in range(3):
            assert await counting.names(cached, "red") == ["a"]

        async def requests() -> int:
            cluster.requests.clear()
            assert await counting.names(cached, "red") == ["a"]
            return cluster.requests.reads

        await eventually(requests, lambda count: count == 0, interval=0)
