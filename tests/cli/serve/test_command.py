"""`ocf serve` as a process: its output, its files, and how it stops."""

import asyncio
import json
import os
import signal
import socket
import sys
from base64 import b64decode
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from click.testing import CliRunner

from ocf.cli.app import app

SETTINGS = "{apiVersion: v1, kind: ConfigMap, metadata: {name: settings}, data: {colour: red}}"
PATH = "/api/v1/namespaces/default/configmaps"


@dataclass
class Running:
    """The process and its start message."""

    process: asyncio.subprocess.Process
    started: dict[str, Any]
    session: aiohttp.ClientSession

    async def request(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        async with self.session.request(method, self.started["url"] + path, json=body) as answer:
            return answer.status, await answer.json(content_type=None)


def cluster_of(kubeconfig: Path) -> dict[str, str]:
    found: dict[str, str] = json.loads(kubeconfig.read_text())["clusters"][0]["cluster"]
    return found


def read_kubeconfig(kubeconfig: Path) -> tuple[str, int]:
    return cluster_of(kubeconfig)["server"], kubeconfig.stat().st_mode & 0o777


def files(folder: Path, pattern: str = "*") -> list[str]:
    return [path.name for path in folder.glob(pattern)]


async def start(*arguments: str) -> asyncio.subprocess.Process:
    program = "from ocf.cli import main\nmain()"
    pipe = asyncio.subprocess.PIPE
    return await asyncio.create_subprocess_exec(
        sys.executable, "-c", program, "serve", *arguments, stdout=pipe, stderr=pipe, env=dict(os.environ)
    )


@asynccontextmanager
async def serve(*arguments: str) -> AsyncIterator[Running]:
    process = await start("--output", "json", *arguments)
    try:
        assert process.stdout is not None
        started = json.loads(await process.stdout.readline())
        async with aiohttp.ClientSession() as session:
            yield Running(process, started, session)
    finally:
        if process.returncode is None:
            process.terminate()
        await process.communicate()


def error_of(*arguments: str) -> str:
    """Run the command in this process: it ends at once."""
    done = CliRunner().invoke(app, ["serve", *arguments])
    assert (done.exit_code, done.stdout) == (2, "")
    return done.stderr


async def test_it_serves_with_tls() -> None:
    async with serve("--tls") as running:
        cluster = cluster_of(Path(running.started["kubeconfig"]))
    assert cluster["server"] == running.started["url"]
    assert running.started["url"].startswith("https://127.0.0.1:")
    assert b64decode(cluster["certificate-authority-data"]).startswith(b"-----BEGIN CERTIFICATE-----")


@pytest.mark.parametrize(
    ("arguments", "status"),
    [((), 200), (("--authorization-mode", "AlwaysAllow"), 200), (("--authorization-mode", "RBAC"), 403)],
)
async def test_roles_are_evaluated_on_request(arguments: tuple[str, ...], status: int) -> None:
    async with serve(*arguments) as running:
        running.session.headers["Impersonate-User"] = "alice"
        assert (await running.request("GET", PATH))[0] == status


async def test_it_behaves_as_the_release_and_the_gates_say() -> None:
    gates = ("--feature-gates", "HPAScaleToZero=true,EnvFiles=false")
    async with serve("--kubernetes-version", "1.34", "--feature-gates", "PodLevelResources=false") as running:
        assert (await running.request("GET", "/version"))[1]["gitVersion"] == "v1.34.0"
    async with serve(*gates) as running:
        assert (await running.request("GET", "/version"))[1]["minor"] == "36"


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (("--kubernetes-version", "1.29"), "Kubernetes 1.29 is not known to the embedded API server, must be 1.30 to"),
        (("--feature-gates", "EnvFile=true"), 'no feature gate "EnvFile": did you mean EnvFiles?'),
        (("--feature-gates", "EnvFiles"), 'invalid feature gate "EnvFiles": write NAME=true'),
    ],
)
def test_a_release_or_gate_that_is_not_known_is_an_error(arguments: tuple[str, ...], problem: str) -> None:
    assert problem in error_of(*arguments)


def test_an_authorization_mode_that_is_not_supported_is_an_error() -> None:
    assert "must be one of AlwaysAllow, RBAC, got 'ABAC'" in error_of("--authorization-mode", "ABAC")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_it_serves_until_a_signal_and_removes_its_files(number: signal.Signals) -> None:
    async with serve() as running:
        kubeconfig = Path(running.started["kubeconfig"])
        server, mode = read_kubeconfig(kubeconfig)
        assert (server, mode) == (running.started["url"], 0o600)
        assert (await running.request("GET", "/version"))[0] == 200
        running.process.send_signal(number)
        out, err = await running.process.communicate()
    assert (running.process.returncode, out, err) == (0, b"", b"")
    assert files(kubeconfig.parent) == []


