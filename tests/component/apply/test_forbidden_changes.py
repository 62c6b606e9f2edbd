"""Changes that the API server forbids in an existing object, kind by kind: the error names the field and what to do.

Rebuilt from public reports: https://github.com/app-sre/qontract-reconcile/pull/1484 (the address of a Service),
https://github.com/openshift/csi-operator/issues/20 (a StorageClass),
https://github.com/kubernetes/kubernetes/issues/118645 (which field of a Job it is),
https://github.com/backube/volsync/issues/291 (a Job that the release changes),
https://github.com/kubernetes/kubernetes/issues/48388 (what may change is not said).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import pytest

from ocf.cluster import DeleteOptions, Propagation
from ocf.errors import ReconcileError
from ocf.objects import ObjectKey, load_document
from ocf.primitives import unstructured
from ocf_server import EmbeddedCluster
from tests.component.apply.test_recreation import IN_PLACE, REMEDY, emptied, of, template

if TYPE_CHECKING:
    from ocf.objects import Manifest
    from tests.component.conftest import Env

KEEP: Final = "keep the value, give the resource another name, or delete the object, which is then created again"


def made(api_version: str, kind: str, **content: Any) -> Manifest:
    metadata = {"name": "web", "namespace": "shop"}
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, **content}


def without_namespace(api_version: str, kind: str, **content: Any) -> Manifest:
    # Its name is unique in the cluster, which tests share.
    return {**made(api_version, kind, **content), "metadata": {"name": "forbidden-changes"}}


def service(**spec: Any) -> Manifest:
    return made("v1", "Service", spec={"selector": {"app": "web"}, "ports": [{"port": 80}], **spec})


def workload(kind: str, app: str, **spec: Any) -> Manifest:
    labels = {"matchLabels": {"app": app}}
    return made("apps/v1", kind, spec={"selector": labels, "template": template("a", app), **spec})


def config(value: str, **fields: Any) -> Manifest:
    return made("v1", "ConfigMap", data={"a": value}, **fields)


def secret(value: str, **fields: Any) -> Manifest:
    return made("v1", "Secret", stringData={"a": value}, **fields)


def storage_class(**fields: Any) -> Manifest:
    return without_namespace("storage.k8s.io/v1", "StorageClass", **{"provisioner": "example.com/a", **fields})


def priority(**fields: Any) -> Manifest:
    return without_namespace("scheduling.k8s.io/v1", "PriorityClass", **{"value": 1, **fields})


def volume(path: str) -> Manifest:
    spec = {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "hostPath": {"path": path}}
    return without_namespace("v1", "PersistentVolume", spec=spec)


def a_job(**spec: Any) -> Manifest:
    return made("batch/v1", "Job", spec={"completions": 1, "template": template("a", policy="Never"), **spec})


def claims(storage: str) -> Manifest:
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": storage}}}
    templates = [{"metadata": {"name": "data"}, "spec": spec}]
    return workload("StatefulSet", "a", serviceName="a", volumeClaimTemplates=templates)


def ingress_class(controller: str) -> Manifest:
    return without_namespace("networking.k8s.io/v1", "IngressClass", spec={"controller": controller})


BALANCER: Final = {"type": "LoadBalancer"}
IMMUTABLE: Final = {"immutable": True}
SEALED: Final = "field is immutable when `immutable` is set"
# row: before, after, the field that the server names, and what the error says about it
CASES: Final[dict[str, tuple[Manifest, Manifest, str, str]]] = {
    "address of a Service": (
        service(),
        service(clusterIP="None"),
        "spec.clusterIPs[0]",
        "this apply changes spec.clusterIP",
    ),
    "address of a headless Service": (
        service(clusterIP="None"),
        service(clusterIP="10.0.0.77"),
        "spec.clusterIPs[0]",
        "this apply changes spec.clusterIP",
    ),
    "families of a Service": (
        service(),
        service(ipFamilies=["IPv6"]),
        "spec.clusterIPs[0]",
        "this apply changes spec.ipFamilies",
    ),
    "class of a Service": (
        service(**BALANCER, loadBalancerClass="example.com/a"),
        service(**BALANCER, loadBalancerClass="example.com/b"),
        "spec.loadBalancerClass",
        "",
    ),
    "selector of a Deployment": (workload("Deployment", "a"), workload("Deployment", "b"), "spec.selector", ""),
    "selector of a DaemonSet": (workload("DaemonSet", "a"), workload("DaemonSet", "b"), "spec.selector", ""),
    "claims of a StatefulSet": (
        claims("1Gi"),
        claims("2Gi"),
        "spec",
        "this apply changes spec.volumeClaimTemplates",
    ),
    "completions of a Job": (a_job(), a_job(completions=2), "spec.completions", ""),
    "data of an immutable ConfigMap": (
        config("1", **IMMUTABLE),
        config("2", **IMMUTABLE),
        "data",
        f"{SEALED}; this apply changes data.a",
    ),
    "immutability of a ConfigMap": (config("1", **IMMUTABLE), config("1"), "immutable", SEALED),
    "data of an immutable Secret": (secret("sesame", **IMMUTABLE), secret("mellon", **IMMUTABLE), "data", ""),
    "type of a Secret": (secret("sesame"), secret("sesame", type="example.com/login"), "type", ""),
    "provisioner of a StorageClass": (
        storage_class(),
        storage_class(provisioner="example.com/b"),
        "provisioner",
        "",
    ),
    "parameters of a StorageClass": (
        storage_class(parameters={"disk": "a"}),
        storage_class(parameters={"disk": "b"}),
        "parameters",
        "this apply changes parameters.disk",
    ),
    "value of a PriorityClass": (priority(), priority(value=2), "value", "may not be changed in an update."),
    "policy of a PriorityClass": (
        priority(preemptionPolicy="Never"),
        priority(preemptionPolicy="PreemptLowerPriority"),
        "preemptionPolicy",
        "",
    ),
    "source of a PersistentVolume": (
        volume("/a"),
        volume("/b"),
        "spec.persistentvolumesource",
        "this apply changes spec.hostPath",
    ),
    "controller of an IngressClass": (
        ingress_class("example.com/a"),
        ingress_class("example.com/b"),
        "spec.controller",
        "",
    ),
}


def built(manifest: Manifest) -> Any:
    return unstructured.StaticBuilder(manifest, cluster_scoped="namespace" not in manifest["metadata"])


@pytest.mark.promise("forbidden-change", runs="18 fields of 11 built-in kinds, on both servers")
@pytest.mark.parametrize(("before", "after", "field", "detail"), CASES.values(), ids=CASES)
async def test_the_error_names_the_field_and_what_to_do(
    env: Env, before: Manifest, after: Manifest, field: str, detail: str
) -> None:
    key = ObjectKey.of(before)
    await emptied(env, key)
    await env.reconcile(of(built(before)))
    stored = await env.cluster.get(key)
    with pytest.raises(ReconcileError) as caught:
        await env.reconcile(of(built(after)))
    problem = caught.value.problem
    assert problem.startswith(f"failed to apply resource {key}: {field} {IN_PLACE}")
    assert detail in problem
    assert problem.endswith(f": {REMEDY}")
    assert "mellon" not in problem
    assert await env.cluster.get(key) == stored
    await emptied(env, key)


GROUP: Final = "rules.example.com"
DEFINITION: Final = """
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: things.rules.example.com}
spec:
  group: rules.example.com
  names: {kind: Thing, plural: things}
  scope: Namespaced
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties:
              plain: {type: string, x-kubernetes-validations: [{rule: self == oldSelf}]}
              said: {type: string, x-kubernetes-validations: [{rule: self == oldSelf, message: the region is fixed}]}
              size: {type: integer, x-kubernetes-validations: [{rule: self <= oldSelf, message: may only shrink}]}
              never: {type: integer, x-kubernetes-validations: [{rule: "oldSelf != oldSelf", message: locked}]}
              most: {type: integer, maximum: 3}
