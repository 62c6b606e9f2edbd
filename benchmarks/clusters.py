"""Comparison of clusters: the embedded one in this process, the same over HTTP, and a real API server.

All times are wall-clock times, because a request over a connection mostly waits. Both servers are measured with the
same client. Without the programs of a control plane (`make envtest`) the real API server is skipped.
"""

import asyncio
import itertools
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AbstractAsyncContextManager, ExitStack, contextmanager
from functools import cache, partial
from itertools import chain
from pathlib import Path
from typing import Any, Final, TypeVar

from benchmarks.autoscaler import NAMESPACE, plain
from benchmarks.figures import Case, Suite
from benchmarks.timer import Measure
from ocf.cluster import Cluster, ListOptions, WatchOptions
from ocf.cluster.client import ApiServerCluster
from ocf.objects import Manifest, ObjectKey
from ocf.testing.envtest import ControlPlane
from ocf.testing.envtest.binaries import find_programs
from ocf_server import EmbeddedCluster
from ocf_server.http import serving, write_kubeconfig

__all__ = ["small_suite", "suite"]

_START_LIMIT: Final = 500_000_000
_MANY: Final = 10_000
_FEW: Final = 1_000
_TARGET: Final = "backend"
_KEY: Final = ObjectKey("autoscaling/v2", "HorizontalPodAutoscaler", _TARGET, NAMESPACE)
_MANAGER: Final = "benchmark"
_SERVE: Final = "from ocf.cli import main; main()"
_WHAT: Final = {"get": "get", "apply": "apply of a changed HPA", "list": "list of many objects"}

T = TypeVar("T")


@contextmanager
def suite() -> Iterator[Suite]:
    """Give the cases."""
    with _suite(many=_MANY, few=_FEW, real=True) as cases:
        yield cases


@contextmanager
def small_suite() -> Iterator[Suite]:
    """Give the same for few objects, and without a real server."""
    with _suite(many=50, few=20, real=False) as cases:
        yield cases


@contextmanager
def _suite(*, many: int, few: int, real: bool) -> Iterator[Suite]:
    with asyncio.Runner() as runner, ExitStack() as stack:
        crowd = EmbeddedCluster(namespaces=(NAMESPACE,), history=many + 10)
        start = crowd.resource_version
        crowded = cache(lambda: runner.run(_filled(crowd, many)))
        servers = {"embedded": partial(_embedded, runner, few), "http": partial(_over_http, runner, stack, few)}
        if real and find_programs() is not None:
            servers["real"] = partial(_real, runner, stack, few)
        yield [
            *chain.from_iterable(_requests(name, runner, cache(make), few) for name, make in servers.items()),
            Case(
                name="cluster.crowd.list",
                what=f"listing {many} objects of the embedded cluster",
                measure=_turns(runner, crowded, lambda cluster: _listed(cluster, many)),
            ),
            Case(
                name="cluster.crowd.watch",
                what=f"watching {many} changes of the embedded cluster",
                measure=_turns(runner, crowded, lambda cluster: _watched(cluster, start, many)),
            ),
            Case(
                name="cluster.start",
                what="`ocf serve`, from the start of the process to its address",
                measure=_starting,
                limit=_START_LIMIT,
            ),
        ]


def _requests(name: str, runner: asyncio.Runner, cluster: Callable[[], Cluster], few: int) -> Iterator[Case]:
    """Give the same requests for each cluster; the first of them is the yardstick of the others."""
    where = {"embedded": "in this process", "http": "embedded, over HTTP", "real": "a real API server"}[name]
    sizes = itertools.cycle((20, 10))

    def case(what: str, call: Callable[[Cluster], Awaitable[object]]) -> Case:
        yardstick = "" if name == "embedded" else f"cluster.embedded.{what}"
        measure = _turns(runner, cluster, call)
        return Case(name=f"cluster.{name}.{what}", what=f"{_WHAT[what]}: {where}", measure=measure, against=yardstick)

    async def apply(live: Cluster) -> None:
        wanted = plain(_TARGET)
        changed = {**wanted, "spec": {**wanted["spec"], "maxReplicas": next(sizes)}}
        await live.apply(changed, field_manager=_MANAGER)

    yield case("get", lambda live: live.get(_KEY))
    yield case("apply", apply)
    yield case("list", lambda live: _listed(live, few))


def _turns(
    runner: asyncio.Runner, cluster: Callable[[], Cluster], call: Callable[[Cluster], Awaitable[object]]
) -> Measure:
    async def turns(calls: int, live: Cluster) -> int:
        start = time.perf_counter_ns()
        for _ in range(calls):
            await call(live)
        return time.perf_counter_ns() - start

    return lambda calls: runner.run(turns(calls, cluster()))


def _embedded(runner: asyncio.Runner, few: int) -> Cluster:
    return runner.run(_filled(EmbeddedCluster(namespaces=(NAMESPACE,)), few))


def _over_http(runner: asyncio.Runner, stack: ExitStack, few: int) -> Cluster:
    async def make() -> Cluster:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        server = await _entered(runner, stack, serving(EmbeddedCluster(namespaces=(NAMESPACE,))))
        write_kubeconfig(server.kubeconfig(), folder / "kubeconfig")
        client = await ApiServerCluster.connect(folder / "kubeconfig")
        return await _filled(await _entered(runner, stack, client), few)

    return runner.run(make())


def _real(runner: asyncio.Runner, stack: ExitStack, few: int) -> Cluster:
    plane = stack.enter_context(ControlPlane())

    async def make() -> Cluster:
        live = await _entered(runner, stack, await plane.cluster())
        await live.create(
            {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}, field_manager=_MANAGER
        )
        return await _filled(live, few)

    return runner.run(make())


async def _entered(runner: asyncio.Runner, stack: ExitStack, manager: AbstractAsyncContextManager[T]) -> T:
    """Enter an asynchronous context that is left with the suite."""
    entered = await manager.__aenter__()
    stack.callback(lambda: runner.run(_left(manager)))
    return entered


async def _left(manager: AbstractAsyncContextManager[Any]) -> None:
    await manager.__aexit__(None, None, None)


async def _filled(cluster: Cluster, number: int) -> Cluster:
    await cluster.apply(plain(_TARGET), field_manager=_MANAGER)
    for at in range(number):
        metadata = {"name": f"settings-{at}", "namespace": NAMESPACE, "labels": {"app": "benchmark"}}
        settings: Manifest = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"mode": "quiet"}}
        await cluster.create(settings, field_manager=_MANAGER)
    return cluster


async def _listed(cluster: Cluster, number: int) -> None:
    found = await cluster.list("v1", "ConfigMap", ListOptions(namespace=NAMESPACE, label_selector="app=benchmark"))
    assert len(found.items) == number


async def _watched(cluster: Cluster, start: str, number: int) -> None:
    watch = cluster.watch("v1", "ConfigMap", WatchOptions(resource_version=start, namespace=NAMESPACE))
    async for _ in watch:
        number -= 1
        if not number:
            break


def _starting(calls: int) -> int:
    """Take the time until the address is there; ending the process again does not count."""
    command = [sys.executable, "-c", _SERVE, "serve", "--output", "json"]
    elapsed = 0
    for _ in range(calls):
        start = time.perf_counter_ns()
        with subprocess.Popen(command, stdout=subprocess.PIPE) as process:  # noqa: S603 (our own command)
            assert process.stdout is not None
            assert b"http://127.0.0.1:" in process.stdout.readline()
            elapsed += time.perf_counter_ns() - start
            process.terminate()
    return elapsed
