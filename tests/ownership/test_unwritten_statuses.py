"""Objects whose status no controller writes or keeps up to date, and runs whose result does not matter any more."""

from __future__ import annotations

from typing import Any, Final

import pytest

from ocf.objects import Manifest, ObjectKey
from ocf.ownership import OwnerExplanation, OwnerSnapshot, TreeNode, explain_owner
from ocf.ownership.lines import explanation_lines
from ocf.ownership.status import report
from ocf.ownership.tree import State
from tests.ownership.situations import SHOP
from tests.ownership.test_causes import READY, cron_job, failed_job
from tests.ownership.world import NOW, ago, cluster_scoped, condition, obj, pod

GATEWAYS: Final = "gateway.networking.k8s.io"
DEFAULT: Final = {"lastTransitionTime": "1970-01-01T00:00:00Z"}
PENDING: Final = [
    {**condition(kind, "Unknown", "Pending", "Waiting for controller"), **DEFAULT}
    for kind in ("Accepted", "Programmed")
]
ACCEPTED: Final = [condition("Accepted", "True")]
COMPLETE: Final = {(GATEWAYS, "GatewayClass", ""), (GATEWAYS, "Gateway", "town")}


def explained(*objects: Manifest) -> OwnerExplanation:
    snapshot = OwnerSnapshot(objects=objects, now=NOW, complete=COMPLETE)
    return explain_owner(snapshot, ObjectKey.of(objects[0]))


def named(found: OwnerExplanation, name: str) -> TreeNode:
    nodes = [found.root]
    for node in nodes:
        nodes += node.children
    [one] = [node for node in nodes if node.name == name]
    return one


def of_istio(kind: str, group: str = "networking", generation: int = 3, **status: Any) -> Manifest:
    metadata = {"generation": generation}
    return obj(f"{group}.istio.io/v1", kind, "front", SHOP, status=status, metadata=metadata)


@pytest.mark.parametrize(
    ("live", "state", "text"),
    [
        # https://github.com/istio/istio/issues/30284
        pytest.param(
            of_istio("VirtualService", conditions=[condition("Reconciled", message="2412/2424 proxies up to date.")]),
            "ready",
            "",
            id="Istio: a count of proxies that does not change any more",
        ),
        # https://github.com/knative-extensions/net-istio/issues/585
        pytest.param(
            of_istio("VirtualService", observedGeneration=1, conditions=[condition("Reconciled", "True")]),
            "ready",
            "",
            id="Istio: a generation that does not change any more",
        ),
        pytest.param(of_istio("PeerAuthentication", "security"), "ready", "", id="Istio: no status"),
        pytest.param(
            of_istio(
                "Gateway", validationMessages=[{"level": "ERROR", "type": {"name": "ReferencedResourceNotFound"}}]
            ),
            "failing",
            "ReferencedResourceNotFound",
            id="Istio: an error of its validation",
        ),
        pytest.param(
            of_istio(
                "Gateway", validationMessages=[{"level": "WARNING", "type": {"code": "IST0103"}}, 1, {"level": 7}]
            ),
            "ready",
            "",
            id="Istio: a warning of its validation",
        ),
        pytest.param(
            obj("install.istio.io/v1alpha1", "IstioOperator", "mesh", status={"status": "ERROR"}),
            "failing",
            "",
            id="Istio: its operator writes a status",
        ),
        # https://github.com/nginx/nginx-gateway-fabric/issues/701
        pytest.param(
            obj(f"{GATEWAYS}/v1", "Gateway", "front", status={"conditions": PENDING}),
            "unknown",
            "no controller has reported a status",
            id="Gateway API: the conditions of the definition",
        ),
        pytest.param(
            obj(f"{GATEWAYS}/v1", "Gateway", "front", status={"conditions": [*ACCEPTED, PENDING[1]]}),
            "progressing",
            "Programmed is Unknown",
            id="Gateway API: a controller has begun",
        ),
        # https://github.com/argoproj/argo-cd/pull/28902
        pytest.param(
            obj(
                f"{GATEWAYS}/v1", "HTTPRoute", "front", spec={"parentRefs": [{"name": "front"}]}, status={"parents": []}
            ),
            "unknown",
            "no controller has reported a status",
            id="Gateway API: a route of which no parent is reported",
        ),
        pytest.param(
            obj(f"{GATEWAYS}/v1", "GRPCRoute", "front", status={"parents": [{"conditions": ACCEPTED}]}),
            "ready",
            "",
            id="Gateway API: another route with a parent",
        ),
        # https://github.com/kgateway-dev/kgateway/issues/13871
        pytest.param(
            obj(
                "gateway.kgateway.dev/v1alpha1",
                "TrafficPolicy",
                "front",
                status={"ancestors": [{"conditions": [condition("Accepted", reason="Invalid", message="no target")]}]},
            ),
            "failing",
            "no target",
            id="Gateway API: a policy with an ancestor",
        ),
    ],
)
def test_a_status_that_no_controller_writes_is_not_progressing(live: Manifest, state: str, text: str) -> None:
    found = report(live)
    assert str(found.state) == state
    assert text in found.text