"""
ONLY: Final = "a new object would be accepted, only this change of the existing one is not"


def thing(**spec: Any) -> Manifest:
    return made(f"{GROUP}/v1", "Thing", spec=spec)


@pytest.fixture
def things(request: pytest.FixtureRequest) -> None:
    """Serve the kind Thing on the real API server, before the event loop of the test runs."""
    if "envtest" in request.node.callspec.params.values():
        request.getfixturevalue("shop_plane").install_crds(load_document(DEFINITION))


@pytest.mark.usefixtures("things")
@pytest.mark.promise("forbidden-change", runs="5 rules of a custom kind, on both servers")
@pytest.mark.parametrize(
    ("before", "after", "text"),
    [
        pytest.param({"plain": "a"}, {"plain": "b"}, f"spec.plain {IN_PLACE}: {REMEDY}", id="without a message"),
        pytest.param(
            {"said": "a"},
            {"said": "b"},
            f"the region is fixed; {ONLY} (this apply changes spec.said): {KEEP}",
            id="with a message",
        ),
        pytest.param(
            {"size": 1}, {"size": 2}, f"may only shrink; {ONLY} (this apply changes spec.size): {KEEP}", id="one way"
        ),
        pytest.param(
            {"never": 1}, {"never": 2}, f"locked; {ONLY} (this apply changes spec.never): {KEEP}", id="always"
        ),
        pytest.param({"most": 1}, {"most": 4}, "should be less than or equal to 3", id="not a transition rule"),
    ],
)
async def test_a_transition_rule_is_distinguished_from_an_invalid_value(
    env: Env, before: Manifest, after: Manifest, text: str
) -> None:
    """Its message is its author's, and the server has no reason of its own for it."""
    if isinstance(env.cluster, EmbeddedCluster):
        await env.cluster.create(load_document(DEFINITION), field_manager="user")
    key = ObjectKey.of(thing())
    await emptied(env, key)
    await env.reconcile(of(built(thing(**before))))
    stored = await env.cluster.get(key)
    with pytest.raises(ReconcileError) as caught:
        await env.reconcile(of(built(thing(**after))))
    assert caught.value.problem.endswith(text)
    assert await env.cluster.get(key) == stored
    await env.cluster.delete(key, DeleteOptions(propagation=Propagation.BACKGROUND))
