"""A tour of kubectl: common uses print the same on the embedded API server and on a real one."""

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Final

import pytest
import pytest_asyncio

from ocf.testing.envtest.binaries import Program, Programs
from ocf_server import EmbeddedCluster
from ocf_server.http import serving, write_kubeconfig
from tests.clients.support import Server
from tests.kubectl import Kubectl
from tests.support import eventually

INSTANT: Final = "2026-01-01T12:00:00Z"
WEB: Final = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, labels: {app: web}}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: "nginx:1", ports: [{containerPort: 80}]}]}
---
apiVersion: v1
kind: Service
metadata: {name: web}
spec: {selector: {app: web}, ports: [{port: 80}]}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: settings}
data: {colour: red}
"""


@pytest_asyncio.fixture(params=["embedded", "real"])
async def kubectl(request: pytest.FixtureRequest, envtest_programs: Programs, tmp_path: Path) -> AsyncIterator[Kubectl]:
    """Return kubectl for an empty namespace of one server and then of the other."""
    program = envtest_programs.path(Program.KUBECTL)
    if request.param == "real":
        real: Server = request.getfixturevalue("real")
        yield Kubectl(program, real.kubeconfig, tmp_path, real.namespace)
        return
    async with serving(EmbeddedCluster(namespaces=["shop"])) as server:
        write_kubeconfig(server.kubeconfig(), tmp_path / "kubeconfig")
        yield Kubectl(program, tmp_path / "kubeconfig", tmp_path, "shop")


async def json_of(kubectl: Kubectl, *names: str) -> Any:
    return json.loads((await kubectl("get", *names, "-o", "json")).out)


async def until(kubectl: Kubectl, *arguments: str, shows: str, stdin: str = "") -> None:
    """Run kubectl until it shows a text: a real API server serves a new definition a moment later."""
    await eventually(
        lambda: kubectl(*arguments, stdin=stdin, code=None), lambda printed: shows in printed.out, interval=0.2
    )


def words(text: str) -> list[list[str]]:
    return [line.split() for line in text.splitlines()]


async def test_get_prints_the_columns_of_the_kind(kubectl: Kubectl) -> None:
    await kubectl("apply", "-f", "-", stdin=WEB)
    lines = [line for line in words((await kubectl("get", "deploy,svc,cm")).out) if line]
    address = lines[3].pop(2)
    assert address.startswith("10.")
    assert [line[:-1] for line in lines] == [
        ["NAME", "READY", "UP-TO-DATE", "AVAILABLE"],
        ["deployment.apps/web", "0/2", "0", "0"],
        ["NAME", "TYPE", "CLUSTER-IP", "EXTERNAL-IP", "PORT(S)"],
        ["service/web", "ClusterIP", "<none>", "80/TCP"],
        ["NAME", "DATA"],
        ["configmap/settings", "1"],
    ]


FAILING: Final = """
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: failures.columns.example.com}
spec:
  group: columns.example.com
  names: {kind: Failure, plural: failures}
  scope: Namespaced
  versions:
  - name: v1
    served: true
    storage: true
    additionalPrinterColumns:
    - {name: Ready, type: string, jsonPath: ".status.conditions[?(@.type=='Ready')].status"}
    - {name: Reconciled, type: string, jsonPath: ".status.conditions[?(@.type=='shop-operator/Reconciled')].status"}
    - {name: Error, type: string, priority: 1,
       jsonPath: ".status.conditions[?(@.type=='shop-operator/Reconciled')].message"}
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
"""
FAILURE: Final = """
apiVersion: columns.example.com/v1
kind: Failure
metadata: {name: corner}
status:
  conditions:
  - {type: Ready, status: "True"}
  - {type: shop-operator/Reconciled, status: "False", message: no such version}
