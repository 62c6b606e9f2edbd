"""Replicas that leave the manifest of a live target: what each tool makes of it, and the page's commands to the letter.

The removal took live targets to 1: https://github.com/kubernetes/kubernetes/issues/25238,
https://github.com/kubernetes/website/pull/29739, https://github.com/helm/helm/issues/12650,
https://github.com/helm/helm/issues/12486, https://github.com/helm/helm/issues/7090,
https://github.com/grafana/mimir/issues/7367. With server-side apply, replicas that stay conflict with the autoscaler:
https://github.com/nginx/nginx-gateway-fabric/pull/4897.

Helm 4 without server-side apply makes the three-way patch of Helm 3, as the same tests with both show.
"""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeAlias

import pytest
import pytest_asyncio

from ocf.autoscaling import lint
from ocf.objects import load_document
from ocf.testing.envtest.binaries import Program, Programs
from ocf_server import EmbeddedCluster
from ocf_server.http import serving, write_kubeconfig
from tests.clients.helm import Helm
from tests.clients.support import Server
from tests.kubectl import Kubectl

PAGE: Final = Path(__file__).parents[2] / "docs" / "operators" / "scale-with-hpa.md"
SECTION: Final = "## Take `replicas` out of a live target"

DEPLOYMENT: Final = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
%s  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers: [{name: web, image: "web:%s"}]
"""
WITH: Final = DEPLOYMENT % ("  replicas: 3\n", 1)
WITHOUT: Final = DEPLOYMENT % ("", 1)
NEXT: Final = DEPLOYMENT % ("", 2)
CLIENT: Final = ("apply", "-f", "-")
SERVER: Final = ("apply", "--server-side", "-f", "-")
Upgrade: TypeAlias = "Callable[[Tools, str], Awaitable[None]]"
"""Installs or upgrades a chart with one manifest, which has to succeed."""
TARGET: Final = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
CHART: Final = "apiVersion: v2\nname: web\nversion: 0.1.0\n"


@dataclass(frozen=True)
class Tools:
    """kubectl and helm, for a namespace of one server.

    Args:
        helm: Helm 4.
    """

    kubectl: Kubectl
    helm: Helm
    helm3: Helm
    folder: Path

    async def replicas(self) -> int:
        return int((await self.kubectl("get", "deployment", "web", "-o", "jsonpath={.spec.replicas}")).out)

    async def autoscale(self, replicas: int) -> None:
        """Set the count as the HPA controller does, by the subresource `scale`."""
        await self.kubectl("scale", "deployment", "web", f"--replicas={replicas}")

    async def chart(self, manifest: str, *arguments: str, by: Helm | None = None) -> tuple[int, str]:
        """Install or upgrade a chart with one manifest; return the exit code and what helm prints.

        Args:
            by: The helm; None for Helm 4.
        """
        (self.folder / "chart" / "templates").mkdir(parents=True, exist_ok=True)
        (self.folder / "chart" / "Chart.yaml").write_text(CHART)
        (self.folder / "chart" / "templates" / "web.yaml").write_text(manifest)
        return await (by or self.helm)("upgrade", "--install", "web", str(self.folder / "chart"), *arguments)

    async def shell(self, commands: str) -> None:
        """Run commands in the folder, with kubectl in the path and the kubeconfig of the server."""
        bin_ = self.folder / "bin"
        bin_.mkdir(exist_ok=True)
        (bin_ / "kubectl").write_text(
            f'#!/bin/sh\nexec {self.kubectl.program} --namespace={self.kubectl.namespace} "$@"\n'
        )
        (bin_ / "kubectl").chmod(0o755)
        home = {"HOME": str(self.folder), "KUBECONFIG": str(self.kubectl.kubeconfig)}
        process = await asyncio.create_subprocess_exec(
            "sh",
            "-euc",
            commands,
            cwd=self.folder,
            env={**os.environ, **home, "PATH": f"{bin_}:{os.environ['PATH']}"},
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        output, _ = await process.communicate()
        assert process.returncode == 0, output.decode()


@pytest_asyncio.fixture(params=["embedded", "real"])
async def tools(request: pytest.FixtureRequest, envtest_programs: Programs, tmp_path: Path) -> AsyncIterator[Tools]:
    """Return the tools for an empty namespace of one server and then of the other."""
    program = envtest_programs.path(Program.KUBECTL)

    def made(server: Server) -> Tools:
        kubectl = Kubectl(program, server.kubeconfig, tmp_path, server.namespace)
        return Tools(kubectl, Helm(server, tmp_path), Helm(server, tmp_path, "helm3"), tmp_path)

    if request.param == "real":
        yield made(request.getfixturevalue("real"))
        return
    async with serving(EmbeddedCluster(namespaces=["shop"])) as server:
        write_kubeconfig(server.kubeconfig(), tmp_path / "kubeconfig")
        yield made(Server(tmp_path / "kubeconfig", "shop"))


def commands_of_the_linter(manifest: str = WITH) -> list[str]:
    """Return the commands that the finding has for the live target, in its order: for each tool one or two."""
    hpa = {"metadata": load_document(manifest)["metadata"], "spec": {"maxReplicas": 20, "scaleTargetRef": TARGET}}
    (found,) = (each for each in lint(hpa, load_document(manifest)) if each.code == "fixed-replicas")
    return re.findall("`(.*?)`", found.fix)


def block(name: str, language: str = "sh") -> str:
    """Return the block of code of a tool's remedy in the page."""
    section = PAGE.read_text(encoding="utf-8").partition(SECTION)[2]
    part = section.partition(f"\n**{name}**")[2]
    found = re.search(rf"```{language}\n(.*?)```", part, re.DOTALL)
    assert found, f"{name} has no block of {language}"
    return found[1]


