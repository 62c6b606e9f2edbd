"""Objects of a new cluster are those that a real API server makes."""

from datetime import UTC, datetime
from typing import Final

import pytest

from ocf.cluster import Cluster
from ocf.errors import NotFoundError
from ocf.objects import Manifest, ObjectKey
from ocf.testing.envtest import ControlPlane
from ocf_server import EmbeddedCluster

RBAC: Final = "rbac.authorization.k8s.io/v1"
KINDS: Final = {
    "ConfigMap": "v1",
    "Service": "v1",
    "Endpoints": "v1",
    "EndpointSlice": "discovery.k8s.io/v1",
    "ServiceCIDR": "networking.k8s.io/v1",
    "PriorityClass": "scheduling.k8s.io/v1",
    "ClusterRole": RBAC,
    "ClusterRoleBinding": RBAC,
    "Role": RBAC,
    "RoleBinding": RBAC,
    "FlowSchema": "flowcontrol.apiserver.k8s.io/v1",
    "PriorityLevelConfiguration": "flowcontrol.apiserver.k8s.io/v1",
}
UNPUBLISHED: Final = ("Endpoints", "EndpointSlice")
"""Kinds that the real server of the tests does not make, whose address is a loopback address."""


OF_ONE_SERVER: Final = ("ConfigMap", "Service", "ServiceCIDR")


async def objects(cluster: Cluster, kind: str) -> dict[tuple[str, str], Manifest]:
    found = (await cluster.list(KINDS[kind], kind)).items
    return {(one["metadata"].get("namespace", ""), one["metadata"]["name"]): one for one in found}


def comparable(kind: str, manifest: Manifest) -> Manifest:
    """Return what does not depend on the addresses and on the time of a server."""
    hidden = {"metadata", "status"} | ({"data", "spec"} if kind in OF_ONE_SERVER else set())
    # The controller manager of other tests fills in what roles have that other tests have created.
    hidden |= {"rules"} if manifest.get("aggregationRule") else set()
    labels = manifest["metadata"].get("labels")
    return {name: value for name, value in manifest.items() if name not in hidden} | {"labels": labels}


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind not in UNPUBLISHED])
async def test_each_object_is_as_in_a_new_real_cluster(kind: str, envtest_plane: ControlPlane) -> None:
    ours = await objects(EmbeddedCluster(system_objects=True), kind)
    async with await envtest_plane.cluster() as real:
        theirs = await objects(real, kind)
    assert ours
    assert {key: comparable(kind, one) for key, one in ours.items()} == {
        key: comparable(kind, theirs[key]) for key in ours if key in theirs
    }


async def test_the_objects_are_of_this_cluster() -> None:
    now = datetime(2026, 1, 1, 12, tzinfo=UTC)
    cluster = EmbeddedCluster(system_objects=True, now=lambda: now)
    found = [one for kind in KINDS for one in (await objects(cluster, kind)).values()]
    assert len({one["metadata"]["uid"] for one in found}) == len(found)
    assert {one["metadata"]["creationTimestamp"] for one in found} == {"2026-01-01T12:00:00Z"}
    assert {entry["time"] for one in found for entry in one["metadata"]["managedFields"]} == {"2026-01-01T12:00:00Z"}


async def test_the_address_of_the_api_server_is_taken() -> None:
    cluster = EmbeddedCluster(system_objects=True)
    service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web", "namespace": "default"}}
    stored = await cluster.create({**service, "spec": {"ports": [{"port": 80}]}}, field_manager="test")
    assert stored["spec"]["clusterIP"] == "10.96.0.2"


@pytest.mark.parametrize("authorization", [False, True])
async def test_by_default_a_cluster_has_no_more_than_the_roles_it_needs(authorization: bool) -> None:
    cluster = EmbeddedCluster(authorization=authorization)
    with pytest.raises(NotFoundError):
        await cluster.get(ObjectKey("v1", "Service", "kubernetes", "default"))
    assert (("", "system:discovery") in await objects(cluster, "ClusterRole")) is authorization
    assert ("", "system:node") not in await objects(cluster, "ClusterRole")
