"""The Certificate primitive: operational while it is ready, failing once an attempt to issue it has failed."""

import pytest

from ocf.concepts import ApplyOperation, GraceStatus, OperationalStatus, StatusReport, SuspensionStatus
from ocf.objects import Manifest
from ocf.primitives import certificate

BASE: Manifest = {
    "apiVersion": "cert-manager.io/v1",
    "kind": "Certificate",
    "metadata": {"name": "web", "namespace": "shop", "generation": 2},
    "spec": {"secretName": "tls", "issuerRef": {"name": "internal"}, "isCA": False, "keystores": {"jks": {}}},
}
WAITING = "Waiting for condition Ready"


def live(ready: str = "", message: str = "", *, generation: int = 2, failed: int = 0, issuing: str = "") -> Manifest:
    found = [{"type": "Ready", "status": ready, "message": message, "observedGeneration": generation}] if ready else []
    found += [{"type": "Issuing", "status": "False", "message": issuing}] if issuing else []
    return {**BASE, "status": {"conditions": found, **({"failedIssuanceAttempts": failed} if failed else {})}}


@pytest.mark.parametrize(
    ("seen", "status", "grace", "reason"),
    [
        pytest.param(BASE, "OperationPending", "Degraded", WAITING, id="no status"),
        pytest.param(live(), "OperationPending", "Degraded", WAITING, id="no condition"),
        pytest.param(live("True", "up to date"), "Operational", "Healthy", "up to date", id="ready"),
        pytest.param(live("False", "issuing"), "OperationPending", "Degraded", "issuing", id="being issued"),
        pytest.param(
            live("True", "up to date", generation=1),
            "OperationPending",
            "Degraded",
            "Waiting for the controller to observe the latest spec",
            id="older generation",
        ),
        pytest.param(
            live("False", "no secret", failed=2),
            "OperationFailing",
            "Down",
            "Certificate could not be issued (2 failed): no secret",
            id="failed",
        ),
        pytest.param(
            live("False", "no secret", failed=1, issuing="order is invalid"),
            "OperationFailing",
            "Down",
            "Certificate could not be issued (1 failed): order is invalid",
            id="failed, with the reason of the attempt",
        ),
        pytest.param(
            live("True", "up to date", failed=1), "Operational", "Healthy", "up to date", id="only the renewal failed"
        ),
    ],
)
def test_status(seen: Manifest, status: str, grace: str, reason: str) -> None:
    resource = certificate.Builder(BASE).build()
    assert resource.operational_status(ApplyOperation.NONE, seen) == StatusReport(OperationalStatus(status), reason)
    assert resource.grace_status(seen) == StatusReport(GraceStatus(grace), reason)


def test_suspension_does_not_touch_it() -> None:
    resource = certificate.Builder(BASE).build()
    assert resource.render(suspended=True) == resource.render() == BASE
    report = StatusReport(SuspensionStatus.SUSPENDED, "Certificate unaffected by suspension")
    assert resource.suspension_status(BASE) == report
