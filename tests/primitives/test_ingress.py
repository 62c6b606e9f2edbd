"""The Ingress primitive: operational once it has an address."""

from typing import Any

import pytest

from ocf.concepts import ApplyOperation, GraceStatus, OperationalStatus, StatusReport, SuspensionStatus
from ocf.objects import Manifest
from ocf.primitives import ingress

ASSIGNED = "Ingress has been assigned an address"
AWAITING = "Awaiting load balancer address assignment"
IN_USE = {"ports": [{"port": 80, "protocol": "TCP", "error": "PortInUse"}]}
BASE: Manifest = {
    "apiVersion": "networking.k8s.io/v1",
    "kind": "Ingress",
    "metadata": {"name": "web", "namespace": "shop"},
}


def entries(*addresses: Any) -> Manifest:
    return {"status": {"loadBalancer": {"ingress": list(addresses)}}}


@pytest.mark.parametrize(
    ("seen", "status", "grace", "reason"),
    [
        pytest.param({}, "OperationPending", "Degraded", AWAITING, id="no status"),
        pytest.param({"status": {}}, "OperationPending", "Degraded", AWAITING, id="no load balancer"),
        pytest.param(entries(), "OperationPending", "Degraded", AWAITING, id="no entry"),
        pytest.param(entries({}), "OperationPending", "Degraded", AWAITING, id="an empty entry"),
        pytest.param(entries({"ip": ""}), "OperationPending", "Degraded", AWAITING, id="an empty address"),
        pytest.param(entries(IN_USE), "OperationPending", "Degraded", f"{AWAITING}: port 80: PortInUse", id="a port"),
        pytest.param(entries({"ip": "10.0.0.1"}), "Operational", "Healthy", ASSIGNED, id="ip"),
        pytest.param(entries({"hostname": "lb.example.com"}), "Operational", "Healthy", ASSIGNED, id="host name"),
        pytest.param(entries({}, {"ip": "10.0.0.1"}), "Operational", "Healthy", ASSIGNED, id="second entry"),
    ],
)
@pytest.mark.parametrize("operation", list(ApplyOperation))
def test_status(seen: Manifest, status: str, grace: str, reason: str, operation: ApplyOperation) -> None:
    resource = ingress.Builder(BASE).build()
    live = {**BASE, **seen}
    assert resource.operational_status(operation, live) == StatusReport(OperationalStatus(status), reason)
    assert resource.grace_status(live) == StatusReport(GraceStatus(grace), reason)


def test_suspended_at_once() -> None:
    report = StatusReport(SuspensionStatus.SUSPENDED, "Ingress suspended (backend unavailable)")
    assert ingress.Builder(BASE).build().suspension_status({**BASE, **entries({"ip": "10.0.0.1"})}) == report
