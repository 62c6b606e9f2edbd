"""Situations in which pods do not start or are not ready, and the API server refuses pods.

The events and messages are those of the reports; names are shortened.
"""

from __future__ import annotations

from typing import Final

from tests.ownership.situations import (
    CRASH,
    EXIT,
    GITHUB,
    NOT_READY,
    OF_DEPLOYMENT,
    OOM,
    RUNNING,
    SHOP,
    STATEFUL,
    Situation,
    with_event,
    with_pod,
    with_refused_pods,
)
from tests.ownership.world import (
    condition,
    container,
    event,
    pod,
    waiting,
)

PODS: Final = [
    Situation(
        "an image does not exist",
        ("The pod web-7d4-x cannot start for 12 minutes: ImagePullBackOff", "manifest unknown", *OF_DEPLOYMENT),
        with_pod(
            containerStatuses=[
                container(waiting("ErrImagePull", "rpc error: code = NotFound desc = web:1: manifest unknown"))
            ]
        ),
        f"{GITHUB}/open-telemetry/opentelemetry-operator/issues/239",
    ),
    Situation(
        "a program runs out of memory",
        ("The pod web-7d4-x is not ready", "CrashLoopBackOff", "exit code 137 (OOMKilled)", *OF_DEPLOYMENT),
        with_pod(phase="Running", containerStatuses=[container(CRASH, last=OOM, restarts=9)]),
        f"{GITHUB}/IBM/cloud-operators/issues/260",
    ),
    Situation(
        "a program ends with an error",
        ("The pod web-7d4-x is not ready", "container app ends with exit code 1", *OF_DEPLOYMENT),
        with_pod(phase="Running", containerStatuses=[container(CRASH, last=EXIT, restarts=9)]),
        f"{GITHUB}/IBM/cloud-pak/issues/475",
    ),
    Situation(
        "an init container ends with an error",
        ("The pod web-7d4-x is not ready", "init container app ends with exit code 1", *OF_DEPLOYMENT),
        with_pod(initContainerStatuses=[container(CRASH, last=EXIT, restarts=17)]),
        f"{GITHUB}/stackabletech/zookeeper-operator/issues/357",
    ),
    Situation(
        "an init container does not end",
        ("The pod web-7d4-x is not ready", "init container app has not ended", *OF_DEPLOYMENT),
        with_pod(initContainerStatuses=[container(RUNNING)]),
        f"{GITHUB}/goharbor/harbor-helm/issues/373",
    ),
    Situation(
        "a variable needs a Secret that does not exist",
        ("The pod web-7d4-x cannot start", 'CreateContainerConfigError: container app: secret "db" not found'),
        with_pod(containerStatuses=[container(waiting("CreateContainerConfigError", 'secret "db" not found'))]),
        f"{GITHUB}/kubernetes-sigs/secrets-store-csi-driver/issues/236",
    ),
    Situation(
        "a volume needs a Secret that does not exist",
        ("The pod web-7d4-x cannot start", 'FailedMount: MountVolume.SetUp failed for volume "cert" : secret "tls"'),
        with_event(
            waiting("ContainerCreating"),
            "FailedMount",
            'MountVolume.SetUp failed for volume "cert" : secret "tls" not found',
        ),
        f"{GITHUB}/actions/actions-runner-controller/issues/1673",
    ),
    Situation(
        "a volume needs a Secret, and the event is gone",
        ("The pod web-7d4-x cannot start", 'Secret "auth-proxy-certs" does not exist', *OF_DEPLOYMENT),
        with_pod(
            spec={"volumes": [{"name": "certs", "secret": {"secretName": "auth-proxy-certs"}}]},
            containerStatuses=[container(waiting("ContainerCreating"))],
        ),
        f"{GITHUB}/matt-deboer/kuill/issues/83",
    ),
    Situation(
        "a volume is attached to another node",
        ("The pod web-7d4-x cannot start", "FailedAttachVolume: Multi-Attach error", *OF_DEPLOYMENT),
        with_event(
            waiting("ContainerCreating"),
            "FailedAttachVolume",
            'Multi-Attach error for volume "pvc-80c" Volume is already exclusively attached to one node',
        ),
        f"{GITHUB}/longhorn/longhorn/issues/5345",
    ),
    Situation(
        "the nodes are full",
        ("The pod web-0 cannot be scheduled for 12 minutes: 0/1 nodes are available: 1 Insufficient cpu", *NOT_READY),
        [
            SHOP,
            STATEFUL,
            pod(
                STATEFUL,
                spec={"nodeName": ""},
                conditions=[
                    condition(
                        "PodScheduled",
                        reason="Unschedulable",
                        message="0/1 nodes are available: 1 Insufficient cpu. preemption: 0/1 nodes are available",
                    )
                ],
            ),
        ],
        f"{GITHUB}/minio/minio/issues/18991",
    ),
    Situation(
        "no node has the labels",
        ("The pod web-7d4-x cannot be scheduled", "didn't match node selector", *OF_DEPLOYMENT),
        with_pod(
            spec={"nodeName": ""},
            conditions=[
                condition(
                    "PodScheduled",
                    reason="Unschedulable",
                    message="0/3 nodes are available: 3 node(s) didn't match node selector.",
                )
            ],
        ),
        f"{GITHUB}/huanwei/rocketmq-operator/issues/48",
    ),
    Situation(
        "a program does not answer its readiness probe",
        ("The pod web-7d4-x is not ready", "Readiness probe failed: HTTP probe failed with statuscode: 500"),
        [
            *(found := with_pod(phase="Running", containerStatuses=[container(RUNNING)])),
            event(found[-1], "Unhealthy", "Readiness probe failed: HTTP probe failed with statuscode: 500"),
        ],
        f"{GITHUB}/open-policy-agent/gatekeeper/issues/4055",
    ),
    Situation(
        "nothing listens on the port of a probe",
        ("The pod web-7d4-x is not ready", "connection refused", *OF_DEPLOYMENT),
        [
            *(listening := with_pod(phase="Running", containerStatuses=[container(RUNNING)])),
            event(
                listening[-1],
                "Unhealthy",
                'Readiness probe failed: Get "http://10.1.2.3:8080/readyz": dial tcp 10.1.2.3:8080: connect: '
                "connection refused",
            ),
        ],
        f"{GITHUB}/kurator-dev/kurator/issues/424",
    ),
    Situation(
        "a node does not start the containers of a pod",
        ("The pod web-7d4-x cannot start", "FailedCreatePodSandBox", *OF_DEPLOYMENT),
        with_event(
            waiting("ContainerCreating"),
            "FailedCreatePodSandBox",
            "Failed to create pod sandbox: rpc error: code = Unknown desc = failed to setup network for sandbox",
        ),
        f"{GITHUB}/PaloAltoNetworks/cn-series-helm/issues/20",
    ),
]