GATEWAY: Final = obj(
    f"{GATEWAYS}/v1", "Gateway", "front", SHOP, spec={"gatewayClassName": "nginx"}, status={"conditions": PENDING}
)
ROUTE: Final = obj(f"{GATEWAYS}/v1", "HTTPRoute", "web", SHOP, spec={"parentRefs": [{"name": "front"}]})


def gateway_class(*conditions: Manifest) -> Manifest:
    return cluster_scoped(f"{GATEWAYS}/v1", "GatewayClass", "nginx", status={"conditions": list(conditions)})


@pytest.mark.parametrize(
    ("objects", "sentence"),
    [
        pytest.param(
            [GATEWAY],
            "Gateway front has no controller for 12 minutes: no GatewayClass named nginx; so Shop corner is not ready.",
            id="no class",
        ),
        # https://github.com/kgateway-dev/kgateway/issues/14012
        pytest.param(
            [GATEWAY, gateway_class(PENDING[0])],
            "Gateway front has no controller for 12 minutes: GatewayClass nginx: Waiting for controller; so Shop",
            id="no controller of the class",
        ),
        pytest.param(
            [GATEWAY, gateway_class(*ACCEPTED)],
            "Shop corner is not ready for 12 minutes: Progressing: waiting for resources.",
            id="a controller that has accepted the class only",
        ),
        pytest.param(
            [ROUTE],
            'HTTPRoute web has no parent for 12 minutes: Gateway "front" does not exist; so Shop corner is not ready.',
            id="no Gateway",
        ),
        pytest.param(
            [ROUTE, {**GATEWAY, "metadata": {**GATEWAY["metadata"], "ownerReferences": []}}],
            "Shop corner is not ready for 12 minutes: Progressing: waiting for resources.",
            id="a Gateway of another owner",
        ),
    ],
)
def test_what_no_controller_has_taken_is_a_cause_where_that_is_known(objects: list[Manifest], sentence: str) -> None:
    assert explained(SHOP, *objects).sentence.startswith(sentence)


def completed(name: str, owner: Manifest, minutes: float, **metadata: Any) -> Manifest:
    status = {"completionTime": ago(minutes), "conditions": [condition("Complete", "True", minutes=minutes)]}
    metadata = {"creationTimestamp": ago(minutes), **metadata}
    return obj("batch/v1", "Job", name, owner, status=status, metadata=metadata)


def run_of(owner: Manifest, name: str, minutes: float, phase: str) -> Manifest:
    status = {"phase": phase, "finishedAt": ago(minutes)}
    return obj(
        "argoproj.io/v1alpha1", "Workflow", name, owner, status=status, metadata={"creationTimestamp": ago(minutes)}
    )


