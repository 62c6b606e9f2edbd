"""`ocf hpa-controller`: options, manifests, and the running process."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from click.testing import CliRunner

from ocf.cli.app import app
from ocf.cluster import Cluster, WatchOptions
from ocf.controllers.hpa import NAME
from ocf.controllers.hpa.modes import BUILT_IN, OWN
from ocf.objects import Manifest, ObjectKey
from ocf.objects.documents import load_documents
from ocf_server import EmbeddedCluster
from ocf_server.http import serving, write_kubeconfig

DEPLOYMENT = ObjectKey("apps/v1", "Deployment", "web", "default")


def ask(*arguments: str) -> str:
    done = CliRunner().invoke(app, ["hpa-controller", *arguments])
    assert done.exit_code == 0, done.output
    return done.stdout


def manifests(*arguments: str) -> list[Manifest]:
    return list(load_documents(ask("manifests", *arguments)))


def container(*arguments: str) -> Manifest:
    (deployment,) = (one for one in manifests(*arguments) if one["kind"] == "Deployment")
    (found,) = deployment["spec"]["template"]["spec"]["containers"]
    return dict(found)


class TestOptions:
    @pytest.mark.parametrize(
        ("arguments", "problem"),
        [
            pytest.param(["--sync-period=0"], "--sync-period must be longer than 0s, got 0", id="no period"),
            pytest.param(["--sync-period=15"], "--sync-period must be a duration like 1m30s, not '15'", id="no unit"),
            pytest.param(
                ["--downscale-stabilization=0s"], "--downscale-stabilization must be longer than 0s", id="no window"
            ),
            pytest.param(
                ["--cpu-initialization-period=0s"], "--cpu-initialization-period must be longer", id="no initialisation"
            ),
            pytest.param(["--initial-readiness-delay=0s"], "--initial-readiness-delay must be longer", id="no delay"),
            pytest.param(["--tolerance=-0.1"], "--tolerance must be a number of at least 0", id="negative tolerance"),
            pytest.param(["--tolerance=nan"], "--tolerance must be a number of at least 0", id="no tolerance"),
            pytest.param(["--concurrent-syncs=0"], "--concurrent-syncs must be at least 1, got 0", id="no worker"),
            pytest.param(["--request-timeout=0s"], "--request-timeout must be longer than 0s", id="no time"),
            pytest.param(["--take-over"], "taking over is only possible in mode replace", id="nothing to take"),
            pytest.param(["--take-over-delay=-1s"], "--take-over-delay must be a duration", id="negative delay"),
            pytest.param(["migrate"], "migrate needs the names of autoscalers", id="nothing to migrate"),
            pytest.param(["--feature-gates=HPAMagic=true"], 'invalid feature gate "HPAMagic=true"', id="unknown gate"),
            pytest.param(["--kubernetes-version=2.0"], "must be 1.30 to 1.37", id="unknown version"),
            pytest.param(["manifests", "--scales=Rollout/x"], "--scales must be a resource like", id="no resource"),
            pytest.param(
                ["manifests", "--scales=deployments"],
                '--scales must name its group, as "deployments.apps" does',
                id="no group",
            ),
        ],
    )
    def test_an_invalid_option_is_rejected_with_the_allowed_values(self, arguments: list[str], problem: str) -> None:
        done = CliRunner().invoke(app, ["hpa-controller", *arguments])

        assert done.exit_code == 2
        assert problem in done.stderr

    def test_the_flags_of_the_built_in_controller_are_accepted(self) -> None:
        long = {
            "--horizontal-pod-autoscaler-sync-period": ("5s", "--sync-period=5s"),
            "--horizontal-pod-autoscaler-downscale-stabilization": ("10m0s", "--downscale-stabilization=10m0s"),
            "--horizontal-pod-autoscaler-tolerance": ("0.05", "--tolerance=0.05"),
            "--horizontal-pod-autoscaler-cpu-initialization-period": ("1m30s", "--cpu-initialization-period=1m30s"),
            "--horizontal-pod-autoscaler-initial-readiness-delay": ("10s", "--initial-readiness-delay=10s"),
            "--concurrent-horizontal-pod-autoscaler-syncs": ("9", "--concurrent-syncs=9"),
        }

        found = container(*(f"{flag}={value}" for flag, (value, _) in long.items()))

        assert set(found["args"]) == {"run", "--mode=own-kind", "--output=json", *(short for _, short in long.values())}

    @pytest.mark.parametrize(
        ("version", "shown"),
        [("1.32", "1.32"), ("1.30", "1.32"), ("1.33", "1.33"), ("1.35", "1.35"), ("1.36", None), ("1.37", "1.37")],
    )
    def test_the_printed_arguments_have_the_same_effect(self, version: str, shown: str | None) -> None:
        """The newest release with the same rules is printed."""
        gates = ["--feature-gates=HPAScaleToZero=false,HPAGeneration=true"]
        wanted = [
            "--mode=replace",
            "--take-over",
            "--take-over-delay=1m0s",
            "--request-timeout=5s",
            f"--kubernetes-version={version}",
            *gates,
        ]
        printed = container(*wanted)["args"]
        versions = [one.partition("=")[2] for one in printed if one.startswith("--kubernetes-version")]

        assert container(*(one for one in printed if one not in ("run", "--output=json")))["args"] == printed
        assert {"--take-over-delay=1m0s", "--request-timeout=5s"} <= set(printed)
        assert versions == ([] if shown is None else [shown])
        assert ("--feature-gates=HPAGeneration=true" in printed) is (version != "1.37")


def test_the_image_runs_as_the_user_and_with_the_command_of_the_deployment() -> None:
    lines = (Path(__file__).parents[2] / "images/Dockerfile").read_text(encoding="utf-8").splitlines()
    (deployment,) = (one for one in manifests() if one["kind"] == "Deployment")
    security = deployment["spec"]["template"]["spec"]["securityContext"]
    assert f"USER {security['runAsUser']}:{security['runAsGroup']}" in lines
    assert f"ENTRYPOINT {json.dumps(container()['command'])}" in lines


class TestManifests:
    @pytest.mark.parametrize(
        ("mode", "first", "written"),
        [
            pytest.param("own-kind", "CustomResourceDefinition", {"horizontalautoscalers/status"}, id="own kind"),
            pytest.param("replace", "ServiceAccount", {"horizontalpodautoscalers/status"}, id="replace"),
            pytest.param("dry-run", "ServiceAccount", set(), id="dry run"),
        ],
    )
    def test_each_mode_has_the_permissions_it_needs_and_no_others(
        self, mode: str, first: str, written: set[str]
    ) -> None:
        found = manifests(f"--mode={mode}", "--namespace=ops", "--image=registry.example.com/ocf:1")

        assert found[0]["kind"] == first
        (role,) = (one for one in found if one["kind"] == "ClusterRole")
        statuses = {
            resource
            for rule in role["rules"]
            for resource in rule["resources"]
            if resource.endswith("/status") and "update" in rule["verbs"]
        }
        assert statuses == written
        if mode == "dry-run":
            assert {verb for rule in role["rules"] for verb in rule["verbs"]} <= {"get", "list", "watch"}
        (deployment,) = (one for one in found if one["kind"] == "Deployment")
        assert deployment["spec"]["replicas"] == (1 if mode == "dry-run" else 2)

    def test_without_leader_election_there_is_one_replica(self) -> None:
        (deployment,) = (one for one in manifests("--no-leader-elect") if one["kind"] == "Deployment")

        assert deployment["spec"]["strategy"] == {"type": "Recreate"}
        assert deployment["spec"]["replicas"] == 1
        assert not [one for one in manifests("--no-leader-elect") if one["kind"] == "Role"]

    def test_other_kinds_can_be_scaled(self) -> None:
        found = manifests("--scales=rollouts.argoproj.io", "--scales=deployments.apps")
        (role,) = (one for one in found if one["kind"] == "ClusterRole")

        scales = {
            (rule["apiGroups"][0], resource)
            for rule in role["rules"]
            for resource in rule["resources"]
            if resource.endswith("/scale")
        }
        assert scales == {("argoproj.io", "rollouts/scale"), ("apps", "deployments/scale")}

    async def test_a_cluster_accepts_them(self, cluster: EmbeddedCluster) -> None:
        listed = json.loads(ask("manifests", "--namespace=default", "--output=json"))

        assert listed["kind"] == "List"
        for manifest in listed["items"]:
            await cluster.apply(manifest, field_manager="admin")


async def start(*arguments: str) -> asyncio.subprocess.Process:
    program, pipe = "from ocf.cli import main\nmain()", asyncio.subprocess.PIPE
    return await asyncio.create_subprocess_exec(
        sys.executable, "-c", program, "hpa-controller", *arguments, stdout=pipe, stderr=pipe, env=dict(os.environ)
    )


@asynccontextmanager
async def running(cluster: EmbeddedCluster, folder: Path, *arguments: str) -> AsyncIterator[dict[str, Any]]:
    """Run the command with a served cluster; yield its start message and the process."""
    async with serving(cluster) as server:
        kubeconfig = folder / "kubeconfig"
        write_kubeconfig(server.kubeconfig(), kubeconfig)
        common = ["--port=0", "--host=127.0.0.1", "--output=json", f"--kubeconfig={kubeconfig}", "--sync-period=100ms"]
        process = await start(*common, *arguments)
        try:
            assert process.stdout is not None
            yield {**json.loads(await process.stdout.readline()), "process": process}
        finally:
            if process.returncode is None:
                process.send_signal(signal.SIGTERM)
            _, err = await process.communicate()
            assert process.returncode == 0, err.decode()


def deployment() -> Manifest:
    labels, containers = {"app": "web"}, [{"name": "app", "image": "app:1"}]
    template = {"metadata": {"labels": labels}, "spec": {"containers": containers}}
    spec = {"replicas": 3, "selector": {"matchLabels": labels}, "template": template}
    metadata = {"name": "web", "namespace": "default"}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": spec}


def autoscaler(kind: tuple[str, str]) -> Manifest:
    """Return an autoscaler whose minimum is above the replicas, which needs no metrics."""
    reference = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
    metadata = {"name": "web", "namespace": "default"}
    spec = {"scaleTargetRef": reference, "minReplicas": 5, "maxReplicas": 9}
    return {"apiVersion": kind[0], "kind": kind[1], "metadata": metadata, "spec": spec}


async def reached(cluster: Cluster, replicas: int) -> None:
    found = await cluster.list("apps/v1", "Deployment")
    changes = cluster.watch("apps/v1", "Deployment", WatchOptions(resource_version=found.resource_version))
    counts = [one["spec"]["replicas"] for one in found.items]
    async with asyncio.timeout(600):
        while counts[-1] != replicas:
            counts.append((await anext(changes)).object["spec"].get("replicas"))


@pytest.mark.parametrize(("mode", "kind"), [("own-kind", OWN), ("replace", BUILT_IN)])
async def test_it_runs_with_its_manifests_and_stops_gracefully(
    tmp_path: Path, mode: str, kind: tuple[str, str]
) -> None:
    cluster = EmbeddedCluster()
    for manifest in manifests(f"--mode={mode}", "--namespace=default"):
        await cluster.apply(manifest, field_manager="admin")
    for manifest in (deployment(), autoscaler(kind)):
        await cluster.create(manifest, field_manager="user")
    async with running(cluster, tmp_path, f"--mode={mode}") as started:
        await reached(cluster, 5)
        async with aiohttp.ClientSession() as session:
            async with session.get(started["ready"]) as answer:
                assert answer.status == 200
            async with session.get(started["metrics"]) as answer:
                assert "horizontal_pod_autoscaler_controller_num_horizontal_pod_autoscalers 1.0" in await answer.text()
    lease = await cluster.get(ObjectKey("coordination.k8s.io/v1", "Lease", NAME, "default"))
    assert lease["spec"]["holderIdentity"] == ""
    status = (await cluster.get(ObjectKey(*kind, "web", "default")))["status"]
    assert status["conditions"][0]["reason"] in ("SucceededRescale", "SucceededGetScale")


async def test_a_dry_run_prints_changed_decisions_and_sends_no_writes(tmp_path: Path) -> None:
    cluster = EmbeddedCluster()
    for manifest in (deployment(), autoscaler(BUILT_IN)):
        await cluster.create(manifest, field_manager="user")
    cluster.requests.clear()
    async with running(cluster, tmp_path, "--mode=dry-run") as started:
        line = json.loads(await started["process"].stdout.readline())
        decision = {name: line[name] for name in ("name", "current", "wanted", "rule", "reported", "agrees")}
        assert decision == {
            "name": "web",
            "current": 3,
            "wanted": 5,
            "rule": "below the minimum",
            "reported": None,
            "agrees": False,
        }
    assert cluster.requests.writes == 0


async def test_without_the_crd_the_error_names_the_manifests(tmp_path: Path) -> None:
    cluster = EmbeddedCluster()
    async with serving(cluster) as server:
        kubeconfig = tmp_path / "kubeconfig"
        write_kubeconfig(server.kubeconfig(), kubeconfig)
        process = await start(f"--kubeconfig={kubeconfig}", "--port=0", "--host=127.0.0.1")
        _, err = await process.communicate()
    assert process.returncode == 2
    assert "error: HorizontalAutoscaler (autoscaling.ocf.dev/v1alpha1) cannot be read" in err.decode()
    assert "ocf hpa-controller manifests prints what has to be applied first" in err.decode()
