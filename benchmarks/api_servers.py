"""API servers under measurement: the embedded one and a real one, each a process, with the same plain client."""

import asyncio
import json
import ssl
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

import aiohttp
import yaml

from benchmarks.autoscaler import NAMESPACE
from benchmarks.programs import resident_memory
from ocf.objects import Manifest
from ocf.testing.envtest import ControlPlane

__all__ = ["APPLY", "KINDS", "MAPS", "ApiServer", "config_map", "elapsed", "fill", "start_embedded", "start_real"]

_JSON: Final = {"Content-Type": "application/json", "Accept": "application/json", "Accept-Encoding": "identity"}
APPLY: Final = {**_JSON, "Content-Type": "application/apply-patch+yaml"}
"""Headers of a server-side apply."""
_WIDGETS: Final = "widgets.benchmark.example.com"


def config_map(number: int) -> Manifest:
    """Return a ConfigMap of usual size."""
    return {**_head("v1", "ConfigMap", number), "data": {"config.yaml": "key: value\n" * 40, "mode": "quiet"}}


def _pod(number: int) -> Manifest:
    container = {
        "name": "web",
        "image": "registry.example.com/web:1.2.3",
        "ports": [{"containerPort": 8080, "name": "http"}],
        "env": [{"name": f"SETTING_{at}", "value": "x" * 20} for at in range(8)],
        "resources": {"requests": {"cpu": "100m", "memory": "128Mi"}},
        "readinessProbe": {"httpGet": {"path": "/healthz", "port": 8080}},
        "volumeMounts": [{"name": "data", "mountPath": "/data"}],
    }
    spec = {"containers": [container], "volumes": [{"name": "data", "emptyDir": {}}]}
    return {**_head("v1", "Pod", number), "spec": spec}


def _widget(number: int) -> Manifest:
    parts = [{"name": f"part-{at}", "value": "v" * 10} for at in range(10)]
    return {**_head("benchmark.example.com/v1", "Widget", number), "spec": {"size": 3, "parts": parts}}


def _head(api_version: str, kind: str, number: int) -> Manifest:
    return {
        "apiVersion": api_version,
        "kind": kind,
        "metadata": {"name": f"{kind.lower()}-{number:05}", "labels": {"app": "benchmark"}},
    }


KINDS: Final[dict[str, tuple[str, Callable[[int], Manifest]]]] = {
    "configmaps": (f"/api/v1/namespaces/{NAMESPACE}/configmaps", config_map),
    "pods": (f"/api/v1/namespaces/{NAMESPACE}/pods", _pod),
    "widgets": (f"/apis/benchmark.example.com/v1/namespaces/{NAMESPACE}/widgets", _widget),
}
"""Path and objects of each kind that is measured."""
MAPS: Final = KINDS["configmaps"][0]
"""Path of the ConfigMaps."""


def _definition() -> Manifest:
    schema = {
        "type": "object",
        "properties": {"spec": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
    }
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    names = {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"}
    group = _WIDGETS.partition(".")[2]
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": _WIDGETS},
        "spec": {"group": group, "scope": "Namespaced", "names": names, "versions": [version]},
    }


@dataclass(frozen=True, slots=True)
class ApiServer:
    """An API server under measurement.

    Args:
        session: Its client.
        pid: The process; 0 for a real API server.
    """

    session: aiohttp.ClientSession
    pid: int = 0

    def resident(self) -> int:
        """Return the resident memory of the process in MiB; 0 if the system does not report it."""
        return resident_memory(self.pid)

    async def ask(self, method: str, path: str, body: Any = None, headers: dict[str, str] = _JSON) -> bytes:
        """Send a request and return the body of its response."""
        data = None if body is None else json.dumps(body)
        async with self.session.request(method, path, data=data, headers=headers) as response:
            found = await response.read()
            assert response.ok, found[:500]
            return found


async def start_embedded(stack: AsyncExitStack, number: int) -> ApiServer:
    """Start the embedded server with some ConfigMaps."""
    process = subprocess.Popen(  # noqa: S603, ASYNC220 (our own program; nothing else runs meanwhile)
        [sys.executable, "-m", "benchmarks.served", str(number)],
        stdout=subprocess.PIPE,
        cwd=Path(__file__).parents[1],
    )
    stack.callback(process.wait)
    stack.callback(process.kill)
    assert process.stdout is not None
    url = process.stdout.readline().decode().strip()
    # No limit: each watch keeps a connection.
    session = aiohttp.ClientSession(url, connector=aiohttp.TCPConnector(limit=0))
    return ApiServer(await stack.enter_async_context(session), process.pid)


async def start_real(stack: AsyncExitStack) -> ApiServer:
    """Start a real API server."""
    plane = stack.enter_context(ControlPlane())
    user = yaml.safe_load(plane.kubeconfig.read_text(encoding="utf-8"))["users"][0]["user"]
    context = ssl.create_default_context(cafile=str(plane.authority))
    context.load_cert_chain(user["client-certificate"], user["client-key"])
    connector = aiohttp.TCPConnector(ssl=context, limit=0)
    server = ApiServer(await stack.enter_async_context(aiohttp.ClientSession(plane.url, connector=connector)))
    await server.ask("POST", "/api/v1/namespaces", {"metadata": {"name": NAMESPACE}})
    return server


async def fill(server: ApiServer, number: int) -> dict[str, int]:
    """Create objects of each kind; return the nanoseconds that the first list of each took."""
    await server.ask("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", _definition())
    for _ in range(100):
        try:
            await server.ask("GET", KINDS["widgets"][0])
            break
        except AssertionError:
            await asyncio.sleep(0.1)
    first: dict[str, int] = {}
    for kind, (path, make) in KINDS.items():
        for at in range(number):
            await server.ask("POST", path, make(at))
        first[kind] = await elapsed(partial(server.ask, "GET", path))
    return first


async def elapsed(call: Callable[[], Awaitable[object]]) -> int:
    """Return the nanoseconds that a call takes."""
    start = time.perf_counter_ns()
    await call()
    return time.perf_counter_ns() - start
