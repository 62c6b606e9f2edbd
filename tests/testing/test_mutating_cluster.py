"""A server that changes the sent objects: a component gets in sync with it, a naive operator fights it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from ocf.cluster import ApplyCache, Cluster, Subresource
from ocf.errors import NotFoundError
from ocf.objects import Manifest, ObjectKey, copy_json
from ocf.testing import MutatingCluster, RecordingCluster, assert_quiet

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from ocf_server import EmbeddedCluster
    from tests.testing.conftest import Operator


def use_mirror(manifest: Manifest) -> None:
    if manifest["kind"] == "Deployment":
        container = manifest["spec"]["template"]["spec"]["containers"][0]
        container["image"] = f"mirror/{container['image']}"


def mark(manifest: Manifest) -> None:
    manifest["data"] = {"marked": "yes"}


async def test_the_sent_object_is_changed_and_the_callers_manifest_is_not(
    cluster: EmbeddedCluster, settings: Callable[..., Manifest]
) -> None:
    rewriting = MutatingCluster(cluster, mark)
    writes: list[Callable[..., Awaitable[Manifest]]] = [rewriting.create, rewriting.apply]
    for number, write in enumerate(writes):
        sent = settings(f"a{number}", own="1")
        before = copy_json(sent)
        assert (await write(sent, field_manager="me"))["data"] == {"marked": "yes"}
        assert sent == before
    assert (await rewriting.update(settings("a0", own="2"), field_manager="me"))["data"] == {"marked": "yes"}


async def test_subresources_are_not_changed(cluster: EmbeddedCluster, operator: Operator) -> None:
    shop = await cluster.get(operator.shop)
    rewriting = MutatingCluster(cluster, lambda manifest: manifest.update(status={"spoilt": True}))
    await rewriting.update({**shop, "status": {"a": 1}}, field_manager="me", subresource=Subresource.STATUS)
    assert (await cluster.get(operator.shop))["status"] == {"a": 1}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web", "namespace": "shop"}}
    await cluster.create({**pod, "spec": {"containers": [{"name": "a", "image": "a:1"}]}}, field_manager="me")
    spoilt = MutatingCluster(cluster, lambda manifest: manifest.update(target={}))
    binding = {**pod, "target": {"kind": "Node", "name": "n1"}}
    await spoilt.create(binding, field_manager="me", subresource=Subresource.BINDING)
    assert (await cluster.get(ObjectKey.of(pod)))["spec"]["nodeName"] == "n1"


async def test_a_component_gets_in_sync(operator: Operator, cluster: EmbeddedCluster) -> None:
    rewriting = MutatingCluster(cluster, use_mirror)
    for _ in range(2):
        await operator.reconcile(rewriting)
    await assert_quiet(rewriting, operator.reconcile)


async def test_a_lost_apply_cache_costs_one_write(operator: Operator, cluster: EmbeddedCluster) -> None:
    await operator.reconcile(MutatingCluster(cluster, use_mirror))
    recorded = RecordingCluster(MutatingCluster(cluster, use_mirror, apply_cache=ApplyCache()))
    for _ in range(5):
        await operator.reconcile(recorded)
    applied = [write for write in recorded.writes if write.kind == "Deployment"]
    assert len(applied) == 1


async def test_an_operator_that_compares_with_the_stored_object_fights_for_ever(
    cluster: EmbeddedCluster, settings: Callable[..., Manifest]
) -> None:
    async def naive(cluster: Cluster) -> None:
        wanted = settings(own="1")
        try:
            live = await cluster.get(ObjectKey.of(wanted))
        except NotFoundError:
            live = {}
        if live.get("data") != wanted["data"]:
            await cluster.apply(wanted, field_manager="me")

    rewriting = MutatingCluster(cluster, mark)
    await naive(rewriting)
    with pytest.raises(AssertionError, match="10 of 10 resyncs wrote"):
        await assert_quiet(rewriting, naive)
