"""`PodIndex`: the pods that a cluster lists, parsed once per resource version and only where they are selected."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hypothesis import given
from hypothesis import strategies as st

from ocf.autoscaling.algorithm import Pod
from ocf.cluster.cache import CachedCluster
from ocf.controllers.hpa.snapshot.pods import PodIndex, list_pods
from ocf.objects import Manifest, ObjectKey
from ocf.objects.selectors import LabelSelector
from ocf.testing import run_in_virtual_time
from ocf_server import EmbeddedCluster
from tests.controllers.hpa.snapshot.conftest import Shop

if TYPE_CHECKING:
    import pytest

WEB = LabelSelector.parse("app=web")
SELECTORS = [LabelSelector.parse(text) for text in ("app=web", "app in (web,db),tier", "!tier", "")]
NAMES, APPS = st.sampled_from(["a", "b", "c"]), st.sampled_from(["web", "db"])
CHANGES = st.lists(
    st.tuples(st.sampled_from(["shop", "blog"]), NAMES, APPS | st.none(), st.booleans()), min_size=1, max_size=12
)


def pod(name: str, namespace: str, labels: dict[str, str], cpu: str = "100m") -> Manifest:
    container = {"name": "app", "image": "app", "resources": {"requests": {"cpu": cpu}}}
    metadata = {"name": name, "namespace": namespace, "labels": labels}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": [container]}}


async def selected(index: PodIndex, namespace: str, selector: LabelSelector) -> list[Pod]:
    found = index.namespace(namespace)
    assert found is not None
    return found.select(selector)


@given(CHANGES)
def test_the_index_has_what_a_list_has_after_any_changes(changes: list[tuple[str, str, str | None, bool]]) -> None:
    async def scenario() -> None:
        cluster = EmbeddedCluster(namespaces=("shop", "blog"))
        async with CachedCluster(cluster) as cached:
            await cached.cache("v1", "Pod")
            index = PodIndex(cached)
            for namespace, name, app, tier in changes:
                key = ObjectKey("v1", "Pod", name, namespace)
                if app is None:
                    await cached.apply(pod(name, namespace, {}), field_manager="user", force=True)
                    await cached.delete(key)
                else:
                    labels = {"app": app} | ({"tier": "front"} if tier else {})
                    await cached.apply(pod(name, namespace, labels), field_manager="user", force=True)
                for selector in SELECTORS:
                    await cached.list("v1", "Pod")  # the deletion has arrived
                    expected = (await list_pods(cluster, namespace)).select(selector)
                    assert await selected(index, namespace, selector) == expected

    run_in_virtual_time(scenario())


async def test_a_pod_is_parsed_once_per_resource_version(shop: Shop) -> None:
    await shop.workload("web", replicas=2)
    async with CachedCluster(shop.cluster) as cached:
        await cached.cache("v1", "Pod")
        index = PodIndex(cached)
        first = await selected(index, "shop", WEB)
        assert [one.name for one in first] == ["web-0", "web-1"]
        again = await selected(index, "shop", WEB)
        assert all(one is other for one, other in zip(first, again, strict=True))
        live = await cached.get(ObjectKey("v1", "Pod", "web-1", "shop"))
        await cached.update({**live, "metadata": {**live["metadata"], "annotations": {"a": "b"}}}, field_manager="user")
        changed = await selected(index, "shop", WEB)
        assert (changed[0] is first[0], changed[1] is first[1]) == (True, False)


async def test_pods_that_are_not_selected_are_not_parsed(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    await shop.workload("web", replicas=2)
    for number in range(50):
        await shop.pod(f"job-{number}", {"app": "job"})
    parsed: list[str] = []
    whole = Pod.of

    def counted(manifest: Manifest) -> Pod:
        parsed.append(manifest["metadata"]["name"])
        return whole(manifest)

    monkeypatch.setattr(Pod, "of", counted)
    async with CachedCluster(shop.cluster) as cached:
        await cached.cache("v1", "Pod")
        index = PodIndex(cached)
        for _ in range(3):
            assert len(await selected(index, "shop", WEB)) == 2
    assert parsed == ["web-0", "web-1"]


async def test_without_an_answer_of_the_cache_there_is_no_index(shop: Shop) -> None:
    async with CachedCluster(shop.cluster) as cached:
        assert PodIndex(cached).namespace("shop") is None
