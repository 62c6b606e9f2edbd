"""Which of several facts is the cause: what is of the past, waits for another object or is intended hides no other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import pytest

from ocf.objects import Manifest, ObjectKey
from ocf.ownership import OwnerExplanation, OwnerSnapshot, State, explain_owner
from ocf.ownership.lines import explanation_lines
from ocf.ownership.operator import deletion
from tests.ownership.situations import CLAIM, FAST, REPLICAS, SHOP, STATEFUL, WEB
from tests.ownership.world import (
    GROUP,
    NOW,
    ago,
    condition,
    container,
    event,
    obj,
    pod,
    shop,
    waiting,
    workload,
)

KNOWN: Final = frozenset(
    {
        ("", "Pod", "town"),
        ("", "Secret", "town"),
        ("", "PersistentVolumeClaim", "town"),
        ("storage.k8s.io", "StorageClass", ""),
        ("discovery.k8s.io", "EndpointSlice", "town"),
    }
)
READY: Final = shop(condition("Ready", "True"))
LATE: Final = {**FAST, "volumeBindingMode": "WaitForFirstConsumer"}
NO_CPU: Final = "0/3 nodes are available: 3 Insufficient cpu."
UNPLACED: Final = pod(
    STATEFUL,
    spec={"nodeName": "", "volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "data-web-0"}}]},
    conditions=[condition("PodScheduled", reason="Unschedulable", message=NO_CPU)],
)
PULL: Final = pod(REPLICAS, "web-x", containerStatuses=[container(waiting("ImagePullBackOff", "Back-off"))])
STARTING: Final = pod(REPLICAS, "web-x", containerStatuses=[container(waiting("ContainerCreating"))])
RUNS: Final = pod(REPLICAS, "web-x", phase="Running", containerStatuses=[container({"running": {}})])
ENDED: Final = {"terminated": {"exitCode": 1, "reason": "Error"}}
CNPG: Final = "postgresql.cnpg.io/v1"


def at(minutes: float, about: Manifest, reason: str, message: str, *, kind: str = "Warning") -> Manifest:
    """Return an event that was last seen so many minutes ago."""
    found = event(about, reason, message, kind=kind)
    return {**found, "firstTimestamp": ago(minutes), "lastTimestamp": ago(minutes)}


def made(minutes: float, one: Manifest, **metadata: Any) -> Manifest:
    """Return an object that was created so many minutes ago."""
    return {**one, "metadata": {**one["metadata"], "creationTimestamp": ago(minutes), **metadata}}


def ending(minutes: float, one: Manifest, *finalizers: str) -> Manifest:
    metadata = {**one["metadata"], "deletionTimestamp": ago(minutes), "finalizers": list(finalizers)}
    return {**one, "metadata": metadata}


def other(kind: str, name: str, owner: Manifest, status: Manifest, group: str = f"{GROUP}/v1") -> Manifest:
    return obj(group, kind, name, owner, status=status)


def headless(owner: Manifest, **selector: str) -> Manifest:
    return obj("v1", "Service", "db-ro", owner, spec={"selector": selector}, status={"loadBalancer": {}})


def postgres(ready: str, *, phase: str = "Cluster in healthy state") -> Manifest:
    status = {"phase": phase, "conditions": [condition("Ready", ready, "ClusterIsNotReady", "Cluster Is Not Ready")]}
    return obj(CNPG, "Cluster", "db", status=status)


def job(name: str, owner: Manifest, *conditions: Manifest, minutes: float = 12, **status: Any) -> Manifest:
    live = obj("batch/v1", "Job", name, owner, spec={"completions": 1}, status={"conditions": [*conditions], **status})
    return made(minutes, live)


def failed_job(name: str, owner: Manifest, minutes: float) -> Manifest:
    given_up = condition("Failed", "True", "BackoffLimitExceeded", "Job has reached its limit", minutes)
    return job(name, owner, given_up, minutes=minutes, failed=1)


def cron_job(owner: Manifest, success: float | None) -> Manifest:
    status = {"lastScheduleTime": ago(12), **({} if success is None else {"lastSuccessfulTime": ago(success)})}
    return obj("batch/v1", "CronJob", "backup", owner, spec={"schedule": "@hourly"}, status=status)


def autoscaler(reason: str) -> Manifest:
    conditions = [condition("AbleToScale", "True"), condition("ScalingActive", "False", reason, "it does not scale")]
    spec = {"scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}}
    return obj("autoscaling/v2", "HorizontalPodAutoscaler", "web", READY, spec=spec, status={"conditions": conditions})


class Case(NamedTuple):
    """An owner and what belongs to it.

    Args:
        objects: The objects of the snapshot, the owner first, and its events.
        parts: Parts of the sentence, in order.
    """

    name: str
    objects: Sequence[Manifest]
    state: State
    parts: tuple[str, ...]


def binding(*more: Manifest) -> list[Manifest]:
    return [SHOP, STATEFUL, UNPLACED, CLAIM, *more]


POD_FIRST: Final = ("The pod web-0 cannot be scheduled", "Insufficient cpu", "so StatefulSet web has 0 of 1")
CLAIM_FIRST: Final = ("The claim data-web-0 is Pending",)
SPARE: Final = obj("v1", "PersistentVolumeClaim", "spare", READY, spec=CLAIM["spec"], status={"phase": "Pending"})
CLAIMS: Final = [
    *(
        Case(
            f"Kubernetes: a claim that waits for its pod, {reason}",
            binding(LATE, event(CLAIM, reason, "waiting", kind="Normal")),
            State.FAILING,
            POD_FIRST,
        )
        for reason in ("WaitForFirstConsumer", "WaitForPodScheduled")
    ),
    Case("Kubernetes: a class that binds late, without an event", binding(LATE), State.FAILING, POD_FIRST),
    Case("Kubernetes: a claim of which nothing is known", binding(FAST), State.FAILING, POD_FIRST),
    Case(
        "Kubernetes: a class that binds late, whose driver fails",
        binding(LATE, event(CLAIM, "ProvisioningFailed", "the zone is full")),
        State.FAILING,
        (*CLAIM_FIRST, "the zone is full"),
    ),
    Case(
        "Kubernetes: the driver does not answer after the scheduler has chosen a node",
        [
            SHOP,
            STATEFUL,
            UNPLACED,
            {
                **CLAIM,
                "metadata": {**CLAIM["metadata"], "annotations": {"volume.kubernetes.io/selected-node": "node-1"}},
            },
            LATE,
            event(CLAIM, "ExternalProvisioning", "Waiting for a volume to be created", kind="Normal"),
        ],
        State.FAILING,
        (*CLAIM_FIRST, "ExternalProvisioning"),
    ),
    Case(
        "Kubernetes: the class was made after the event",
        binding(LATE, event(CLAIM, "ProvisioningFailed", 'storageclass.storage.k8s.io "fast" not found')),
        State.FAILING,
        CLAIM_FIRST,
    ),
    Case("Kubernetes: an unused claim of a ready owner", [READY, SPARE, LATE], State.READY, ("Shop corner is ready",)),
]

SERVICES: Final = [
    Case(
        "CloudNativePG: no replica for the Service db-ro, and the instance does not start",
        [
            (starting := postgres("False")),
            headless(starting, role="replica"),
            pod(starting, "db-1", phase="Running", containerStatuses=[container({"running": {}})]),
        ],
        State.PROGRESSING,
        ("The pod db-1 is not ready", "so Cluster db is not ready"),
    ),
    Case(
        "CloudNativePG: no replica for the Service db-ro of a ready instance",
        [(healthy := postgres("True")), headless(healthy, role="replica")],
        State.READY,
        ("Cluster db is ready",),
    ),
    Case(
        "an owner that waits for a user, with a Service before its pods",
        [
            (licence := shop(condition("Ready", reason="WaitingForLicence", message="a licence key is needed"))),
            headless(licence, app="web"),
        ],
        State.PROGRESSING,
        ("Shop corner is not ready for 12 minutes: WaitingForLicence: a licence key is needed.",),
    ),
    Case(
        "an owner that waits for its resources, with a Service without pods",
        [SHOP, headless(SHOP, app="web")],
        State.PROGRESSING,
        ("Service db-ro has no endpoints", "so Shop corner is not ready"),
    ),
]

EVICTED: Final = made(
    2880, pod(REPLICAS, "web-old", phase="Failed", reason="Evicted", message="The node was low on resource: memory")
)
PAST: Final = [
    Case(
        "Kubernetes: an evicted pod, and a younger one in its place",
        [*WEB, EVICTED, RUNS],
        State.PROGRESSING,
        ("The pod web-x is not ready", "running, but not ready"),
    ),
    Case(
        "Kubernetes: an evicted pod without another",
        [*WEB, EVICTED],
        State.FAILING,
        ("The pod web-old", "Evicted"),
    ),
    Case(
        "CloudNativePG: a failed pod of an owner that replaces none",
        [
            (pair := postgres("False")),
            made(30, pod(pair, "db-1", phase="Failed", containerStatuses=[container(ENDED)])),
            made(20, pod(pair, "db-2", phase="Running", containerStatuses=[container({"running": {}})])),
        ],
        State.FAILING,
        ("The pod db-1 is not ready", "exit code 1"),
    ),
    Case(
        "Kubernetes: an old failed Job of a CronJob, and a newer one",
        [
            READY,
            (nightly := cron_job(READY, None)),
            failed_job("backup-1", nightly, 4000),
            job("backup-2", nightly, condition("Complete", "True"), completionTime=ago(1)),
        ],
        State.READY,
        ("Shop corner is ready",),
    ),
    Case(
        "Kubernetes: the last Job of a CronJob failed before a success",
        [READY, (later := cron_job(READY, 5)), failed_job("backup-1", later, 60)],
        State.READY,
        ("Shop corner is ready",),
    ),
    Case(
        "Kubernetes: the last Job of a CronJob has failed",
        [READY, (broken := cron_job(READY, 90)), failed_job("backup-1", broken, 60)],
        State.READY,
        ("Job backup-1 has failed", "so Shop corner has a problem"),
    ),
    Case(
        "Kubernetes: a Job that is complete after a retry",
        [
            (
                run := made(
                    12,
                    obj(
                        "batch/v1",
                        "Job",
                        "run",
                        status={
                            "succeeded": 1,
                            "completionTime": ago(1),
                            "conditions": [condition("Complete", "True")],
                        },
                    ),
                )
            ),
            pod(run, "run-1", phase="Failed", containerStatuses=[container(ENDED)]),
        ],
        State.READY,
        ("Job run is ready",),
    ),
    *(
        Case(
            f"{project}: a run that has succeeded after a retry",
            [
                (done := obj(version, kind, "run", status=status)),
                pod(done, "run-1", phase="Failed", containerStatuses=[container(ENDED)]),
            ],
            State.READY,
            (f"{kind} run is ready",),
        )
        for project, version, kind, status in (
            ("Argo Workflows", "argoproj.io/v1alpha1", "Workflow", {"phase": "Succeeded", "finishedAt": ago(1)}),
            ("Tekton", "tekton.dev/v1", "TaskRun", {"conditions": [condition("Succeeded", "True")]}),
        )
    ),
    Case(
        "Tekton: a run that goes on after a failed attempt",
        [
            (
                running := obj(
                    "tekton.dev/v1",
                    "TaskRun",
                    "run",
                    status={"conditions": [condition("Succeeded", "Unknown", "Running", "in progress")]},
                )
            ),
            pod(running, "run-1", phase="Failed", containerStatuses=[container(ENDED)]),
        ],
        State.FAILING,
        ("The pod run-1 is not ready", "exit code 1"),
    ),
]

REFUSED: Final = 'pods "x" is forbidden: exceeded quota: small'
EVENTS: Final = [
    Case(
        "Kubernetes: a quota refused pods an hour ago, and the image of the present ones does not exist",
        [*WEB, PULL, at(55, SHOP, "ApplyFailed", REFUSED)],
        State.FAILING,
        ("The pod web-x cannot start", "ImagePullBackOff"),
    ),
    Case(
        "Kubernetes: a quota refused pods ten minutes ago, and all exist now",
        [*WEB, PULL, at(10, REPLICAS, "FailedCreate", REFUSED)],
        State.FAILING,
        ("The pod web-x cannot start", "ImagePullBackOff"),
    ),
    Case(
        "an owner whose last event is a success",
        [*WEB, PULL, at(5, SHOP, "ApplyFailed", REFUSED), at(4, SHOP, "Reconciled", "done", kind="Normal")],
        State.FAILING,
        ("The pod web-x cannot start", "ImagePullBackOff"),
    ),
    Case(
        "an owner whose last event is no success",
        [*WEB, PULL, at(5, SHOP, "ApplyFailed", REFUSED), at(4, SHOP, "NotReady", "not yet", kind="Normal")],
        State.FAILING,
        ("Shop corner is not ready", "exceeded quota"),
    ),
    Case(
        "an owner whose condition is newer than the event",
        [
            (newer := shop(condition("Ready", reason="WaitingForLicence", message="a key is needed", minutes=5))),
            at(30, newer, "ApplyFailed", "the database does not answer"),
        ],
        State.PROGRESSING,
        ("Shop corner is not ready", "WaitingForLicence"),
    ),
    Case(
        "Kubernetes: a volume was mounted late, and the image is being pulled",
        [
            *WEB,
            STARTING,
            at(15, STARTING, "FailedMount", "timed out waiting for the condition"),
            at(14, STARTING, "Pulling", "Pulling image", kind="Normal"),
        ],
        State.PROGRESSING,
        ("The pod web-x is starting",),
    ),
    Case(
        "Kubernetes: a volume could not be mounted half an hour ago",
        [*WEB, STARTING, at(30, STARTING, "FailedMount", "timed out waiting for the condition")],
        State.PROGRESSING,
        ("The pod web-x is starting",),
    ),
    Case(
        "Kubernetes: a volume was attached after an error",
        [
            *WEB,
            STARTING,
            at(5, STARTING, "FailedAttachVolume", "Multi-Attach error"),
            at(4, STARTING, "SuccessfulAttachVolume", "attached", kind="Normal"),
        ],
        State.PROGRESSING,
        ("The pod web-x is starting",),
    ),
    Case(
        "Kubernetes: a volume cannot be mounted",
        [
            *WEB,
            STARTING,
            at(5, STARTING, "FailedMount", "timed out waiting for the condition"),
            at(6, STARTING, "Pulling", "Pulling image of an earlier attempt", kind="Normal"),
        ],
        State.FAILING,
        ("The pod web-x cannot start", "FailedMount"),
    ),
]

MACHINE: Final = {"conditions": [condition("Ready", reason="Deleting")]}
NO_MACHINE: Final = {"conditions": [condition("Ready", reason="CreateError", message="VcpuLimitExceeded")]}
CAPI: Final = "cluster.x-k8s.io/v1beta2"
ENDINGS: Final = [
    Case(
        "Cluster API: a ready owner whose old machine is being deleted for seconds",
        [READY, ending(0.1, other("Machine", "old", READY, MACHINE, CAPI), "machine.cluster.x-k8s.io")],
        State.READY,
        ("Shop corner is ready",),
    ),
    Case(
        "Kubernetes: a ready owner whose claim is in use and being deleted for hours",
        [
            READY,
            ending(
                600,
                other("PersistentVolumeClaim", "old", READY, {"phase": "Bound"}, "v1"),
                "kubernetes.io/pvc-protection",
            ),
        ],
        State.READY,
        ("Shop corner is ready",),
    ),
    Case(
        "Cluster API: a machine cannot be made, and an old one is held",
        [
            SHOP,
            other("Machine", "new", SHOP, NO_MACHINE, CAPI),
            ending(30, other("Machine", "old", SHOP, MACHINE, CAPI), "machine.cluster.x-k8s.io"),
        ],
        State.PROGRESSING,
        ("Machine new is not ready", "VcpuLimitExceeded"),
    ),
    Case(
        "Cluster API: an old machine is held, and nothing else is known",
        [SHOP, ending(30, other("Machine", "old", SHOP, MACHINE, CAPI), "machine.cluster.x-k8s.io")],
        State.PROGRESSING,
        ("Machine old is being deleted for 30 minutes: the finalizer machine.cluster.x-k8s.io remains",),
    ),
    Case(
        "Kubernetes: a pod has ended a second ago, and the owner waits for a user",
        [licence, ending(0.02, pod(licence, "web-old", phase="Running"))],
        State.PROGRESSING,
        ("Shop corner is not ready for 12 minutes: WaitingForLicence",),
    ),
    Case(
        "Kubernetes: an autoscaler whose target is scaled to zero",
        [READY, workload("Deployment", READY, ready=1), autoscaler("ScalingDisabled")],
        State.READY,
        ("Shop corner is ready",),
    ),
    Case(
        "Kubernetes: an autoscaler without metrics",
        [READY, workload("Deployment", READY, ready=1), autoscaler("FailedGetResourceMetric")],
        State.READY,
        ("HorizontalPodAutoscaler web cannot scale", "so Shop corner has a problem"),
    ),
]

ISSUING: Final = condition("Ready", reason="DoesNotExist", message="Issuing certificate as Secret does not exist")
CERTIFICATE: Final = obj("cert-manager.io/v1", "Certificate", "tls", status={"conditions": [ISSUING]})
PENDING: Final = condition(
    "Ready", reason="Pending", message='Waiting on certificate issuance from order tls-1: "pending"'
)
REQUEST: Final = other("CertificateRequest", "tls-1", CERTIFICATE, {"conditions": [PENDING]}, "cert-manager.io/v1")
ACME: Final = "acme.cert-manager.io/v1"
ORDER: Final = other("Order", "tls-1", REQUEST, {"state": "pending"}, ACME)
SELF_CHECK: Final = "Waiting for HTTP-01 challenge propagation: "
CHAINS: Final = [
    *(
        Case(
            f"cert-manager: a challenge that {name}",
            [
                CERTIFICATE,
                REQUEST,
                ORDER,
                other("Challenge", "tls-1-1", ORDER, {"state": "pending", "reason": reason}, ACME),
            ],
            State.PROGRESSING,
            ("Challenge tls-1-1 is not ready", said, "so CertificateRequest tls-1 is not ready", "so Certificate tls"),
        )
        for name, reason, said in (
            (
                "fails its self check",
                f"{SELF_CHECK}failed to perform self check: dial tcp: no such host",
                "no such host",
            ),
            ("waits for DNS", "Waiting for DNS-01 challenge propagation", "Waiting for DNS-01"),
        )
    ),
    Case(
        "cert-manager: an order without a reason",
        [CERTIFICATE, REQUEST, ORDER],
        State.PROGRESSING,
        ("CertificateRequest tls-1 is not ready", "Waiting on certificate issuance"),
    ),
]


def explained(objects: Sequence[Manifest], **options: Any) -> OwnerExplanation:
    events = [one for one in objects if one["kind"] == "Event"]
    others = [one for one in objects if one["kind"] != "Event"]
    snapshot = OwnerSnapshot(**{"objects": others, "now": NOW, "events": events, "complete": KNOWN, **options})
    return explain_owner(snapshot, ObjectKey.of(objects[0]))


CASES: Final = [*CLAIMS, *SERVICES, *PAST, *EVENTS, *ENDINGS, *CHAINS]


@pytest.mark.parametrize("case", [pytest.param(each, id=each.name) for each in CASES])
def test_the_cause_is_of_now_and_no_consequence(case: Case) -> None:
    found = explained(case.objects)
    rest = found.sentence
    for part in case.parts:
        assert part in rest, f"{part!r} is not in {found.sentence!r}"
        rest = rest.partition(part)[2]
    assert found.sentence.startswith(case.parts[0])
    assert found.root.state is case.state


@pytest.mark.parametrize(
    ("manager", "named"),
    [
        pytest.param("shops/Shop/finalizer/shop-corner", "the operator shops", id="an operator of ocf"),
        pytest.param("shops/Shop/finalizer/another", "shops/Shop/finalizer/another", id="for another owner"),
        pytest.param("kubectl-edit", "kubectl-edit", id="another manager"),
    ],
)
def test_a_finalizer_is_that_of_an_operator(manager: str, named: str) -> None:
    name = "shops.ocf.dev/cleanup"
    fields: Manifest = {"f:metadata": {"f:finalizers": {f'v:"{name}"': {}}}}
    metadata = {"finalizers": [name], "managedFields": [{"manager": manager, "fieldsV1": fields}]}
    [step] = deletion({**SHOP, "metadata": {**SHOP["metadata"], "uid": "shop-corner", **metadata}})
    assert step.text == f"the finalizer {name}, which {named} has set, has not been removed"


def test_external_resources_are_in_their_component() -> None:
    """They are objects of no cluster: the owner's status has their records, and a condition what is wrong with one."""
    records = {
        "Database/a": {"component": "web", "kind": "Database", "name": "a", "key": "1"},
        "Database/ab@eu": {"component": "web", "kind": "Database", "name": "ab", "target": "eu", "key": "2"},
        "Bucket/a": {"component": "files", "kind": "Bucket", "name": "a", "key": "3"},
        "Bucket/b": "by another writer",
        "Bucket/c": {"component": "files", "kind": ["Bucket"], "name": "c"},
    }
    conditions = [
        condition("WebReady", reason="Error", message="external/Database/ab@eu: no connection to db:5432: OSError"),
        condition("FilesReady", "True", "Healthy"),
    ]
    owner = {**SHOP, "status": {"conditions": conditions, "external": records}}
    found = explain_owner(OwnerSnapshot(objects=[owner], now=NOW), ObjectKey.of(owner))
    shown = {child.name: [(each.name, each.state) for each in child.children] for child in found.root.children}
    assert shown == {
        "component web": [
            ("external/Database/a", State.UNKNOWN),
            ("external/Database/ab@eu", State.PROGRESSING),
        ],
        "component files": [("external/Bucket/a", State.READY)],
    }
    assert [*explanation_lines(found, NOW)]