---
apiVersion: columns.example.com/v1
kind: Failure
metadata: {name: market}
status: {conditions: [{type: Ready, status: "True"}]}
"""


async def test_a_column_shows_a_condition_with_a_prefix(kubectl: Kubectl) -> None:
    await kubectl("apply", "-f", "-", stdin=FAILING)
    await until(kubectl, "apply", "-f", "-", stdin=FAILURE, shows="failure.columns.example.com/market")

    assert words((await kubectl("get", "failures")).out) == [
        ["NAME", "READY", "RECONCILED"],
        ["corner", "True", "False"],
        ["market", "True"],
    ]
    assert words((await kubectl("get", "failures", "corner", "-o", "wide")).out)[1][3:] == ["no", "such", "version"]


async def test_get_wide_yaml_and_jsonpath(kubectl: Kubectl) -> None:
    await kubectl("apply", "-f", "-", stdin=WEB)
    wide = await kubectl("get", "deploy", "web", "-o", "wide")
    assert words(wide.out)[1][-3:] == ["web", "nginx:1", "app=web"]
    path = await kubectl("get", "deploy", "web", "-o", "jsonpath={.spec.replicas}")
    assert path.out == "2"
    whole = await kubectl("get", "cm", "settings", "-o", "yaml")
    assert "  colour: red\n" in whole.out


@pytest.mark.parametrize("mode", [(), ("--server-side",)], ids=["client", "server"])
async def test_apply_creates_an_object_then_changes_it_only_if_needed(kubectl: Kubectl, mode: tuple[str, ...]) -> None:
    await kubectl("apply", *mode, "-f", "-", stdin=WEB)
    before = await kubectl("get", "deploy", "web", "-o", "jsonpath={.metadata.resourceVersion}")
    await kubectl("apply", *mode, "-f", "-", stdin=WEB)
    again = await kubectl("get", "deploy", "web", "-o", "jsonpath={.metadata.resourceVersion}")
    assert again.out == before.out
    await kubectl("apply", *mode, "-f", "-", stdin=WEB.replace("replicas: 2", "replicas: 3"))
    assert (await kubectl("get", "deploy", "web", "-o", "jsonpath={.spec.replicas}")).out == "3"


async def test_server_side_apply_names_the_manager_of_a_conflict(kubectl: Kubectl) -> None:
    await kubectl("apply", "--server-side", "-f", "-", stdin=WEB)
    await kubectl("scale", "deploy/web", "--replicas=5")
    changed = WEB.replace("replicas: 2", "replicas: 3")
    rejected = await kubectl("apply", "--server-side", "-f", "-", stdin=changed, code=1)
    assert "conflict" in rejected.err
    assert ".spec.replicas" in rejected.err
    await kubectl("apply", "--server-side", "--force-conflicts", "-f", "-", stdin=changed)
    assert (await json_of(kubectl, "deploy", "web"))["spec"]["replicas"] == 3


async def test_diff_shows_what_an_apply_would_change_and_changes_nothing(kubectl: Kubectl) -> None:
    await kubectl("apply", "-f", "-", stdin=WEB)
    before = await json_of(kubectl, "deploy,svc,cm")
    difference = await kubectl("diff", "-f", "-", stdin=WEB.replace("colour: red", "colour: blue"), code=1)
    assert "-  colour: red\n+  colour: blue\n" in difference.out
    assert (await json_of(kubectl, "deploy,svc,cm"))["items"] == before["items"]


async def test_scale_label_annotate_patch_set_image(kubectl: Kubectl) -> None:
    await kubectl("apply", "-f", "-", stdin=WEB)
    await kubectl("scale", "deploy/web", "--replicas=4")
    await kubectl("label", "deploy/web", "tier=front")
    await kubectl("annotate", "deploy/web", "note=here")
    await kubectl("patch", "deploy/web", "--type=merge", "-p", '{"spec":{"paused":true}}')
    await kubectl("set", "image", "deploy/web", "web=nginx:2")
    live = await json_of(kubectl, "deploy", "web")
    assert live["spec"]["replicas"] == 4
    assert live["metadata"]["labels"]["tier"] == "front"
    assert live["metadata"]["annotations"]["note"] == "here"
    assert live["spec"]["paused"] is True
    assert live["spec"]["template"]["spec"]["containers"][0]["image"] == "nginx:2"


async def test_wait_and_rollout_status_see_what_a_controller_would_write(kubectl: Kubectl) -> None:
    await kubectl("apply", "-f", "-", stdin=WEB)
    live = await json_of(kubectl, "deploy", "web")
    done = {"type": "Available", "status": "True", **dict.fromkeys(("lastTransitionTime", "lastUpdateTime"), INSTANT)}
    counts = dict.fromkeys(("replicas", "readyReplicas", "updatedReplicas", "availableReplicas"), 2)
    live["status"] = {**counts, "observedGeneration": 1, "conditions": [done]}
    await kubectl("replace", "--subresource=status", "-f", "-", stdin=json.dumps(live))
    await kubectl("wait", "deploy/web", "--for=condition=Available", "--timeout=600s")
    rolled = await kubectl("rollout", "status", "deploy/web", "--timeout=600s")
    assert rolled.out == 'deployment "web" successfully rolled out\n'


async def test_describe_shows_the_object_and_its_events(kubectl: Kubectl) -> None:
    await kubectl("apply", "-f", "-", stdin=WEB)
    live = await json_of(kubectl, "deploy", "web")
    event = {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": "web.1", "namespace": kubectl.namespace},
        "involvedObject": {
            "kind": "Deployment",
            **{key: live["metadata"][key] for key in ("name", "namespace", "uid")},
        },
        "reason": "Rested",
        "message": "nothing to do",
        "type": "Normal",
        "count": 1,
        "lastTimestamp": INSTANT,
    }
    await kubectl("create", "-f", "-", stdin=json.dumps(event))
    described = await kubectl("describe", "deploy", "web")
    assert "Replicas:               2 desired" in described.out
    assert "Rested" in described.out
    listed = await kubectl("get", "events")
    assert words(listed.out)[1][1:4] == ["Normal", "Rested", "deployment/web"]


async def test_delete_waits_until_the_object_is_gone(kubectl: Kubectl) -> None:
    await kubectl("apply", "-f", "-", stdin=WEB)
    gone = await kubectl("delete", "deploy/web", "svc/web", "--timeout=600s")
    assert 'deployment.apps "web" deleted' in gone.out
    missing = await kubectl("get", "deploy", "web", code=1)
    assert missing.err == 'Error from server (NotFound): deployments.apps "web" not found\n'


@pytest.mark.parametrize("api_version", ["example.com/v1", "apps/v1"])
async def test_replace_names_a_kind_that_is_not_served(kubectl: Kubectl, api_version: str) -> None:
    unknown = json.dumps({"apiVersion": api_version, "kind": "Widget", "metadata": {"name": "web"}})
    replaced = await kubectl("replace", "-f", "-", stdin=unknown, code=1)
    assert f'no matches for kind "Widget" in version "{api_version}"\n' in replaced.err


async def test_discovery_names_resources_and_versions(kubectl: Kubectl) -> None:
    resources = await kubectl("api-resources", "--no-headers")
    assert ["deployments", "deploy", "apps/v1", "true", "Deployment"] in words(resources.out)
    versions = await kubectl("api-versions")
    assert {"apps/v1", "v1"} <= set(versions.out.split())


async def test_explain_prints_type_and_description(kubectl: Kubectl) -> None:
    explained = await kubectl("explain", "hpa.spec.behavior.scaleDown.stabilizationWindowSeconds")
    assert "FIELD: stabilizationWindowSeconds <integer>" in explained.out
    assert "DESCRIPTION:" in explained.out


async def test_get_all_namespaces_with_selectors(kubectl: Kubectl) -> None:
    label = f"app={kubectl.namespace}"
    await kubectl("apply", "-f", "-", stdin=WEB)
    await kubectl("label", "deploy/web", "--overwrite", label)
    found = await kubectl("get", "deploy", "-A", "-l", label, "-o", "name")
    assert found.out == "deployment.apps/web\n"
    fields = f"metadata.name=settings,metadata.namespace={kubectl.namespace}"
    named = await kubectl("get", "cm", "-A", "--field-selector", fields, "-o", "name")
    assert named.out == "configmap/settings\n"


async def test_get_in_chunks_shows_everything(kubectl: Kubectl) -> None:
    maps = [{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": f"c{number}"}} for number in range(7)]
    await kubectl("create", "-f", "-", stdin=json.dumps({"apiVersion": "v1", "kind": "List", "items": maps}))
    listed = await kubectl("get", "cm", "--chunk-size=2", "-o", "name")
    assert len(listed.out.splitlines()) == 7


async def test_commands_that_send_protobuf_work(kubectl: Kubectl) -> None:
    """Objects that kubectl builds itself, instead of reading them from a file, are sent in protobuf."""
    await kubectl("create", "namespace", "dev", "--dry-run=server")
    await kubectl("create", "configmap", "a", "--from-literal=colour=red")
    await kubectl("create", "secret", "generic", "b", "--from-literal=key=value")
    await kubectl("create", "deployment", "web", "--image=nginx:1", "--replicas=2", "--port=80")
    await kubectl("expose", "deployment", "web", "--port=80", "--target-port=http")
    assert (await json_of(kubectl, "configmap", "a"))["data"] == {"colour": "red"}
    assert (await json_of(kubectl, "secret", "b"))["data"] == {"key": "dmFsdWU="}
    web = await json_of(kubectl, "deployment", "web")
    assert web["spec"]["replicas"] == 2
    assert web["spec"]["template"]["spec"]["containers"][0]["ports"] == [{"containerPort": 80, "protocol": "TCP"}]
    service = await json_of(kubectl, "service", "web")
    assert service["spec"]["ports"][0]["targetPort"] == "http"


async def test_everything_is_allowed(kubectl: Kubectl) -> None:
    assert (await kubectl("auth", "can-i", "delete", "pods", "-A")).out == "yes\n"


async def test_autoscale_creates_an_autoscaler_in_both_versions(kubectl: Kubectl) -> None:
    await kubectl("apply", "-f", "-", stdin=WEB)
    await kubectl("autoscale", "deploy/web", "--min=1", "--max=4", "--cpu=50%")
    listed = await kubectl("get", "hpa")
    assert words(listed.out)[1][:5] == ["web", "Deployment/web", "cpu:", "<unknown>/50%", "1"]
    path = "jsonpath={.spec.targetCPUUtilizationPercentage}"
    assert (await kubectl("get", "horizontalpodautoscalers.v1.autoscaling", "web", "-o", path)).out == "50"
    described = await kubectl("describe", "hpa", "web")
    assert "Max replicas:" in described.out


CAFES: Final = """
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: cafes.kubectl.example.com}
spec:
  group: kubectl.example.com
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
CAFE: Final = "{apiVersion: kubectl.example.com/v1, kind: Cafe, metadata: {name: corner}, spec: {size: 3}}"


