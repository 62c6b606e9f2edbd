"""`ocf nodegroups try`: a group and workloads in virtual time, without a cluster and without a cloud.

Users of other autoscalers ask for it: https://github.com/kubernetes/autoscaler/issues/1377 (what would be removed,
without a disruption) and https://github.com/kubernetes-sigs/kube-scheduler-simulator/issues/198.
"""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any, Final

import pytest
from click.testing import CliRunner

from ocf.cli.app import app
from ocf.testing import LoopClock, run_in_virtual_time
from ocf_server import ControllerSettings, EmbeddedCluster
from tests.cli.nodegroups.trials import annotated_job, ask, found, group, job, pod, texts, workload
from tests.cli.page_commands import run_commands

pytestmark = pytest.mark.usefixtures("trial_folder")

PAGE: Final = Path(__file__).parents[3] / "docs" / "nodes" / "nodegroup-controller.md"

NO_CPU: Final = "Insufficient cpu on small; Insufficient cpu on large"


def test_the_commands_of_the_page_print_the_output_shown() -> None:
    assert run_commands(PAGE.read_text(encoding="utf-8")) == 2


@pytest.mark.parametrize(
    ("objects", "status", "types", "reasons"),
    [
        pytest.param([workload("Deployment", "1", replicas=3)], 0, ["small", "small"], [], id="deployment"),
        pytest.param([workload("StatefulSet", "3", replicas=1)], 0, ["large"], [], id="statefulset"),
        pytest.param(
            # A pod of 1.5 CPU would fit on a small node without the DaemonSet.
            [workload("DaemonSet", "1", name="agent"), pod("web-0", "1500m")],
            0,
            ["large"],
            [],
            id="daemon sets count",
        ),
        pytest.param(
            [pod("web-0", "1"), pod("giant", "64")],
            1,
            ["small"],
            [f"never fits: 64 CPU requested, the largest type has 8: {NO_CPU}"],
            id="a pod that fits no type",
        ),
        pytest.param(
            [pod(f"web-{number}", "2") for number in range(3)],
            1,
            ["small", "small"],
            ["has no place: the limit of nodes is reached"],
            id="the maximum",
        ),
        pytest.param(
            [pod("web-0", "1", schedulerName="volcano")],
            1,
            ["small"],
            ["waits: no scheduler volcano runs here, only default-scheduler"],
            id="another scheduler",
        ),
        pytest.param(
            [pod("web-0", "1", schedulingGates=[{"name": "example.com/quota"}])],
            1,
            [],
            ["waits until its spec.schedulingGates are removed"],
            id="a gate",
        ),
    ],
)
def test_pods_get_nodes_or_a_reason(
    objects: list[dict[str, Any]], status: int, types: list[str], reasons: list[str]
) -> None:
    code, answer = found([group(maxNodes=2), *objects], "--for=5m")
    assert sorted(each["instanceType"] for each in answer["nodes"]) == sorted(types)
    assert [each["text"] for each in answer["pods"] if not each["runs"]] == reasons
    assert code == status


def test_a_node_is_ordered_with_its_price_and_removed_when_nothing_runs_on_it() -> None:
    code, answer = found([group(), job("1", "5m")], "--for=20m")
    nodes = texts(answer, "node")
    assert nodes[0].startswith("ordered: small in fra, 0.02 an hour, for shop/report-")
    assert nodes[-1] == "gone"
    assert any(text.startswith("event ScalingDown: remove node workers-") for text in texts(answer, "group"))
    assert (code, answer["nodes"], answer["pricePerHour"]) == (0, [], 0)
    # Ordered at the start, removed 10 minutes after the Job: a node of some 16 minutes.
    assert answer["cost"] == pytest.approx(0.02 * 16 / 60, rel=0.05)


def test_each_pod_gets_a_node_of_a_group_that_it_selects() -> None:
    small, large = (
        group(offeringIDs=["small"], labels={"pool": "s"}),
        group(offeringIDs=["large"], labels={"pool": "l"}),
    )
    large["metadata"] = {"name": "large", "namespace": "team"}
    pods = [pod(f"web-{pool}", "1", nodeSelector={"pool": pool}) for pool in ("s", "l")]
    code, answer = found([small, large, *pods], "--for=5m")
    assert (code, sorted(each["instanceType"] for each in answer["nodes"])) == (0, ["large", "small"])
    ready = [step["object"] for step in answer["steps"] if step["text"].startswith("Ready=True ScalingComplete: 1 of")]
    assert sorted(ready) == ["default/workers", "team/large"]


