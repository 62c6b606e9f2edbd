"""The PersistentVolumeClaim primitive: operational once it is bound."""

import pytest

from ocf.concepts import ApplyOperation, GraceStatus, OperationalStatus, StatusReport, SuspensionStatus
from ocf.errors import MutationError
from ocf.objects import Manifest
from ocf.primitives import pvc

WAITING = "Waiting for PVC to be bound"
BASE: Manifest = {
    "apiVersion": "v1",
    "kind": "PersistentVolumeClaim",
    "metadata": {"name": "data", "namespace": "shop"},
    "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
}


def seen(phase: str, volume: str = "") -> Manifest:
    spec = BASE["spec"] | ({"volumeName": volume} if volume else {})
    return {**BASE, "spec": spec, "status": {"phase": phase} if phase else {}}


BOUND = seen("Bound", "pv-1")
BOUND["spec"]["resources"] = {"requests": {"storage": "2048Mi"}}


def resized(*conditions: tuple[str, str], capacity: str = "1Gi") -> Manifest:
    found = [{"type": name, "status": "True", "message": message} for name, message in conditions]
    return {"status": {"phase": "Bound", "capacity": {"storage": capacity}, "conditions": found}}


GROW = "Waiting for PVC to grow from 1Gi to 2048Mi"
RESIZES: list[tuple[str, Manifest, str]] = [
    ("no controller expands it", resized(), GROW),
    ("under way", resized(("Resizing", "")), f"{GROW}: Resizing: Resizing is True"),
    (
        "waiting for a pod",
        resized(("Resizing", ""), ("FileSystemResizePending", "Waiting for a pod to start")),
        f"{GROW}: FileSystemResizePending: Waiting for a pod to start",
    ),
    (
        "failed",
        resized(("Resizing", ""), ("ControllerResizeError", "the disk quota is 1Gi")),
        f"{GROW}: ControllerResizeError: the disk quota is 1Gi",
    ),
    (
        "other attributes",
        resized(("ModifyVolumeError", "no such class"), capacity="2Gi"),
        "Waiting for the volume of the PVC to be changed: ModifyVolumeError: no such class",
    ),
]


@pytest.mark.parametrize(
    ("live", "status", "grace", "reason"),
    [
        pytest.param(BASE, "OperationPending", "Degraded", WAITING, id="no status"),
        pytest.param(seen(""), "OperationPending", "Degraded", WAITING, id="no phase"),
        pytest.param(seen("Pending"), "OperationPending", "Degraded", WAITING, id="pending"),
        pytest.param(seen("Weird"), "OperationPending", "Degraded", WAITING, id="unknown phase"),
        pytest.param(seen("Bound", "pv-1"), "Operational", "Healthy", "PVC is bound to volume pv-1", id="bound"),
        pytest.param(seen("Bound"), "Operational", "Healthy", "PVC is bound", id="bound, volume not seen"),
        *(
            pytest.param({**BOUND, **live}, "OperationPending", "Degraded", reason, id=title)
            for title, live, reason in RESIZES
        ),
        pytest.param(
            {**BOUND, "status": {"phase": "Bound", "capacity": {"storage": "10Gi"}}},
            "Operational",
            "Healthy",
            "PVC is bound to volume pv-1",
            id="more capacity than requested",
        ),
        pytest.param(seen("Lost", "pv-1"), "OperationFailing", "Down", "PVC has lost its bound volume", id="lost"),
    ],
)
def test_status(live: Manifest, status: str, grace: str, reason: str) -> None:
    resource = pvc.Builder(BASE).build()
    assert resource.operational_status(ApplyOperation.NONE, live) == StatusReport(OperationalStatus(status), reason)
    assert resource.grace_status(live) == StatusReport(GraceStatus(grace), reason)


def test_suspended_at_once() -> None:
    report = StatusReport(SuspensionStatus.SUSPENDED, "PVC does not require suspension actions")
    assert pvc.Builder(BASE).build().suspension_status(seen("Pending")) == report


def test_the_storage_request_is_a_spec_edit() -> None:
    larger = pvc.Mutation("larger", lambda m: m.set_storage_request("2Gi"))
    rendered = pvc.Builder(BASE).with_mutation(larger).build().render()
    assert rendered["spec"] == {**BASE["spec"], "resources": {"requests": {"storage": "2Gi"}}}
    wrong = pvc.Mutation("wrong", lambda m: m.set_storage_request("2 GB"))
    with pytest.raises(MutationError, match=r'mutation "wrong", edit_pvc_spec: resources\.requests\[storage\]: '):
        pvc.Builder(BASE).with_mutation(wrong).build().render()
