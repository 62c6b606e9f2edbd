"""The process: its environment variables, and the whole program on a served cluster."""

import asyncio
import os
import signal
import socket
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from aiohttp import ClientSession

from examples.memcached import monitor
from examples.memcached.model import Memcached
from examples.memcached.samples import AUTOSCALED
from examples.memcached.settings import Settings
from ocf.cluster import ListOptions, WatchOptions
from ocf.errors import ConfigError
from ocf.runtime.admission import Service
from ocf.testing import fake_workload_controllers
from ocf_server import EmbeddedCluster
from ocf_server.http import serving, write_kubeconfig
from tests.examples.memcached.env import Env, embedded_kubelet

CHECKOUT = Path(__file__).parents[3]


def test_settings_without_an_environment() -> None:
    options = Settings.of({}).options()

    assert (options.namespaces, options.lease, options.listen and options.listen.port) == ((), None, 8080)


def test_settings_of_an_environment() -> None:
    given = {
        "POD_NAMESPACE": "ops",
        "WATCH_NAMESPACES": "shop, town,",
        "PORT": "8081",
        "WEBHOOK_SERVICE": "memcached-webhook",
        "WEBHOOK_PORT": "9444",
        "STRICT_VALIDATION": "true",
    }
    settings = Settings.of(given)
    options = settings.options()

    assert settings.strict
    assert options.admission is not None
    assert (options.admission.address, options.admission.port) == (Service("memcached-webhook", "ops"), 9444)
    assert options.namespaces == ("shop", "town")
    assert options.lease is not None
    assert (options.lease.name, options.lease.namespace) == ("memcached-operator", "ops")


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({"PORT": "high"}, "PORT must be a port, 0 to 65535, got 'high'"),
        ({"WEBHOOK_PORT": "65536"}, "WEBHOOK_PORT must be a port"),
        ({"STRICT_VALIDATION": "yes"}, "STRICT_VALIDATION must be true or false, got 'yes'"),
        ({"WEBHOOK_SERVICE": "webhook"}, "WEBHOOK_SERVICE needs POD_NAMESPACE"),
    ],
)
def test_invalid_settings_are_rejected(given: dict[str, str], problem: str) -> None:
    with pytest.raises(ConfigError, match=problem):
        Settings.of(given)


PROGRAMS = [
    pytest.param(["-m", "examples.memcached"], id="by itself"),
    pytest.param(["-m", "kopf", "run", "--all-namespaces", "-m", "examples.memcached.with_kopf"], id="in kopf"),
]


@asynccontextmanager
async def program(
    arguments: list[str], kubeconfig: Path, **environment: str
) -> AsyncIterator[asyncio.subprocess.Process]:
    """Run a Python program until it is stopped; it must exit successfully."""
    given = {**os.environ, "KUBECONFIG": str(kubeconfig), "PYTHONPATH": str(CHECKOUT), **environment}
    process = await asyncio.create_subprocess_exec(
        sys.executable, *arguments, cwd=CHECKOUT, env=given, stderr=asyncio.subprocess.PIPE
    )
    telling = asyncio.create_task(process.communicate())
    try:
        yield process
    finally:
        if process.returncode is None:
            process.send_signal(signal.SIGTERM)
        async with asyncio.timeout(600):
            _, output = await telling
    assert process.returncode == 0, output.decode()


async def ready(env: Env) -> None:
    """Wait until the cache is ready."""
    async with asyncio.timeout(600):
        key = env.owner
        since = (await env.cluster.list(key.api_version, key.kind)).resource_version
        async for _ in env.cluster.watch(key.api_version, key.kind, WatchOptions(resource_version=since)):
            if (await env.conditions()).get("Ready", ("",))[0] == "True":
                return


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


@pytest.mark.parametrize("arguments", PROGRAMS)
async def test_the_program_serves_caches_metrics_and_webhooks(arguments: list[str], tmp_path: Path) -> None:
    cluster, port, webhook_port = EmbeddedCluster(namespaces=["caches", "ops"]), free_port(), free_port()
    for one in (Memcached.definition(), monitor.DEFINITION):
        await cluster.create(one, field_manager="user")
    env, kubeconfig = Env(cluster, "caches", embedded_kubelet), tmp_path / "kubeconfig"
    environment = {
        "POD_NAMESPACE": "ops",
        "PORT": str(port),
        "WEBHOOK_SERVICE": "memcached-webhook",
        "WEBHOOK_PORT": str(webhook_port),
    }
    async with serving(cluster) as server, fake_workload_controllers(cluster), ClientSession() as session:
        write_kubeconfig(server.kubeconfig(), kubeconfig)
        async with program(arguments, kubeconfig, **environment):
            await env.create(AUTOSCALED)
            await ready(env)
            async with session.get(f"http://127.0.0.1:{port}/metrics") as answer:
                metrics = await answer.text()
            async with session.get(f"https://127.0.0.1:{webhook_port}/readyz", ssl=False) as answer:
                reachable = answer.status
        live = await env.get("Memcached")
        events = (await cluster.list("events.k8s.io/v1", "Event", ListOptions(namespace="caches"))).items

    assert 'memcached_operator_instance_replicas_ready{name="my-cache",namespace="caches"} 1.0' in metrics
    assert (
        'memcached_operator_reconcile_resource_total{resource_kind="HorizontalPodAutoscaler",result="success"}'
        in metrics
    )
    assert reachable == 200
    assert {"annotations", "finalizers"}.isdisjoint(live["metadata"])
    assert "Created 3 objects: Deployment my-cache, HorizontalPodAutoscaler my-cache, Service my-cache" in {
        event["note"] for event in events
    }
    assert (await cluster.list("coordination.k8s.io/v1", "Lease", ListOptions(namespace="ops"))).items
