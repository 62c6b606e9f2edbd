"""Situations of nodes, images, Jobs and gateways, and of changes that the API server refuses.

The events and messages are those of the reports; names are shortened.
"""

from __future__ import annotations

from typing import Final

from ocf.objects import Manifest
from tests.ownership.situations import (
    DEPLOYMENT,
    GITHUB,
    JOB_SPEC,
    NOT_READY,
    OF_DEPLOYMENT,
    SHOP,
    STATEFUL,
    Situation,
    reporting,
    with_event,
    with_pod,
    with_refused_pods,
)
from tests.ownership.world import (
    ago,
    cluster_scoped,
    condition,
    container,
    event,
    obj,
    pod,
    waiting,
    workload,
)

GATEWAYS: Final = "gateway.networking.k8s.io/v1"
UNTAKEN: Final = {
    **condition("Accepted", "Unknown", "Pending", "Waiting for controller"),
    "lastTransitionTime": "1970-01-01T00:00:00Z",
}
GATEWAY: Final = obj(
    GATEWAYS,
    "Gateway",
    "front",
    SHOP,
    spec={"gatewayClassName": "nginx", "listeners": [{"name": "http", "port": 80, "protocol": "HTTP"}]},
    status={"conditions": [UNTAKEN]},
)
MIGRATION: Final = obj("batch/v1", "Job", "migrate", SHOP, spec=JOB_SPEC, status={"active": 1})


def unscheduled(owner: Manifest, message: str) -> Manifest:
    found = condition("PodScheduled", reason="Unschedulable", message=message)
    return pod(owner, "web-x", spec={"nodeName": ""}, conditions=[found])


def failed_migration(reason: str, message: str) -> Manifest:
    return {**MIGRATION, "status": {"failed": 5, "conditions": [condition("Failed", "True", reason, message)]}}


def node_group(*conditions: Manifest, name: str = "general") -> Manifest:
    metadata = {"namespace": "ops"}
    status = {"conditions": list(conditions)}
    return obj(
        "autoscaling.ocf.dev/v1alpha1", "NodeGroup", name, metadata=metadata, spec={"maxNodes": 9}, status=status
    )


