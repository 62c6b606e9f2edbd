"""The HPA controller's page about three programs on one machine: its commands scale the workload."""

import asyncio
import os
import re
import shlex
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Final

import pytest

from ocf.cluster import Cluster, WatchOptions
from ocf.cluster.client import ApiServerCluster
from ocf.objects import Manifest, ObjectKey
from ocf.objects.paths import get_field

pytest.importorskip("trustme")

PAGE: Final = Path(__file__).parents[2] / "docs" / "autoscaling" / "hpa-controller.md"
SECTION: Final = "## Try it without a cluster"
OCF: Final = (sys.executable, "-c", "from ocf.cli import main\nmain()")
DEPLOYMENT: Final = ObjectKey("apps/v1", "Deployment", "web", "default")
AUTOSCALER: Final = ObjectKey("autoscaling/v2", "HorizontalPodAutoscaler", "web", "default")


def blocks(language: str) -> list[str]:
    section = PAGE.read_text(encoding="utf-8").partition(SECTION)[2].partition("\n## ")[0]
    return re.findall(rf"^```{language}\n(.*?)^```$", section, re.MULTILINE | re.DOTALL)


@asynccontextmanager
async def program(command: str, folder: Path) -> AsyncIterator[asyncio.subprocess.Process]:
    first, *rest = shlex.split(command)
    words = (*OCF, *rest) if first == "ocf" else (sys.executable, *rest)
    pipe, environment = asyncio.subprocess.PIPE, {**os.environ, "PYTHONPATH": str(PAGE.parents[1])}
    process = await asyncio.create_subprocess_exec(*words, cwd=folder, env=environment, stdout=pipe)
    try:
        yield process
    finally:
        process.terminate()
        await process.communicate()


async def reached(cluster: Cluster, key: ObjectKey, is_wanted: Callable[[Manifest], bool]) -> Manifest:
    found = await cluster.list(key.api_version, key.kind)
    latest = next(one for one in found.items if ObjectKey.of(one) == key)
    changes = cluster.watch(key.api_version, key.kind, WatchOptions(resource_version=found.resource_version))
    async with asyncio.timeout(600):
        while not is_wanted(latest):
            latest = (await anext(changes)).object
    return latest


@pytest.mark.long
async def test_the_commands_scale_the_workload_to_the_load(tmp_path: Path) -> None:
    (tmp_path / "web.yaml").write_text(blocks("yaml")[0])
    (tmp_path / "metrics.py").write_text(blocks("python")[0])
    serve, *others = blocks("sh")[0].replace(" \\\n  ", " ").splitlines()
    async with AsyncExitStack() as stack:
        server = await stack.enter_async_context(program(serve, tmp_path))
        assert server.stdout is not None
        await server.stdout.readline()
        for command in others:
            await stack.enter_async_context(program(command, tmp_path))
        cluster = await stack.enter_async_context(await ApiServerCluster.connect(tmp_path / "kubeconfig"))
        web = await reached(cluster, DEPLOYMENT, lambda live: get_field(live, ("status", "readyReplicas")) == 4)
        hpa = await reached(cluster, AUTOSCALER, lambda live: get_field(live, ("status", "currentReplicas")) == 4)
    assert web["spec"]["replicas"] == 4
    assert {each["type"]: each["status"] for each in hpa["status"]["conditions"]}["ScalingActive"] == "True"
