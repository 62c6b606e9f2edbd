"""Clients of other projects take the same steps on the embedded API server, with and without TLS, and on a real one.

`make clients` installs them. A client that is not installed is skipped, unless `OCF_REQUIRE` lists `clients`.
"""

import asyncio
import json
import os
import re
import shutil
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest
import pytest_asyncio

from ocf.embedded import EmbeddedCluster
from ocf.embedded.http import serving, write_kubeconfig
from ocf.objects import Manifest
from ocf.testing.envtest.fixtures import Envtest

PROGRAMS: Final = Path(__file__).parent / "programs"
INSTALLED: Final = Path(__file__).parents[2] / ".clients"
PYTHON: Final = ("kubernetes_asyncio", "lightkube", "kr8s", "pykube")
JAVASCRIPT: Final = ("client_node",)

DEPLOYMENT: Final = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "web"},
    "spec": {
        "replicas": 2,
        "selector": {"matchLabels": {"app": "web"}},
        "template": {
            "metadata": {"labels": {"app": "web"}},
            "spec": {"containers": [{"name": "web", "image": "web:1"}]},
        },
    },
}
SHOPS: Final[Manifest] = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "shops.clients.example.com"},
    "spec": {
        "group": "clients.example.com",
        "scope": "Namespaced",
        "names": {"plural": "shops", "singular": "shop", "kind": "Shop", "listKind": "ShopList"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "properties": {"spec": {"type": "object", "properties": {"size": {"type": "integer"}}}},
                    }
                },
            }
        ],
    },
}
RESULT: Final = {
    "created": {"colour": "red"},
    "duplicate": [409, "AlreadyExists"],
    "missing": [404, "NotFound"],
    "listed": ["settings"],
    "watched": [["MODIFIED", "settings"], ["DELETED", "settings"]],
    "patched": {"colour": "blue", "size": "1"},
    "scaled": 5,
    "custom": {"size": 3},
    "invalid": [422, "Invalid"],
}


@dataclass(frozen=True)
class Server:
    """A server that clients are run against.

    Args:
        kubeconfig: The path of its kubeconfig.
        namespace: An empty namespace.
    """

    kubeconfig: Path
    namespace: str


@pytest_asyncio.fixture(params=["http", "https"])
async def embedded(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Server]:
    cluster = EmbeddedCluster(namespaces=["shop"])
    await cluster.create(SHOPS, field_manager="test")
    async with serving(cluster, tls=request.param == "https") as server:
        write_kubeconfig(server.kubeconfig(), tmp_path / "kubeconfig")
        yield Server(tmp_path / "kubeconfig", "shop")


def command(client: str) -> list[str | Path]:
    """Return the command that runs the program of a client; skip the test if the client is not installed."""
    if client in JAVASCRIPT:
        program = shutil.which("node")
        # The imports of a program are found beside the link to it, where the packages are installed.
        script = INSTALLED / "node" / "programs" / f"run_{client}.mjs"
        if program and script.exists():
            return [program, "--preserve-symlinks", "--preserve-symlinks-main", script]
    elif (python := INSTALLED / "venv" / "bin" / "python").exists():
        return [python, "-W", "ignore", PROGRAMS / f"run_{client}.py"]
    reason = "clients: not installed; `make clients` installs the clients of other projects"
    if "clients" in re.split(r"[,\s]+", os.environ.get("OCF_REQUIRE", "")):
        pytest.fail(f"{client}: {reason} (OCF_REQUIRE requires them)", pytrace=False)
    pytest.skip(reason)


async def run(client: str, server: Server) -> Any:
    """Run the program of a client against a server; return what it prints."""
    environ = {**os.environ, "KUBECONFIG": str(server.kubeconfig), "DEPLOYMENT": json.dumps(DEPLOYMENT)}
    process = await asyncio.create_subprocess_exec(
        *command(client),
        server.namespace,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env=environ,
    )
    output, errors = await asyncio.wait_for(process.communicate(), 300)
    assert process.returncode == 0, f"{client}: {errors.decode()}"
    return json.loads(output)


@pytest.mark.parametrize("client", [*PYTHON, *JAVASCRIPT])
async def test_on_the_embedded_server(client: str, embedded: Server) -> None:
    assert await run(client, embedded) == RESULT


@pytest.mark.parametrize("client", [*PYTHON, *JAVASCRIPT])
async def test_on_a_real_server(client: str, envtest: Envtest) -> None:
    command(client)
    await asyncio.to_thread(envtest.plane.install_crds, SHOPS)
    assert await run(client, Server(envtest.kubeconfig, envtest.namespace)) == RESULT
