"""Equal runs have equal snapshots, different runs have different ones."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from ocf.cluster import PatchOptions, PatchType, Subresource
from ocf.objects import Manifest, ObjectKey
from ocf.testing import VirtualClock, snapshot
from ocf.testing.snapshots import differences
from ocf_server import ControllerSettings, CustomKind, EmbeddedCluster

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from tests.testing.conftest import Operator

KINDS = [("apps/v1", "Deployment"), ("autoscaling/v2", "HorizontalPodAutoscaler"), ("example.com/v1", "Shop")]


@pytest.fixture
def run(operator: Operator) -> Callable[..., Awaitable[EmbeddedCluster]]:
    """Run the operator in a cluster with different uids, versions and times."""

    async def make(*, extra: int = 0) -> EmbeddedCluster:
        operator.clock.advance(timedelta(hours=extra))
        cluster = await operator.new_cluster()
        for number in range(extra):
            metadata = {"name": f"x{number}", "namespace": "shop"}
            await cluster.create({"apiVersion": "v1", "kind": "Secret", "metadata": metadata}, field_manager="other")
        await operator.reconcile(cluster)
        return cluster

    return make


async def test_uids_versions_and_times_are_masked(run: Callable[..., Awaitable[EmbeddedCluster]]) -> None:
    one, other = await run(), await run(extra=3)
    web = ObjectKey("apps/v1", "Deployment", "web", "shop")
    assert (await one.get(web))["metadata"]["uid"] != (await other.get(web))["metadata"]["uid"]
    assert await snapshot(one, KINDS) == await snapshot(other, KINDS)


async def test_every_object_of_the_kinds_is_in_it_and_no_other(run: Callable[..., Awaitable[EmbeddedCluster]]) -> None:
    found = await snapshot(await run(extra=1), [*KINDS, ("example.com/v1", "NotServed")])
    assert list(found) == [
        "apps/v1/Deployment/shop/web",
        "autoscaling/v2/HorizontalPodAutoscaler/shop/web",
        "example.com/v1/Shop/shop/demo",
    ]


async def test_a_uid_is_replaced_by_the_name_of_its_object_everywhere(
    run: Callable[..., Awaitable[EmbeddedCluster]],
) -> None:
    web = (await snapshot(await run(), KINDS))["apps/v1/Deployment/shop/web"]
    owner = "uid of example.com/v1/Shop/shop/demo"
    (entry,) = web["metadata"]["managedFields"]
    assert web["metadata"]["ownerReferences"][0]["uid"] == owner
    assert entry["manager"] == f"ocf/Shop/web/{owner}"
    assert f'k:{{"uid":"{owner}"}}' in entry["fieldsV1"]["f:metadata"]["f:ownerReferences"]


async def test_an_address_of_a_pod_is_replaced_by_its_name_and_that_of_a_node_is_not() -> None:
    """The built-in controllers derive it from the uid, and a real node gives any."""
    shown = []
    for seed in (1, 2):
        cluster = EmbeddedCluster(seed=seed)
        for name, own in (("web", False), ("proxy", True)):
            spec = {"hostNetwork": own, "containers": [{"name": "a", "image": "a:1"}]}
            metadata = {"name": name, "namespace": "default"}
            await cluster.create(
                {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}, field_manager="me"
            )
        await cluster.controllers(ControllerSettings(ready_after=timedelta(0))).settle()
        raw = await cluster.get(ObjectKey("v1", "Pod", "web", "default"))
        shown.append((raw["status"]["podIP"], await snapshot(cluster, [("v1", "Pod")])))
    assert shown[0][0] != shown[1][0]
    assert shown[0][1] == shown[1][1]
    web, proxy = (shown[0][1][f"v1/Pod/default/{name}"]["status"] for name in ("web", "proxy"))
    assert web["podIPs"] == [{"ip": "address of v1/Pod/default/web"}]
    assert proxy["podIP"] == proxy["hostIP"] == web["hostIP"]


async def test_a_uid_of_an_unknown_object_is_masked_as_such(
    cluster: EmbeddedCluster, settings: Callable[..., Manifest]
) -> None:
    await cluster.create(settings(a="owned by 01234567-89ab-cdef-0123-456789abcdef"), field_manager="me")
    found = await snapshot(cluster, [("v1", "ConfigMap")])
    assert found["v1/ConfigMap/shop/settings"]["data"] == {"a": "owned by uid of nothing that was read"}


@pytest.mark.parametrize(
    ("patch", "shown"),
    [
        pytest.param({"spec": {"replicas": 5}}, "+  replicas: 5", id="a value"),
        pytest.param({"metadata": {"labels": {"a": "b"}}}, "+    a: b", id="a label"),
        pytest.param({"metadata": {"ownerReferences": None}}, "-  ownerReferences:", id="an owner"),
    ],
)
async def test_a_difference_is_shown(
    run: Callable[..., Awaitable[EmbeddedCluster]], patch: dict[str, Any], shown: str
) -> None:
    one, other = await run(), await run()
    web = ObjectKey("apps/v1", "Deployment", "web", "shop")
    await other.patch(web, patch, PatchOptions(patch_type=PatchType.MERGE, field_manager="rival"))
    before, after = await snapshot(one, KINDS), await snapshot(other, KINDS)
    diff = differences(before, after, before_name="one", after_name="other")
    assert diff.splitlines()[:2] == [f"--- {web} (one)", f"+++ {web} (other)"]
    assert shown in diff.splitlines()


async def test_a_missing_object_is_shown(run: Callable[..., Awaitable[EmbeddedCluster]]) -> None:
    one, other = await run(), await run()
    await other.delete(ObjectKey("apps/v1", "Deployment", "web", "shop"))
    diff = differences(await snapshot(one, KINDS), await snapshot(other, KINDS), before_name="one", after_name="other")
    assert "-kind: Deployment" in diff.splitlines()
    assert "Shop" not in diff.split("\n@@")[0]


async def test_equal_snapshots_have_no_difference(run: Callable[..., Awaitable[EmbeddedCluster]]) -> None:
    found = await snapshot(await run(), KINDS)
    assert differences(found, found, before_name="one", after_name="other") == ""


async def test_the_order_in_which_managers_and_keys_came_makes_no_difference(
    operator: Operator, settings: Callable[..., Manifest]
) -> None:
    found = []
    for names, extra in (("ab", {}), ("ba", {"c": "1"})):
        cluster = await operator.new_cluster()
        for name in names:
            operator.clock.advance(timedelta(minutes=1))
            await cluster.apply(settings(**{name: "1"}), field_manager=name)
        await cluster.patch(
            ObjectKey.of(settings()), {"data": extra}, PatchOptions(patch_type=PatchType.MERGE, field_manager="c")
        )
        found.append(await snapshot(cluster, [("v1", "ConfigMap")]))
    diff = differences(*found, before_name="one", after_name="other").splitlines()
    assert [line for line in diff if line.startswith("-")] == ["--- v1/ConfigMap/shop/settings (one)"]
    assert "+  c: '1'" in diff


@pytest.mark.parametrize(
    ("other", "is_equal"),
    [
        pytest.param([{"type": "B", "status": "True"}, {"type": "A", "status": "True"}], True, id="another order"),
        pytest.param([{"type": "B", "status": "True"}, {"type": "A", "status": "False"}], False, id="another status"),
        pytest.param([{"type": "A", "status": "True"}], False, id="one less"),
        pytest.param([{"type": "B", "status": "True"}, "A"], False, id="no condition"),
    ],
)
async def test_the_order_in_which_conditions_came_makes_no_difference(other: list[Any], *, is_equal: bool) -> None:
    found = []
    for conditions in ([{"type": "A", "status": "True"}, {"type": "B", "status": "True"}], other):
        cluster = EmbeddedCluster(kinds=[CustomKind("example.com", "v1", "Shop")], namespaces=["shop"])
        shop = {"apiVersion": "example.com/v1", "kind": "Shop", "metadata": {"name": "corner", "namespace": "shop"}}
        stored = await cluster.create(shop, field_manager="me")
        stored["status"] = {"conditions": conditions}
        await cluster.update(stored, field_manager="me", subresource=Subresource.STATUS)
        found.append(await snapshot(cluster, [("example.com/v1", "Shop")]))
    assert (differences(*found, before_name="one", after_name="other") == "") is is_equal


async def test_secrets_are_redacted(clock: VirtualClock) -> None:
    cluster = EmbeddedCluster(namespaces=["shop"], now=clock.now)
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a", "namespace": "shop"}}
    await cluster.create({**secret, "stringData": {"token": "hunter2"}}, field_manager="me")
    found = await snapshot(cluster, [("v1", "Secret")])
    assert found["v1/Secret/shop/a"]["data"]["token"].startswith("redacted, sha256 ")
