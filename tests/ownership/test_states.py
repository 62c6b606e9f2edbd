"""The state of an object as the statuses of widely used operators say it: each bad state beside its good twin.

Rebuilt from public reports: https://github.com/strimzi/strimzi-kafka-operator/pull/1689 (the condition `NotReady`),
https://github.com/kubernetes-sigs/aws-load-balancer-controller/issues/1205 (a readiness gate),
https://github.com/wongnai/kube-slack/issues/37 (the output of a lifecycle hook).
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import pytest

from ocf.objects import Manifest, ObjectKey
from ocf.ownership import OwnerExplanation, OwnerSnapshot, State, explain_owner
from ocf.ownership.status import report
from tests.ownership.situations import REPLICAS, WEB
from tests.ownership.world import NOW, condition, container, event, obj, shop, waiting, workload

SILENT: Final = "its status does not say whether it is ready"


class Row(NamedTuple):
    """A status, the state that it means, and a part of what is said about it."""

    project: str
    kind: str
    status: Manifest | None
    state: str
    said: str = ""


def having(*conditions: Any, **fields: Any) -> Manifest:
    """Return a status with conditions, each as type, status, reason and message."""
    listed = [condition(*one) if isinstance(one, tuple) else one for one in conditions]
    return {"conditions": listed, **fields} if listed else fields


def argo(health: str, sync: str, operation: str, message: str = "") -> Manifest:
    return {
        "health": {"status": health},
        "sync": {"status": sync},
        "operationState": {"phase": operation, "message": message},
    }


KAFKA: Final = "kafka.strimzi.io/v1beta2 Kafka"
PROMETHEUS: Final = "monitoring.coreos.com/v1 Prometheus"
APPLICATION: Final = "argoproj.io/v1alpha1 Application"
WORKFLOW: Final = "argoproj.io/v1alpha1 Workflow"
GATEWAY: Final = "gateway.networking.k8s.io/v1 Gateway"
RAY: Final = "ray.io/v1 RayCluster"
RAY_JOB: Final = "ray.io/v1 RayJob"
SPARK: Final = "sparkoperator.k8s.io/v1beta2 SparkApplication"
POSTGRES: Final = "acid.zalan.do/v1 postgresql"
QUEUED: Final = "kueue.x-k8s.io/v1beta1 Workload"
SNAPSHOT: Final = "snapshot.storage.k8s.io/v1 VolumeSnapshot"
ELASTIC: Final = "elasticsearch.k8s.elastic.co/v1 Elasticsearch"
CEPH: Final = "ceph.rook.io/v1 CephCluster"
ORDER: Final = "acme.cert-manager.io/v1 Order"
BACKUP: Final = "velero.io/v1 Backup"
REVISION: Final = "serving.knative.dev/v1 Revision"
NODE_POOL: Final = "karpenter.sh/v1 NodePool"
SHOP: Final = "example.com/v1 Shop"
RAY_PENDING: Final = ("RayClusterProvisioned", "False", "RayClusterPodsProvisioning")
INFO: Final = {**condition("ResourcesAvailable", reason="NoTraffic"), "severity": "Info"}
URGENT: Final = {**condition("Ready", reason="WaitingForNodes"), "severity": "Info"}

NAMES: Final = [
    Row(
        "Strimzi", KAFKA, having(("NotReady", "True", "InvalidResourceException", "version 9")), "failing", "version 9"
    ),
    Row("Strimzi", KAFKA, having(("NotReady", "True", "Creating", "being deployed")), "progressing", "being deployed"),
    Row("Strimzi", KAFKA, having(("NotReady", "False")), "ready"),
    Row("Strimzi", KAFKA, having(("NotReady", "Unknown")), "progressing"),
    Row("a part", SHOP, having(("DeploymentNotReady", "True", "Crash", "it crashes")), "failing", "it crashes"),
    Row("a part", SHOP, having(("DeploymentNotReady", "False")), "ready"),
    Row("a part", SHOP, having(("DatabaseUnavailable", "True", "NoHost")), "progressing", "NoHost"),
    Row("a part", SHOP, having(("DatabaseUnavailable", "False")), "ready"),
    Row("a part that ends as a negation does", SHOP, having(("DryRunReady", "False")), "progressing"),
    Row("a part that ends as a negation does", SHOP, having(("DryRunReady", "True")), "ready"),
    Row("Kubernetes Node", "v1 Node", having(("Ready", "True"), ("NetworkUnavailable", "False")), "ready"),
    Row("Kubernetes Node", "v1 Node", having(("Ready", "True"), ("NetworkUnavailable", "True")), "progressing"),
]
VALUES: Final = [
    Row("Prometheus Operator", PROMETHEUS, having(("Available", "Degraded", "SomePodsNotReady")), "progressing"),
    Row("Prometheus Operator", PROMETHEUS, having(("Available", "True"), ("Reconciled", "True")), "ready"),
    *(
        Row(f"status {value!r}", SHOP, having({"type": "Ready", "status": value, "reason": "NoHost"}), state)
        for value, state in (
            ("True", "ready"),
            ("true", "ready"),
            (True, "ready"),
            ("False", "progressing"),
            ("false", "progressing"),
            (False, "progressing"),
            ("no", "progressing"),
            ("Error", "failing"),
            ("", "progressing"),
            (0, "progressing"),
            (["True"], "progressing"),
        )
    ),
    Row("status False of a fault", SHOP, having({"type": "Degraded", "status": False}, ("Ready", "True")), "ready"),
    Row("status true of a fault", SHOP, having({"type": "Degraded", "status": True}, ("Ready", "True")), "failing"),
]
FIELDS: Final = [
    Row("Argo CD", APPLICATION, argo("Healthy", "Synced", "Succeeded"), "ready"),
    Row("Argo CD", APPLICATION, argo("Degraded", "Synced", "Succeeded"), "failing", "health.status is Degraded"),
    Row("Argo CD", APPLICATION, argo("Healthy", "OutOfSync", "Succeeded"), "progressing", "OutOfSync"),
    Row("Argo CD", APPLICATION, argo("Healthy", "OutOfSync", "Failed", "one object"), "failing", "Failed: one object"),
    Row("Argo CD", APPLICATION, argo("Missing", "OutOfSync", "Running"), "progressing"),
    Row("Argo CD", APPLICATION, having({"type": "ComparisonError", "message": "no repository"}), "failing"),
    Row("Gateway API", GATEWAY, having(("Accepted", "True"), ("Programmed", "True")), "ready"),
    Row("Gateway API", GATEWAY, having(("Accepted", "True"), ("Programmed", "False", "NoAddress")), "progressing"),
    Row("Gateway API", GATEWAY, having(("Accepted", "False", "InvalidParameters")), "failing", "InvalidParameters"),
    Row("Gateway API", GATEWAY, having(("Accepted", "Unknown", "Pending")), "progressing"),
    Row("KubeRay", RAY_JOB, {"jobStatus": "FAILED", "message": "exit code 1"}, "failing", "FAILED: exit code 1"),
    Row("KubeRay", RAY_JOB, {"jobStatus": "RUNNING", "jobDeploymentStatus": "Running"}, "progressing"),
    Row("KubeRay", RAY_JOB, {"jobStatus": "SUCCEEDED", "jobDeploymentStatus": "Complete"}, "ready"),
    Row("KubeRay", RAY_JOB, {"jobStatus": "", "jobDeploymentStatus": "Initializing"}, "progressing"),
    Row("Spark", SPARK, {"applicationState": {"state": "FAILED", "errorMessage": "driver"}}, "failing", "driver"),
    Row("Spark", SPARK, {"applicationState": {"state": "SUBMISSION_FAILED"}}, "failing"),
    Row("Spark", SPARK, {"applicationState": {"state": "RUNNING"}}, "progressing"),
    Row("Spark", SPARK, {"applicationState": {"state": "COMPLETED"}}, "ready"),
    Row("Zalando", POSTGRES, {"PostgresClusterStatus": "CreateFailed"}, "failing"),
    Row("Zalando", POSTGRES, {"PostgresClusterStatus": "Creating"}, "progressing"),
    Row("Zalando", POSTGRES, {"PostgresClusterStatus": "Running"}, "ready"),
    Row("Kueue", QUEUED, having(("QuotaReserved", "False", "Pending", "no quota")), "progressing", "no quota"),
    Row("Kueue", QUEUED, having(("QuotaReserved", "True"), ("Admitted", "True")), "ready"),
    Row("Kueue", QUEUED, having(("QuotaReserved", "True"), ("Admitted", "False")), "progressing"),
    Row("snapshots", SNAPSHOT, {"readyToUse": False, "error": {"message": "no space"}}, "failing", "no space"),
    Row("snapshots", SNAPSHOT, {"readyToUse": False}, "progressing", "readyToUse is false"),
    Row("snapshots", SNAPSHOT, {"readyToUse": True}, "ready"),
]
WITHOUT_RULE: Final = [
    Row("CloudNativePG", "postgresql.cnpg.io/v1 Pooler", {"instances": 3}, "unknown", SILENT),
    Row("a number", SHOP, {"readyReplicas": 0}, "unknown", SILENT),
    Row("no condition", SHOP, {"conditions": []}, "unknown", SILENT),
    Row("only a generation", SHOP, {"observedGeneration": 1}, "unknown", SILENT),
    Row("a phase of its own", SHOP, {"phase": "Quiescent"}, "unknown", SILENT),
    Row("a state of an open meaning", "argoproj.io/v1alpha1 Rollout", {"phase": "Paused"}, "unknown", SILENT),
    Row("a condition of its own", SHOP, having(("Licensed", "False", "Error")), "unknown", SILENT),
    Row("Istio", "networking.istio.io/v1 VirtualService", None, "ready"),
    Row("Prometheus Operator", "monitoring.coreos.com/v1 PrometheusRule", None, "ready"),
    Row("Kubernetes", "v1 ConfigMap", None, "ready"),
    Row("Kubernetes", "networking.k8s.io/v1 NetworkPolicy", {}, "ready"),
    Row("Kubernetes", "policy/v1 PodDisruptionBudget", {"disruptionsAllowed": 0}, "ready"),
    Row("Kubernetes", "v1 ResourceQuota", {"hard": {"pods": "1"}}, "ready"),
]
PARTS: Final = [
    Row(
        "KubeRay",
        RAY,
        having(("HeadPodReady", "True"), RAY_PENDING, ("RayClusterReplicaFailure", "True", "NoPod", "quota")),
        "failing",
        "quota",
    ),
    Row("KubeRay", RAY, having(("HeadPodReady", "True"), RAY_PENDING), "unknown", SILENT),
    Row("KubeRay", RAY, having(("HeadPodReady", "True"), ("RayClusterProvisioned", "True")), "ready"),
    Row("a part and another", SHOP, having(("DatabaseReady", "True"), ("Completed", "False")), "unknown", SILENT),
    Row("a part and the whole", SHOP, having(("DatabaseReady", "True"), ("Ready", "False")), "progressing"),
    Row("a part and the whole", SHOP, having(("DatabaseReady", "False"), ("Ready", "True")), "progressing"),
    Row("ocf", SHOP, having(("DatabaseReady", "True"), ("WebReady", "True")), "ready"),
    Row("ocf", SHOP, having(("DatabaseReady", "True"), ("WebReady", "False")), "progressing"),
    Row("a part and progress", SHOP, having(("WebReady", "True"), ("Progressing", "False")), "ready"),
    Row("the whole and another", SHOP, having(("Ready", "True"), ("Licensed", "False")), "ready"),
    Row("a backup", SHOP, having(("Ready", "True"), ("LastBackupFailed", "True")), "failing"),
    Row("a backup", SHOP, having(("Ready", "True"), ("LastBackupFailed", "False")), "ready"),
    Row("CloudNativePG", SHOP, having(("Ready", "True"), ("ContinuousArchiving", "False")), "ready"),
    Row("Ansible", SHOP, having(("Running", "True"), ("Successful", "True"), ("Failure", "False")), "ready"),
    Row("Ansible", SHOP, having(("Running", "False"), ("Successful", "False"), ("Failure", "True")), "failing"),
    Row("Ansible", SHOP, having(("Running", "True"), ("Successful", "False")), "unknown", SILENT),
    Row("Helm", SHOP, having(("Initialized", "True"), ("Deployed", "True")), "ready"),
    Row("Helm", SHOP, having(("Deployed", "True"), ("ReleaseFailed", "True")), "failing"),
    Row("Helm", SHOP, having(("Initialized", "True"), ("Irreconcilable", "True")), "failing"),
    Row("OpenShift", SHOP, having(("Available", "True"), ("Degraded", "Unknown"), ("Progressing", "True")), "ready"),
]
WORST: Final = [
    Row("Elastic", ELASTIC, having(("ReconciliationComplete", "True"), phase="Ready", health="red"), "failing", "red"),
    Row("Elastic", ELASTIC, having(phase="Ready", health="green"), "ready"),
    Row("Elastic on one node", ELASTIC, having(phase="Ready", health="yellow"), "ready"),
    Row("Elastic", ELASTIC, having(phase="ApplyingChanges", health="green"), "progressing"),
    Row("a boolean", SHOP, {"phase": "Running", "ready": False}, "progressing", "status.ready is false"),
    Row("a boolean", SHOP, {"phase": "Running", "ready": True}, "ready"),
    Row("Rook", CEPH, having(("Ready", "True"), phase="Ready", ceph={"health": "HEALTH_ERR"}), "failing", "HEALTH_ERR"),
    Row("Rook", CEPH, having(("Ready", "True"), phase="Ready", ceph={"health": "HEALTH_WARN"}), "ready"),
    Row("Rook", CEPH, having(("Ready", "True"), phase="Ready", ceph={"health": "HEALTH_OK"}), "ready"),
    Row("Rook outside", CEPH, having(("Connected", "True"), phase="Connected", state="Connected"), "ready"),
    Row("Argo Workflows", WORKFLOW, {"phase": "Running"}, "progressing"),
    Row("Argo Workflows", WORKFLOW, {"phase": "Succeeded"}, "ready"),
    Row("Argo Workflows", WORKFLOW, having(("Completed", "True"), phase="Failed", message="child"), "failing", "child"),
    Row("Argo Workflows", "argoproj.io/v1alpha1 CronWorkflow", {"phase": "Running"}, "ready"),
    Row("Tekton", "tekton.dev/v1 PipelineRun", having(("Succeeded", "Unknown", "Running")), "progressing"),
    Row("Tekton", "tekton.dev/v1 PipelineRun", having(("Succeeded", "True", "Completed")), "ready"),
    Row("CloudNativePG", SHOP, having(("Ready", "True"), phase="Cluster in healthy state"), "ready"),
    Row("CloudNativePG", SHOP, {"phase": "Setting up primary"}, "progressing", "Setting up primary"),
    Row("CloudNativePG", SHOP, {"phase": "Failing over"}, "progressing"),
]
INFORMATION: Final = [
    Row("updates", SHOP, having(("Ready", "True"), ("UpdateAvailable", "False", "UpToDate")), "ready"),
    Row("updates", SHOP, having(("Ready", "True"), ("UpgradeAvailable", "False")), "ready"),
    Row("updates", SHOP, having(("Ready", "False"), ("UpdateAvailable", "True")), "progressing"),
    Row("updates alone", SHOP, having(("UpdateAvailable", "True")), "unknown", SILENT),
    Row("updates are no part", SHOP, having(("Ready", "True"), ("DatabaseAvailable", "False")), "progressing"),
    Row("Karpenter", NODE_POOL, having(("Ready", "True"), ("NodeRegistrationHealthy", "Unknown")), "ready"),
    Row("Karpenter", NODE_POOL, having(("Ready", "True"), ("NodeRegistrationHealthy", "False")), "progressing"),
    Row("Karpenter", NODE_POOL, having(("Ready", "Unknown"), ("NodeRegistrationHealthy", "Unknown")), "progressing"),
    Row("Knative", REVISION, having(("Ready", "True"), INFO), "ready"),
    Row("Knative", REVISION, having(("Ready", "True"), {**INFO, "severity": "Error"}), "progressing"),
    Row("Cluster API", "cluster.x-k8s.io/v1beta1 Cluster", having(URGENT), "progressing", "WaitingForNodes"),
]
WORDS: Final = {
    "ready": (
        "valid Enabled connected Provisioned AtLatestKnown validated Approved Processed Running Succeeded active Bound"
    ),
    "failing": "errored PartiallyFailed CreateFailed UpdateFailed invalid FinalizingPartiallyFailed red Error FAILED",
    "progressing": "Pending creating Provisioning InProgress Terminating WaitingForPluginOperations Unknown",
    "unknown": "Quiescent green-ish Released Stopped x",
}
OF_WORDS: Final = [
    Row(f"word {word}", SHOP, {name: word}, state)
    for state, words in WORDS.items()
    for word in words.split()
    for name in ("phase", "state")
]
ALL: Final = [*NAMES, *VALUES, *FIELDS, *WITHOUT_RULE, *PARTS, *WORST, *INFORMATION, *OF_WORDS]


def live(row: Row) -> Manifest:
    api_version, kind = row.kind.split()
    return obj(api_version, kind, "it", **({} if row.status is None else {"status": row.status}))


def explained(owner: Manifest, *others: Manifest) -> OwnerExplanation:
    return explain_owner(OwnerSnapshot(objects=[owner, *others], now=NOW), ObjectKey.of(owner))


@pytest.mark.parametrize("row", [pytest.param(one, id=f"{one.project}: {one.status}"[:90]) for one in ALL])
def test_the_state_of_an_object(row: Row) -> None:
    found = report(live(row))
    assert found.state == row.state, found
    assert row.said in found.text
    if found.state is not State.READY:
        assert found.text


@pytest.mark.parametrize("row", [pytest.param(one, id=f"{one.project}: {one.status}"[:90]) for one in ALL])
def test_the_state_of_an_owner_is_that_of_its_status(row: Row) -> None:
    """Also the sentence: an owner is not called ready that is not, nor the other way round."""
    if row.status:
        found = explained(live(row))
        assert found.root.state == row.state
        assert ("is ready for" in found.sentence) == (row.state == "ready")
        assert ("is not ready" in found.sentence) == (row.state in {"progressing", "failing"})
        assert (SILENT in found.sentence) == (row.state == "unknown")


def silent(name: str, *owners: Manifest, **fields: Any) -> Manifest:
    return obj("example.com/v1", "Shop", name, *owners, **fields or {"status": {"instances": 3}})


QUIET: Final = silent("quiet")


@pytest.mark.parametrize(
    ("objects", "state", "sentence"),
    [
        pytest.param(
            [QUIET],
            "unknown",
            f"Shop quiet is in an unknown state for 12 minutes: {SILENT}.",
            id="alone",
        ),
        pytest.param(
            [QUIET, obj("v1", "ConfigMap", "x", QUIET)],
            "ready",
            f"Shop quiet is ready for 12 minutes, with 1 object; {SILENT}.",
            id="with what is ready",
        ),
        pytest.param(
            [QUIET, workload("Deployment", QUIET)],
            "progressing",
            "Deployment web has 0 of 1 pods ready for 12 minutes; so Shop quiet has a problem; it does not report"
            " whether it is ready.",
            id="with what is not ready",
        ),
        pytest.param(
            [QUIET, silent("part", QUIET)],
            "unknown",
            f"Shop quiet is in an unknown state for 12 minutes: {SILENT}.",
            id="with what is unknown, too",
        ),
        pytest.param(
            [silent("quiet", spec={}), silent("part", QUIET)],
            "unknown",
            "Shop quiet is in an unknown state for 12 minutes: it has no status, and those of its objects do not say "
            "whether they are ready.",
            id="without a status, with what is unknown",
        ),
    ],
)
def test_an_owner_whose_status_does_not_say_it_is_as_ready_as_its_objects(
    objects: list[Manifest], state: str, sentence: str
) -> None:
    objects[0]["metadata"].pop("generation", None)
    found = explained(*objects)
    assert (found.root.state, found.sentence) == (state, sentence)


@pytest.mark.parametrize("ready", ["True", "False"])
def test_what_is_unknown_is_no_cause(ready: str) -> None:
    owner = shop(condition("Ready", ready, "NoHost", "waiting for a host"))
    part = silent("part", owner)
    found = explain_owner(
        OwnerSnapshot(objects=[owner, part], now=NOW, events=[event(part, "Retrying", "again")]), ObjectKey.of(owner)
    )
    assert "part" not in found.sentence
    assert [one.text for one in found.root.children] == [SILENT]


RUNNING: Final = {"running": {"startedAt": "2026-01-31T11:48:00Z"}}
GATE: Final = 'the status of pod readiness gate "target-health.elbv2.k8s.aws/web" is not "True", but False'
HOOK: Final = 'Exec lifecycle hook ([env]) for Container "app" failed - error: exited with 1: , message: "hunter2"'


def running(ready: Manifest, *containers: Manifest, **status: Any) -> Manifest:
    return {"phase": "Running", "conditions": [ready], "containerStatuses": list(containers), **status}


@pytest.mark.parametrize(
    ("status", "state", "said"),
    [
        pytest.param(
            running(condition("Ready", reason="ReadinessGatesNotReady", message=GATE), container(RUNNING, ready=True)),
            "progressing",
            f"The pod it is not ready for 12 minutes: ReadinessGatesNotReady: {GATE}",
            id="a readiness gate",
        ),
        pytest.param(
            running({**condition("Ready"), "reason": ""}, container(RUNNING, ready=True)),
            "progressing",
            "The pod it is not ready for 12 minutes: its condition Ready is False, although its containers are ready: "
            "node node-1 may be unreachable",
            id="an unreachable node",
        ),
        pytest.param(
            running(
                condition("Ready", reason="ContainersNotReady"),
                container(RUNNING, ready=True),
                initContainerStatuses=[{**container(RUNNING), "name": "proxy"}],
            ),
            "progressing",
            "The pod it is not ready for 12 minutes: init container proxy is running, but not ready",
            id="a sidecar",
        ),
        pytest.param(
            running(condition("Ready", reason="ContainersNotReady"), container(waiting("PostStartHookError", HOOK))),
            "failing",
            "The pod it cannot start for 12 minutes: PostStartHookError: container app: its lifecycle hook has failed",
            id="a lifecycle hook",
        ),
        pytest.param(
            running(condition("Ready", "True"), container(RUNNING, ready=True)),
            "ready",
            "Deployment web has 0 of 1 pods ready for 12 minutes",
            id="ready",
        ),
    ],
)
def test_a_pod_is_as_ready_as_its_condition_says(status: Manifest, state: str, said: str) -> None:
    """Its containers may be ready while the endpoints of its Service leave it out."""
    pod = obj("v1", "Pod", "it", REPLICAS, spec={"nodeName": "node-1"}, status=status)
    found = explained(*WEB, pod)
    assert found.sentence.startswith(f"{said}; so ")
    node = found.root.children[0].children[0].children[0]
    assert node.state == state
    assert "hunter2" not in found.sentence + node.text
