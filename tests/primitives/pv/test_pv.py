"""The PersistentVolume primitive: operational while it is available or bound."""

import pytest

from ocf.concepts import ApplyOperation, GraceStatus, OperationalStatus, StatusReport, SuspensionStatus
from ocf.objects import Manifest
from ocf.primitives import pv

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
