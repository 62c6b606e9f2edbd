"""The limit of open files is raised for the process, kept for its children, and reported when it is reached.

The limit of a process cannot be lowered and raised again at will, so each test runs a program of its own.
"""

from __future__ import annotations

import asyncio
import json
import sys
from asyncio.subprocess import PIPE
from pathlib import Path
from typing import Any, Final

import pytest

from ocf_server import EmbeddedCluster
from ocf_server.http import serving, write_kubeconfig

LIMIT: Final = """
import asyncio, json, resource, sys
resource.setrlimit(resource.RLIMIT_NOFILE, tuple(map(int, sys.argv[1:3])))
def soft():
    return resource.getrlimit(resource.RLIMIT_NOFILE)[0]
"""
RAISE: Final = """
from ocf.cluster.client.rest_config import ExecConfig
from ocf.cluster.client.exec_plugin import run_plugin
from ocf.concepts.open_files import raise_open_files
api = "client.authentication.k8s.io/v1"
answer = '{"kind": "ExecCredential", "apiVersion": "%s", "status": {"token": "%s"}}'
plugin = ExecConfig(command="sh", api_version=api, args=("-c", "printf '%s' %s $(ulimit -S -n)" % (answer, api)))
def token():
    return int(asyncio.run(run_plugin(plugin)).token)
found = [soft(), token()]
for _ in range(2):
    raise_open_files()
    found += [soft(), token()]
print(json.dumps(found))
"""
REFUSED: Final = """
from ocf.concepts.open_files import raise_open_files
def setrlimit(kind, limits, call=resource.setrlimit):
    if limits[0] > int(sys.argv[3]):
        raise ValueError("not allowed to raise maximum limit")
    call(kind, limits)
resource.setrlimit = setrlimit
raise_open_files()
print(soft())
"""
MAIN: Final = """
import os
from ocf.component import ReconcileContext
from ocf.runtime.operator import Listen, ManagerOptions, Operator, OwnerType, main
async def reporting(context, owner, outcome):
    print(soft(), flush=True)
    os.kill(os.getpid(), 15)
shops = Operator(name="shops", owner=OwnerType("v1", "ConfigMap"), components=lambda shop: (), report=reporting)
if __name__ == "__main__":
    main(shops, options=ManagerOptions(listen=None))
"""
EXHAUST: Final = """
from ocf.cluster.cache import CachedCluster
from ocf.cluster.client import ApiServerCluster
async def main():
    async with await ApiServerCluster.connect(sys.argv[3]) as cluster, CachedCluster(cluster) as cached:
        starting = [asyncio.create_task(cached.cache("v1", "ConfigMap", namespace=f"n{n}")) for n in range(80)]
        await asyncio.wait(starting)
        print(json.dumps([cached.healthy, sorted({text.partition(": no answer: ")[2] for text in cached.problems})]))
asyncio.run(main())
"""


async def _output(program: str, *arguments: str, **environment: str) -> Any:
    command = [sys.executable, "-c", LIMIT + program, *arguments]
    process = await asyncio.create_subprocess_exec(*command, stdout=PIPE, stderr=PIPE, env=environment or None)
    output, errors = await asyncio.wait_for(process.communicate(), 600)
    assert output, errors.decode()
    return json.loads(output)


async def test_the_soft_limit_becomes_the_hard_one_and_a_credential_plugin_keeps_the_first() -> None:
    """Also when it is raised twice, as by a command that runs an operator."""
    assert await _output(RAISE, "128", "512") == [128, 128, 512, 128, 512, 128]


async def test_a_limit_that_cannot_be_raised_stays() -> None:
    assert await _output(RAISE, "256", "256") == [256] * 6


@pytest.mark.parametrize(
    ("most", "raised"),
    [
        pytest.param("16000", 10_240, id="macOS has a lower limit than the hard one"),
        pytest.param("300", 256, id="none at all is permitted"),
    ],
)
async def test_a_platform_that_permits_less_gets_what_it_permits(most: str, raised: int) -> None:
    assert await _output(REFUSED, "256", "20000", most) == raised


@pytest.fixture
async def kubeconfig(tmp_path: Path) -> Any:
    cluster = EmbeddedCluster(namespaces=["town"])
    manifest = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "corner", "namespace": "town"}}
    await cluster.create(manifest, field_manager="user")
    path = tmp_path / "kubeconfig"
    async with serving(cluster) as server:
        write_kubeconfig(server.kubeconfig(), path)
        yield path


async def test_the_process_of_an_operator_raises_its_limit(kubeconfig: Path) -> None:
    assert await _output(MAIN, "128", "512", KUBECONFIG=str(kubeconfig)) == 512


async def test_a_cache_that_runs_out_of_files_is_not_healthy_and_names_the_limit(kubeconfig: Path) -> None:
    """https://github.com/watchexec/watchexec/issues/251: an error without the limit does not help."""
    healthy, problems = await _output(EXHAUST, "64", "64", str(kubeconfig))

    advice = "raise the limit of the process (ulimit -n), or watch fewer kinds and namespaces"
    assert not healthy
    assert problems == [f"too many open files: the limit is 64; {advice}"]
