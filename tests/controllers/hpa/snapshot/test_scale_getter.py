"""A derived Scale equals the subresource; a Scale that the controller's client rejects is an error."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from ocf.cluster import PatchOptions, PatchType, Subresource
from ocf.controllers.hpa.snapshot import DerivedScaleGetter, SubresourceScaleGetter
from ocf.errors import NotFoundError, ServerError
from ocf.objects import Manifest, ObjectKey
from ocf_server import EmbeddedCluster
from tests.controllers.metrics_client.conftest import Paths

if TYPE_CHECKING:
    from ocf.cluster.client import ApiServerCluster
    from ocf.testing.plugin import Envtest

TEMPLATE = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "app", "image": "app"}]}}
SELECTORS = [
    pytest.param({"matchLabels": {"app": "web"}}, id="a label"),
    pytest.param({"matchLabels": {"app": "web", "a": "b"}}, id="labels"),
    pytest.param({"matchExpressions": [{"key": "app", "operator": "In", "values": ["web", "a"]}]}, id="one of"),
    pytest.param({"matchExpressions": [{"key": "app", "operator": "Exists"}]}, id="any"),
]


def workload(kind: str, selector: Any, replicas: int | None) -> Manifest:
    template = {**TEMPLATE, "metadata": {"labels": {"app": "web", "a": "b"}}}
    spec = {"selector": selector, "template": template, **({} if replicas is None else {"replicas": replicas})}
    if kind == "StatefulSet":
        spec["serviceName"] = "web"
    version = "v1" if kind == "ReplicationController" else "apps/v1"
    return {"apiVersion": version, "kind": kind, "metadata": {"name": "web", "namespace": "shop"}, "spec": spec}


@pytest.mark.parametrize("replicas", [None, 0, 3])
@pytest.mark.parametrize("selector", SELECTORS)
@pytest.mark.parametrize("kind", ["Deployment", "ReplicaSet", "StatefulSet"])
async def test_a_derived_scale_equals_the_subresource(kind: str, selector: Any, replicas: int | None) -> None:
    cluster = EmbeddedCluster(namespaces=("shop",))
    made = await cluster.create(workload(kind, selector, replicas), field_manager="test")
    key = ObjectKey.of(made)
    status = {"status": {"replicas": 2}}
    await cluster.patch(
        key, status, PatchOptions(patch_type=PatchType.MERGE, field_manager="test", subresource=Subresource.STATUS)
    )
    subresource = SubresourceScaleGetter(cluster)

    assert await DerivedScaleGetter(cluster, subresource).scale(key) == await subresource.scale(key)


async def test_a_derived_scale_of_a_replication_controller_equals_the_subresource() -> None:
    cluster = EmbeddedCluster(namespaces=("shop",))
    made = await cluster.create(workload("ReplicationController", {"app": "web"}, 2), field_manager="test")
    subresource = SubresourceScaleGetter(cluster)

    assert await DerivedScaleGetter(cluster, subresource).scale(ObjectKey.of(made)) == await subresource.scale(
        ObjectKey.of(made)
    )


async def test_a_derived_scale_equals_the_subresource_of_a_real_server(
    envtest: Envtest, envtest_cluster: ApiServerCluster
) -> None:
    cluster, subresource = envtest_cluster, SubresourceScaleGetter(envtest_cluster, envtest_cluster)
    for kind in ("Deployment", "ReplicaSet", "StatefulSet", "ReplicationController"):
        expression = {"key": "app", "operator": "In", "values": ["web", "a"]}
        in_object_form = {"matchLabels": {"a": "b"}, "matchExpressions": [expression]}
        selector = {"app": "web"} if kind == "ReplicationController" else in_object_form
        manifest = workload(kind, selector, 2)
        manifest["metadata"]["namespace"] = envtest.namespace
        key = ObjectKey.of(await cluster.create(manifest, field_manager="test"))

        assert await DerivedScaleGetter(cluster, subresource).scale(key) == await subresource.scale(key)


async def test_a_derived_scale_does_not_depend_on_the_version() -> None:
    cluster = EmbeddedCluster(namespaces=("shop",))
    await cluster.create(workload("Deployment", {"matchLabels": {"app": "web"}}, 2), field_manager="test")
    scales = DerivedScaleGetter(cluster, SubresourceScaleGetter(cluster))

    assert (await scales.scale(ObjectKey("apps/v1beta1", "Deployment", "web", "shop")))["spec"] == {"replicas": 2}


@pytest.mark.parametrize(
    ("version", "kind", "message"),
    [
        ("apps/v1", "Deployment", 'deployments.apps "web" not found'),
        ("v1", "ReplicationController", 'replicationcontrollers "web" not found'),
    ],
)
async def test_a_missing_workload_has_no_scale(version: str, kind: str, message: str) -> None:
    cluster = EmbeddedCluster(namespaces=("shop",))
    with pytest.raises(NotFoundError) as caught:
        await DerivedScaleGetter(cluster, SubresourceScaleGetter(cluster)).scale(
            ObjectKey(version, kind, "web", "shop")
        )

    assert caught.value.message == message


ROLLOUT = ObjectKey("example.com/v1", "Rollout", "web", "shop")
PATH = "/apis/example.com/v2/namespaces/shop/rollouts/web/scale"


@pytest.fixture
def paths() -> Paths:
    group = {"preferredVersion": {"groupVersion": "example.com/v2"}, "versions": []}
    resources = [{"name": "rollouts", "kind": "Rollout", "namespaced": True}]
    return Paths({"/apis/example.com": group, "/apis/example.com/v2": {"resources": resources}})


def scale(**status: Any) -> Manifest:
    return {"apiVersion": "autoscaling/v1", "kind": "Scale", "spec": {"replicas": 2}, "status": status}


def served(paths: Paths) -> SubresourceScaleGetter:
    return SubresourceScaleGetter(EmbeddedCluster(), paths)


@pytest.mark.parametrize(
    ("written", "read"),
    [("app=web", "app=web"), ("app==web", "app=web"), ("tier in (b, a),!canary,app", "app,!canary,tier in (a,b)")],
)
async def test_a_target_is_found_by_group_and_kind(paths: Paths, written: str, read: str) -> None:
    """Its selector has the form that the controller's client writes."""
    paths.content[PATH] = scale(replicas=2, selector=written)
    assert (await served(paths).scale(ROLLOUT))["status"] == {"replicas": 2, "selector": read}


