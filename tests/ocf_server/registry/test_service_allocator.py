"""Cluster IPs and node ports of Services."""

from typing import Any

import pytest

from ocf.cluster import PatchOptions, PatchType, Subresource
from ocf.errors import ApiError
from ocf.objects import Manifest, ObjectKey
from ocf_server import EmbeddedCluster


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


# The texts of a real API server (1.36.3); the recorded verdicts are dry runs, which do not check all of this.
@pytest.mark.parametrize(
    ("spec", "code", "message"),
    [
        pytest.param(
            {"clusterIP": "10.96.7.7"},
            422,
            'Service "web" is invalid: spec.clusterIPs: Invalid value: ["10.96.7.7"]: failed to allocate IP '
            "10.96.7.7: provided IP is already allocated",
            id="the cluster IP of another service",
        ),
        pytest.param(
            {"clusterIP": "10.96.0.0"},
            422,
            'Service "web" is invalid: spec.clusterIPs: Invalid value: ["10.96.0.0"]: failed to allocate IP '
            "10.96.0.0: the provided network does not match the current range",
            id="the address of the network",
        ),
        pytest.param(
            {"type": "NodePort", "ports": [{"port": 80, "nodePort": 20000}]},
            422,
            'Service "web" is invalid: spec.ports[0].nodePort: Invalid value: 20000: provided port is not in the valid '
            "range. The range of valid ports is 30000-32767",
            id="a node port outside of the range",
        ),
        pytest.param(
            {"type": "NodePort", "ports": [{"port": 80, "nodePort": 30100}]},
            422,
            'Service "web" is invalid: spec.ports[0].nodePort: Invalid value: 30100: provided port is already '
            "allocated",
            id="the node port of another service",
        ),
        pytest.param(
            {"type": "LoadBalancer", "externalTrafficPolicy": "Local", "healthCheckNodePort": 30100},
            500,
            "Internal error occurred: failed to allocate requested HealthCheck NodePort 30100: provided port is "
            "already allocated",
            id="the port of another service for health checks",
        ),
    ],
)
async def test_a_requested_value_must_be_free_and_in_the_range(
    cluster: EmbeddedCluster, spec: dict[str, Any], code: int, message: str
) -> None:
    other = service("other", type="NodePort", clusterIP="10.96.7.7", ports=[{"port": 80, "nodePort": 30100}])
    await cluster.create(other, field_manager="ours")

    with pytest.raises(ApiError) as caught:
        await cluster.create(service(**spec), field_manager="ours")

    assert (caught.value.code, caught.value.message) == (code, message)


async def test_ports_of_the_same_number_share_a_node_port(cluster: EmbeddedCluster) -> None:
    ports = [{"name": "tcp", "port": 53}, {"name": "udp", "port": 53, "protocol": "UDP"}, {"name": "web", "port": 80}]
    spec = await spec_of(cluster, service(type="NodePort", ports=ports))

    assert [port["nodePort"] for port in spec["ports"]] == [30000, 30000, 30001]


async def test_a_balancer_with_local_traffic_gets_a_port_for_health_checks(cluster: EmbeddedCluster) -> None:
    spec = await spec_of(cluster, service(type="LoadBalancer", externalTrafficPolicy="Local"))
    patch = {"spec": {"type": "ClusterIP"}}
    key = ObjectKey("v1", "Service", "web", "shop")
    changed = await cluster.patch(key, patch, PatchOptions(patch_type=PatchType.MERGE, field_manager="other"))

    assert (spec["ports"][0]["nodePort"], spec["healthCheckNodePort"]) == (30000, 30001)
    assert (
        changed["spec"]
        .keys()
        .isdisjoint({"healthCheckNodePort", "externalTrafficPolicy", "allocateLoadBalancerNodePorts"})
    )
    assert "nodePort" not in changed["spec"]["ports"][0]


async def test_the_address_of_a_balancer_gets_a_mode(cluster: EmbeddedCluster) -> None:
    stored = await cluster.create(service(type="LoadBalancer"), field_manager="ours")
    stored["status"] = {"loadBalancer": {"ingress": [{"ip": "10.0.0.1"}, {"hostname": "shop.example.com"}]}}
    written = await cluster.update(stored, field_manager="balancer", subresource=Subresource.STATUS)

    assert written["status"]["loadBalancer"]["ingress"] == [
        {"ip": "10.0.0.1", "ipMode": "VIP"},
        {"hostname": "shop.example.com"},
    ]
