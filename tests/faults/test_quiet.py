"""Faults: without a change no request is sent; a change by another actor is reverted by exactly one write."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest

from ocf import component
from ocf.cluster import ApplyCache, Cluster, Verb
from ocf.cluster.cache import CachedCluster
from ocf.component import Result, reconciling
from ocf.concepts import Resource
from ocf.errors import NotFoundError
from ocf.objects import Manifest, ObjectKey, copy_json
from ocf.primitives import deployment, hpa
from ocf.testing import InterceptingCluster, RecordingCluster, assert_quiet

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from ocf.cluster import Request
    from tests.faults.conftest import Operator

RECORDED: Final = json.loads((Path(__file__).parent / "recorded" / "defaults.json").read_text())
KINDS: Final = ["ConfigMap", "Deployment", "HorizontalPodAutoscaler", "Service", "PodDisruptionBudget", "ClusterRole"]
# Manual edits of each object: of a field that the component declares, and of fields that it does not declare.
OURS: Final[dict[str, Manifest]] = {
    "ConfigMap": {"data": {"greeting": "go away"}},
    "Deployment": {"spec": {"template": {"spec": {"containers": [{"name": "web", "image": "evil:1"}]}}}},
    "HorizontalPodAutoscaler": {"spec": {"maxReplicas": 99}},
    "Service": {"spec": {"selector": {"app": "other"}}},
    "PodDisruptionBudget": {"spec": {"minAvailable": 3}},
    "ClusterRole": {"rules": []},
}
THEIRS: Final[Manifest] = {"metadata": {"annotations": {"example.com/ticket": "4711"}, "labels": {"team": "shop"}}}


@pytest.fixture
def keys(operator: Operator) -> dict[str, ObjectKey]:
    return {key.kind: key for key in operator.keys}


class TestNothingChanges:
    @pytest.mark.promise("no-write", runs="1 020 reconciles of 34 owners with 204 objects")
    @pytest.mark.promise("no-read", runs="1 020 reconciles of 34 owners with 204 objects")
    async def test_a_thousand_reconciles_of_two_hundred_objects_send_no_request(
        self, new_operator: Callable[..., Operator]
    ) -> None:
        """The reconciles alternate between the owners and read from a cache."""
        shops = [new_operator(namespace=f"shop-{number}") for number in range(34)]
        cluster = await shops[0].new_cluster()
        for shop in shops[1:]:
            await cluster.create(namespaced(shop.owner.namespace), field_manager="user")
            await shop.open(cluster)
        async with CachedCluster(cluster) as cached:
            for shop in shops:
                await shop.settle(cluster, cached)
                assert (await shop.condition(cluster))["reason"] == "Healthy"
            stored = len(
                [item for key in shops[0].keys for item in (await cluster.list(key.api_version, key.kind)).items]
            )
            cluster.requests.clear()
            for _ in range(30):
                for shop in shops:
                    await shop.reconcile(cached)
            assert (cluster.requests.reads, cluster.requests.writes, stored) == (0, 0, 204)

    @pytest.mark.promise("no-write", runs="200 reconciles of six objects, each by a new process")
    async def test_a_new_process_sends_no_write_either(self, operator: Operator) -> None:
        """An empty apply cache after a restart causes no additional write."""
        cluster = await operator.at_rest()
        for _ in range(200):
            await operator.reconcile(RecordingCluster(cluster, apply_cache=ApplyCache()))
        assert cluster.requests.writes == 0


class Recorded(InterceptingCluster):
    """A cluster that returns one object as a real API server stored it."""

    def __init__(self, cluster: Cluster, stored: Manifest) -> None:
        super().__init__(cluster, apply_cache=ApplyCache())
        self._stored = stored

    async def intercept(self, request: Request, send: Callable[[], Awaitable[Any]]) -> Any:
        if request.kind == self._stored["kind"]:
            return copy_json(self._stored)
        return await send()


class TestDefaults:
    @pytest.mark.promise(
        "defaults", runs="Deployment and HorizontalPodAutoscaler, as a 1.36 API server stored them, 10 reconciles each"
    )
    @pytest.mark.parametrize("row", [pytest.param(row, id=row["title"]) for row in RECORDED])
    async def test_defaults_and_normalized_values_of_a_server_are_not_a_change(
        self, operator: Operator, row: Manifest
    ) -> None:
        """The recording contains the applied and the stored object; no reconcile finds a difference between the two."""
        cluster = await operator.new_cluster()
        uid = (await cluster.get(operator.owner))["metadata"]["uid"]
        stored: Manifest = copy_json(row["stored"])
        for entry in stored["metadata"]["managedFields"]:
            entry["manager"] = f"ocf/Shop/web/{uid}"
        resource = built(row["sent"])
        alone = component.Builder("web", condition_type="WebReady").with_resource(resource, unowned=True).unpublished()

        async def reconcile(seen: Cluster) -> Result:
            async with reconciling(await seen.get(operator.owner), seen) as context:
                return await alone.build().reconcile(context)

        await assert_quiet(Recorded(cluster, stored), reconcile)
        if "template" in stored["spec"]:
            stored["spec"]["template"]["spec"]["containers"][0]["image"] = "other"
        else:
            stored["spec"]["maxReplicas"] = 99
        with pytest.raises(AssertionError, match=r"because of spec\.(maxReplicas|template.*image): changed"):
            await assert_quiet(Recorded(cluster, stored), reconcile)


class TestManualChanges:
    @pytest.mark.promise("deleted-by-hand", runs="each of six resources")
    @pytest.mark.parametrize("kind", KINDS)
    async def test_an_object_deleted_by_hand_is_created_by_one_reconcile(
        self, operator: Operator, keys: dict[str, ObjectKey], kind: str
    ) -> None:
        cluster = await operator.at_rest()
        before = await operator.state(cluster)
        await cluster.delete(keys[kind])
        with pytest.raises(NotFoundError):
            await cluster.get(keys[kind])
        cluster.requests.clear()

        await operator.reconcile(cluster)
        assert [request.kind for request in cluster.requests.of(Verb.APPLY)] == [kind]
        assert await operator.read(cluster, keys[kind]) is not None
        await operator.settle(cluster)
        assert [*(await operator.state(cluster))] == [*before]
        assert await operator.condition(cluster) | {"lastTransitionTime": ""} == {
            "type": "WebReady",
            "status": "True",
            "reason": "Healthy",
            "message": "Component is healthy.",
            "observedGeneration": 1,
            "lastTransitionTime": "",
        }

    @pytest.mark.promise("edited-by-hand", runs="each of six resources")
    @pytest.mark.parametrize("kind", KINDS)
    async def test_a_field_edited_by_hand_is_reverted_by_one_write(
        self, operator: Operator, keys: dict[str, ObjectKey], kind: str
    ) -> None:
        """Fields of other managers, and fields without a manager, stay unchanged."""
        cluster = await operator.at_rest()
        await operator.change(cluster, keys[kind], **THEIRS)
        before = content(await cluster.get(keys[kind]))
        await operator.change(cluster, keys[kind], **OURS[kind])
        assert content(await cluster.get(keys[kind])) != before
        cluster.requests.clear()

        await operator.reconcile(cluster)
        sent = [(request.verb, request.kind) for request in cluster.requests if not request.verb.is_read]
        assert sent[:1] == [(Verb.APPLY, kind)]
        assert sent[1:] in ([], [(Verb.UPDATE, "Shop")])
        assert content(await cluster.get(keys[kind])) == before


def namespaced(name: str) -> Manifest:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}


def built(manifest: Manifest) -> Resource:
    if manifest["kind"] == "Deployment":
        return deployment.Builder(manifest).build()
    return hpa.Builder(manifest).build()


def content(manifest: Manifest) -> Manifest:
    """Return an object without generation, resource version, managed fields and status."""
    ignored = ("generation", "managedFields", "resourceVersion")
    metadata = {key: value for key, value in manifest["metadata"].items() if key not in ignored}
    return {**manifest, "metadata": metadata, "status": None}
