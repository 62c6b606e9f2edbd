"""Our own client on the embedded cluster; those of other projects are in `tests/clients`."""

from pathlib import Path

import pytest

from ocf.cluster import ListOptions, PatchOptions, PatchType, Subresource
from ocf.cluster.cache import CachedCluster
from ocf.cluster.client import ApiServerCluster
from ocf.errors import ConflictError, NotFoundError
from ocf.objects import Manifest, ObjectKey
from ocf_server import EmbeddedCluster
from ocf_server.http import write_kubeconfig
from ocf_server.http.server import HttpServer
from tests.support import eventually

WEB = ObjectKey("apps/v1", "Deployment", "web", "shop")


def deployment(replicas: int) -> Manifest:
    template = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "web", "image": "web:1"}]}}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "shop"},
        "spec": {"replicas": replicas, "selector": {"matchLabels": {"app": "web"}}, "template": template},
    }


@pytest.fixture
def kubeconfig(server: HttpServer, tmp_path: Path) -> str:
    path = tmp_path / "kubeconfig"
    write_kubeconfig(server.kubeconfig(), path)
    return str(path)


async def test_our_client_works_as_with_a_real_api_server(kubeconfig: str, cluster: EmbeddedCluster) -> None:
    async with await ApiServerCluster.connect(kubeconfig) as client:
        await client.apply(deployment(3), field_manager="us")
        scale = {"spec": {"replicas": 5}}
        await client.patch(
            WEB, scale, PatchOptions(patch_type=PatchType.MERGE, field_manager="them", subresource=Subresource.SCALE)
        )
        with pytest.raises(ConflictError) as caught:
            await client.apply(deployment(3), field_manager="us")
        assert caught.value.causes[0].message == 'conflict with "them" with subresource "scale" using apps/v1'
        assert (await client.get(WEB))["spec"]["replicas"] == 5
        await client.delete(WEB)
        with pytest.raises(NotFoundError):
            await client.get(WEB)
        listed = await client.list("v1", "Namespace", ListOptions(limit=2))
        assert len(listed.items) == 2
        rest = await client.list("v1", "Namespace", ListOptions(limit=50, continue_token=listed.continue_token))
        assert {item["metadata"]["name"] for item in (*listed.items, *rest.items)} >= {"default", "shop"}
    assert cluster.requests.changes == 3


async def test_a_cache_gets_changes_over_http(kubeconfig: str, cluster: EmbeddedCluster) -> None:
    """Writes of another client arrive by the watch."""
    async with await ApiServerCluster.connect(kubeconfig) as client, CachedCluster(client) as cached:
        await cluster.create(deployment(1), field_manager="them")
        assert (await cached.get(WEB))["spec"]["replicas"] == 1
        changed = {"spec": {"replicas": 7}}
        await cluster.patch(WEB, changed, PatchOptions(patch_type=PatchType.MERGE, field_manager="them"))
        await eventually(lambda: cached.get(WEB), lambda live: live["spec"]["replicas"] == 7)
