"""Cluster IPs and node ports of Services."""

from typing import Any

from ocf.cluster import PatchOptions, PatchType
from ocf.embedded import EmbeddedCluster
from ocf.objects import Manifest, ObjectKey


def service(name: str = "web", **spec: Any) -> Manifest:
    metadata = {"name": name, "namespace": "shop"}
    return {"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": {"ports": [{"port": 80}], **spec}}


async def spec_of(cluster: EmbeddedCluster, manifest: Manifest) -> dict[str, Any]:
    spec: dict[str, Any] = (await cluster.apply(manifest, field_manager="ours"))["spec"]
    return spec


async def test_every_service_gets_another_cluster_ip(cluster: EmbeddedCluster) -> None:
    specs = [await spec_of(cluster, service(name)) for name in ("a", "b")]

    assert [spec["clusterIP"] for spec in specs] == ["10.96.0.1", "10.96.0.2"]
    assert specs[0]["clusterIPs"] == ["10.96.0.1"]


async def test_a_headless_service_gets_no_cluster_ip(cluster: EmbeddedCluster) -> None:
    spec = await spec_of(cluster, service(clusterIP="None", selector={"app": "web"}))

    assert (spec["clusterIP"], spec["clusterIPs"], spec["ipFamilyPolicy"]) == ("None", ["None"], "SingleStack")


async def test_an_update_keeps_cluster_ip_and_node_ports(cluster: EmbeddedCluster) -> None:
    before = await spec_of(cluster, service(type="NodePort"))
    after = (await cluster.update(service(type="NodePort"), field_manager="other"))["spec"]

    assert after == before
    assert before["ports"][0]["nodePort"] == 30000


async def test_allocated_fields_have_no_owner(cluster: EmbeddedCluster) -> None:
    stored = await cluster.create(service(type="NodePort"), field_manager="ours")

    owned = stored["metadata"]["managedFields"][0]["fieldsV1"]["f:spec"]
    assert "f:clusterIP" not in owned
    assert "f:nodePort" not in owned["f:ports"]['k:{"port":80,"protocol":"TCP"}']


async def test_released_values_are_allocated_again(cluster: EmbeddedCluster) -> None:
    await spec_of(cluster, service("a", type="NodePort"))
    patch = {"spec": {"type": "ExternalName", "externalName": "example.com"}}
    key = ObjectKey("v1", "Service", "a", "shop")
    released = await cluster.patch(key, patch, PatchOptions(patch_type=PatchType.MERGE, field_manager="other"))
    other = await spec_of(cluster, service("b", type="NodePort"))

    assert "clusterIP" not in released["spec"]
    assert "nodePort" not in released["spec"]["ports"][0]
    assert (other["clusterIP"], other["ports"][0]["nodePort"]) == ("10.96.0.1", 30000)
