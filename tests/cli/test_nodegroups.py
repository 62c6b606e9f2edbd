"""`ocf nodegroups`: plans from files, their reasons, and the installation."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from ocf.cli.app import app
from ocf.objects import load_documents

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
    items = [group, invalid, pod("web", "1"), pod("huge", "64")]
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
    ],
)
def test_wrong_instance_types_are_named(tmp_path: Path, cluster: str, content: Any, problem: str) -> None:
    path = tmp_path / "wrong.json"
    path.write_text(json.dumps(content))
    assert problem in ask("plan", cluster, f"--types={path}", fails=True).replace("\n", " ")


def test_types_are_required(cluster: str) -> None:
    assert "--types must name a file" in ask("plan", cluster, fails=True)


def test_the_installation_is_complete() -> None:
    found = load_documents(ask("manifests"))
    assert [each["kind"] for each in found[:3]] == [
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