def test_the_decision_is_that_of_a_plan() -> None:
    objects = [group(), *(pod(f"web-{number}", "900m") for number in range(5))]
    _, answer = found(objects, "--for=1m")
    planned = CliRunner().invoke(app, ["nodegroups", "plan", "objects.json", "--types=types.json"]).stdout
    decision = next(text for text in texts(answer, "group") if text.startswith("decision: "))
    assert decision.removeprefix("decision: ") in planned


def test_a_trial_can_be_repeated() -> None:
    objects = [group(), workload("Deployment", "1", replicas=3), job("1", "5m")]
    assert ask(objects).stdout == ask(objects).stdout


def test_a_machine_takes_its_time_to_boot() -> None:
    _, answer = found([group(), pod("web-0", "1")], "--boot-time=4m", "--for=10m")
    runs = next(step for step in answer["steps"] if step["text"].startswith("runs on"))
    assert 240 <= runs["at"] <= 245


def test_what_keeps_a_node_is_an_event() -> None:
    budget = {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "web", "namespace": "shop"},
        "spec": {"maxUnavailable": 0, "selector": {"matchLabels": {"app": "web"}}},
    }
    _, answer = found([group(), workload("Deployment", "500m", replicas=1), budget], "--for=30m")
    blocked = [text for text in texts(answer, "group") if text.startswith("event ScaleDownBlocked")]
    assert len(blocked) == 1
    assert "the disruption budget shop/web allows no disruption (shop/web-" in blocked[0]


@pytest.mark.parametrize(
    ("provisioner", "reasons"),
    [
        pytest.param("ebs.csi.aws.com", [], id="network"),
        pytest.param("rancher.io/local-path", ["local_storage"], id="of one node"),
    ],
)
def test_only_volumes_of_one_node_keep_it(provisioner: str, reasons: list[str]) -> None:
    kind = {"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": "fast"}}
    storage = {**kind, "provisioner": provisioner, "volumeBindingMode": "WaitForFirstConsumer"}
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}, "storageClassName": "fast"}
    claims = [{"metadata": {"name": "data"}, "spec": spec}]
    stateful = workload("StatefulSet", "500m", replicas=2, volumeClaimTemplates=claims)
    code, answer = found([group(), storage, stateful, job("1500m", "5m")], "--for=40m")
    assert code == 0
    assert [
        reason for reason in ("local_storage",) if any(reason in each["stays"] for each in answer["nodes"])
    ] == reasons


def test_objects_of_an_export_that_follow_from_others_are_left_out() -> None:
    deployment = workload("Deployment", "1", replicas=1)
    deployment["metadata"] |= {"uid": "1", "resourceVersion": "7", "managedFields": []}
    owner = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "uid": "1", "controller": True}
    replica_set = workload("ReplicaSet", "1", name="web-1")
    replica_set["metadata"]["ownerReferences"] = [owner]
    owned = pod("web-1-x", "1")
    owned["metadata"]["ownerReferences"] = [{**owner, "kind": "ReplicaSet", "name": "web-1"}]
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "workers-1"}}
    node["metadata"] = {"name": "workers-1", "labels": {"autoscaling.ocf.dev/node-group": "default.workers"}}
    service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web"}}
    scaler = {"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": {"name": "web"}}
    done = ask([group(), deployment, replica_set, owned, node, service, scaler], "--for=5m", "--output=json")
    assert done.stderr.splitlines() == [
        "left out: objects that their controllers create: 1 Pod, 1 ReplicaSet",
        "left out: objects of node groups, which start empty: 1 Node",
        "left out: objects of kinds that have no part in it: 1 Service",
        "left out: objects of autoscalers: replicas stay as written: 1 HorizontalPodAutoscaler",
        "types.json: no price of free in fra: what such nodes cost is unknown",
    ]
    assert (done.exit_code, len(json.loads(done.stdout)["pods"])) == (0, 1)


SECOND: Final = "Pod web-0: metadata.name: objects.json:21 has the same object: rename or remove one of them"


async def export() -> list[dict[str, Any]]:
    """Return the objects of a cluster that has run for a while, as `kubectl get` shows them."""
    clock = LoopClock()
    cluster = EmbeddedCluster(now=clock.now, namespaces=["shop"])
    here = workload("Deployment", "1", replicas=2)
    here["metadata"]["namespace"] = "default"
    for manifest in (here, workload("StatefulSet", "1", name="db", replicas=1), workload("DaemonSet", "100m", "agent")):
        await cluster.create(manifest, field_manager="kubectl")
    async with cluster.controllers(ControllerSettings(nodes=1)).running():
        await asyncio.sleep(60)
    kinds = [
        *(("v1", kind) for kind in ("Namespace", "ServiceAccount", "ConfigMap", "Node", "Pod", "Service")),
        *(("apps/v1", kind) for kind in ("Deployment", "ReplicaSet", "StatefulSet", "DaemonSet", "ControllerRevision")),
        ("events.k8s.io/v1", "Event"),
        ("scheduling.k8s.io/v1", "PriorityClass"),
    ]
    return [each for kind in kinds for each in (await cluster.list(*kind)).items]


