"""The Service primitive: status, grace, suspension, and the order of its categories."""

from typing import Any

import pytest

from ocf.concepts import ApplyOperation, GraceStatus, Operational, OperationalStatus, StatusReport, SuspensionStatus
from ocf.objects import Manifest
from ocf.primitives import service

ASSIGNED = "Load balancer IP/hostname assigned"
AWAITING = "Awaiting load balancer IP/hostname assignment"
BASE: Manifest = {
    "apiVersion": "v1",
    "kind": "Service",
    "metadata": {"name": "web", "namespace": "shop"},
    "spec": {"selector": {"app": "web"}, "ports": [{"name": "http", "port": 80}]},
}


def live(service_type: str | None = None, ingress: list[Any] | None = None, *, status: bool = True) -> Manifest:
    spec = BASE["spec"] | ({"type": service_type} if service_type else {})
    balancer = {} if ingress is None else {"ingress": ingress}
    return {**BASE, "spec": spec, **({"status": {"loadBalancer": balancer}} if status else {})}


def caused(name: str, status: str, reason: str) -> Manifest:
    return {"type": name, "status": status, "reason": reason, "message": "no address is free"}


CAUSES: list[tuple[str, list[Manifest], str]] = [
    (
        "a controller reports the cause",
        [caused("cilium.io/IPAMRequestSatisfied", "False", "no_pool")],
        ": no_pool: no address is free",
    ),
    (
        "a port is the cause",
        [caused("LoadBalancerPortsError", "True", "PortInUse")],
        ": PortInUse: no address is free",
    ),
    ("no port is the cause", [caused("LoadBalancerPortsError", "False", "")], ""),
    ("what is fulfilled is not a cause", [caused("cilium.io/IPAMRequestSatisfied", "True", "satisfied")], ""),
]
# row: what is observed, the status, its reason, the answer after grace, its reason
STATES = [
    pytest.param(live(), "Operational", "Service is operational", "Healthy", "Service is healthy", id="type unset"),
    *(
        pytest.param(live(kind), "Operational", "Service is operational", "Healthy", "Service is healthy", id=kind)
        for kind in ("ClusterIP", "NodePort", "ExternalName")
    ),
    *(
        pytest.param(seen, "OperationPending", AWAITING, "Degraded", AWAITING, id=f"load balancer, {title}")
        for title, seen in {
            "no status": live("LoadBalancer", status=False),
            "no list": live("LoadBalancer"),
            "no entry": live("LoadBalancer", []),
            "an empty entry": live("LoadBalancer", [{}]),
            "an empty address": live("LoadBalancer", [{"ip": "", "hostname": ""}]),
        }.items()
    ),
    pytest.param(
        live("LoadBalancer", [{"ports": [{"port": 80, "protocol": "TCP", "error": "PortInUse"}]}]),
        "OperationPending",
        f"{AWAITING}: port 80: PortInUse",
        "Degraded",
        f"{AWAITING}: port 80: PortInUse",
        id="load balancer, a port has an error",
    ),
    pytest.param(
        {**BASE, "spec": {**BASE["spec"], "type": "LoadBalancer", "loadBalancerClass": "example.com/none"}},
        "OperationPending",
        f'{AWAITING}: no controller of load balancer class "example.com/none" has set one',
        "Degraded",
        f'{AWAITING}: no controller of load balancer class "example.com/none" has set one',
        id="load balancer, of a class",
    ),
    *(
        pytest.param(
            {**live("LoadBalancer"), "status": {"conditions": conditions}},
            "OperationPending",
            f"{AWAITING}{cause}",
            "Degraded",
            f"{AWAITING}{cause}",
            id=title,
        )
        for title, conditions, cause in CAUSES
    ),
    *(
        pytest.param(live("LoadBalancer", entries), "Operational", ASSIGNED, "Healthy", ASSIGNED, id=title)
        for title, entries in {
            "ip": [{"ip": "10.0.0.1"}],
            "hostname": [{"hostname": "lb.example.com"}],
            "the second entry": [{}, {"ip": "10.0.0.1"}],
        }.items()
    ),
]


@pytest.mark.parametrize(("seen", "word", "reason", "grace", "grace_reason"), STATES)
@pytest.mark.parametrize("operation", list(ApplyOperation))
def test_status(  # noqa: PLR0917 (a table row)
    seen: Manifest, word: str, reason: str, grace: str, grace_reason: str, operation: ApplyOperation
) -> None:
    resource = service.Builder(BASE).build()
    assert isinstance(resource, Operational)
    assert resource.operational_status(operation, seen) == StatusReport(OperationalStatus(word), reason)
    assert resource.grace_status(seen) == StatusReport(GraceStatus(grace), grace_reason)


def test_suspension_leaves_it_alone() -> None:
    resource = service.Builder(BASE).build()
    assert resource.delete_on_suspend() is False
    assert resource.render(suspended=True) == resource.render() == BASE
    unaffected = StatusReport(SuspensionStatus.SUSPENDED, "Service unaffected by suspension")
    assert resource.suspension_status(live("LoadBalancer")) == unaffected


def test_metadata_is_edited_before_the_spec() -> None:
    ran: list[str] = []

    def mutate(m: service.Mutator) -> None:
        m.edit_service_spec(lambda _: ran.append("spec"))
        m.edit_object_metadata(lambda _: ran.append("metadata"))

    service.Builder(BASE).with_mutation(service.Mutation("m", mutate)).build().render()
    assert ran == ["metadata", "spec"]


def test_a_service_without_a_spec_gets_one_when_it_is_edited() -> None:
    def mutate(m: service.Mutator) -> None:
        m.edit_service_spec(lambda spec: spec.ensure_selector("app", "web"))

    bare = {key: value for key, value in BASE.items() if key != "spec"}
    rendered = service.Builder(bare).with_mutation(service.Mutation("m", mutate)).build().render()
    assert rendered == {**bare, "spec": {"selector": {"app": "web"}}}
