"""kubectl works unchanged on the embedded cluster.

Each test is a common use of kubectl; the assertions compare its output.
"""

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from ocf.cluster import PatchOptions, PatchType
from ocf.embedded import EmbeddedCluster
from ocf.objects import ObjectKey

Kubectl = Callable[..., Awaitable[Any]]

WEB = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: shop, labels: {app: web}}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: "nginx:1", ports: [{containerPort: 80}]}]}
---
apiVersion: v1
kind: Service
metadata: {name: web, namespace: shop}
spec: {selector: {app: web}, ports: [{port: 80}]}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: settings, namespace: shop}
data: {colour: red}
"""
WEB_KEY = ObjectKey("apps/v1", "Deployment", "web", "shop")


def words(text: str) -> list[list[str]]:
    return [line.split() for line in text.splitlines()]


async def test_get_prints_the_columns_of_the_kind(kubectl: Kubectl) -> None:
    await kubectl("apply", "-f", "-", stdin=WEB)
    listed = await kubectl("get", "deploy,svc,cm", "-n", "shop")
    assert [line for line in words(listed.out) if line] == [
        ["NAME", "READY", "UP-TO-DATE", "AVAILABLE", "AGE"],
        ["deployment.apps/web", "0/2", "0", "0", "0s"],
        ["NAME", "TYPE", "CLUSTER-IP", "EXTERNAL-IP", "PORT(S)", "AGE"],
        ["service/web", "ClusterIP", "10.96.0.1", "<none>", "80/TCP", "0s"],
        ["NAME", "DATA", "AGE"],
        ["configmap/settings", "1", "0s"],
    ]


async def test_get_wide_yaml_and_jsonpath(kubectl: Kubectl) -> None:
    await kubectl("apply", "-f", "-", stdin=WEB)
    wide = await kubectl("get", "deploy", "web", "-n", "shop", "-o", "wide")
    assert words(wide.out)[1][-3:] == ["web", "nginx:1", "app=web"]
    path = await kubectl("get", "deploy", "web", "-n", "shop", "-o", "jsonpath={.spec.replicas}")
    assert path.out == "2"
    whole = await kubectl("get", "cm", "settings", "-n", "shop", "-o", "yaml")
    assert "  colour: red\n" in whole.out


@pytest.mark.parametrize("mode", [(), ("--server-side",)], ids=["client", "server"])
async def test_apply_creates_an_object_then_changes_it_only_if_needed(kubectl: Kubectl, mode: tuple[str, ...]) -> None:
    await kubectl("apply", *mode, "-f", "-", stdin=WEB)
    before = await kubectl("get", "deploy", "web", "-n", "shop", "-o", "jsonpath={.metadata.resourceVersion}")
    await kubectl("apply", *mode, "-f", "-", stdin=WEB)
    again = await kubectl("get", "deploy", "web", "-n", "shop", "-o", "jsonpath={.metadata.resourceVersion}")
    assert again.out == before.out
    await kubectl("apply", *mode, "-f", "-", stdin=WEB.replace("replicas: 2", "replicas: 3"))
    assert (await kubectl("get", "deploy", "web", "-n", "shop", "-o", "jsonpath={.spec.replicas}")).out == "3"


async def test_server_side_apply_names_the_manager_of_a_conflict(kubectl: Kubectl, cluster: EmbeddedCluster) -> None:
    await kubectl("apply", "--server-side", "-f", "-", stdin=WEB)
    await kubectl("scale", "deploy/web", "-n", "shop", "--replicas=5")
    changed = WEB.replace("replicas: 2", "replicas: 3")
    rejected = await kubectl("apply", "--server-side", "-f", "-", stdin=changed, code=1)
    assert "conflict" in rejected.err
    assert ".spec.replicas" in rejected.err
    await kubectl("apply", "--server-side", "--force-conflicts", "-f", "-", stdin=changed)
    assert (await cluster.get(WEB_KEY))["spec"]["replicas"] == 3


async def test_diff_shows_what_an_apply_would_change_and_changes_nothing(
    kubectl: Kubectl, cluster: EmbeddedCluster
) -> None:
    await kubectl("apply", "-f", "-", stdin=WEB)
    version = cluster.resource_version
    difference = await kubectl("diff", "-f", "-", stdin=WEB.replace("colour: red", "colour: blue"), code=1)
    assert "-  colour: red\n+  colour: blue\n" in difference.out
    assert cluster.resource_version == version


async def test_scale_label_annotate_patch_set_image(kubectl: Kubectl, cluster: EmbeddedCluster) -> None:
    await kubectl("apply", "-f", "-", stdin=WEB)
    await kubectl("scale", "deploy/web", "-n", "shop", "--replicas=4")
    await kubectl("label", "deploy/web", "-n", "shop", "tier=front")
    await kubectl("annotate", "deploy/web", "-n", "shop", "note=here")
    await kubectl("patch", "deploy/web", "-n", "shop", "--type=merge", "-p", '{"spec":{"paused":true}}')
    await kubectl("set", "image", "deploy/web", "-n", "shop", "web=nginx:2")
    live = await cluster.get(WEB_KEY)
    assert live["spec"]["replicas"] == 4
    assert live["metadata"]["labels"]["tier"] == "front"
    assert live["metadata"]["annotations"]["note"] == "here"
    assert live["spec"]["paused"] is True
    assert live["spec"]["template"]["spec"]["containers"][0]["image"] == "nginx:2"


async def test_wait_and_rollout_status_see_what_a_controller_would_write(
    kubectl: Kubectl, cluster: EmbeddedCluster
) -> None:
    await kubectl("apply", "-f", "-", stdin=WEB)
    live = await cluster.get(WEB_KEY)
    done = {"type": "Available", "status": "True", "lastTransitionTime": None, "lastUpdateTime": None}
    counts = dict.fromkeys(("replicas", "readyReplicas", "updatedReplicas", "availableReplicas"), 2)
    live["status"] = {**counts, "observedGeneration": 1, "conditions": [done]}
    await kubectl("replace", "--subresource=status", "-f", "-", stdin=json.dumps(live))
    await kubectl("wait", "deploy/web", "-n", "shop", "--for=condition=Available", "--timeout=600s")
    rolled = await kubectl("rollout", "status", "deploy/web", "-n", "shop", "--timeout=600s")
    assert rolled.out == 'deployment "web" successfully rolled out\n'


async def test_describe_shows_the_object_and_its_events(kubectl: Kubectl, cluster: EmbeddedCluster) -> None:
    await kubectl("apply", "-f", "-", stdin=WEB)
    live = await cluster.get(WEB_KEY)
    event = {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": "web.1", "namespace": "shop"},
        "involvedObject": {"kind": "Deployment", "namespace": "shop", "name": "web", "uid": live["metadata"]["uid"]},
        "reason": "Rested",
        "message": "nothing to do",
        "type": "Normal",
        "count": 1,
    }
    await cluster.create(event, field_manager="test")
    described = await kubectl("describe", "deploy", "web", "-n", "shop")
    assert "Replicas:               2 desired" in described.out
    assert "Rested" in described.out
    listed = await kubectl("get", "events", "-n", "shop")
    assert words(listed.out)[1][1:4] == ["Normal", "Rested", "deployment/web"]


async def test_delete_waits_until_the_object_is_gone(kubectl: Kubectl) -> None:
    await kubectl("apply", "-f", "-", stdin=WEB)
    gone = await kubectl("delete", "deploy/web", "svc/web", "-n", "shop", "--timeout=600s")
    assert 'deployment.apps "web" deleted' in gone.out
    missing = await kubectl("get", "deploy", "web", "-n", "shop", code=1)
    assert missing.err == 'Error from server (NotFound): deployments.apps "web" not found\n'


@pytest.mark.parametrize("api_version", ["example.com/v1", "apps/v1"])
async def test_replace_names_a_kind_that_is_not_served(kubectl: Kubectl, api_version: str) -> None:
    unknown = json.dumps({"apiVersion": api_version, "kind": "Widget", "metadata": {"name": "web"}})
    replaced = await kubectl("replace", "-f", "-", stdin=unknown, code=1)
    assert f'no matches for kind "Widget" in version "{api_version}"\n' in replaced.err


async def test_discovery_names_resources_and_versions(kubectl: Kubectl) -> None:
    resources = await kubectl("api-resources", "--no-headers")
    assert ["deployments", "deploy", "apps/v1", "true", "Deployment"] in words(resources.out)
    assert ["shops", "example.com/v1", "true", "Shop"] in words(resources.out)
    versions = await kubectl("api-versions")
    assert {"apps/v1", "v1", "example.com/v1"} <= set(versions.out.split())


async def test_explain_prints_type_and_description(kubectl: Kubectl) -> None:
    explained = await kubectl("explain", "hpa.spec.behavior.scaleDown.stabilizationWindowSeconds")
    assert "FIELD: stabilizationWindowSeconds <integer>" in explained.out
    assert "DESCRIPTION:" in explained.out


async def test_get_all_namespaces_with_selectors(kubectl: Kubectl) -> None:
    await kubectl("apply", "-f", "-", stdin=WEB)
    found = await kubectl("get", "deploy", "-A", "-l", "app=web", "-o", "name")
    assert found.out == "deployment.apps/web\n"
    named = await kubectl("get", "cm", "-A", "--field-selector", "metadata.name=settings", "-o", "name")
    assert named.out == "configmap/settings\n"


async def test_get_in_chunks_shows_everything(kubectl: Kubectl, cluster: EmbeddedCluster) -> None:
    for number in range(7):
        manifest = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": f"c{number}", "namespace": "shop"}}
        await cluster.create(manifest, field_manager="test")
    listed = await kubectl("get", "cm", "-n", "shop", "--chunk-size=2", "-o", "name")
    assert len(listed.out.splitlines()) == 7


async def test_commands_that_send_protobuf_work(kubectl: Kubectl, cluster: EmbeddedCluster) -> None:
    """Objects that kubectl builds itself, instead of reading them from a file, are sent in protobuf."""
    await kubectl("create", "namespace", "dev")
    await kubectl("create", "configmap", "a", "-n", "dev", "--from-literal=colour=red")
    await kubectl("create", "secret", "generic", "b", "-n", "dev", "--from-literal=key=value")
    await kubectl("create", "deployment", "web", "-n", "dev", "--image=nginx:1", "--replicas=2", "--port=80")
    await kubectl("expose", "deployment", "web", "-n", "dev", "--port=80", "--target-port=http")
    assert (await cluster.get(ObjectKey("v1", "ConfigMap", "a", "dev")))["data"] == {"colour": "red"}
    assert (await cluster.get(ObjectKey("v1", "Secret", "b", "dev")))["data"] == {"key": "dmFsdWU="}
    web = await cluster.get(ObjectKey("apps/v1", "Deployment", "web", "dev"))
    assert web["spec"]["replicas"] == 2
    assert web["spec"]["template"]["spec"]["containers"][0]["ports"] == [{"containerPort": 80, "protocol": "TCP"}]
    service = await cluster.get(ObjectKey("v1", "Service", "web", "dev"))
    assert service["spec"]["ports"][0]["targetPort"] == "http"


async def test_everything_is_allowed(kubectl: Kubectl) -> None:
    assert (await kubectl("auth", "can-i", "delete", "pods", "-A")).out == "yes\n"
    assert "admin" in (await kubectl("auth", "whoami")).out


async def test_autoscale_creates_an_autoscaler_in_both_versions(kubectl: Kubectl) -> None:
    await kubectl("apply", "-f", "-", stdin=WEB)
    await kubectl("autoscale", "deploy/web", "-n", "shop", "--min=1", "--max=4", "--cpu=50%")
    listed = await kubectl("get", "hpa", "-n", "shop")
    assert words(listed.out)[1][:5] == ["web", "Deployment/web", "cpu:", "<unknown>/50%", "1"]
    path = "jsonpath={.spec.targetCPUUtilizationPercentage}"
    assert (
        await kubectl("get", "horizontalpodautoscalers.v1.autoscaling", "web", "-n", "shop", "-o", path)
    ).out == "50"
    described = await kubectl("describe", "hpa", "web", "-n", "shop")
    assert "Max replicas:" in described.out


SHOPS = """
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: cafes.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: cafes, singular: cafe, kind: Cafe, shortNames: [cf], categories: [all]}
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {status: {}, scale: {specReplicasPath: .spec.size, statusReplicasPath: .status.size}}
    additionalPrinterColumns:
    - {name: Size, type: integer, jsonPath: .spec.size}
    - {name: Ready, type: string, jsonPath: '.status.conditions[?(@.type=="Ready")].status'}
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties:
              size: {type: integer, minimum: 1, default: 2, description: How many seats there are.}
          status: {type: object, x-kubernetes-preserve-unknown-fields: true}
