"""Situations of volumes, Jobs, networks, autoscalers, and of operators and owners themselves.

The events and messages are those of the reports; names are shortened.
"""

from __future__ import annotations

from typing import Final

from tests.ownership.situations import (
    CLAIM,
    FAST,
    GITHUB,
    JOB_SPEC,
    NOT_READY,
    SHOP,
    STATEFUL,
    UNSCHEDULED,
    WEB,
    Situation,
    deleted_shop,
    ingress,
    reporting,
    service,
    unseen_shop,
    with_claim,
)
from tests.ownership.world import (
    ago,
    cluster_scoped,
    condition,
    event,
    lease,
    obj,
    shop,
    workload,
    written,
)

VOLUMES: Final = [
    Situation(
        "the storage class does not exist, and no event says so",
        ("The claim data-web-0 is Pending for 12 minutes: no StorageClass named fast", "so StatefulSet web has 0 of 1"),
        with_claim(),
        f"{GITHUB}/kubernetes/kubernetes/issues/81714",
    ),
    Situation(
        "no volume is available, and no storage class is the default",
        ("The claim data-web-0 is Pending", "no persistent volumes available for this claim", *NOT_READY),
        [
            SHOP,
            STATEFUL,
            UNSCHEDULED,
            (plain := {**CLAIM, "spec": {}}),
            event(
                plain,
                "FailedBinding",
                "no persistent volumes available for this claim and no storage class is set",
                kind="Normal",
            ),
        ],
        f"{GITHUB}/kubevious/helm/issues/6",
    ),
    Situation(
        "the driver cannot make the volume",
        ("The claim data-web-0 is Pending", "ProvisioningFailed: failed to provision volume", *NOT_READY),
        with_claim(FAST, event(CLAIM, "ProvisioningFailed", 'failed to provision volume with StorageClass "fast"')),
        f"{GITHUB}/rook/rook/issues/8315",
    ),
    Situation(
        "the volume of a claim is gone",
        ("The claim data-web-0 is Lost", "so StatefulSet web has 0 of 1 pods ready", *NOT_READY),
        [SHOP, STATEFUL, UNSCHEDULED, {**CLAIM, "status": {"phase": "Lost"}}, FAST],
        f"{GITHUB}/openshift/origin/issues/30050",
    ),
]

JOBS_AND_NETWORKS: Final = [
    Situation(
        "a Job has used up its retries",
        ("Job migrate has failed for 12 minutes: BackoffLimitExceeded", *NOT_READY),
        [
            SHOP,
            obj(
                "batch/v1",
                "Job",
                "migrate",
                SHOP,
                spec=JOB_SPEC,
                status={
                    "failed": 7,
                    "conditions": [
                        condition("Failed", "True", "BackoffLimitExceeded", "Job has reached the specified limit")
                    ],
                },
            ),
        ],
        f"{GITHUB}/cloudnative-pg/cloudnative-pg/pull/11035",
    ),
    Situation(
        "the load balancer cannot be made",
        ("Service web has no address", "SyncLoadBalancerFailed: Error syncing load balancer", *NOT_READY),
        [
            SHOP,
            (balanced := service(type="LoadBalancer", selector={})),
            event(balanced, "SyncLoadBalancerFailed", "Error syncing load balancer: failed to ensure load balancer"),
        ],
        f"{GITHUB}/jupyterhub/helm-chart/issues/111",
    ),
    Situation(
        "no controller makes load balancers",
        ("Service web has no address for 12 minutes: Awaiting load balancer", *NOT_READY),
        [SHOP, service(type="LoadBalancer", selector={})],
        f"{GITHUB}/linkerd/linkerd-examples/issues/166",
    ),
    Situation(
        "the selector of a Service selects no pod",
        ("Service web has no endpoints: no pod has the labels app=web of its selector", *NOT_READY),
        [SHOP, service()],
        f"{GITHUB}/datashim-io/datashim/issues/276",
    ),
    Situation(
        "the class of an Ingress does not exist",
        ("Ingress web has no address for 12 minutes: no IngressClass named apisix", *NOT_READY),
        [SHOP, service(selector={}), ingress(ingressClassName="apisix")],
        f"{GITHUB}/apache/apisix-ingress-controller/issues/1988",
    ),
    Situation(
        "an Ingress names no class, and none is the default",
        ("Ingress web has no address", "it names no IngressClass, and none is the default", *NOT_READY),
        [
            SHOP,
            service(selector={}),
            ingress(),
            cluster_scoped("networking.k8s.io/v1", "IngressClass", "nginx", spec={"controller": "example.com/nginx"}),
        ],
        f"{GITHUB}/kubernetes-sigs/kubespray/issues/10401",
    ),
    Situation(
        "an autoscaler gets no metrics",
        ("HorizontalPodAutoscaler web cannot scale", "FailedGetResourceMetric", "no metrics returned", *NOT_READY),
        [
            SHOP,
            workload("Deployment", SHOP, ready=1),
            obj(
                "autoscaling/v2",
                "HorizontalPodAutoscaler",
                "web",
                SHOP,
                spec={
                    "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
                    "maxReplicas": 4,
                },
                status={
                    "currentReplicas": 1,
                    "desiredReplicas": 0,
                    "conditions": [
                        condition("AbleToScale", "True", "SucceededGetScale"),
                        condition(
                            "ScalingActive",
                            "False",
                            "FailedGetResourceMetric",
                            "the HPA was unable to compute the replica count: no metrics returned from resource "
                            "metrics API",
                        ),
                    ],
                },
            ),
        ],
        f"{GITHUB}/application-stacks/runtime-component-operator/issues/127",
    ),
]