async def test_client_side_apply_reverts_the_count_and_its_removal_starts_at_one(tools: Tools) -> None:
    await tools.kubectl(*CLIENT, stdin=WITH)
    await tools.autoscale(12)
    await tools.kubectl(*CLIENT, stdin=WITH)
    assert await tools.replicas() == 3

    await tools.autoscale(12)
    await tools.kubectl(*CLIENT, stdin=WITHOUT)
    assert await tools.replicas() == 1


async def test_the_remedy_for_client_side_apply_keeps_the_count(tools: Tools) -> None:
    await tools.kubectl(*CLIENT, stdin=WITH)
    await tools.autoscale(12)
    (tools.folder / "web.yaml").write_text(WITHOUT)

    await tools.shell(block("kubectl apply"))

    assert await tools.replicas() == 12
    await tools.kubectl(*CLIENT, stdin=NEXT)
    assert await tools.replicas() == 12


async def test_the_editor_of_kubectl_does_the_same(tools: Tools) -> None:
    await tools.kubectl(*CLIENT, stdin=WITH)
    await tools.autoscale(12)

    await tools.shell(
        f"KUBE_EDITOR='sed -i /replicas:/d' {commands_of_the_linter()[0]}\nkubectl apply -f - <<'EOF'\n{NEXT}EOF\n"
    )

    assert await tools.replicas() == 12


async def test_server_side_apply_conflicts_with_the_autoscaler(tools: Tools) -> None:
    await tools.kubectl(*SERVER, stdin=WITH)
    await tools.autoscale(12)

    failed = await tools.kubectl(*SERVER, stdin=WITH, code=1)
    assert ".spec.replicas" in failed.err
    assert await tools.replicas() == 12

    await tools.kubectl(*SERVER, "--force-conflicts", stdin=WITH)
    assert await tools.replicas() == 3


async def test_server_side_apply_without_replicas_keeps_what_the_autoscaler_has_set(tools: Tools) -> None:
    await tools.kubectl(*SERVER, stdin=WITH)
    await tools.autoscale(12)
    await tools.kubectl(*SERVER, stdin=WITHOUT)

    assert await tools.replicas() == 12


async def test_server_side_apply_without_replicas_starts_at_one_if_no_autoscaler_has_set_them(tools: Tools) -> None:
    await tools.kubectl(*SERVER, stdin=WITH)
    await tools.kubectl(*SERVER, stdin=WITHOUT)

    assert await tools.replicas() == 1


