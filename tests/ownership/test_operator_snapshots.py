"""Owners of other projects as their operators leave them: kinds, references, conditions and events of reports."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import pytest

from ocf.objects import Manifest, ObjectKey
from ocf.ownership import OwnerExplanation, OwnerSnapshot, explain_owner
from ocf.ownership.diagram import diagram_of, to_mermaid
from ocf.ownership.lines import explanation_json, explanation_lines
from ocf.ownership.picture import to_svg
from ocf.ownership.tree import State, TreeNode
from tests.ownership.situations import EXIT, GITHUB
from tests.ownership.world import (
    NOW,
    cluster_scoped,
    condition,
    container,
    event,
    obj,
    pod,
    waiting,
    workload,
)


class Case(NamedTuple):
    """An operator's objects, the owner first, with the events.

    Args:
        parts: Parts of the sentence, in order.
        names: The names in the tree, from top to bottom.
    """

    name: str
    objects: list[Manifest]
    parts: tuple[str, ...]
    names: tuple[str, ...]
    report: str


def having(api_version: str, kind: str, name: str, *owners: Manifest, **status: Any) -> Manifest:
    return obj(api_version, kind, name, *owners, status=status)


TIMEOUT: Final = "Exceeded timeout of 300000ms while waiting for StrimziPodSet resource stack-kafka to be ready"
KAFKA: Final = having(
    "kafka.strimzi.io/v1beta2",
    "Kafka",
    "stack",
    observedGeneration=1,
    conditions=[condition("NotReady", "True", "TimeoutException", TIMEOUT)],
)
POD_SET: Final = having(
    "core.strimzi.io/v1beta2",
    "StrimziPodSet",
    "stack-kafka",
    KAFKA,
    pods=3,
    readyPods=2,
    currentPods=3,
    observedGeneration=1,
)
POSTGRES: Final = obj("acid.zalan.do/v1", "postgresql", "db", status={"PostgresClusterStatus": "Running"})
POSTGRES_SET: Final = workload("StatefulSet", POSTGRES, name="db")
NO_CPU: Final = "0/5 nodes are available: 1 Insufficient cpu, 4 node(s) had untolerated taint {gpu: }."
RAY_JOB: Final = having("ray.io/v1", "RayJob", "train", jobDeploymentStatus="Initializing")
RAY: Final = having(
    "ray.io/v1",
    "RayCluster",
    "train-x",
    RAY_JOB,
    observedGeneration=1,
    conditions=[condition("HeadPodReady", reason="ContainersNotReady", message="unready containers: [head]")],
)
KNATIVE: Final = having(
    "serving.knative.dev/v1",
    "Service",
    "fails",
    observedGeneration=1,
    conditions=[
        condition("ConfigurationsReady", reason="RevisionFailed", message='Revision "fails-1" failed'),
        condition("Ready", reason="RevisionMissing", message='Configuration "fails" does not have any ready Revision.'),
    ],
)
CONFIGURATION: Final = having(
    "serving.knative.dev/v1",
    "Configuration",
    "fails",
    KNATIVE,
    conditions=[condition("Ready", reason="RevisionFailed", message='Revision "fails-1" failed')],
)
REVISION: Final = having(
    "serving.knative.dev/v1",
    "Revision",
    "fails-1",
    CONFIGURATION,
    conditions=[
        {**condition("Active", "Unknown", "Deploying"), "severity": "Info"},
        condition("ContainerHealthy", reason="ExitCode0", message="Container failed with: ."),
        condition("Ready", reason="ExitCode0", message="Container failed with: ."),
    ],
)
KNATIVE_WORKLOAD: Final = workload("Deployment", REVISION, name="fails-1-deployment")
KNATIVE_REPLICAS: Final = workload("ReplicaSet", KNATIVE_WORKLOAD, name="fails-1-deployment-5f")
CERTIFICATE: Final = obj(
    "cert-manager.io/v1",
    "Certificate",
    "app",
    spec={"secretName": "app", "issuerRef": {"name": "letsencrypt"}},
    status={
        "conditions": [
            condition("Issuing", "True", "DoesNotExist", "Issuing certificate as Secret does not exist"),
            condition("Ready", reason="DoesNotExist", message="Issuing certificate as Secret does not exist"),
        ]
    },
)
REQUEST: Final = having(
    "cert-manager.io/v1",
    "CertificateRequest",
    "app-1",
    CERTIFICATE,
    conditions=[
        condition("Approved", "True", "cert-manager.io"),
        condition("Ready", reason="Pending", message='Waiting on order town/app-1-2: "pending"'),
    ],
)
ORDER: Final = having("acme.cert-manager.io/v1", "Order", "app-1-2", REQUEST, state="pending")
CHALLENGE: Final = having(
    "acme.cert-manager.io/v1",
    "Challenge",
    "app-1-2-3",
    ORDER,
    state="pending",
    processing=True,
    presented=False,
    reason="cannot find the DNS zone of the host: SERVFAIL",
)
RELEASE: Final = having(
    "helm.toolkit.fluxcd.io/v2",
    "HelmRelease",
    "postgresql",
    observedGeneration=1,
    conditions=[
        condition("Stalled", "True", "RetriesExceeded", "Failed to install after 1 attempt(s)"),
        condition("Ready", reason="InstallFailed", message="Helm install failed: timed out"),
        condition("Released", reason="InstallFailed", message="Helm install failed: timed out"),
    ],
)
PIPELINE: Final = having(
    "tekton.dev/v1",
    "PipelineRun",
    "build",
    conditions=[condition("Succeeded", "Unknown", "Running", "Tasks Completed: 0, Incomplete: 1")],
)
TASK: Final = having(
    "tekton.dev/v1",
    "TaskRun",
    "build-fail",
    PIPELINE,
    conditions=[condition("Succeeded", "Unknown", "Pending", 'pending with reason "Back-off pulling image "fail""')],
)
CLAIM: Final = obj(
    "devops.example.org/v1",
    "ClusterClaim",
    "cluster-01",
    spec={"resourceRef": {"apiVersion": "devops.example.org/v1", "kind": "CompositeCluster", "name": "cluster-01-kt"}},
    status={
        "conditions": [
            condition("Synced", "True", "ReconcileSuccess"),
            condition("Ready", reason="Waiting", message="Claim is waiting for composite resource to become Ready"),
        ]
    },
)
COMPOSITE: Final = cluster_scoped(
    "devops.example.org/v1",
    "CompositeCluster",
    "cluster-01-kt",
    spec={"claimRef": {"kind": "ClusterClaim", "namespace": "town", "name": "cluster-01"}},
    status={
        "conditions": [
            condition(
                "Synced",
                reason="ReconcileError",
                message="cannot select Composition: no compatible Compositions found",
            )
        ]
    },
)
ELASTIC: Final = having(
    "elasticsearch.k8s.elastic.co/v1", "Elasticsearch", "admin", health="red", phase="ApplyingChanges"
)
ELASTIC_SET: Final = workload("StatefulSet", ELASTIC, name="admin-es-default")
ELASTIC_CLAIM: Final = obj(
    "v1",
    "PersistentVolumeClaim",
    "data-admin-es-default-0",
    ELASTIC,
    spec={"storageClassName": "standard"},
    status={"phase": "Pending"},
)
MACHINE: Final = having(
    "cluster.x-k8s.io/v1beta1",
    "Machine",
    "md-0-dv9",
    phase="Provisioning",
    conditions=[
        {**condition("Ready", reason="WaitingForBootstrapData"), "severity": "Info"},
        {**condition("BootstrapReady", reason="WaitingForControlPlaneAvailable"), "severity": "Info"},
    ],
)
BOOTSTRAP: Final = having(
    "bootstrap.cluster.x-k8s.io/v1beta1",
    "KubeadmConfig",
    "md-0-dv9",
    MACHINE,
    conditions=[
        {**condition("Ready", reason="WaitingForControlPlaneAvailable"), "severity": "Info"},
        {**condition("DataSecretAvailable", reason="WaitingForControlPlaneAvailable"), "severity": "Info"},
    ],
)
CNPG: Final = having(
    "postgresql.cnpg.io/v1",
    "Cluster",
    "gitea",
    phase="Waiting for the instances to become active",
    readyInstances=1,
    conditions=[condition("Ready", reason="ClusterIsNotReady", message="Cluster Is Not Ready")],
)
MULTI_ATTACH: Final = 'Multi-Attach error for volume "pvc-1": Volume is already exclusively attached to one node'
PENDING_POSTGRES: Final = pod(
    CNPG, "gitea-2", containerStatuses=[container(waiting("PodInitializing"))], spec={"nodeName": "node-2"}
)


def unscheduled(owner: Manifest, name: str, message: str) -> Manifest:
    found = condition("PodScheduled", reason="Unschedulable", message=message)
    return pod(owner, name, spec={"nodeName": ""}, conditions=[found])


def unpulled(owner: Manifest, name: str) -> Manifest:
    return pod(
        owner, name, containerStatuses=[container(waiting("ErrImagePull", "rpc error: code = NotFound: no such image"))]
    )


CASES: Final = [
    Case(
        "Strimzi",
        [KAFKA, POD_SET, unscheduled(POD_SET, "stack-kafka-2", NO_CPU)],
        ("The pod stack-kafka-2 cannot be scheduled", "Insufficient cpu", "so Kafka stack is not ready"),
        ("Kafka stack", "StrimziPodSet stack-kafka", "Pod stack-kafka-2"),
        f"{GITHUB}/strimzi/strimzi-kafka-operator/issues/9239",
    ),
    Case(
        "Zalando's PostgreSQL, which reports that it runs",
        [POSTGRES, POSTGRES_SET, unscheduled(POSTGRES_SET, "db-0", NO_CPU)],
        (
            "The pod db-0 cannot be scheduled",
            "so StatefulSet db has 0 of 1 pods ready",
            "so postgresql db has a problem, although it reports that it is ready",
        ),
        ("postgresql db", "StatefulSet db", "Pod db-0"),
        f"{GITHUB}/zalando/postgres-operator/issues/2864",
    ),
    Case(
        "KubeRay",
        [RAY_JOB, RAY, unpulled(RAY, "train-x-head")],
        ("The pod train-x-head cannot start", "no such image", "so RayCluster train-x", "so RayJob train is not ready"),
        ("RayJob train", "RayCluster train-x", "Pod train-x-head"),
        f"{GITHUB}/ray-project/kuberay/issues/1990",
    ),
    Case(
        "Knative",
        [
            KNATIVE,
            CONFIGURATION,
            REVISION,
            KNATIVE_WORKLOAD,
            KNATIVE_REPLICAS,
            pod(
                KNATIVE_REPLICAS,
                "fails-1-deployment-5f-x",
                phase="Running",
                containerStatuses=[container(waiting("CrashLoopBackOff"), last=EXIT, restarts=4)],
            ),
        ],
        ("The pod fails-1-deployment-5f-x is not ready", "ends with exit code 1", "so Revision", "so Service fails is"),
        (
            "Service fails",
            "Configuration fails",
            "Revision fails-1",
            "Deployment fails-1-deployment",
            "ReplicaSet fails-1-deployment-5f",
            "Pod fails-1-deployment-5f-x",
        ),
        f"{GITHUB}/knative/serving/issues/11337",
    ),
    Case(
        "cert-manager",
        [CERTIFICATE, REQUEST, ORDER, CHALLENGE],
        ("Challenge app-1-2-3 is not ready", "cannot find the DNS zone", "so Certificate app is not ready"),
        ("Certificate app", "CertificateRequest app-1", "Order app-1-2", "Challenge app-1-2-3"),
        f"{GITHUB}/cert-manager/cert-manager/issues/4160",
    ),
    Case(
        "Flux, whose objects do not refer to their owner",
        [RELEASE],
        ("HelmRelease postgresql is not ready", "RetriesExceeded: Failed to install"),
        ("HelmRelease postgresql",),
        f"{GITHUB}/fluxcd/helm-controller/issues/151",
    ),
    Case(
        "Tekton",
        [PIPELINE, TASK, unpulled(TASK, "build-fail-pod")],
        ("The pod build-fail-pod cannot start", "so TaskRun build-fail", "so PipelineRun build is not ready"),
        ("PipelineRun build", "TaskRun build-fail", "Pod build-fail-pod"),
        f"{GITHUB}/tektoncd/pipeline/issues/1913",
    ),
    Case(
        "Crossplane",
        [CLAIM, COMPOSITE],
        (
            "CompositeCluster cluster-01-kt is not ready",
            "ReconcileError: cannot select Composition: no compatible Compositions found",
            "so ClusterClaim cluster-01 is not ready",
        ),
        ("ClusterClaim cluster-01", "CompositeCluster cluster-01-kt"),
        f"{GITHUB}/vfarcic/crossplane-tutorial/issues/3",
    ),
    Case(
        "ECK",
        [
            ELASTIC,
            ELASTIC_SET,
            unscheduled(ELASTIC_SET, "admin-es-default-0", "pod has unbound immediate PersistentVolumeClaims"),
            ELASTIC_CLAIM,
            event(ELASTIC_CLAIM, "ProvisioningFailed", 'storageclass.storage.k8s.io "standard" not found'),
        ],
        ("The claim data-admin-es-default-0 is Pending", '"standard" not found', "so Elasticsearch admin is not ready"),
        (
            "Elasticsearch admin",
            "PersistentVolumeClaim data-admin-es-default-0",
            "StatefulSet admin-es-default",
            "Pod admin-es-default-0",
        ),
        f"{GITHUB}/elastic/cloud-on-k8s/issues/1101",
    ),
    Case(
        "Cluster API",
        [MACHINE, BOOTSTRAP],
        ("KubeadmConfig md-0-dv9 is not ready", "WaitingForControlPlaneAvailable", "so Machine md-0-dv9 is not ready"),
        ("Machine md-0-dv9", "KubeadmConfig md-0-dv9"),
        f"{GITHUB}/kubernetes-sigs/cluster-api/issues/3683",
    ),
    Case(
        "CloudNativePG",
        [CNPG, PENDING_POSTGRES, event(PENDING_POSTGRES, "FailedAttachVolume", MULTI_ATTACH)],
        ("The pod gitea-2 cannot start", "FailedAttachVolume: Multi-Attach error", "so Cluster gitea is not ready"),
        ("Cluster gitea", "Pod gitea-2"),
        f"{GITHUB}/cloudnative-pg/cloudnative-pg/issues/1566",
    ),
]


def explained(case: Case) -> OwnerExplanation:
    events = [one for one in case.objects if one["kind"] == "Event"]
    objects = [one for one in case.objects if one["kind"] != "Event"]
    snapshot = OwnerSnapshot(objects=objects, events=events, now=NOW)
    return explain_owner(snapshot, ObjectKey.of(case.objects[0]))


def names(node: TreeNode) -> list[str]:
    return [node.name, *(name for child in node.children for name in names(child))]


@pytest.mark.parametrize("case", [pytest.param(each, id=each.name) for each in CASES])
def test_the_cause_of_another_operators_owner_is_named(case: Case) -> None:
    found = explained(case)
    rest = found.sentence
    for part in case.parts:
        assert part in rest, f"{part!r} is not in {found.sentence!r}"
        rest = rest.partition(part)[2]
    assert tuple(names(found.root)) == case.names
    assert (found.root.state is State.READY) == ("although it reports that it is ready" in found.sentence)


@pytest.mark.parametrize("case", [pytest.param(each, id=each.name) for each in CASES])
def test_every_form_of_an_explanation_has_the_whole_tree(case: Case) -> None:
    found = explained(case)
    diagram = diagram_of(found)
    forms = [
        "\n".join(line for _, line in explanation_lines(found, NOW)),
        str(explanation_json(found)["tree"]),
        to_svg(diagram),
        to_mermaid(diagram),
    ]
    assert all(name in form for name in case.names for form in forms)