def generated(live: Manifest) -> Manifest:
    return {**live, "metadata": {**live["metadata"], "generateName": "migrate-"}}


CRON: Final = cron_job(READY, 5)
SCHEDULE: Final = obj("argoproj.io/v1alpha1", "CronWorkflow", "nightly", READY)


@pytest.mark.parametrize(
    ("objects", "past"),
    [
        pytest.param(
            [CRON, failed_job("backup-1", CRON, 4000), completed("backup-2", CRON, 5)],
            {"Job backup-1"},
            id="an earlier Job of a CronJob",
        ),
        pytest.param([CRON, failed_job("backup-1", CRON, 60)], {"Job backup-1"}, id="the last one before a success"),
        pytest.param(
            [(never := cron_job(READY, None)), failed_job("backup-1", never, 90), failed_job("backup-2", never, 60)],
            {"Job backup-1"},
            id="the last one without a success",
        ),
        pytest.param(
            [SCHEDULE, run_of(SCHEDULE, "nightly-1", 60, "Failed"), run_of(SCHEDULE, "nightly-2", 5, "Succeeded")],
            {"Workflow nightly-1"},
            id="a run of a schedule of another operator",
        ),
        pytest.param(
            [failed_job("migrate-1", READY, 60), completed("migrate-2", READY, 5)],
            {"Job migrate-1"},
            id="an owner's own numbered Jobs",
        ),
        pytest.param(
            [generated(failed_job("migrate-x7k", READY, 60)), generated(completed("migrate-a2b", READY, 5))],
            {"Job migrate-x7k"},
            id="an owner's own Jobs with generated names",
        ),
        pytest.param([failed_job("migrate", READY, 60), completed("seed", READY, 5)], set(), id="another Job"),
        pytest.param(
            [completed("migrate-1", READY, 60), failed_job("migrate-2", READY, 5)], set(), id="a success before"
        ),
        pytest.param(
            [failed_job("migrate-1", READY, 60), failed_job("migrate-2", READY, 5)], set(), id="another failure"
        ),
        pytest.param(
            [
                (retried := completed("run", READY, 5)),
                obj("v1", "Pod", "run-a", retried, status={"phase": "Failed"}, metadata={"creationTimestamp": ago(15)}),
                pod(retried, "run-b", phase="Running"),
            ],
            {"Pod run-a"},
            id="a pod of a Job that was tried again",
        ),
    ],
)
def test_runs_that_were_superseded_are_not_failing_in_the_tree(objects: list[Manifest], past: set[str]) -> None:
    found = explained(READY, *objects)
    nodes = [found.root]
    for node in nodes:
        nodes += node.children
    assert {node.name for node in nodes if node.state is State.SUPERSEDED} == past
    failed = {node.name for node in nodes if node.state is State.FAILING}
    assert (found.sentence.startswith("Shop corner is ready")) == (not failed)


def test_a_run_that_was_superseded_says_so_beside_one_in_trouble() -> None:
    found = explained(READY, (cron := cron_job(READY, None)), failed_job("b-1", cron, 90), failed_job("b-2", cron, 60))
    [line] = [line for _, line in explanation_lines(found, NOW) if line.startswith("Job b-1")]
    assert line == "Job b-1: superseded for 90 minutes; it has failed, and a newer one has taken its place"
    assert named(found, "Job b-2").state is State.FAILING


def test_a_component_with_a_superseded_run_is_ready() -> None:
    uid = READY["metadata"]["uid"]
    entry = [{"manager": f"shops/Shop/web/{uid}", "operation": "Apply"}]
    jobs = [failed_job("migrate-1", READY, 60), completed("migrate-2", READY, 5)]
    found = explained(READY, *({**one, "metadata": {**one["metadata"], "managedFields": entry}} for one in jobs))
    assert named(found, "component web").state is State.READY
