"""An owner of an operator that is written with ocf, as that operator leaves it in a cluster."""

from __future__ import annotations

import asyncio
from datetime import datetime
from typing import Any, Final

from ocf import component
from ocf.cluster import PatchOptions, PatchType
from ocf.component import Component
from ocf.objects import ObjectKey
from ocf.ownership import OwnerExplanation, TreeNode
from ocf.primitives import clusterrole, deployment
from ocf.runtime.crds import CamelModel, CustomResource
from ocf.runtime.operator import ManagerOptions, Operator, OwnerType, running
from ocf.testing import LoopClock, run_in_virtual_time
from ocf_server import EmbeddedCluster
from tests.ownership.world import Town

CORNER: Final = ObjectKey("example.com/v1", "Shop", "corner", "town")
WEB: Final = ObjectKey("apps/v1", "Deployment", "corner", "town")
POD_SPEC: Final = "spec: {template: {spec: {containers: [{name: app, image: web}]}}}"


class ShopSpec(CamelModel):
    suspended: bool = False
    size: int = 1


class Shop(CustomResource[ShopSpec], group="example.com", version="v1"):
    """A shop."""


def components(shop: Shop) -> list[Component]:
    if shop.spec.size < 1:
        raise ValueError("a shop has at least one room")
    web = component.Builder("web", owner=shop.key, condition_type="WebReady")
    rules = "metadata: {name: shop-corner}\nrules: [{apiGroups: [''], resources: [nodes], verbs: [list]}]"
    access = component.Builder("access", owner=shop.key, condition_type="AccessReady")
    return [
        web.with_resource(deployment.Builder(POD_SPEC)).suspend(shop.spec.suspended).build(),
        access.with_resource(clusterrole.Builder(rules)).build(),
    ]


OPERATOR: Final = Operator(name="shops", owner=OwnerType.of(Shop), components=components)


def explained(*patches: tuple[ObjectKey, dict[str, Any]]) -> OwnerExplanation:
    """Run the operator for an owner, change objects as users and controllers do, and explain the owner."""

    async def run() -> tuple[EmbeddedCluster, datetime]:
        clock = LoopClock()
        cluster = EmbeddedCluster(namespaces=["town"], now=clock.now)
        await cluster.create(Shop.definition(), field_manager="admin")
        shop = {"apiVersion": "example.com/v1", "kind": "Shop", "metadata": {"name": "corner", "namespace": "town"}}
        await cluster.create({**shop, "spec": {}}, field_manager="kubectl")
        async with running(cluster, OPERATOR, options=ManagerOptions(listen=None, clock=clock)):
            await asyncio.sleep(60)
            for key, change in patches:
                options = PatchOptions(patch_type=PatchType.MERGE, field_manager="kubectl")
                await cluster.patch(key, change, options)
                await asyncio.sleep(60)
        return cluster, clock.now()

    cluster, now = run_in_virtual_time(run())
    return asyncio.run(Town(cluster=cluster, now=now).explain())


def node(found: OwnerExplanation, *names: str) -> TreeNode:
    """Return a node by the names on its path."""
    place = found.root
    for name in names:
        place = next(each for each in place.children if each.name == name)
    return place


def test_components_with_their_conditions_and_objects_that_cannot_refer_to_the_owner() -> None:
    found = explained()
    assert [each.name for each in found.root.children] == ["component web", "component access"]
    assert node(found, "component web").text.startswith("WebReady=False (Creating)")
    assert node(found, "component access", "ClusterRole shop-corner").state == "ready"
    assert found.sentence.endswith("so Shop corner is not ready.")
    assert found.sentence.startswith("Deployment corner is not up to date: Waiting for deployment controller")


def test_a_user_who_writes_an_object_of_a_component_is_named() -> None:
    found = explained((WEB, {"spec": {"minReadySeconds": 5}}))
    assert node(found, "component web", "Deployment corner").writers == ("kubectl",)


def test_a_pause_is_named_with_its_annotation() -> None:
    found = explained((CORNER, {"metadata": {"annotations": {"shops.ocf.dev/paused": "true"}}}))
    assert found.sentence.startswith('Shop corner is paused by the annotation shops.ocf.dev/paused: "true" for')


def test_a_suspended_owner_is_ready_and_suspended() -> None:
    found = explained((CORNER, {"spec": {"suspended": True}}))
    assert found.sentence == "Shop corner is ready for 60 seconds, with 2 objects."
    assert found.remarks == ("It is suspended by the field spec.suspended: true.",)


def test_an_error_of_the_operator_itself_is_named() -> None:
    found = explained((CORNER, {"spec": {"size": 0}}))
    error = "Error: the function that returns the components failed: unexpected ValueError."
    assert found.sentence == f"Shop corner is not ready for 60 seconds: {error}"
