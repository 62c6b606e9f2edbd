"""Responses contain only plain JSON types, as if they had come over the network."""

from typing import Any

import pytest

from ocf.cluster import PatchOptions, PatchType, Subresource
from ocf.objects import ObjectKey
from ocf_server import CustomKind, EmbeddedCluster

WEB = ObjectKey("apps/v1", "Deployment", "web", "default")


def types(value: Any) -> set[type]:
    if isinstance(value, dict):
        return {dict}.union(*map(types, value.values()), *map(types, value))
    if isinstance(value, list):
        return {list}.union(*map(types, value))
    return {type(value)}


@pytest.mark.parametrize("subresource", [None, Subresource.STATUS, Subresource.SCALE])
async def test_a_response_contains_only_json_types(subresource: Subresource | None) -> None:
    cluster = EmbeddedCluster()
    containers = [{"name": "web", "image": "web:1"}]
    template = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": containers}}
    spec = {"selector": {"matchLabels": {"app": "web"}}, "template": template}
    web = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "default"},
        "spec": spec,
    }
    await cluster.apply(web, field_manager="us")
    change = {"status": {"replicas": 2}} if subresource is Subresource.STATUS else {"spec": {"replicas": 2}}
    await cluster.patch(
        WEB, change, PatchOptions(patch_type=PatchType.MERGE, field_manager="controller", subresource=subresource)
    )
    assert types(await cluster.get(WEB)) <= {dict, list, str, int, bool, type(None)}


async def test_parts_shared_in_a_request_are_separate_in_the_response() -> None:
    cluster = EmbeddedCluster(kinds=[CustomKind("example.com", "v1", "Shop")])
    shared = {"color": "red"}
    shop = {
        "apiVersion": "example.com/v1",
        "kind": "Shop",
        "metadata": {"name": "corner", "namespace": "default"},
        "spec": {"door": shared, "roof": shared},
    }
    await cluster.create(shop, field_manager="us")
    live = await cluster.get(ObjectKey.of(shop))
    live["spec"]["door"]["color"] = "blue"
    assert live["spec"]["roof"] == {"color": "red"}
