"""Every shipped kind is quiet: what a server makes of a rich object of it is no reason to write again.

Each row runs on the embedded cluster, and on a real API server where there is one, which default and rewrite what
they are sent.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import pytest

from ocf import component
from ocf.cluster import ApplyCache, PatchOptions, PatchType, Subresource
from ocf.component import Result, reconciling
from ocf.concepts import Resource
from ocf.errors import AlreadyExistsError, NotFoundError
from ocf.objects import ObjectKey, load_document
from ocf.primitives import (
    certificate,
    clusterrole,
    clusterrolebinding,
    configmap,
    cronjob,
    daemonset,
    deployment,
    hpa,
    httproute,
    ingress,
    job,
    networkpolicy,
    pdb,
    pod,
    prometheusrule,
    pv,
    pvc,
    replicaset,
    role,
    rolebinding,
    scaledobject,
    secret,
    service,
    serviceaccount,
    servicemonitor,
    statefulset,
    unstructured,
)
from ocf.testing import RecordingCluster, assert_quiet
from ocf_server import CustomKind, EmbeddedCluster
from scripts.site import kinds
from tests.primitives.third_party_definitions import third_party_definitions

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from ocf.cluster import Cluster
    from ocf.objects import Manifest
    from ocf.testing.envtest import ControlPlane

NAMESPACE: Final = "kinds"
OWNER: Final = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "owner", "namespace": NAMESPACE}}
DEFINITION: Final = """
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: monitors.kinds.example.com}
spec:
  group: kinds.example.com
  names: {kind: Monitor, plural: monitors}
  scope: Namespaced
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
"""
SELECTOR: Final = {"matchLabels": {"app": "web"}}
DISK: Final[Manifest] = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1024Mi"}}}
RBAC: Final = "rbac.authorization.k8s.io/v1"
RULES: Final = [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]
SUBJECTS: Final = [
    {"kind": "User", "name": "jane"},
    {"kind": "ServiceAccount", "name": "web", "namespace": NAMESPACE},
]
CONTAINER: Final[Manifest] = {
    "name": "web",
    "image": "web",
    "args": ["--fast"],
    "env": [
        {"name": "MODE", "value": "fast"},
        {"name": "POD", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
        {"name": "TOKEN", "valueFrom": {"secretKeyRef": {"name": "login", "key": "token"}}},
        {"name": "CPUS", "valueFrom": {"resourceFieldRef": {"containerName": "web", "resource": "limits.memory"}}},
    ],
    "ports": [{"name": "http", "containerPort": 80}, {"containerPort": 53, "protocol": "UDP"}],
    "readinessProbe": {"httpGet": {"path": "/ready", "port": "http"}},
    "livenessProbe": {"tcpSocket": {"port": 80}, "periodSeconds": 20},
    "resources": {"requests": {"cpu": "1000m", "memory": "1024Mi"}, "limits": {"memory": "1Gi"}},
    "volumeMounts": [{"name": "config", "mountPath": "/etc/web"}],
    "securityContext": {"runAsNonRoot": True},
}
TEMPLATE: Final[Manifest] = {
    "metadata": {"labels": {"app": "web"}, "annotations": {"a": "b"}},
    "spec": {
        "containers": [CONTAINER],
        "initContainers": [{"name": "setup", "image": "setup:1"}],
        "volumes": [
            {"name": "config", "configMap": {"name": "settings"}},
            {"name": "login", "secret": {"secretName": "login"}},
            {"name": "cache", "emptyDir": {}},
            {
                "name": "info",
                "downwardAPI": {"items": [{"path": "labels", "fieldRef": {"fieldPath": "metadata.labels"}}]},
            },
            {
                "name": "token",
                "projected": {
                    "sources": [
                        {"serviceAccountToken": {"path": "token"}},
                        {"downwardAPI": {"items": [{"path": "name", "fieldRef": {"fieldPath": "metadata.name"}}]}},
                        {"configMap": {"name": "settings", "items": [{"key": "a", "path": "a"}]}},
                    ]
                },
            },
            {"name": "scratch", "ephemeral": {"volumeClaimTemplate": {"spec": DISK}}},
        ],
        "tolerations": [{"key": "dedicated", "operator": "Exists"}],
        "affinity": {
            "podAntiAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": [
                    {"labelSelector": SELECTOR, "topologyKey": "kubernetes.io/hostname"}
                ]
            }
        },
        "topologySpreadConstraints": [
            {
                "maxSkew": 1,
                "topologyKey": "topology.kubernetes.io/zone",
                "whenUnsatisfiable": "ScheduleAnyway",
                "labelSelector": SELECTOR,
            }
        ],
        "imagePullSecrets": [{"name": "registry"}],
        "serviceAccountName": "web",
        "terminationGracePeriodSeconds": 45,
        "nodeSelector": {"kubernetes.io/arch": "arm64"},
    },
}


def base(api_version: str, kind: str, **content: Any) -> Manifest:
    metadata = {"name": f"rich-{kind.lower()}", "namespace": NAMESPACE, "labels": {"app": "web"}}
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, **content}


def cluster_scoped(api_version: str, kind: str, **content: Any) -> Manifest:
    manifest = base(api_version, kind, **content)
    del manifest["metadata"]["namespace"]
    return manifest


def a_service(**spec: Any) -> Resource:
    ports = [
        {"name": "http", "port": 80, "targetPort": "http", "appProtocol": "http"},
        {"name": "dns", "port": 53, "protocol": "UDP"},
        {"name": "dns-tcp", "port": 53},
    ]
    return service.Builder(base("v1", "Service", spec={"selector": {"app": "web"}, "ports": ports, **spec})).build()


def a_stateful_set() -> Resource:
    claims = [{"metadata": {"name": "data", "labels": {"app": "web"}}, "spec": DISK}]
    spec = {"serviceName": "web", "selector": SELECTOR, "template": TEMPLATE, "volumeClaimTemplates": claims}
    rolling = {"updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": 1}}}
    manifest = base("apps/v1", "StatefulSet", spec={**spec, **rolling, "replicas": 3})
    return statefulset.Builder(manifest).build()


def a_network_policy() -> Resource:
    peer = {"namespaceSelector": {}, "podSelector": SELECTOR}
    ingress = [
        {"from": [peer, {"ipBlock": {"cidr": "10.0.0.0/8", "except": ["10.1.0.0/16"]}}], "ports": [{"port": 80}]}
    ]
    spec = {"podSelector": SELECTOR, "ingress": ingress, "egress": [{"ports": [{"port": 53, "protocol": "UDP"}]}]}
    return networkpolicy.Builder(base("networking.k8s.io/v1", "NetworkPolicy", spec=spec)).build()


def an_hpa() -> Resource:
    target = {"type": "AverageValue", "averageValue": "1000m"}
    metrics = [{"type": "Pods", "pods": {"metric": {"name": "rps"}, "target": target}}]
    reference = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
    spec = {"scaleTargetRef": reference, "maxReplicas": 10, "metrics": metrics}
    behavior = {"behavior": {"scaleDown": {"stabilizationWindowSeconds": 60}}}
    return hpa.Builder(base("autoscaling/v2", "HorizontalPodAutoscaler", spec=spec | behavior)).build()


def a_budget() -> Resource:
    spec = {"maxUnavailable": "25%", "selector": SELECTOR, "unhealthyPodEvictionPolicy": "AlwaysAllow"}
    return pdb.Builder(base("policy/v1", "PodDisruptionBudget", spec=spec)).build()


def a_deployment() -> Resource:
    rolling = {"strategy": {"rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}}
    spec = {"replicas": 3, "selector": SELECTOR, "template": TEMPLATE, **rolling}
    return deployment.Builder(base("apps/v1", "Deployment", spec=spec)).build()


def an_empty_deployment() -> Resource:
    """With empty values, of which the server stores none."""
    pod = {"nodeSelector": {}, "tolerations": [], "initContainers": [], "hostNetwork": False, "hostname": ""}
    template = {"metadata": {"labels": {"app": "web"}, "annotations": {}}, "spec": {**TEMPLATE["spec"], **pod}}
    manifest = base("apps/v1", "Deployment", spec={"replicas": 0, "paused": False, "selector": SELECTOR})
    manifest["metadata"]["annotations"] = {}
    manifest["spec"]["template"] = template
    return deployment.Builder(manifest).build()


def a_daemon_set() -> Resource:
    spec = {"selector": SELECTOR, "template": TEMPLATE, "updateStrategy": {"rollingUpdate": {"maxUnavailable": "10%"}}}
    return daemonset.Builder(base("apps/v1", "DaemonSet", spec=spec)).build()


def a_replica_set() -> Resource:
    spec = {"replicas": 2, "minReadySeconds": 5, "selector": SELECTOR, "template": TEMPLATE}
    return replicaset.Builder(base("apps/v1", "ReplicaSet", spec=spec)).build()


def a_pod() -> Resource:
    return pod.Builder(base("v1", "Pod", spec=TEMPLATE["spec"])).build()


def a_job() -> Resource:
    return job.Builder(base("batch/v1", "Job", spec=JOB)).build()


def a_cron_job() -> Resource:
    spec = {"schedule": "0 * * * *", "timeZone": "Etc/UTC", "jobTemplate": {"spec": JOB}}
    return cronjob.Builder(base("batch/v1", "CronJob", spec=spec)).build()


def an_ingress() -> Resource:
    path = {"path": "/", "pathType": "Prefix", "backend": {"service": {"name": "web", "port": {"number": 80}}}}
    rules = [{"host": "a.example.com", "http": {"paths": [path]}}]
    spec = {"ingressClassName": "public", "rules": rules, "tls": [{"hosts": ["a.example.com"], "secretName": "tls"}]}
    return ingress.Builder(base("networking.k8s.io/v1", "Ingress", spec=spec)).build()


def a_claim() -> Resource:
    return pvc.Builder(base("v1", "PersistentVolumeClaim", spec=DISK)).build()


def a_volume() -> Resource:
    """Reserved for a claim: the control plane adds fields to the reference when it binds the volume."""
    claim = {"namespace": NAMESPACE, "name": "reserved"}
    source = {"nfs": {"server": "10.0.0.1", "path": "/data"}, "claimRef": claim, "mountOptions": ["hard"]}
    spec = {"capacity": {"storage": "1024Mi"}, "accessModes": ["ReadWriteOnce"], **source}
    return pv.Builder(cluster_scoped("v1", "PersistentVolume", spec=spec)).build()


def a_role() -> Resource:
    return role.Builder(base(RBAC, "Role", rules=RULES)).build()


def a_cluster_role() -> Resource:
    rules = [*RULES, {"nonResourceURLs": ["/metrics"], "verbs": ["get"]}]
    return clusterrole.Builder(cluster_scoped(RBAC, "ClusterRole", rules=rules)).build()


def an_aggregated_role() -> Resource:
    rule = {"clusterRoleSelectors": [{"matchLabels": {"kinds.example.com/aggregate": "true"}}]}
    return clusterrole.Builder(cluster_scoped(RBAC, "ClusterRole", aggregationRule=rule)).build()


def a_role_binding() -> Resource:
    """With a subject whose API group the server adds."""
    reference = {"kind": "Role", "name": "rich-role"}
    return rolebinding.Builder(base(RBAC, "RoleBinding", roleRef=reference, subjects=SUBJECTS)).build()


def a_cluster_role_binding() -> Resource:
    reference = {"kind": "ClusterRole", "name": "rich-clusterrole"}
    content: Manifest = {"roleRef": reference, "subjects": SUBJECTS}
    return clusterrolebinding.Builder(cluster_scoped(RBAC, "ClusterRoleBinding", **content)).build()


def an_account() -> Resource:
    content: Manifest = {"automountServiceAccountToken": False, "imagePullSecrets": [{"name": "registry"}]}
    return serviceaccount.Builder(base("v1", "ServiceAccount", **content)).build()


def a_config_map() -> Resource:
    content: Manifest = {"data": {"mode": "fast", "empty": ""}, "binaryData": {"logo": "AP8="}}
    return configmap.Builder(base("v1", "ConfigMap", **content)).build()


def a_secret() -> Resource:
    entry = secret.Mutation("entry", lambda m: m.ensure_entry("token", "hunter2"))
    content: Manifest = {"data": {"user": "c2hvcA=="}, "stringData": {"password": "hunter2"}}
    return secret.Builder(base("v1", "Secret", **content)).with_mutation(entry).build()


def a_monitor() -> Resource:
    spec = {"endpoints": [{"port": "metrics", "interval": "30s"}], "selector": SELECTOR, "limits": {}, "none": []}
    return unstructured.StaticBuilder(base("kinds.example.com/v1", "Monitor", spec=spec)).build()


def a_route() -> Resource:
    """Without the values that the definition defaults inside of its lists."""
    match: Manifest = {"headers": [{"name": "tenant", "value": "a"}], "queryParams": [{"name": "q", "value": "1"}]}
    copies = {"backendRef": {"name": "mirror", "port": 80}, "fraction": {"numerator": 5}}
    mirror = {"type": "RequestMirror", "requestMirror": copies}
    rules: list[Manifest] = [
        {"matches": [match], "filters": [mirror], "backendRefs": [{"name": "web", "port": 80}]},
        {"filters": [{"type": "RequestRedirect", "requestRedirect": {"scheme": "https"}}]},
    ]
    spec = {"parentRefs": [{"name": "public"}], "hostnames": ["a.example.com"], "rules": rules}
    return httproute.Builder(base("gateway.networking.k8s.io/v1", "HTTPRoute", spec=spec)).build()


def a_scaled_object() -> Resource:
    triggers = [{"type": "cpu", "metricType": "Utilization", "metadata": {"value": "60"}}]
    advanced = {"horizontalPodAutoscalerConfig": {"behavior": {"scaleDown": {"stabilizationWindowSeconds": 60}}}}
    spec = {"scaleTargetRef": {"name": "web"}, "maxReplicaCount": 10, "triggers": triggers, "advanced": advanced}
    return scaledobject.Builder(base("keda.sh/v1alpha1", "ScaledObject", spec=spec)).build()


def a_certificate() -> Resource:
    spec = {"secretName": "tls", "issuerRef": {"name": "internal"}, "dnsNames": ["a", "b"], "usages": ["server auth"]}
    return certificate.Builder(base("cert-manager.io/v1", "Certificate", spec=spec)).build()


def a_service_monitor() -> Resource:
    endpoint = {"port": "metrics", "interval": "30s", "relabelings": [{"sourceLabels": ["a"], "targetLabel": "b"}]}
    secured = {
        "port": "admin",
        "tlsConfig": {"ca": {"configMap": {"key": "ca"}}, "keySecret": {"key": "tls.key"}},
        "basicAuth": {"username": {"key": "user"}, "password": {"name": "login", "key": "password"}},
        "proxyConnectHeader": {"X-Token": [{"key": "token"}]},
    }
    spec = {"selector": SELECTOR, "namespaceSelector": {"matchNames": [NAMESPACE]}, "endpoints": [endpoint, secured]}
    return servicemonitor.Builder(base("monitoring.coreos.com/v1", "ServiceMonitor", spec=spec)).build()


def a_prometheus_rule() -> Resource:
    rules = [{"alert": "Down", "expr": "up == 0", "for": "5m", "keep_firing_for": "1m", "labels": {"severity": "page"}}]
    spec = {"groups": [{"name": "web", "interval": "1m", "rules": [*rules, {"record": "web:up", "expr": 1}]}]}
    return prometheusrule.Builder(base("monitoring.coreos.com/v1", "PrometheusRule", spec=spec)).build()


def other(api_version: str, kind: str, **content: Any) -> Callable[[], Resource]:
    """Return a function that makes a built-in kind without a package of its own."""
    return lambda: unstructured.StaticBuilder(base(api_version, kind, **content)).build()


JOB: Final[Manifest] = {
    "backoffLimit": 3,
    "podFailurePolicy": {
        "rules": [
            {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget"}]},
            {"action": "FailJob", "onExitCodes": {"operator": "In", "values": [42]}},
        ]
    },
    "template": {**TEMPLATE, "spec": {**TEMPLATE["spec"], "restartPolicy": "Never"}},
}
HOOK_RULES: Final = [
    {"apiGroups": ["apps"], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["deployments"]}
]
OTHERS: Final = [
    pytest.param(
        other(
            "discovery.k8s.io/v1",
            "EndpointSlice",
            addressType="IPv4",
            endpoints=[{"addresses": ["10.0.0.1"], "conditions": {"ready": True}}],
            ports=[{"port": 80}],
        ),
        id="endpoint slice",
    ),
    pytest.param(
        other("v1", "LimitRange", spec={"limits": [{"type": "Container", "defaultRequest": {"cpu": "1000m"}}]}),
        id="limit range",
    ),
    pytest.param(other("v1", "ResourceQuota", spec={"hard": {"requests.cpu": "2000m"}}), id="resource quota"),
]


ROWS: Final = [
    pytest.param(a_service, id="service"),
    pytest.param(lambda: a_service(clusterIP="None", publishNotReadyAddresses=True), id="service, headless"),
    pytest.param(
        lambda: a_service(type="LoadBalancer", loadBalancerSourceRanges=["10.0.0.0/8"], externalTrafficPolicy="Local"),
        id="service, load balancer",
    ),
    pytest.param(lambda: a_service(type="NodePort", sessionAffinity="ClientIP"), id="service, node port"),
    pytest.param(a_config_map, id="configmap"),
    pytest.param(a_secret, id="secret"),
    pytest.param(an_account, id="serviceaccount"),
    pytest.param(a_budget, id="pdb"),
    pytest.param(a_network_policy, id="networkpolicy"),
    pytest.param(a_stateful_set, id="statefulset"),
    pytest.param(a_deployment, id="deployment"),
    pytest.param(an_empty_deployment, id="deployment, with empty values"),
    pytest.param(a_daemon_set, id="daemonset"),
    pytest.param(a_replica_set, id="replicaset"),
    pytest.param(a_pod, id="pod"),
    pytest.param(a_job, id="job"),
    pytest.param(a_cron_job, id="cronjob"),
    pytest.param(an_hpa, id="hpa"),
    pytest.param(an_ingress, id="ingress"),
    pytest.param(a_claim, id="pvc"),
    pytest.param(a_volume, id="pv"),
    pytest.param(a_role, id="role"),
    pytest.param(a_cluster_role, id="clusterrole"),
    pytest.param(an_aggregated_role, id="clusterrole, aggregated"),
    pytest.param(a_role_binding, id="rolebinding"),
    pytest.param(a_cluster_role_binding, id="clusterrolebinding"),
    pytest.param(a_route, id="httproute"),
    pytest.param(a_scaled_object, id="scaledobject"),
    pytest.param(a_certificate, id="certificate"),
    pytest.param(a_service_monitor, id="servicemonitor"),
    pytest.param(a_prometheus_rule, id="prometheusrule"),
    pytest.param(a_monitor, id="unstructured"),
]

# What the controller of a kind reports once it has noticed the suspension; it does not run here.
REPORTED_ON_SUSPENSION: Final[Mapping[str, Manifest]] = {
    "ScaledObject": {"status": {"conditions": [{"type": "Paused", "status": "True"}]}}
}

OpenCluster: TypeAlias = Callable[[str], AbstractAsyncContextManager[RecordingCluster]]
"""Opens a cluster that knows a kind."""


@pytest.fixture(scope="session")
def kinds_plane(envtest_plane: ControlPlane) -> ControlPlane:
    """Give a real API server that knows monitors, and a namespace."""
    envtest_plane.install_crds(load_document(DEFINITION), *third_party_definitions())
    envtest_plane.kubectl("create", "namespace", NAMESPACE)
    return envtest_plane


@pytest.fixture(params=["embedded", "envtest"])
def open_cluster(request: pytest.FixtureRequest) -> OpenCluster:
    @asynccontextmanager
    async def opened(kind: str) -> AsyncIterator[RecordingCluster]:
        if request.param == "embedded":
            kinds = [CustomKind("kinds.example.com", "v1", "Monitor")]
            cluster = EmbeddedCluster(kinds=kinds, namespaces=[NAMESPACE])
            for definition in third_party_definitions():
                if definition["spec"]["names"]["kind"] == kind:
                    await cluster.create(definition, field_manager="user")
            yield RecordingCluster(cluster, apply_cache=ApplyCache())
            return
        async with await request.getfixturevalue("kinds_plane").cluster() as server:
            yield RecordingCluster(server, apply_cache=ApplyCache())

    if request.param == "envtest":
        request.getfixturevalue("kinds_plane")
    return opened


def reconciling_with(
    make: Callable[[], Resource], labels: Mapping[str, str], **options: Any
) -> Callable[[Cluster], Awaitable[Result]]:
    """Return a reconcile of a component that is built anew each time, as operators do."""
    suspended = options.pop("suspended", False)

    async def reconcile(seen: Cluster) -> Result:
        builder = component.Builder("kinds", condition_type="KindsReady").with_resource(make(), **options)
        built = builder.with_labels(labels).suspend(suspended).unpublished().build()
        async with reconciling(await seen.get(ObjectKey.of(OWNER)), seen) as context:
            return await built.reconcile(context)

    return reconcile


async def settled(cluster: RecordingCluster, reconcile: Callable[[Cluster], Awaitable[Result]]) -> int:
    """Reconcile until nothing is written, check that it stays so, also after a restart, and return the writes."""
    writes = [(await reconcile(cluster)).writes]
    while writes[-1] and len(writes) < 4:
        writes.append((await reconcile(cluster)).writes)
    assert writes[-1] == 0
    # A new process has never seen what the server makes of the values that have one owner as a whole.
    successor = RecordingCluster(cluster, apply_cache=ApplyCache())
    assert (await reconcile(successor)).writes == 0
    await assert_quiet(cluster, reconcile, resyncs=2)
    return sum(writes)


@pytest.mark.promise("defaults", runs="every kind in the box, with as much in it as it takes, and 3 others")
@pytest.mark.promise("restart", runs="every kind in the box, with as much in it as it takes, and 3 others")
@pytest.mark.promise("no-write", runs="every kind in the box, created, changed, suspended, resumed and deleted")
@pytest.mark.parametrize("make", [*ROWS, *OTHERS])
async def test_the_life_of_a_rich_object_has_no_write_at_rest(
    open_cluster: OpenCluster, make: Callable[[], Resource]
) -> None:
    created, changed = reconciling_with(make, {}), reconciling_with(make, {"team": "a"})
    async with open_cluster(make().key.kind) as cluster:
        with suppress(NotFoundError):
            await cluster.delete(make().key)
        with suppress(AlreadyExistsError):
            await cluster.create(OWNER, field_manager="user")

        assert await settled(cluster, created) == 1
        await assert_quiet(cluster, created, resyncs=10)
        assert await settled(cluster, changed) == 1

        suspended = reconciling_with(make, {"team": "a"}, suspended=True)
        await settled(cluster, suspended)
        if make().key.kind in REPORTED_ON_SUSPENSION:
            status = PatchOptions(patch_type=PatchType.MERGE, field_manager="other", subresource=Subresource.STATUS)
            await cluster.patch(make().key, REPORTED_ON_SUSPENSION[make().key.kind], status)
        assert (await suspended(cluster)).condition.reason == "Suspended"
        await settled(cluster, changed)
        live = await cluster.get(make().key)
        assert live["metadata"]["labels"]["team"] == "a"

        assert await settled(cluster, reconciling_with(make, {}, delete_when=True)) == 1


def test_every_shipped_kind_has_a_row() -> None:
    rows = {str(row.id).split(",", maxsplit=1)[0] for row in ROWS}
    assert rows == set(kinds.NAMES)