async def test_a_definition_adds_a_kind_that_works_like_a_built_in_one(kubectl: Kubectl) -> None:
    """It is discovered, explained, validated, printed with its columns, scaled, and deleted with its definition."""
    await kubectl("apply", "-f", "-", stdin=CAFES)
    # kubectl fails while the API server has not written the first condition.
    established = ("wait", "crd/cafes.kubectl.example.com", "--for=condition=Established", "--timeout=600s")
    await until(kubectl, *established, shows="condition met")
    await until(kubectl, "apply", "-f", "-", stdin=CAFE, shows="corner created")
    assert words((await kubectl("get", "cf")).out) == [["NAME", "SIZE", "READY"], ["corner", "3"]]
    await until(kubectl, "explain", "cafe.spec.size", shows="How many seats there are.")
    await kubectl("scale", "cafe/corner", "--replicas=5")
    assert (await kubectl("get", "cafe", "corner", "-o", "jsonpath={.spec.size}")).out == "5"
    strange = await kubectl("apply", "-f", "-", stdin=CAFE.replace("size: 3", "seats: 3"), code=1)
    assert 'unknown field "spec.seats"' in strange.err
    wrong = await kubectl("apply", "-f", "-", stdin=CAFE.replace("size: 3", "size: 0"), code=1)
    assert "spec.size in body should be greater than or equal to 1" in wrong.err
    assert "cafe.kubectl.example.com/corner" in (await kubectl("get", "all", "-o", "name")).out
    await kubectl("delete", "crd", "cafes.kubectl.example.com", "--timeout=600s")
    await eventually(
        lambda: kubectl("api-resources", "--no-headers"), lambda printed: "cafes" not in printed.out, interval=0.2
    )


