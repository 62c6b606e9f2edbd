"""The chart and the kustomization on servers, and the installed commands, run with exactly the installed rights."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import aiohttp

from ocf.cluster import ListOptions
from ocf.controllers.hpa import NAME as HPA
from ocf.controllers.hpa import Mode
from ocf.controllers.hpa import cluster_role as hpa_rules
from ocf.controllers.nodegroup.manifests import NAME as NODE_GROUPS
from ocf.controllers.nodegroup.manifests import cluster_role as node_group_rules
from ocf.errors import NotFoundError
from ocf.objects import Manifest, ObjectKey, dump_document
from ocf.objects.documents import load_documents
from ocf.testing.envtest.binaries import Program, Programs
from tests.charts.support import CHART, ROOT, Chart, container, find, granted
from tests.clients.support import Server
from tests.kubectl import Kubectl
from tests.support import eventually

if TYPE_CHECKING:
    from ocf.cluster.client import ApiServerCluster
    from ocf.testing.envtest import ControlPlane

SMALL: Final = {
    "name": "small",
    "allocatable": {"cpu": "2", "memory": "8Gi", "pods": "110"},
    "offerings": [{"zone": "fra", "price": 0.02}],
}
BOTH: Final = {
    "hpaController": {"syncPeriod": "1s"},
    "nodegroupsController": {"enabled": True, "provider": "kwok", "kwok": {"types": [SMALL]}},
}


async def test_the_chart_is_installed_upgraded_and_uninstalled(server: Server, tmp_path: Path) -> None:
    chart = Chart(server, tmp_path)

    installed = await chart.json("install", "ocf", str(CHART), "--set=nodegroupsController.enabled=true")
    assert installed["info"]["status"] == "deployed"
    code, output = await chart("install", "other", str(CHART))
    assert code == 1
    assert "cannot be imported into the current release" in output
    upgraded = await chart.json("upgrade", "ocf", str(CHART), "--set=hpaController.mode=replace")
    assert upgraded["version"] == 2
    assert "uninstalled" in await chart.succeeds("uninstall", "ocf")
    again = await chart.json("install", "ocf", str(CHART))
    assert again["info"]["status"] == "deployed", "the definitions that were kept belong to the same release"
    assert "kept" in await chart.succeeds("uninstall", "ocf")


async def test_kubectl_applies_the_kustomization(server: Server, envtest_programs: Programs, tmp_path: Path) -> None:
    kubectl = Kubectl(envtest_programs.path(Program.KUBECTL), server.kubeconfig, tmp_path)
    folders = [ROOT / "charts" / "kustomize" / each for each in ("namespace", "hpa-controller", "nodegroup-controller")]

    for folder in folders:
        for _ in range(2):
            await kubectl("apply", "--server-side", f"--kustomize={folder}")
    found = (await kubectl("get", "deployments,services,poddisruptionbudgets", "-n=ocf-system", "-o=name")).out

    assert sorted(found.split()) == sorted(
        f"{kind}/{name}"
        for name in (HPA, NODE_GROUPS)
        for kind in ("deployment.apps", "service", "poddisruptionbudget.policy")
    )


async def test_the_bases_have_the_rights_of_the_defaults(envtest_programs: Programs, tmp_path: Path) -> None:
    kubectl = Kubectl(envtest_programs.path(Program.KUBECTL), tmp_path / "none", tmp_path)

    async def build(folder: str) -> list[Manifest]:
        return list(load_documents((await kubectl("kustomize", str(ROOT / "charts" / "kustomize" / folder))).out))

    hpa, node_groups = await build("hpa-controller"), await build("nodegroup-controller")
    assert granted(hpa, HPA) == hpa_rules(Mode.OWN_KIND, lease_namespace="ocf-system")
    assert granted(node_groups, NODE_GROUPS) >= node_group_rules(lease_namespace="ocf-system")
    assert "--provider=cluster-api" in container(node_groups, NODE_GROUPS)["command"]


def overlay(folder: Path) -> Manifest:
    """Return a kustomization of both controllers, in a folder from which the bases are reached by a relative path."""
    base = os.path.relpath(ROOT / "charts" / "kustomize", folder)
    names = ("hpa-controller", "nodegroup-controller")
    return {
        "resources": [f"{base}/{each}" for each in ("namespace", *names)],
        "components": [f"{base}/components/{each}-monitoring" for each in names],
        "images": [{"name": "ocf", "newName": "registry.example.com/ocf", "newTag": "1"}],
    }


async def test_overlays_may_add_both_controllers_and_their_monitoring(
    envtest_programs: Programs, tmp_path: Path
) -> None:
    kubectl = Kubectl(envtest_programs.path(Program.KUBECTL), tmp_path / "none", tmp_path)
    (tmp_path / "kustomization.yaml").write_text(dump_document(overlay(tmp_path)))

    found = load_documents((await kubectl("kustomize", str(tmp_path))).out)

    assert sorted(each["metadata"]["name"] for each in found if each["kind"] == "PrometheusRule") == [HPA, NODE_GROUPS]
    assert {container(found, each)["image"] for each in (HPA, NODE_GROUPS)} == {"registry.example.com/ocf:1"}


@asynccontextmanager
async def installed_process(
    plane: ControlPlane, manifests: Sequence[Manifest], name: str, folder: Path, *more: str
) -> AsyncIterator[str]:
    """Run the command of a Deployment as its service account; yield the URL of its probes once it is ready."""
    found = container(manifests, name)
    user = f"system:serviceaccount:default:{name}"
    kubeconfig = await asyncio.to_thread(plane.kubeconfig_for, user, "system:serviceaccounts")
    words = [each.replace("/etc/ocf/", f"{folder}/") for each in [*found["command"], *found["args"]]]
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", "from ocf.cli import main\nmain()", *words[1:], *more),
        *(f"--kubeconfig={kubeconfig}", "--port=0", "--host=127.0.0.1"),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    try:
        assert process.stdout is not None
        url = await _url(process.stdout)
        lines = asyncio.create_task(process.stdout.read())
        async with aiohttp.ClientSession() as session:
            await eventually(lambda: _is_ready(session, f"{url}{found['readinessProbe']['httpGet']['path']}"))
            assert await _is_ready(session, f"{url}{found['livenessProbe']['httpGet']['path']}")
        yield url
        process.terminate()
        output = (await lines).decode()
        assert await process.wait() == 0, output
        assert "forbidden" not in output.lower()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


async def _url(output: asyncio.StreamReader) -> str:
    lines = []
    async for line in output:
        lines.append(line.decode())
        _, found, rest = lines[-1].partition("http://")
        if found:
            return f"http://{rest.partition('/metrics')[0]}"
    raise AssertionError("".join(lines))


async def _is_ready(session: aiohttp.ClientSession, url: str) -> bool:
    async with session.get(url) as response:
        return response.status == 200


async def create(cluster: ApiServerCluster, api_version: str, kind: str, name: str, **content: Any) -> ObjectKey:
    body = {"apiVersion": api_version, "kind": kind, "metadata": {"name": name, "namespace": "default"}, **content}
    # The API server serves the kinds of the chart a moment after helm has installed them.
    await eventually(lambda: cluster.create(body, field_manager="user"), ignore=(NotFoundError,))
    return ObjectKey.of(body)


async def test_with_the_rights_of_the_chart_the_controllers_do_their_work(
    own_plane: ControlPlane, tmp_path: Path
) -> None:
    chart = Chart(Server(own_plane.kubeconfig, "default"), tmp_path)
    manifests = await chart.render(BOTH)
    await chart.succeeds("install", "ocf", str(CHART), f"--values={tmp_path / 'values.json'}")
    types = find(manifests, "ConfigMap", f"{NODE_GROUPS}-types")["data"]
    (tmp_path / "types.yaml").write_text(types["types.yaml"])

    async with await own_plane.cluster() as cluster:
        labels = {"app": "web"}
        template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "app", "image": "app:1"}]}}
        spec = {"replicas": 1, "selector": {"matchLabels": labels}, "template": template}
        web = await create(cluster, "apps/v1", "Deployment", "web", spec=spec)
        target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
        await create(
            cluster,
            *("autoscaling.ocf.dev/v1alpha1", "HorizontalAutoscaler", "web"),
            spec={"scaleTargetRef": target, "minReplicas": 2, "maxReplicas": 3},
        )
        group = {"minNodes": 1, "maxNodes": 2, "datacenterID": "fra", "offeringIDs": ["small"]}
        await create(cluster, "autoscaling.ocf.dev/v1alpha1", "NodeGroup", "workers", spec=group)

        async def is_scaled() -> bool:
            return bool((await cluster.get(web))["spec"]["replicas"] == 2)

        async def has_node() -> bool:
            return len((await cluster.list("v1", "Node", ListOptions())).items) == 1

        async with installed_process(own_plane, manifests, HPA, tmp_path, "--lease-namespace=default"):
            await eventually(is_scaled)
        async with installed_process(own_plane, manifests, NODE_GROUPS, tmp_path):
            await eventually(has_node)
