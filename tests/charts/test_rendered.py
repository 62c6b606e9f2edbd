"""The chart with several values: its rights are those of the code, and its commands are those that the code prints."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any, Final

import pytest
from click.testing import CliRunner

from ocf.cli.app import app
from ocf.cli.nodegroups.providers import ProviderChoice, ProviderName
from ocf.controllers.hpa import NAME as HPA
from ocf.controllers.hpa import TARGETS, Mode
from ocf.controllers.hpa import cluster_role as hpa_rules
from ocf.controllers.hpa.manifests import ScalableResource
from ocf.controllers.nodegroup.manifests import NAME as NODE_GROUPS
from ocf.controllers.nodegroup.manifests import cluster_role as node_group_rules
from ocf.objects import Manifest
from ocf.objects.documents import load_documents
from ocf.runtime.rbac import PolicyRule
from ocf_server import EmbeddedCluster
from tests.charts.support import CHART, ROOT, VALUES, Chart, container, find, granted
from tests.primitives.third_party_definitions import third_party_definitions

ROLLOUTS: Final = ScalableResource.parse("rollouts.argoproj.io")
TYPES: Final = [{"name": "small", "allocatable": {"cpu": "2"}, "offerings": [{"zone": "fra", "price": 0.02}]}]
VPSIE: Final = {"cluster": "b2f0", "datacenters": ["fra", "ams"]}
CLUSTER_API: Final = {"machineNamespace": "machines"}


def printed(command: str, *arguments: str) -> list[Manifest]:
    done = CliRunner().invoke(app, [command, "manifests", *arguments])
    assert done.exit_code == 0, done.output
    return list(load_documents(done.stdout))


def words(manifests: list[Manifest], name: str) -> list[str]:
    found = container(manifests, name)
    return [*found["command"], *found.get("args", [])]


def nodegroups(provider: str, **values: Any) -> dict[str, Any]:
    return {"nodegroupsController": {"enabled": True, "provider": provider, **values}}


@pytest.mark.parametrize("values", VALUES, ids=lambda path: path.stem)
async def test_helm_finds_nothing_wrong(chart: Chart, values: Path) -> None:
    assert "0 chart(s) failed" in await chart.succeeds("lint", "--strict", str(CHART), f"--values={values}")


def commands(page: str) -> list[str]:
    """Return the arguments of the commands of a page that install the chart."""
    text = (ROOT / page).read_text(encoding="utf-8").replace("\\\n", " ")
    return re.findall(r"^helm upgrade --install (.*)$", text, re.MULTILINE)


@pytest.mark.parametrize(
    "page",
    ["docs/autoscaling/hpa-controller.md", "docs/nodes/nodegroup-controller.md", "charts/ocf-controllers/README.md"],
)
async def test_the_commands_of_a_page_have_values_of_the_chart(chart: Chart, page: str) -> None:
    found = commands(page)
    assert found != []
    for command in found:
        rendered = await chart.succeeds("template", *shlex.split(command.replace("charts/ocf-controllers", str(CHART))))
        assert "image: registry.example.com/ocf:" in rendered.replace('"', "")


@pytest.mark.parametrize("mode", Mode)
@pytest.mark.parametrize("elected", [pytest.param(True, id="lease"), pytest.param(False, id="no lease")])
@pytest.mark.parametrize("sharding", [pytest.param(True, id="sharded"), pytest.param(False, id="one leader")])
async def test_the_hpa_controller_has_exactly_the_rights_that_its_mode_needs(
    chart: Chart, mode: Mode, *, elected: bool, sharding: bool
) -> None:
    values = {"mode": str(mode), "leaderElection": elected, "sharding": sharding}
    rendered = await chart.render({"hpaController": values})

    assert granted(rendered, HPA) == hpa_rules(mode, lease_namespace="ops" if elected else "", sharding=sharding)


@pytest.mark.parametrize("mode", [Mode.OWN_KIND, Mode.DRY_RUN])
async def test_its_role_names_the_resources_that_it_may_scale(chart: Chart, mode: Mode) -> None:
    values = {"mode": str(mode), "leaderElection": False, "scales": ["statefulsets.apps", "rollouts.argoproj.io"]}
    stateful_sets = next(each for each in TARGETS if each.resource == "statefulsets")

    rendered = await chart.render({"hpaController": values})

    assert granted(rendered, HPA) == hpa_rules(mode, targets=[stateful_sets, ROLLOUTS])


@pytest.mark.parametrize("dry_run", [pytest.param(False, id="writes"), pytest.param(True, id="dry run")])
@pytest.mark.parametrize(
    ("values", "choice"),
    [
        pytest.param({"provider": "kwok", "kwok": {"types": TYPES}}, ProviderChoice(types="t"), id="kwok"),
        pytest.param(
            {"provider": "cluster-api", "clusterApi": CLUSTER_API},
            ProviderChoice(name=ProviderName.CLUSTER_API, namespace="machines"),
            id="cluster-api",
        ),
        pytest.param(
            {"provider": "cluster-api", "clusterApi": {"machineNamespace": "ops"}},
            ProviderChoice(name=ProviderName.CLUSTER_API, namespace="ops"),
            id="cluster-api in the namespace of the release",
        ),
        pytest.param(
            {"provider": "cluster-api", "clusterApi": {"managementKubeconfigSecret": "management"}},
            None,
            id="cluster-api in another cluster",
        ),
        pytest.param({"provider": "vpsie", "vpsie": VPSIE}, None, id="vpsie"),
    ],
)
async def test_the_node_group_controller_has_exactly_the_rights_that_its_provider_needs(
    chart: Chart, values: dict[str, Any], choice: ProviderChoice | None, dry_run: bool
) -> None:
    rendered = await chart.render({"nodegroupsController": {"enabled": True, "dryRun": dry_run, **values}})

    rules: frozenset[PolicyRule] = frozenset() if choice is None else choice.rules(dry_run=dry_run)
    assert granted(rendered, NODE_GROUPS) == node_group_rules(dry_run=dry_run, lease_namespace="ops") | rules
    names = [(each["kind"], each["metadata"].get("namespace"), each["metadata"]["name"]) for each in rendered]
    assert len(names) == len(set(names))


@pytest.mark.parametrize(
    ("values", "flags"),
    [
        pytest.param({}, [], id="defaults"),
        pytest.param(
            {
                "mode": "replace",
                "takeOver": True,
                "takeOverDelay": "1m",
                "syncPeriod": "5s",
                "downscaleStabilization": "1m",
                "tolerance": 0.25,
                "cpuInitializationPeriod": "2m",
                "initialReadinessDelay": "10s",
                "concurrentSyncs": 9,
                "sharding": True,
                "requestTimeout": "20s",
                "kubernetesVersion": "1.34",
                "featureGates": {"HPAScaleToZero": True, "PodLevelResources": False},
                "leaderElection": False,
            },
            [
                *("--mode=replace", "--take-over", "--take-over-delay=1m", "--sync-period=5s"),
                *("--downscale-stabilization=1m", "--tolerance=0.25", "--cpu-initialization-period=2m"),
                *(
                    "--initial-readiness-delay=10s",
                    "--concurrent-syncs=9",
                    "--sharding",
                    "--request-timeout=20s",
                    "--kubernetes-version=1.34",
                ),
                *("--feature-gates=HPAScaleToZero=true", "--feature-gates=PodLevelResources=false"),
                "--no-leader-elect",
            ],
            id="each option",
        ),
    ],
)
async def test_values_of_the_hpa_controller_have_the_effect_of_its_options(
    chart: Chart, values: dict[str, Any], flags: list[str]
) -> None:
    rendered = await chart.render({"hpaController": values})

    found = container(rendered, HPA)
    assert found["args"][0] == "run"
    given = [each for each in found["args"][1:] if each != "--output=json"]
    wanted = printed("hpa-controller", *flags)
    assert found["command"] == container(wanted, HPA)["command"]
    assert words(printed("hpa-controller", *given), HPA) == words(wanted, HPA)
    deployment, other = (find(each, "Deployment", HPA)["spec"] for each in (rendered, wanted))
    assert deployment["replicas"] == other["replicas"]
    assert deployment["strategy"] == other.get("strategy", {"type": "RollingUpdate"})


@pytest.mark.parametrize(
    ("values", "flags"),
    [
        pytest.param(nodegroups("kwok", kwok={"types": TYPES}), [], id="kwok"),
        pytest.param(
            nodegroups("cluster-api", clusterApi={**CLUSTER_API, "machineSelector": "a=b"}, dryRun=True),
            ["--provider=cluster-api", "--machine-namespace=machines", "--machine-selector=a=b", "--dry-run"],
            id="cluster-api, dry run",
        ),
        pytest.param(
            nodegroups(
                "vpsie", vpsie={**VPSIE, "url": "https://api.example.com"}, leaderElection=False, priorityCutoff=-1000
            ),
            [
                "--priority-cutoff=-1000",
                *("--provider=vpsie", "--vpsie-cluster=b2f0", "--datacenter=fra", "--datacenter=ams"),
                *("--vpsie-url=https://api.example.com", "--no-leader-elect"),
            ],
            id="vpsie, no leader election",
        ),
    ],
)
async def test_values_of_the_node_group_controller_have_the_effect_of_its_options(
    chart: Chart, values: dict[str, Any], flags: list[str]
) -> None:
    rendered = await chart.render(values)

    wanted = printed("nodegroups", "--namespace=ops", *flags)
    assert words(rendered, NODE_GROUPS)[:3] == ["ocf", "nodegroups", "run"]
    # Without these options, `ocf nodegroups manifests` writes no argument.
    left_out = {each for each in ("--provider=kwok", "--priority-cutoff=-10") if each not in words(wanted, NODE_GROUPS)}
    assert {*words(rendered, NODE_GROUPS)} - left_out == {*words(wanted, NODE_GROUPS)}
    pod, other = (find(each, "Deployment", NODE_GROUPS)["spec"]["template"]["spec"] for each in (rendered, wanted))
    mounted = [_mounted(each) for each in (pod, other)]
    assert mounted[0] == mounted[1]


def _mounted(pod: Manifest) -> dict[str, Any]:
    """Return what is mounted, by path."""
    volumes = {each["name"]: {key: each[key] for key in each if key != "name"} for each in pod.get("volumes", [])}
    return {each["mountPath"]: volumes[each["name"]] for each in pod["containers"][0].get("volumeMounts", [])}


async def test_the_kubeconfig_of_a_management_cluster_is_mounted_where_the_command_reads_it(chart: Chart) -> None:
    rendered = await chart.render(nodegroups("cluster-api", clusterApi={"managementKubeconfigSecret": "management"}))

    pod = find(rendered, "Deployment", NODE_GROUPS)["spec"]["template"]["spec"]
    (folder,) = _mounted(pod)
    assert _mounted(pod) == {folder: {"secret": {"secretName": "management"}}}
    assert f"--management-kubeconfig={folder}/kubeconfig" in words(rendered, NODE_GROUPS)


@pytest.mark.parametrize("values", VALUES, ids=lambda path: path.stem)
async def test_pods_comply_with_the_standard_restricted_and_have_probes(chart: Chart, values: Path) -> None:
    rendered = await chart.render({}, f"--values={values}")

    for deployment in [each for each in rendered if each["kind"] == "Deployment"]:
        pod = deployment["spec"]["template"]["spec"]
        (only,) = pod["containers"]
        assert pod["securityContext"]["runAsNonRoot"]
        assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        assert only["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }
        ports = {port["name"] for port in only["ports"]}
        probes = {probe: only[probe]["httpGet"] for probe in ("livenessProbe", "readinessProbe")}
        assert {probe["port"] for probe in probes.values()} == ports
        assert [probe["path"] for probe in probes.values()] == ["/healthz", "/readyz"]
        labels = deployment["spec"]["template"]["metadata"]["labels"]
        service = find(rendered, "Service", deployment["metadata"]["name"])["spec"]
        assert service["selector"].items() <= labels.items()
        assert {port["targetPort"] for port in service["ports"]} == ports


async def test_what_is_around_the_pods_is_optional(chart: Chart) -> None:
    optional = {"PodDisruptionBudget", "NetworkPolicy", "ServiceMonitor", "PrometheusRule", "CustomResourceDefinition"}

    def kinds(manifests: list[Manifest]) -> set[str]:
        return {each["kind"] for each in manifests} & optional

    switches = {"podDisruptionBudget": False, "networkPolicy": False, "serviceMonitor": True, "alerts": True}
    changed: dict[str, Any] = {name: {"enabled": on} for name, on in switches.items()}
    rendered = await chart.render({**changed, "crds": {"install": False}})

    assert kinds(await chart.render()) == {"PodDisruptionBudget", "NetworkPolicy", "CustomResourceDefinition"}
    assert kinds(rendered) == {"ServiceMonitor", "PrometheusRule"}
    (endpoint,) = find(rendered, "ServiceMonitor", HPA)["spec"]["endpoints"]
    assert endpoint["port"] in {port["name"] for port in find(rendered, "Service", HPA)["spec"]["ports"]}
    assert endpoint["honorLabels"]
    one = await chart.render({"hpaController": {"replicas": 1}})
    assert "PodDisruptionBudget" not in kinds(one)
    assert await chart.render({"hpaController": {"enabled": False}}) == []


async def test_the_objects_of_the_prometheus_operator_are_valid(chart: Chart) -> None:
    """An unknown field would be dropped from what is stored."""
    cluster = EmbeddedCluster(namespaces=["ops"])
    for definition in third_party_definitions():
        await cluster.create(definition, field_manager="admin")
    labelled = {"enabled": True, "labels": {"release": "prometheus"}}
    rendered = await chart.render({"serviceMonitor": labelled, "alerts": labelled, **nodegroups("cluster-api")})

    found = [each for each in rendered if each["kind"] in ("ServiceMonitor", "PrometheusRule")]

    assert len(found) == 4
    for each in found:
        stored = await cluster.create(each, field_manager="helm")
        assert stored["spec"] == each["spec"]
        assert stored["metadata"]["labels"]["release"] == "prometheus"


async def test_values_change_the_pods(chart: Chart) -> None:
    digest = f"sha256:{'0' * 64}"
    placed = {"nodeSelector": {"os": "linux"}, "tolerations": [{"key": "infra"}], "priorityClassName": "high"}
    controller = {
        **placed,
        "replicas": 3,
        "podLabels": {"team": "platform"},
        "podAnnotations": {"note": "x"},
        "env": [{"name": "TZ", "value": "UTC"}],
        "resources": {"limits": {"memory": "1Gi"}},
        "serviceAccount": {"name": "scaler", "annotations": {"role": "r"}},
    }
    image = {"repository": "registry.example.com/ocf", "tag": "2", "pullSecrets": [{"name": "pull"}]}

    rendered = await chart.render({"image": image, "hpaController": controller})
    pinned = await chart.render({"image": {**image, "digest": digest}})

    spec = find(rendered, "Deployment", HPA)["spec"]
    pod, only = spec["template"]["spec"], container(rendered, HPA)
    assert spec["replicas"] == 3
    assert placed.items() <= pod.items()
    assert pod["imagePullSecrets"] == [{"name": "pull"}]
    assert spec["template"]["metadata"]["labels"]["team"] == "platform"
    assert spec["template"]["metadata"]["annotations"] == {"note": "x"}
    assert only["env"] == controller["env"]
    assert only["resources"] == {"limits": {"memory": "1Gi"}, "requests": {"cpu": "100m", "memory": "256Mi"}}
    assert only["image"] == "registry.example.com/ocf:2"
    assert container(pinned, HPA)["image"] == f"registry.example.com/ocf@{digest}"
    assert pod["serviceAccountName"] == "scaler"
    assert find(rendered, "ServiceAccount", "scaler")["metadata"]["annotations"] == {"role": "r"}
    assert granted(rendered, "scaler") == hpa_rules(Mode.OWN_KIND, lease_namespace="ops")


async def test_pods_are_replaced_when_the_instance_types_change(chart: Chart) -> None:
    rendered = [
        await chart.render(nodegroups("kwok", kwok={"types": types}, podAnnotations={"note": "x"}))
        for types in (TYPES, [{**TYPES[0], "name": "large"}])
    ]

    annotations = [
        find(each, "Deployment", NODE_GROUPS)["spec"]["template"]["metadata"]["annotations"] for each in rendered
    ]
    assert annotations[0] != annotations[1]
    assert {each["note"] for each in annotations} == {"x"}


@pytest.mark.parametrize(
    ("values", "problem"),
    [
        pytest.param({"hpaControler": {}}, "additional properties 'hpaControler' not allowed", id="unknown section"),
        pytest.param({"image": {"name": "x"}}, "additional properties 'name' not allowed", id="unknown value"),
        pytest.param({"hpaController": {"mode": "other"}}, "must be one of", id="unknown mode"),
        pytest.param({"hpaController": {"syncPeriod": "5"}}, "does not match pattern", id="no duration"),
        pytest.param({"hpaController": {"tolerance": -1}}, "minimum: got -1, want 0", id="negative tolerance"),
        pytest.param({"hpaController": {"scales": ["deployments"]}}, "does not match pattern", id="no group"),
        pytest.param({"hpaController": {"featureGates": {"X": True}}}, "'X' not allowed", id="unknown gate"),
        pytest.param({"hpaController": {"replicas": 0}}, "minimum: got 0, want 1", id="no process"),
        pytest.param({"image": {"digest": "latest"}}, "does not match pattern", id="no digest"),
        pytest.param(nodegroups("kwok"), "kwok.types must list instance types", id="kwok without types"),
        pytest.param(nodegroups("vpsie"), "vpsie.datacenters must be set", id="vpsie without its cluster"),
    ],
)
async def test_invalid_values_are_rejected(chart: Chart, values: dict[str, Any], problem: str) -> None:
    assert problem in await chart.refuses(values)
