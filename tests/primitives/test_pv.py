"""The PersistentVolume primitive: operational while it is available or bound."""

import pytest

from ocf import component
from ocf.cluster import PatchOptions, PatchType
from ocf.component import reconciling
from ocf.concepts import ApplyOperation, GraceStatus, OperationalStatus, StatusReport, SuspensionStatus
from ocf.objects import Manifest, ObjectKey
from ocf.primitives import pv
from ocf_server import EmbeddedCluster

BASE: Manifest = {
    "apiVersion": "v1",
    "kind": "PersistentVolume",
    "metadata": {"name": "data"},
    "spec": {"capacity": {"storage": "1Gi"}, "hostPath": {"path": "/data"}},
}
RELEASED = "PersistentVolume has been released and is not yet reclaimed"


@pytest.mark.parametrize(
    ("phase", "status", "grace", "reason"),
    [
        pytest.param("Available", "Operational", "Healthy", "PersistentVolume is available", id="available"),
        pytest.param("Bound", "Operational", "Healthy", "PersistentVolume is bound to a claim", id="bound"),
        pytest.param("Pending", "OperationPending", "Degraded", "PersistentVolume is pending", id="pending"),
        pytest.param("Released", "OperationFailing", "Down", RELEASED, id="released"),
        pytest.param("Failed", "OperationFailing", "Down", "PersistentVolume reclamation has failed", id="failed"),
        pytest.param("Weird", "OperationPending", "Degraded", 'PersistentVolume phase is "Weird"', id="unknown phase"),
        pytest.param("", "OperationPending", "Degraded", 'PersistentVolume phase is ""', id="no phase"),
    ],
)
def test_status(phase: str, status: str, grace: str, reason: str) -> None:
    resource = pv.Builder(BASE).build()
    live = {**BASE, **({"status": {"phase": phase}} if phase else {})}
    assert resource.operational_status(ApplyOperation.NONE, live) == StatusReport(OperationalStatus(status), reason)
    assert resource.grace_status(live) == StatusReport(GraceStatus(grace), reason)


def test_suspended_at_once() -> None:
    report = StatusReport(SuspensionStatus.SUSPENDED, "default suspension status")
    assert pv.Builder(BASE).build().suspension_status(BASE) == report


async def test_what_the_control_plane_adds_to_the_claim_that_a_volume_is_reserved_for_is_not_a_change() -> None:
    cluster = EmbeddedCluster(namespaces=["shop"])
    owner: Manifest = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "owner", "namespace": "shop"}}
    await cluster.create(owner, field_manager="user")
    modes = {"accessModes": ["ReadWriteOnce"]}
    reserved = {**BASE, "spec": {**BASE["spec"], **modes, "claimRef": {"namespace": "shop", "name": "data"}}}

    async def writes() -> int:
        builder = component.Builder("disk", condition_type="DiskReady").with_resource(pv.Builder(reserved).build())
        async with reconciling(await cluster.get(ObjectKey.of(owner)), cluster) as context:
            return (await builder.unpublished().build().reconcile(context)).writes

    assert await writes() == 1
    bound = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "uid": "1", "resourceVersion": "2"}
    options = PatchOptions(patch_type=PatchType.MERGE, field_manager="kube-controller-manager")
    await cluster.patch(ObjectKey.of(BASE), {"spec": {"claimRef": bound}}, options)
    assert [await writes(), await writes()] == [0, 0]
    assert (await cluster.get(ObjectKey.of(BASE)))["spec"]["claimRef"]["uid"] == "1"


def test_short_forms_are_spec_edits() -> None:
    def mutate(m: pv.Mutator) -> None:
        m.set_storage_class_name("fast")
        m.set_reclaim_policy("Retain")
        m.set_mount_options(["hard"])

    rendered = pv.Builder(BASE).with_mutation(pv.Mutation("m", mutate)).build().render()
    assert rendered["spec"] == {
        **BASE["spec"],
        "storageClassName": "fast",
        "persistentVolumeReclaimPolicy": "Retain",
        "mountOptions": ["hard"],
    }
