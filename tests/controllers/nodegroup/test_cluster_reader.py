"""What a reconcile reads is parsed once per version of an object, and its memory does not grow with deleted pods."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from ocf.cluster import DeleteOptions, PatchOptions, PatchType
from ocf.cluster.cache import CachedCluster
from ocf.controllers.nodegroup import node_definition, node_group_definition
from ocf.controllers.nodegroup.cluster_reader import ObjectReader
from ocf.nodegroups.snapshot import Shapes, SnapshotPod
from ocf.objects import Manifest, ObjectKey
from ocf_server import EmbeddedCluster

if TYPE_CHECKING:
    import pytest


def pod(name: str, *, app: str = "web", **spec: Any) -> Manifest:
    container = {"name": "app", "image": "app:1", "resources": {"requests": {"cpu": "1"}}}
    metadata = {"name": name, "namespace": "default", "labels": {"app": app}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": {"containers": [container], **spec},
    }


async def cluster_with(*pods: Manifest) -> EmbeddedCluster:
    cluster = EmbeddedCluster()
    for each in (node_group_definition(), node_definition(), *pods):
        await cluster.create(each, field_manager="user")
    return cluster


def test_pods_that_have_not_changed_are_the_same_objects() -> None:
    async def scenario() -> None:
        reader = ObjectReader()
        async with CachedCluster(await cluster_with(pod("a"), pod("b"))) as cached:
            first = await reader.read(cached)
            again = await reader.read(cached)
            assert again.core.pods is first.core.pods
            assert again.core.pod_table is first.core.pod_table
            options = PatchOptions(patch_type=PatchType.MERGE, field_manager="user")
            await cached.patch(
                ObjectKey("v1", "Pod", "a", "default"), {"metadata": {"labels": {"app": "api"}}}, options
            )
            changed = await reader.read(cached)
        assert changed.core.pods[1] is first.core.pods[1]
        assert changed.core.pod_table.by_key["default/a"].shape.label_map == {"app": "api"}

    asyncio.run(scenario())


def test_shapes_that_no_pod_has_any_more_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ocf.controllers.nodegroup.cluster_reader._FEW_SHAPES", 2)
    read: list[Shapes] = []
    original = SnapshotPod.of

    def recording(manifest: Manifest, shapes: Shapes | None = None) -> SnapshotPod:
        assert shapes is not None
        read[:] = [shapes]
        return original(manifest, shapes=shapes)

    monkeypatch.setattr(SnapshotPod, "of", recording)

    async def scenario() -> None:
        reader = ObjectReader()
        async with CachedCluster(await cluster_with()) as cached:
            for number in range(10):
                await cached.create(pod(f"p-{number}", app=f"app-{number}"), field_manager="user")
                await reader.read(cached)
                key = ObjectKey("v1", "Pod", f"p-{number}", "default")
                await cached.delete(key, DeleteOptions(grace_period_seconds=0))

    asyncio.run(scenario())
    assert len(read[0]) <= 4