OPERATORS: Final = [
    Situation(
        "the operator may not list a kind",
        ("Shop corner is not ready for 12 minutes", 'cannot list resource "podmonitors"'),
        reporting(
            "ReconcileError",
            'podmonitors.monitoring.coreos.com is forbidden: User "system:serviceaccount:keycloak:keycloak-operator" '
            'cannot list resource "podmonitors" in API group "monitoring.coreos.com" at the cluster scope',
        ),
        f"{GITHUB}/keycloak/keycloak-operator/pull/129",
    ),
    Situation(
        "the cluster does not have a kind",
        ("Shop corner is not ready", 'no matches for kind "ServiceMonitor" in version "monitoring.coreos.com/v1"'),
        [
            *reporting("ReconcileError", 'no matches for kind "ServiceMonitor" in version "monitoring.coreos.com/v1"'),
            *WEB[1:2],
        ],
        f"{GITHUB}/prometheus-operator/prometheus-operator/issues/1866",
    ),
    Situation(
        "an object belongs to another owner",
        ("Shop corner is not ready", "is already owned by another TrustyAIService controller"),
        reporting("ReconcileError", "Object town/web is already owned by another TrustyAIService controller web"),
        f"{GITHUB}/trustyai-explainability/trustyai-service-operator/issues/32",
    ),
    Situation(
        "the certificate of a webhook is not trusted",
        ("Shop corner is not ready", 'failed calling webhook "mmariadb.kb.io"', "x509"),
        reporting(
            "Failed",
            'Internal error occurred: failed calling webhook "mmariadb.kb.io": failed to call webhook: x509: '
            "certificate signed by unknown authority",
        ),
        f"{GITHUB}/mariadb-operator/mariadb-operator/issues/285",
    ),
    Situation(
        "an object that the operator needs does not exist",
        ("Shop corner is not ready", 'ReconcilliationError: IstioOperator.install.istio.io "istiocontrolplane"'),
        reporting("ReconcilliationError", 'IstioOperator.install.istio.io "istiocontrolplane" not found'),
        f"{GITHUB}/Kuadrant/kuadrant-operator/issues/169",
    ),
    Situation(
        "an owner without conditions has a phase",
        ("Shop corner is not ready", "status.phase is Failed: the database does not answer"),
        [shop(status={"phase": "Failed", "message": "the database does not answer"})],
        f"{GITHUB}/CrunchyData/postgres-operator/issues/75",
    ),
    Situation(
        "the operator was uninstalled before its owner",
        (
            "The operator does not run: its Lease ops/8.example.com was renewed 2 days ago for the last time",
            "so the finalizer kuadrant.io/finalizer has not been removed",
            "so Shop corner is being deleted for 2 hours",
        ),
        [deleted_shop("kuadrant.io/finalizer"), lease("8.example.com", renewed=2880)],
        f"{GITHUB}/tigera/operator/issues/2031",
    ),
    Situation(
        "a finalizer is left, and its operator is not known",
        ("The finalizer opensearch.opster.io/opensearch-data has not been removed", "so Shop corner is being deleted"),
        [deleted_shop("opensearch.opster.io/opensearch-data")],
        f"{GITHUB}/opensearch-project/opensearch-k8s-operator/issues/814",
    ),
    Situation(
        "a dependent holds a deletion in the foreground",
        (
            "The claim data-web-0 is being deleted for 100 minutes: the finalizer kubernetes.io/pvc-protection remains",
            "so the finalizer foregroundDeletion has not been removed",
            "so Shop corner is being deleted for 2 hours",
        ),
        [
            (ended := deleted_shop("foregroundDeletion")),
            obj(
                "v1",
                "PersistentVolumeClaim",
                "data-web-0",
                ended,
                metadata={"deletionTimestamp": ago(100), "finalizers": ["kubernetes.io/pvc-protection"]},
            ),
        ],
        f"{GITHUB}/kubernetes/kubernetes/issues/111251",
    ),
    Situation(
        "the namespace is being deleted",
        (
            "The namespace town is being deleted for 40 minutes: Some content in the namespace has finalizers",
            "so Shop corner cannot become ready",
        ),
        [
            SHOP,
            cluster_scoped(
                "v1",
                "Namespace",
                "town",
                metadata={"deletionTimestamp": ago(40), "finalizers": ["example.com/keep"]},
                status={
                    "phase": "Terminating",
                    "conditions": [
                        condition(
                            "NamespaceFinalizersRemaining",
                            "True",
                            "SomeFinalizersRemain",
                            "Some content in the namespace has finalizers remaining: gateway.kusk.io/x in 1 resource",
                        )
                    ],
                },
            ),
        ],
        f"{GITHUB}/kubeshop/kusk-gateway/issues/599",
    ),
    Situation(
        "the operator has stopped before it saw the last change",
        (
            "The operator does not run: its Lease ops/shop-operator was renewed 3 hours ago for the last time",
            "so Shop corner is not up to date: its operator has observed generation 1 and not 3",
        ),
        [
            unseen_shop(managedFields=written("kubectl", status="shop-operator", minutes=200)),
            lease("shop-operator", renewed=180),
        ],
        f"{GITHUB}/spotify/flink-on-k8s-operator/issues/430",
    ),
    Situation(
        "the operator has not seen the last change, and runs",
        ("Shop corner is not up to date: its operator has observed generation 1 and not 3 since 60 minutes",),
        [unseen_shop(), lease("8.example.com", renewed=0.1)],
        f"{GITHUB}/operator-framework/operator-controller/issues/1192",
    ),
    Situation(
        "the owner is paused by an annotation",
        ('Shop corner is paused by the annotation crossplane.io/paused: "true"', "so it is not ready"),
        [
            shop(
                condition("Synced", reason="ReconcilePaused"),
                metadata={"annotations": {"crossplane.io/paused": "true"}},
            )
        ],
        f"{GITHUB}/crossplane/crossplane/issues/2590",
    ),
    Situation(
        "the owner is paused by a field",
        ("Shop corner is paused by the field spec.paused: true", "so it is not ready"),
        [shop(condition("Ready", reason="Waiting"), spec={"paused": True})],
        f"{GITHUB}/kubernetes-sigs/cluster-api/issues/4473",
    ),
]
