"""JobSet's own suite of its controller judges `examples/jobset`: `python -m tests.clients.jobset` runs all of it.

It runs three times: with our controller on a real API server, and with ours and with the original on the embedded one,
without its garbage collector, which the specs play. All of them pass all specs but one.

The suite is built from the Go module of the version in `programs/jobset/go.mod`. Nothing is changed but its set-up:
`programs/jobset/suite_test.go` takes the place of the file of this name, so that the specs run against a server and a
controller that run already. The suite of its webhooks is built beside it, unchanged: envtest starts the server.
Programs and manifests lie in the cache, in a folder named after these sources.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
import sys
import tempfile
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

from ocf.objects import Manifest, load_document
from ocf.testing.envtest.binaries import find_programs
from ocf.testing.envtest.build_plan import build_environment
from ocf.testing.envtest.controlplane import ControlPlane
from ocf.testing.envtest.go_toolchain import Go
from ocf.testing.envtest.versions import PINNED, Machine, cache_folder
from ocf_server import EmbeddedCluster
from ocf_server.http import serving, write_kubeconfig
from scripts.record.e2e_suite.specs import PASSED, name_of, outcome_of
from tests.support import eventually

__all__ = [
    "ORIGINAL",
    "OURS",
    "PASSED",
    "build",
    "definition",
    "is_built",
    "names",
    "original_sources",
    "run_specs",
    "running",
    "webhook_suite",
]

SOURCES: Final = Path(__file__).parent / "programs/jobset"
MODULE: Final = "sigs.k8s.io/jobset"
CONTROLLER: Final = Path("test/integration/controller")
WEBHOOK: Final = Path("test/integration/webhook")
DEFINITION: Final = Path("config/components/crd/bases/jobset.x-k8s.io_jobsets.yaml")
MANIFESTS: Final = (DEFINITION.parent, Path("config/components/webhook"))
"""The folders that the suite of the webhooks reads."""
CHECKOUT: Final = Path(__file__).parents[2]
SKIPPED: Final = "rejects updates"
"""Of the spec that expects a rejection that only JobSet's webhook makes; its own controller does not pass it either."""
SPECS: Final = 64
"""The others, of the version in `programs/jobset/go.mod`."""
AT_ONCE: Final = 8
READY: Final = re.compile(rb'reconciles JobSet|"Starting workers","controller":"jobset"')
"""What the controllers log once they work."""


def _folder(environ: Mapping[str, str]) -> Path:
    digest = sha256(b"".join((SOURCES / name).read_bytes() for name in ("go.mod", "go.sum", "suite_test.go")))
    digest.update(str(WEBHOOK).encode())
    machine = Machine.here()
    name = f"{digest.hexdigest()[:12]}-{machine.system}-{machine.architecture}"
    return cache_folder(environ).with_name("jobset") / name


def _program() -> Path:
    return _folder(os.environ) / "controller.test"


OURS: Final = (sys.executable, "-c", "from ocf.cli import main; main()", "run", "examples.jobset")
ORIGINAL: Final = (str(_program()), "-test.run", "Controller", "-test.timeout", "0")


def is_built(environ: Mapping[str, str] = os.environ) -> bool:
    """Return whether the program of the current sources is in the cache."""
    return _folder(environ).exists()


def definition() -> Manifest:
    """Return the definition of JobSet, from the module."""
    return load_document((_folder(os.environ) / DEFINITION).read_text(encoding="utf-8"))


def webhook_suite(folder: Path) -> tuple[Path, Path]:
    """Return the program of the suite of the webhooks, and where in a folder to run it: its manifests are linked."""
    (folder / MANIFESTS[0].parts[0]).symlink_to(_folder(os.environ) / MANIFESTS[0].parts[0])
    (folder / WEBHOOK).mkdir(parents=True)
    return _folder(os.environ) / f"{WEBHOOK.name}.test", folder / WEBHOOK


def build(environ: Mapping[str, str] = os.environ) -> None:
    """Build the suites unless they are in the cache.

    Args:
        environ: The environment variables.

    Raises:
        ConfigError: If Go is too old or fails.
    """
    folder = _folder(environ)
    if folder.exists():
        return
    shutil.rmtree(folder.parent, ignore_errors=True)
    folder.parent.mkdir(parents=True)
    go = Go(build_environment(environ, Machine.here()))
    go.check(PINNED.go, SOURCES)
    module = json.loads("\n".join(go.run(["mod", "download", "-json", MODULE], SOURCES)))
    with tempfile.TemporaryDirectory(dir=folder.parent) as scratch:
        source, made = Path(scratch, "source"), Path(scratch, "made")
        # Go replaces no file of its module cache, and what is copied from there is read-only.
        shutil.copytree(module["Dir"], source, copy_function=shutil.copyfile)
        for each in (source, *(path for path in source.rglob("*") if path.is_dir())):
            each.chmod(0o755)
        shutil.copyfile(SOURCES / "suite_test.go", source / CONTROLLER / "suite_test.go")
        made.mkdir()
        packages = [f"./{package}" for package in (CONTROLLER, WEBHOOK)]
        go.run(["test", "-c", "-trimpath", "-ldflags", "-s -w", "-o", f"{made}{os.sep}", *packages], source)
        for manifests in MANIFESTS:
            shutil.copytree(source / manifests, made / manifests)
        made.rename(folder)


def original_sources() -> list[Path]:
    """Return the files of the original's controllers, from the module, without their tests and definitions of types."""
    go = Go(build_environment(os.environ, Machine.here()))
    module = json.loads("\n".join(go.run(["mod", "download", "-json", MODULE], SOURCES)))
    folder = Path(module["Dir"], "pkg/controllers")
    return sorted(path for path in folder.glob("*.go") if not path.stem.endswith("_test"))


