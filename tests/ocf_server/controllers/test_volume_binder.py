"""Volumes that the embedded cluster makes for claims: of which sort, when, and where."""

from __future__ import annotations

import pytest

from ocf.cluster import PatchOptions, PatchType
from ocf.objects import Manifest, ObjectKey
from tests.ocf_server.controllers.test_runner import Bench


def storage_class(provisioner: str, mode: str) -> Manifest:
    kind = {"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": "fast"}}
    return {**kind, "provisioner": provisioner, "volumeBindingMode": mode}


def claim(name: str) -> Manifest:
    metadata = {"name": name, "namespace": "default"}
    spec = {
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": "fast",
        "resources": {"requests": {"storage": "1Gi"}},
    }
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata, "spec": spec}


def pod_with(name: str) -> Manifest:
    volumes = [{"name": "data", "persistentVolumeClaim": {"claimName": name}}]
    spec = {"containers": [{"name": "main", "image": "web:1"}], "volumes": volumes}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "default"}, "spec": spec}


@pytest.mark.parametrize(
    ("provisioner", "source"),
    [
        pytest.param("ebs.csi.aws.com", "csi", id="network"),
        pytest.param("rancher.io/local-path", "hostPath", id="of one node"),
    ],
)
async def test_a_volume_is_of_the_sort_that_its_class_provisions(provisioner: str, source: str) -> None:
    bench = Bench()
    await bench.create(storage_class(provisioner, "Immediate"), claim("a"))
    await bench.after(1)
    (volume,) = (await bench.cluster.list("v1", "PersistentVolume")).items
    assert source in volume["spec"]
    assert "nodeAffinity" not in volume["spec"]


async def test_a_volume_may_wait_for_its_first_pod_and_be_in_its_zone() -> None:
    bench = Bench()
    await bench.after(0)
    labels = {"metadata": {"labels": {"topology.kubernetes.io/zone": "fra"}}}
    options = PatchOptions(patch_type=PatchType.MERGE, field_manager="user")
    await bench.cluster.patch(ObjectKey("v1", "Node", "ocf-node-1"), labels, options)
    await bench.create(storage_class("ebs.csi.aws.com", "WaitForFirstConsumer"), claim("a"), claim("b"))
    await bench.after(1)
    assert not (await bench.cluster.list("v1", "PersistentVolume")).items
    await bench.create(pod_with("a"))
    await bench.after(1)
    (volume,) = (await bench.cluster.list("v1", "PersistentVolume")).items
    assert volume["spec"]["claimRef"]["name"] == "a"
    assert volume["spec"]["nodeAffinity"]["required"]["nodeSelectorTerms"] == [
        {"matchExpressions": [{"key": "topology.kubernetes.io/zone", "operator": "In", "values": ["fra"]}]}
    ]
    found = (await bench.cluster.list("v1", "PersistentVolumeClaim")).items
    assert {each["metadata"]["name"]: each["status"]["phase"] for each in found} == {"a": "Bound", "b": "Pending"}