def test_an_export_of_a_cluster_can_be_tried() -> None:
    objects = run_in_virtual_time(export())
    assert {"default", "kube-system", "shop"} <= {
        each["metadata"].get("namespace") or each["metadata"]["name"] for each in objects
    }
    code, answer = found([group(), *objects], "--for=2m")
    assert code == 0
    running = [each["name"].rpartition("-")[0].partition("-")[0] for each in answer["pods"]]
    assert sorted(running) == ["default/web", "default/web", "shop/agent", "shop/db"]


ORPHAN: Final = pod("web-0", "1")
ORPHAN["metadata"]["ownerReferences"] = [
    {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "1", "controller": True}
]


@pytest.mark.parametrize(
    ("objects", "options", "problem"),
    [
        pytest.param([pod("web-0", "1")], [], "objects.json: must contain an object of kind NodeGroup", id="no group"),
        pytest.param(
            [group(maxNode=3)],
            [],
            'spec.maxNode: unknown field, did you mean "maxNodes"?',
            id="unknown field of a group",
        ),
        pytest.param([group(minNodes=-1)], [], "NodeGroup workers: spec.minNodes: ", id="invalid field of a group"),
        pytest.param(
            [group(), pod("web-0", "1x")],
            [],
            "Pod web-0: spec.containers[0].resources.requests.cpu: '1x' is not a quantity",
            id="quantity of a pod",
        ),
        pytest.param(
            [group(), workload("Deployment", "1x")],
            [],
            "Deployment web: spec.template.spec.containers[0].resources.requests.cpu: '1x' is not a quantity",
            id="quantity of a template",
        ),
        pytest.param(
            [group(), workload("Deployment", "1", replica=3)],
            [],
            "objects.json:55: Deployment web: spec.replica: field not declared",
            id="unknown field",
        ),
        pytest.param(
            [group(), pod("web-0", "1", containers=[{"name": "app", "image": "a", "ports": [{"name": "http"}]}])],
            [],
            "Pod web-0: spec.containers[0].ports[0].containerPort: ",
            id="missing field",
        ),
        pytest.param([group(), pod("web-0", "1"), pod("web-0", "2")], [], SECOND, id="an object twice"),
        pytest.param(
            [group(), {**group(), "kind": "NodeGroups"}],
            [],
            "kind: unknown kind 'NodeGroups' of autoscaling.ocf.dev/v1alpha1, did you mean \"NodeGroup\"?",
            id="misspelt kind of ours",
        ),
        pytest.param(
            [group(), {**group(), "kind": "Machine"}],
            [],
            "kind: must be one of HorizontalAutoscaler, NodeGroup, VPSieNode, got 'Machine'",
            id="unknown kind of ours",
        ),
        pytest.param(
            [group(), {**workload("Deployment", "1"), "kind": "Deploymnet"}],
            [],
            "Deploymnet web: kind: unknown kind 'Deploymnet' of apps/v1, did you mean \"Deployment\"?",
            id="misspelt built-in kind",
        ),
        pytest.param(
            [group(), {**workload("Deployment", "1"), "apiVersion": "apps/v1beta1"}],
            [],
            "Deployment web: apiVersion: must be apps/v1, got 'apps/v1beta1'",
            id="former version",
        ),
        pytest.param(
            [group(), annotated_job({"ocf.dev/finish-afer": "5m"})],
            [],
            'metadata.annotations.ocf.dev/finish-afer: unknown annotation, did you mean "ocf.dev/finish-after"?',
            id="misspelt annotation",
        ),
        pytest.param(
            [group(), annotated_job({"ocf.dev/finish-after": "soon"})],
            [],
            "ocf.dev/finish-after: must be a duration like 1m30s, got 'soon'",
            id="annotation with an invalid duration",
        ),
        pytest.param(
            [group(), annotated_job({"ocf.dev/exit-code": "x"})],
            [],
            "ocf.dev/exit-code: must be a number in quotes, such as '1', got 'x'",
            id="annotation with an invalid number",
        ),
        pytest.param(
            [group(), {**job("1", "5m"), "metadata": {"name": "a", "annotations": {"ocf.dev/finish-after": "5m"}}}],
            [],
            "ocf.dev/finish-after: is for pods: write it into spec.template.metadata.annotations",
            id="annotation of a Job in place of its pods",
        ),
        pytest.param(
            [group(), pod("web-0", "1", priorityClassName="system-node-critcal")],
            [],
            'is not in the files, did you mean "system-node-critical"?',
            id="misspelt priority class",
        ),
        pytest.param(
            [group(offeringIDs=["smal"])],
            [],
            "objects.json:16: NodeGroup workers: spec.offeringIDs[0]: instance type 'smal' is not in the file of",
            id="misspelt instance type",
        ),
        pytest.param(
            [group(offeringIDs=["small", "huge"])],
            [],
            "spec.offeringIDs[1]: instance type 'huge' is not in the file of --types; known are ",
            id="unknown instance type",
        ),
        pytest.param(
            [group(datacenterID="fran")],
            [],
            "objects.json:14: NodeGroup workers: spec.datacenterID: datacenter 'fran' is not in the file of --types",
            id="misspelt datacenter",
        ),
        pytest.param(
            [group(datacenterID="ams", offeringIDs=["small", "large"])],
            [],
            "spec.offeringIDs: none of the types is offered in datacenter ams; the datacenters of each are ",
            id="types of another datacenter",
        ),
        pytest.param(
            [group(instanceSelection="Cheapest", offeringIDs=["small", "free"])],
            [],
            "spec.instanceSelection: Cheapest needs prices: add the price of free in fra to the file of --types",
            id="the cheapest of types without a price",
        ),
        pytest.param(
            [group(), ORPHAN],
            [],
            "Pod web-0: metadata.ownerReferences: its controller, ReplicaSet web, is not in the files",
            id="a pod without its controller",
        ),
        pytest.param(
            [group(), {"apiVersion": "v1", "kind": "Pod", "metadata": {}}], [], "metadata.name: must be a", id="no name"
        ),
        pytest.param([group()], ["--for=soon"], "--for must be a duration like 1m30s, not 'soon'", id="no duration"),
        pytest.param([group()], ["--for=0s"], "--for must be more than 0s, got '0s'", id="no time"),
        pytest.param([group()], ["--boot-time=x"], "--boot-time must be a duration", id="no boot time"),
        pytest.param([group()], ["--types="], "--types must name a file", id="no types"),
        pytest.param([group()], ["--types=gone"], "--types: gone cannot be read", id="no file of types"),
    ],
)
def test_what_is_wrong_is_named_with_its_place(objects: list[dict[str, Any]], options: list[str], problem: str) -> None:
    done = ask(objects, *options)
    assert done.exit_code == 2
    assert problem in " ".join(done.stderr.split())
    assert done.stdout == ""