"""
CAFE = "{apiVersion: example.com/v1, kind: Cafe, metadata: {name: corner, namespace: shop}, spec: {size: 3}}"


async def test_a_definition_adds_a_kind_that_works_like_a_built_in_one(kubectl: Kubectl) -> None:
    """It is discovered, explained, validated, printed with its columns, scaled, and deleted with its definition."""
    await kubectl("apply", "-f", "-", stdin=SHOPS)
    await kubectl("wait", "crd/cafes.example.com", "--for=condition=Established", "--timeout=600s")
    await kubectl("apply", "-f", "-", stdin=CAFE)
    assert words((await kubectl("get", "cf", "-n", "shop")).out) == [["NAME", "SIZE", "READY"], ["corner", "3"]]
    assert "How many seats there are." in (await kubectl("explain", "cafe.spec.size")).out
    await kubectl("scale", "cafe/corner", "-n", "shop", "--replicas=5")
    assert (await kubectl("get", "cafe", "corner", "-n", "shop", "-o", "jsonpath={.spec.size}")).out == "5"
    strange = await kubectl("apply", "-f", "-", stdin=CAFE.replace("size: 3", "seats: 3"), code=1)
    assert 'unknown field "spec.seats"' in strange.err
    wrong = await kubectl("apply", "-f", "-", stdin=CAFE.replace("size: 3", "size: 0"), code=1)
    assert "spec.size in body should be greater than or equal to 1" in wrong.err
    assert "cafe.example.com/corner" in (await kubectl("get", "all", "-n", "shop", "-o", "name")).out
    await kubectl("delete", "crd", "cafes.example.com", "--timeout=600s")
    assert "cafes" not in (await kubectl("api-resources", "--no-headers")).out


async def test_a_misspelt_field_is_an_error_or_a_warning_as_requested(kubectl: Kubectl) -> None:
    misspelt = WEB.replace("  replicas: 2", "  replicaCount: 2")
    assert 'unknown field "spec.replicaCount"' in (await kubectl("apply", "-f", "-", stdin=misspelt, code=1)).err
    warned = await kubectl("apply", "--validate=warn", "-f", "-", stdin=misspelt)
    assert 'Warning: unknown field "spec.replicaCount"' in warned.err


async def test_get_watch_prints_changes_as_they_happen(kubectl: Kubectl, cluster: EmbeddedCluster) -> None:
    await kubectl("apply", "-f", "-", stdin=WEB)
    watching = asyncio.ensure_future(kubectl("get", "deploy", "-n", "shop", "-w", lines=3, code=None))
    while not cluster._registry.store._waiting:  # noqa: ASYNC110 (no event to wait for)
        await asyncio.sleep(0.01)
    await cluster.patch(
        WEB_KEY, {"spec": {"replicas": 9}}, PatchOptions(patch_type=PatchType.MERGE, field_manager="test")
    )
    seen = words((await watching).out)
    assert [line[1] for line in seen] == ["READY", "0/2", "0/9"]


async def test_a_strategic_merge_patch_merges_containers_by_name(kubectl: Kubectl, cluster: EmbeddedCluster) -> None:
    await kubectl("apply", "-f", "-", stdin=WEB)
    side = {"spec": {"template": {"spec": {"containers": [{"name": "side", "image": "side:1"}]}}}}
    await kubectl("patch", "deploy/web", "-n", "shop", "-p", json.dumps(side))
    containers = (await cluster.get(WEB_KEY))["spec"]["template"]["spec"]["containers"]
    assert {one["name"] for one in containers} == {"web", "side"}


async def test_delete_all_of_a_kind(kubectl: Kubectl) -> None:
    await kubectl("apply", "-f", "-", stdin=WEB)
    await kubectl("delete", "cm", "--all", "-n", "shop", "--timeout=600s")
    assert (await kubectl("get", "cm", "-n", "shop", "-o", "name")).out == ""
    await kubectl("delete", "namespace", "shop", "--timeout=600s")
    assert "shop" not in (await kubectl("get", "ns", "-o", "name")).out
