"""The HTTPRoute primitive: operational once all its parents have accepted the current generation."""

from __future__ import annotations

from typing import Any

import pytest

from ocf.concepts import ApplyOperation, GraceStatus, OperationalStatus, StatusReport, SuspensionStatus
from ocf.errors import BuildError
from ocf.objects import Manifest
from ocf.primitives import httproute

BASE: Manifest = {
    "apiVersion": "gateway.networking.k8s.io/v1",
    "kind": "HTTPRoute",
    "metadata": {"name": "web", "namespace": "shop"},
    "spec": {"parentRefs": [{"name": "public"}]},
}
TWO: Manifest = {**BASE, "spec": {"parentRefs": [{"name": "public"}, {"name": "inner", "sectionName": "http"}]}}
ACCEPTED = "HTTPRoute is accepted by its parents"


def condition(kind: str, status: str = "True", reason: str = "", message: str = "", generation: int = 2) -> Manifest:
    return {"type": kind, "status": status, "reason": reason, "message": message, "observedGeneration": generation}


BOTH = [condition("Accepted"), condition("ResolvedRefs")]


def entry(parent: Manifest, *conditions: Manifest) -> Manifest:
    return {"parentRef": parent, "controllerName": "example.com/gateway", "conditions": list(conditions)}


def live(*parents: Manifest, base: Manifest = BASE) -> Manifest:
    return {**base, "metadata": {**base["metadata"], "generation": 2}, "status": {"parents": list(parents)}}


PUBLIC: Manifest = {"group": "gateway.networking.k8s.io", "kind": "Gateway", "name": "public"}
INNER: Manifest = {**PUBLIC, "name": "inner", "namespace": "shop", "sectionName": "http"}
NOT_YET = "Waiting for parent public to accept the route"
REFS = "Waiting for condition ResolvedRefs of parent public"
STATES: list[Any] = [
    pytest.param(BASE, "OperationPending", NOT_YET, id="no status"),
    pytest.param(live(entry({"name": "other"}, *BOTH)), "OperationPending", NOT_YET, id="another parent"),
    pytest.param(
        live(entry(PUBLIC, condition("Accepted", generation=1), condition("ResolvedRefs"))),
        "OperationPending",
        "Waiting for condition Accepted of parent public",
        id="older generation",
    ),
    pytest.param(live(entry(PUBLIC, condition("Accepted"))), "OperationPending", REFS, id="references not resolved"),
    pytest.param(live(entry(PUBLIC, *BOTH)), "Operational", ACCEPTED, id="accepted"),
    pytest.param(live(entry({**PUBLIC, "namespace": "shop"}, *BOTH)), "Operational", ACCEPTED, id="own namespace"),
    pytest.param(
        live(entry({**PUBLIC, "namespace": "other"}, *BOTH)), "OperationPending", NOT_YET, id="another namespace"
    ),
    pytest.param(
        live(entry(PUBLIC, condition("Accepted", "False", "NotAllowedByListeners", "no listener"), BOTH[1])),
        "OperationFailing",
        "Parent public: no listener",
        id="rejected",
    ),
    pytest.param(
        live(entry(PUBLIC, condition("Accepted", "False", "Pending", "soon"), BOTH[1])),
        "OperationPending",
        "Parent public: soon",
        id="pending by its reason",
    ),
    pytest.param(
        live(entry(PUBLIC, BOTH[0], condition("ResolvedRefs", "False", "BackendNotFound"))),
        "OperationFailing",
        "Parent public: ResolvedRefs is False",
        id="a reference is not found",
    ),
    pytest.param(
        live(entry(PUBLIC, BOTH[0], condition("ResolvedRefs", "Unknown", "", "checking"))),
        "OperationPending",
        "Parent public: checking",
        id="unknown",
    ),
    pytest.param(
        live(entry(PUBLIC, *BOTH), base=TWO),
        "OperationPending",
        "Waiting for parent inner to accept the route",
        id="one of two parents",
    ),
    pytest.param(live(entry(PUBLIC, *BOTH), entry(INNER, *BOTH), base=TWO), "Operational", ACCEPTED, id="both parents"),
    pytest.param(
        live(entry(INNER, condition("Accepted", "False", "", "no"), BOTH[1]), base=TWO),
        "OperationFailing",
        "Parent inner: no",
        id="one rejects, the other is silent",
    ),
    pytest.param(
        live(entry(PUBLIC, *BOTH), entry(PUBLIC, condition("Accepted", "False", "", "no"), BOTH[1])),
        "OperationFailing",
        "Parent public: no",
        id="two controllers of one parent",
    ),
    pytest.param(live(base={**BASE, "spec": {}}), "OperationPending", "HTTPRoute has no parent", id="no parent"),
]
GRACE = {"Operational": "Healthy", "OperationPending": "Degraded", "OperationFailing": "Down"}


@pytest.mark.parametrize(("seen", "status", "reason"), STATES)
def test_status(seen: Manifest, status: str, reason: str) -> None:
    resource = httproute.Builder(BASE).build()
    assert resource.operational_status(ApplyOperation.NONE, seen) == StatusReport(OperationalStatus(status), reason)
    assert resource.grace_status(seen) == StatusReport(GraceStatus(GRACE[status]), reason)


def test_suspension_does_not_touch_it() -> None:
    resource = httproute.Builder(BASE).build()
    assert resource.render(suspended=True) == resource.render()
    report = StatusReport(SuspensionStatus.SUSPENDED, "HTTPRoute unaffected by suspension")
    assert resource.suspension_status(live()) == report


def test_defaults_inside_of_lists_are_sent_and_unknown_fields_are_kept() -> None:
    rule = {"backendRefs": [{"name": "web", "port": 80, "new": 1}], "filters": [{"type": "Cors", "cors": {"a": "b"}}]}
    rendered = httproute.Builder({**BASE, "spec": {"rules": [rule], "new": {"x": []}}}).build().render()
    path = {"type": "PathPrefix", "value": "/"}
    backend = {"group": "", "kind": "Service", "name": "web", "port": 80, "weight": 1, "new": 1}
    filled = {"matches": [{"path": path}], "backendRefs": [backend], "filters": rule["filters"]}
    assert rendered["spec"] == {"rules": [filled], "new": {"x": []}}


def test_a_base_is_checked() -> None:
    with pytest.raises(BuildError, match=r"spec\.parentRefs\[0\]\.name"):
        httproute.Builder({**BASE, "spec": {"parentRefs": [{}]}}).build()
    with pytest.raises(BuildError, match="parent_refs"):
        httproute.Builder({**BASE, "spec": {"parent_refs": [{"name": "public"}]}}).build()
