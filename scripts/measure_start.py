"""Measure the way of docs/start/new.md, from `pip install` of the wheel to an operator whose resource is ready.

    python -m scripts.measure_start

Four steps are timed, in a fresh virtual environment: the installation of the wheel, `ocf new operator`, the tests of
the project, and `ocf dev` until its resource has the condition Ready. CPU seconds are those of all processes of a step,
so they show what it takes on a busy machine, too.
"""

import asyncio
import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
import time
import venv
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ocf.cluster import ListOptions, WatchOptions
from ocf.cluster.client import ApiServerCluster
from ocf.objects import Manifest

ROOT: Final = Path(__file__).parents[1]
_READY_SECONDS: Final = 300
_KIND: Final = ("example.com/v1alpha1", "Shop")
_NAMESPACE: Final = "default"


@dataclass(frozen=True, slots=True)
class Step:
    """A measured step.

    Args:
        name: Its command.
        wall: Seconds until it ended.
        cpu: CPU seconds of all its processes.
    """

    name: str
    wall: float
    cpu: float


def measured(name: str, body: Callable[[], None]) -> Step:
    """Measure a step, whose processes have all ended when it returns."""
    began, used = time.monotonic(), _cpu_of_children()
    body()
    step = Step(name, time.monotonic() - began, _cpu_of_children() - used)
    print(f"{step.name}: {step.wall:.0f} s, of these {step.cpu:.0f} s of CPU", flush=True)
    return step


def _cpu_of_children() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def _ready(environ: dict[str, str], project: Path) -> None:
    """Run the operator until the resource of the sample is ready."""
    command = ["ocf", "dev", "shop", "--controllers", "all", "--apply", "samples/shop.yaml", "--output", "json"]
    with subprocess.Popen(command, cwd=project, env=environ, stdout=subprocess.PIPE, text=True) as process:  # noqa: S603
        try:
            started = json.loads(process.stdout.readline() if process.stdout else "")
            asyncio.run(_until_ready(started["kubeconfig"]))
        finally:
            process.send_signal(signal.SIGINT)


async def _until_ready(kubeconfig: str) -> None:
    async with asyncio.timeout(_READY_SECONDS), await ApiServerCluster.connect(kubeconfig) as cluster:
        found = await cluster.list(*_KIND, ListOptions(namespace=_NAMESPACE))
        if any(map(_is_ready, found.items)):
            return
        options = WatchOptions(namespace=_NAMESPACE, resource_version=found.resource_version)
        async for event in cluster.watch(*_KIND, options):
            if _is_ready(event.object):
                return


def _is_ready(owner: Manifest) -> bool:
    conditions = (owner.get("status") or {}).get("conditions") or []
    return any((each["type"], each["status"]) == ("Ready", "True") for each in conditions)


def main() -> int:
    """Measure all steps, and print their sum."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        build = [sys.executable, "-m", "pip", "--quiet", "wheel", "--no-deps", "--wheel-dir", str(folder), str(ROOT)]
        subprocess.run(build, check=True)  # noqa: S603 (our own)
        wheel = next(folder.glob("*.whl"))
        venv.create(folder / "environment", with_pip=True)
        binaries = folder / "environment" / "bin"
        path = f"{binaries}{os.pathsep}{os.environ['PATH']}"
        environ = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "PYTEST"))}
        environ["PATH"] = path

        def run(*command: str, cwd: Path = folder) -> None:
            subprocess.run([binaries / command[0], *command[1:]], cwd=cwd, env=environ, check=True)  # noqa: S603

        project = folder / "shop"
        steps = [
            measured("pip install", lambda: run("pip", "install", "--quiet", f"{wheel}[new,testing]")),
            measured("ocf new operator shop", lambda: run("ocf", "new", "operator", "shop")),
            measured("python -m pytest", lambda: run("python", "-m", "pytest", "-q", cwd=project)),
            measured("ocf dev shop, until Ready", lambda: _ready(environ, project)),
        ]
    print(f"together: {sum(step.wall for step in steps):.0f} s, {sum(step.cpu for step in steps):.0f} s of CPU")
    return 0


if __name__ == "__main__":
    sys.exit(main())
