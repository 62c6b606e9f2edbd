"""`ocf simulate --init` for an HPA in a cluster: the embedded one over HTTP, and a real API server."""

from __future__ import annotations

import asyncio
import json
import re
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
from click.testing import CliRunner

from ocf.cli.app import app
from ocf.cluster.client import ApiServerCluster
from ocf.errors import ForbiddenError
from ocf.objects import Manifest, ObjectKey
from ocf.simulation import load_series, parse_scenario, simulate
from ocf.testing.envtest.fixtures import Envtest
from ocf_server import EmbeddedCluster
from ocf_server.http import serving, write_kubeconfig

CPU: Final = {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 60}}
OLD_CPU: Final = {"name": "cpu", "targetAverageUtilization": 60}
JOBS: Final = {"metric": {"name": "jobs"}, "target": {"type": "AverageValue", "averageValue": "30"}}
SHOWN: Final = """\
workload:
  # Load units per second, such as requests, that one pod serves. An assumption: measure it.
  capacity: 100
  replicas: 3
  # Requests of one pod, from Deployment web.
  requests:
    cpu: 300m
  # Use of one pod without load and at full capacity; without this, a pod at full capacity uses its request.
  # usage:
  #   cpu: {idle: 50m, busy: 500m}
  # What the other metrics follow: load, served, queue or backlog; `factor` is the value for one unit.
  signals:
    jobs: {source: load, factor: 1}
"""


def objects(namespace: str) -> list[Manifest]:
    """Return a Deployment and its HPA, and another HPA whose target does not exist."""
    labels = {"app": "web"}
    container = {"name": "app", "image": "app:1", "resources": {"requests": {"cpu": "300m"}}}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [container]}}
    deployment = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", "namespace": namespace},
        "spec": {"replicas": 3, "selector": {"matchLabels": labels}, "template": template},
    }
    return [deployment, *(hpa(name, namespace) for name in ("web", "alone"))]


def hpa(name: str, namespace: str) -> Manifest:
    return {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": name, "namespace": namespace, "annotations": {"example.com/token": "a secret"}},
        "spec": {
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": name},
            "maxReplicas": 8,
            "metrics": [{"type": "Resource", "resource": CPU}, {"type": "External", "external": JOBS}],
        },
    }


SCALED_OBJECTS: Final[Manifest] = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "scaledobjects.keda.sh"},
    "spec": {
        "group": "keda.sh",
        "scope": "Namespaced",
        "names": {"kind": "ScaledObject", "plural": "scaledobjects"},
        "versions": [
            {
                "name": "v1alpha1",
                "served": True,
                "storage": True,
                "schema": {
                    "openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
                },
            }
        ],
    },
}
SCALED_OBJECT: Final[Manifest] = {
    "apiVersion": "keda.sh/v1alpha1",
    "kind": "ScaledObject",
    "metadata": {"name": "worker", "namespace": "shop"},
    "spec": {
        "scaleTargetRef": {"name": "web"},
        "maxReplicaCount": 7,
        "cooldownPeriod": 60,
        "triggers": [{"type": "kafka", "metadata": {"topic": "orders"}}, {"type": "mysql", "metadata": {}}],
    },
}


def owned(name: str, owner: Manifest) -> Manifest:
    """Return an HPA that KEDA has made."""
    made = hpa(name, "shop")
    made["spec"]["scaleTargetRef"]["name"] = "web"
    uid, reference = owner["metadata"]["uid"], {"kind": "ScaledObject", "name": "worker", "controller": True}
    made["metadata"]["ownerReferences"] = [{**reference, "apiVersion": owner["apiVersion"], "uid": uid}]
    return made