REFUSED: Final = [
    Situation(
        "the quota of the namespace is exceeded",
        ("ReplicaSet web-7d4 cannot create pods", "exceeded quota: namespace-quota", *OF_DEPLOYMENT),
        with_refused_pods(
            'pods "web-7d4-w2tz8" is forbidden: exceeded quota: namespace-quota, requested: limits.cpu=1, used: '
            "limits.cpu=5426m, limited: limits.cpu=6"
        ),
        f"{GITHUB}/ministryofjustice/cloud-platform-environments/pull/174",
    ),
    Situation(
        "a quota needs requests that the pods do not have",
        ("StatefulSet web cannot create pods", "must specify requests.cpu", *NOT_READY),
        with_refused_pods(
            'pods "web-0" is forbidden: failed quota: fpl-quota: must specify requests.cpu,requests.memory',
            "StatefulSet",
        ),
        f"{GITHUB}/hmcts/cnp-flux-config/pull/13765",
    ),
    Situation(
        "the pods violate a security standard",
        ("ReplicaSet web-7d4 cannot create pods", 'violates PodSecurity "restricted:latest"', *OF_DEPLOYMENT),
        with_refused_pods(
            'pods "web-7d4-bs672" is forbidden: violates PodSecurity "restricted:latest": runAsNonRoot != true'
        ),
        f"{GITHUB}/adyanth/cloudflare-operator/issues/110",
    ),
    Situation(
        "the service account of the pods does not exist",
        ("StatefulSet web cannot create pods", 'serviceaccount "zalando-postgres-operator" not found', *NOT_READY),
        with_refused_pods(
            'pods "web-0" is forbidden: error looking up service account town/zalando-postgres-operator: '
            'serviceaccount "zalando-postgres-operator" not found',
            "StatefulSet",
        ),
        f"{GITHUB}/zalando/postgres-operator/issues/661",
    ),
    Situation(
        "a webhook rejects the pods",
        ("ReplicaSet web-7d4 cannot create pods", 'admission webhook "apartment" denied the request', *OF_DEPLOYMENT),
        with_refused_pods('admission webhook "apartment" denied the request: need apartment annotation for pod'),
        f"{GITHUB}/kubernetes/kubernetes/issues/55924",
    ),
    Situation(
        "a webhook does not answer",
        ("ReplicaSet web-7d4 cannot create pods", "Timeout: request did not complete", *OF_DEPLOYMENT),
        with_refused_pods("Timeout: request did not complete within requested timeout 30s"),
        f"{GITHUB}/stackrox/admission-controller-webhook-demo/issues/2",
    ),
]