def test_all_files_that_cannot_be_read_are_named_with_one_line_each() -> None:
    Path("a.yaml").write_text("kind: Pod\n---\na: [\n", encoding="utf-8")
    Path("b.yaml").write_text("a:\n - b\n c: 3\n", encoding="utf-8")
    done = CliRunner().invoke(app, ["nodegroups", "try", "a.yaml", "b.yaml", "--types=types.json"])
    assert done.exit_code == 2
    assert done.stderr.splitlines() == [
        "error: a.yaml:4: did not find expected node content",
        "error: b.yaml:3: did not find expected '-' indicator",
    ]


@pytest.mark.parametrize("namespace", ["default", "kube-system", "shop"])
def test_objects_may_be_in_any_namespace(namespace: str) -> None:
    """An export has the namespaces, and a cluster that starts has some of them."""
    exported = {"name": namespace, "labels": {"team": "a"}, "uid": "1", "resourceVersion": "7"}
    there = {"apiVersion": "v1", "kind": "Namespace", "metadata": exported, "spec": {"finalizers": ["kubernetes"]}}
    bare = {**pod("web-0", "1"), "metadata": {"name": "a", "namespace": namespace}}
    code, answer = found([group(), bare, there], "--for=2m")
    assert (code, [each["name"] for each in answer["pods"]]) == (0, [f"{namespace}/a"])


def test_pods_have_the_priority_of_their_class() -> None:
    low = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "low"}, "value": -1000}
    _, answer = found([group(), pod("web-0", "1", priorityClassName="low"), low], "--for=1m")
    assert answer["pods"][0]["text"] == "has no place: no node is added for a priority below -10, and it has -1000"


def test_files_are_needed() -> None:
    done = CliRunner().invoke(app, ["nodegroups", "try", "--types=types.json"])
    assert (done.exit_code, "try needs files with a NodeGroup" in done.stderr) == (2, True)