@pytest.mark.parametrize("scaled", [None, 12], ids=["never scaled", "scaled"])
async def test_the_remedy_for_server_side_apply_keeps_the_count(tools: Tools, scaled: int | None) -> None:
    await tools.kubectl(*SERVER, stdin=WITH)
    if scaled:
        await tools.autoscale(scaled)
    (tools.folder / "web.yaml").write_text(WITHOUT)

    await tools.shell(block("kubectl apply --server-side"))

    assert await tools.replicas() == (scaled or 3)
    await tools.autoscale(7)
    await tools.kubectl(*SERVER, stdin=NEXT)
    assert await tools.replicas() == 7


@pytest.mark.parametrize("scaled", [None, 12], ids=["never scaled", "scaled"])
async def test_the_linter_has_a_command_for_server_side_apply(tools: Tools, scaled: int | None) -> None:
    await tools.kubectl(*SERVER, stdin=WITH)
    if scaled:
        await tools.autoscale(scaled)

    await tools.shell(commands_of_the_linter()[2])
    await tools.kubectl(*SERVER, stdin=NEXT)

    assert await tools.replicas() == (scaled or 3)


MORE: Final = WITH.replace("spec:\n", "spec:\n  minReadySeconds: 5\n", 1)


@pytest.mark.parametrize("scaled", [None, 12], ids=["never scaled", "scaled"])
@pytest.mark.parametrize("by", ["linter", "page"])
async def test_a_field_that_leaves_a_manifest_that_was_applied_client_side_is_removed(
    tools: Tools, scaled: int | None, by: str
) -> None:
    """Without the first command, kubectl gives all fields to replicas-handover, which never removes one."""
    await tools.kubectl(*CLIENT, stdin=MORE)
    if scaled:
        await tools.autoscale(scaled)
    _, migrate, hand_over, _ = commands_of_the_linter()
    (tools.folder / "web.yaml").write_text(MORE)
    if by == "page":
        await tools.shell(block("From client-side to server-side apply"))
        (tools.folder / "web.yaml").write_text(NEXT)
        await tools.shell(block("kubectl apply --server-side"))
    else:
        (tools.folder / "web.yaml").write_text(MORE.replace("replicas: 3", f"replicas: {scaled or 3}"))
        await tools.shell(migrate.replace("FILE", "web.yaml"))
        await tools.shell(hand_over)
        await tools.kubectl(*SERVER, stdin=NEXT)

    assert await tools.replicas() == (scaled or 3)
    left = await tools.kubectl("get", "deployment", "web", "-o", "jsonpath={.spec.minReadySeconds}")
    assert left.out == ""


async def by_helm_3(tools: Tools, manifest: str) -> None:
    code, output = await tools.chart(manifest, by=tools.helm3)
    assert code == 0, output


async def by_helm_4(tools: Tools, manifest: str) -> None:
    code, output = await tools.chart(manifest, "--server-side=false")
    assert code == 0, output


THREE_WAY: Final = pytest.mark.parametrize(
    "upgrade",
    [
        pytest.param(by_helm_3, id="Helm 3"),
        pytest.param(by_helm_4, id="Helm 4 without server-side apply"),
    ],
)


async def test_helm_3_is_helm_3(tools: Tools) -> None:
    assert re.match(r"v3\.\d+", await tools.helm3.succeeds("version", "--short"))


@THREE_WAY
async def test_helm_3_takes_the_target_to_one(tools: Tools, upgrade: Upgrade) -> None:
    await upgrade(tools, WITH)
    await tools.autoscale(12)
    await upgrade(tools, WITHOUT)

    assert await tools.replicas() == 1


@THREE_WAY
async def test_helm_3_reverts_the_count_with_each_upgrade(tools: Tools, upgrade: Upgrade) -> None:
    await upgrade(tools, WITH)
    await tools.autoscale(12)
    await upgrade(tools, WITH.replace("web:1", "web:2"))

    assert await tools.replicas() == 3


