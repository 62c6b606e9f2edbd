"""Latency of a webhook of Pods that does nothing: ours, that of controller-runtime in Go, and that of kopf.

Eight clients send the same AdmissionReview, each over a connection of its own, as API servers do; the client is a
program in Go, so that it is not slower than what it measures. Each server is a process of its own; that
in Go gives its handler the Pod as a struct. Without the programs of `make clients`, the rows are left out.
"""

import asyncio
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any, Final

from benchmarks.figures import Count, Suite
from benchmarks.programs import running
from benchmarks.webhook_servers import PATHS
from ocf.objects import Manifest
from ocf.runtime.admission.key_pairs import issue
from ocf.testing.envtest.startup import free_port
from ocf_server import EmbeddedCluster
from ocf_server.http import serving, write_kubeconfig
from tests.clients.go_programs import program

__all__ = ["small_suite", "suite"]

_CLIENTS: Final = 8
_CALLS: Final = 4_000
_FEW: Final = 80
_HOST: Final = "127.0.0.1"
_SERVERS: Final = ("go", "kopf", "ocf", "model", "reconciling")
_NAMES: Final = {
    "go": "controller-runtime",
    "kopf": "kopf",
    "ocf": "ocf",
    "model": "ocf, which reads the Pod as a model",
    "reconciling": "ocf, which reconciles 25/s",
}
_STARTED: Final = 60.0  # seconds
_POD: Final[Manifest] = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "web-0", "namespace": "shop", "labels": {"app": "web"}, "annotations": {"team": "shop"}},
    "spec": {
        "containers": [
            {
                "name": name,
                "image": f"registry.example.com/{name}:1.2.3",
                "env": [{"name": f"VARIABLE_{number}", "value": str(number)} for number in range(10)],
                "ports": [{"name": "http", "containerPort": 8080, "protocol": "TCP"}],
                "resources": {"requests": {"cpu": "100m", "memory": "64Mi"}, "limits": {"memory": "128Mi"}},
                "readinessProbe": {"httpGet": {"path": "/ready", "port": "http"}, "periodSeconds": 10},
                "volumeMounts": [{"name": "data", "mountPath": "/data"}],
            }
            for name in ("web", "proxy")
        ],
        "volumes": [{"name": "data", "emptyDir": {}}],
        "serviceAccountName": "web",
    },
}


def _review() -> Manifest:
    kind, resource = {"group": "", "version": "v1", "kind": "Pod"}, {"group": "", "version": "v1", "resource": "pods"}
    request = {
        "uid": "705ab4f5-6393-11e8-b7cc-42010a800002",
        "kind": kind,
        "resource": resource,
        "requestKind": kind,
        "requestResource": resource,
        "name": "web-0",
        "namespace": "shop",
        "operation": "CREATE",
        "userInfo": {"username": "alice", "groups": ["system:authenticated"]},
        "object": _POD,
        "oldObject": None,
        "dryRun": False,
        "options": {"apiVersion": "meta.k8s.io/v1", "kind": "CreateOptions"},
    }
    return {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}


@asynccontextmanager
async def _started(which: str, go: Path, folder: Path) -> AsyncIterator[str]:
    """Run a server for as long as the block runs; yield the URL of its webhook."""
    port = free_port()
    if which == "go":
        process = await asyncio.create_subprocess_exec(
            go, "serve", _HOST, str(port), folder, stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.DEVNULL
        )
        try:
            await _listening(port)
            yield f"https://{_HOST}:{port}/validate"
        finally:
            process.kill()
            await process.wait()
        return
    async with serving(EmbeddedCluster()) as server:
        kubeconfig = folder / "kubeconfig"
        write_kubeconfig(server.kubeconfig(), kubeconfig)
        arguments = ["-m", "benchmarks.webhook_servers", which, str(port), str(folder)]
        async with running(arguments, kubeconfig, {}):
            await _listening(port)
            yield f"https://{_HOST}:{port}{PATHS[which]}"


async def _listening(port: int) -> None:
    ends = time.monotonic() + _STARTED
    while time.monotonic() < ends:
        try:
            _, writer = await asyncio.open_connection(_HOST, port)
        except OSError:
            await asyncio.sleep(0.05)
        else:
            writer.close()
            return
    raise RuntimeError(f"no webhook server listens on port {port} within {_STARTED:g} seconds")


async def _measured(which: str, go: Path, calls: int) -> Mapping[str, int]:
    """Return the latencies of a server in nanoseconds, and its throughput."""
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        pair = issue([_HOST], datetime.now(UTC), timedelta(days=1))
        (folder / "tls.crt").write_bytes(pair.chain)
        (folder / "tls.key").write_bytes(pair.key)
        (folder / "review.json").write_text(json.dumps(_review()), encoding="utf-8")
        async with _started(which, go, folder) as url:
            arguments = ["load", url, str(folder / "review.json"), str(_CLIENTS), str(calls)]
            load = await asyncio.create_subprocess_exec(go, *arguments, stdout=subprocess.PIPE)
            printed, _ = await load.communicate()
    found: dict[str, int] = json.loads(printed)
    return found


def _suite(calls: int) -> Suite:
    go = program("admission")
    if go is None:
        print("admitting is left out: make clients builds its programs", file=sys.stderr)
        return []

    @cache
    def measured(which: str) -> Mapping[str, int]:
        assert go is not None
        return asyncio.run(_measured(which, go, calls))

    def row(which: str, figure: str, what: str, unit: int) -> Count:
        def value() -> int:
            return measured(which)[figure] // unit

        against = "" if which == "go" else f"admitting.go.{figure}"
        name = f"admitting.{figure}" if which == "ocf" else f"admitting.{which}.{figure}"
        return Count(name=name, what=f"{what}: {_NAMES[which]}", value=value, against=against)

    figures: dict[str, Any] = {
        "median": ("µs of a review of a Pod from one of 8 clients, median", 1_000),
        "percent99": ("µs of that, 99th percentile", 1_000),
        "throughput": ("reviews a second", 1),
    }
    return [row(which, figure, *about) for figure, about in figures.items() for which in _SERVERS]


@contextmanager
def suite() -> Iterator[Suite]:
    """Give the figures."""
    yield _suite(_CALLS)


@contextmanager
def small_suite() -> Iterator[Suite]:
    """Give the same figures of few calls, to check the benchmark itself."""
    yield _suite(_FEW)