@pytest.fixture(scope="module")
def embedded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Serve a cluster over HTTP in a thread, and return its kubeconfig."""
    path, ready, over = tmp_path_factory.mktemp("served") / "kubeconfig", threading.Event(), threading.Event()

    async def work() -> None:
        cluster = EmbeddedCluster(namespaces=["shop"])
        for each in objects("shop"):
            await cluster.create(each, field_manager="test")
        await cluster.create(SCALED_OBJECTS, field_manager="test")
        owner = await cluster.create(SCALED_OBJECT, field_manager="test")
        await cluster.create(owned("keda-hpa-worker", owner), field_manager="test")
        # The API server does not know this version, so nothing is known of the owner either.
        await cluster.create(owned("keda-hpa-lost", {**owner, "apiVersion": "keda.sh/v2"}), field_manager="test")
        async with serving(cluster) as server:
            config = server.kubeconfig()
            config["contexts"][0]["context"]["namespace"] = "shop"
            write_kubeconfig(config, path)
            ready.set()
            await asyncio.to_thread(over.wait)

    thread = threading.Thread(target=lambda: asyncio.run(work()))
    thread.start()
    ready.wait()
    yield path
    over.set()
    thread.join()


@pytest.fixture
def real(envtest: Envtest) -> Path:
    """Return the kubeconfig of a namespace of a real API server."""
    content = {"apiVersion": "v1", "kind": "List", "items": objects(envtest.namespace)}
    envtest.kubectl("create", "--filename=-", stdin=json.dumps(content))
    return envtest.kubeconfig


@pytest.fixture(params=["embedded", "real"])
def kubeconfig(request: pytest.FixtureRequest) -> Path:
    found: Path = request.getfixturevalue(request.param)
    return found


def init(kubeconfig: Path, *words: str) -> Any:
    return CliRunner().invoke(app, ["simulate", "--init", "--kubeconfig", str(kubeconfig), *words])


def test_a_scenario_of_a_live_hpa_is_commented_and_runs(kubeconfig: Path) -> None:
    answer = init(kubeconfig, "--name", "web")

    assert answer.exit_code == 0, answer.output
    assert SHOWN in answer.stdout
    assert not any(part in answer.stdout for part in ("a secret", "uid", "status", "managedFields"))
    scenario = parse_scenario(answer.stdout)
    result = simulate(scenario, load_series(scenario))
    assert (result.syncs, result.bounds) == (240, (1, 8))


def test_the_requests_of_a_target_that_does_not_exist_are_assumptions(kubeconfig: Path) -> None:
    answer = init(kubeconfig, "--name", "alone")

    assert answer.exit_code == 0, answer.output
    assert "# Requests of one pod, an assumption: those of the target are not known." in answer.stdout
    lacking = "cannot be read: it does not exist; its replicas and requests are assumptions"
    assert re.fullmatch(rf"note: Deployment [\w-]+/alone {lacking}\n", answer.stderr)
    parse_scenario(answer.stdout)


def test_a_target_that_may_not_be_read_is_named_with_the_right_and_the_command_that_prints_its_role(
    embedded: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = ApiServerCluster.get

    async def get(self: ApiServerCluster, key: ObjectKey, **options: Any) -> Manifest:
        if key.kind == "Deployment":
            message = (
                'deployments.apps "web" is forbidden: User "jane" cannot get resource "deployments" in API group "apps"'
                ' in the namespace "shop"'
            )
            raise ForbiddenError(message, code=403, reason="Forbidden")
        return await read(self, key, **options)

    monkeypatch.setattr(ApiServerCluster, "get", get)
    answer = init(embedded, "--name", "web")

    assert answer.exit_code == 0, answer.output
    assert answer.stderr.startswith("note: Deployment shop/web cannot be read: deployments.apps")
    assert '{"apiGroups": ["apps"], "resources": ["deployments"]' in answer.stderr
    assert "kubectl create role get-deployments --namespace=shop" in answer.stderr
    assert answer.stderr.endswith("; its replicas and requests are assumptions\n")


def test_the_scenario_of_an_hpa_that_keda_has_made_is_that_of_its_scaled_object(embedded: Path) -> None:
    answer = init(embedded, "--name", "keda-hpa-worker")

    assert answer.exit_code == 0, answer.output
    assert answer.stderr.startswith("note: workload.signals.s1-mysql: ")
    scenario = parse_scenario(answer.stdout)
    assert scenario.activator is not None
    assert scenario.activator.cooldown_period.total_seconds() == 60
    assert set(scenario.workload.signals) == {"s0-kafka-orders", "s1-mysql"}
    assert scenario.workload.replicas == 3


def test_a_scaled_object_that_cannot_be_read_is_named(embedded: Path) -> None:
    answer = init(embedded, "--name", "keda-hpa-lost")

    assert answer.exit_code == 0, answer.output
    assert answer.stderr == (
        "note: ScaledObject shop/worker cannot be read: it does not exist; scaling from and to zero is missing in the"
        " scenario\n"
    )
    assert parse_scenario(answer.stdout).activator is None


def test_an_hpa_that_does_not_exist_is_an_error(kubeconfig: Path) -> None:
    answer = init(kubeconfig, "--name", "none")

    assert (answer.exit_code, answer.stdout) == (2, "")
    found = re.search(r'autoscaling "none" not found; autoscalers in namespace [\w-]+: (.*)\n', answer.stderr)
    assert found is not None
    assert {"alone", "web"} <= set(found[1].split(", "))


@pytest.mark.parametrize(
    ("version", "metric", "code", "shown"),
    [
        pytest.param("v2beta2", CPU, 0, "apiVersion: autoscaling/v2\n", id="v2beta2"),
        pytest.param("v2beta1", OLD_CPU, 0, "averageUtilization: 60", id="v2beta1"),
        pytest.param("v2", OLD_CPU, 2, "write target: {type", id="mixed"),
    ],
)
def test_an_old_autoscaler_becomes_one_of_v2(
    tmp_path: Path, version: str, metric: Manifest, code: int, shown: str
) -> None:
    old = hpa("web", "shop")
    old = {**old, "apiVersion": f"autoscaling/{version}"}
    old["spec"] = {**old["spec"], "metrics": [{"type": "Resource", "resource": metric}]}
    file = tmp_path / "web.json"
    file.write_text(json.dumps(old))
    answer = CliRunner().invoke(app, ["simulate", "--init", str(file)])

    assert answer.exit_code == code, answer.output
    assert shown in answer.output
    assert "v2beta" not in answer.output


def test_a_misspelt_kind_is_an_error(tmp_path: Path) -> None:
    file = tmp_path / "web.json"
    file.write_text(json.dumps({**hpa("web", "shop"), "kind": "HorizontalPodAutoScaler"}))
    answer = CliRunner().invoke(app, ["simulate", "--init", str(file)])

    assert answer.exit_code == 2
    assert "document 1: kind: " in answer.output
    assert "write HorizontalPodAutoscaler" in answer.output
