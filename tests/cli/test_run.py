"""`ocf run`: the program of an operator's container."""

import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import pytest
from click.testing import CliRunner

from ocf.cli.app import app
from ocf.errors import NotFoundError
from ocf.objects import Manifest, ObjectKey
from ocf_server import EmbeddedCluster
from ocf_server.http import serving, write_kubeconfig
from tests.support import eventually

SHOP: Final = """
from ocf.component import Builder
from ocf.primitives import configmap
from ocf.runtime.crds import CamelModel, CustomResource
from ocf.runtime.operator import Operator, OwnerType


class ShopSpec(CamelModel):
    motto: str = "open"


class Shop(CustomResource[ShopSpec], group="example.com", version="v1"):
    pass


def components(shop):
    return Builder("web", owner=shop.key).with_resource(configmap.Builder({"data": {"motto": shop.spec.motto}})).build()


shops = Operator(name="shops", owner=OwnerType.of(Shop), components=components)
"""
ENDING: Final = """
import ocf.runtime.operator.run
import sys

from run_shop.operator import shops


async def end(*_, **__):
    raise LookupError("no price list")


sys.modules["ocf.runtime.operator.run"].run = end
"""
CORNER: Final[Manifest] = {
    "apiVersion": "example.com/v1",
    "kind": "Shop",
    "metadata": {"name": "corner", "namespace": "default"},
    "spec": {},
}
SETTINGS: Final = ObjectKey("v1", "ConfigMap", "corner", "default")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Create a folder with a package of the operator, as the working directory."""
    (tmp_path / "run_shop").mkdir()
    (tmp_path / "run_shop" / "__init__.py").write_text("")
    (tmp_path / "run_shop" / "operator.py").write_text(SHOP)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "kubeconfig"))
    before = set(sys.modules)
    yield tmp_path
    for name in {*sys.modules} - before:
        if name.startswith("run_"):
            del sys.modules[name]


@asynccontextmanager
async def cluster_of(folder: Path) -> AsyncIterator[EmbeddedCluster]:
    """Serve a cluster with the kind, and write its kubeconfig."""
    from importlib import import_module

    sys.path.insert(0, str(folder))
    cluster = EmbeddedCluster()
    await cluster.apply(import_module("run_shop.operator").Shop.definition(), field_manager="admin")
    async with serving(cluster) as server:
        write_kubeconfig(server.kubeconfig(), folder / "kubeconfig")
        yield cluster


async def start(*arguments: str, **environment: str) -> asyncio.subprocess.Process:
    program, pipe = "from ocf.cli import main\nmain()", asyncio.subprocess.PIPE
    return await asyncio.create_subprocess_exec(
        sys.executable,
        "-c",
        program,
        "run",
        *arguments,
        stdout=pipe,
        stderr=pipe,
        env={**os.environ, "PORT": "0", **environment},
    )


def lines_of(error: bytes) -> list[Mapping[str, Any]]:
    return [json.loads(line) for line in error.decode().splitlines() if line.startswith("{")]


async def test_it_reconciles_until_it_is_stopped(folder: Path) -> None:
    async with cluster_of(folder) as cluster:
        process = await start("run_shop")
        await cluster.create(CORNER, field_manager="user")
        made = await eventually(lambda: cluster.get(SETTINGS), ignore=(NotFoundError,))
        assert made["data"] == {"motto": "open"}
        process.send_signal(signal.SIGTERM)
        output, error = await process.communicate()

    assert (process.returncode, output) == (0, b"")
    logged = [line for line in error.decode().splitlines() if line]
    started = "operator shops reconciles Shop of example.com/v1 in all namespaces, with ocf "
    assert [line["message"].startswith(started) for line in lines_of(error)].count(True) == 1
    assert len(lines_of(error)) == len(logged) > 0, "every line of the log is JSON"


async def test_an_error_that_ends_the_operator_is_logged_with_its_place(folder: Path) -> None:
    """One line of JSON, and a status that restarts the container."""
    (folder / "run_shop" / "ending.py").write_text(ENDING)
    async with cluster_of(folder):
        process = await start("run_shop.ending")
        _, error = await process.communicate()

    assert process.returncode == 2, error
    (line,) = [each for each in lines_of(error) if each["level"] == "critical"]
    assert line["message"] == "operator shops ended with an error"
    assert "LookupError" in str(line["error"])


@pytest.mark.parametrize(
    ("environment", "problem"),
    [
        pytest.param({"PORT": "many"}, "error: PORT must be a port, 0 to 65535, got 'many'", id="a port"),
        pytest.param({"LEADER_ELECTION": "true"}, "error: LEADER_ELECTION needs POD_NAMESPACE", id="a lease"),
        pytest.param({}, "", id="no cluster"),
    ],
)
@pytest.mark.usefixtures("folder")
def test_what_keeps_it_from_starting_is_an_error(
    environment: Mapping[str, str], problem: str, caplog: pytest.LogCaptureFixture
) -> None:
    done = CliRunner().invoke(app, ["run", "run_shop"], env={"POD_NAMESPACE": "", "PORT": "0", **environment})

    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr.startswith(problem)
    assert bool(problem) or "no kubeconfig at " in caplog.text