async def _ginkgo(kubeconfig: Path, **flags: str) -> list[Any]:
    """Run the program of the specs; return the reports of those that were not skipped."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder, "report.json")
        given = {"json-report": str(report), "silence-skips": "true", "skip": SKIPPED, **flags}
        options = [f"-ginkgo.{name.replace('_', '-')}={value}" for name, value in given.items()]
        process = await asyncio.create_subprocess_exec(
            _program(),
            *("-test.run", "Specs", "-test.timeout", "0", *options),
            cwd=folder,
            # Where the suite names no time limit, Gomega's is a second, which a busy machine misses.
            env={"GOMEGA_DEFAULT_EVENTUALLY_TIMEOUT": "10s", **os.environ, "KUBECONFIG": str(kubeconfig)},
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.DEVNULL,
        )
        try:
            await process.wait()
        finally:
            if process.returncode is None:
                process.kill()
        return _read(report)


def _read(report: Path) -> list[Any]:
    (suite,) = json.loads(report.read_text(encoding="utf-8"))
    return [one for one in suite["SpecReports"] if one["LeafNodeType"] == "It" and one["State"] != "skipped"]


async def names(kubeconfig: Path, focus: str = "") -> list[str]:
    """Return the names of the specs that a regular expression selects."""
    return [name_of(one) for one in await _ginkgo(kubeconfig, dry_run="true", focus=focus)]


async def run_specs(kubeconfig: Path, specs: Sequence[str]) -> dict[str, str]:
    """Run specs, a few at once: most of their time they wait. Those that fail run again, alone.

    A busy machine misses time limits: a controller that sees its own write late conflicts with it, and waits longer and
    longer between its attempts.

    Args:
        kubeconfig: The path of the kubeconfig of the server.
        specs: The names of the specs.

    Returns:
        `passed` or the failure of each spec, by name.
    """
    found = await _run(kubeconfig, specs, AT_ONCE)
    failed = [name for name, result in found.items() if result != PASSED]
    sys.stdout.writelines(f"again, alone: {name}: {found[name]}\n" for name in failed)
    return found | await _run(kubeconfig, failed, at_once=1)


async def _run(kubeconfig: Path, specs: Sequence[str], at_once: int) -> dict[str, str]:
    parts = [part for start in range(at_once) if (part := specs[start::at_once])]
    focused = [f"({'|'.join(map(re.escape, part))})$" for part in parts]
    reports = await asyncio.gather(*(_ginkgo(kubeconfig, focus=focus) for focus in focused))
    found = {name_of(one): outcome_of(one).result for part in reports for one in part}
    return {name: found.get(name, "not run") for name in specs}


@asynccontextmanager
async def running(controller: Sequence[str], kubeconfig: Path, log: Path) -> AsyncIterator[int]:
    """Run a controller until the block ends, which is entered once it works; provide its process id."""
    given = {"KUBECONFIG": str(kubeconfig), "PYTHONPATH": str(CHECKOUT), "PORT": "0"}
    with log.open("wb") as output:
        process = await asyncio.create_subprocess_exec(
            *controller, cwd=CHECKOUT, env={**os.environ, **given}, stdout=output, stderr=output
        )
        try:

            async def is_ready() -> bool:
                return READY.search(_bytes(log)) is not None

            await eventually(is_ready)
            yield process.pid
        finally:
            if process.returncode is None:
                process.terminate()
                await process.wait()


def _bytes(path: Path) -> bytes:
    return path.read_bytes()


@asynccontextmanager
async def _embedded(folder: Path) -> AsyncIterator[Path]:
    """Serve an embedded cluster that knows JobSets, without a garbage collector; provide its kubeconfig."""
    cluster = EmbeddedCluster(collect=False)
    await cluster.create(definition(), field_manager="test")
    cluster.compact()  # a real API server has no events of version 1 either
    async with serving(cluster) as server:
        write_kubeconfig(server.kubeconfig(), folder / "kubeconfig")
        yield folder / "kubeconfig"


async def _passes(title: str, controller: Sequence[str], kubeconfig: Path, folder: Path) -> bool:
    """Run all specs with a controller, and print those that fail; return whether there are none."""
    async with running(controller, kubeconfig, folder / "log"):
        found = await run_specs(kubeconfig, await names(kubeconfig))
    failed = {name: result for name, result in found.items() if result != PASSED}
    sys.stdout.writelines(f"{name}: {result}\n" for name, result in failed.items())
    sys.stdout.write(f"{title}: {len(found) - len(failed)} of {SPECS} specs of JobSet passed\n")
    return len(found) == SPECS and not failed


async def _main() -> int:
    build()
    programs = find_programs()
    if programs is None:
        sys.stderr.write("etcd and kube-apiserver are missing: make envtest builds them\n")
        return 1
    passed = []
    with ControlPlane(programs) as plane, tempfile.TemporaryDirectory() as scratch:
        plane.install_crds(definition())
        passed.append(await _passes("ours, real API server", OURS, plane.kubeconfig, Path(scratch)))
    for title, controller in (("ours", OURS), ("the original", ORIGINAL)):
        with tempfile.TemporaryDirectory() as scratch:
            async with _embedded(Path(scratch)) as kubeconfig:
                passed.append(await _passes(f"{title}, embedded cluster", controller, kubeconfig, Path(scratch)))
    return 0 if all(passed) else 1


if __name__ == "__main__":
    sys.exit(asyncio.run(_main()))
