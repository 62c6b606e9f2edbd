"""Nothing has changed, so nothing is sent; something has, so exactly that is mended."""

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
# What somebody may do to each object by hand: to a field of ours, and to one that we do not declare.
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
    @pytest.mark.promise("no-write", runs="1 020 passes over 34 owners with 204 objects")
    @pytest.mark.promise("no-read", runs="1 020 passes over 34 owners with 204 objects")
    async def test_a_thousand_passes_over_two_hundred_objects_ask_nothing(
        self, new_operator: Callable[..., Operator]
    ) -> None:
        """The passes take turns over the owners, through a cache."""
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

    @pytest.mark.promise("no-write", runs="200 passes over six objects, each by a new process")
    async def test_a_process_without_memory_writes_as_little(self, operator: Operator) -> None:
        """What an operator knows by heart saves it no write that its successor would have to send."""
        cluster = await operator.at_rest()
        for _ in range(200):
            await operator.reconcile(RecordingCluster(cluster, apply_cache=ApplyCache()))
        assert cluster.requests.writes == 0


class Recorded(InterceptingCluster):
    """A cluster that has one object as a real API server stored it."""

    def __init__(self, cluster: Cluster, stored: Manifest) -> None:
        super().__init__(cluster, apply_cache=ApplyCache())
        self._stored = stored

    async def intercept(self, request: Request, send: Callable[[], Awaitable[Any]]) -> Any:
        if request.kind == self._stored["kind"]:
            return copy_json(self._stored)
        return await send()


class TestDefaults:
    @pytest.mark.promise(
        "defaults", runs="Deployment and HorizontalPodAutoscaler, as a 1.36 API server stored them, 10 passes each"
    )
    @pytest.mark.parametrize("row", [pytest.param(row, id=row["title"]) for row in RECORDED])
    async def test_what_a_server_adds_or_spells_differently_is_no_change(
        self, operator: Operator, row: Manifest
    ) -> None:
        """What was sent and what a real server made of it is recorded; no pass finds a difference between the two."""
        cluster = await operator.new_cluster()
        uid = (await cluster.get(operator.owner))["metadata"]["uid"]
        stored: Manifest = copy_json(row["stored"])
        for entry in stored["metadata"]["managedFields"]:
            entry["manager"] = f"Shop/web/{uid}"
        resource = built(row["sent"])
        alone = component.Builder("web", condition_type="WebReady").with_resource(resource, unowned=True).unpublished()

        async def reconcile(seen: Cluster) -> Result:
            async with reconciling(await seen.get(operator.owner), seen) as context:
                return await alone.build().reconcile(context)

        # What is defaulted inside a value that the server only keeps whole is learnt from one answer.
        recorded = Recorded(cluster, stored)
        assert (await reconcile(recorded)).writes == row["learns"]
        await assert_quiet(recorded, reconcile)
        if "template" in stored["spec"]:
            stored["spec"]["template"]["spec"]["containers"][0]["image"] = "other"
        else:
            stored["spec"]["maxReplicas"] = 99
        with pytest.raises(AssertionError, match=r"because of spec\.(maxReplicas|template.*image): changed"):
            await assert_quiet(Recorded(cluster, stored), reconcile)


class TestSomebodyInterferes:
    @pytest.mark.promise("deleted-by-hand", runs="each of six resources")
    @pytest.mark.parametrize("kind", KINDS)
    async def test_what_was_deleted_by_hand_is_back_after_one_pass(
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
    async def test_what_was_edited_by_hand_is_repaired_by_one_write(
        self, operator: Operator, keys: dict[str, ObjectKey], kind: str
    ) -> None:
        """What belongs to others, or to nobody, stays as they have left it."""
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
    """Return an object without what the server counts, and without who owns what."""
    ignored = ("generation", "managedFields", "resourceVersion")
    metadata = {key: value for key, value in manifest["metadata"].items() if key not in ignored}
    return {**manifest, "metadata": metadata, "status": None}
