"""Unions: a switch to another member ends as a new object would, whatever the API server has defaulted before.

Rebuilt from public reports: https://github.com/kubernetes/kubernetes/issues/24198 (a Deployment without a strategy to
`Recreate`), https://github.com/pulumi/pulumi-kubernetes/issues/2843 (the same with server-side apply),
https://github.com/openshift/hypershift/issues/937 (a StatefulSet to `OnDelete`),
https://github.com/openshift/cluster-network-operator/pull/3121 (a patch before the apply, as workaround),
https://github.com/kubernetes/kubernetes/issues/97797 and https://github.com/kubernetes/kubectl/issues/221 (node ports),
https://github.com/kubernetes/kubernetes/issues/24040 and https://github.com/fabric8io/kubernetes-client/pull/2472 (the
type of a Service), https://github.com/kubernetes/kubernetes/issues/46950 (a volume without a source).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import pytest

from ocf import component
from ocf.component import diff
from ocf.component.apply.server_defaults import claim_defaults
from ocf.errors import InvalidError, ReconcileError, StatusCause
from ocf.objects import Manifest, ObjectKey, copy_json
from ocf.objects.managed_fields import ManagedFields
from ocf.primitives import unstructured

if TYPE_CHECKING:
    from tests.component.conftest import Env

LABELS: Final = {"app": "union"}
CONTAINER: Final = {"name": "app", "image": "app:1"}


def pod(container: Manifest | None = None, **spec: Any) -> Manifest:
    """Return a pod template."""
    return {"metadata": {"labels": LABELS}, "spec": {"containers": [{**CONTAINER, **(container or {})}], **spec}}


def workload(kind: str, template: Manifest | None = None, **spec: Any) -> Manifest:
    content = {"selector": {"matchLabels": LABELS}, "template": template or pod(), **spec}
    return {"apiVersion": "apps/v1", "kind": kind, "spec": content}


def deployment(container: Manifest | None = None, **spec: Any) -> Manifest:
    return workload("Deployment", pod(container, **spec))


def volume(**source: Any) -> Manifest:
    return deployment(volumes=[{"name": "data", **source}])


def probe(**handler: Any) -> Manifest:
    return deployment({"livenessProbe": handler})


def hook(**handler: Any) -> Manifest:
    return deployment({"lifecycle": {"preStop": handler}})


def variable(**source: Any) -> Manifest:
    return deployment({"env": [{"name": "MODE", **source}]})


def service(**spec: Any) -> Manifest:
    return {"apiVersion": "v1", "kind": "Service", "spec": spec}


def scaler(*metrics: Manifest) -> Manifest:
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
    spec = {"scaleTargetRef": target, "maxReplicas": 3, **({"metrics": list(metrics)} if metrics else {})}
    return {"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "spec": spec}


def resource_metric(**target: Any) -> Manifest:
    return {"type": "Resource", "resource": {"name": "cpu", "target": target}}


def ingress(backend: Manifest) -> Manifest:
    path = {"path": "/", "pathType": "Prefix", "backend": backend}
    return {"apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "spec": {"rules": [{"http": {"paths": [path]}}]}}


def policy(**spec: Any) -> Manifest:
    return {"apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy", "spec": {"podSelector": {}, **spec}}


def budget(**spec: Any) -> Manifest:
    content = {"selector": {"matchLabels": LABELS}, **spec}
    return {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "spec": content}


def job(**spec: Any) -> Manifest:
    return {"apiVersion": "batch/v1", "kind": "Job", "spec": {"template": pod(restartPolicy="Never"), **spec}}


def cron_job(**spec: Any) -> Manifest:
    content = {"schedule": "0 0 * * *", "jobTemplate": {"spec": job()["spec"]}, **spec}
    return {"apiVersion": "batch/v1", "kind": "CronJob", "spec": content}


PORT: Final = {"port": 80, "protocol": "TCP"}
SWITCHES: Final = [
    pytest.param(
        workload("Deployment"), workload("Deployment", strategy={"type": "Recreate"}), id="deployment to Recreate"
    ),
    pytest.param(
        workload("Deployment", strategy={"type": "RollingUpdate"}),
        workload("Deployment", strategy={"type": "Recreate"}),
        id="deployment with the named default to Recreate",
    ),
    pytest.param(
        workload("Deployment", strategy={"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 2}}),
        workload("Deployment", strategy={"type": "Recreate"}),
        id="deployment with a half declared rolling update to Recreate",
    ),
    pytest.param(
        workload("Deployment", strategy={"type": "Recreate"}), workload("Deployment"), id="deployment from Recreate"
    ),
    pytest.param(
        workload("StatefulSet"), workload("StatefulSet", updateStrategy={"type": "OnDelete"}), id="stateful to OnDelete"
    ),
    pytest.param(
        workload("StatefulSet", updateStrategy={"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 2}}),
        workload("StatefulSet", updateStrategy={"type": "OnDelete"}),
        id="stateful with a half declared rolling update to OnDelete",
    ),
    pytest.param(volume(), volume(configMap={"name": "web"}), id="default volume to configMap"),
    pytest.param(volume(emptyDir={}), volume(secret={"secretName": "web"}), id="emptyDir to secret"),
    pytest.param(volume(configMap={"name": "web"}), volume(secret={"secretName": "web"}), id="configMap to secret"),
    pytest.param(volume(secret={"secretName": "web"}), volume(), id="secret to default volume"),
    pytest.param(
        volume(hostPath={"path": "/data"}), volume(persistentVolumeClaim={"claimName": "web"}), id="hostPath to claim"
    ),
    pytest.param(
        volume(projected={"sources": [{"serviceAccountToken": {"path": "token"}}]}),
        volume(downwardAPI={"items": [{"path": "l", "fieldRef": {"fieldPath": "metadata.labels"}}]}),
        id="projected to downwardAPI",
    ),
    pytest.param(
        volume(iscsi={"targetPortal": "10.0.0.1", "iqn": "iqn.2001-04.com.example:storage", "lun": 0}),
        volume(rbd={"monitors": ["a"], "image": "b"}),
        id="iscsi to rbd",
    ),
    pytest.param(
        volume(azureFile={"secretName": "a", "shareName": "b"}),
        volume(nfs={"server": "a", "path": "/"}),
        id="azure to nfs",
    ),
    pytest.param(
        volume(scaleIO={"gateway": "a", "system": "b", "secretRef": {"name": "c"}, "volumeName": "d"}),
        volume(emptyDir={}),
        id="scaleIO to emptyDir",
    ),
    pytest.param(
        probe(httpGet={"path": "/", "port": 80}), probe(tcpSocket={"port": 80}), id="probe from httpGet to tcpSocket"
    ),
    pytest.param(probe(tcpSocket={"port": 80}), probe(grpc={"port": 80}), id="probe from tcpSocket to grpc"),
    pytest.param(probe(grpc={"port": 80}), probe(exec={"command": ["true"]}), id="probe from grpc to exec"),
    pytest.param(probe(exec={"command": ["true"]}), probe(httpGet={"port": 80}), id="probe from exec to httpGet"),
    pytest.param(
        hook(httpGet={"path": "/", "port": 80}), hook(exec={"command": ["true"]}), id="hook from httpGet to exec"
    ),
    pytest.param(hook(exec={"command": ["true"]}), hook(sleep={"seconds": 1}), id="hook from exec to sleep"),
    pytest.param(
        variable(value="a"),
        variable(valueFrom={"fieldRef": {"fieldPath": "metadata.name"}}),
        id="variable from value to fieldRef",
    ),
    pytest.param(
        variable(valueFrom={"fieldRef": {"fieldPath": "metadata.name"}}),
        variable(valueFrom={"secretKeyRef": {"name": "web", "key": "a"}}),
        id="variable from fieldRef to secretKeyRef",
    ),
    pytest.param(
        variable(valueFrom={"resourceFieldRef": {"resource": "limits.cpu"}}),
        variable(value="a"),
        id="variable from resourceFieldRef to value",
    ),
    pytest.param(scaler(), scaler(resource_metric(type="AverageValue", averageValue="1")), id="default metric"),
    pytest.param(
        scaler(resource_metric(type="Utilization", averageUtilization=50)),
        scaler(resource_metric(type="AverageValue", averageValue="1")),
        id="metric target",
    ),
    pytest.param(service(ports=[PORT]), service(type="ExternalName", externalName="a.b"), id="service to ExternalName"),
    pytest.param(
        service(ports=[PORT]),
        service(type="ExternalName", externalName="a.b", ports=[PORT]),
        id="service with ports to ExternalName",
    ),
    pytest.param(
        service(type="ExternalName", externalName="a.b"), service(ports=[PORT]), id="service from ExternalName"
    ),
    pytest.param(service(type="NodePort", ports=[PORT]), service(ports=[PORT]), id="service from NodePort"),
    pytest.param(service(type="LoadBalancer", ports=[PORT]), service(ports=[PORT]), id="service from LoadBalancer"),
    pytest.param(
        service(type="LoadBalancer", ports=[PORT]),
        service(type="NodePort", ports=[PORT]),
        id="service from LoadBalancer to NodePort",
    ),
    pytest.param(
        service(type="LoadBalancer", ports=[PORT]),
        service(type="ExternalName", externalName="a.b"),
        id="service from LoadBalancer to ExternalName",
    ),
    pytest.param(
        service(type="LoadBalancer", externalTrafficPolicy="Local", ports=[PORT]),
        service(type="LoadBalancer", externalTrafficPolicy="Cluster", ports=[PORT]),
        id="service without health check port",
    ),
    pytest.param(
        service(type="LoadBalancer", externalTrafficPolicy="Local", ports=[PORT]),
        service(type="LoadBalancer", ports=[PORT]),
        id="service without the local policy",
    ),
    pytest.param(
        service(type="LoadBalancer", externalTrafficPolicy="Local", ports=[PORT]),
        service(ports=[PORT]),
        id="service from the local policy to ClusterIP",
    ),
    pytest.param(
        service(internalTrafficPolicy="Cluster", ports=[PORT]),
        service(type="ExternalName", externalName="a.b", internalTrafficPolicy="Cluster"),
        id="service with a declared traffic policy to ExternalName",
    ),
    pytest.param(
        service(sessionAffinity="ClientIP", ports=[PORT]),
        service(sessionAffinity="None", ports=[PORT]),
        id="service without affinity",
    ),
    pytest.param(
        service(sessionAffinity="ClientIP", ports=[PORT]), service(ports=[PORT]), id="service with default affinity"
    ),
    pytest.param(
        service(type="NodePort", ports=[PORT]),
        service(type="NodePort", ports=[{**PORT, "nodePort": 30999}]),
        id="service with a chosen node port",
    ),
    pytest.param(
        ingress({"service": {"name": "web", "port": {"number": 80}}}),
        ingress({"service": {"name": "web", "port": {"name": "http"}}}),
        id="ingress from number to name",
    ),
    pytest.param(
        ingress({"service": {"name": "web", "port": {"number": 80}}}),
        ingress({"resource": {"apiGroup": "a.b", "kind": "Bucket", "name": "web"}}),
        id="ingress from service to resource",
    ),
    pytest.param(
        policy(),
        policy(egress=[{}], policyTypes=["Egress"]),
        id="network policy from the default types",
    ),
    pytest.param(
        policy(ingress=[{"from": [{"podSelector": {}}]}]),
        policy(ingress=[{"from": [{"ipBlock": {"cidr": "10.0.0.0/8"}}]}]),
        id="network policy peer",
    ),
    pytest.param(budget(minAvailable=1), budget(maxUnavailable=1), id="budget from minAvailable to maxUnavailable"),
    pytest.param(budget(maxUnavailable="10%"), budget(minAvailable=1), id="budget from maxUnavailable to minAvailable"),
    pytest.param(job(), job(suspend=True), id="job that is suspended"),
    pytest.param(cron_job(), cron_job(concurrencyPolicy="Forbid", timeZone="Etc/UTC", suspend=True), id="cron job"),
    pytest.param(
        cron_job(),
        cron_job(jobTemplate={"spec": {**job()["spec"], "completionMode": "Indexed", "completions": 3}}),
        id="cron job to Indexed",
    ),
    pytest.param(
        cron_job(jobTemplate={"spec": {**job()["spec"], "completionMode": "Indexed", "completions": 3}}),
        cron_job(),
        id="cron job from Indexed",
    ),
    pytest.param(
        cron_job(),
        cron_job(
            jobTemplate={
                "spec": {**job()["spec"], "completionMode": "Indexed", "completions": 3, "backoffLimitPerIndex": 1}
            }
        ),
        id="cron job to a limit per index",
    ),
    pytest.param(
        cron_job(),
        cron_job(
            jobTemplate={
                "spec": {
                    **job()["spec"],
                    "podFailurePolicy": {
                        "rules": [{"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget"}]}]
                    },
                }
            }
        ),
        id="cron job with a failure policy",
    ),
    pytest.param(
        deployment(),
        deployment(securityContext={"runAsUser": 1}, hostNetwork=True),
        id="pods in the network of their node",
    ),
    pytest.param(
        deployment({"ports": [{"containerPort": 80}]}, hostNetwork=True),
        deployment({"ports": [{"containerPort": 80}]}),
        id="pods out of the network of their node",
    ),
    pytest.param(
        deployment({"ports": [{"containerPort": 80}]}, hostNetwork=True),
        deployment({"ports": [{"containerPort": 80, "hostPort": 81}]}),
        id="pods with a port of their node",
    ),
]


def of(manifest: Manifest, name: str) -> component.Component:
    named = copy_json(manifest) | {"metadata": {"name": name, "namespace": "shop"}}
    builder = component.Builder("web", condition_type="WebReady")
    return builder.with_resource(unstructured.StaticBuilder(named)).build()


def content(live: Manifest) -> Manifest:
    """Return the spec without what the API server allocates."""
    spec: Manifest = copy_json(live["spec"])
    for allocated in ("clusterIP", "clusterIPs", "healthCheckNodePort"):
        if spec.get(allocated, "None") != "None":
            spec[allocated] = "allocated"
    for port in spec.get("ports", ()):
        if "nodePort" in port:
            port["nodePort"] = "allocated"
    if live["kind"] == "Job":
        del spec["selector"], spec["template"]["metadata"]["labels"]
    return spec


@pytest.mark.promise("union-defaults", runs="55 switches of 9 kinds")
@pytest.mark.parametrize(("before", "after"), SWITCHES)
async def test_a_switch_ends_as_a_new_object_would(env: Env, before: Manifest, after: Manifest) -> None:
    await env.reconcile(of(before, "union"))
    await env.reconcile(of(after, "union"))
    key = ObjectKey(after["apiVersion"], after["kind"], "union", "shop")
    live = await env.cluster.get(key)
    fresh_key = ObjectKey(after["apiVersion"], after["kind"], "fresh", "shop")
    if "nodePort" in str(after):
        await env.cluster.delete(key)
    await env.reconcile(of(after, "fresh"))
    assert content(live) == content(await env.cluster.get(fresh_key))


# What the API server accepts beside the new value, and ignores, stays as it is.
LEFT: Final = [
    pytest.param(
        workload("DaemonSet"),
        workload("DaemonSet", updateStrategy={"type": "OnDelete"}),
        {"updateStrategy": {"type": "OnDelete", "rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}}},
        id="rolling update of a daemon",
    ),
    pytest.param(
        service(type="LoadBalancer", ports=[PORT]),
        service(type="LoadBalancer", allocateLoadBalancerNodePorts=False, ports=[PORT]),
        {"ports": [{**PORT, "targetPort": 80, "nodePort": "allocated"}]},
        id="allocated node port of a balancer",
    ),
    pytest.param(job(), job(parallelism=2), {"completions": 1}, id="default completions of a job"),
]


@pytest.mark.parametrize(("before", "after", "left"), LEFT)
async def test_what_is_not_rejected_is_not_claimed(env: Env, before: Manifest, after: Manifest, left: Manifest) -> None:
    await env.reconcile(of(before, "union"))
    result = await env.reconcile(of(after, "union"))
    live = content(await env.cluster.get(ObjectKey(after["apiVersion"], after["kind"], "union", "shop")))
    assert {name: live[name] for name in left} == left
    assert result.writes == 1


DEPLOYMENT: Final = ObjectKey("apps/v1", "Deployment", "union", "shop")
RECREATE: Final = workload("Deployment", pod({"image": "app:2"}), strategy={"type": "Recreate"})


class TestSequence:
    async def test_the_claim_changes_no_value_and_one_generation_follows(self, env: Env) -> None:
        """The pod template and the strategy change in the same write, so the new template rolls out as it should."""
        await env.reconcile(of(workload("Deployment"), "union"))
        before = await env.cluster.get(DEPLOYMENT)
        result = await env.reconcile(of(RECREATE, "union"))
        live = await env.cluster.get(DEPLOYMENT)
        assert result.writes == 2
        assert live["metadata"]["generation"] == before["metadata"]["generation"] + 1
        assert live["spec"]["strategy"] == {"type": "Recreate"}
        env.cluster.requests.clear()
        assert (await env.reconcile(of(RECREATE, "union"))).writes == 0
        await env.reconcile(of(workload("Deployment"), "union"))
        assert (await env.cluster.get(DEPLOYMENT))["spec"]["strategy"] == before["spec"]["strategy"]

    async def test_what_another_manager_owns_is_not_claimed(self, env: Env) -> None:
        await env.reconcile(of(workload("Deployment"), "union"))
        await env.change(DEPLOYMENT, spec={"strategy": {"rollingUpdate": {"maxSurge": 3}}})
        with pytest.raises(ReconcileError, match=r"spec\.strategy\.rollingUpdate: Forbidden"):
            await env.reconcile(of(RECREATE, "union"))
        live = await env.cluster.get(DEPLOYMENT)
        assert live["spec"]["strategy"]["rollingUpdate"]["maxSurge"] == 3
        ours, theirs = ManagedFields.of(live).entries
        assert (ours.manager.name.partition("/")[0], theirs.manager.name) == ("ocf", "kubectl-edit")
        assert not ours.owns(("spec", "strategy"))

    @pytest.mark.parametrize(
        ("declared", "edit", "named"),
        [
            pytest.param(
                workload("Deployment", strategy={"type": "Recreate"}),
                {"strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 3}}},
                "spec.strategy.rollingUpdate",
                id="strategy",
            ),
            pytest.param(
                probe(httpGet={"port": 80}),
                {"template": pod({"livenessProbe": {"exec": {"command": ["true"]}}})},
                "spec.template.spec.containers[name=app].livenessProbe.exec",
                id="probe",
            ),
            pytest.param(
                variable(value="a"),
                {
                    "template": pod(
                        {"env": [{"name": "MODE", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}]}
                    )
                },
                "spec.template.spec.containers[name=app].env[name=MODE].valueFrom",
                id="variable",
            ),
            pytest.param(
                volume(emptyDir={}),
                {"template": pod(volumes=[{"name": "data", "secret": {"secretName": "a"}}])},
                "spec.template.spec.volumes[name=data].secret",
                id="volume",
            ),
        ],
    )
    async def test_what_a_user_has_set_in_place_of_a_declared_field_is_named(
        self, env: Env, declared: Manifest, edit: Manifest, named: str
    ) -> None:
        await env.reconcile(of(declared, "union"))
        await env.change(DEPLOYMENT, spec=edit)
        with pytest.raises(ReconcileError) as raised:
            await env.reconcile(of(declared, "union"))
        assert raised.value.problem.endswith(
            f'; {named} is not declared, and belongs to "kubectl-edit": remove it by hand; or, if that is a former '
            "writer, name it with with_former_managers"
        )

    async def test_nothing_is_claimed_if_a_field_is_immutable(self, env: Env) -> None:
        """The same apply would be rejected again."""
        await env.reconcile(of(workload("Deployment"), "union"))
        before = await env.cluster.get(DEPLOYMENT)
        cause = StatusCause("FieldValueForbidden", "Forbidden: field is immutable", "spec.strategy.rollingUpdate")
        error = InvalidError("is invalid", causes=(cause,))
        assert not await claim_defaults(env.cluster, before, RECREATE, "ours", error)
        assert await env.cluster.get(DEPLOYMENT) == before

    async def test_a_diff_shows_the_object_without_the_default(self, env: Env) -> None:
        await env.reconcile(of(workload("Deployment"), "union"))
        before = await env.cluster.get(DEPLOYMENT)
        (found,) = await diff([of(RECREATE, "union")], await env.owner_manifest(), env.cluster)
        assert found.problem == ""
        assert found.objects[0].after is not None
        assert found.objects[0].after["spec"]["strategy"] == {"type": "Recreate"}
        assert found.objects[0].after["spec"]["template"]["spec"]["containers"][0]["image"] == "app:2"
        assert await env.cluster.get(DEPLOYMENT) == before

    async def test_another_error_of_the_same_object_is_reported(self, env: Env) -> None:
        await env.reconcile(of(workload("Deployment"), "union"))
        invalid = workload("Deployment", replicas=-1, strategy={"type": "Recreate"})
        for _ in range(2):
            with pytest.raises(ReconcileError, match=r"spec\.replicas: Invalid value"):
                await env.reconcile(of(invalid, "union"))
        await env.reconcile(of(RECREATE, "union"))
        assert (await env.cluster.get(DEPLOYMENT))["spec"]["strategy"] == {"type": "Recreate"}