async def test_a_misspelt_field_is_an_error_or_a_warning_as_requested(kubectl: Kubectl) -> None:
    misspelt = WEB.replace("  replicas: 2", "  replicaCount: 2")
    assert 'unknown field "spec.replicaCount"' in (await kubectl("apply", "-f", "-", stdin=misspelt, code=1)).err
    warned = await kubectl("apply", "--validate=warn", "-f", "-", stdin=misspelt)
    assert 'Warning: unknown field "spec.replicaCount"' in warned.err


async def test_get_watch_prints_changes_as_they_happen(kubectl: Kubectl) -> None:
    await kubectl("apply", "-f", "-", stdin=WEB)
    async with kubectl.printing("get", "deploy", "--watch") as next_line:
        seen = [await next_line(), await next_line()]
        await kubectl("scale", "deploy/web", "--replicas=9")
        seen.append(await next_line())
    assert [line.split()[1] for line in seen] == ["READY", "0/2", "0/9"]


async def test_a_strategic_merge_patch_merges_containers_by_name(kubectl: Kubectl) -> None:
    await kubectl("apply", "-f", "-", stdin=WEB)
    side = {"spec": {"template": {"spec": {"containers": [{"name": "side", "image": "side:1"}]}}}}
    await kubectl("patch", "deploy/web", "-p", json.dumps(side))
    containers = (await json_of(kubectl, "deploy", "web"))["spec"]["template"]["spec"]["containers"]
    assert {one["name"] for one in containers} == {"web", "side"}