@pytest.mark.parametrize(
    ("selector", "problem"),
    [
        ("app!=web", '"!=" is not a valid label selector operator'),
        ("size>3", '"gt" isn\'t supported in label selectors'),
        ("size<3", '"lt" isn\'t supported in label selectors'),
        ("app in (", 'couldn\'t parse the selector string "app in (": '),
    ],
)
async def test_a_selector_without_an_object_form_is_rejected(paths: Paths, selector: str, problem: str) -> None:
    paths.content[PATH] = scale(selector=selector)
    with pytest.raises(ServerError) as caught:
        await served(paths).scale(ROLLOUT)

    assert caught.value.message.startswith(
        "received an object from a /scale endpoint which was not convertible to autoscaling Scale: "
        f"failed to parse target selector: {problem}"
    )


async def test_an_unknown_kind_has_no_scale(paths: Paths) -> None:
    with pytest.raises(NotFoundError, match=r'no matches for kind "Plain" in group "example\.com"'):
        await served(paths).scale(ObjectKey("example.com/v1", "Plain", "web", "shop"))


async def test_a_target_is_looked_up_again_after_404(paths: Paths) -> None:
    scales = served(paths)
    with pytest.raises(NotFoundError, match=r"could not find the requested resource \(get rollouts web\)"):
        await scales.scale(ROLLOUT)
    paths.content["/apis/example.com"] = {"preferredVersion": {"groupVersion": "example.com/v3"}}
    paths.content["/apis/example.com/v3"] = paths.content["/apis/example.com/v2"]
    paths.content[PATH.replace("v2", "v3")] = scale(replicas=1)

    assert (await scales.scale(ROLLOUT))["status"] == {"replicas": 1}
