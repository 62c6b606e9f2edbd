"""`ocf nodegroups`: plans from files, their reasons, and the installation."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

import pytest
from click.testing import CliRunner

from ocf.cli.app import app
from ocf.cli.nodegroups.providers import ProviderChoice, ProviderName, read_credentials
from ocf.controllers.nodegroup.providers.cluster_api import ClusterAPIProvider
from ocf.nodegroups.packing import PRIORITY_CUTOFF
from ocf.objects.documents import load_documents
from ocf_server import EmbeddedCluster
from tests.browser import DARK, LIGHT, SUFFICIENT_CONTRAST, contrast, measured

TYPES = [{"name": "small", "allocatable": {"cpu": "2", "memory": "8Gi"}, "offerings": [{"zone": "fra", "price": 0.02}]}]


def ask(*arguments: str, fails: bool = False) -> str:
    done = CliRunner().invoke(app, ["nodegroups", *arguments])
    assert done.exit_code == (2 if fails else 0), done.output
    return done.output


def pod(name: str, cpu: str) -> dict[str, Any]:
    container = {"name": "app", "image": "app:1", "resources": {"requests": {"cpu": cpu}}}
    metadata = {"name": name, "namespace": "shop"}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": [container]}}


@pytest.fixture
def types(tmp_path: Path) -> str:
    path = tmp_path / "types.json"
    path.write_text(json.dumps(TYPES))
    return f"--types={path}"


@pytest.fixture
def cluster(tmp_path: Path) -> str:
    group = {
        "apiVersion": "autoscaling.ocf.dev/v1alpha1",
        "kind": "NodeGroup",
        "metadata": {"name": "workers", "namespace": "default"},
        "spec": {"minNodes": 0, "maxNodes": 5, "datacenterID": "fra", "offeringIDs": ["small"]},
    }
    invalid = {**group, "metadata": {"name": "invalid", "namespace": "default"}, "spec": {"minNodes": 1}}
    full = pod("full", "1")
    full["spec"]["nodeName"] = "other"
    node = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": "other"},
        "status": {"allocatable": {"cpu": "1", "memory": "1Gi", "pods": "9"}},
    }
    items = [group, invalid, node, full, pod("web", "1"), pod("huge", "64")]
    path = tmp_path / "cluster.json"
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    return str(path)


def test_a_plan_names_what_each_group_does(types: str, cluster: str) -> None:
    found = ask("plan", cluster, types)
    assert "default/workers: 0 nodes, 0 ready, 1 desired: add 1 small" in found
    assert "default/invalid: left alone: spec.maxNodes: required value" in found
    assert "pod shop/web:" not in found


def test_an_explanation_names_each_pod_and_each_node(types: str, cluster: str) -> None:
    found = ask("explain", cluster, types)
    assert "pod shop/web: goes to default/workers-new-" in found
    assert "pod shop/huge: never fits: Insufficient cpu on small" in found


def test_an_explanation_is_available_as_a_page(types: str, cluster: str, tmp_path: Path) -> None:
    ask("explain", cluster, types, f"--picture={tmp_path / 'plan.html'}")
    page = (tmp_path / "plan.html").read_text(encoding="utf-8")
    assert "<p>pod shop/huge: never fits: Insufficient cpu on small</p>" in page
    assert "default/workers: 0 nodes, 0 ready, 1 desired: add 1 small" in page
    assert '<h3>other</h3><svg class="bar"' in page
    assert 'aria-label="100 % cpu"' in page
    assert "<p>ignored: no_group: it belongs to no group</p>" in page
    assert "<script" not in page


@pytest.mark.parametrize("scheme", [LIGHT, DARK], ids=["light", "dark"])
def test_the_page_can_be_read_on_a_telephone(
    types: str, cluster: str, tmp_path: Path, chromium: str, scheme: str
) -> None:
    ask("explain", cluster, types, f"--picture={tmp_path / 'plan.html'}")
    page = (tmp_path / "plan.html").read_text(encoding="utf-8")
    found = measured(chromium, tmp_path, page, 390, scheme)
    assert (found["scrolled"], found["outside"]) == (found["width"], [])
    assert [each for each in found["texts"] if contrast(each["colour"], found["paper"]) < SUFFICIENT_CONTRAST] == []


@pytest.mark.parametrize(
    ("action", "picture", "problem"),
    [
        ("plan", "plan.html", "--picture is for explain, not for plan"),
        ("explain", "plan.png", "--picture must end in .html, got 'plan.png'"),
        ("explain", "gone/plan.html", "--picture: the folder gone does not exist"),
    ],
)
def test_a_page_that_cannot_be_written_is_an_error(
    types: str, cluster: str, action: str, picture: str, problem: str
) -> None:
    assert problem in ask(action, cluster, types, f"--picture={picture}", fails=True)


def test_a_plan_is_available_as_json(types: str, cluster: str) -> None:
    found = json.loads(ask("plan", cluster, types, "--output=json"))
    (group,) = found["groups"]
    assert (group["decision"], group["add"]) == ("scale_up", [{"instanceType": "small", "zone": "fra"}])
    assert [each["name"] for each in found["leftAlone"]] == ["default/invalid"]
    assert found["unplaced"] == [{"pods": ["shop/huge"], "reason": "Insufficient cpu on small", "never": True}]


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        pytest.param([], "must be a list of instance types, at least one", id="empty"),
        pytest.param([{"allocatable": {}}], "[0].name: required value", id="no name"),
        pytest.param([*TYPES, *TYPES], "must be unique", id="twice"),
        pytest.param([{"name": "a", "allocatable": {"cpu": "two"}}], "[0].allocatable.cpu", id="quantity"),
        pytest.param(
            [{"name": "a", "offerings": [{"zone": "a", "price": -1}]}],
            "[0].offerings[0].price: must be a number",
            id="price",
        ),
        pytest.param([*TYPES, 3, None], "[1]: must be a map, not 3; [2]: must be a map, not None", id="no maps"),
        pytest.param(
            [{**TYPES[0], "offering": []}], '[0].offering: unknown field, did you mean "offerings"?', id="unknown field"
        ),
        pytest.param(
            [{**TYPES[0], "offerings": [{"zone": "a", "prize": 1}]}],
            '[0].offerings[0].prize: unknown field, did you mean "price"?',
            id="unknown field of an offering",
        ),
        pytest.param([{"name": "a"}], "[0].allocatable.cpu: required value", id="no size"),
        pytest.param(
            [{"name": "a", "allocatable": {"cpu": "-2", "memory": 0}}],
            "[0].allocatable.cpu: must not be negative, got -2; [0].allocatable.memory: must be more than 0",
            id="no room",
        ),
    ],
)
def test_wrong_instance_types_are_named(tmp_path: Path, cluster: str, content: Any, problem: str) -> None:
    path = tmp_path / "wrong.json"
    path.write_text(json.dumps(content))
    assert problem in ask("plan", cluster, f"--types={path}", fails=True).replace("\n", " ")


def test_a_file_of_instance_types_has_one_document(tmp_path: Path, cluster: str) -> None:
    path = tmp_path / "types.yaml"
    path.write_text("\n---\n".join([json.dumps(TYPES)] * 2))
    assert "must have one document, not 2" in ask("plan", cluster, f"--types={path}", fails=True).replace("\n", " ")


@pytest.mark.parametrize("metadata", [3, {"labels": {}}, {"name": 3}, None])
def test_an_object_without_a_name_is_an_error(tmp_path: Path, types: str, metadata: Any) -> None:
    path = tmp_path / "objects.json"
    path.write_text(json.dumps({"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": metadata}))
    found = ask("plan", str(path), types, fails=True)
    assert "objects.json:1: PodDisruptionBudget: metadata.name: must be a string, got" in found.replace("\n", " ")


VPSIE: Final = ("--provider=vpsie", "--vpsie-cluster=b2f0", "--datacenter=fra")


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        pytest.param(["plan"], "--types must name a file with the instance types", id="plan without types"),
        pytest.param(["run"], "--types must name a file with the instance types", id="run without types"),
        pytest.param(["plan", "--types=gone.yaml"], "--types: gone.yaml cannot be read", id="no file with types"),
        pytest.param(["explain", "gone.yaml", "--types={types}"], "gone.yaml", id="no file with objects"),
        pytest.param(["run", "pods.yaml"], "run takes no files, got pods.yaml", id="run with files"),
        pytest.param(["manifests", "pods.yaml"], "manifests takes no files", id="manifests with files"),
        pytest.param(["run", "--provider=vpsie"], "needs --vpsie-cluster", id="no cluster at VPSie"),
        pytest.param(["run", *VPSIE[:2]], "needs --datacenter", id="no datacenter"),
        pytest.param(["run", *VPSIE], "the environment must have VPSIE_TOKEN, or VPSIE_CLIENT_ID", id="no credentials"),
        pytest.param(
            ["run", *VPSIE, "--credentials={folder}"], "must have token, or client-id", id="no files of credentials"
        ),
        pytest.param(["run", *VPSIE, "--vpsie-url=http://api.example.com"], "must start with https://", id="no TLS"),
        pytest.param(
            ["manifests", "--provider=cluster-api", "--management-kubeconfig=k"], "mount the file", id="kubeconfig"
        ),
    ],
)
def test_what_is_missing_or_wrong_is_named_with_its_option(
    arguments: list[str], problem: str, types: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("VPSIE_TOKEN", raising=False)
    (tmp_path / "empty").mkdir()
    path = types.removeprefix("--types=")
    found = ask(*(each.format(types=path, folder=tmp_path / "empty") for each in arguments), fails=True)
    assert problem in " ".join(found.split())


def test_credentials_are_read_from_a_mounted_secret_or_from_the_environment(tmp_path: Path) -> None:
    (tmp_path / "client-id").write_text("operator\n")
    (tmp_path / "client-secret").write_text("s3cret\n")
    found = read_credentials(str(tmp_path), {})
    assert (found.client_id, found.client_secret, found.token) == ("operator", "s3cret", "")
    assert read_credentials("", {"VPSIE_TOKEN": "t0ken"}).token == "t0ken"


@pytest.mark.parametrize(
    ("arguments", "command", "mounts", "rights"),
    [
        pytest.param([], "--types=/etc/ocf/types.yaml", ["/etc/ocf"], {("nodes", "create")}, id="kwok"),
        pytest.param(
            ["--provider=cluster-api", "--machine-namespace=capi"],
            "--machine-namespace=capi",
            [],
            {("machinedeployments", "patch"), ("machines", "delete"), ("machines", "patch")},
            id="cluster-api",
        ),
        pytest.param(VPSIE, "--credentials=/etc/ocf-credentials", ["/etc/ocf-credentials"], set(), id="vpsie"),
    ],
)
def test_each_provider_is_installed_with_what_it_needs(
    arguments: list[str], command: str, mounts: list[str], rights: set[tuple[str, str]]
) -> None:
    found = load_documents(ask("manifests", *arguments))
    (container,) = found[-1]["spec"]["template"]["spec"]["containers"]
    assert command in container["command"]
    assert [each["mountPath"] for each in container.get("volumeMounts", [])] == mounts
    rules = [rule for each in found if each["kind"] in ("ClusterRole", "Role") for rule in each["rules"]]
    granted = {(resource, verb) for rule in rules for resource in rule["resources"] for verb in rule["verbs"]}
    assert rights <= granted


async def test_a_provider_of_the_command_is_the_one_that_was_chosen() -> None:
    async with ProviderChoice(name=ProviderName.CLUSTER_API, namespace="capi").opened() as make:
        assert isinstance(make(EmbeddedCluster()), ClusterAPIProvider)


def test_the_installation_is_complete() -> None:
    found = load_documents(ask("manifests"))
    assert [each["kind"] for each in found[:4]] == [
        "Namespace",
        "CustomResourceDefinition",
        "CustomResourceDefinition",
        "ServiceAccount",
    ]
    deployment = found[-1]["spec"]["template"]["spec"]
    (volume,) = deployment["volumes"]
    assert volume["configMap"] == {"name": "ocf-nodegroup-controller-types"}
    mount = {"name": volume["name"], "mountPath": "/etc/ocf", "readOnly": True}
    assert deployment["containers"][0]["volumeMounts"] == [mount]
    rules = [rule for each in found if each["kind"] == "ClusterRole" for rule in each["rules"]]
    assert any("pods/eviction" in rule["resources"] for rule in rules)
    dry = load_documents(ask("manifests", "--dry-run"))
    verbs = {verb for each in dry if each["kind"] == "ClusterRole" for rule in each["rules"] for verb in rule["verbs"]}
    assert verbs == {"list", "watch"}


def test_the_priority_cutoff_is_that_of_the_algorithm_or_set(types: str, cluster: str) -> None:
    def command(*options: str) -> list[str]:
        (container,) = load_documents(ask("manifests", *options))[-1]["spec"]["template"]["spec"]["containers"]
        return [each for each in container["command"] if each.startswith("--priority-cutoff")]

    assert command() == command(f"--priority-cutoff={PRIORITY_CUTOFF}") == []
    assert command("--priority-cutoff=-50") == ["--priority-cutoff=-50"]
    assert "priority below 1, and it has 0" in ask("explain", cluster, types, "--priority-cutoff=1")


@pytest.mark.parametrize(
    ("option", "roles"),
    [
        pytest.param("--no-leader-elect", ["ClusterRole"], id="no leader election"),
        pytest.param("--dry-run", ["ClusterRole"], id="dry run"),
        pytest.param("--leader-elect", ["ClusterRole", "Role"], id="leader election"),
    ],
)
def test_without_a_lease_there_is_one_process_and_no_right_to_leases(option: str, roles: list[str]) -> None:
    found = load_documents(ask("manifests", option))
    spec = found[-1]["spec"]
    alone = len(roles) == 1
    assert [each["kind"] for each in found if each["kind"].endswith("Role")] == roles
    assert spec["replicas"] == (1 if alone else 2)
    assert spec.get("strategy") == ({"type": "Recreate"} if alone else None)
    assert (option in spec["template"]["spec"]["containers"][0]["command"]) is alone