NO_ROOM: Final = unscheduled(
    STATEFUL, "0/9 nodes are available: 9 Insufficient cpu. preemption: 0/9 nodes are available: 9 No victims found."
)
NOT_SCALED_UP: Final = (
    "pod didn't trigger scale-up: 12 node(s) didn't match Pod's node affinity/selector, 3 max node group size reached"
)
NO_TYPE: Final = 'Failed to schedule pod, all available instance types exceed limits for nodepool: "default"'
NODES: Final = [
    Situation(
        "the volume of a pod is on a node where the pod may not run",
        ("The pod web-x cannot be scheduled", "1 node(s) had volume node affinity conflict", *NOT_READY),
        [
            SHOP,
            (stateful := workload("StatefulSet", SHOP)),
            unscheduled(stateful, "0/1 nodes are available: 1 node(s) had volume node affinity conflict."),
        ],
        f"{GITHUB}/mongodb/mongodb-kubernetes-operator/issues/489",
    ),
    Situation(
        "another program has the port of the node",
        ("The pod web-x cannot be scheduled", "free ports for the requested pod ports", "so DaemonSet web has 0 of 1"),
        [
            SHOP,
            (daemons := workload("DaemonSet", SHOP)),
            unscheduled(
                daemons, "0/1 nodes are available: 1 node(s) didn't have free ports for the requested pod ports."
            ),
        ],
        f"{GITHUB}/Appdynamics/appdynamics-operator/issues/41",
    ),
    Situation(
        "the groups of nodes are as large as they may be",
        (
            "The pod web-x cannot be scheduled for 12 minutes: 0/9 nodes are available: 9 Insufficient cpu; no node",
            "is added: 12 node(s) didn't match Pod's node affinity/selector, 3 max node group size reached",
            *NOT_READY,
        ),
        [SHOP, STATEFUL, NO_ROOM, event(NO_ROOM, "NotTriggerScaleUp", NOT_SCALED_UP, kind="Normal")],
        f"{GITHUB}/kubernetes/autoscaler/issues/5692",
    ),
    Situation(
        "a pool of nodes has a limit",
        (
            "The pod web-x cannot be scheduled",
            "Insufficient cpu; no node is added: all available instance types exceed limits for nodepool",
            *NOT_READY,
        ),
        [SHOP, STATEFUL, NO_ROOM, event(NO_ROOM, "FailedScheduling", NO_TYPE)],
        f"{GITHUB}/aws/karpenter-provider-aws/issues/4698",
    ),
    Situation(
        "a NodeGroup is as large as it may be",
        ("The pod web-x cannot be scheduled", "no node is added: NodeGroup general has its most nodes, 9", *NOT_READY),
        [SHOP, STATEFUL, NO_ROOM, node_group(condition("AtMaxCapacity", "True", "AtMaximumCapacity"))],
        f"{GITHUB}/kubernetes/autoscaler/issues/1607",
    ),
    Situation(
        "one NodeGroup is as large as it may be, and another one grows",
        (
            "The pod web-x cannot be scheduled for 12 minutes: 0/9 nodes are available: 9 Insufficient cpu. pre",
            *NOT_READY,
        ),
        [
            SHOP,
            STATEFUL,
            NO_ROOM,
            node_group(condition("AtMaxCapacity", "True", "AtMaximumCapacity")),
            node_group(condition("AtMaxCapacity", "False", "BelowMaximumCapacity"), name="large"),
        ],
        f"{GITHUB}/kubernetes/autoscaler/issues/5692",
    ),
    Situation(
        "the provider of a NodeGroup has no quota left",
        (
            "The pod web-x cannot be scheduled",
            "NodeGroup general: large: the quota of 9 is used up",
            *NOT_READY,
        ),
        [
            SHOP,
            STATEFUL,
            NO_ROOM,
            node_group(
                condition("Error", "True", "NodeProvisioningFailed", "large: the quota of 9 is used up"),
                condition("AtMaxCapacity", "False", "BelowMaximumCapacity"),
            ),
        ],
        f"{GITHUB}/kubernetes/autoscaler/issues/3268",
    ),
    Situation(
        "the network of a pod cannot be made",
        ("The pod web-7d4-x cannot start", "FailedCreatePodSandBox: Failed to create pod sandbox", *OF_DEPLOYMENT),
        with_event(
            waiting("ContainerCreating"),
            "FailedCreatePodSandBox",
            "Failed to create pod sandbox: networkPlugin cni failed to set up pod: netplugin failed: signal: killed",
        ),
        f"{GITHUB}/rook/rook/issues/9731",
    ),
    Situation(
        "a node had no room on its disk",
        ("The pod web-7d4-x is not ready", "Evicted", "DiskPressure", *OF_DEPLOYMENT),
        with_pod(phase="Failed", reason="Evicted", message="Pod The node had condition: [DiskPressure]. "),
        f"{GITHUB}/operate-first/apps/issues/1352",
    ),
]
IMAGES: Final = [
    Situation(
        "the name of an image has no repository",
        (
            "The pod migrate-x cannot start",
            "InvalidImageName",
            "couldn't parse image name",
            "so Job migrate",
            *NOT_READY,
        ),
        [
            SHOP,
            MIGRATION,
            pod(
                MIGRATION,
                "migrate-x",
                containerStatuses=[
                    container(
                        waiting(
                            "InvalidImageName",
                            'Failed to apply default image tag ":1": couldn\'t parse image name ":1": invalid format',
                        )
                    )
                ],
            ),
        ],
        f"{GITHUB}/alexandrevilain/temporal-operator/issues/938",
    ),
    Situation(
        "the program is not in the image",
        (
            "The pod web-7d4-x cannot start",
            "StartError: container app cannot start",
            "not found in $PATH",
            *OF_DEPLOYMENT,
        ),
        with_pod(
            phase="Running",
            containerStatuses=[
                container(
                    waiting("CrashLoopBackOff", "back-off 5m0s restarting failed container=app pod=web-7d4-x"),
                    last={
                        "terminated": {
                            "exitCode": 128,
                            "reason": "StartError",
                            "message": 'exec: "/cluster/operator": executable file not found in $PATH',
                            "finishedAt": ago(2),
                        }
                    },
                    restarts=6,
                )
            ],
        ),
        f"{GITHUB}/opencontainers/runc/issues/4713",
    ),
]
REJECTED: Final = [
    Situation(
        "a quota requires limits that the containers do not have",
        ("StatefulSet web cannot create pods", "failed quota: compute: must specify limits.cpu", *NOT_READY),
        with_refused_pods(
            'pods "web-0" is forbidden: failed quota: compute: must specify limits.cpu for: init', "StatefulSet"
        ),
        f"{GITHUB}/percona/percona-helm-charts/issues/460",
    ),
    Situation(
        "the claim of a StatefulSet is invalid",
        ("StatefulSet web cannot create pods", "spec.resources[storage]: Required value", *NOT_READY),
        with_refused_pods(
            'failed to create PVC data-web-0: PersistentVolumeClaim "data-web-0" is invalid: '
            "spec.resources[storage]: Required value",
            "StatefulSet",
        ),
        f"{GITHUB}/OT-CONTAINER-KIT/redis-operator/issues/628",
    ),
    Situation(
        "the operator changes a field that cannot be changed",
        ("Shop corner is not ready", 'Service "web" is invalid: spec.clusterIP', "field is immutable"),
        reporting("ReconcileError", 'Service "web" is invalid: spec.clusterIP: Invalid value: "": field is immutable'),
        f"{GITHUB}/istio/istio/issues/21047",
    ),
    Situation(
        "two fields exclude each other after a change",
        ("Shop corner is not ready", "spec.strategy.rollingUpdate: Forbidden"),
        reporting(
            "Error",
            'Deployment.apps "web" is invalid: spec.strategy.rollingUpdate: Forbidden: may not be specified when '
            "strategy `type` is 'Recreate'",
        ),
        f"{GITHUB}/kubernetes/kubernetes/issues/24198",
    ),
    Situation(
        "fields of a former writer are left without what they need",
        ("Shop corner is not ready", "spec.template.spec.containers[1].image: Required value"),
        reporting("Error", 'Deployment.apps "web" is invalid: spec.template.spec.containers[1].image: Required value'),
        f"{GITHUB}/fluxcd/kustomize-controller/issues/1722",
    ),
]
ENDED: Final = [
    Situation(
        "a rollout has not progressed for too long, and no pod says why",
        ("Deployment web has 0 of 1 pods ready", "ProgressDeadlineExceeded", *NOT_READY),
        [
            SHOP,
            {
                **DEPLOYMENT,
                "status": {
                    **DEPLOYMENT["status"],
                    "conditions": [
                        condition("Progressing", reason="ProgressDeadlineExceeded", message="timed out progressing.")
                    ],
                },
            },
        ],
        f"{GITHUB}/openstack-k8s-operators/keystone-operator/pull/552",
    ),
    Situation(
        "a Job took longer than it may",
        ("Job migrate has failed", "DeadlineExceeded: Job was active longer than specified deadline", *NOT_READY),
        [SHOP, failed_migration("DeadlineExceeded", "Job was active longer than specified deadline")],
        f"{GITHUB}/cdapio/cdap-operator/pull/36",
    ),
    Situation(
        "an autoscaler names another kind than its target has",
        ("HorizontalPodAutoscaler web cannot scale", 'deployments/scale.apps "web" not found', *NOT_READY),
        [
            SHOP,
            workload("StatefulSet", SHOP, ready=1, status={"currentReplicas": 1}),
            obj(
                "autoscaling/v2",
                "HorizontalPodAutoscaler",
                "web",
                SHOP,
                spec={"scaleTargetRef": {"kind": "Other", "name": "web"}, "maxReplicas": 3},
                status={
                    "conditions": [
                        condition(
                            "AbleToScale",
                            reason="FailedGetScale",
                            message="the HPA controller was unable to get the target's current scale: "
                            'deployments/scale.apps "web" not found',
                        )
                    ]
                },
            ),
        ],
        f"{GITHUB}/splunk/splunk-connect-for-syslog/issues/1289",
    ),
]
GATEWAY_API: Final = [
    Situation(
        "the class of a Gateway does not exist",
        ("Gateway front has no controller for 12 minutes: no GatewayClass named nginx", *NOT_READY),
        [SHOP, GATEWAY],
        f"{GITHUB}/nginx/nginx-gateway-fabric/issues/701",
    ),
    Situation(
        "no controller has taken the class of a Gateway",
        ("Gateway front has no controller for 12 minutes: GatewayClass nginx: Waiting for controller", *NOT_READY),
        [
            SHOP,
            GATEWAY,
            cluster_scoped(
                GATEWAYS,
                "GatewayClass",
                "nginx",
                spec={"controllerName": "example.com/gateways"},
                status={"conditions": [UNTAKEN]},
            ),
        ],
        f"{GITHUB}/kgateway-dev/kgateway/issues/14012",
    ),
]