async def test_manifests_are_loaded_and_the_kubeconfig_is_written(tmp_path: Path) -> None:
    file, kubeconfig = tmp_path / "settings.yaml", tmp_path / "kubeconfig"
    file.write_text(SETTINGS)
    async with serve("--load", str(file), "--kubeconfig", str(kubeconfig)) as running:
        assert running.started["kubeconfig"] == str(kubeconfig)
        _, found = await running.request("GET", f"{PATH}/settings")
        assert found["data"] == {"colour": "red"}
    assert files(tmp_path, "*kubeconfig*") == ["kubeconfig"]


async def test_faults_are_set_by_option_and_by_request() -> None:
    """A fault affects the request that it names; requests can list, replace and remove the faults."""
    async with serve("--fault", "conflict,kind=ConfigMap,verbs=create") as running:
        manifest = {"metadata": {"name": "a"}}
        assert (await running.request("POST", PATH, manifest))[0] == 409
        assert (await running.request("POST", PATH, manifest))[0] == 201
        _, seen = await running.request("GET", "/ocf/faults")
        assert seen["injected"] == ["Refusal: create v1/ConfigMap/default/a by Python"]
        await running.request("PUT", "/ocf/faults", {"faults": ["server-error,code=503,times=forever"]})
        assert (await running.request("GET", f"{PATH}/a"))[0] == 503
        await running.request("DELETE", "/ocf/faults")
        assert (await running.request("GET", f"{PATH}/a"))[0] == 200
        status, error = await running.request("PUT", "/ocf/faults", {"faults": ["conflit"]})
        assert (status, error["reason"]) == (400, "BadRequest")
        assert 'unknown fault "conflit"' in error["message"]


async def test_the_requests_of_the_server_are_counted() -> None:
    async with serve() as running:
        await running.request("POST", PATH, {"metadata": {"name": "a"}})
        _, before = await running.request("GET", "/ocf/requests")
        assert (before["reads"], before["writes"], before["changes"]) == (0, 1, 1)
        assert before["last"] == ["create v1/ConfigMap/default/a by Python: 200"]
        _, after = await running.request("DELETE", "/ocf/requests")
        assert (after["writes"], after["last"]) == (0, [])


async def test_a_compaction_ends_older_watches() -> None:
    async with serve() as running:
        await running.request("POST", PATH, {"metadata": {"name": "a"}})
        await running.request("POST", "/ocf/compact")
        async with running.session.get(f"{running.started['url']}{PATH}?watch=1&resourceVersion=1") as answer:
            event = json.loads(await answer.content.readline())
        assert (event["type"], event["object"]["code"]) == ("ERROR", 410)


def test_an_error_at_start_is_one_line(tmp_path: Path) -> None:
    broken = tmp_path / "broken.yaml"
    broken.write_text("a: [")
    assert error_of("--load", str(tmp_path / "none")) == (
        f"error: {tmp_path / 'none'}: cannot be read: No such file or directory\n"
    )
    assert error_of("--load", str(broken)).startswith(f"error: {broken}: line ")
    assert "error: unknown fault" in error_of("--fault", "conflit")
    assert "error: --nodes has no effect without --controllers" in error_of("--nodes", "2")
    assert error_of("--kubeconfig", str(tmp_path / "none" / "config")) == (
        f"error: kubeconfig {tmp_path / 'none' / 'config'} cannot be written: No such file or directory; "
        "choose a file in an existing folder that you can write to\n"
    )
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        assert error_of("--port", port) == (
            f"error: API server: cannot listen on 127.0.0.1:{port}: Address already in use; "
            "choose another port, or 0 for a free one\n"
        )


async def test_the_built_in_controllers_run_on_request() -> None:
    spec = {"selector": {"matchLabels": {"app": "web"}}, "replicas": 2}
    container = {"name": "web", "image": "web:1"}
    template = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [container]}}
    web = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}}
    path = "/apis/apps/v1/namespaces/default/deployments"
    async with serve("--controllers", "all", "--nodes", "2", "--ready-after", "1ms") as running:
        code, _ = await running.request("POST", path, {**web, "spec": {**spec, "template": template}})
        assert code == 201
        async with running.session.get(f"{running.started['url']}{path}?watch=1") as answer, asyncio.timeout(600):
            async for line in answer.content:
                if json.loads(line)["object"]["status"].get("availableReplicas") == 2:
                    break
        _, nodes = await running.request("GET", "/api/v1/nodes")
    assert [node["metadata"]["name"] for node in nodes["items"]] == ["ocf-node-1", "ocf-node-2"]