@THREE_WAY
async def test_the_remedy_for_helm_3_keeps_the_count(tools: Tools, upgrade: Upgrade) -> None:
    await upgrade(tools, WITH)
    await tools.autoscale(12)
    template = DEPLOYMENT % (block("Helm 3", "yaml").partition("spec:\n")[2], 1)

    await upgrade(tools, template)
    assert await tools.replicas() == 12
    await tools.autoscale(7)
    await upgrade(tools, template.replace("web:1", "web:2"))
    assert await tools.replicas() == 7


@THREE_WAY
@pytest.mark.parametrize("live", [False, True], ids=["the first install", "a live target"])
async def test_the_linter_has_a_template_for_helm_3(tools: Tools, upgrade: Upgrade, *, live: bool) -> None:
    template = DEPLOYMENT % (f"  {commands_of_the_linter()[3]}\n", 1)
    if live:
        await upgrade(tools, WITH)
        await tools.autoscale(12)
    await upgrade(tools, template)

    assert await tools.replicas() == (12 if live else 3)


async def test_the_template_looks_in_the_namespace_of_the_manifest(tools: Tools) -> None:
    """A release may be in another namespace than its objects, where `lookup` finds nothing."""
    manifest = WITH.replace("{name: web}", f"{{name: web, namespace: {tools.kubectl.namespace}}}", 1)
    template = manifest.replace("replicas: 3", commands_of_the_linter(manifest)[3])
    await by_helm_3(tools, manifest)
    await tools.autoscale(12)
    await tools.kubectl("create", "namespace", "releases")
    elsewhere = Helm(Server(tools.kubectl.kubeconfig, "releases"), tools.folder, "helm3")
    code, output = await tools.chart(template, "--take-ownership", by=elsewhere)
    await tools.kubectl("delete", "namespace", "releases", "--wait=false")

    assert (code, await tools.replicas()) == (0, 12), output


async def test_helm_rollback_sets_the_count_of_the_revision(tools: Tools) -> None:
    template = DEPLOYMENT % (f"  {commands_of_the_linter()[3]}\n", 1)
    await by_helm_3(tools, template)
    await tools.autoscale(12)
    await by_helm_3(tools, template.replace("web:1", "web:2"))
    assert await tools.replicas() == 12
    await tools.helm3.succeeds("rollback", "web", "1")

    assert await tools.replicas() == 3


@pytest.mark.parametrize(
    ("manifest", "replicas"),
    [pytest.param(WITHOUT, 1, id="the field goes"), pytest.param(WITH, 3, id="the field stays")],
)
async def test_helm_4_goes_on_with_a_release_of_helm_3_as_helm_3_does(
    tools: Tools, manifest: str, replicas: int
) -> None:
    """Without an option: it applies as the release was applied before."""
    await by_helm_3(tools, WITH)
    await tools.autoscale(12)
    code, output = await tools.chart(manifest)

    assert (code, await tools.replicas()) == (0, replicas), output


async def test_helm_4_conflicts_with_the_autoscaler_and_may_drop_what_it_has_set(tools: Tools) -> None:
    code, output = await tools.chart(WITH)
    assert code == 0, output
    await tools.autoscale(12)
    code, output = await tools.chart(WITH.replace("web:1", "web:2"))
    assert (code, await tools.replicas()) == (1, 12), output
    assert ".spec.replicas" in output

    code, output = await tools.chart(NEXT)
    assert (code, await tools.replicas()) == (0, 12), output


async def test_helm_4_takes_the_target_to_one_if_no_autoscaler_has_set_the_count(tools: Tools) -> None:
    code, output = await tools.chart(WITH)
    assert code == 0, output
    code, output = await tools.chart(WITHOUT)

    assert (code, await tools.replicas()) == (0, 1), output


@pytest.mark.parametrize("apply", [CLIENT, SERVER], ids=["client side", "server side"])
async def test_a_target_at_zero_starts_at_one(tools: Tools, apply: tuple[str, ...]) -> None:
    await tools.kubectl(*apply, stdin=WITH.replace("replicas: 3", "replicas: 0"))
    assert await tools.replicas() == 0
    await tools.kubectl(*apply, stdin=WITHOUT)

    assert await tools.replicas() == 1