async def test_delete_all_of_a_kind(kubectl: Kubectl) -> None:
    await kubectl("apply", "-f", "-", stdin=WEB)
    await kubectl("delete", "cm", "--all", "--timeout=600s")
    assert (await kubectl("get", "cm", "-o", "name")).out == ""


FLOWS: Final = (("tour-b", 900), ("tour-c", 800), ("tour-a", 900))


async def test_flow_schemas_are_printed_in_the_order_in_which_they_match(kubectl: Kubectl) -> None:
    for name, precedence in FLOWS:
        spec = {"matchingPrecedence": precedence, "priorityLevelConfiguration": {"name": "exempt"}}
        head = {"apiVersion": "flowcontrol.apiserver.k8s.io/v1", "kind": "FlowSchema", "metadata": {"name": name}}
        await kubectl("create", "-f", "-", stdin=json.dumps({**head, "spec": spec}))
    try:
        lines = words((await kubectl("get", "flowschemas", "--no-headers")).out)
        assert [line[0] for line in lines if line[0].startswith("tour-")] == ["tour-c", "tour-a", "tour-b"]
        listed = await json_of(kubectl, "flowschemas")
        names = [item["metadata"]["name"] for item in listed["items"]]
        assert names == sorted(names)
    finally:
        await kubectl("delete", "flowschemas", *(name for name, _ in FLOWS))


async def test_the_version_is_printed_with_indentation(kubectl: Kubectl) -> None:
    printed = (await kubectl("get", "--raw", "/version")).out
    assert printed.startswith('{\n  "major": "1",\n  "minor": "36",\n  "emulationMajor": "1",\n')
    assert list(json.loads(printed))[6] == "gitVersion"
